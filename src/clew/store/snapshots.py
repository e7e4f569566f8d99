"""Files before and behind what a message did: looked at, kept, and recorded in snapshots.jsonl.

Copies are made and named under one lock, that of the snapshots: whoever clears away what nothing names holds it too.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from clew.errors import PathRefused, UsageError
from clew.io.blobs import digest_in, digest_of, name_of
from clew.io.codec import NOT_JSON
from clew.io.within import WIDEST, Within, parts_of
from clew.store.blobs import Blobs, Fresh
from clew.store.layout import BACKUPS, SNAPSHOTS
from clew.store.log import Log
from clew.store.scan import Files, Seen, Workspace, permissions, read_body, read_cache
from clew.store.system import make_folder
from clew.store.tree import whole_lines
from clew.store.wire import (
    SNAPSHOT,
    FileBackup,
    FileMaps,
    OwnFile,
    OwnFiles,
    SnapshotMetadata,
    SnapshotRecord,
    TrackedFile,
    encode_lines,
)
from clew.store.writer import World

CACHES = "workspace-*.seen"
_NOT_RECORDED = "no content from before is recorded"
_GONE = "the copy of it is gone"


class FileState(msgspec.Struct, frozen=True, gc=False):
    """A file at one moment."""

    digest: str | None
    """None: there is no file. Empty: there is one, and what it holds is not known."""
    mode: int | None = None
    missing: str | None = None
    """Why its content cannot be had."""
    size: int = 0
    text: str | None = None
    """Its content, where the record itself holds it."""
    backup: str | None = None
    """The name of a copy that another program made."""

    def same_as(self, other: FileState) -> bool:
        """True where neither bytes nor mode differ, as far as they can be put back."""
        if self.digest != other.digest or self.digest == "":
            return False
        return self.mode is None or other.mode is None or self.mode & WIDEST == other.mode & WIDEST


NO_FILE = FileState(None)


class Change(NamedTuple):
    """A file before and behind."""

    before: FileState
    after: FileState


class Taken(NamedTuple):
    """One record of the snapshots."""

    message: str
    root: str | None
    """None where another program wrote it: then paths are relative to the folder of the message."""
    files: dict[str, Change]
    is_open: bool = False
    """Made before a tool ran; what follows tells what it did."""


class Snapshots:
    """The snapshots of one session and the copies they name."""

    def __init__(self, folder: Path, world: World, now: Callable[[], str]) -> None:
        self.folder, self._world, self._now = folder, world, now
        self.blobs = Blobs(folder / BACKUPS, world.system)
        self._workspaces: dict[Path, Workspace] = {}

    @contextmanager
    def writing(self) -> Iterator[Log]:
        """The log of the snapshots, its lock held."""
        settings = self._world.settings
        make_folder(self._world.system, self.folder)
        log = Log(self.folder / SNAPSHOTS, system=self._world.system, wait=settings.lock_wait)
        try:
            log.begin()
            try:
                yield log
            finally:
                log.finish()
        finally:
            log.drop()

    def append(
        self,
        log: Log,
        message: str,
        root: Path,
        changes: dict[str, Change],
        *,
        is_update: bool = False,
        is_open: bool = False,
    ) -> None:
        """Record what became of files, durably."""
        maps, own = FileMaps(), {}
        for path, change in changes.items():
            name = spelled(path)
            maps.tracked_files[name] = _tracked(change)
            own[name] = _own(path, name, change)
            if change.before.digest and change.before.missing is None:
                where = f"{BACKUPS}/{name_of(change.before.digest)}"
                maps.file_backups[name] = FileBackup(backup_path=where, original_hash=change.before.digest)
        record = SnapshotRecord(
            message_id=message,
            timestamp=self._now(),
            is_snapshot_update=is_update,
            snapshot=maps,
            metadata=SnapshotMetadata(clew=OwnFiles(root=str(root), open=is_open or UNSET, files=own)),
        )
        log.append(encode_lines([record]))

    def keep(self, contents: Sequence[Fresh]) -> list[str | None]:
        """Keep contents; for each the reason why it could not be, or None."""
        try:
            self.blobs.put(contents)
            return [None] * len(contents)
        except OSError:
            return [self._keep(fresh) for fresh in contents]

    def _keep(self, fresh: Fresh) -> str | None:
        try:
            self.blobs.put([fresh])
        except OSError as error:
            return f"no copy could be made: {error.strerror or error}"
        return None

    def look(self, within: Within, path: str, before: str | None = None) -> FileState:
        """A file as it is now, its content kept."""
        body = read_body(within, path)
        if body is None:
            return NO_FILE
        if isinstance(body, str):
            return FileState("", missing=body)
        return FileState(digest_of(body), within.mode(path), self.keep([Fresh(body, before)])[0], len(body))

    def workspace(self, root: Path) -> Workspace:
        """The whole folder, with what was seen of it last."""
        if root not in self._workspaces:
            cache = self.folder / CACHES.replace("*", digest_of(os.fsencode(root))[:16])
            self._workspaces[root] = Workspace(root, cache, self._world.settings.ignore, self._world.system)
        return self._workspaces[root]

    def taken(self) -> Iterator[Taken]:
        """Every record, in order; a line that is none is passed over."""
        try:
            for chunk in whole_lines(self.folder / SNAPSHOTS):
                for line in chunk.split(b"\n"):
                    if line and (found := taken(line)) is not None:
                        yield found
        except FileNotFoundError:
            return

    def named(self) -> set[str]:
        """The digests of all contents that something names."""
        digests = {
            state.digest for one in self.taken() for change in one.files.values() for state in change if state.digest
        }
        for cache in self.folder.glob(CACHES):
            digests.update(seen.digest for seen in read_cache(cache).values() if seen.digest)
        return digests

    def clear(self, also: Callable[[], set[str]]) -> list[str]:
        """Remove the copies that nothing names, nor `also` once the lock is held; returns their digests."""
        with self.writing():
            gone = sorted(self.blobs.all() - self.blobs.needed(self.named() | also()))
            self.blobs.remove(gone)
            return gone


class Watch:
    """What happens to files while a tool of a message runs; a context manager.

    With paths, those are looked at before and behind, and what they held is recorded before the tool runs. Without,
    the whole workspace is.
    """

    def __init__(self, snapshots: Snapshots, message: str, root: Path, paths: Sequence[str] | None) -> None:
        self._snapshots, self._message, self._root = snapshots, message, root
        self._paths = None if paths is None else [_inside(root, path) for path in paths]
        self._states: dict[str, FileState] = {}
        self._files: Files = {}

    def __enter__(self) -> Watch:
        self.before()
        return self

    def __exit__(self, *_: object) -> None:
        # Also when the tool failed: it may have changed something before.
        self.after()

    def before(self) -> None:
        """Look before the tool runs."""
        snapshots = self._snapshots
        with snapshots.writing() as log:
            if self._paths is None:
                self._files = self._scan_first(log)
            else:
                with Within(self._root) as within:
                    self._states = {path: snapshots.look(within, path) for path in self._paths}
            changes = {path: Change(state, state) for path, state in self._states.items()}
            snapshots.append(log, self._message, self._root, changes, is_open=True)

    def after(self) -> dict[str, Change]:
        """Look behind it, and record what has changed; returns that."""
        snapshots = self._snapshots
        with snapshots.writing() as log:
            changes = self._changed_paths() if self._paths is not None else self._changed_files()
            snapshots.append(log, self._message, self._root, changes, is_update=True)
        return {path: pair for path, pair in changes.items() if not pair.before.same_as(pair.after)}

    def _changed_paths(self) -> dict[str, Change]:
        with Within(self._root) as within:
            return {
                path: Change(before, self._snapshots.look(within, path, before.digest or None))
                for path, before in self._states.items()
            }

    def _changed_files(self) -> dict[str, Change]:
        before, self._files = self._files, self._scan()
        return self._compared(before, self._files)

    def _scan_first(self, log: Log) -> Files:
        """The workspace before the tool; what a tool did that was cut off here is recorded as its doing."""
        last = next((found for line in log.backward() if (found := taken(line)) is not None), None)
        if last is None or not last.is_open or last.files or last.root != str(self._root):
            return self._scan()
        before = self._snapshots.workspace(self._root).known()
        now = self._scan()
        self._snapshots.append(log, last.message, self._root, self._compared(before, now), is_update=True)
        return now

    def _compared(self, before: Files, now: Files) -> dict[str, Change]:
        """What differs; a copy that was erased meanwhile is not named."""
        changes = compared(before, now)
        for path, change in changes.items():
            before_it = change.before
            if before_it.digest and before_it.missing is None and not self._snapshots.blobs.has(before_it.digest):
                changes[path] = change._replace(before=msgspec.structs.replace(before_it, missing=_GONE))
        return changes

    def _scan(self) -> Files:
        return self._snapshots.workspace(self._root).scan(self._snapshots.keep)


def compared(before: Files, now: Files) -> dict[str, Change]:
    """The files that differ."""
    differing = (path for path in {**before, **now} if _differ(before.get(path), now.get(path)))
    return {path: Change(_state(before.get(path)), _state(now.get(path))) for path in sorted(differing)}


def _differ(one: Seen | None, other: Seen | None) -> bool:
    if one is None or other is None:
        return one is not other
    if one.digest and other.digest:
        return (one.digest, one.mode) != (other.digest, other.mode)
    return (one.size, one.changed, one.mode) != (other.size, other.changed, other.mode)


def _state(seen: Seen | None) -> FileState:
    return NO_FILE if seen is None else FileState(seen.digest, permissions(seen.mode), seen.missing, seen.size)


def _inside(root: Path, path: str) -> str:
    """A path below the workspace, relative to it; refuses any other."""
    if Path(path).is_absolute():
        try:
            path = Path(path).relative_to(root).as_posix()
        except ValueError:
            raise PathRefused(f"{path!r} is not below {root}") from None
    parts_of(path)
    return path


def spelled(path: str) -> str:
    """A path as a record can hold it."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _tracked(change: Change) -> TrackedFile:
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


