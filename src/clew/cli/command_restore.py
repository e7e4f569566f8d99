"""clew restore: files put back as they were at a message."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from clew.agents.file_evidence import absolute
from clew.cli.completion import complete_session
from clew.cli.file_history import message_in, open_file_history
from clew.cli.options import choosing_project, common, into_option, open_library, wants_json, yes_option
from clew.cli.output import print_json, print_message, print_table, refuse_stores
from clew.cli.redaction import Redaction, redacting_output, redaction
from clew.errors import PathRefused, SourceUnreadable, UnknownReference, UsageError, WouldLose
from clew.file_history.history import FileHistory
from clew.file_history.restore import RestoreStep, apply_plan, plan
from clew.file_history.rows import answer_row, describe_certainty, describe_later_result
from clew.host import Host, data_dir
from clew.io.paths import escape_invalid_utf8, file_name, is_own_home
from clew.model.json import JSON
from clew.render.shell import shell_word
from clew.sources import moved_projects
from clew.sources.moved_projects import current_path
from clew.store.change_journal import restore_journals, restore_lock, roll_back_interrupted_restores
from clew.stored_session import StoredSession


@click.command("restore")
@click.argument("reference", metavar="REF#MESSAGE", shell_complete=complete_session)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@into_option()
@click.option("--in-place", is_flag=True, help="Restore into the session's own folder.")
@click.option(
    "--from", "base", metavar="FOLDER", help="Recorded folder that corresponds to DIR; default: the project's."
)
@yes_option("--write")
@click.option("--known", is_flag=True, help="Skip files whose content is not known, instead of stopping.")
@click.option("--unproved", is_flag=True, help="Also restore content that is only inferred.")
@click.option("--force", is_flag=True, help="Replace or remove files that differ; copies are kept.")
@click.option(
    "--allow-protected", is_flag=True, help="Also restore files that programs run, such as .git/hooks and .bashrc."
)
@redacting_output
@choosing_project
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    reference: str,
    paths: tuple[str, ...],
    into: Path | None,
    in_place: bool,
    base: str | None,
    homes: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Restore files as they were at a message (REF#12): all files that the session used, or those named.

    That is at the message, before the results of its own calls. Without --yes, only print what would be done and how
    each file is known. DIR is created if its parent exists. Either all files are restored or none: if a step fails, the
    earlier ones are reverted. A restore that was killed is reverted by the next restore, undo or redo, or by
    `clew doctor --fix`.
    """
    message = message_in(reference)
    session, history = open_file_history(context, homes, reference)
    base = absolute(base, None) if base is not None else history.workspace
    library = open_library(context, homes)
    folder = _folder(into, in_place, history)
    if in_place:
        _refuse_foreign(session, library.hosts, folder)
    refuse_stores(library, folder)
    json, place = wants_json(context, as_json), data_dir()
    rescue = place / "rescue" / file_name(f"{history.agent.id}-{session.id[:8]}-{_now(context, homes)}")
    kept: list[str] = []
    masking = redaction(context, for_programs=json)
    masking.prepare()
    _revert_interrupted(place, options["yes"])
    steps = _plan(history, message, paths, folder, base, options)
    if not json:
        _print(steps, masking, replaces=options["force"])
    for step in steps:
        if changed := describe_later_result(history, reference.rpartition("#")[0], message, step.answer.path):
            print_message(f"clew: {escape_invalid_utf8(step.path)}: {changed}")
    if options["yes"]:
        _refuse(steps, options["force"])
        if not folder.is_dir():
            folder.mkdir()
            print_message(f"created {folder}")
        with restore_lock(place):
            kept = apply_plan(steps, folder, rescue, place)
        if not json:
            print_message(_count_changes(steps), mask=False)
    if json:
        found = {"written": options["yes"], "rescue": str(rescue) if kept else None, "files": _rows(steps)}
        print_json(masking.value(found))
    elif not options["yes"]:
        print_message("nothing was written; use --yes to restore", mask=False)
    elif kept:
        files = "1 replaced or removed file is" if len(kept) == 1 else f"{len(kept)} replaced or removed files are"
        print_message(f"{files} kept in {rescue}")
    return 0


def _revert_interrupted(place: Path, write: bool) -> None:
    """Revert an interrupted restore before a new one; without --yes, only say that there is one."""
    if not write and restore_journals(place):
        print_message(
            "a restore was interrupted; the next one with --yes reverts it, and so does `clew doctor --fix`",
            mask=False,
        )
    for path in roll_back_interrupted_restores(place) if write else ():
        print_message(f"an interrupted restore was reverted: {path} is as it was before")


def _now(context: click.Context, homes: tuple[str, ...]) -> str:
    """Now, as part of a name."""
    return open_library(context, homes).hosts[0].now().strftime("%Y%m%dT%H%M%S%f")


