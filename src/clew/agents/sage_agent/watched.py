"""What clew's own store saw of files while tools ran: each run with what was there before it and behind.

A look at a whole folder speaks for all calls of its message. One at files by name speaks for those, where there were as
many as there are calls that could have changed them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from clew.agents.evidence import OTHER, Calm, Touch, Unrest
from clew.agents.sage_agent.snapshots import Moment, Snapshots, Taken, Told
from clew.model.json import JSON
from clew.model.time import parse_time

_CUT_OFF = "a tool that was to change it was cut off"


class Run(NamedTuple):
    """One run of a tool."""

    taken: Taken
    is_whole: bool
    """The whole folder was looked at."""
    is_over: bool
    """False where nothing tells what it left."""
    opened: Taken | None = None
    """From before it."""

    @property
    def is_sure(self) -> bool:
        """True where what it left is its own doing."""
        return self.is_over and not self.taken.is_late


def runs_of(records: Iterable[Taken]) -> list[Run]:
    """The runs of a message: a record from before a tool, and the next that fits it."""
    opened: dict[int, Taken] = {}
    runs: dict[int, Run] = {}
    for number, taken in enumerate(records):
        if taken.is_open:
            opened[number] = taken
            continue
        before = next((at for at in reversed(opened) if _fits(opened[at], taken)), None)
        if before is None and (late := _taken_late(runs, taken)) is not None:
            # It was not cut off after all: another tool began while it ran.
            before = late
            opened[late] = runs.pop(late).opened or taken
        is_whole = taken.ignored is not None or (before is not None and not opened[before].files)
        runs[number] = Run(taken, is_whole, True, opened.pop(before) if before is not None else None)
    runs.update({number: Run(taken, not taken.files, False, taken) for number, taken in opened.items()})
    return [runs[number] for number in sorted(runs)]


def _taken_late(runs: Mapping[int, Run], taken: Taken) -> int | None:
    late = (at for at, run in runs.items() if run.taken.is_late and run.opened is not None)
    return next((at for at in late if _fits(runs[at].opened or taken, taken)), None) if not taken.is_late else None


def _fits(before: Taken, behind: Taken) -> bool:
    if before.root != behind.root or before.ignored != behind.ignored:
        return False
    return not before.files or before.files.keys() == behind.files.keys()


def spared(snapshots: Snapshots, runs: Sequence[Run], unrest: int, calls: Mapping[str, int]) -> frozenset[str]:
    """The files of which the runs tell all that the calls of their message did to them.

    `unrest` is the number of its calls that can change any file, `calls` that of those for each file alone.
    """
    told = Counter(path for run in runs if not run.is_whole and run.is_sure for path in run.taken.files)
    named = {path for path, count in told.items() if count >= unrest + calls.get(path, 0)}
    files: frozenset[str] = frozenset()
    # What was looked at late may have been changed back in between: that nothing differs proves nothing then.
    if all(run.is_sure for run in runs if run.is_whole):
        for taken in (run.taken for run in runs if run.is_whole):
            whole = frozenset(taken.files) if taken.ignored is None else snapshots.below(taken.root, taken.ignored)
            # Nearly always all messages have the same, which is held once.
            files = whole if not files or files is whole else files | whole
    files = files if named <= files else files | named
    unsure = {path for run in runs if not run.is_sure for path in run.taken.files}
    return files if files.isdisjoint(unsure) else files - unsure


class _Pending:
    """A message whose tools were watched, until they are over."""

    def __init__(self, index: int, runs: list[Run], waiting: set[str], unrest: int) -> None:
        self.index, self._runs, self.waiting, self._unrest = index, runs, waiting, unrest
        self._paths = {path for run in runs for path in run.taken.files}
        self._touches: list[Touch] = []
        self._is_left = False
        """The conversation went on, whatever became of its calls."""
        times = [parse_time(run.taken.time) for run in runs if run.is_sure]
        self._last = max((time for time in times if time is not None), default=None)

    def take(self, touch: Touch) -> bool:
        """Keep what a call says that it did to a file, if it was watched."""
        if touch.call != self.index or touch.path not in self._paths or touch.action == "read":
            return False
        self._touches.append(touch)
        return True

    def is_over(self, time: datetime | None, goes_on: bool) -> bool:
        """True where all had happened when a message was written. `goes_on`: it is a prompt or a reply."""
        self._is_left = self._is_left or goes_on
        if self.waiting and not self._is_left:
            return False
        if self._last is None or time is None:
            return not self.waiting or self._last is None
        return time >= self._last

    def events(self, done: int) -> Iterator[Touch | Calm]:
        """What was done to files, in order, and that it is over."""
        yield from self._done(done)
        yield Calm(_key(self.index), done)

    def _done(self, done: int) -> Iterator[Touch]:
        counts = Counter(path for run in self._runs for path in run.taken.files)
        has_whole = any(run.is_whole for run in self._runs)
        spoken: set[str] = set()
        for run in self._runs:
            yield from self._found(run, done)
            for path, told in run.taken.files.items():
                mine = [touch for touch in self._touches if touch.path == path]
                if mine and (not run.is_over or (len(mine) > counts[path] and not has_whole and not self._unrest)):
                    # The calls tell more than was looked at.
                    if path not in spoken:
                        yield from self._by_calls(mine, path)
                elif run.is_sure:
                    yield self._seen(path, told, done, mine if counts[path] == 1 else ())
                else:
                    touch = self._touch(path, told, done)
                    yield touch._replace(action="change", after=None, digest=None, note=_CUT_OFF)
                spoken.add(path)
            for path in run.taken.left.keys() - run.taken.files.keys():
                yield self._left(path, run, done)

    def _left(self, path: str, run: Run, done: int) -> Touch:
        """What the last look of a tool at a whole folder saw: before it, if it was cut off."""
        moment = run.taken.left[path]
        if run.is_over:
            return self._touch(path, Told("snapshot", moment, moment), done)
        return self._touch(path, Told("change", moment, Moment(None, None, _CUT_OFF)), done)

    def _found(self, run: Run, done: int) -> Iterator[Touch]:
        """What had changed when the files were looked at before the tool, and was not changed by it."""
        for path, moment in run.opened.found.items() if run.opened is not None else ():
            if path in run.taken.files:
                continue
            if moment.state is not None:
                yield self._touch(path, Told("snapshot", moment, moment), done)
            else:
                other = moment._replace(digest=OTHER)
                yield self._touch(path, Told("outside", other, Moment(None, None, moment.note)), done)

    def _seen(self, path: str, told: Told, done: int, mine: Sequence[Touch]) -> Touch:
        """What was seen; where no copy was kept, it may follow from what the call says."""
        touch = self._touch(path, told, done)
        if touch.after is None and len(mine) == 1:
            return touch._replace(edit=mine[0].edit, source=mine[0].source)
        return touch

    def _touch(self, path: str, told: Told, done: int) -> Touch:
        return touch_of(path, told, self.index, done)

    def _by_calls(self, mine: list[Touch], path: str) -> Iterator[Touch]:
        """What several calls did, from the first look to the digest of the last."""
        first, last = (_moments(self._runs, path)[at] for at in (0, -1))
        for number, touch in enumerate(mine):
            if number == 0:
                touch = touch._replace(before=first.before.state, found=first.before.digest)
            if number == len(mine) - 1 and last.after.digest is not None:
                touch = touch._replace(digest=last.after.digest, note=last.after.note)
            yield touch


def _moments(runs: Iterable[Run], path: str) -> list[Told]:
    """What the runs tell of a file; of one that is not over, nothing from behind it."""
    return [
        run.taken.files[path] if run.is_over else run.taken.files[path]._replace(after=Moment(None))
        for run in runs
        if path in run.taken.files
    ]


def touch_of(path: str, told: Told, call: int, done: int) -> Touch:
    """One file before and behind, as evidence."""
    before, after = told.before, told.after
    note = after.note if after.state is None else before.note if before.state is None else None
    leaves_other = after.digest == OTHER
    digest = after.digest if after.state is None and not leaves_other else None
    found = before.digest if before.state is None else None
    return Touch(
        path,
        told.action,
        call,
        done,
        "backup",
        before.state,
        after.state,
        digest=digest or None,
        found=found,
        note=note,
        modes=told.modes,
        leaves_other=leaves_other,
    )


def _key(index: int) -> str:
    return f"watched at {index}"


class Watching:
    """The messages whose tools were watched, as a session is gone through."""

    def __init__(self) -> None:
        self._pending: list[_Pending] = []

    def begin(
        self, index: int, runs: list[Run], waiting: set[str], unrest: int, spares: frozenset[str]
    ) -> Iterator[Unrest]:
        """A message with runs. Where no call tells of it, something ran that a whole folder was watched for."""
        self._pending.append(_Pending(index, runs, waiting, unrest))
        if any(run.is_whole and not run.is_over for run in runs):
            yield Unrest(_key(index), index, "a tool that was cut off", is_cut_off=True)
        elif not unrest and any(run.is_whole for run in runs):
            yield Unrest(_key(index), index, "a tool that was watched", spares)

    def take(self, touch: Touch) -> bool:
        """Keep what a call says that it did, if it was watched; False where it was not."""
        return any(one.take(touch) for one in self._pending)

    def answered(self, call: JSON) -> None:
        """A call has its result."""
        for one in self._pending:
            one.waiting.discard(call)

    def reached(self, index: int, time: JSON, goes_on: bool) -> Iterator[Touch | Calm]:
        """A message: what was over when it was written."""
        if not self._pending:
            return
        at = parse_time(time)
        for one in [one for one in self._pending if one.index < index and one.is_over(at, goes_on)]:
            self._pending.remove(one)
            yield from one.events(index)

    def finish(self, index: int) -> Iterator[Touch | Calm]:
        """The end of the session: what no message saw the end of."""
        for one in self._pending:
            yield from one.events(index + 1)
        self._pending.clear()
