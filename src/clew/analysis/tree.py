"""Forks and the active path of a session, from its links."""

from __future__ import annotations

from array import array
from itertools import compress
from typing import NamedTuple

from clew.analysis.links import MESSAGE, NONE, RESULT, SIGNIFICANT, Links
from clew.model import ForkBranch, ForkPoint, Graph


class Fork(NamedTuple):
    """A node that the conversation left in more than one direction."""

    node: int
    branches: tuple[int, ...]


class Tree:
    """The resolved tree of one session."""

    def __init__(self, links: Links, leaf: str | None = None, seen: int | None = None) -> None:
        self.links = links
        links.resolve()
        self.leaf = links.leaf(leaf)
        if leaf and seen is not None:
            self.leaf = links.latest_below(self.leaf, seen)
        self.forks = find_forks(links)
        self.path = find_path(links, self.leaf)

    @property
    def is_linear(self) -> bool:
        return not self.forks

    def undone(self) -> Fork | None:
        """The end of the active path as a fork, where messages follow it that the conversation went back from."""
        if not self.path:
            return None
        end, active = self.path[-1], set(self.path)
        parents, flags = self.links.parents, self.links.flags

        def follows_end(node: int) -> bool:
            parent = parents[node]
            while parent != NONE and not flags[parent] & MESSAGE:
                parent = parents[parent]
            return parent == end

        later = [node for node, flag in enumerate(flags) if flag & SIGNIFICANT and node not in active]
        branches = tuple(filter(follows_end, later))
        return Fork(end, branches) if branches else None

    def graph(self) -> Graph:
        """The graph as the unified document states it."""
        return Graph(
            is_linear=self.is_linear,
            fork_points=[self.fork_point(fork) for fork in self.forks],
            active_path=[uuid for part in self.links.chunks(self.path) for uuid in part],
        )

    def fork_point(self, fork: Fork) -> ForkPoint:
        """A fork as the unified document states it."""
        links = self.links
        own, *others = [links.uuid(node) or "" for node in (fork.node, *fork.branches)]
        branches = [
            ForkBranch(uuid=uuid, index=links.messages[node]) for uuid, node in zip(others, fork.branches, strict=True)
        ]
        return ForkPoint(uuid=own, index=links.messages[fork.node], branches=branches)


def find_forks(links: Links) -> list[Fork]:
    """Nodes with several continuations, each beginning with a prompt or a reply.

    Tool results, further lines of one reply and notes of the agent are part of what they hang on, so the
    fan-out of parallel tool calls is no fork.
    """
    if links.is_chain:
        return []
    flags, parents = links.flags, links.parents
    owners = _owners(links) if links.has_forward_links else array("i", bytes(4 * len(links)))
    continuations: dict[int, list[int]] = {}
    first = array("i", [NONE]) * len(links)
    for node, flag in enumerate(flags):
        parent = parents[node]
        if parent == NONE:
            owners[node] = node
        elif flag & SIGNIFICANT:
            owner = owners[parent]
            owners[node] = node
            if first[owner] != NONE:
                continuations.setdefault(owner, [first[owner]]).append(node)
            else:
                first[owner] = node
        elif not links.has_forward_links:
            # A parent that stands before its child has its owner by now.
            owners[node] = owners[parent]
    return sorted(_fork(links, branches) for branches in continuations.values())


def _owners(links: Links) -> array[int]:
    """For each node the significant node it belongs to; a root is its own."""
    owners = array("i", [NONE]) * len(links)
    for node in range(len(links)):
        trail = []
        at = node
        while owners[at] == NONE:
            parent = links.parents[at]
            if links.flags[at] & SIGNIFICANT or parent == NONE:
                owners[at] = at
                break
            trail.append(at)
            at = parent
        for step in trail:
            owners[step] = owners[at]
    return owners


def _fork(links: Links, branches: list[int]) -> Fork:
    branches.sort(key=lambda node: (links.times[node], node))
    node = links.parents[min(branches)]
    while node != NONE and not links.flags[node] & MESSAGE:
        node = links.parents[node]
    return Fork(node if node != NONE else links.parents[min(branches)], tuple(branches))


def find_path(links: Links, leaf: int) -> array[int]:
    """From the root to the leaf, messages only, with every tool result of a reply on the way, and its call."""
    if links.is_chain and not links.flags[leaf + 1 :].translate(_IS_RESULT).count(1):
        return array("i", compress(range(leaf + 1), links.flags.translate(_IS_MESSAGE)))
    spine = array("i", links.ancestors(leaf))
    spine.reverse()
    beside = _beside(links, spine)
    flags = links.flags
    path = array("i")
    for node in spine:
        if flags[node] & MESSAGE:
            path.append(node)
        if node in beside:
            path.extend(each for each in beside[node] if flags[each] & MESSAGE)
    return path


_ELSEWHERE = -2
_IS_MESSAGE = bytes(1 if flags & MESSAGE else 0 for flags in range(256))
_IS_RESULT = bytes(1 if flags & RESULT else 0 for flags in range(256))


def _beside(links: Links, spine: array[int]) -> dict[int, list[int]]:
    """By node of the spine: the results that hang beside it, and the lines of the reply that lead to them.

    Calls that run at the same time stand one below the other, and the next reply below the result that came last,
    so that calls can hang beside the spine too.
    """
    anchors = array("i", [NONE]) * len(links)
    for node in spine:
        anchors[node] = node
    beside: dict[int, list[int]] = {}
    for node, flags in enumerate(links.flags):
        if not flags & RESULT or anchors[node] != NONE:
            continue
        trail = [node]
        at = links.parents[node]
        while at != NONE and anchors[at] == NONE and not links.flags[at] & SIGNIFICANT:
            trail.append(at)
            at = links.parents[at]
        anchor = anchors[at] if at != NONE and anchors[at] != NONE else _ELSEWHERE
        for each in trail:
            anchors[each] = anchor
        if anchor != _ELSEWHERE:
            beside.setdefault(anchor, []).extend(reversed(trail))
    return beside
