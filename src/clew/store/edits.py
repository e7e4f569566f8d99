"""What somebody made of files between the tool runs that the snapshots tell of. Pure.

A file that a tool finds otherwise than the last record left it was changed by somebody. So may have been one that was
looked at again only long behind a tool that was cut off: nothing tells those two apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from clew.io.ignore_patterns import ignoring
from clew.store.snapshots import CUT_OFF, Change, FileState, Taken

BETWEEN = "was changed by somebody between two tool runs"
UNSURE = f"may hold somebody's work: {CUT_OFF}"

Version = tuple[str | None, bytes | None]


class Edit(NamedTuple):
    """A version of a file that somebody made, or may have made."""

    left: FileState
    """As the last record before it left the file."""
    made: FileState
    why: str
    cause: str | None = None
    """The message of the tool that was cut off, where that is the reason."""


class _File:
    """What is known of one file so far."""

    def __init__(self) -> None:
        self.last: FileState | None = None
        self.found: FileState | None = None
        """As the last tool found it."""
        self.versions: set[Version] = set()
        """All that records tell of: those are kept, and were not made by somebody in between."""
        self.opened_by: str | None = None


class Edits:
    """The edits by the prompt or reply whose tools came behind them, found as the records are gone through."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._found: dict[int, dict[str, list[Edit]]] = {}
        self._running: dict[str, int] = {}
        """Tools of each message that were begun, and of which nothing tells that they ended."""
        self._whole: dict[str, Taken] = {}
        """Of those messages the last look at a whole workspace."""
        self._causes: set[str] = set()
        self._record = Taken("", None, {})
        self._anchor = -1

    def begin(self, record: Taken, anchor: int) -> None:
        """The next record, and the prompt or reply that it belongs to."""
        self._record, self._anchor = record, anchor
        if record.is_late:
            return
        running = max(0, self._running.get(record.message, 0) + (1 if record.is_open else -1))
        self._running[record.message] = running
        if record.is_whole:
            self._whole[record.message] = record
        if not running:
            self._whole.pop(record.message, None)
        if not running and record.message in self._causes:
            self._acquit(record.message)

    def _acquit(self, message: str) -> None:
        """The tool was not cut off after all: what was there meanwhile was its own doing."""
        for files in self._found.values():
            for path, edits in files.items():
                if any(edit.cause == message for edit in edits):
                    files[path] = [edit for edit in edits if edit.cause != message]

    def note(self, path: str, change: Change) -> None:
        """One file of the record."""
        file = self._files.setdefault(path, _File())
        for found in (self._between(path, file, change.before), self._late(change)):
            if found is not None:
                self._found.setdefault(self._anchor, {}).setdefault(path, []).append(found)
                if found.cause is not None:
                    self._causes.add(found.cause)
        file.last, file.found = change.after, change.before
        file.versions.add(_version(change.before))
        if not self._record.is_late:
            file.versions.add(_version(change.after))
        file.opened_by = self._record.message if self._record.is_open else None

    def _between(self, path: str, file: _File, before: FileState) -> Edit | None:
        """What the tool found, if no record left it so."""
        last = file.last
        if last is None or before.is_nothing:
            return None
        if _version(before) in file.versions or _version(before) == _version(last):
            return None
        if last.missing == CUT_OFF:
            return Edit(file.found or last, before, UNSURE, file.opened_by)
        if last.digest == "" or (before.digest == "" and self._record.root is None):
            return None
        other = self._at_work(path)
        return Edit(last, before, BETWEEN) if other is None else Edit(last, before, UNSURE, other)

    def _at_work(self, path: str) -> str | None:
        """The message of a tool that may have changed the file meanwhile, as the whole workspace is watched for it."""
        record = self._record
        others = (one for one in self._whole.values() if one.root == record.root)
        if record.is_late:
            # What it found was there before its own tool began.
            others = (one for one in others if one.message != record.message)
        return next((one.message for one in others if not ignoring(one.ignored).hides(path)), None)

    def _late(self, change: Change) -> Edit | None:
        """What a look found that came too late."""
        if not self._record.is_late or change.after.is_nothing or change.before.same_as(change.after):
            return None
        return Edit(change.before, change.after, UNSURE, self._record.message)

    def lost(self, anchors: set[int], targets: Mapping[str, FileState]) -> dict[str, list[Edit]]:
        """What nothing would be left of, were the tools of these undone and the files put so.

        That is what came between those tools, and what is there now, if an undo brought it back.
        """
        lost: dict[str, list[Edit]] = {}
        for anchor, files in sorted(self._found.items()):
            for path in files.keys() & targets.keys():
                there = _version(self._files[path].last or targets[path])
                gone = [edit for edit in files[path] if anchor in anchors or _version(edit.made) == there]
                gone = [edit for edit in gone if _version(edit.made) != _version(targets[path])]
                if gone:
                    lost.setdefault(path, []).extend(gone)
        return lost


def in_time(records: Iterable[Taken]) -> list[Taken]:
    """The records in the order of what they tell: what was recorded late belongs where the tool was cut off."""
    ordered: list[Taken] = []
    opened: dict[tuple[str, str | None], int] = {}
    late: dict[int, list[Taken]] = {}
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
