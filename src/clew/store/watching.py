"""A tool at work: files are looked at before and behind it, and what it did is recorded.

Where a process was killed in between, what it did to a whole workspace is found later, from how that looked before.
Others may have changed it too by then, and nothing tells who did what; so the record says that it was made late.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import UNSET

from clew.errors import PathRefused, SourceUnreadable
from clew.io.ignore_patterns import ignoring
from clew.io.safe_write import Within, parts_of
from clew.store.log import Log
from clew.store.scan import Workspace, permissions
from clew.store.sightings import Files, Look, Seen
from clew.store.snapshots import NO_FILE, Before, Change, FileState, Snapshots, Taken, spelled, taken
from clew.store.wire import FoundFile, FoundState

_GONE = "the copy of it is gone"


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
        if self._paths == []:
            return  # a record without files would be that of a whole workspace
        with self._snapshots.writing() as log:
            self._before_whole(log) if self._paths is None else self._before_named(log, self._paths)

    def _before_whole(self, log: Log) -> None:
        """What a tool did that was cut off here is recorded first."""
        snapshots, workspace = self._snapshots, self._workspace
        told, last = _since_last_look(_backward(log), str(self._root))
        name = _look_of(last)
        if last is not None and last.is_whole:
            name = close(snapshots, log, last, self._root)
        self._files = workspace.scan(snapshots.keep)
        before = self._compared(told, last, name)
        with workspace.sightings.noting(self._files, name) as look:
            snapshots.append(log, self._message, self._root, {}, is_open=True, look=look, before=before)

    def _before_named(self, log: Log, paths: Sequence[str]) -> None:
        with Within(self._root) as within:
            self._states = {path: self._snapshots.look(within, path) for path in paths}
        changes = {path: Change(state, state) for path, state in self._states.items()}
        before = self._compared_named(log)
        self._snapshots.append(log, self._message, self._root, changes, is_open=True, before=before)

    def after(self) -> dict[str, Change]:
        """Look behind it, and record what has changed; returns that."""
        snapshots = self._snapshots
        if self._paths == []:
            return {}
        with snapshots.writing() as log:
            if self._paths is None:
                changes = self._after_whole(log)
            else:
                changes = self._changed_paths()
                snapshots.append(log, self._message, self._root, changes, is_update=True)
        return {path: pair for path, pair in changes.items() if not pair.before.same_as(pair.after)}

    def _after_whole(self, log: Log) -> dict[str, Change]:
        before, self._files = self._files, self._workspace.scan(self._snapshots.keep)
        changes = _with_copies(self._snapshots, compared(before, self._files))
        _, last = _since_last_look(_backward(log), str(self._root))
        with self._workspace.sightings.noting(self._files, _look_of(last)) as look:
            self._snapshots.append(log, self._message, self._root, changes, is_update=True, look=look)
        return changes

    @property
    def _workspace(self) -> Workspace:
        return self._snapshots.workspace(self._root)

    def _changed_paths(self) -> dict[str, Change]:
        with Within(self._root) as within:
            return {path: Change(before, self._snapshots.look(within, path)) for path, before in self._states.items()}

    def _compared(self, told: dict[str, FileState], last: Taken | None, name: str | None) -> Before:
        """What changed since the last look at the workspace, whose name is given."""
        seen = self._workspace.sightings.of(name) if name is not None else None
        before, now = seen.beside(self._files) if seen is not None else (None, self._files)
        changes = _with_copies(self._snapshots, _unlike(told, before, now))
        # What is left out now, or was then, has neither come nor gone.
        hides = _hidden(last, self._workspace) if changes else None
        found = {
            spelled(path): _found(path, change, before is not None)
            for path, change in changes.items()
            if hides is not None and not hides(path)
        }
        return Before(last.message, found, seen is None) if last is not None else Before(found=found)

    def _compared_named(self, log: Log) -> Before:
        """The same of named files, where the last look at the whole workspace was the last that saw them."""
        seen = self._workspace.sightings.last()
        if seen is None or not self._unlike_in(seen):
            return Before()
        told, last = _since_last_look(_backward(log), str(self._root), set(self._states))
        if last is None:
            return Before()
        seen = self._workspace.sightings.of(_look_of(last) or "")
        hides = ignoring(last.ignored).hides
        found = {
            spelled(path): _found(path, Change(state, self._states[path]), True)
            for path, state in (self._unlike_in(seen) if seen is not None else {}).items()
            if path not in told and not hides(path)
        }
        return Before(last.message, found, seen is None)

    def _unlike_in(self, seen: Look) -> dict[str, FileState]:
        """The named files that are not as a look saw them, as they were then."""
        states = {path: _state(seen.named.get(path)) for path in self._states}
        return {path: state for path, state in states.items() if not state.same_as(self._states[path])}


def _look_of(record: Taken | None) -> str | None:
    """The name of what a look at the whole workspace saw; empty where an earlier version recorded it."""
    if record is None or record.own is None:
        return None
    return record.own.look if record.own.look is not UNSET else ""


def _hidden(last: Taken | None, workspace: Workspace) -> Callable[[str], bool]:
    """What was left out at a look, or is now."""
    return ignoring([*(last.ignored if last is not None else ()), *workspace.ignored]).hides


def _backward(log: Log) -> Iterator[Taken]:
    """The records, the last first."""
    return (found for line in log.backward() if (found := taken(line)) is not None)


def _since_last_look(
    backward: Iterable[Taken], root: str, wanted: set[str] | None = None
) -> tuple[dict[str, FileState], Taken | None]:
    """The last record of a look at the whole workspace, and how the records behind it left files.

    It is not looked for where those tell of all that is wanted.
    """
    told: dict[str, FileState] = {}
    for one in backward:
        if wanted is not None and wanted <= told.keys():
            break
        if one.root != root:
            continue
        if one.is_whole or one.ignored:
            return told, one
        told = {**{path: change.after for path, change in one.files.items()}, **told}
    return told, None


def _unlike(told: dict[str, FileState], before: Files | None, now: Files) -> dict[str, Change]:
    """The files that are not as the look before saw them, or not as records told since then."""
    changes = compared(before, now) if before is not None else {}
    for path, state in told.items():
        if path not in changes and not state.same_as(_state(now.get(path))):
            changes[path] = Change(_state((before or {}).get(path)), _state(now.get(path)))
    return changes


def _found(path: str, change: Change, is_known: bool) -> FoundFile:
    """`is_known`: there was a look before."""
    raw = UNSET if spelled(path) == path else base64.b64encode(os.fsencode(path)).decode()
    before = _found_state(change.before) if is_known else UNSET
    return FoundFile(before=before, now=_found_state(change.after), raw=raw)


def _found_state(state: FileState) -> FoundState:
    return FoundState(
        hash=UNSET if state.digest is None else state.digest,
        mode=UNSET if state.mode is None else state.mode,
        missing=state.missing or UNSET,
        link=UNSET if state.link is None else state.link,
    )


def unclosed(records: Iterable[Taken]) -> list[Taken]:
    """The looks at whole workspaces that nothing tells the outcome of: the last of each workspace."""
    waiting: dict[str, Taken] = {}
    for one in records:
        if one.root is None:
            continue
        if one.is_whole:
            waiting[one.root] = one
        elif one.root in waiting and _closes(one, waiting[one.root]):
            del waiting[one.root]
    return list(waiting.values())


def _closes(record: Taken, look: Taken) -> bool:
    """True where a record tells what a tool did that the whole workspace was looked at for."""
    if record.is_open or record.message != look.message:
        return False
    # What an earlier version recorded does not tell a whole workspace from named files.
    return bool(record.ignored) or not look.ignored


def close(snapshots: Snapshots, log: Log, cut: Taken, now: Path) -> str | None:
    """Record what is different since a look that was the last word; `now` is where the workspace is.

    Returns the name of the look that this is; None where what the last one saw is not known any more.
    """
    workspace = snapshots.workspace(Path(str(cut.root)), now)
    if workspace.sightings.of(_look_of(cut) or "") is None:
        return None
    files = workspace.scan(snapshots.keep)
    changes = _since(snapshots, workspace, cut, files) or {}
    with workspace.sightings.noting(files, _look_of(cut)) as look:
        # It belongs to the workspace of the tool, wherever that is by now.
        root = Path(str(cut.root))
        snapshots.append(log, cut.message, root, changes, is_update=True, is_late=True, look=look)
    return look


def outcome(snapshots: Snapshots, cut: Taken, now: Path) -> Taken | None:
    """The same as `close` would record it, and nothing is written."""
    workspace = snapshots.workspace(Path(str(cut.root)), now)
    try:
        changes = _since(snapshots, workspace, cut, workspace.look())
    except SourceUnreadable:
        return None  # the workspace is not there
    return Taken(cut.message, cut.root, changes, is_late=True) if changes is not None else None


def _since(snapshots: Snapshots, workspace: Workspace, cut: Taken, files: Files) -> dict[str, Change] | None:
    """What is different since a look; None where what it saw is not known any more."""
    seen = workspace.sightings.of(_look_of(cut) or "")
    if seen is None:
        return None
    hides = _hidden(cut, workspace)
    changes = {path: change for path, change in compared(*seen.beside(files)).items() if not hides(path)}
    return _with_copies(snapshots, changes)


def _with_copies(snapshots: Snapshots, changes: dict[str, Change]) -> dict[str, Change]:
    """The same; a copy that was erased meanwhile is not named."""
    for path, change in changes.items():
        before = change.before
        if before.digest and before.missing is None and not snapshots.blobs.has(before.digest):
            changes[path] = change._replace(before=msgspec.structs.replace(before, missing=_GONE))
    return changes


def compared(before: Files, now: Files) -> dict[str, Change]:
    """The files that differ."""
    differing = (path for path in {**before, **now} if _differ(before.get(path), now.get(path)))
    return {path: Change(_state(before.get(path)), _state(now.get(path))) for path in sorted(differing)}


def _differ(one: Seen | None, other: Seen | None) -> bool:
    if one is other:
        return False
    if one is None or other is None:
        return one is not other
    if one.link is not None or other.link is not None:
        return one.link != other.link
    if one.digest and other.digest:
        return (one.digest, one.mode) != (other.digest, other.mode)
    return (one.size, one.changed, one.mode) != (other.size, other.changed, other.mode)


def _state(seen: Seen | None) -> FileState:
    if seen is None:
        return NO_FILE
    if seen.link is not None:
        return FileState(None, link=seen.link)
    return FileState(seen.digest, permissions(seen.mode), seen.missing, seen.size)


def _inside(root: Path, path: str) -> str:
    """A path below the workspace, relative to it; refuses any other."""
    if Path(path).is_absolute():
        try:
            path = Path(path).relative_to(root).as_posix()
        except ValueError:
            raise PathRefused(f"{path!r} is not below {root}") from None
    parts_of(path)
    return path
