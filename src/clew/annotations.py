"""Stars, labels, notes and titles that a user adds to sessions and messages: one SQLite file in clew's data folder.

The file is the only copy of what the user wrote. No sync, rebuild or repair of the catalog touches it. An annotation
belongs to an agent and a session id, so it stays when the source is renamed, moved, archived or deleted. A message is
known by the id that its agent gave it; one without an id of its own is known by its index.
"""

from __future__ import annotations

import os
import sqlite3
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from clew.datadir import ANNOTATIONS_FILE, data_path, private_folder
from clew.errors import Busy, InvalidDocument, SourceUnreadable, UsageError
from clew.model.json import JSON
from clew.model.time import EPOCH, from_microseconds, parse_time, spell_time, to_microseconds
from clew.render.text_safety import checked_line
from clew.stored_session import StoredSession

MAX_TITLE_CHARS = 200
MAX_LABEL_CHARS = 60
MAX_LABELS = 50
"""Labels of one session or message."""
MAX_NOTE_CHARS = 10_000
MAX_ID_CHARS = 1_000
"""Of the ids of agents, sessions and messages in an imported file."""
MAX_IMPORT_BYTES = 64 << 20
BUSY_TIMEOUT_SECONDS = 10.0
"""How long a command waits for another process that is writing."""
EXPORT_VERSION = 1

_APPLICATION = 0x636C6577
"""The `application_id` of the database: "clew" in ASCII."""
_COLUMNS = "agent, session, message, message_index, starred, labels, note, changed_at, title"


class AnnotationsUnreadable(SourceUnreadable):
    """The file with stars, labels and notes is damaged, cannot be opened, or was written by a newer version."""


class Target(NamedTuple):
    """A session, or a message of it, that can have an annotation."""

    agent: str
    session: str
    message_id: str | None = None
    """The message's own id; None for a session, and for a message without one."""
    message: int | None = None
    """The index of the message; None for a session."""

    @classmethod
    def of(cls, session: StoredSession, message: int | None = None) -> Target:
        """The session, or its message with this index."""
        if message is None:
            return cls(session.agent.id, session.id)
        return cls(session.agent.id, session.id, session.message_id(message), message)

    @property
    def key(self) -> str:
        """What identifies the message within its session; empty for the session."""
        return "" if self.message is None else self.message_id or f"#{self.message}"

    @property
    def reference(self) -> str:
        """The session or message as commands name it, such as `codex:0199#12`."""
        return f"{self.agent}:{self.session}" + (f"#{self.message}" if self.message is not None else "")


class Annotation(msgspec.Struct, frozen=True, kw_only=True):
    """What a user added to a session or a message."""

    agent: str
    session: str
    message_id: str | None = None
    """The message's own id; None for a session, and for a message whose agent gives it none."""
    message: int | None = None
    """The index of the message when it was annotated; None for a session."""
    starred: bool = False
    labels: tuple[str, ...] = ()
    note: str = ""
    title: str = ""
    """What the user calls the session; empty for a message."""
    changed_at: str | None = None
    """When it was last changed; None if there is none."""

    @property
    def target(self) -> Target:
        """The session or message."""
        return Target(self.agent, self.session, self.message_id, self.message)

    @property
    def is_empty(self) -> bool:
        """True without a star, a label, a note and a title. Such an annotation is not stored."""
        return not (self.starred or self.labels or self.note or self.title)

    def has(self, labels: Iterable[str], starred: bool = False) -> bool:
        """True if it has all these labels, and a star if one is wanted."""
        if starred and not self.starred:
            return False
        wanted = set(map(folded_label, labels))
        return not wanted or wanted <= set(map(folded_label, self.labels))


class ImportReport(NamedTuple):
    """How many annotations an import added, changed, and found as they are."""

    added: int
    changed: int
    unchanged: int


