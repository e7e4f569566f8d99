"""What clew's own store observed of files while tools ran, as evidence.

A scan of the whole folder covers all calls of its message. Observations of files by name cover those files, where there
are as many of them as calls that could have changed the file. Tools that ran at the same time cannot be told apart:
those of one message count as one run, and of those of several messages only the first state and the last are known.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from clew.agents.base import Unit
from clew.agents.file_evidence import (
    ABSENT,
    OTHER,
    Action,
    Event,
    FileChange,
    WriterFinished,
    WriterStarted,
    WrittenDuringRun,
)
from clew.agents.sage_agent.snapshots import FileState, Observation, ObservedFile, Snapshots
from clew.model.json import JSON
from clew.model.time import parse_time

_CUT_OFF = "a tool that was to change it was interrupted"
_PARALLEL_TOOLS = "several tools ran at the same time"
_PARALLEL_MESSAGES = "tools of several messages ran at the same time"


class Run(NamedTuple):
    """One run of a tool."""

    end: Observation
    """Made after the tool; the one before it, where there is none."""
    opened: Observation | None
    is_over: bool
    """False where there is no observation after the tool."""
    is_scan: bool
    """The whole folder was observed."""

    @property
    def is_certain(self) -> bool:
        """True where all that it left is its own doing."""
        return self.is_over and not self.end.is_late


def pair_observations(observations: Iterable[Observation]) -> list[Run]:
    """The runs of a message: each observation before a tool, with the next one after it that fits."""
    opened: dict[int, Observation] = {}
    runs: dict[int, Run] = {}
    for number, found in enumerate(observations):
        if found.is_open:
            opened[number] = found
            continue
        at = next((at for at in reversed(opened) if _fits(opened[at], found)), None)
        before = opened.pop(at) if at is not None else None
        if before is None and not found.is_late:
            # A tool that seemed to be cut off was not: another one began while it ran.
            late = (at for at, run in runs.items() if run.end.is_late and run.opened and _fits(run.opened, found))
            if (at := next(late, None)) is not None:
                before = runs.pop(at).opened
        is_scan = found.ignored is not None or (before is not None and not before.paths)
        runs[number] = Run(found, before, True, is_scan)
    runs.update({number: Run(found, found, False, not found.paths) for number, found in opened.items()})
    return [runs[number] for number in sorted(runs)]


def _fits(before: Observation, after: Observation) -> bool:
    if before.root != after.root or (before.ignored is None) != (after.ignored is None):
        return False
    if before.ignored != after.ignored and not after.is_late:
        return False  # only by the time of a late scan the settings may have been changed
    return not before.paths or before.paths == after.paths


def merge_parallel_runs(observations: Iterable[Observation]) -> list[Run]:
    """The runs of a message in order, those that overlap as one."""
    runs: list[Run] = []
    group: list[Observation] = []
    running = 0
    for found in observations:
        group.append(found)
        running += found.is_open - (not found.is_open and not found.is_late)
        if running <= 0:
            runs += _merged_runs(group)
            group, running = [], 0
    return [*runs, *pair_observations(group)]


def _merged_runs(group: Sequence[Observation]) -> list[Run]:
    opened = [one for one in group if one.is_open]
    if len(opened) < 2 or len({one.root for one in group}) > 1:
        return pair_observations(group)
    paths = dict.fromkeys(path for one in group for path in one.files)
    ignored = next((one.ignored for one in group if one.ignored is not None), None)
    files = {path: _merged_file(path, group) for path in paths}
    return [Run(group[-1]._replace(files=files, ignored=ignored), opened[0], True, ignored is not None)]


def _merged_file(path: str, group: Sequence[Observation]) -> ObservedFile:
    """A file before and after all tools of a group; what was observed while others ran is uncertain."""
    unknown = FileState(None, None, _PARALLEL_TOOLS)
    late = [one.files[path] for one in group if one.is_late and path in one.files]
    named = late or [one.files[path] for one in group if path in one.files]
    if group[0].is_open and path in group[0].files:
        before = group[0].files[path].before
    elif late or all(file.before == named[0].before for file in named):
        before = named[0].before
    else:
        before = unknown
    ended = (one for one in reversed(group) if not one.is_open and not one.is_late)
    last = next((one for one in ended if one.ignored is not None or path in one.files), None)
    is_open = [one.is_open for one in group if not one.is_late]
    if last is not None and path in last.files:
        after = last.files[path].after
    elif path in group[-1].changed_until:
        after = group[-1].changed_until[path]
    elif last is None or late or sum(path in one.changed_since for one in group) > 1:
        # It was not observed again, or was changed meanwhile.
        after = unknown
    elif is_open != sorted(is_open, reverse=True):
        # A tool began after another had ended.
        after = unknown
    else:
        after = before
    action: Action = "change"
    if before.content is not None and after.content is not None:
        # A change of the mode alone leaves the content as it was.
        is_mode = any(file.action == "change" and file.before == file.after for file in named)
        if before.content == after.content:
            action = "change" if is_mode else "snapshot"
        elif before.content is ABSENT:
            action = "create"
        elif after.content is ABSENT:
            action = "delete"
    modes = [file.modes for file in named if file.modes is not None]
    return ObservedFile(action, before, after, (modes[0][0], modes[-1][1]) if modes else None)


def fully_observed_paths(
    snapshots: Snapshots, runs: Sequence[Run], writer_calls: int, named_calls: Mapping[str, int]
) -> frozenset[str]:
    """The files of which the runs show all that the calls of their message did to them.

    `writer_calls` is the number of its calls that can change any file, `named_calls` that of the calls for one file.
    """
    observed = Counter(path for run in runs if not run.is_scan and run.is_certain for path in run.end.files)
    named = {path for path, count in observed.items() if count >= writer_calls + named_calls.get(path, 0)}
    files: frozenset[str] = frozenset()
    scans = [run for run in runs if run.is_scan]
    # After a late scan nothing is proved: a file may have been changed and changed back.
    if all(run.is_certain for run in scans):
        for run in scans:
            visible = snapshots.visible_to(run.end)
            # Nearly always all messages have the same set, which is kept once.
            files = visible if not files or files is visible else files | visible
    files = files if named <= files else files | named
    uncertain = {path for run in runs if not run.is_certain for path in run.end.files}
    return files if files.isdisjoint(uncertain) else files - uncertain


def change_of(path: str, file: ObservedFile, call: int, done: int) -> FileChange:
    """One file before and after, as evidence."""
    before, after = file.before, file.after
    leaves_other = after.digest == OTHER
    return FileChange(
        path,
        file.action,
        call,
        done,
        "backup",
        before.content,
        after.content,
        digest=(after.digest or None) if after.content is None and not leaves_other else None,
        found=before.digest if before.content is None else None,
        note=after.note if after.content is None else before.note if before.content is None else None,
        modes=file.modes,
        leaves_other=leaves_other,
    )


class _Overlap:
    """Runs of several messages that overlap, one with another."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.running = {run.end.message for run in runs}
        """The messages whose tools are not over yet."""
        self.contested: dict[str, list[Run]] = {}
        """The files that tools of several messages could have changed, each with these runs, the last to end last."""
        for path in dict.fromkeys(path for run in runs for path in run.end.paths):
            seeing = [run for run in runs if run.opened is not None and run.opened.can_see(path)]
            if len({run.end.message for run in seeing}) > 1:
                self.contested[path] = seeing

    def contested_by(self, message: str) -> list[str]:
        """The files that tools of this message could have changed, among others."""
        return [path for path, runs in self.contested.items() if any(run.end.message == message for run in runs)]


