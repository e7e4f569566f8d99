"""A tool at work: files are read before and after it, and what it changed is recorded.

If a process is killed in between, what its tool did to a whole workspace is found later, by comparing with the scan
from before. Others may have changed files too by then, and nothing shows who changed what, so that record is marked
`late`.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import UNSET

from clew.agents.sage_agent.written_records import FoundFile, FoundState
from clew.errors import PathRefused, SourceUnreadable
from clew.io.ignore_patterns import ignore_patterns
from clew.io.paths import escape_invalid_utf8
from clew.io.safe_write import Within, parts_of
from clew.store.file_state import NO_FILE, FileState, StateChange
from clew.store.log import Log
from clew.store.snapshots import ChangesSinceScan, SnapshotEntry, Snapshots, parse_snapshot
from clew.store.workspace import Index, IndexEntry, Workspace, permissions

_GONE = "the copy of it is missing"


class Watch:
    """What happens to files while a tool of a message runs; a context manager.

    With paths, these files are read before and after the tool, and their contents are recorded before the tool runs.
    Without, the whole workspace is scanned.
    """

    def __init__(self, snapshots: Snapshots, message: str, root: Path, paths: Sequence[str] | None) -> None:
        self._snapshots, self._message, self._root = snapshots, message, root
        self._paths = None if paths is None else [_inside(root, path) for path in paths]
        self._states: dict[str, FileState] = {}
        self._index: Index = {}

    def __enter__(self) -> Watch:
        self.before()
        return self

    def __exit__(self, *_: object) -> None:
        # Also when the tool failed: it may have changed files before.
        self.after()

    def before(self) -> None:
        """Record the files before the tool runs."""
        if self._paths == []:
            return  # a record without files would be that of a whole workspace
        with self._snapshots.writing() as log:
            self._before_whole(log) if self._paths is None else self._before_named(log, self._paths)

    def _before_whole(self, log: Log) -> None:
        """Scan the workspace. What an interrupted tool did to it is recorded first."""
        snapshots = self._snapshots
        states, last = _since_last_scan(_backward(log), str(self._root))
        digest = _scan_of(last)
        if last is not None and last.is_whole:
            digest = record_interrupted(snapshots, log, last, self._root)
        known = snapshots.load_index(digest)
        self._index = self._workspace.scan(known or {}, snapshots.keep)
        changes = self._changed_since(states, last, known)
        snapshots.append(
            log, self._message, self._root, {}, index=self._index, previous=digest, is_open=True, since=changes
        )

    def _before_named(self, log: Log, paths: Sequence[str]) -> None:
        with Within(self._root) as within:
            self._states = {path: self._snapshots.capture(within, path) for path in paths}
        changes = {path: StateChange(state, state) for path, state in self._states.items()}
        since = self._named_changed_since(log)
        self._snapshots.append(log, self._message, self._root, changes, is_open=True, since=since)

    def after(self) -> dict[str, StateChange]:
        """Read the files again, record what changed, and return that."""
        snapshots = self._snapshots
        if self._paths == []:
            return {}
        with snapshots.writing() as log:
            if self._paths is None:
                changes = self._after_whole(log)
            else:
                with Within(self._root) as within:
                    changes = {
                        path: StateChange(before, snapshots.capture(within, path))
                        for path, before in self._states.items()
                    }
                snapshots.append(log, self._message, self._root, changes, is_update=True)
        return {path: pair for path, pair in changes.items() if not pair.before.same_as(pair.after)}

    def _after_whole(self, log: Log) -> dict[str, StateChange]:
        before, self._index = self._index, self._workspace.scan(self._index, self._snapshots.keep)
        changes = _without_missing_blobs(self._snapshots, compare(before, self._index))
        _, last = _since_last_scan(_backward(log), str(self._root))
        self._snapshots.append(
            log, self._message, self._root, changes, index=self._index, previous=_scan_of(last), is_update=True
        )
        return changes

    @property
    def _workspace(self) -> Workspace:
        return self._snapshots.workspace(self._root)

    def _changed_since(
        self, states: dict[str, FileState], last: SnapshotEntry | None, known: Index | None
    ) -> ChangesSinceScan:
        """Return what changed since the last scan; `known` is its index, `states` what records after it say."""
        changes = _without_missing_blobs(self._snapshots, _differing(states, known, self._index))
        # What the patterns leave out now, or left out then, was neither created nor deleted.
        hides = _hidden(last, self._workspace) if changes else None
        found = {
            escape_invalid_utf8(path): _found(path, change, known is not None)
            for path, change in changes.items()
            if hides is not None and not hides(path)
        }
        if last is None:
            return ChangesSinceScan(found=found)
        return ChangesSinceScan(last.message, found, is_lost=known is None)

    def _named_changed_since(self, log: Log) -> ChangesSinceScan:
        """Return which of the named files changed since the last scan, if no other record names them after it."""
        if not self._snapshots.scans.all():
            return ChangesSinceScan()  # without reading the log: most sessions that name files never scan
        states, last = _since_last_scan(_backward(log), str(self._root), set(self._states))
        if last is None:
            return ChangesSinceScan()
        known = self._snapshots.load_index(_scan_of(last))
        hides = ignore_patterns(tuple(last.ignored)).hides
        before = {path: _state(known.get(path)) for path in self._states} if known is not None else {}
        found = {
            escape_invalid_utf8(path): _found(path, StateChange(state, self._states[path]), True)
            for path, state in before.items()
            if not state.same_as(self._states[path]) and path not in states and not hides(path)
        }
        if known is not None and not found:
            return ChangesSinceScan()
        return ChangesSinceScan(last.message, found, known is None)


def _scan_of(record: SnapshotEntry | None) -> str | None:
    """Return the digest of the index that a record names; None if it names none."""
    if record is None or record.own is None or record.own.scan is UNSET:
        return None
    return record.own.scan


def _hidden(last: SnapshotEntry | None, workspace: Workspace) -> Callable[[str], bool]:
    """Return a test for paths that were left out by the last scan, or are left out now."""
    then = ignore_patterns(tuple(last.ignored) if last is not None else ())
    now = ignore_patterns(workspace.ignored)
    return lambda path: then.hides(path) or now.hides(path)


def _backward(log: Log) -> Iterator[SnapshotEntry]:
    """Yield the snapshots from the last to the first."""
    return (found for line in log.backward() if (found := parse_snapshot(line)) is not None)


def _since_last_scan(
    backward: Iterable[SnapshotEntry], root: str, wanted: set[str] | None = None
) -> tuple[dict[str, FileState], SnapshotEntry | None]:
    """Return the state of each file after the last scan of a workspace as records say, and the record of that scan.

    With `wanted`, the search stops without a scan once all of these files were found in later records.
    """
    states: dict[str, FileState] = {}
    for one in backward:
        if wanted is not None and wanted <= states.keys():
            break
        if one.root != root:
            continue
        if one.is_whole or one.ignored:
            return states, one
        states = {**{path: change.after for path, change in one.files.items()}, **states}
    return states, None


def _differing(states: dict[str, FileState], before: Index | None, now: Index) -> dict[str, StateChange]:
    """Return the files that are not as in the index before, or not as later records have them."""
    changes = compare(before, now) if before is not None else {}
    for path, state in states.items():
        if path not in changes and not state.same_as(_state(now.get(path))):
            changes[path] = StateChange(_state((before or {}).get(path)), _state(now.get(path)))
    return changes


def _found(path: str, change: StateChange, is_known: bool) -> FoundFile:
    """Return the record of a file that changed since the last scan; `is_known`: its state before is known."""
    raw = UNSET if escape_invalid_utf8(path) == path else base64.b64encode(os.fsencode(path)).decode()
    before = _found_state(change.before) if is_known else UNSET
    return FoundFile(before=before, now=_found_state(change.after), raw=raw)


def _found_state(state: FileState) -> FoundState:
    return FoundState(
        hash=UNSET if state.digest is None else state.digest,
        mode=UNSET if state.mode is None else state.mode,
        missing=state.missing or UNSET,
        link=UNSET if state.link is None else state.link,
    )


def interrupted(records: Iterable[SnapshotEntry]) -> list[SnapshotEntry]:
    """Return the scans before a tool without a record of its end: the last one of each workspace."""
    waiting: dict[str, SnapshotEntry] = {}
    for one in records:
        if one.root is None:
            continue
        if one.is_whole:
            waiting[one.root] = one
        elif one.root in waiting and _is_end_of(one, waiting[one.root]):
            del waiting[one.root]
    return list(waiting.values())


def _is_end_of(record: SnapshotEntry, scan: SnapshotEntry) -> bool:
    """Return whether a record says what the tool did that the workspace was scanned for."""
    if record.is_open or record.message != scan.message:
        return False
    # Records of earlier versions do not tell a whole workspace from named files.
    return bool(record.ignored) or not scan.ignored


def record_interrupted(snapshots: Snapshots, log: Log, cut: SnapshotEntry, now: Path) -> str | None:
    """Record what changed since the scan before an interrupted tool; `now` is where the workspace is.

    Returns the digest of the new index; None if the index of that scan is lost.
    """
    known = snapshots.load_index(_scan_of(cut))
    if known is None:
        return None
    # The record belongs to the folder that the tool worked in, wherever that is by now.
    root = Path(str(cut.root))
    workspace = snapshots.workspace(root, now)
    index = workspace.scan(known, snapshots.keep)
    changes = _changes_of(snapshots, workspace, cut, known, index)
    return snapshots.append(
        log, cut.message, root, changes, index=index, previous=_scan_of(cut), is_update=True, is_late=True
    )


def outcome_of_interrupted(snapshots: Snapshots, cut: SnapshotEntry, now: Path) -> SnapshotEntry | None:
    """Return the entry that `record_interrupted` would write, and write nothing; None if it cannot be known."""
    known = snapshots.load_index(_scan_of(cut))
    if known is None:
        return None
    workspace = snapshots.workspace(Path(str(cut.root)), now)
    try:
        index = workspace.scan_only(known)
    except SourceUnreadable:
        return None  # the workspace is not there
    changes = _changes_of(snapshots, workspace, cut, known, index)
    return SnapshotEntry(cut.message, cut.root, changes, is_late=True)


def _changes_of(
    snapshots: Snapshots, workspace: Workspace, cut: SnapshotEntry, known: Index, index: Index
) -> dict[str, StateChange]:
    """Return what is different since the scan of an interrupted tool."""
    hides = _hidden(cut, workspace)
    changes = {path: change for path, change in compare(known, index).items() if not hides(path)}
    return _without_missing_blobs(snapshots, changes)


def _without_missing_blobs(snapshots: Snapshots, changes: dict[str, StateChange]) -> dict[str, StateChange]:
    """Return changes that say so where the content from before was erased meanwhile."""
    for path, change in changes.items():
        before = change.before
        if before.digest and before.missing is None and not snapshots.blobs.has(before.digest):
            changes[path] = change._replace(before=msgspec.structs.replace(before, missing=_GONE))
    return changes


def compare(before: Index, now: Index) -> dict[str, StateChange]:
    """Return the files that differ between two scans."""
    differing = (path for path in {**before, **now} if _differ(before.get(path), now.get(path)))
    return {path: StateChange(_state(before.get(path)), _state(now.get(path))) for path in sorted(differing)}


def _differ(one: IndexEntry | None, other: IndexEntry | None) -> bool:
    if one is other:
        return False
    if one is None or other is None:
        return True
    if one.link is not None or other.link is not None:
        return one.link != other.link
    if one.digest and other.digest:
        return (one.digest, one.mode) != (other.digest, other.mode)
    return (one.size, one.mtime_ns, one.mode) != (other.size, other.mtime_ns, other.mode)


def _state(entry: IndexEntry | None) -> FileState:
    if entry is None:
        return NO_FILE
    if entry.link is not None:
        return FileState(None, link=entry.link)
    return FileState(entry.digest, permissions(entry.mode), entry.missing, entry.size)


def _inside(root: Path, path: str) -> str:
    """Return a path below the workspace relative to it; raises PathRefused for any other."""
    if Path(path).is_absolute():
        try:
            path = Path(path).relative_to(root).as_posix()
        except ValueError:
            raise PathRefused(f"{path!r} is not below {root}") from None
    parts_of(path)
    return path
