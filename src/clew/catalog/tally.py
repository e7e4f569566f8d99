"""What was used, counted from the sources themselves: for statistics where there is no catalog, or none that is fresh.

Each source is counted by itself, in as many processes as there are cores. A call that several sources hold counts once,
by the rule of the catalog: where it was first, in a session rather than a sub-agent of it.
"""

from __future__ import annotations

import gc
from array import array
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache, partial
from itertools import chain
from typing import Any, NamedTuple, cast

from clew.agents.base import Agent, SourceFile, Tallies, session_object, skim
from clew.catalog.keys import session_key
from clew.catalog.statements import TOKENS
from clew.derive.calls import UNKNOWN, Calls, sound
from clew.derive.collect import SYNTHETIC
from clew.derive.session import project_of
from clew.derive.usage import FIELDS
from clew.errors import SourceUnreadable
from clew.io.parallel import spread
from clew.model.time import microseconds
from clew.pricing import PriceTable, prices

DAY = 86_400_000_000
WORTH_SPREADING = 4 << 20
"""From this many bytes on, several processes are quicker than one."""
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
    project: str
    path: str
    names: bytes
    """Of the calls, as numbers."""
    groups: list[Group]


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
    looks = _looks(wanted)
    if not by_call:
        shared = _sharing(looks)
        again = _looks([wanted[at]._replace(by_call=True) for at in shared])
        for at, look in zip(shared, again, strict=True):
            looks[at] = look
    counted = []
    for (agent, source, *_), look in zip(wanted, looks, strict=True):
        if not isinstance(look, str) and look[-1]:
            session, is_agent, project, names, groups = look
            known = [Group(*group) for group in groups]
            counted.append(Counted(agent.id, session, is_agent, project, str(source.path), names, known))
    return counted, [look for look in looks if isinstance(look, str)]


def _looks(wanted: Sequence[_Wanted]) -> list[Any]:
    total = sum(each.source.size for each in wanted)
    return spread(partial(_look, prices()), wanted, workers=1 if total < WORTH_SPREADING else None)


def _sharing(looks: Sequence[Any]) -> list[int]:
    """The sources that share calls with others, by their places."""
    names = [set(array("q", look[3])) if not isinstance(look, str) else set() for look in looks]
    twice = _repeated(names)
    return [at for at, found in enumerate(names) if not twice.isdisjoint(found)] if twice else []


def _repeated(named: Iterable[set[int]]) -> set[int]:
    """The names that stand in several sources."""
    seen: set[int] = set()
    twice: set[int] = set()
    for names in named:
        if not seen.isdisjoint(names):
            twice |= seen & names
        seen |= names
    return twice


def _look(table: PriceTable, wanted: _Wanted) -> Any:
    agent, source, projects, by_call = wanted
    was_collecting = gc.isenabled()
    # Nothing here goes in circles, and there is much of it.
    gc.disable()
    try:
        calls = cast(Tallies, agent).tally(source) if _tallies(type(agent)) else general(agent, source)
        if projects and calls.folder is None and calls.by_key:
            header = session_object(agent, source, skim(agent, source, tree=False, counts=False))
            calls.folder = header["workspace"]
        # Processes that work together agree on hashes: they were forked.
        names = array("q", map(hash, calls.by_key)).tobytes()
        groups = None if by_call else _summed(table, calls)
        groups = _grouped(table, calls) if groups is None else groups
        return [calls.session, calls.is_agent, project_of(calls.folder) or "", names, groups]
    except SourceUnreadable as error:
        return str(error)
    finally:
        if was_collecting:
            gc.enable()


@lru_cache
def _tallies(agent: type) -> bool:
    return issubclass(agent, Tallies)


def general(agent: Agent, source: SourceFile) -> Calls:
    """The calls of a source of any agent, from its messages."""
    facts = skim(agent, source, tree=False, counts=True)
    header = session_object(agent, source, facts)
    calls = Calls()
    calls.session, calls.is_agent = header["id"], bool(header["is_agent_session"])
    calls.folder, calls.branch = header["workspace"] or facts.cwd, facts.git_branch
    branch = None
    for records, unit in enumerate(agent.read(source, facts), 1):
        metadata = (unit.value.get("metadata") or {}) if unit.is_message else {}
        branch = metadata.get("git_branch") or branch
        usage, model = metadata.get("token_usage"), (metadata.get("model") or {}).get("name")
        if usage and model != SYNTHETIC:
            key = metadata.get("message_id") or unit.value.get("uuid") or f"line {records}"
            counts = [usage.get(name, UNKNOWN) for name in FIELDS]
            calls.note(key, model, unit.value.get("timestamp"), branch, counts)
    return calls


