"""Finds edits of files that no tool made, from the snapshots alone.

If the state of a file before a tool is not the state that the record before it left, then a person or another program
edited it in between. A tool may have changed that edit since, so the file alone does not show it: an undo to before
both would delete the edit without a conflict. After an interrupted tool, its own changes and later edits look alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from clew.io.ignore_patterns import ignore_patterns
from clew.store.file_state import INTERRUPTED, FileState, StateChange
from clew.store.snapshots import SnapshotEntry

BETWEEN = "was edited between two tool runs"
UNSURE = f"may hold edits by a person: {INTERRUPTED}"

Version = tuple[str | None, bytes | None]


class OutsideEdit(NamedTuple):
    """A version of a file that was, or may have been, made outside of the recorded tools."""

    left: FileState
    """The state after the last record before the edit."""
    made: FileState
    why: str
    interrupted: str | None = None
    """The message of the interrupted tool that may have made it instead."""


class _File:
    """What the records so far say about one file."""

    def __init__(self) -> None:
        self.last: FileState | None = None
        self.found: FileState | None = None
        """The state before the last tool."""
        self.versions: set[Version] = set()
        """All states in records: a file in one of these states was not edited in between."""
        self.opened_by: str | None = None


class OutsideEdits:
    """The outside edits before the tools of each message, collected while the records are read in order."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._found: dict[int, dict[str, list[OutsideEdit]]] = {}
        self._running: dict[str, int] = {}
        """How many tools of each message have a record of their start and none of their end."""
        self._whole: dict[str, SnapshotEntry] = {}
        """The last scan of a whole workspace by each of these messages."""
        self._interrupted: set[str] = set()
        self._record = SnapshotEntry("", None, {})
        self._anchor = -1

    def begin(self, record: SnapshotEntry, anchor: int) -> None:
        """Start the next record; `anchor` is the prompt or reply that it belongs to."""
        self._record, self._anchor = record, anchor
        if record.is_late:
            return
        running = max(0, self._running.get(record.message, 0) + (1 if record.is_open else -1))
        self._running[record.message] = running
        if record.is_whole:
            self._whole[record.message] = record
        if not running:
            self._whole.pop(record.message, None)
        if not running and record.message in self._interrupted:
            self._drop_edits_of(record.message)

    def _drop_edits_of(self, message: str) -> None:
        """Drop edits that the tool of a message made itself: its end was recorded after all."""
        for files in self._found.values():
            for path, edits in files.items():
                if any(edit.interrupted == message for edit in edits):
                    files[path] = [edit for edit in edits if edit.interrupted != message]

    def note(self, path: str, change: StateChange) -> None:
        """Add one file of the record."""
        file = self._files.setdefault(path, _File())
        for found in (self._between(path, file, change.before), self._late(change)):
            if found is not None:
                self._found.setdefault(self._anchor, {}).setdefault(path, []).append(found)
                if found.interrupted is not None:
                    self._interrupted.add(found.interrupted)
        file.last, file.found = change.after, change.before
        file.versions.add(_version(change.before))
        if not self._record.is_late:
            file.versions.add(_version(change.after))
        file.opened_by = self._record.message if self._record.is_open else None

    def _between(self, path: str, file: _File, before: FileState) -> OutsideEdit | None:
        """Return the state before the tool as an edit, if no record left the file so."""
        last = file.last
        if last is None or before.is_nothing:
            return None
        if _version(before) in file.versions or _version(before) == _version(last):
            return None
        if last.missing == INTERRUPTED:
            return OutsideEdit(file.found or last, before, UNSURE, file.opened_by)
        if last.digest == "" or (before.digest == "" and self._record.root is None):
            return None
        other = self._running_tool(path)
        return OutsideEdit(last, before, BETWEEN) if other is None else OutsideEdit(last, before, UNSURE, other)

    def _running_tool(self, path: str) -> str | None:
        """Return the message of a tool that watches the whole workspace, still runs, and may have changed the file."""
        record = self._record
        others = (one for one in self._whole.values() if one.root == record.root)
        if record.is_late:
            # The state before was there before the record's own tool began.
            others = (one for one in others if one.message != record.message)
        return next((one.message for one in others if not ignore_patterns(tuple(one.ignored)).hides(path)), None)

    def _late(self, change: StateChange) -> OutsideEdit | None:
        """Return what a late scan found, as an edit."""
        if not self._record.is_late or change.after.is_nothing or change.before.same_as(change.after):
            return None
        return OutsideEdit(change.before, change.after, UNSURE, self._record.message)

    def lost(self, anchors: set[int], targets: Mapping[str, FileState]) -> dict[str, list[OutsideEdit]]:
        """Return the edits that would be lost if the tools of these messages were undone and files set to `targets`.

        These are the edits between the tools, and those that an undo restored and that are in the files now.
        """
        lost: dict[str, list[OutsideEdit]] = {}
        for anchor, files in sorted(self._found.items()):
            for path in files.keys() & targets.keys():
                there = _version(self._files[path].last or targets[path])
                gone = [edit for edit in files[path] if anchor in anchors or _version(edit.made) == there]
                gone = [edit for edit in gone if _version(edit.made) != _version(targets[path])]
                if gone:
                    lost.setdefault(path, []).extend(gone)
        return lost


def in_tool_order(records: Iterable[SnapshotEntry]) -> list[SnapshotEntry]:
    """Return the records in the order of the tools: a late record belongs right after its interrupted tool."""
    ordered: list[SnapshotEntry] = []
    opened: dict[tuple[str, str | None], int] = {}
    late: dict[int, list[SnapshotEntry]] = {}
    records = list(records)
    for one in records:
        if one.is_late:
            continue
        if one.is_whole:
            opened[one.message, one.root] = len(ordered)
        ordered.append(one)
    for one in records:
        if one.is_late:
            late.setdefault(opened.get((one.message, one.root), len(ordered)), []).append(one)
    return [one for at, record in enumerate((*ordered, None)) for one in (record, *late.get(at, ())) if one is not None]


def _version(state: FileState) -> Version:
    return state.digest, state.link
