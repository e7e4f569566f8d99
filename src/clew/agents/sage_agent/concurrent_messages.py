"""Tools of different messages that ran at the same time, each watched: nothing tells which of them changed what.

Each was looked at from its own beginning to its own end. Of a file that several of them could have changed, what was
before the first of them is known, and what was behind the last, but not whose doing it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from clew.agents.file_evidence import FileChange
from clew.agents.sage_agent.snapshots import Begun, Moment, Ran, Snapshots, Told
from clew.io.ignore_patterns import ignoring

_AT_ONCE = "tools of several messages ran at the same time"


class ConcurrentRuns:
    """Runs that overlap, one with another."""

    def __init__(self, runs: list[Ran]) -> None:
        self.runs = sorted(runs, key=lambda run: run.end)
        self.messages = {run.begun.message for run in runs}

    @cached_property
    def files_with_unknown_writer(self) -> dict[str, list[Ran]]:
        """The files that runs of several messages could have changed, each with those runs."""
        sees = [(run, _sight(run.begun)) for run in self.runs]
        found: dict[str, list[Ran]] = {}
        for path in dict.fromkeys(path for run in self.runs for path in run.files):
            runs = [run for run, can_see in sees if can_see(path)]
            if len({run.begun.message for run in runs}) > 1:
                found[path] = runs
        return found


def _sight(begun: Begun) -> Callable[[str], bool]:
    """Whether a file was looked at."""
    if begun.ignored is None:
        return lambda path: path in begun.files
    base, hides = begun.root.rstrip("/") + "/", ignoring(begun.ignored).hides
    return lambda path: path.startswith(base) and not hides(path[len(base) :])


class _Waiting(NamedTuple):
    crowd: ConcurrentRuns
    messages: set[str]
    """Those whose tools are not over yet."""


class ConcurrentRunIndex:
    """All of them in a session, as it is gone through."""

    def __init__(self, snapshots: Snapshots) -> None:
        self._snapshots = snapshots
        self._waiting: dict[str, list[_Waiting]] = {}
        for runs in _joined(snapshots.overlaps):
            waiting = _Waiting(ConcurrentRuns(runs), {run.begun.message for run in runs})
            for message in waiting.messages:
                self._waiting.setdefault(message, []).append(waiting)

    def files_with_unknown_writer(self, message: str) -> frozenset[str]:
        """The files of which nothing tells what this message did to them."""
        return frozenset(path for one in self._waiting.get(message, ()) for path in self._of(one.crowd, message))

    def done(self, message: str, call: int, done: int) -> Iterator[FileChange]:
        """That its tools changed them somehow; and what they are, where it was the last of all."""
        for one in self._waiting.pop(message, ()):
            for path in self._of(one.crowd, message):
                yield self._changed(one.crowd, path, message, call, done)
            one.messages.discard(message)
            for path in one.crowd.files_with_unknown_writer if not one.messages else ():
                moment = self._last(one.crowd, path)
                yield FileChange(path, "snapshot", done, done, "backup", moment.state, moment.state, note=moment.note)

    def _of(self, crowd: ConcurrentRuns, message: str) -> Iterator[str]:
        for path, runs in crowd.files_with_unknown_writer.items():
            if any(run.begun.message == message for run in runs):
                yield path

    def _changed(self, crowd: ConcurrentRuns, path: str, message: str, call: int, done: int) -> FileChange:
        first = min(crowd.files_with_unknown_writer[path], key=lambda run: run.begun.number)
        told = self._told(first).get(path) if first.begun.message == message else None
        before = told.before.state if told is not None else None
        return FileChange(path, "change", call, done, "backup", before, None, note=_AT_ONCE)

    def _last(self, crowd: ConcurrentRuns, path: str) -> Moment:
        """What was seen of a file when the last of them was over; that it is not told of says only that it is the same
        as before that one."""
        told = self._told(crowd.files_with_unknown_writer[path][-1]).get(path)
        return told.after if told is not None else Moment(None, None, _AT_ONCE)

    def _told(self, run: Ran) -> Mapping[str, Told]:
        return self._snapshots.told_at(run.place)


def _joined(pairs: list[tuple[Ran, Ran]]) -> list[list[Ran]]:
    """Runs that overlap one with another, together."""
    crowds: dict[int, list[Ran]] = {}
    for pair in pairs:
        merged: list[Ran] = []
        for run in pair:
            known = crowds.get(run.end, [run])
            merged += [one for one in known if one not in merged]
        crowds.update({one.end: merged for one in merged})
    return list({id(runs): runs for runs in crowds.values()}.values())
