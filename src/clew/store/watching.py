"""A tool at work: files are looked at before and behind it, and what it did is recorded.

Where a process was killed in between, what it did to a whole workspace is found later, from how that looked before.
Others may have changed it too by then, and nothing tells who did what; so the record says that it was made late.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import UNSET

from clew.errors import PathRefused, SourceUnreadable
from clew.io.ignoring import ignoring
from clew.io.within import Within, parts_of
from clew.store.log import Log
from clew.store.scan import Files, Seen, permissions
from clew.store.snapshots import CUT_OFF, NO_FILE, Change, FileState, Snapshots, Taken, spelled, taken
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
        snapshots = self._snapshots
        if self._paths == []:
            return  # a record without files would be that of a whole workspace
        with snapshots.writing() as log:
            if self._paths is None:
                since, found = self._scan_first(log)
                place = (log, self._message, self._root)
                snapshots.append(*place, {}, is_open=True, is_whole=True, since=since, found=found)
                return
            with Within(self._root) as within:
                self._states = {path: snapshots.look(within, path) for path in self._paths}
            changes = {path: Change(state, state) for path, state in self._states.items()}
            since, found = self._found_named(log)
            snapshots.append(log, self._message, self._root, changes, is_open=True, since=since, found=found)

    def after(self) -> dict[str, Change]:
        """Look behind it, and record what has changed; returns that."""
        snapshots = self._snapshots
        if self._paths == []:
            return {}
        with snapshots.writing() as log:
            changes = self._changed_paths() if self._paths is not None else self._changed_files()
            snapshots.append(log, self._message, self._root, changes, is_update=True, is_whole=self._paths is None)
        return {path: pair for path, pair in changes.items() if not pair.before.same_as(pair.after)}

    def _changed_paths(self) -> dict[str, Change]:
        with Within(self._root) as within:
            return {
                path: Change(before, self._snapshots.look(within, path, before.digest or None))
                for path, before in self._states.items()
            }

    def _changed_files(self) -> dict[str, Change]:
        before, self._files = self._files, self._scan()
        return _with_copies(self._snapshots, compared(before, self._files))

    def _scan_first(self, log: Log) -> tuple[str | None, dict[str, FoundFile]]:
        """Look at the workspace before the tool; returns the message of the look before, and what changed since.

        What a tool did that was cut off here is recorded first.
        """
        workspace = self._snapshots.workspace(self._root)
        told, last = _since_last_look(_backward(log), str(self._root))
        if last is not None and last.is_whole:
            close(self._snapshots, log, last, self._root)
        seen = workspace.last_seen()
        self._files = self._scan()
        before, now = seen(self._files) if seen is not None and last is not None else (None, self._files)
        changes = _with_copies(self._snapshots, _unlike(told, before, now))
        hidden = ignoring([*_ignored(last), *workspace.ignored]) if changes else None
        return last.message if last is not None else None, {
            spelled(path): _found(path, change, before is not None)
            for path, change in changes.items()
            # What is left out now, or was then, has neither come nor gone.
            if hidden is not None and not hidden.hides(path)
        }

    def _found_named(self, log: Log) -> tuple[str | None, dict[str, FoundFile]]:
        """The same of named files, where the last look at the whole workspace was the last that saw them."""
        seen = self._snapshots.workspace(self._root).last_seen()
        before = seen({})[0] if seen is not None else {}
        unlike = {path: _state(before.get(path)) for path in self._states} if seen is not None else {}
        unlike = {path: state for path, state in unlike.items() if not state.same_as(self._states[path])}
        told, last = _since_last_look(_backward(log), str(self._root), set(unlike)) if unlike else ({}, None)
        if last is None:
            return None, {}
        hides = ignoring(_ignored(last)).hides
        return last.message, {
            spelled(path): _found(path, Change(state, self._states[path]), True)
            for path, state in unlike.items()
            if path not in told and not hides(path)
        }

    def _scan(self) -> Files:
        return self._snapshots.workspace(self._root).scan(self._snapshots.keep)


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
        if one.is_whole or _ignored(one):
            return told, one
        told = {**{path: change.after for path, change in one.files.items()}, **told}
    return told, None


def _ignored(record: Taken | None) -> list[str]:
    """What a look at the whole workspace left out; empty for any other record."""
    return [] if record is None or record.own is None or record.own.ignored is UNSET else record.own.ignored


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
        elif not one.is_open and one.root in waiting and waiting[one.root].message == one.message:
            del waiting[one.root]
    return list(waiting.values())


def close(snapshots: Snapshots, log: Log, cut: Taken, now: Path) -> None:
    """Record what is different since a look that was the last word; `now` is where the workspace is."""
    workspace = snapshots.workspace(Path(str(cut.root)), now)
    last = workspace.last_seen()
    if last is not None:
        changes = _with_copies(snapshots, compared(*last(workspace.scan(snapshots.keep))))
        snapshots.append(log, cut.message, now, changes, is_update=True, is_late=True, is_whole=True)


def outcome(snapshots: Snapshots, cut: Taken, now: Path) -> Taken | None:
    """The same as `close` would record it, and nothing is written."""
    workspace = snapshots.workspace(Path(str(cut.root)), now)
    last = workspace.last_seen()
    if last is None:
        return None
    try:
        changes = compared(*last(workspace.look()))
    except SourceUnreadable:
        return None  # the workspace is not there
    doubted = {
        path: change._replace(after=msgspec.structs.replace(change.after, doubt=CUT_OFF))
        for path, change in _with_copies(snapshots, changes).items()
    }
    return Taken(cut.message, str(now), doubted, is_late=True)


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
