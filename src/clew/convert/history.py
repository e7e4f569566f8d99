"""The messages of a session that are converted: one path, in its order, with the history its file only refers to."""

from __future__ import annotations

import marshal
import shutil
import weakref
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cached_property, partial
from heapq import heappop, heappush
from itertools import count, islice
from operator import gt
from pathlib import Path
from tempfile import SpooledTemporaryFile, mkdtemp

import msgspec

from clew.agents.base import Agent, SourceFile, Unit, open_main, with_current_size
from clew.analysis.facts import Facts
from clew.analysis.links import MESSAGE, NONE, SAID, SIDECHAIN, Links
from clew.analysis.tree import find_path
from clew.convert.losses import Loss
from clew.errors import UsageError
from clew.io.compress import SUFFIXES

AT_HAND = 8 << 20
"""So many bytes are held in memory."""
_NOT = -1


class Held:
    """Messages by their index; each is taken once. `last`: the highest index there may be."""

    def __init__(self, last: int) -> None:
        self._file = SpooledTemporaryFile(max_size=AT_HAND)  # noqa: SIM115 - closed on leaving
        self._places = array("q", [_NOT]) * (last + 1)
        self._end = 0

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()

    def __contains__(self, index: int) -> bool:
        return 0 < index < len(self._places) and self._places[index] != _NOT

    def put(self, unit: Unit) -> None:
        """Hold a message."""
        self._places[unit.value["index"]] = self._end
        self._file.seek(self._end)
        self._file.write(marshal.dumps([*unit]))
        self._end = self._file.tell()

    def take(self, index: int) -> Unit:
        """A message that is held."""
        self._file.seek(self._places[index])
        self._places[index] = _NOT
        unit: Unit = Unit(*marshal.load(self._file))
        return unit


class BranchSelection:
    """The messages of one path, and how many others there are."""

    def __init__(self, facts: Facts, branch: str | None, *, ends: bool = False) -> None:
        """`ends`: the branch ends with the message that it is named by, whatever else follows that."""
        links = facts.tree.links
        follow_nameless(links)
        self.bridges = bridge(links)
        """For a message whose parent is missing the uuid it follows instead, by its index."""
        named = NONE if branch is None else named_node(links, branch)
        leaf = named if ends else _leaf(facts) if branch is None else _end(links, named)
        path = find_path(links, leaf)
        self._chosen = bytearray(facts.messages + 1)
        for node in path:
            self._chosen[links.messages[node]] = 1
        self._order = _order(links, path)
        is_aside = leaf != NONE and bool(links.flags[leaf] & SIDECHAIN)
        self.left_out = 0
        """How many things that were said stand on other branches."""
        self.aside: Counter[str | None] = Counter()
        """How many sub-agents said beside the conversation, by the uuid of the message they begin with."""
        firsts = _firsts(links)
        for node in _said(links, set(path)):
            if is_aside or not links.flags[node] & SIDECHAIN:
                self.left_out += 1
            else:
                self.aside[links.uuid(firsts[node])] += 1

    def holds(self, index: int) -> bool:
        """True for a message on the path."""
        return index < len(self._chosen) and self._chosen[index] == 1

    def in_order(self, units: Iterable[Unit]) -> Iterator[Unit]:
        """The units with the messages of the path in its order; what stands before its turn is held until then."""
        if self._order is None:
            yield from units
            return
        with Held(len(self._chosen)) as waiting:
            yield from self._sorted(units, waiting, iter(self._order))

    def _sorted(self, units: Iterable[Unit], waiting: Held, expected: Iterator[int]) -> Iterator[Unit]:
        turn = next(expected, 0)
        for unit in units:
            index = unit.value["index"] if unit.is_message else 0
            if not unit.is_message or not self.holds(index):
                yield unit
            elif index != turn:
                waiting.put(unit)
            else:
                yield unit
                while (turn := next(expected, 0)) in waiting:
                    yield waiting.take(turn)
        yield from (waiting.take(index) for index in (turn, *expected) if index in waiting)


def _order(links: Links, path: Sequence[int]) -> array[int] | None:
    """The messages of a path, each behind the one that it follows, else as in the file; None where the file is so."""
    if not any(map(gt, links.parents, count())):
        return None
    chosen = set(path)
    followers: dict[int, list[int]] = {}
    for node in path:
        before = links.parents[node]
        while before != NONE and before not in chosen:
            before = links.parents[before]
        followers.setdefault(before, []).append(node)
    order, ready = array("i"), sorted(followers.get(NONE, ()))
    while ready:
        node = heappop(ready)
        order.append(links.messages[node])
        for follower in followers.get(node, ()):
            heappush(ready, follower)
    return order


