"""What was used, counted from the sources themselves: for statistics where there is no catalog, or none that is fresh.

Each source is counted by itself, in as many processes as there are cores. A call that several sources hold counts once,
by the rule of the catalog: where it was first, in a session rather than a sub-agent of it.
"""

from __future__ import annotations

import gc
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from clew.agents.base import Agent, EventsWithFacts, SourceFile, session_object
from clew.analysis.calls import UNKNOWN, Calls, Columns, sound
from clew.analysis.pricing import PriceTable, prices
from clew.analysis.session import project_of
from clew.analysis.usage import FIELDS, MOST
from clew.catalog.ids import session_key
from clew.catalog.statements import TOKENS
from clew.errors import SourceUnreadable
from clew.io.workers import run_in_workers
from clew.model import Message
from clew.model.time import microseconds

DAY = 86_400_000_000
WORTH_SPREADING = 4 << 20
"""From this many bytes on, several processes are quicker than one."""
_TIME = len("2026-11-01T10:00:00.000Z")
"""Nearly all times are spelled so."""
_WIDTH = 2 + len(TOKENS)
"""Of a packed call: its name, its time, and its tokens."""


class Group(NamedTuple):
    """The calls of one session with one model, on one branch and day."""

    model: str
    branch: str
    day: int
    calls: int
    priced_calls: int
    tokens: tuple[int | None, ...]
    """In the order of TOKENS; None: no call said anything about it."""
    cost_nano: int
    min_ts_us: int
    max_ts_us: int
    packed: bytes
    """The calls as numbers, column by column; empty where nobody looks at them one by one."""

    def each(self) -> Iterator[tuple[int, ...]]:
        """Name, time and tokens of every call."""
        numbers = array("q", self.packed)
        size = len(numbers) // _WIDTH
        return zip(*(numbers[at * size : (at + 1) * size] for at in range(_WIDTH)), strict=True)


class Counted(NamedTuple):
    """What one source comes to."""

    agent: str
    session: str
    is_agent: bool
    folder: str
    path: str
    names: bytes
    """Of the calls, as numbers."""
    groups: list[Group]

    @property
    def project(self) -> str:
        """The last part of the folder."""
        return project_of(self.folder) or ""


class Use(NamedTuple):
    """Calls that are alike in all that statistics tell apart; a single one where they are looked at one by one."""

    session_id: str
    agent: str
    project: str
    group: Group


class _Wanted(NamedTuple):
    agent: Agent
    source: SourceFile
    projects: bool
    by_call: bool


def count(
    sources: Iterable[tuple[Agent, SourceFile]], *, projects: bool, by_call: bool = False
) -> tuple[list[Counted], list[str]]:
    """What each source comes to, and what could not be read. Without `projects` some may not be known.

    Calls are looked at one by one only where that is asked for, or a source shares some with another.
    """
    order = sorted(sources, key=lambda found: found[1].size, reverse=True)
    wanted = [_Wanted(agent, source, projects, by_call) for agent, source in order]
    seen: set[int] = set()
    looks = _looks(wanted, seen)
    table = prices()
    for at in () if by_call else _sharing(looks, seen):
        looks[at] = _by_call(table, looks[at])
    counted = []
    for (agent, source, *_), look in zip(wanted, looks, strict=True):
        if not isinstance(look, str) and look[4]:
            session, is_agent, folder, names, groups, *_ = look
            known = [Group(*group) for group in groups]
            counted.append(Counted(agent.id, session, is_agent, folder, str(source.path), names, known))
    return counted, [look for look in looks if isinstance(look, str)]


def _looks(wanted: Sequence[_Wanted], seen: set[int]) -> list[Any]:
    """A look at each source; `seen` are then the names of the calls that this process saw."""
    total = sum(each.source.size for each in wanted)
    workers = 1 if total < WORTH_SPREADING else None
    return list(run_in_workers(partial(_look, prices(), seen), wanted, workers=workers))


def _sharing(looks: Sequence[Any], seen: set[int]) -> list[int]:
    """The sources that share calls with others, by their places. Each process looked among its own already."""
    names = [array("q", b"" if isinstance(look, str) else look[3]) for look in looks]
    shared: set[int] = set()
    others: dict[int, list[array[int]]] = {}
    for look, found in zip(looks, names, strict=True):
        if isinstance(look, str):
            continue
        if look[5]:
            shared.update(found)
        if look[6] != os.getpid():
            others.setdefault(look[6], []).append(found)
    for number, theirs in enumerate(others.values(), 1):
        for found in theirs:
            if not seen.isdisjoint(found):
                shared.update(found)
        if number < len(others):
            seen.update(*theirs)
    return [at for at, found in enumerate(names) if not shared.isdisjoint(found)] if shared else []


def _repeated(named: Iterable[set[int]]) -> set[int]:
    """The names that stand in several sources."""
    seen: set[int] = set()
    twice: set[int] = set()
    for names in named:
        if not seen.isdisjoint(names):
            twice |= seen & names
        seen |= names
    return twice


