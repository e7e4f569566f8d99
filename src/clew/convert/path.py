"""Which messages of a session go over: those from its beginning to one of its ends."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from clew.derive.facts import Facts
from clew.errors import UsageError
from clew.graph.links import MESSAGE, NONE, SAID, SIDECHAIN, Links
from clew.graph.tree import find_path


class Chosen:
    """The messages of one path, and how many others there are."""

    def __init__(self, facts: Facts, branch: str | None) -> None:
        links = facts.tree.links
        self.bridges = bridge(links)
        """For a message whose parent is missing the uuid it follows instead, by its index."""
        leaf = facts.tree.leaf if branch is None else _end(links, _named(links, branch))
        path = find_path(links, leaf)
        self._chosen = bytearray(facts.messages + 1)
        for node in path:
            self._chosen[links.messages[node]] = 1
        lane = links.flags[leaf] & SIDECHAIN if leaf != NONE else 0
        self.left_out = _said(links, range(len(links)), lane) - _said(links, path, lane)
        """How many things that were said stand on other branches."""

    def holds(self, index: int) -> bool:
        """True for a message on the path."""
        return index < len(self._chosen) and self._chosen[index] == 1


def bridge(links: Links) -> dict[int, str]:
    """Let what lost its parent follow the message before it, so that a path does not end there."""
    before = NONE
    lost = set(links.missing)
    bridges: dict[int, str] = {}
    for node, flags in enumerate(links.flags):
        if node in lost and not flags & SIDECHAIN and links.parents[node] == NONE and before != NONE:
            links.parents[node] = before
            bridges[links.messages[node]] = links.uuid(before) or ""
        if flags & MESSAGE and not flags & SIDECHAIN:
            before = node
    return bridges


def _said(links: Links, nodes: Iterable[int], lane: int) -> int:
    """How many of the nodes were said on the main chain, or on the chain of a sub-agent."""
    return sum(1 for node in nodes if links.flags[node] & (SAID | SIDECHAIN) == SAID | lane)


def _named(links: Links, branch: str) -> int:
    """The node a branch is named by: the index of a message on it, or the beginning of its uuid."""
    if branch.isdecimal():
        found = [node for node, index in enumerate(links.messages) if index == int(branch) and index]
    else:
        found = [node for node in range(len(links)) if (links.uuid(node) or "").startswith(branch)]
    if len(found) != 1:
        which = "several messages" if found else "no message"
        raise UsageError(f"--branch {branch}: {which} of that name; give the index or the uuid of one on the branch")
    return found[0]


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