class AnnotationsExport(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The JSON of `clew annotate export`."""

    clew_annotations: int
    exported_at: str | None = None
    annotations: list[Annotation]
    masked: str | None = None
    """The masking profile, if something in it was masked. Such an export cannot be imported."""


def checked_label(label: str) -> str:
    """The label as it is stored: NFC, single spaces. Raises UsageError if it is not a label."""
    return checked_line(label, "label", MAX_LABEL_CHARS)


def checked_title(title: str) -> str:
    """The title as it is stored: NFC, single spaces; empty for none. Raises UsageError if it is not a title."""
    return checked_line(title, "title", MAX_TITLE_CHARS) if title.strip() else ""


@lru_cache(maxsize=4096)
def folded_label(label: str) -> str:
    """A label in the form by which labels are compared: without regard to case and to the number of spaces."""
    return " ".join(unicodedata.normalize("NFC", label).casefold().split())


def checked_note(note: str) -> str:
    """The note as it is stored, without white space around it. Raises UsageError if it is too long or not text."""
    text = note.replace("\r\n", "\n").strip()
    if len(text) > MAX_NOTE_CHARS:
        raise UsageError(f"a note has at most {MAX_NOTE_CHARS:,} characters; this one has {len(text):,}")
    if any(unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t" for char in text):
        raise UsageError("a note has no control characters except line breaks and tabs")
    return text


class AnnotationIndex:
    """All annotations as they were at one time, by what lists and filters ask for."""

    def __init__(self, annotations: Sequence[Annotation] = ()) -> None:
        self.all = annotations
        """Sessions before their messages."""
        self.marks = session_marks(annotations)
        """For each annotated session, by agent and id: the star and labels of itself and of its messages."""
        self._by_key = {_key(found.target): found for found in annotations}

    def get(self, target: Target) -> Annotation:
        """The annotation of a session or message; an empty one if there is none."""
        return self._by_key.get(_key(target)) or _empty(target)

    def is_starred(self, agent: str, session: str) -> bool:
        """True if the session itself has a star; one of a message does not count."""
        return self.get(Target(agent, session)).starred

    def of_session(self, agent: str, session: str) -> list[Annotation]:
        """The annotations of a session and of its messages, the session first."""
        return [found for found in self.all if (found.agent, found.session) == (agent, session)]

    def having(self, labels: Collection[str], *, starred: bool = False) -> list[Annotation]:
        """The annotations that have all these labels, and a star if one is wanted."""
        return [found for found in self.all if found.has(labels, starred)]

    def sessions(self, labels: Collection[str], *, starred: bool = False) -> set[tuple[str, str]]:
        """Agent and id of the sessions that have all these labels, and a star if one is wanted.

        A star or label of a message counts for its session.
        """
        return {name for name, marks in self.marks.items() if marks.has(labels, starred)}

    @cached_property
    def labels(self) -> dict[str, int]:
        """Every label with the number of its sessions and messages, in alphabetical order."""
        counts: dict[str, tuple[str, int]] = {}
        for annotation in self.all:
            for label in annotation.labels:
                spelling, count = counts.get(folded_label(label), (label, 0))
                counts[folded_label(label)] = spelling, count + 1
        return dict(counts[name] for name in sorted(counts))

    @property
    def titles(self) -> dict[tuple[str, str], str]:
        """The titles that the user gave to sessions, by agent and id."""
        return {(found.agent, found.session): found.title for found in self.all if found.title}


class Annotations:
    """All stars, labels, notes and titles. Several processes may change them at the same time."""

    def __init__(self, path: Path | None = None, *, wait_seconds: float = BUSY_TIMEOUT_SECONDS) -> None:
        """Without a path, the file in clew's data folder. It is created with the first annotation.

        `wait_seconds` is how long to wait for another process that is writing.
        """
        self.path: Path = path or Path(data_path(), ANNOTATIONS_FILE)
        """The SQLite file."""
        self._wait_seconds = wait_seconds

    def index(self) -> AnnotationIndex:
        """All annotations as they are now."""
        with self._opened() as db:
            return AnnotationIndex(_rows(db) if db is not None else [])

    def all(self, *, labels: Collection[str] = (), starred: bool = False) -> list[Annotation]:
        """The annotations that have all these labels, and a star if one is wanted; sessions before their messages."""
        return self.index().having(labels, starred=starred)

    def of_session(self, agent: str, session: str) -> list[Annotation]:
        """The annotations of a session and of its messages, the session first."""
        return self.index().of_session(agent, session)

    def get(self, target: Target) -> Annotation:
        """The annotation of a session or message; an empty one if there is none."""
        return self.index().get(target)

    def labels(self) -> dict[str, int]:
        """Every label with the number of its sessions and messages, in alphabetical order."""
        return self.index().labels

    def sessions(self, labels: Collection[str] = (), *, starred: bool = False) -> set[tuple[str, str]]:
        """Agent and id of the sessions that have, or whose messages have, all these labels, and a star if wanted."""
        return self.index().sessions(labels, starred=starred)

    def change(
        self,
        target: Target,
        *,
        starred: bool | None = None,
        add_labels: Iterable[str] = (),
        remove_labels: Iterable[str] = (),
        note: str | None = None,
        title: str | None = None,
        now: datetime | None = None,
    ) -> Annotation:
        """Change the annotation of a session or message; what is not named stays. An empty note or title removes it.

        A label that is known in another spelling, such as `Bug` for `bug`, gets the known one. Raises UsageError for a
        label, note or title that is not allowed.
        """
        added = {folded_label(label): label for label in map(checked_label, add_labels)}
        removed = set(map(folded_label, remove_labels))
        note = checked_note(note) if note is not None else None
        title = checked_title(title) if title is not None else None
        if title and target.message is not None:
            raise UsageError("only a session has a title")
        if not (starred or added or note or title or self.path.exists()):
            return _empty(target)
        with self._writing() as db:
            (before,) = _rows(db, "agent = ? AND session = ? AND message = ?", *_key(target)) or [_empty(target)]
            spellings = _known_spellings(db)
            names = {folded_label(label): label for label in before.labels if folded_label(label) not in removed}
            names |= {name: spellings.get(name, label) for name, label in added.items() if name not in names}
            after = msgspec.structs.replace(
                before,
                message=target.message,
                starred=before.starred if starred is None else starred,
                labels=_ordered(names.values()),
                note=before.note if note is None else note,
                title=before.title if title is None else title,
            )
            if after != before:
                after = msgspec.structs.replace(after, changed_at=spell_time(now or datetime.now(UTC)))
                _write(db, after)
        return after if not after.is_empty else _empty(target)

    def delete(self, agent: str, session: str, messages: Collection[str] | None = None) -> int:
        """Delete the annotations of messages by their ids, or of a session and all its messages; returns how many.

        The deleted text is overwritten in the file.
        """
        if not self.of_session(agent, session):
            return 0
        with self._writing() as db:
            # Read again under the write lock, so that a note that was added since then is deleted too.
            chosen = [
                found
                for found in _rows(db, "agent = ? AND session = ?", agent, session)
                if messages is None or (found.message_id is not None and found.message_id in messages)
            ]
            for found in chosen:
                db.execute(_DELETE, _key(found.target))
        return len(chosen)

    def export(self, now: datetime | None = None) -> dict[str, JSON]:
        """All annotations as the JSON that `merge` accepts."""
        exported_at = spell_time(now or datetime.now(UTC))
        exported = AnnotationsExport(clew_annotations=EXPORT_VERSION, exported_at=exported_at, annotations=self.all())
        return dict(msgspec.to_builtins(exported))

    def merge(self, annotations: Iterable[Annotation], *, dry_run: bool = False) -> ImportReport:
        """Add annotations of an export, so that nothing is removed; a second time changes nothing.

        Stars and labels are united; a label that is known in another spelling gets the known one. Where both have a
        note or a title, that of the annotation that was changed last is kept. Raises UsageError if one is not valid.
        """
        annotations = list(map(checked_annotation, annotations))
        added = changed = unchanged = 0
        with self._writing(dry_run=dry_run) as db:
            known = {_key(found.target): found for found in _rows(db)}
            spellings = _known_spellings(db)
            for each in annotations:
                if each.is_empty:
                    continue
                labels = {spellings.setdefault(folded_label(label), label) for label in each.labels}
                imported = msgspec.structs.replace(each, labels=_ordered(labels))
                before = known.get(_key(imported.target))
                after = imported if before is None else _merged(before, imported)
                if after == before:
                    unchanged += 1
                    continue
                added, changed = added + (before is None), changed + (before is not None)
                known[_key(after.target)] = after
                _write(db, after)
        return ImportReport(added, changed, unchanged)

    def check(self) -> None:
        """Raise AnnotationsUnreadable if the file is damaged."""
        with self._opened() as db:
            if db is not None:
                (result,) = db.execute("PRAGMA quick_check(1)").fetchone()
                if result != "ok":
                    raise sqlite3.DatabaseError(result)
                _rows(db)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection | None]:
        """A connection for reading; None where there is no file yet."""
        if not self.path.exists():
            yield None
            return
        with self._connected() as db:
            version = self._version(db)
            if 0 < version < _VERSION:
                db.execute("BEGIN IMMEDIATE")
                self._migrate(db)
                db.execute("COMMIT")
            yield db if version else None

    @contextmanager
    def _writing(self, *, dry_run: bool = False) -> Iterator[sqlite3.Connection]:
        """A transaction that holds the write lock; rolled back if it fails, or if nothing is to be changed."""
        is_new = not self.path.exists()
        if is_new and not dry_run:
            private_folder(str(self.path.parent))
            # Notes are private: other users must not read them, even with a permissive umask.
            os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
        with self._connected(in_memory=is_new and dry_run) as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                self._migrate(db)
                yield db
                db.execute("ROLLBACK" if dry_run else "COMMIT")
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")

    @contextmanager
    def _connected(self, *, in_memory: bool = False) -> Iterator[sqlite3.Connection]:
        db: sqlite3.Connection | None = None
        try:
            # Without WAL: all is in one file, which users can copy, and changes are rare.
            uri = "file::memory:" if in_memory else f"{self.path.absolute().as_uri()}?mode=rw"
            db = sqlite3.connect(uri, uri=True, timeout=self._wait_seconds, isolation_level=None)
            db.execute("PRAGMA secure_delete = ON")
            yield db
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise Busy(f"{self.path}: another process is writing stars, labels and notes; try again") from error
            raise AnnotationsUnreadable(f"{self.path}: stars, labels and notes: {error}") from error
        except (sqlite3.DatabaseError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise AnnotationsUnreadable(
                f"{self.path}: the file with stars, labels and notes is damaged ({error}). Restore it from a backup,"
                " or move it away and use `clew annotate import` with an export"
            ) from error
        finally:
            if db is not None:
                db.close()

    def _version(self, db: sqlite3.Connection) -> int:
        """The version of the tables; 0 for a file that was just created.

        Raises AnnotationsUnreadable for a file of another program, or of a version that is not known.
        """
        (application,), (version,) = (
            db.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        if application == _APPLICATION:
            if version > _VERSION:
                raise AnnotationsUnreadable(
                    f"{self.path}: stars, labels and notes were written by a newer version of clew; update clew"
                )
            if version < 1:
                raise AnnotationsUnreadable(f"{self.path}: stars, labels and notes of unknown version {version}")
        elif application or version or db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise AnnotationsUnreadable(f"{self.path}: not a file with stars, labels and notes of clew; move it away")
        return int(version)

    def _migrate(self, db: sqlite3.Connection) -> None:
        """Bring the tables to the current version, within the transaction of the caller."""
        version = self._version(db)
        if version < _VERSION:
            for migration in _MIGRATIONS[version:]:
                migration(db)
            db.execute(f"PRAGMA application_id = {_APPLICATION}")
            db.execute(f"PRAGMA user_version = {_VERSION}")


def _create_table(db: sqlite3.Connection) -> None:
    db.execute(
        """
        CREATE TABLE annotation (
          agent TEXT NOT NULL, session TEXT NOT NULL, message TEXT NOT NULL, message_index INTEGER,
          starred INTEGER NOT NULL, labels TEXT NOT NULL, note TEXT NOT NULL, changed_at TEXT NOT NULL,
          PRIMARY KEY (agent, session, message)
        ) WITHOUT ROWID"""
    )


def _spell_times(db: sqlite3.Connection) -> None:
    """Some files of version 1 have the times as microseconds, in the column `changed_us`."""
    if "changed_us" not in [name for _, name, *_ in db.execute("PRAGMA table_info(annotation)")]:
        return
    columns = "agent, session, message, message_index, starred, labels, note"
    rows = db.execute(f"SELECT {columns}, changed_us FROM annotation").fetchall()
    db.execute("DROP TABLE annotation")
    _create_table(db)
    spelled = [(*row, spell_time(from_microseconds(changed_us))) for *row, changed_us in rows]
    db.executemany(f"INSERT INTO annotation ({columns}, changed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", spelled)


def _add_title(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE annotation ADD COLUMN title TEXT NOT NULL DEFAULT ''")


_MIGRATIONS = (_create_table, _spell_times, _add_title)
"""Each makes the next version of the tables, from none on. They never change once a release has them."""
_VERSION = len(_MIGRATIONS)
_DELETE = "DELETE FROM annotation WHERE agent = ? AND session = ? AND message = ?"


def _key(target: Target) -> tuple[str, str, str]:
    return target.agent, target.session, target.key


def _empty(target: Target) -> Annotation:
    return Annotation(agent=target.agent, session=target.session, message_id=target.message_id, message=target.message)


def session_marks(annotations: Iterable[Annotation]) -> dict[tuple[str, str], Annotation]:
    """For each annotated session, by agent and id: the star and labels of itself and of its messages."""
    marks: dict[tuple[str, str], Annotation] = {}
    for found in annotations:
        before = marks.get((found.agent, found.session), _empty(Target(found.agent, found.session)))
        names = {folded_label(label): label for label in (*found.labels, *before.labels)}
        marks[found.agent, found.session] = msgspec.structs.replace(
            before, starred=before.starred or found.starred, labels=_ordered(names.values())
        )
    return marks


def _rows(db: sqlite3.Connection, condition: str = "1", *values: str) -> list[Annotation]:
    """The annotations that pass a condition; a session before its messages."""
    query = f"SELECT {_COLUMNS} FROM annotation WHERE {condition} ORDER BY agent, session, message_index, message"
    return [_annotation(*row) for row in db.execute(query, values)]


def _known_spellings(db: sqlite3.Connection) -> dict[str, str]:
    """Every label as it is stored, by its folded form."""
    spellings: dict[str, str] = {}
    for (labels,) in db.execute("SELECT DISTINCT labels FROM annotation"):
        for label in _decode_labels(labels):
            spellings.setdefault(folded_label(label), label)
    return spellings


_decode_labels = msgspec.json.Decoder(tuple[str, ...]).decode


def _annotation(
    agent: str,
    session: str,
    key: str,
    message: int | None,
    starred: int,
    labels: str,
    note: str,
    changed_at: str,
    title: str,
) -> Annotation:
    return Annotation(
        agent=agent,
        session=session,
        message_id=key if key and key != f"#{message}" else None,
        message=message,
        starred=bool(starred),
        labels=_decode_labels(labels),
        note=note,
        title=title,
        changed_at=changed_at,
    )


def _write(db: sqlite3.Connection, annotation: Annotation) -> None:
    """Store an annotation, or delete it if it is empty."""
    if len(annotation.labels) > MAX_LABELS:
        raise UsageError(f"{annotation.target.reference}: at most {MAX_LABELS} labels")
    if annotation.is_empty:
        db.execute(_DELETE, _key(annotation.target))
        return
    row = (
        *_key(annotation.target),
        annotation.message,
        int(annotation.starred),
        msgspec.json.encode(annotation.labels).decode(),
        annotation.note,
        annotation.changed_at or spell_time(EPOCH),
        annotation.title,
    )
    db.execute(f"INSERT OR REPLACE INTO annotation ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def _ordered(labels: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(labels, key=folded_label))


def _merged(before: Annotation, imported: Annotation) -> Annotation:
    names = {folded_label(label): label for label in (*imported.labels, *before.labels)}
    is_later = _changed_us(imported) > _changed_us(before)
    texts = ((before.note, imported.note), (before.title, imported.title))
    starred = before.starred or imported.starred
    note, title = (new if new and (is_later or not old) else old for old, new in texts)
    after = msgspec.structs.replace(before, starred=starred, labels=_ordered(names.values()), note=note, title=title)
    # The time alone is no change: it would make every import of a newer export report one.
    return msgspec.structs.replace(after, changed_at=imported.changed_at) if after != before and is_later else after


def _changed_us(annotation: Annotation) -> int:
    changed = parse_time(annotation.changed_at)
    return to_microseconds(changed) if changed is not None else 0


def masked_export(exported: dict[str, JSON], masked: dict[str, JSON], profile: str) -> dict[str, JSON]:
    """The masked form of an export; it names the profile if masking changed anything."""
    return {**masked, "masked": profile} if masked != exported else exported


def read_export(content: bytes, name: str) -> list[Annotation]:
    """The annotations in an exported file. Raises InvalidDocument if it is not one; `name` is that of the file."""
    if len(content) > MAX_IMPORT_BYTES:
        raise InvalidDocument(f"{name}: larger than {MAX_IMPORT_BYTES >> 20} MiB")
    try:
        found = msgspec.json.decode(content, type=AnnotationsExport)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidDocument(f"{name}: not an export of stars, labels and notes: {error}") from None
    return checked_export(found, name)


def checked_export(found: AnnotationsExport, name: str) -> list[Annotation]:
    """The annotations of an export as they are stored. Raises InvalidDocument if one of them is not valid."""
    if found.clew_annotations != EXPORT_VERSION:
        raise InvalidDocument(f"{name}: version {found.clew_annotations} of this format is not known; update clew")
    if found.masked is not None:
        raise InvalidDocument(
            f"{name}: some of its texts were masked (profile {found.masked}), so it is not imported;"
            " export again without masking"
        )
    annotations = []
    for number, annotation in enumerate(found.annotations):
        try:
            annotations.append(checked_annotation(annotation))
        except UsageError as error:
            raise InvalidDocument(f"{name}: $.annotations[{number}]: {error}") from None
    return annotations


def checked_annotation(annotation: Annotation) -> Annotation:
    """An imported annotation as it is stored. Raises UsageError if it is not valid."""
    for text in (annotation.agent, annotation.session, annotation.message_id or "-"):
        if not 0 < len(text) <= MAX_ID_CHARS:
            raise UsageError(f"an id has 1 to {MAX_ID_CHARS:,} characters")
    if annotation.message is None and annotation.message_id is not None:
        raise UsageError("a message has an index")
    if annotation.message is not None and not 0 < annotation.message < 1 << 53:
        raise UsageError("the index of a message is 1 or more")
    if annotation.changed_at is not None and parse_time(annotation.changed_at) is None:
        raise UsageError("`changed_at` is not a time")
    if annotation.message is not None and annotation.title:
        raise UsageError("only a session has a title")
    names = {folded_label(label): checked_label(label) for label in annotation.labels}
    if len(names) > MAX_LABELS:
        raise UsageError(f"at most {MAX_LABELS} labels")
    changed = spell_time(from_microseconds(_changed_us(annotation)))
    return msgspec.structs.replace(
        annotation,
        labels=_ordered(names.values()),
        note=checked_note(annotation.note),
        title=checked_title(annotation.title),
        changed_at=changed,
    )