def _look(table: PriceTable, seen: set[int], wanted: _Wanted) -> Any:
    agent, source, projects, by_call = wanted
    was_collecting = gc.isenabled()
    # Nothing here goes in circles, and there is much of it.
    gc.disable()
    try:
        calls = agent.usage_calls(source) or general(agent, source)
        keys = calls.names
        if projects and calls.folder is None and keys:
            header = session_object(agent, source, agent.facts(source))
            calls.folder = header["workspace"]
        # Processes that work together agree on hashes: they were forked.
        names = array("q", map(hash, keys))
        before = len(seen)
        seen.update(names)
        repeats = len(seen) < before + len(names)
        columns = calls.columns or _columns(calls)
        groups = None if by_call else _summed(table, columns, calls.branch)
        kept = _kept(columns, calls.branch) if groups else None
        groups = _grouped(table, names, columns, calls.branch) if groups is None else groups
        return [calls.session, calls.is_agent, calls.folder or "", names.tobytes(), groups, repeats, os.getpid(), kept]
    except SourceUnreadable as error:
        return str(error)
    finally:
        if was_collecting:
            gc.enable()


def general(agent: Agent, source: SourceFile) -> Calls:
    """The calls of a source of any agent, from its events."""
    events = EventsWithFacts(agent, source)
    times = [event.timestamp or None for event in events if type(event) is Message]
    facts = events.facts
    header = session_object(agent, source, facts)
    calls = Calls()
    calls.session, calls.is_agent = header["id"], bool(header["is_agent_session"])
    calls.folder, calls.branch = header["workspace"] or facts.cwd, facts.git_branch
    calls.take(facts.ledger, times)
    return calls


def _columns(calls: Calls) -> Columns:
    """The calls as columns, where they did not come so."""
    rows = calls.by_key.values()
    if not rows:
        return Columns((), (), (), (), [()] * len(FIELDS))
    models, times, branches, counts = zip(*rows, strict=True)
    return Columns((), models, times, branches, list(zip(*counts, strict=True)))


def _kept(columns: Columns, branch: str | None) -> bytes:
    """What it takes to look at calls one by one after all, packed: few sources share calls with others."""
    _, models, times, branches, counts = columns
    is_one = models.count(models[0]) == len(models) and branches.count(branches[0]) == len(branches)
    place = (models[:1], branches[:1]) if is_one else (models, branches)
    try:
        return _pack((times, *place, counts, branch))
    except OverflowError:
        return _pack((times, *place, [sound(column) for column in counts], branch))


_pack = msgspec.msgpack.Encoder().encode


