"""Which messages lead to which, in a conversation that may have forked: what another branch did is no proof."""

from __future__ import annotations

from array import array

from clew.graph.links import NONE
from clew.graph.tree import Tree


class Lineage:
    """The stretches between forks; a message leads to those of its own stretch and of those that follow it."""

    def __init__(self, tree: Tree) -> None:
        links = tree.links
        begins = {node for fork in tree.forks for node in fork.branches}
        self._owners = _owners(links.parents, begins)
        self._parents = links.parents
        self._stretches = {index: self._owners[node] for node, index in enumerate(links.messages) if index}
        self._above: dict[int, frozenset[int]] = {}

    def leads(self, earlier: int, later: int) -> bool:
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
