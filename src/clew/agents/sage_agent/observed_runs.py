"""What clew's own store saw of files while tools ran: each run with what was there before it and behind.

A look at a whole folder speaks for all calls of its message. One at files by name speaks for those, where there were as
many as there are calls that could have changed them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from clew.agents.base import Unit
from clew.agents.file_evidence import OTHER, Event, FileChange, WriterFinished, WriterStarted, WrittenDuringRun
from clew.agents.sage_agent.concurrent_messages import ConcurrentRunIndex
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
    if before.root != behind.root or (before.ignored is None) != (behind.ignored is None):
        return False
    if before.ignored != behind.ignored and not behind.is_late:
        return False  # by the time of a late look a person may have set something else
    return not before.files or before.files.keys() == behind.files.keys()


def fully_observed_paths(
    snapshots: Snapshots, runs: Sequence[Run], unrest: int, calls: Mapping[str, int]
) -> frozenset[str]:
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

    def __init__(self, begun: Begin, runs: list[Run], files_with_unknown_writer: frozenset[str]) -> None:
        self.index, self.uuid, self.waiting, self._unrest = begun.call, begun.uuid, begun.waiting, begun.unrest
        self._runs, self._contested, self._spares = runs, files_with_unknown_writer, begun.observed_paths
        self._paths = {path for run in runs for path in run.taken.files}
        self._touches: list[FileChange] = []
        self._is_left = False
        """The conversation went on, whatever became of its calls."""
        sure = [run.taken for run in runs if run.is_sure]
        times = (parse_time(taken.time) for taken in sure)
        self._last = max((time for time in times if time is not None), default=None)
        logs = [taken.log for taken in sure if taken.log is not None]
        self._log = max(logs) if logs and len(logs) == len(sure) else None

    def take(self, touch: FileChange) -> bool:
        """Keep what a call says that it did to a file, if it was watched."""
        if touch.call != self.index or touch.path not in self._paths or touch.action == "read":
            return False
        self._touches.append(touch)
        return True

    def is_over(self, when: When) -> bool:
        """True where all had happened when a message was written."""
        self._is_left = self._is_left or when.goes_on
        if self.waiting and not self._is_left:
            return False
        if self._log is not None:
            return when.start >= self._log
        if self._last is None or when.time is None:
            return not self.waiting or self._last is None
        return when.time >= self._last

    def amid(self, index: int, when: When) -> Iterator[WrittenDuringRun]:
        """A message that was written before it was over."""
        if self._log is not None:
            is_at_work = when.start < self._log
        else:
            is_at_work = self._last is not None and when.time is not None and when.time < self._last
        if is_at_work:
            yield WrittenDuringRun(index, self.index, self._spares | self._paths)

    def events(self, done: int) -> Iterator[FileChange | WriterFinished]:
        """What was done to files, in order, and that it is over."""
        yield from (touch for touch in self._done(done) if touch.path not in self._contested)
        yield WriterFinished(_key(self.index), done)

    def unsure(self) -> Iterator[Unsure]:
        """What tools changed that were cut off, and perhaps somebody behind them."""
        for run in self._runs:
            if not run.is_sure:
                # Where nobody looked again at a whole folder, it may be any file.
                files = frozenset(run.taken.files) if run.is_over or not run.is_whole else None
                yield Unsure(self.index, run.taken.root, files)

    def _done(self, done: int) -> Iterator[FileChange]:
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

    def _left(self, path: str, run: Run, done: int) -> FileChange:
        """What the last look of a tool at a whole folder saw: before it, if it was cut off."""
        moment = run.taken.left[path]
        if run.is_over:
            # What is no file, or cannot be read, is not nothing: whatever is found there later came in between.
            moment = moment if moment.state is not None or moment.digest else moment._replace(digest=OTHER)
            return self._touch(path, Told("snapshot", moment, moment), done)
        return self._touch(path, Told("change", moment, Moment(None, None, _CUT_OFF)), done)

    def _found(self, run: Run, done: int) -> Iterator[FileChange]:
        """What had changed when the files were looked at before the tool, and was not changed by it."""
        for path, moment in run.opened.found.items() if run.opened is not None else ():
            if path in run.taken.files:
                continue
            if moment.state is not None:
                yield self._touch(path, Told("snapshot", moment, moment), done)
            else:
                other = moment._replace(digest=OTHER)
                yield self._touch(path, Told("outside", other, Moment(None, None, moment.note)), done)

    def _seen(self, path: str, told: Told, done: int, mine: Sequence[FileChange]) -> FileChange:
        """What was seen; where no copy was kept, it may follow from what the call says."""
        touch = self._touch(path, told, done)
        if touch.after is None and len(mine) == 1:
            return touch._replace(edit=mine[0].edit, source=mine[0].source)
        return touch

    def _touch(self, path: str, told: Told, done: int) -> FileChange:
        return touch_of(path, told, self.index, done)

    def _by_calls(self, mine: list[FileChange], path: str) -> Iterator[FileChange]:
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


def touch_of(path: str, told: Told, call: int, done: int) -> FileChange:
    """One file before and behind, as evidence."""
    before, after = told.before, told.after
    note = after.note if after.state is None else before.note if before.state is None else None
    leaves_other = after.digest == OTHER
    digest = after.digest if after.state is None and not leaves_other else None
    found = before.digest if before.state is None else None
    return FileChange(
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


class Begin(NamedTuple):
    """A message whose tools were watched."""

    call: int
    uuid: str
    waiting: set[str]
    """Its calls."""
    unrest: int
    """How many of them can change any file."""
    observed_paths: frozenset[str]


class When(NamedTuple):
    """The moment at which a message was written."""

    time: datetime | None
    start: int
    """Where it begins in the log."""
    goes_on: bool
    """It is a prompt or a reply."""


class Unsure(NamedTuple):
    """Files that a tool was to change that was cut off, until they are looked at again."""

    call: int
    root: str
    files: frozenset[str] | None
    """None: any."""
    looked_at: frozenset[str] = frozenset()

    @property
    def key(self) -> str:
        return f"cut off at {self.call} in {self.root}"

    @property
    def is_over(self) -> bool:
        return self.files is not None and self.files <= self.looked_at


def _key(index: int) -> str:
    return f"watched at {index}"


class Watching:
    """The messages whose tools were watched, as a session is gone through."""

    def __init__(self, crowds: ConcurrentRunIndex) -> None:
        self._pending: list[_Pending] = []
        self._crowds = crowds
        self._unsure: list[Unsure] = []

    def begin(self, begun: Begin, runs: list[Run]) -> Iterator[WriterStarted | WriterFinished]:
        """A message with runs. Where no call tells of it, something ran that a whole folder was watched for."""
        index = begun.call
        yield from self.looked([run.opened or run.taken for run in runs], index)
        self._pending.append(_Pending(begun, runs, self._crowds.files_with_unknown_writer(begun.uuid)))
        if any(run.is_whole and not run.is_over for run in runs):
            yield WriterStarted(_key(index), index, "a tool that was cut off", is_cut_off=True)
        elif not begun.unrest and any(run.is_whole for run in runs):
            yield WriterStarted(_key(index), index, "a tool that was watched", begun.observed_paths)

    def looked(self, records: Sequence[Taken], index: int) -> Iterator[WriterStarted | WriterFinished]:
        """Files were looked at: whatever happened to them behind a tool that was cut off, it is over."""
        named = frozenset(path for record in records for path in record.files)
        roots = {record.root for record in records if record.ignored is not None}
        waiting, self._unsure = self._unsure, []
        for one in waiting:
            left = one._replace(looked_at=one.looked_at | named)
            yield WriterFinished(one.key, index)
            if one.root not in roots and not left.is_over:
                yield from self._doubt(left, index)

    def _doubt(self, unsure: Unsure, since: int) -> Iterator[WriterStarted]:
        """Nothing tells the tool from who came behind it."""
        self._unsure.append(unsure)
        what = "a tool that was cut off, or somebody behind it,"
        yield WriterStarted(unsure.key, since, what, unsure.looked_at, only=unsure.files)

    def take(self, touch: FileChange) -> bool:
        """Keep what a call says that it did, if it was watched; False where it was not."""
        return any(one.take(touch) for one in self._pending)

    def answered(self, call: JSON) -> None:
        """A call has its result."""
        for one in self._pending:
            one.waiting.discard(call)

    def reached(self, index: int, unit: Unit, goes_on: bool) -> Iterator[Event]:
        """A message: what was over when it was written."""
        if not self._pending:
            return
        when = When(parse_time(unit.value.get("timestamp")), unit.start, goes_on)
        for one in [one for one in self._pending if one.index < index and one.is_over(when)]:
            self._pending.remove(one)
            yield from self._over(one, index)
        for one in self._pending:
            yield from one.amid(index, when) if one.index < index else ()

    def finish(self, index: int) -> Iterator[FileChange | WriterStarted | WriterFinished]:
        """The end of the session: what no message saw the end of."""
        for one in self._pending:
            yield from self._over(one, index + 1)
        self._pending.clear()

    def _over(self, one: _Pending, done: int) -> Iterator[FileChange | WriterStarted | WriterFinished]:
        yield from one.events(done)
        yield from self._crowds.done(one.uuid, one.index, done)
        for unsure in one.unsure():
            yield from self._doubt(unsure, done)
