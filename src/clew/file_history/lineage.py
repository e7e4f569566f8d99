"""Which messages precede which in a conversation with forks.

A change on another branch proves nothing about a file, except where the records show that no files were restored on the
switch (NoExternalRestore): then changes count in order of time.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator

from clew.analysis.links import NONE, RESULT, SIGNIFICANT, Links
from clew.analysis.tree import Tree


class Lineage:
    """The stretches between forks; a message leads to those of its own stretch and of those that follow it."""

    def __init__(self, tree: Tree) -> None:
        links = tree.links
        begins = {node for fork in tree.forks for node in fork.branches} | _left_behind(links)
        self._owners = _owners(links.parents, begins)
        self._parents = links.parents
        self._stretches = {index: self._owners[node] for node, index in enumerate(links.messages) if index}
        self._above: dict[int, frozenset[int]] = {}
        jumps = {*begins, *self._gone_on(links)}
        self.jumps = sorted((links.messages[node], _message_above(links, node)) for node in jumps)
        """Where a stretch begins or is gone on with, and the message it follows: files may have been put back, too."""
        self._steady: list[list[int]] = []
        """First and last message of each run that files went through in the order of time."""

    def _gone_on(self, links: Links) -> Iterator[int]:
        """Where the conversation came back to the end of a stretch from elsewhere."""
        for node, index in enumerate(links.messages):
            if index > 1 and not self.is_ancestor(index - 1, index):
                yield node

    def note_files_unchanged_before(self, message: int) -> None:
        """Note that files went on from the message before to this one, as far as nothing else is told."""
        if self._steady and self._steady[-1][1] >= message - 1:
            self._steady[-1][1] = max(message, self._steady[-1][1])
        else:
            self._steady.append([message - 1, message])

    def is_noted(self, message: int) -> bool:
        """True where that is noted of a message."""
        return self._is_in_noted_run(message - 1, message)

    def files_carry_over(self, earlier: int, later: int) -> bool:
        """True where what a file was at one message has a bearing on what it was at the other."""
        return self.is_ancestor(earlier, later) or self._is_in_noted_run(*sorted((earlier, later)))

    def _is_in_noted_run(self, earlier: int, later: int) -> bool:
        at = bisect_right(self._steady, earlier, key=lambda run: run[0]) - 1
        return at >= 0 and later <= self._steady[at][1]

    def is_ancestor(self, earlier: int, later: int) -> bool:
        """True where message `earlier` stands on the way to message `later`, or beside it as a tool's result."""
        one, other = self._stretches.get(earlier), self._stretches.get(later)
        return one is None or other is None or one == other or one in self._ancestors(other)

    def _ancestors(self, stretch: int) -> frozenset[int]:
        if stretch not in self._above:
            found = []
            at = stretch
            while self._parents[at] != NONE:
                at = self._owners[self._parents[at]]
                found.append(at)
            self._above[stretch] = frozenset(found)
        return self._above[stretch]


def _message_above(links: Links, node: int) -> int:
    above = links.parents[node]
    while above != NONE and not links.messages[above]:
        above = links.parents[above]
    return links.messages[above] if above != NONE else 0


def _left_behind(links: Links) -> set[int]:
    """Where the conversation went on beside calls and results that it does not follow.

    For reading that is no fork, since nothing was said on the other side; but something was done there.
    """
    parents, begins = links.parents, set[int]()
    forked = _with_several(parents)
    works = bytearray(len(parents))
    for node, flags in enumerate(links.flags):
        while flags & RESULT and node != NONE and not works[node]:
            works[node] = 1
            node = parents[node]
    for children in forked.values():
        said = [node for node in children if links.flags[node] & SIGNIFICANT]
        done = [node for node in children if not links.flags[node] & SIGNIFICANT and works[node]]
        if said and done:
            begins.update(said, done)
    return begins


def _with_several(parents: array[int]) -> dict[int, list[int]]:
    """The children of every node that has more than one."""
    first = array("i", [NONE]) * len(parents)
    several: dict[int, list[int]] = {}
    for node, parent in enumerate(parents):
        if parent == NONE:
            continue
        if first[parent] == NONE:
            first[parent] = node
        else:
            several.setdefault(parent, [first[parent]]).append(node)
    return several


def _owners(parents: array[int], begins: set[int]) -> array[int]:
    """For each node the one that its stretch begins with."""
    owners = array("i", [NONE]) * len(parents)
    for node in range(len(parents)):
        trail = []
        at = node
        while owners[at] == NONE and at not in begins and parents[at] != NONE:
            trail.append(at)
            at = parents[at]
        if owners[at] == NONE:
            owners[at] = at
        for step in trail:
            owners[step] = owners[at]
    return owners
