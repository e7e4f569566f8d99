"""clew convert: a session written for another agent."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import msgspec

from clew import __version__
from clew.agents import registry
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
    wants_json,
)
from clew.cli.output import print_json, print_message
from clew.cli.redaction import Redaction, redacting, redaction
from clew.cli.session_argument import session_argument
from clew.continuation import AgentCommand, agent_command
from clew.convert.client_version import installed_version, untested_version
from clew.convert.conversion import Conversion
from clew.convert.losses import Converted, refusal, serious
from clew.convert.prepare import Prepared, is_converted, prepare, prepare_original
from clew.convert.report import conversion_report
from clew.errors import SourceUnreadable, UsageError, WouldLose
from clew.io.atomic import create
from clew.references import message_of
from clew.sources.moved_projects import full_path


@click.command("convert")
@session_argument("PATH|REF")
@click.option("--to", "target", metavar="AGENT", required=True, help="The agent to convert for, from `clew agents`.")
@target_home_option("to write the session to")
@click.option("--branch", metavar="MESSAGE", help="Convert the branch of this message: its number or uuid.")
@click.option(
    "--cwd",
    cls=OptionWithOldNames,
    old_names=["--folder"],
    metavar="DIR",
    help="The project's folder in the new session, for a session from another machine; default: the recorded one.",
)
@click.option("--title", metavar="TEXT", help="The title of the new session; default: that of the original.")
@full_history_option
@click.option("--original", is_flag=True, help="Restore the session that this one was converted from.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write a report without content: counts, hashes, versions.",
)
@click.option("--allow-loss", is_flag=True, help="Convert even if some content cannot be carried over.")
@dry_run_option()
@redacting
@choosing_project
@sourcing
@as_json_option
@click.pass_context
def command(
    context: click.Context,
    /,
    reference: str,
    target: str,
    target_home: Path | None,
    branch: str | None,
    cwd: str | None,
    title: str | None,
    full_history: bool,
    original: bool,
    report: Path | None,
    allow_loss: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Write a session in another agent's format, under a new id, so that this agent can continue it.

    The original is included: converting back restores its bytes if nothing was added since, and --original restores it
    at any time. With --redact, the original is left out, and the converted session is masked.

    Of a compacted session the other agent's model gets what its own model would get: the summary and what follows.
    The messages before it stay in the file if the other agent's format allows it. --full-history sends all messages.

    clew --home FROM convert REF --to AGENT --home TO reads the session from FROM and writes it below TO. Without FROM
    it is read from your own home, or from TO if only TO has it; without TO it is written below FROM, or below your own
    home.
    """
    target = registry.match(target)
    if message_of(reference) is not None:
        raise UsageError(f"{reference}: a session is converted whole, or the branch that --branch names")
    if report is not None and dry_run:
        raise UsageError("--report describes written files; --dry-run writes none")
    if report is not None:
        _check_report_path(report)
    host = target_host(context, target_home)
    home = host.home
    library, session = find_to_convert(context, reference, host)
    masking = redaction(context, for_programs=True)
    children, session = library.subagents(session), masking.session(session)
    workspace = full_path(cwd) if cwd is not None else None
    if original:
        _check_alone(branch or cwd or title, masking.is_on)
        prepared = prepare_original(session.source, target)
    else:
        whole = not masking.is_on
        prepared = prepare(
            session.agent,
            session.source,
            target,
            branch,
            children,
            home=home,
            with_original=whole,
            workspace=workspace,
            full_history=full_history,
            title=title,
            now=host.now,
        )
    refused = bool(serious(prepared.losses)) and not allow_loss and not dry_run
    agent = registry.get(target)
    started = partial(agent_command, folder=workspace or session.header.workspace, host=host, agent=agent)
    is_new_home = not home.exists()
    if dry_run:
        outcome = _rehearsed(prepared, target, home)
    else:
        outcome = prepared.describe(home) if refused else _written(prepared, target, home, allow_loss, started)
    if is_new_home and home.exists():
        print_message(f"created {home}")
    client_version = installed_version(outcome.resume[0]) if outcome.resume else None
    if not refused and (warning := untested_version(agent, client_version)):
        print_message(f"clew: {warning}")
    if wants_json(context, as_json):
        shown = outcome if not refused else msgspec.structs.replace(outcome, files=[])
        print_json(masking.value(msgspec.to_builtins(shown)))
    else:
        _print_outcome(outcome, refused, redaction(context, for_programs=False), started)
    if report is not None and not refused:
        described = conversion_report(
            session.agent, session.source, agent, outcome, clew_version=__version__, client_version=client_version
        )
        create(report, msgspec.json.format(msgspec.json.encode(described), indent=2) + b"\n")
    return WouldLose.exit_code if refused else 0


def _check_report_path(report: Path) -> None:
    """Refuse a report that could not be written once the session is."""
    if os.path.lexists(report):
        raise WouldLose(f"{report} exists already")
    folder = report.absolute().parent
    if not folder.is_dir():
        raise SourceUnreadable(f"{report} cannot be written: {folder} is not a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SourceUnreadable(f"{report} cannot be written: no permission to write to {folder}")


def _rehearsed(prepared: Prepared, target: str, home: Path) -> Converted:
    try:
        return prepared.rehearse(home)
    except WouldLose:
        before = prepared.describe(home)
        if not isinstance(prepared, Conversion) or not is_converted(registry.get(target), before):
            raise
        print_message("it was converted before; nothing would be written")
        return before


def _written(
    prepared: Prepared, target: str, home: Path, allow_loss: bool, started: Callable[[list[str]], AgentCommand]
) -> Converted:
    try:
        return prepared.write(home, allow_loss=allow_loss)
    except WouldLose as error:
        before = prepared.describe(home)
        if not isinstance(prepared, Conversion) or not is_converted(registry.get(target), before):
            raise
        hint = f"it was converted before; continue with: {started(before.resume).shell_line(str)}"
        raise WouldLose(f"{error}: {hint}") from None


def _check_alone(changed: str | None, is_masked: bool) -> None:
    if changed is not None or is_masked:
        raise UsageError("--original restores the session byte for byte; it cannot be combined with other changes")


def _print_outcome(
    outcome: Converted, refused: bool, masking: Redaction, started: Callable[[list[str]], AgentCommand]
) -> None:
    from clew.render.text_safety import visible

    print_losses(outcome.losses)
    if refused:
        print_message(f"clew: nothing was written: {refusal(outcome.losses)}")
        return
    for file in outcome.files:
        click.echo(visible(masking.text(str(file))))
    for argv in outcome.imports:
        print_message(f"import with: {started(argv).shell_line(masking.text)}")
    if outcome.resume:
        print_message(f"continue with: {started(outcome.resume).shell_line(masking.text)}")
