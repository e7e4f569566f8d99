"""clew erase: messages, or a whole session, of clew's own store, gone for good."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from clew.agents.sage_agent.locate import AGENT
from clew.agents.sage_agent.records import ERASED, summary_line
from clew.annotations import Annotations, AnnotationsUnreadable
from clew.cli.archive_holds import user_holds
from clew.cli.completion import complete_session
from clew.cli.options import choosing_project, common, wants_json, yes_option
from clew.cli.output import print_json, print_message
from clew.cli.redaction import Redaction, redacting_output, redaction
from clew.cli.sessions import own_session
from clew.errors import Busy, UsageError
from clew.host import Host, data_dir
from clew.model.json import JSON
from clew.render.tables import counted
from clew.render.text_safety import one_line
from clew.store.conversation_tree import node_of, numbered_message
from clew.store.erase import Erased, erase_record, erase_session, preview_erasing, refuse_erasing
from clew.store.layout import MESSAGES, refuse_copy
from clew.store.session import Session

_LENGTH = 60
"""At most this many characters of a message are shown."""


@click.command("erase")
@click.argument("reference", metavar="REF", shell_complete=complete_session)
@click.argument("messages", nargs=-1, metavar="[MESSAGE]...")
@yes_option("--write")
@redacting_output
@choosing_project
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    reference: str,
    messages: tuple[str, ...],
    yes: bool,
    homes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Erase messages of a session in clew's own store, or without MESSAGE the whole session. This is final.

    MESSAGE is a uuid, the beginning of one, or 12 for the twelfth message. The message is overwritten, together with
    its snapshots, copies of files that nothing else uses, its text in the catalog, and its star, labels and note. Its
    position in the conversation stays, but later messages are renumbered: name them by uuid from then on. Known copies
    that could not be erased are listed, so that you can remove them.
    """
    session = own_session(context, homes, reference)
    refuse_copy(session.folder)
    uuids = list(dict.fromkeys(_uuid(session, message, yes) for message in messages))
    refuse_erasing(session.folder, whole=not uuids)
    if yes:
        _refuse_held(session)
    json = wants_json(context, as_json)
    masking = redaction(context, for_programs=json)
    masking.prepare()
    labels = _message_labels(session, uuids, masking)
    done = _erase(session, uuids) if yes else preview_erasing(session.folder, uuids)
    copies = _copies(session)
    if yes:
        copies += [*_delete_annotations(session.id, uuids or None), *_forget(session.folder / MESSAGES)]
    row: dict[str, JSON] = {
        "erased": yes,
        "session": session.id,
        "messages": uuids or None,
        "words": None if yes else [labels[uuid] for uuid in uuids] or None,
        "records": done.records,
        "files": done.files,
        "copies": [*done.copies, *copies],
    }
    if json:
        print_json(masking.value(row))
    else:
        _print_result(row, bool(messages), masking)


def _print_result(row: dict[str, JSON], some: bool, masking: Redaction) -> None:
    for number, uuid in enumerate(row["messages"] or ()):
        # What is gone is not said again: terminals are recorded.
        shown = one_line(masking.text(uuid))
        click.echo(f"{shown}  {one_line(row['words'][number])}" if row["words"] else shown)
    counts = f"{counted(row['records'], 'record')}, {counted(row['files'], 'file')}"
    click.echo(one_line(f"{'of ' if some else ''}session {masking.text(row['session'])}: {counts}"))
    for copy in row["copies"]:
        print_message(f"clew: not erased: {copy}")
    if not row["erased"]:
        print_message("nothing was changed; use --yes to erase for good", mask=False)


def _message_labels(session: Session, uuids: Sequence[str], masking: Redaction) -> dict[str, str]:
    """The kind and the first words of messages, by which a person knows them again."""
    records = {str(uuid): record for uuid, record in session.by_uuid() if uuid in uuids}
    # Masked before it is cut: a part of a secret would not be found.
    masked = zip(records, masking.values(records.values()), strict=True)
    return {uuid: f"{record.get('type')}: {_beginning(record)}" for uuid, record in masked}


def _beginning(record: dict[str, JSON]) -> str:
    text = summary_line(record)
    return text if len(text) <= _LENGTH else f"{text[:_LENGTH]}…"


def _uuid(session: Session, message: str, write: bool) -> str:
    """The uuid that is meant. A branch's name would do for others, but here it must be a message."""
    tree = session.tree()
    node = node_of(tree, message)
    uuid = tree.uuids[node]
    is_number = numbered_message(tree, message) == node
    if write and is_number and ERASED in tree.kinds[:node]:
        words = f"messages before it were erased, and later messages have new numbers; it is {uuid} now"
        raise UsageError(f"{message}: {words}; check what it refers to, and name it that way")
    if not is_number and not uuid.startswith(message):
        raise UsageError(f"{message} is a branch; name messages by uuid or number")
    return uuid


def _refuse_held(session: Session) -> None:
    """Refuse to erase anything of a session that is held."""
    log = session.folder / MESSAGES
    now = Host.local().now()
    last_activity = datetime.fromtimestamp(log.stat().st_mtime, UTC) if log.exists() else now
    user_holds().refuse(AGENT, session.id, log, last_activity, now)


def _erase(session: Session, uuids: Sequence[str]) -> Erased:
    if not uuids:
        return erase_session(session.folder)
    each = [erase_record(session.folder, uuid) for uuid in uuids]
    copies = dict.fromkeys(copy for one in each for copy in one.copies)
    return Erased(sum(one.records for one in each), sum(one.files for one in each), list(copies))


def _copies(session: Session) -> list[str]:
    """What clew itself keeps of the session elsewhere, and does not reach from here."""
    from clew.archive.records import archive_folder
    from clew.migrate.scrub import is_archived

    archive = archive_folder(None)
    archived = [f"the archive {archive}"] if is_archived(archive, [(AGENT, session.id)]) else []
    return archived + [str(path) for path in sorted((data_dir() / "rescue").glob(f"{AGENT}-{session.id[:8]}-*"))]


def _delete_annotations(session: str, messages: Sequence[str] | None) -> list[str]:
    """Delete stars, labels and notes, which may quote what was erased; returns the file where that failed."""
    annotations = Annotations()
    try:
        annotations.delete(AGENT, session, messages)
    except (Busy, AnnotationsUnreadable):
        return [f"stars, labels and notes in {annotations.path}"]
    return []


def _forget(log: Path) -> list[str]:
    """Erase the session from every catalog; what is left of it comes back with the next sync.

    Returns the catalogs that still hold it.
    """
    from clew.catalog.database import CatalogNotWritable
    from clew.catalog.sync import catalogs_with, forget

    current, aside = catalogs_with(str(log))
    left = [f"the catalog {folder}, which is no longer used: delete it" for folder in aside]
    for folder in current:
        try:
            forget(folder, str(log))
        except Busy:
            left.append(f"the catalog {folder}: another sync is running; `clew sync --full` does it")
        except CatalogNotWritable as error:
            left.append(f"{error}; `clew sync --full` does it")
    return left