def _find_overlaps(snapshots: Snapshots) -> list[_Overlap]:
    runs = [run for observations in snapshots.observations.values() for run in pair_observations(observations)]
    certain = [run for run in runs if run.is_certain and run.opened is not None]
    groups: dict[int, dict[int, Run]] = {}
    """By the offset where each run ends: the group that it belongs to."""
    ended: list[Run] = []
    for run in sorted(certain, key=_end_of):
        assert run.opened is not None
        group = {run.end.start: run}
        for other in ended[bisect_right(ended, run.opened.start, key=_end_of) :]:
            if other.end.message != run.end.message:
                group |= groups[other.end.start]
        groups.update(dict.fromkeys(group, group))
        ended.append(run)
    unique = {id(group): group for group in groups.values() if len(group) > 1}
    return [_Overlap(sorted(group.values(), key=_end_of)) for group in unique.values()]


def _end_of(run: Run) -> int:
    return run.end.start


@dataclass
class PendingMessage:
    """A message whose tools were observed, until they are over."""

    index: int
    uuid: str
    calls: set[str]
    """Those without a result."""
    writer_calls: int
    """How many of its calls can change any file."""
    runs: list[Run]
    observed_paths: frozenset[str]
    contested: frozenset[str] = frozenset()
    """Files that tools of other messages could have changed at the same time."""

    def __post_init__(self) -> None:
        self._paths = {path for run in self.runs for path in run.end.files}
        self._changes: list[FileChange] = []
        """The changes that the calls themselves describe."""
        self._is_left = False
        """The conversation went on, whatever became of the calls."""
        certain = [run.end for run in self.runs if run.is_certain]
        times = (parse_time(end.time) for end in certain)
        self._end_time = max((time for time in times if time is not None), default=None)
        sizes = [end.log_bytes for end in certain if end.log_bytes is not None]
        self._end_log_bytes = max(sizes) if sizes and len(sizes) == len(certain) else None

    def add(self, change: FileChange) -> bool:
        """Keep the change that a call describes, if the file was observed; else return False."""
        if change.call != self.index or change.path not in self._paths or change.action == "read":
            return False
        self._changes.append(change)
        return True

    def is_running(self, time: datetime | None, start: int) -> bool | None:
        """Whether tools were running when a message at this time and offset was written; None where nobody knows."""
        if self._end_log_bytes is not None:
            return start < self._end_log_bytes
        if self._end_time is None or time is None:
            return None
        return time < self._end_time

    def is_over(self, time: datetime | None, start: int, goes_on: bool) -> bool:
        """True where all tools had ended when a message was written."""
        self._is_left = self._is_left or goes_on
        if self.calls and not self._is_left:
            return False
        is_running = self.is_running(time, start)
        return not is_running if is_running is not None else not self.calls or self._end_time is None

    def written_during(self, index: int) -> WrittenDuringRun:
        """A message that was written before the tools had ended."""
        return WrittenDuringRun(index, self.index, self.observed_paths | self._paths)

    def changes(self, done: int) -> Iterator[FileChange]:
        """What was done to files, in order."""
        for run in self.runs:
            for path, state in run.opened.changed_since.items() if run.opened is not None else ():
                if path not in run.end.files:
                    # It had changed before the tool ran.
                    other = state._replace(digest=OTHER), FileState(None, None, state.note)
                    is_known = state.content is not None
                    file = ObservedFile("snapshot", state, state) if is_known else ObservedFile("outside", *other)
                    yield change_of(path, file, self.index, done)
            for path in run.end.files:
                yield from self._file_changes(path, run, done)
            for path, state in run.end.changed_until.items():
                if path not in run.end.files:
                    if not run.is_over:
                        file = ObservedFile("change", state, FileState(None, None, _CUT_OFF))
                    else:
                        # A link or an unreadable file is not nothing: a file found there later was made in between.
                        is_known = state.content is not None or bool(state.digest)
                        state = state if is_known else state._replace(digest=OTHER)
                        file = ObservedFile("snapshot", state, state)
                    yield change_of(path, file, self.index, done)

    def _file_changes(self, path: str, run: Run, done: int) -> Iterator[FileChange]:
        """What a run, or the calls of its message, did to a file."""
        calls = [change for change in self._changes if change.path == path]
        runs = [one for one in self.runs if path in one.end.files]
        has_more_calls = len(calls) > len(runs) and not self.writer_calls and not any(one.is_scan for one in self.runs)
        if calls and (not run.is_over or has_more_calls):
            if run is runs[0]:
                yield from _calls_between(calls, runs, path)
            return
        change = change_of(path, run.end.files[path], self.index, done)
        if not run.is_certain:
            change = change._replace(action="change", after=None, digest=None, note=_CUT_OFF)
        elif change.after is None and len(calls) == len(runs) == 1:
            # No copy was kept, but the content may follow from the edit of the call.
            change = change._replace(edit=calls[0].edit, source=calls[0].source)
        yield change

    def cut_off(self) -> Iterator[_CutOff]:
        """The runs that were cut off."""
        for run in self.runs:
            if not run.is_certain:
                # Where the folder was not scanned again, it may be any file.
                files = frozenset(run.end.files) if run.is_over or not run.is_scan else None
                yield _CutOff(self.index, run.end.root, files)


