"""snapshots.jsonl, which is indexed once and read again message by message.

The snapshots of clew's own store are called observations here: they name the folder that their paths are relative to,
and have the content of each file before and after a tool ran. An observation without named files is a scan of the
whole folder.
"""

from __future__ import annotations

import base64
import io
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from clew.agents.base import SourceFile
from clew.agents.file_evidence import ABSENT, OTHER, Action, FileContent, KnownContent, absolute
from clew.agents.sage_agent.locate import BACKUPS, MESSAGES, SNAPSHOTS
from clew.errors import SourceUnreadable
from clew.io.blobs import digest_in, read_blob
from clew.io.compress import open_source
from clew.io.ignore_patterns import ignore_patterns
from clew.io.records import read_records
from clew.model.json import JSON, object_at

ACTIONS: dict[str, Action] = {"created": "create", "modified": "change", "deleted": "delete"}
_DIGEST = re.compile(r"[0-9a-f]{64}", re.IGNORECASE)
_LINK = "it is a link, which is not followed"
_UNREADABLE = "something whose snapshot cannot be read"
_LOST = "a change that no scan of the folder recorded"
_OTHER_DIGEST = "the copy of it does not have the digest that the record names"
_NOT_A_FILE = {"missing", "missingAfter", "link", "linkBefore"}
"""Keys of an observed file that is a link, or that could not be read."""

Entry = Mapping[str, JSON]


class FileState(NamedTuple):
    """A file at one moment."""

    content: KnownContent | None
    """None: not available."""
    digest: str | None = None
    """The digest of content that is not available; "" where a file of unknown content existed; `OTHER`."""
    note: str | None = None
    """Why the content is not available."""


class ObservedFile(NamedTuple):
    """One file before and after a tool ran."""

    action: Action
    before: FileState
    after: FileState
    modes: tuple[int, int] | None = None


class Observation(NamedTuple):
    """One snapshot of clew's own store. The three maps at the end are empty until `Snapshots.load`."""

    start: int
    """Its offset in the file."""
    stop: int
    message: str
    root: str
    ignored: tuple[str, ...] | None
    """What a scan leaves out; None for files by name, and for scans of early versions."""
    paths: frozenset[str]
    """The absolute paths of the observed files; a scan after a tool has those that changed, one before it none."""
    is_open: bool
    """Made before a tool ran."""
    is_late: bool
    """Made long after a tool was cut off: others may have changed the files too."""
    files: Mapping[str, ObservedFile] = {}
    changed_since: Mapping[str, FileState] = {}
    """Files that differ from the scan before, as they are at this observation."""
    changed_until: Mapping[str, FileState] = {}
    """Files that differ at the observations after this scan, as they were at this scan."""
    time: JSON = None
    log_bytes: int | None = None
    """The size of the message log at that time; None where it is not recorded or no line ends there."""

    def can_see(self, path: str) -> bool:
        """True where a change of the file between this observation and the next would be noticed."""
        if self.ignored is None:
            return path in self.paths
        base = self.root.rstrip("/") + "/"
        return path.startswith(base) and not ignore_patterns(self.ignored).hides(path[len(base) :])


class Gap(NamedTuple):
    """Where snapshots are missing: the messages of those before and after, and a text on what may have happened."""

    last: str | None
    following: str | None
    what: str


