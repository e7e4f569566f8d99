"""clew resume: start the right agent in the right folder on a session."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from clew.agents import registry
from clew.cli.losses import print_losses
from clew.cli.options import (
    OptionWithOldNames,
    as_json_option,
    choosing_project,
    dry_run_option,
    find_to_convert,
    full_history_option,
    source_arguments,
    sourcing,
    target_home_option,
    target_host,
    wants_json,
)
from clew.cli.output import print_json, print_message
from clew.cli.redaction import redacting_output, redaction
from clew.cli.session_argument import session_argument
from clew.continuation import Continuation, is_path
from clew.convert.client_version import installed_version, untested_version
from clew.convert.losses import Converted, refusal, serious
from clew.errors import SourceUnreadable, UsageError, WouldLose
from clew.references import Reference, message_of, named_path
from clew.render.shell import shell_word
from clew.stored_session import StoredSession


@click.command("resume")
@session_argument("PATH|REF")
@click.option(
    "--to",
    "target",
    cls=OptionWithOldNames,
    old_names=["--in"],
    metavar="AGENT",
    help="Continue in this agent, from `clew agents`; default: the session's own.",
)
@click.option("--branch", metavar="MESSAGE", help="Continue the branch of this message: its number or uuid.")
@full_history_option
@dry_run_option("--print")
@click.option("--allow-loss", is_flag=True, help="Continue even if some content cannot be carried over.")
@target_home_option("to write the session to")
@redacting_output
@choosing_project
@sourcing
@as_json_option
@click.pass_context
def command(
    context: click.Context,
    /,
    reference: str,
    target: str | None,
    branch: str | None,
    full_history: bool,
    dry_run: bool,
    allow_loss: bool,
    target_home: Path | None,
    as_json: bool,
) -> int:
    """Continue a session: start its agent in the session's folder.

    With --to or --branch, and where the agent would not find the session, it is converted first. A session that was
    converted before is not converted again. --dry-run writes and starts nothing; it prints the commands. --json
    converts, but starts nothing. A session of a project that was moved (`clew sources map`) is converted too, because
    agents look for sessions by their folder.

    clew --home FROM resume REF --home TO reads the session from FROM, writes it below TO and starts the agent with TO
    as its home. Without FROM it is read from your own home, or from TO if only TO has it; without TO it is written
    below FROM, or below your own home.
    """
    host = target_host(context, target_home)
    library, session = find_to_convert(context, reference, host)
    agent = registry.get(registry.match(target) if target else session.agent.id)
    continuation = Continuation(
        session, agent, host, library.subagents(session), branch=branch, full_history=full_history
    )
    program = ""
    if not dry_run and not wants_json(context, as_json):
        program = _program(continuation.profile.command({"id": "any"})[0], continuation.folder)
    conversion: list[str] | None = None
    if continuation.conversion is not None and continuation.converted is not None:
        is_written = continuation.was_converted
        _refuse_conversion(continuation.converted, allow_loss or is_written or dry_run)
        if not is_written and dry_run:
            # Report now what would prevent the conversion.
            continuation.conversion.rehearse(host.home)
            exact = _exact_reference(reference, session)
            conversion = continuation.convert_command(exact, source_arguments(context), allow_loss=allow_loss)
        elif not is_written:
            written = continuation.write(allow_loss=allow_loss)
            print_message(f"converted: {written.files[0]}")
    if warning := untested_version(agent, installed_version(continuation.argv[0])):
        print_message(f"clew: {warning}")
    imports, started = continuation.import_commands(), continuation.start_command()
    if wants_json(context, as_json):
        cwd = continuation.folder if is_path(continuation.folder) else None
        changes = {"environment": started.environment, "unset": started.unset}
        commands = {"convert": conversion, "import": [one.argv for one in imports], "argv": continuation.argv}
        print_json(redaction(context, for_programs=True).value({**commands, "cwd": cwd, **changes}))
    elif dry_run:
        _print_commands(context, continuation, conversion)
    else:
        for one in imports:
            one.run(program)
        started.start(program)
    return 0


def _exact_reference(reference: str, session: StoredSession) -> str:
    """The reference as it was given if it always names this session; the id for `@last`, titles and messages."""
    is_exact = named_path(reference) is not None or session.id.startswith(Reference.parse(reference).id)
    return reference if is_exact and message_of(reference) is None else session.id


def _print_commands(context: click.Context, continuation: Continuation, conversion: list[str] | None) -> None:
    folder = continuation.folder
    if not is_path(folder):
        print_message(
            f"clew: only the name {folder!r} of this session's folder is known; run it in the project's folder"
        )
    for line in continuation.shell_lines(redaction(context, for_programs=False).text, conversion):
        click.echo(line)


def _refuse_conversion(described: Converted, allow_loss: bool) -> None:
    """Print what a conversion loses; refuse an id that an agent cannot be started with, and serious losses."""
    if not described.resume:
        raise UsageError(
            f"{described.session_id!r} is not a safe id for a command line; `clew convert` gives it a new one"
        )
    print_losses(described.losses)
    if serious(described.losses) and not allow_loss:
        raise WouldLose(refusal(described.losses))


def _program(name: str, folder: str) -> str:
    """The agent's program, looked up before anything is written; refuses where it cannot be started.

    Its path is absolute: from the session's folder, a relative entry of PATH would lead to a program in that folder.
    """
    found = shutil.which(name)
    if found is None:
        raise UsageError(f"{name} is not installed; use --dry-run to see the command")
    if not folder:
        raise SourceUnreadable("the session does not record its folder; use --dry-run to see the command")
    if not is_path(folder) or not Path(folder).is_dir():
        hint = f"; if it was moved: `clew sources map {shell_word(folder)} NEW`" if is_path(folder) else ""
        raise SourceUnreadable(f"{folder}: the session's folder does not exist; use --dry-run to see the command{hint}")
    return str(Path(found).absolute())
