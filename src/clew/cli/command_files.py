"""clew files: what a session did to which files."""

from __future__ import annotations

import click

from clew.cli.file_history import open_file_history
from clew.cli.options import choosing_project, common, wants_json
from clew.cli.output import print_json, print_message, print_table
from clew.cli.redaction import Redaction, redacting, redaction
from clew.cli.session_argument import session_argument
from clew.file_history.history import FileHistory
from clew.file_history.rows import evidence_of, evidence_row
from clew.file_history.timeline import Evidence
from clew.io.paths import escape_invalid_utf8
from clew.references import message_of

_BY = {"backup": "copy", "record": "record", "edit": "edits", "read": "reading"}


@click.command("files")
@session_argument()
@click.option("--changes", is_flag=True, help="Only created, changed and deleted files.")
@click.option("--copies", is_flag=True, help="Also list the agent's own backup copies of files.")
@redacting
@choosing_project
@common
@click.pass_context
def command(
    context: click.Context, /, reference: str, changes: bool, copies: bool, homes: tuple[str, ...], as_json: bool
) -> int:
    """List the files that each message of a session read, created, changed or deleted; REF#12: of one message.

    The column `known` says how certain the content after the message is: exact (every byte), text (every character, but
    not the line endings), unproved (it may have changed since), unknown; `by` names the evidence. An undo or redo is
    listed at the message it followed. `outside` marks a change by a person or another program between two messages.
    Exit code 1: no file was used.
    """
    _, history = open_file_history(context, homes, reference)
    wanted = message_of(reference)
    hidden = [action for action, hide in (("snapshot", not copies), ("read", changes)) if hide]
    all_evidence = [evidence for evidence in evidence_of(history, wanted) if evidence.action not in hidden]
    masking = redaction(context, for_programs=wants_json(context, as_json))
    if wants_json(context, as_json):
        print_json(masking.value([evidence_row(evidence, history) for evidence in all_evidence]))
    elif all_evidence:
        _print(all_evidence, history, masking)
    else:
        print_message("clew: no file was used" + ("" if wanted is None else " by this message"), mask=False)
    for words in history.cut_off():
        print_message(words)
    return 0 if all_evidence else 1


def _print(all_evidence: list[Evidence], history: FileHistory, masking: Redaction) -> None:
    from clew.render.tables import Column

    base = history.workspace + "/" if history.workspace else ""
    names = ("action", "known", "by")
    columns = [Column("message", right=True), *map(Column, names), Column("file", is_path=True, flexible=True)]
    cells = [
        [
            f"#{evidence.call}..{evidence.done}" if evidence.action == "outside" else f"#{evidence.call}",
            evidence.action,
            evidence.after.certainty if evidence.after is not None else "unknown",
            _BY[evidence.how] if evidence.after is not None else "",
            escape_invalid_utf8(evidence.path.removeprefix(base)),
        ]
        for evidence in all_evidence
    ]
    print_table(columns, cells, masking)
