"""clew resume: start the right agent in the right folder on a session."""

from __future__ import annotations

import shutil
from pathlib import Path

import click
import msgspec

from clew.agents import registry
from clew.agents.base import Agent
from clew.agents.file_evidence import absolute
from clew.agents.target_profile import TargetProfile
from clew.cli.agent_command import AgentCommand, agent_command, is_path
from clew.cli.losses import print_losses
from clew.cli.options import (
    OptionWithOldNames,
    as_json_option,
    choosing_project,
    dry_run_option,
    find_to_convert,
    full_history_option,
    sourcing,
    target_home_option,
    target_host,
    wanted_sources,
    wants_json,
)
from clew.cli.output import print_json, print_message
from clew.cli.redaction import DATA, TEXT, redacting_output, redaction
from clew.cli.session_argument import session_argument
from clew.convert.client_version import installed_version, untested_version
from clew.convert.losses import Converted, refusal, serious
from clew.convert.prepare import is_converted, prepare
from clew.errors import SourceUnreadable, UsageError, WouldLose
from clew.host import Host
from clew.references import Reference, message_of, named_path
from clew.render.shell import shell_line, shell_word
from clew.sources import moved_projects
from clew.sources.moved_projects import current_path
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
@target_home_option
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
    receiver = agent.target_profile()
    if receiver is None:
        raise UsageError(f"{agent.title} cannot continue a given session")
    _refuse_subagent(session, agent)
    folder, is_moved = _current_folder(session)
    program = ""
    if not dry_run and not wants_json(context, as_json):
        program = _program(receiver.command({"id": "any"})[0], folder)
    conversion: list[str] | None = None
    imports: list[list[str]] = []
    is_found = not is_moved and _is_at_home(session, host, receiver)
    if branch is None and agent.id == session.agent.id and is_found:
        argv = receiver.command(msgspec.to_builtins(session.header))
    else:
        prepared = prepare(
            session.agent,
            session.source,
            agent.id,
            branch,
            library.subagents(session),
            home=host.home,
            workspace=folder if is_moved else None,
            full_history=full_history,
            now=host.now,
        )
        described = prepared.describe(host.home)
        was_converted = is_converted(agent, described)
        _refuse_conversion(described, allow_loss or was_converted or dry_run)
        argv = described.resume
        if not was_converted and dry_run:
            # Report now what would prevent the conversion.
            prepared.rehearse(host.home)
            options = ["--to", agent.id, "--home", str(host.home.absolute())]
            options += ["--branch", branch] if branch is not None else []
            options += ["--cwd", folder] if is_moved else []
            options += ["--full-history"] if full_history else []
            options += ["--allow-loss"] if allow_loss and serious(described.losses) else []
            conversion = ["clew", *_sources(context), "convert", _exact_reference(reference, session), *options]
        elif not was_converted:
            written = prepared.write(host.home, allow_loss=allow_loss)
            print_message(f"converted: {written.files[0]}")
            argv = written.resume
        if described.imports and not agent.locate(Path(described.files[0])).change_token:
            imports = described.imports
    if warning := untested_version(agent, installed_version(argv[0])):
        print_message(f"clew: {warning}")
    started = agent_command(argv, folder, host, agent)
    if wants_json(context, as_json):
        cwd = folder if is_path(folder) else None
        changes = {"environment": started.environment, "unset": started.unset}
        found = {"convert": conversion, "import": imports, "argv": argv, "cwd": cwd, **changes}
        print_json(redaction(context, DATA).value(found))
    elif dry_run:
        _print_commands(
            context, conversion, [agent_command(one, folder, host, agent) for one in imports], started, folder
        )
    else:
        for one in imports:
            agent_command(one, folder, host, agent).run(program)
        started.start(program)
    return 0


def _exact_reference(reference: str, session: StoredSession) -> str:
    """The reference as it was given if it always names this session; the id for `@last`, titles and messages."""
    is_exact = named_path(reference) is not None or session.id.startswith(Reference.parse(reference).id)
    return reference if is_exact and message_of(reference) is None else session.id


def _print_commands(
    context: click.Context,
    conversion: list[str] | None,
    imports: list[AgentCommand],
    started: AgentCommand,
    folder: str,
) -> None:
    if not is_path(folder):
        print_message(
            f"clew: only the name {folder!r} of this session's folder is known; run it in the project's folder"
        )
    mask = redaction(context, TEXT).text
    if conversion is not None:
        click.echo(f"{shell_line(map(mask, conversion))} &&")
    for one in imports:
        click.echo(f"{one.shell_line(mask)} &&")
    click.echo(started.shell_line(mask))


def _refuse_subagent(session: StoredSession, agent: Agent) -> None:
    """An agent goes on with the session that started a sub-agent; another agent gets a session of its own."""
    receiver = agent.target_profile()
    is_kept = receiver is not None and receiver.nests_subagents
    if session.header.is_agent_session and agent.id == session.agent.id and is_kept:
        parent = session.header.parent_session_id
        hint = f"; `clew resume {shell_word(parent)}` continues the session that started it" if parent else ""
        raise UsageError(
            f"{session.id} is the session of a sub-agent, which {agent.title} cannot continue by itself{hint}"
        )


def _current_folder(session: StoredSession) -> tuple[str, bool]:
    """The folder of a session's project, and whether it was moved since."""
    recorded = session.header.workspace
    if not is_path(recorded):
        return recorded, False
    current = current_path(recorded, moved_projects.load())
    return (current, True) if current != absolute(recorded, None) else (recorded, False)


def _is_at_home(session: StoredSession, host: Host, receiver: TargetProfile) -> bool:
    """True if the agent itself finds the session and continues it."""
    path = session.path.absolute()
    is_taken = receiver.can_find_by_id(path, session.id) and receiver.resumes_file(path, session.source.parts)
    return is_taken and any(path.is_relative_to(root.absolute()) for root in session.agent.roots(host))


def _sources(context: click.Context) -> list[str]:
    """The options that make another command look at the homes and sources this one looks at."""
    named = [word for home in context.find_root().obj["homes"] for word in ("--home", home)]
    return [*named, *(word for name in wanted_sources(context) for word in ("--source", name))]


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