def _by_call(table: PriceTable, look: Any) -> Any:
    """What a source comes to, call by call."""
    if look[7] is None:
        return look
    times, models, branches, counts, branch = msgspec.msgpack.decode(look[7])
    size = len(times)
    columns = Columns((), models * (size // len(models)), times, branches * (size // len(branches)), counts)
    return [*look[:4], _grouped(table, array("q", look[3]), columns, branch), *look[5:]]


def _summed(table: PriceTable, columns: Columns, branch: str | None) -> list[Group] | None:
    """Groups without a look at single times: those of a day begin alike. None where one is spelled in another way."""
    if not _plainly_timed(columns.times):
        return None if columns.times else []
    groups = [_one_day(table, part, branch) for part in _alike(columns)]
    return [group for group in groups if group is not None] if None not in groups else None


def _plainly_timed(times: Sequence[Any]) -> bool:
    """True where all times are spelled as nearly all are, so that they can be told apart as texts."""
    return set(map(type, times)) == {str} and set(map(len, times)) == {_TIME} and {time[-1] for time in times} == {"Z"}


def _alike(columns: Columns) -> Iterator[Columns]:
    """The columns cut into those of one model, branch and day; nearly always they are one."""
    _, models, times, branches, counts = columns
    is_one_day = min(times)[:10] == max(times)[:10]
    if is_one_day and models.count(models[0]) == len(models) and branches.count(branches[0]) == len(branches):
        yield columns
        return
    places: dict[tuple[Any, ...], list[int]] = {}
    for at, (model, time, branch) in enumerate(zip(models, times, branches, strict=True)):
        places.setdefault((model, branch, time[:10]), []).append(at)
    for found in places.values():
        of = [[column[at] for at in found] for column in (models, times, branches, *counts)]
        yield Columns((), of[0], of[1], of[2], of[3:])


def _one_day(table: PriceTable, part: Columns, branch: str | None) -> Group | None:
    """The group of calls that are alike; None where their day is none."""
    first, last = _since_epoch(min(part.times)), _since_epoch(max(part.times))
    if not first // DAY or first // DAY != last // DAY:
        return None
    return _group(
        table, part.models[0], part.branches[0] or branch or "", first // DAY, (first, last), _tokens(*part.counts)
    )


def _grouped(table: PriceTable, names: Sequence[int], columns: Columns, first: str | None) -> list[Group]:
    """Groups that hold every call; `first` is the branch of those that name none."""
    rows: dict[tuple[str, str, int], list[list[int]]] = {}
    each = zip(names, columns.models, columns.times, columns.branches, zip(*columns.counts, strict=True), strict=True)
    for name, model, told, branch, given in each:
        time = _since_epoch(told)
        rows.setdefault((model, branch or first or "", time // DAY), []).append([name, time, *given])
    groups = []
    for (model, branch, day), found in rows.items():
        keys, times, *counts = zip(*found, strict=True)
        tokens = [sound(column) for column in _tokens(*counts)]
        packed = array("q", chain(keys, times, *tokens)).tobytes()
        groups.append(_group(table, model, branch, day, times, tokens, packed))
    return groups


def _since_epoch(time: Any) -> int:
    """Microseconds since 1970; 0 where the time is none, or before that."""
    try:
        # Nearly all times are spelled like this.
        if len(time) == _TIME and time[-1] == "Z":
            # As a float it is exact to the microsecond, for some centuries to come.
            return max(0, round(datetime.fromisoformat(time).timestamp() * 1e6))
    except (TypeError, ValueError):
        pass
    return max(0, microseconds(time) or 0)


def _tokens(
    given: Sequence[int],
    said: Sequence[int],
    created: Sequence[int],
    read: Sequence[int],
    short: Sequence[int],
    long: Sequence[int],
    reasoning: Sequence[int],
) -> list[Sequence[int]]:
    """Columns in the order of FIELDS in that of TOKENS; some counts may be such that cannot be."""
    if UNKNOWN in short:
        # What is not said to live for an hour in a cache lives there for five minutes.
        short = tuple(map(_short_lived, created, short, long))
    return [given, said, read, short, long, reasoning]


def _group(
    table: PriceTable,
    model: str,
    branch: str,
    day: int,
    times: Sequence[int],
    tokens: Sequence[Sequence[int]],
    packed: bytes = b"",
) -> Group:
    tokens, sums = zip(*map(_added, tokens), strict=True)
    cost, calls = table.costs(model, tokens[:-1], sums[:-1]), len(tokens[0])
    priced = 0 if cost is None else calls
    return Group(model, branch, day, calls, priced, sums, cost or 0, min(times), max(times), packed)


def _short_lived(created: int, short: int, long: int) -> int:
    if short != UNKNOWN or created == UNKNOWN:
        return short
    return created - max(0, long)


def uses(
    counted: Sequence[Counted], *, one_by_one: bool = False, named: Callable[[str, str], str] = session_key
) -> list[Use]:
    """All calls, each once, as far as possible in groups; `named` names the sessions."""
    table = prices()
    twice = _repeated(set(array("q", each.names)) for each in counted if each.groups[0].packed)
    copies: dict[int, list[_Copy]] = {}
    found: list[Use] = []
    for each in counted:
        session, project = named(each.agent, each.session), each.project
        groups: Iterable[Group] = each.groups
        if one_by_one or (each.groups[0].packed and not twice.isdisjoint(array("q", each.names))):
            groups = _apart(table, each, twice, copies, one_by_one)
        found += [Use(session, each.agent, project, group) for group in groups]
    for each, group in _merged(table, copies.values(), one_by_one):
        found.append(Use(named(each.agent, each.session), each.agent, each.project, group))
    return found


class _Copy(NamedTuple):
    place: tuple[Any, ...]
    """What decides which copy counts."""
    each: Counted
    group: Group
    row: tuple[int, ...]


def _apart(
    table: PriceTable, each: Counted, twice: set[int], copies: dict[int, list[_Copy]], one_by_one: bool
) -> Iterator[Group]:
    """The groups of a source without the calls that stand elsewhere too, which are put with their copies."""
    for group in each.groups:
        kept: list[tuple[int, ...]] = []
        for row in group.each():
            if row[0] in twice:
                place = (row[1] == 0, row[1], each.is_agent, each.session, each.path)
                copies.setdefault(row[0], []).append(_Copy(place, each, group, row))
            else:
                kept.append(row)
        for rows in [[row] for row in kept] if one_by_one else [kept] if kept else []:
            _, times, *tokens = zip(*rows, strict=True)
            yield _group(table, group.model, group.branch, group.day, times, tokens)


def _merged(table: PriceTable, found: Iterable[list[_Copy]], one_by_one: bool) -> Iterator[tuple[Counted, Group]]:
    """Calls from their copies: the largest of each count, in the copy that counts."""
    places: dict[tuple[int, int], tuple[_Copy, list[list[int]]]] = {}
    for number, copies in enumerate(found):
        first = min(copies, key=lambda copy: copy.place)
        row = list(map(max, *(copy.row for copy in copies))) if len(copies) > 1 else list(first.row)
        row[1] = first.row[1]
        place = (id(first.group), number if one_by_one else 0)
        places.setdefault(place, (first, []))[1].append(row)
    for (_, each, group, _), rows in places.values():
        _, times, *tokens = zip(*rows, strict=True)
        yield each, _group(table, group.model, group.branch, group.day, times, tokens)


def _added(column: Sequence[int]) -> tuple[Sequence[int], int | None]:
    """A column, without counts that cannot be, and its sum; None where nothing is known."""
    least, most = min(column), max(column)
    if least >= 0 and most <= MOST:
        return column, sum(column)
    column = sound(column)
    known = [number for number in column if number != UNKNOWN]
    return column, sum(known) if known else None