def _own(path: str, name: str, change: Change) -> OwnFile:
    before, after = change
    return OwnFile(
        existed=before.digest is not None,
        mode_before=UNSET if before.mode is None else before.mode,
        mode=UNSET if after.mode is None else after.mode,
        missing=before.missing or UNSET,
        missing_after=after.missing or UNSET,
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
    clew: OwnFiles | None = None


class _Record(msgspec.Struct, rename="camel"):
    snapshot: _Maps
    message_id: str
    type: str = ""
    metadata: _Metadata | None = None


_decode = msgspec.json.Decoder(_Record).decode


def taken(line: bytes) -> Taken | None:
    """A record of the snapshots as it was meant; None where it is none."""
    try:
        record = _decode(line)
    except NOT_JSON:
        return None
    if record.type not in (SNAPSHOT, SNAPSHOT.replace("_", "-")):
        return None
    own = record.metadata.clew if record.metadata is not None else None
    maps, files = record.snapshot, {}
    for name in {**maps.tracked_files, **maps.file_backups}:
        entry, copy = maps.tracked_files.get(name, _Entry()), maps.file_backups.get(name, _Copy())
        file = own.files.get(name) if own is not None else None
        files[_path(name, file)] = Change(_before(entry, copy, file), _after(entry, file))
    if own is None:
        return Taken(record.message_id, None, files)
    return Taken(record.message_id, own.root, files, own.open is True)


def _path(name: str, file: OwnFile | None) -> str:
    if file is None or file.raw is UNSET:
        return name
    try:
        return os.fsdecode(base64.b64decode(file.raw))
    except ValueError:
        return name


def _before(entry: _Entry, copy: _Copy, file: OwnFile | None) -> FileState:
    if file is not None and not file.existed:
        return NO_FILE
    mode = file.mode_before if file is not None and file.mode_before is not UNSET else None
    if file is not None and file.missing is not UNSET:
        return FileState("", mode, file.missing)
    if entry.original_content is not None:
        return FileState(digest_of(entry.original_content.encode()), mode, text=entry.original_content)
    if copy.backup_path is None:
        # Without a word of ours that there was no file, there may have been one that was no text.
        return FileState("", mode, _NOT_RECORDED)
    name = copy.backup_path.replace("\\", "/").rpartition("/")[2]
    known = copy.original_hash
    if known is not None and digest_in(name) == known.lower():
        return FileState(known.lower(), mode)
    return FileState(known.lower() if known is not None else "", mode, backup=name)


def _after(entry: _Entry, file: OwnFile | None) -> FileState:
    if entry.state == "deleted":
        return NO_FILE
    if entry.state == "unchanged" and file is not None and not file.existed:
        return NO_FILE
    mode = file.mode if file is not None and file.mode is not UNSET else None
    missing = file.missing_after if file is not None and file.missing_after is not UNSET else None
    return FileState((entry.content_hash or "").lower(), mode, missing)


def root_for(path: Path | str | None) -> Path:
    """The folder that a person or program named as the workspace; default: where it is."""
    folder = Path(path).expanduser() if path is not None else Path.cwd()
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder")
    return folder.resolve()
