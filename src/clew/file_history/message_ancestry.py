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


class MessageAncestry:
    """Ancestor test between messages.

    A stretch is a run of messages without a fork; a message is an ancestor of those in its own stretch, and in the
    stretches after it.
    """

    def __init__(self, tree: Tree) -> None:
        links = tree.links
        begins = {node for fork in tree.forks for node in fork.branches} | _beside_tool_branches(links)
        self._owners = _owners(links.parents, begins)
        self._parents = links.parents
        self._stretches = {index: self._owners[node] for node, index in enumerate(links.messages) if index}
        self._above: dict[int, frozenset[int]] = {}
        jumps = {*begins, *self._continued(links)}
        self.jumps = sorted((links.messages[node], _message_above(links, node)) for node in jumps)
        """Messages where a stretch begins or continues, each with the message before: files may be restored there."""
        self._runs_without_restore: list[list[int]] = []
        """First and last message of each run in which no files were restored between messages."""

    def _continued(self, links: Links) -> Iterator[int]:
        """Yield the nodes where the conversation returned to the end of another stretch."""
        for node, index in enumerate(links.messages):
            if index > 1 and not self.is_ancestor(index - 1, index):
                yield node

    def note_files_unchanged_before(self, message: int) -> None:
        """Note that no files were restored between the message before and this one."""
        if self._runs_without_restore and self._runs_without_restore[-1][1] >= message - 1:
            self._runs_without_restore[-1][1] = max(message, self._runs_without_restore[-1][1])
        else:
            self._runs_without_restore.append([message - 1, message])

    def is_noted(self, message: int) -> bool:
        """Return whether that was noted of a message."""
        return self._is_in_noted_run(message - 1, message)

    def files_carry_over(self, earlier: int, later: int) -> bool:
        """Return whether the state of a file at one message is evidence for its state at the other."""
        return self.is_ancestor(earlier, later) or self._is_in_noted_run(*sorted((earlier, later)))

    def _is_in_noted_run(self, earlier: int, later: int) -> bool:
        at = bisect_right(self._runs_without_restore, earlier, key=lambda run: run[0]) - 1
        return at >= 0 and later <= self._runs_without_restore[at][1]

    def is_ancestor(self, earlier: int, later: int) -> bool:
        """Return whether `earlier` is an ancestor of `later`, or the result of a tool that an ancestor called."""
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


def _beside_tool_branches(links: Links) -> set[int]:
    """Return the nodes where a branch holds nothing but calls and results, and the conversation went on beside it.

    Readers see no fork there, but the tools on that branch changed files.
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
    """Return the children of every node that has more than one."""
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
    """Return for each node the first node of its stretch."""
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
