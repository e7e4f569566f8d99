"""Tools of one message that ran at the same time, each watched: nothing tells who did what, so they are one run.

Each was looked at from its own beginning to its own end; what all of them did lies between the first beginning and the
last end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clew.agents.file_evidence import ABSENT, Action
from clew.agents.sage_agent.observed_runs import Run, runs_of
from clew.agents.sage_agent.snapshots import Moment, Taken, Told

_AT_ONCE = "several tools ran at the same time"


def together(records: Iterable[Taken]) -> list[Run]:
    """The runs of a message in their order, those that overlap as one."""
    runs: list[Run] = []
    group: list[Taken] = []
    running = 0
    for record in records:
        group.append(record)
        running += record.is_open - (not record.is_open and not record.is_late)
        if running <= 0:
            runs += _runs(group)
            group, running = [], 0
    return [*runs, *runs_of(group)]


def _runs(group: Sequence[Taken]) -> list[Run]:
    opened = [record for record in group if record.is_open]
    if len(opened) < 2 or len({record.root for record in group}) > 1:
        return runs_of(group)
    ended = [record for record in group if not record.is_open and not record.is_late]
    files = {path: _told(path, group, ended) for path in dict.fromkeys(path for one in group for path in one.files)}
    ignored = next((one.ignored for one in group if one.ignored is not None), None)
    whole = ended[-1]._replace(files=files, ignored=ignored)
    return [Run(whole, any(_is_whole(one) for one in group), True, opened[0])]


def _is_whole(record: Taken) -> bool:
    return record.ignored is not None


def _told(path: str, group: Sequence[Taken], ended: Sequence[Taken]) -> Told:
    """A file before all of them and behind. What was noted while others ran tells only that it was not the same."""
    meanwhile = [one for one in group if path in one.found or (one.is_late and path in one.files)][1:]
    noted = [one.files[path] for one in group if one.is_late and path in one.files]
    named = noted or [one.files[path] for one in group if path in one.files]
    before = _found(path, group[0]) or (
        named[0].before if noted or _agree([told.before for told in named]) else Moment(None, None, _AT_ONCE)
    )
    last = next(one for one in reversed(ended) if _is_whole(one) or path in one.files)
    if path in last.files:
        after = last.files[path].after
    elif path in group[-1].left:
        after = group[-1].left[path]
    elif noted or meanwhile or not _is_plain(group):
        after = Moment(None, None, _AT_ONCE)
    else:
        after = before
    modes = [told.modes for told in named if told.modes is not None]
    return Told(_action(before, after, named), before, after, (modes[0][0], modes[-1][1]) if modes else None)


def _found(path: str, first: Taken) -> Moment | None:
    """What the first of them found, where it looked at the file by its name."""
    return first.files[path].before if first.is_open and path in first.files else None


def _is_plain(group: Sequence[Taken]) -> bool:
    """True where all had begun before any was over."""
    begun = [record.is_open for record in group if not record.is_late]
    return begun == sorted(begun, reverse=True)


def _agree(moments: Sequence[Moment]) -> bool:
    return all(moment == moments[0] for moment in moments)


def _action(before: Moment, after: Moment, named: Sequence[Told]) -> Action:
    if before.state is None or after.state is None:
        return "change"
    if before.state == after.state:
        # A change of the mode alone leaves the content as it was.
        is_mode = any(told.action == "change" and told.before == told.after for told in named)
        return "change" if is_mode else "snapshot"
    return "create" if before.state is ABSENT else "delete" if after.state is ABSENT else "change"
