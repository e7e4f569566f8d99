"""Snapshots of files before and after the tools of a message, recorded in snapshots.jsonl.

Blobs are written and named under the lock of that log, and blobs that no record names are deleted under it too.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from clew.agents.sage_agent.records import SNAPSHOT_TYPES
from clew.agents.sage_agent.written_records import (
    ClewFileData,
    ClewSnapshotData,
    FileBackup,
    FileMaps,
    FoundFile,
    SnapshotMetadata,
    SnapshotRecord,
    TrackedFile,
    encode_lines,
)
from clew.errors import PathRefused, SourceUnreadable, UsageError
from clew.io.blobs import digest_in, digest_of, name_of
from clew.io.codec import NOT_JSON
from clew.io.filesystem import explain_permission_errors, make_folder
from clew.io.paths import escape_invalid_utf8
from clew.io.safe_write import Within
from clew.store.blobs import Blobs
from clew.store.file_state import NO_FILE, FileState, StateChange
from clew.store.layout import BACKUPS, MESSAGES, SCANS, SNAPSHOTS, refuse_copy
from clew.store.log import Log, complete_lines, record_in
from clew.store.workspace import IGNORED, Index, Workspace, decode_index, encode_index, read_body
from clew.store.writer import WriterConfig

_NOT_RECORDED = "no content from before is recorded"


class SnapshotEntry(NamedTuple):
    """One record of snapshots.jsonl."""

    message: str
    root: str | None
    """None if another program wrote it: then paths are relative to the folder of the message."""
    files: dict[str, StateChange]
    is_open: bool = False
    """Made before a tool ran; a later record of the message says what the tool did."""
    is_late: bool = False
    """Made long after a tool was interrupted: others may have made the changes."""
    is_erased: bool = False
    """Erased: its files are not known any more."""
    own: ClewSnapshotData | None = None
    """The part that only clew writes (`metadata.clew`)."""

    @property
    def is_whole(self) -> bool:
        """Return whether it is the scan of a whole workspace before a tool."""
        return self.is_open and not self.files and self.root is not None

    @property
    def ignored(self) -> list[str]:
        """Return the patterns of what a scan left out; empty for a record of named files."""
        return [] if self.own is None or self.own.ignored is UNSET else self.own.ignored


class ChangesSinceScan(NamedTuple):
    """What changed between the last scan of the whole workspace and a record before a tool."""

    message: str | None = None
    """The message of that scan."""
    found: dict[str, FoundFile] | None = None
    """The files that changed since."""
    is_lost: bool = False
    """The index of that scan is lost: anything may have changed since."""


class Snapshots:
    """The snapshots of one session and the blobs they name."""

    def __init__(self, folder: Path, config: WriterConfig, now: Callable[[], str]) -> None:
        self.folder, self._config, self._now = folder, config, now
        self.blobs = Blobs(folder / BACKUPS, config.system)
        self.scans = Blobs(folder / SCANS, config.system)
        self._last_index: tuple[str, Index] = ("", {})
        """The index that was written or read last, with its digest."""

    @contextmanager
    def writing(self) -> Iterator[Log]:
        """Open the log of the snapshots and hold its lock."""
        settings = self._config.settings
        refuse_copy(self.folder)
        with explain_permission_errors(self.folder):
            self._config.prepare_store()
            make_folder(self._config.system, self.folder)
        log = Log(self.folder / SNAPSHOTS, system=self._config.system, wait=settings.lock_wait)
        try:
            with log.locked():
                yield log
        finally:
            log.drop()

    def append(
        self,
        log: Log,
        message: str,
        root: Path,
        changes: dict[str, StateChange],
        *,
        is_update: bool = False,
        is_open: bool = False,
        is_late: bool = False,
        index: Index | None = None,
        previous: str | None = None,
        since: ChangesSinceScan | None = None,
    ) -> str | None:
        """Append a record of files, durably.

        If the whole workspace was scanned, its `index` becomes a blob; its digest is returned. Only the last index of a
        workspace is needed, so `previous` is deleted once the new record is written. If the index cannot be kept, as on
        a full disk, the record names none, and the next scan reads every file again.
        """
        scan = None if index is None else self._keep_index(root, index)
        maps, own = FileMaps(), {}
        since = since or ChangesSinceScan()
        for path, change in changes.items():
            name = escape_invalid_utf8(path)
            while name != path and (name in changes or name in own):
                name += "\\"  # another file has this name; `raw` holds the name of this one
            own[name] = _own(path, name, change)
            if not change.is_of_links:
                # Links are recorded in `metadata.clew` only: other programs would take them for files.
                maps.tracked_files[name] = _tracked(change)
            if change.before.digest and change.before.missing is None:
                where = f"{BACKUPS}/{name_of(change.before.digest)}"
                maps.file_backups[name] = FileBackup(backup_path=where, original_hash=change.before.digest)
        record = SnapshotRecord(
            message_id=message,
            timestamp=self._now(),
            is_snapshot_update=is_update,
            snapshot=maps,
            metadata=SnapshotMetadata(
                clew=ClewSnapshotData(
                    root=str(root),
                    open=is_open or UNSET,
                    late=is_late or UNSET,
                    log=_length(self.folder / MESSAGES),
                    ignored=UNSET if index is None else [*IGNORED, *self._config.settings.ignore],
                    scan=scan or UNSET,
                    since=since.message or UNSET,
                    lost=since.is_lost or UNSET,
                    found=since.found or UNSET,
                    files=own,
                )
            ),
        )
        log.append(encode_lines([record]))
        if previous and index is not None and previous != scan:
            with suppress(OSError):
                self.scans.remove([previous])
        return scan

    def _keep_index(self, root: Path, index: Index) -> str | None:
        try:
            [digest] = self.scans.put([encode_index(str(root), index)])
        except (OSError, SourceUnreadable):
            return None
        self._last_index = (digest, index)
        return digest

    def keep(self, contents: Sequence[bytes]) -> list[str | None]:
        """Keep contents as blobs; return for each the reason why it could not be kept, or None."""
        try:
            self.blobs.put(contents)
            return [None] * len(contents)
        except OSError:
            return [self._keep(body) for body in contents]

    def _keep(self, body: bytes) -> str | None:
        try:
            self.blobs.put([body])
        except OSError as error:
            return f"no copy could be made: {error.strerror or error}"
        return None

    def load_index(self, digest: str | None) -> Index | None:
        """Return the index with a digest; None if there is none, or it is lost."""
        if not digest:
            return None
        if self._last_index[0] != digest or not self.scans.has(digest):
            try:
                self._last_index = (digest, decode_index(self.scans.get(digest)))
            except SourceUnreadable:
                return None
        return self._last_index[1]

    def capture(self, within: Within, path: str) -> FileState:
        """Return the state of a file, and keep its content. A link is not followed: its target may change unseen."""
        body = read_body(within, path)
        if body is None:
            return NO_FILE
        if isinstance(body, str):
            return FileState("", missing=body, link=_link_at(within, path))
        return FileState(digest_of(body), within.mode(path), self.keep([body])[0], len(body))

    def workspace(self, root: Path, now: Path | None = None) -> Workspace:
        """Return the workspace `root`; `now` is where it is, if it was moved since."""
        return Workspace(now or root, self._config.settings.ignore)

    def entries(self) -> Iterator[SnapshotEntry]:
        """Yield every record in order, without lines that cannot be read."""
        return (one for _, one in self.numbered_entries() if one is not None)

    def numbered_entries(self) -> Iterator[tuple[int, SnapshotEntry | None]]:
        """Yield every record with its line number; None for a line that cannot be read. Blank lines were erased."""
        with suppress(FileNotFoundError):
            for number, line in enumerate(complete_lines(self.folder / SNAPSHOTS), 1):
                if found := parse_snapshot(line):
                    yield number, found
                elif line.strip() and is_damaged(line):
                    yield number, None

    def named(self) -> set[str]:
        """Return the digests of all contents that a record or an index names."""
        digests = {
            state.digest for one in self.entries() for change in one.files.values() for state in change if state.digest
        }
        for one in self.entries():
            if one.own is not None and one.own.found is not UNSET:
                states = (state for file in one.own.found.values() for state in (file.before, file.now))
                digests.update(state.hash for state in states if state is not UNSET and state.hash is not UNSET)
        for scan in self.scans.all():
            digests.update(entry.digest for entry in (self.load_index(scan) or {}).values() if entry.digest)
        return digests

    def clear(self, also: Callable[[], set[str]]) -> list[str]:
        """Delete blobs that neither a record nor `also` names; return their digests. `also` runs under the lock."""
        with self.writing():
            self.scans.remove(self.unused_scans())
            gone = sorted(self.blobs.all() - (self.named() | also()))
            self.blobs.remove(gone)
            return gone

    def unused_scans(self) -> list[str]:
        """Return the digests of indexes that are not those of the last scan of a workspace; a crash may leave some."""
        last = {one.root: one.own.scan for one in self.entries() if one.own is not None and one.ignored}
        return sorted(self.scans.all() - {scan for scan in last.values() if scan is not UNSET})


def _length(log: Path) -> int | UnsetType:
    try:
        return log.stat().st_size
    except OSError:
        return UNSET


def _link_at(within: Within, path: str) -> bytes | None:
    try:
        return within.link(path)
    except (PathRefused, OSError):
        return None


def _tracked(change: StateChange) -> TrackedFile:
    before, after = change
    if before.same_as(after):
        state = "unchanged"
    else:
        state = "created" if before.digest is None else "deleted" if after.digest is None else "modified"
    return TrackedFile(
        original_content=None if before.digest is None else UNSET,
        content_hash=after.digest or None,
        size=after.size,
        state=state,  # type: ignore[arg-type]
    )


def _own(path: str, name: str, change: StateChange) -> ClewFileData:
    before, after = change
    return ClewFileData(
        existed=before.digest is not None,
        mode_before=UNSET if before.mode is None else before.mode,
        mode=UNSET if after.mode is None else after.mode,
        missing=before.missing or UNSET,
        missing_after=after.missing or UNSET,
        link_before=UNSET if before.link is None else before.link,
        link=UNSET if after.link is None else after.link,
        raw=UNSET if name == path else base64.b64encode(os.fsencode(path)).decode(),
    )


class _Entry(msgspec.Struct, rename="camel"):
    original_content: str | None = None
    content_hash: str | None = None
    state: str = ""


class _Copy(msgspec.Struct, rename="camel"):
    backup_path: str | None = None
    original_hash: str | None = None


class _Maps(msgspec.Struct, rename="camel"):
    tracked_files: dict[str, _Entry] = {}
    file_backups: dict[str, _Copy] = {}


class _Metadata(msgspec.Struct):
    clew: ClewSnapshotData | None = None


class _Record(msgspec.Struct, rename="camel"):
    snapshot: _Maps
    message_id: str
    type: str = ""
    metadata: _Metadata | None = None
    erased: str | None = None


_decode = msgspec.json.Decoder(_Record).decode


def is_damaged(line: bytes) -> bool:
    """Return whether a line should be a snapshot and cannot be read; other types of records are not damaged."""
    record = record_in(line)
    return record is None or (record.get("type") in SNAPSHOT_TYPES and parse_snapshot(line) is None)


def parse_snapshot(line: bytes) -> SnapshotEntry | None:
    """Parse a line of snapshots.jsonl; None if it is not a snapshot."""
    try:
        record = _decode(line)
    except NOT_JSON:
        return None
    if record.type not in SNAPSHOT_TYPES:
        return None
    own = record.metadata.clew if record.metadata is not None else None
    maps, files = record.snapshot, {}
    for name in {**maps.tracked_files, **maps.file_backups, **(own.files if own is not None else {})}:
        entry, copy = maps.tracked_files.get(name, _Entry()), maps.file_backups.get(name, _Copy())
        file = own.files.get(name) if own is not None else None
        files[_path(name, file)] = StateChange(_before(entry, copy, file), _after(entry, file))
    is_erased = record.erased is not None
    if own is None:
        return SnapshotEntry(record.message_id, None, files, is_erased=is_erased)
    return SnapshotEntry(record.message_id, own.root, files, own.open is True, own.late is True, is_erased, own)


def _path(name: str, file: ClewFileData | None) -> str:
    if file is None or file.raw is UNSET:
        return name
    try:
        return os.fsdecode(base64.b64decode(file.raw))
    except ValueError:
        return name


def _before(entry: _Entry, copy: _Copy, file: ClewFileData | None) -> FileState:
    link = file.link_before if file is not None and file.link_before is not UNSET else None
    if file is not None and not file.existed:
        return NO_FILE if link is None else FileState(None, link=link)
    mode = file.mode_before if file is not None and file.mode_before is not UNSET else None
    if file is not None and file.missing is not UNSET:
        return FileState("", mode, file.missing, link=link)
    if entry.original_content is not None:
        return FileState(digest_of(entry.original_content.encode()), mode, text=entry.original_content)
    if copy.backup_path is None:
        # Another program wrote it: without content, there may have been a file that was not text.
        return FileState("", mode, _NOT_RECORDED)
    name = copy.backup_path.replace("\\", "/").rpartition("/")[2]
    known = copy.original_hash
    if known is not None and digest_in(name) == known.lower():
        return FileState(known.lower(), mode)
    return FileState(known.lower() if known is not None else "", mode, backup=name)


def _after(entry: _Entry, file: ClewFileData | None) -> FileState:
    missing = file.missing_after if file is not None and file.missing_after is not UNSET else None
    if file is not None and file.link is not UNSET:
        return FileState(None if missing is None else "", missing=missing, link=file.link)
    if entry.state == "deleted":
        return NO_FILE
    if file is not None and (not entry.state or (entry.state == "unchanged" and not file.existed)):
        return NO_FILE
    mode = file.mode if file is not None and file.mode is not UNSET else None
    return FileState((entry.content_hash or "").lower(), mode, missing)


def root_for(path: Path | str | None) -> Path:
    """Return the workspace that the caller named; default: the working folder."""
    folder = Path(path).expanduser() if path is not None else Path.cwd()
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder")
    return folder.resolve()


def name_below(root: Path | str | None, path: Path | str) -> str:
    """Return a path relative to the workspace, resolving links in both; a path elsewhere is unchanged."""
    named = Path(path)
    if not named.is_absolute():
        return named.as_posix()
    folder = root_for(root)
    for base, at in ((folder, named), (Path(root or "").expanduser().absolute(), named), (folder, _real(named))):
        if at.is_relative_to(base):
            return at.relative_to(base).as_posix()
    return str(path)


def _real(path: Path) -> Path:
    """Resolve links in the folders of a path, but not in its last part."""
    return path.parent.resolve() / path.name