def _summed(table: PriceTable, calls: Calls) -> list[Group] | None:
    """Groups without a look at single times: those of a day begin alike. None where one is spelled in another way."""
    groups: dict[tuple[str, str | None, str], tuple[list[str], list[list[int]]]] = {}
    model, branch, day = None, None, ""
    times: list[str] = []
    rows: list[list[int]] = []
    for said, time, on, counts in calls.by_key.values():
        if type(time) is not str or len(time) != 24 or time[23] != "Z":
            return None
        # Calls that follow each other are mostly alike.
        if said != model or on != branch or time[:10] != day:
            model, branch, day = said, on, time[:10]
            times, rows = groups.setdefault((said, branch, day), ([], []))
        times.append(time)
        rows.append(counts)
    found = []
    for (said, on, _), (times, rows) in groups.items():
        first, last = _since_epoch(min(times)), _since_epoch(max(times))
        if not first // DAY or first // DAY != last // DAY:
            return None
        tokens = _tokens(*zip(*rows, strict=True))
        found.append(_group(table, said, on or calls.branch or "", first // DAY, (first, last), tokens))
    return found


def _grouped(table: PriceTable, calls: Calls) -> list[Group]:
    """Groups that hold every call."""
    rows: dict[tuple[str, str, int], list[list[int]]] = {}
    for key, (model, told, branch, counts) in calls.by_key.items():
        time = _since_epoch(told)
        group = (model, branch or calls.branch or "", time // DAY)
        rows.setdefault(group, []).append([hash(key), time, *counts])
    groups = []
    for (model, branch, day), found in rows.items():
        names, times, *counts = zip(*found, strict=True)
        tokens = _tokens(*counts)
        packed = array("q", chain(names, times, *tokens)).tobytes()
        groups.append(_group(table, model, branch, day, times, tokens, packed))
    return groups


def _since_epoch(time: Any) -> int:
    """Microseconds since 1970; 0 where the time is none, or before that."""
    try:
        # Nearly all times are spelled like this.
        if len(time) == 24 and time[23] == "Z":
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
    """Columns in the order of FIELDS in that of TOKENS."""
    if UNKNOWN in short:
        # What is not said to live for an hour in a cache lives there for five minutes.
        short = tuple(map(_short_lived, created, short, long))
    return [sound(column) for column in (given, said, read, short, long, reasoning)]


def _group(
    table: PriceTable,
    model: str,
    branch: str,
    day: int,
    times: Sequence[int],
    tokens: Sequence[Sequence[int]],
    packed: bytes = b"",
) -> Group:
    sums = tuple(map(_sum, tokens))
    cost, calls = table.costs(model, tokens[:-1], sums[:-1]), len(tokens[0])
    priced = 0 if cost is None else calls
    return Group(model, branch, day, calls, priced, sums, cost or 0, min(times), max(times), packed)


def _short_lived(created: int, short: int, long: int) -> int:
    if short != UNKNOWN or created == UNKNOWN:
        return short
    return created - max(0, long)


def uses(counted: Sequence[Counted], *, one_by_one: bool = False) -> list[Use]:
    """All calls, each once, as far as possible in groups."""
    table = prices()
    twice = _repeated(set(array("q", each.names)) for each in counted if each.groups[0].packed)
    copies: dict[int, list[_Copy]] = {}
    found: list[Use] = []
    for each in counted:
        session = session_key(each.agent, each.session)
        is_repeated = bool(twice) and not twice.isdisjoint(array("q", each.names))
        groups: Iterable[Group] = each.groups
        if is_repeated or one_by_one:
            groups = _apart(table, each, twice, copies, one_by_one)
        found += [Use(session, each.agent, each.project, group) for group in groups]
    found += (_merged(table, same) for same in copies.values())
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


def _merged(table: PriceTable, copies: list[_Copy]) -> Use:
    """One call from its copies: the largest of each count, in the copy that counts."""
    _, each, group, row = min(copies, key=lambda copy: copy.place)
    tokens = [[max(column)] for column in zip(*(copy.row[2:] for copy in copies), strict=True)]
    merged = _group(table, group.model, group.branch, group.day, [row[1]], tokens)
    return Use(session_key(each.agent, each.session), each.agent, each.project, merged)


def _sum(column: Sequence[int]) -> int | None:
    """The sum of what is known; None where nothing is."""
    if min(column) != UNKNOWN:
        return sum(column)
    if max(column) == UNKNOWN:
        return None
    return sum(number for number in column if number != UNKNOWN)