class Snapshots:
    """The snapshots of one session, for reading; a context manager."""

    def __init__(self, source: SourceFile) -> None:
        self.gaps: list[Gap] = []
        self.observations: dict[str, list[Observation]] = {}
        """Those of each message, without content."""
        self._log, self._folder = source.path, source.path.parent
        self._has_snapshots = SNAPSHOTS in source.parts
        self._stream: BinaryIO | None = None
        self._messages: BinaryIO | None = None
        self._spans: dict[str, list[tuple[int, int]]] = {}
        """The snapshots of each message, those of other programs too."""
        self._next: dict[int, list[Observation]] = {}
        """By the start of a scan: the observations that were compared with it."""
        self._plain_files: set[str] = set()
        """All files that were ever observed and read."""
        self._visible: dict[tuple[str, tuple[str, ...]], frozenset[str]] = {}

    def __enter__(self) -> Snapshots:
        if self._has_snapshots:
            with open_source(self._folder / SNAPSHOTS) as stream:
                self._index(stream)
            self._stream = (self._folder / SNAPSHOTS).open("rb")
            self._messages = self._log.open("rb", buffering=0) if self._log.name == MESSAGES else None
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self._stream, self._messages):
            if stream is not None:
                stream.close()

    def _index(self, stream: BinaryIO) -> None:
        last: str | None = None
        is_damaged = False
        scans: dict[str, Observation] = {}
        """By folder: the last scan, while the next observation can be compared with it."""
        scanned: dict[str, str] = {}
        """By folder: the message of the last scan."""
        for record in read_records(stream):
            uuid = record.value.get("messageId") if record.value is not None else None
            if record.value is None or not isinstance(uuid, str):
                # A line without an end was never acknowledged: no tool ran after it, and none before it had ended.
                is_damaged = is_damaged or (bool(record.raw.strip()) and bool(record.end))
                continue
            if is_damaged:
                self.gaps.append(Gap(last, uuid, _UNREADABLE))
                scans.clear()
            last, is_damaged = uuid, False
            self._spans.setdefault(uuid, []).append((record.start, record.stop))
            own = own_part(record.value)
            if own is None:
                continue
            self._plain_files.update(_plain_files(record.value, own))
            ignored, root = own.get("ignored"), own["root"]
            found = Observation(
                record.start,
                record.stop,
                uuid,
                root,
                tuple(map(str, ignored)) if isinstance(ignored, list) else None,
                frozenset(path for path, _, _, _ in _entries(record.value, own)),
                own.get("open") is True,
                own.get("late") is True,
            )
            self.observations.setdefault(uuid, []).append(found)
            scan = scans.get(root)
            if own.get("lost") is True:
                self.gaps.append(Gap(scanned.get(root), uuid, _LOST))
            elif scan is not None and scan.message == own.get("since"):
                self._next.setdefault(scan.start, []).append(found)
            if found.is_late:
                # It belongs to the time when the tool was cut off, but shows the files as they were later.
                scans.pop(root, None)
            elif found.ignored is not None:
                scans[root], scanned[root] = found, uuid
        if is_damaged:
            self.gaps.append(Gap(last, None, _UNREADABLE))

    def foreign_records(self, uuid: str) -> Iterator[Entry]:
        """The snapshots of a message that another program wrote, in order."""
        records = (self._read(start, stop) for start, stop in self._spans.get(uuid, ()))
        return (record for record in records if own_part(record) is None)

    def _read(self, start: int, stop: int) -> Entry:
        assert self._stream is not None
        self._stream.seek(start)
        return next((one.value or {} for one in read_records(io.BytesIO(self._stream.read(stop - start)))), {})

    def load(self, found: Observation) -> Observation:
        """An observation with the content of its files."""
        record, copies = self._read(found.start, found.stop), self._folder / BACKUPS
        own = object_at(record, "metadata", "clew")
        following = [self._read(one.start, one.stop) for one in self._next.get(found.start, ())]
        return found._replace(
            files={
                path: _observed(tracked, backup, fact, copies) for path, tracked, backup, fact in _entries(record, own)
            },
            changed_since=dict(_changed(record, "now", copies)),
            changed_until={path: state for one in following for path, state in _changed(one, "before", copies)},
            time=record.get("timestamp"),
            log_bytes=self._log_bytes(own.get("log")),
        )

    def _log_bytes(self, size: JSON) -> int | None:
        """A recorded size of the message log, if a line ends there."""
        if type(size) is not int or size <= 0 or self._messages is None:
            return None
        self._messages.seek(size - 1)
        return size if self._messages.read(1) == b"\n" else None

    def visible_to(self, scan: Observation) -> frozenset[str]:
        """The files that a scan could see, among all that were ever observed."""
        if scan.ignored is None:
            return scan.paths
        key = scan.root, scan.ignored
        if key not in self._visible:
            self._visible[key] = frozenset(filter(scan.can_see, self._plain_files))
        return self._visible[key]


def own_part(record: Entry) -> Entry | None:
    """What clew's own store adds to a snapshot; None where another program wrote it."""
    own = object_at(record, "metadata", "clew")
    return own if isinstance(own.get("root"), str) else None


def digest_from(value: JSON) -> str | None:
    """A digest that a record names; None where it is none."""
    return value.lower() if isinstance(value, str) and _DIGEST.fullmatch(value) else None


