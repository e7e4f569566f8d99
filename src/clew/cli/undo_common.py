"""What undo and redo share: their output, and the confirmation before they continue."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from clew.agents.file_evidence import ABSENT, FileContent, KnownContent
from clew.cli.options import OptionWithOldNames, dry_run_option, open_library, wants_json
from clew.cli.output import print_json, print_message, print_table
from clew.cli.redaction import Redaction, redaction
from clew.cli.sessions import own_session
from clew.file_history.diffs import unified_diff
from clew.host import data_dir
from clew.io.paths import escape_invalid_utf8
from clew.model.json import JSON
from clew.store.change_journal import roll_back_interrupted_restores
from clew.store.layout import refuse_copy
from clew.store.session import Session
from clew.store.undo_plan import FileStep, Refused, UndoResult

F = TypeVar("F", bound=Callable[..., object])

_OPTIONS = (
    click.option(
        "--folder",
        "root",
        cls=OptionWithOldNames,
        old_names=["--in"],
        metavar="DIR",
        help="The project's folder; default: the current folder.",
    ),
    click.option(
        "--from", "moved_from", metavar="DIR", help="The former path of the project's folder, if it was moved."
    ),
    click.option(
        "--force",
        is_flag=True,
        help="Replace files changed outside of the session, keeping copies; skip missing files.",
    ),
    dry_run_option(),
    click.option(
        "--allow-protected", is_flag=True, help="Also restore files that programs run, such as .git/hooks and .bashrc."
    ),
)


def going_back(command: F) -> F:
    """The options of both commands."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def carry_out(
    context: click.Context,
    reference: str,
    change: Callable[..., UndoResult],
    *,
    homes: tuple[str, ...],
    as_json: bool,
    dry_run: bool,
    **options: Any,
) -> None:
    """Plan an undo or redo, apply it unless it is a dry run, and print the result.

    `change` is called with the session and the options of `Session.undo` and `Session.redo`.
    """
    session = own_session(context, homes, reference)
    options["rescue"] = _rescue_folder(context, homes, session)
    json = wants_json(context, as_json)
    masking = redaction(context, for_programs=json)
    masking.prepare()
    with session:
        refuse_copy(session.folder)
        if not dry_run:
            _revert_interrupted(session)
        plan = change(session, dry_run=True, **options)
        try:
            done = plan if dry_run else change(session, dry_run=False, **options)
        except Refused as refused:
            _print(UndoResult(plan.action, plan.start, plan.head, refused.steps, unknown=plan.unknown), json, masking)
            raise
    _print(done, json, masking)
    if not json and dry_run and done.refusal is not None:
        print_message(f"clew: without --dry-run this would be refused: {done.refusal}")
    if not json and dry_run:
        print_message("nothing was changed", mask=False)
    elif not json and done.rescue is not None:
        print_message(f"copies of the files changed outside of the session are in {done.rescue}")


def _revert_interrupted(session: Session) -> None:
    """Revert interrupted restores and undos first: their half-written files would count as changes by the user."""
    for path in roll_back_interrupted_restores(data_dir()):
        print_message(f"an interrupted restore was reverted: {path} is as it was before")
    for path in session.roll_back_interrupted_undo():
        print_message(f"an interrupted undo was reverted: {path} is as it was before")


def _rescue_folder(context: click.Context, homes: tuple[str, ...], session: Session) -> Path:
    """The folder for copies of files that were changed outside the session."""
    now = open_library(context, homes).hosts[0].now().strftime("%Y%m%dT%H%M%S%f")
    return data_dir() / "rescue" / f"sage-agent-{session.id[:8]}-{now}"


def _print(done: UndoResult, json: bool, masking: Redaction) -> None:
    if json:
        print_json(masking.value(_json(done)))
        return
    from clew.render.tables import Column
    from clew.render.text_safety import visible

    columns = [Column("step"), Column("file", is_path=True, flexible=True), Column("why", flexible=True)]
    cells = [[step.verdict, escape_invalid_utf8(step.path), step.reason or ""] for step in done.steps]
    if cells:
        print_table(columns, cells, masking)
    for step in done.steps:
        if step.verdict == "conflict":
            # The path is that of a credential file, which is masked completely.
            redactor = masking.redactor()
            click.echo(visible(redactor.text(_diff(step), escape_invalid_utf8(step.path))), nl=False)
    for words in done.unknown:
        print_message(f"clew: other files may have to be restored too: {words}")
    if done.head != done.start:
        head = masking.text(done.head or "before the first message")
        direction = "back" if done.action == "undo" else "on"
        click.echo(visible(f"{direction if done.receipt is not None else f'would go {direction}'} to {head}"))


def _diff(step: FileStep) -> str:
    """Return diffs of changes made outside of tools: between tool runs, and since the last one."""
    between = [differing(step.path, _whole(one.left), _whole(one.made)) for one in step.outside_versions]
    return "".join(dict.fromkeys((*between, _diff_since(step))))


def _whole(body: bytes | None) -> KnownContent:
    return ABSENT if body is None else FileContent(body, True)


def _diff_since(step: FileStep) -> str:
    if not step.is_changed_since:
        return ""
    recorded: KnownContent = FileContent(step.recorded, True) if step.recorded is not None else ABSENT
    if step.recorded is None and step.content is not None and (step.expected is None or not step.expected.is_nothing):
        recorded = FileContent(step.content, True)
    return differing(step.path, recorded, _whole(step.current))


def differing(path: str, one: KnownContent, other: KnownContent) -> str:
    """A diff that can be printed, even if it has bytes that are not text."""
    return (
        unified_diff(escape_invalid_utf8(path), one, other)
        .encode(errors="surrogateescape")
        .decode(errors="backslashreplace")
    )


def _json(done: UndoResult) -> dict[str, JSON]:
    return {
        "action": done.action,
        "done": done.receipt is not None,
        "from": done.start,
        "head": done.head,
        "record": done.receipt.uuid if done.receipt is not None else None,
        "rescue": str(done.rescue) if done.rescue is not None else None,
        "unknown": list(done.unknown),
        "refusal": done.refusal,
        "files": [_row(step) for step in done.steps],
    }


def _row(step: FileStep) -> dict[str, JSON]:
    row: dict[str, JSON] = {"file": escape_invalid_utf8(step.path), "verdict": step.verdict, "why": step.reason}
    return {**row, "diff": _diff(step)} if step.verdict == "conflict" else row