def follow_nameless(links: Links) -> None:
    """Let messages follow each other in the order of the file where they have no names to name a parent by.

    A message that names no parent is a beginning, unless it or the one before it has no uuid, or no message of the
    session has its parent there at all.
    """
    are_unlinked = not links.is_derived and all(parent == NONE for parent in links.parents) and not links.cycles
    before = {0: NONE, SIDECHAIN: NONE}
    lost = set(links.missing)
    for node, flags in enumerate(links.flags):
        if not flags & MESSAGE:
            continue
        last = before[flags & SIDECHAIN]
        is_beginning = links.parents[node] == NONE and last != NONE and node not in lost
        is_nameless = are_unlinked or links.uuid(node) is None or links.uuid(last) is None
        if is_beginning and is_nameless and not _follows(links, last, node):
            links.parents[node] = last
        before[flags & SIDECHAIN] = node


def bridge(links: Links) -> dict[int, str]:
    """Let what lost its parent follow the message before it, so that a path does not end there."""
    before = NONE
    lost = set(links.missing)
    bridges: dict[int, str] = {}
    for node, flags in enumerate(links.flags):
        is_loose = node in lost and not flags & SIDECHAIN and links.parents[node] == NONE and before != NONE
        if is_loose and not _follows(links, before, node):
            links.parents[node] = before
            uuid = links.uuid(before)
            if uuid is not None:
                bridges[links.messages[node]] = uuid
        if flags & MESSAGE and not flags & SIDECHAIN:
            before = node
    return bridges


def _follows(links: Links, node: int, other: int) -> bool:
    """True where one node comes after another, though it stands before it."""
    return links.has_forward_links and other in links.ancestors(node)


def _leaf(facts: Facts) -> int:
    """Where the conversation stands; what follows there without a name still belongs to it."""
    links, leaf = facts.tree.links, facts.tree.leaf
    if leaf == NONE and facts.leaf_uuid == "":
        return NONE
    for skip in (SIDECHAIN, 0):
        said = [node for node, flags in enumerate(links.flags) if flags & SAID and not flags & skip]
        if said:
            last = said[-1]
            return last if leaf == NONE or _is_nameless_end(links, last, leaf) else leaf
    return leaf


def _is_nameless_end(links: Links, node: int, leaf: int) -> bool:
    """True where nothing but messages without a name lead from the leaf to a node."""
    while node > leaf and links.uuid(node) is None:
        node = links.parents[node]
    return node == leaf


def _said(links: Links, path: Container[int]) -> Iterator[int]:
    """What was said and is not on the path."""
    return (node for node, flags in enumerate(links.flags) if flags & SAID and node not in path)


def _firsts(links: Links) -> array[int]:
    """For each message of a sub-agent the one it begins with."""
    firsts = array("i", range(len(links)))
    for node, parent in enumerate(links.parents):
        if NONE < parent < node and links.flags[node] & links.flags[parent] & SIDECHAIN:
            firsts[node] = firsts[parent]
    return firsts


def named_node(links: Links, branch: str) -> int:
    """The node a branch is named by: the index of a message on it, or the beginning of its uuid."""
    found = [node for node, index in enumerate(links.messages) if index and str(index) == branch]
    if not found:
        named = [node for node in range(len(links)) if (links.uuid(node) or "").startswith(branch)]
        # Some uuids are those of other messages with more behind them.
        found = [node for node in named if links.uuid(node) == branch] or named
    if len(found) != 1:
        raise misnamed(branch, "several messages" if found else "no message")
    return found[0]


def misnamed(branch: str, which: str) -> UsageError:
    """What is said of a name that names no branch."""
    return UsageError(f"--branch {branch}: {which} of that name; give the index or the uuid of one on the branch")


def _end(links: Links, node: int) -> int:
    """What was said last at or below a node."""
    below = array("b", [0]) * len(links)
    below[node] = 1
    end = node
    for each in range(len(links)):
        parent = links.parents[each]
        if parent != NONE and below[parent]:
            below[each] = 1
            end = each if links.flags[each] & SAID and each > end else end
    return end


_PIECE = 1 << 20
_WITHIN = 20
"""So many bits of a place tell which record of its line it is."""