def _calls_between(calls: Sequence[FileChange], runs: Sequence[Run], path: str) -> Iterator[FileChange]:
    """What several calls did to a file, from its first observed state to the digest of the last."""
    before = runs[0].end.files[path].before
    after = runs[-1].end.files[path].after if runs[-1].is_over else FileState(None)
    for number, change in enumerate(calls):
        if number == 0:
            change = change._replace(before=before.content, found=before.digest)
        if number == len(calls) - 1 and after.digest is not None:
            change = change._replace(digest=after.digest, note=after.note)
        yield change


class _CutOff(NamedTuple):
    """Files that a tool was to change which was cut off, until they are observed again."""

    call: int
    root: str
    files: frozenset[str] | None
    """None: any."""
    observed: frozenset[str] = frozenset()

    @property
    def key(self) -> str:
        return f"cut off at {self.call} in {self.root}"


class ObservedRuns:
    """The messages whose tools were observed, as a session is read."""

    def __init__(self, snapshots: Snapshots) -> None:
        self._snapshots = snapshots
        self._pending: list[PendingMessage] = []
        self._cut_off: list[_CutOff] = []
        self._overlaps: dict[str, list[_Overlap]] = {}
        for overlap in _find_overlaps(snapshots):
            for message in overlap.running:
                self._overlaps.setdefault(message, []).append(overlap)

    def begin(self, message: PendingMessage) -> Iterator[WriterStarted | WriterFinished]:
        """A message with runs."""
        index, uuid, runs = message.index, message.uuid, message.runs
        yield from self.observe([run.opened or run.end for run in runs], index)
        message.contested = frozenset(path for one in self._overlaps.get(uuid, ()) for path in one.contested_by(uuid))
        self._pending.append(message)
        if any(run.is_scan and not run.is_over for run in runs):
            yield WriterStarted(_key(index), index, "a tool that was cut off", is_cut_off=True)
        elif not message.writer_calls and any(run.is_scan for run in runs):
            # None of its calls can change any file, but the folder was scanned for something that ran.
            yield WriterStarted(_key(index), index, "a tool that was watched", message.observed_paths)

    def observe(self, observations: Sequence[Observation], index: int) -> Iterator[WriterStarted | WriterFinished]:
        """Files were observed: whatever happened to them after a tool was cut off is over."""
        named = frozenset(path for one in observations for path in one.files)
        roots = {one.root for one in observations if one.ignored is not None}
        cut_off, self._cut_off = self._cut_off, []
        for one in cut_off:
            yield WriterFinished(one.key, index)
            rest = one._replace(observed=one.observed | named)
            is_over = rest.files is not None and rest.files <= rest.observed
            if one.root not in roots and not is_over:
                yield self._start(rest, index)

    def _start(self, cut_off: _CutOff, since: int) -> WriterStarted:
        """The changes of a tool that was cut off cannot be told from those of others after it."""
        self._cut_off.append(cut_off)
        what = "an interrupted tool, or something after it,"
        return WriterStarted(cut_off.key, since, what, cut_off.observed, only=cut_off.files)

    def add(self, change: FileChange) -> bool:
        """Keep the change that a call describes, if the file was observed; else return False."""
        return any(one.add(change) for one in self._pending)

    def answer(self, call: JSON) -> None:
        """A call has its result."""
        for one in self._pending:
            one.calls.discard(call)

    def reach(self, index: int, unit: Unit, goes_on: bool) -> Iterator[Event]:
        """A message was written: what was over then. `goes_on`: it is a prompt or a reply."""
        if not self._pending:
            return
        time, start = parse_time(unit.value.get("timestamp")), unit.start
        for one in [one for one in self._pending if one.index < index and one.is_over(time, start, goes_on)]:
            self._pending.remove(one)
            yield from self._end(one, index)
        for one in self._pending:
            if one.index < index and one.is_running(time, start):
                yield one.written_during(index)

    def finish(self, index: int) -> Iterator[Event]:
        """The end of the session: everything ends that no message saw the end of."""
        for one in self._pending:
            yield from self._end(one, index + 1)
        self._pending.clear()

    def _end(self, one: PendingMessage, done: int) -> Iterator[Event]:
        yield from (change for change in one.changes(done) if change.path not in one.contested)
        yield WriterFinished(_key(one.index), done)
        for overlap in self._overlaps.pop(one.uuid, ()):
            yield from self._end_overlap(overlap, one, done)
        for cut_off in one.cut_off():
            yield self._start(cut_off, done)

    def _end_overlap(self, overlap: _Overlap, one: PendingMessage, done: int) -> Iterator[FileChange]:
        """The contested files: changed somehow; and their state, if this was the last message of all."""
        for path in overlap.contested_by(one.uuid):
            first = min(overlap.contested[path], key=lambda run: run.opened.start if run.opened is not None else 0)
            file = self._snapshots.load(first.end).files.get(path) if first.end.message == one.uuid else None
            before = file.before.content if file is not None else None
            yield FileChange(path, "change", one.index, done, "backup", before, None, note=_PARALLEL_MESSAGES)
        overlap.running.discard(one.uuid)
        for path, runs in overlap.contested.items() if not overlap.running else ():
            # A file that the last scan does not name is as it was before that run, which is not known.
            file = self._snapshots.load(runs[-1].end).files.get(path)
            state = file.after if file is not None else FileState(None, None, _PARALLEL_MESSAGES)
            yield FileChange(path, "snapshot", done, done, "backup", state.content, state.content, note=state.note)


def _key(index: int) -> str:
    return f"watched at {index}"