def _entries(record: Entry, own: Entry) -> Iterator[tuple[str, Entry, Entry, Entry]]:
    """The files of an observation: absolute path, and the entry in each of its three maps."""
    snapshot = object_at(record, "snapshot")
    maps = object_at(snapshot, "trackedFiles"), object_at(snapshot, "fileBackups"), object_at(own, "files")
    for name in dict.fromkeys(name for one in maps for name in one):
        tracked, backup, fact = (object_at(one, name) for one in maps)
        yield _path(own["root"], name, fact), tracked, backup, fact


def _path(root: str, name: str, fact: Entry) -> str:
    """An absolute path; from the bytes of the name where those are not valid UTF-8."""
    raw = fact.get("raw")
    if isinstance(raw, str):
        with suppress(ValueError):
            name = os.fsdecode(base64.b64decode(raw))
    return absolute(name if name.startswith("/") else f"{root}/{name}", None)


def _changed_entries(record: Entry) -> Iterator[tuple[str, Entry]]:
    """The files that differed from the scan before."""
    own = object_at(record, "metadata", "clew")
    for name, file in object_at(own, "found").items():
        if isinstance(file, dict):
            yield _path(own["root"], name, file), file


def _plain_files(record: Entry, own: Entry) -> Iterator[str]:
    """The files of an observation that are no links and could be read."""
    for path, _, _, fact in _entries(record, own):
        if not fact.keys() & _NOT_A_FILE:
            yield path
    for path, file in _changed_entries(record):
        if not (object_at(file, "before").keys() | object_at(file, "now").keys()) & _NOT_A_FILE:
            yield path


def _changed(record: Entry, side: str, copies: Path) -> Iterator[tuple[str, FileState]]:
    """The files that differed from the scan before: as they were at that scan ("before"), or at this one ("now")."""
    for path, file in _changed_entries(record):
        state = file.get(side)
        if not isinstance(state, dict):
            continue
        digest = digest_from(state.get("hash"))
        if "link" in state:
            yield path, FileState(None, "", _LINK)
        elif isinstance(missing := state.get("missing"), str):
            yield path, FileState(None, digest or "", missing)
        elif "hash" in state:
            unknown = FileState(None, "", "no content is recorded")
            yield path, unknown if digest is None else read_copy(copies, digest)
        else:
            yield path, FileState(ABSENT)


def _observed(tracked: Entry, backup: Entry, fact: Entry, copies: Path) -> ObservedFile:
    is_link = "link" in fact or "linkBefore" in fact
    action = ACTIONS.get(str(tracked.get("state")), "change" if is_link else "snapshot")
    modes = [mode for mode in (fact.get("modeBefore"), fact.get("mode")) if type(mode) is int and 0 <= mode <= 0o7777]
    before, after = _before(backup, fact, copies), _after(tracked, fact, copies)
    # A file that was created or deleted has one mode, which did not change.
    return ObservedFile(action, before, after, (modes[0], modes[-1]) if modes else None)


def _before(backup: Entry, fact: Entry, copies: Path) -> FileState:
    if "linkBefore" in fact:
        return FileState(None, OTHER, _LINK)
    if fact.get("existed") is False:
        return FileState(ABSENT)
    if isinstance(missing := fact.get("missing"), str):
        return FileState(None, OTHER, missing)
    digest, path = digest_from(backup.get("originalHash")), backup.get("backupPath")
    named = digest_in(re.split(r"[\\/]", path)[-1]) if isinstance(path, str) else None
    if named is None:
        return FileState(None, digest or "", "no content from before is recorded")
    if digest is not None and digest != named:
        return FileState(None, digest, _OTHER_DIGEST)
    return read_copy(copies, named)


def _after(tracked: Entry, fact: Entry, copies: Path) -> FileState:
    if "link" in fact:
        return FileState(None, OTHER, _LINK)
    state = tracked.get("state")
    if state == "deleted" or (state in ("unchanged", None) and fact.get("existed") is False):
        return FileState(ABSENT)
    digest, missing = digest_from(tracked.get("contentHash")), fact.get("missingAfter")
    if isinstance(missing, str):
        return FileState(None, digest or OTHER, missing)
    if digest is None:
        return FileState(None, None, "the record does not contain it")
    return read_copy(copies, digest)


def read_copy(copies: Path, digest: str) -> FileState:
    """The copy of a file with this digest, from a folder of copies."""
    if copies.is_symlink():
        return FileState(None, digest, "the copies of files lie behind a link, which is not followed")
    try:
        return FileState(FileContent(read_blob(copies, digest), True), digest)
    except SourceUnreadable as error:
        return FileState(None, digest, str(error))