class Whole:
    """Where a session is read. What had to be gathered lies in a file that goes when this does.

    A record has the same place in both files: its line, so many lines further, and which one it is on that line. What
    is a message in one need not be one in the other: the history may say that an event only repeats something.
    """

    def __init__(self, agent: Agent, source: SourceFile) -> None:
        receiver = agent.target_profile()
        lines = receiver.gathered(source.path, source.size) if receiver is not None else None
        self.is_gathered = lines is not None
        self.lines_before = 0
        """How many lines of a history stand behind the first line."""
        self._agent, self._own_source = agent, source
        self.source = self._written(source, lines) if lines is not None else source
        self.facts = agent.facts(self.source)
        self._places = array("q")
        """Where the messages stand in all that is read, once it was read."""

    def _written(self, source: SourceFile, lines: Iterable[bytes]) -> SourceFile:
        folder = Path(mkdtemp(prefix="clew-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        packed = source.path.suffix in SUFFIXES
        path = folder / (source.path.stem if packed else source.path.name)
        with path.open("wb") as stream:
            for text in lines:
                self.lines_before += text.endswith(b"\n")
                stream.write(text)
        self.lines_before -= _line_ends(source)
        return with_current_size(msgspec.structs.replace(source, path=path))

    def seen(self, units: Iterable[Unit]) -> Iterable[Unit]:
        """The units of all that is read as they are; where the messages stand is noted in passing."""
        return units if not self.is_gathered or self._places else _noted(units, self._places)

    def chosen(self, branch: str | None) -> BranchSelection:
        """The messages of a branch that is named as the session's own file shows it.

        What only repeats words of the history is no message in all that is read: the first behind it is on the same
        branch. Where there is none, the branch ends with the one before it, or with the history.
        """
        if branch is None or not self.is_gathered:
            return BranchSelection(self.facts, branch)
        for _ in self.seen(self._agent.units(self.source)):
            pass
        links = self._own.tree.links
        node = named_node(links, branch)
        if index := self._first(links, _below(links, node)):
            return BranchSelection(self.facts, str(index))
        index = self._first(links, links.ancestors(node)) or self._last_of_history()
        if index is None:
            raise misnamed(branch, "no message")
        return BranchSelection(self.facts, str(index), ends=True)

    def placed(self, loss: Loss) -> Loss:
        """A loss, with the index that its message has in the session's own file, if it stands there."""
        if loss.message is None or not self.is_gathered:
            return loss
        place = self._places[loss.message - 1] - (self.lines_before << _WITHIN)
        # Of what stands in the history, nothing needs to be known.
        index = _at(self._own_places, place) if place >> _WITHIN > 1 else None
        return msgspec.structs.replace(loss, message=index)

    def _first(self, links: Links, nodes: Iterable[int]) -> int | None:
        """The index, in all that is read, of the first of some nodes that is a message there."""
        own = (links.messages[node] for node in nodes)
        places = (self._own_places[index - 1] + (self.lines_before << _WITHIN) for index in own if index)
        return next(filter(None, (_at(self._places, place) for place in places)), None)

    def _last_of_history(self) -> int | None:
        """The index of the message that the session's own file goes on behind."""
        with open_main(self.source) as stream:
            size = sum(map(len, islice(stream, self.lines_before + 1)))
        history = self._agent.facts(msgspec.structs.replace(self.source, size=size)).tree
        last = history.links.uuid(history.leaf) if history.leaf != NONE else None
        links = self.facts.tree.links
        return next((links.messages[node] for node in range(len(links)) if last and links.uuid(node) == last), None)

    @cached_property
    def _own(self) -> Facts:
        return self._agent.facts(self._own_source)

    @cached_property
    def _own_places(self) -> array[int]:
        """Where the messages stand in the session's own file."""
        places = array("q")
        for _ in _noted(self._agent.units(self._own_source), places):
            pass
        return places


def _noted(units: Iterable[Unit], places: array[int]) -> Iterator[Unit]:
    """The units as they are, while the places of messages are noted."""
    line = within = 0
    for unit in units:
        within = within + 1 if unit.line == line else 0
        line = unit.line
        if unit.is_message:
            places.append((line << _WITHIN) + within)
        yield unit


def _at(places: array[int], place: int) -> int | None:
    """The index of the message at a place; None where that holds none."""
    at = bisect_left(places, place)
    return at + 1 if at < len(places) and places[at] == place else None


def _below(links: Links, node: int) -> Iterator[int]:
    """A node and all that follows it."""
    below = {node}
    for each in range(node, len(links)):
        if each == node or links.parents[each] in below:
            below.add(each)
            yield each


def _line_ends(source: SourceFile) -> int:
    with open_main(source) as stream:
        return sum(piece.count(b"\n") for piece in iter(partial(stream.read, _PIECE), b""))