def _folder(into: Path | None, in_place: bool, history: FileHistory) -> Path:
    if (into is None) == (not in_place):
        raise UsageError("give a target: --into DIR, or --in-place for the session's own folder")
    if into is not None:
        if into.exists() and not into.is_dir():
            raise SourceUnreadable(f"{into} is not a folder")
        if not into.absolute().parent.is_dir():
            raise SourceUnreadable(f"{into.absolute().parent}: no such folder")
        return into
    if not history.workspace:
        raise UsageError("the session does not record its folder; use --into DIR")
    folder = Path(current_path(history.workspace, moved_projects.load()))
    if not folder.is_dir():
        hint = f"; if it was moved: `clew sources map {shell_word(str(folder))} NEW`"
        raise SourceUnreadable(f"{folder}: no such folder{hint}")
    return folder


def _refuse_foreign(session: StoredSession, hosts: Sequence[Host], folder: Path) -> None:
    """A session that came from elsewhere may name any folder of this machine as its own; a person has to name it.

    One in an agent's own place is the user's: below the user's own home, or below the very folder it names. A home that
    was named with --home may be a copy of another user's home.
    """
    homes = [host for host in hosts if host.base is None and is_own_home(host.home)]
    roots = [root for host in (*homes, Host.at(folder)) for root in session.agent.roots(host)]
    path = session.path.absolute()
    if session.source.origin is not None or not any(path.is_relative_to(root.absolute()) for root in roots):
        raise UsageError(
            f"the session was not recorded on this machine, and its folder is {folder}; use --into to restore there"
        )


def _plan(
    history: FileHistory, message: int, paths: tuple[str, ...], folder: Path, base: str, options: dict[str, Any]
) -> list[RestoreStep]:
    answers = [history.at(message, history.resolve_path(path)) for path in paths] or history.all_at(message)
    if not answers:
        raise UnknownReference("; ".join(["no record of the session mentions a file", *history.cut_off()]))
    contents = history.contents(answers)
    steps = plan(
        list(zip(answers, contents, strict=True)),
        folder,
        base,
        allow_protected=options["allow_protected"],
        allow_unproved=options["unproved"],
    )
    if options["known"]:
        steps = [step for step in steps if step.verdict not in ("unknown", "unproved")]
    return steps


def _refuse(steps: list[RestoreStep], force: bool) -> None:
    """Stop before anything is written, if something must not be."""
    refused = [step for step in steps if step.verdict == "refused"]
    if refused:
        raise PathRefused(f"nothing was written: {refused[0].path}: {refused[0].reason}")
    protected = [step for step in steps if step.verdict == "protected"]
    if protected:
        raise PathRefused(
            f"nothing was written: {protected[0].path}: {protected[0].reason}; use --allow-protected to write it"
        )
    unknown = [step for step in steps if step.verdict in ("unknown", "unproved")]
    if unknown:
        raise WouldLose(
            f"nothing was written: {unknown[0].path} is not known; name other files, or use --known or --unproved"
        )
    differing = [step for step in steps if step.verdict in ("conflict", "remove")]
    if differing and not force:
        path = differing[0].path
        if differing[0].verdict == "remove":
            raise WouldLose(f"nothing was written: {path} did not exist then; use --force to remove it")
        raise WouldLose(f"nothing was written: {path} exists and differs; use --force to replace it")


def _rows(steps: list[RestoreStep]) -> list[dict[str, JSON]]:
    return [
        {"file": escape_invalid_utf8(step.path), "verdict": step.verdict, "why": step.reason, **answer_row(step.answer)}
        for step in steps
    ]


def _count_changes(steps: list[RestoreStep]) -> str:
    from clew.render.tables import counted

    written = sum(step.verdict in ("write", "conflict") for step in steps)
    removed = sum(step.verdict == "remove" for step in steps)
    return f"{counted(written, 'file')} restored" + (f", {removed} removed" if removed else "")


def _print(steps: list[RestoreStep], masking: Redaction, *, replaces: bool) -> None:
    from clew.render.tables import Column

    columns = [Column("step"), Column("file", is_path=True, flexible=True), Column("known", flexible=True, least=12)]
    rows = [[_step_name(step, replaces), escape_invalid_utf8(step.path), _known(step)] for step in steps]
    print_table(columns, rows, masking)


def _step_name(step: RestoreStep, replaces: bool) -> str:
    """The name of the step: with --force, a file that differs is replaced."""
    return "replace" if replaces and step.verdict == "conflict" else step.verdict


def _known(step: RestoreStep) -> str:
    if step.verdict in ("refused", "protected"):
        return f"{describe_certainty(step.answer)}; {step.reason}"
    return describe_certainty(step.answer)
