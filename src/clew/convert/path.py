"""Which messages of a session go over: those from its beginning to one of its ends."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from operator import gt

from clew.agents.base import Unit
from clew.analysis.facts import Facts
from clew.analysis.links import MESSAGE, NONE, SAID, SIDECHAIN, Links
from clew.analysis.tree import find_path
from clew.convert.out_of_order_buffer import Held
from clew.errors import UsageError


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
