"""The branches of a conversation: which there are, what they share, and where each went its own way."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from clew.agents.sage_agent.records import MESSAGE_ROLES
from clew.errors import AmbiguousReference, UnknownReference
from clew.store.conversation_tree import MAIN, NONE, Tree
from clew.store.snapshots import SnapshotEntry
from clew.store.undo_plan import FileDifference, differing_files

_INDEX = re.compile(r"#(\d{1,18})")
_MIN_PREFIX_CHARS = 4
"""The shortest prefix of a uuid that names a message."""


class Branch(msgspec.Struct, frozen=True):
    """One branch of the conversation, from where it left another to its last message."""

    id: str
    name: str
    head: str
    """The uuid of its last message."""
    parent: str | None
    """The uuid of the message it branched off from; None for the first."""
    messages: int
    """The number of its messages, without those that it shares with its parent branch."""
    active: bool
    """True for the branch of the head."""


class Comparison(NamedTuple):
    """Two paths through a conversation, as uuids in order."""

    base: str | None
    """The last message they share."""
    one: list[str]
    other: list[str]
    files: list[FileDifference]
    """The files that differ at their ends, as far as snapshots record them."""


def list_branches(tree: Tree) -> list[Branch]:
    """Return every branch, in the order in which they started."""
    own = dict.fromkeys(tree.heads, 0)
    first: dict[str, int] = {}
    for node, (branch, kind) in enumerate(zip(tree.branches, tree.kinds, strict=True)):
        if branch in own and kind in MESSAGE_ROLES:
            own[branch] += 1
            first.setdefault(branch, node)
    active = tree.branches[tree.head] if tree.head != NONE else None
    return [
        Branch(
            id=branch,
            name=tree.names.get(branch, branch),
            head=tree.uuids[head],
            parent=tree.uuid(tree.parents[first[branch]]),
            messages=own[branch],
            active=branch == active,
        )
        for branch, head in tree.heads.items()
    ]


def node_of(tree: Tree, target: str) -> int:
    """Find the record that a branch name or id, a message's uuid (or a prefix of it), or `#12` refers to."""
    by_name = [branch for branch, name in tree.names.items() if name == target and branch in tree.heads]
    if by_name or target in tree.heads:
        return tree.heads[by_name[0] if by_name else target]
    if target in tree.places:
        return tree.places[target]
    found = _INDEX.fullmatch(target)
    if found:
        said = [node for node, kind in enumerate(tree.kinds) if kind in MESSAGE_ROLES]
        number = int(found[1])
        if 0 < number <= len(said):
            return said[number - 1]
    near: list[int] = []
    if len(target) >= _MIN_PREFIX_CHARS:
        near = [node for uuid, node in tree.places.items() if uuid.startswith(target)]
    if len(near) > 1:
        raise AmbiguousReference(f"{target!r} is the beginning of several ids")
    if not near:
        names = ", ".join(tree.names.get(branch, branch) for branch in tree.heads) or MAIN
        raise UnknownReference(f"no branch or message is called {target!r}; there are the branches {names}")
    return near[0]


def merge_base(tree: Tree, one: int, other: int) -> int:
    """Find the last common ancestor of two records; NONE where there is none."""
    passed = set(tree.ancestors(one))
    return next((node for node in tree.ancestors(other) if node in passed), NONE)


def compare(tree: Tree, one: str, other: str, taken: Sequence[SnapshotEntry] = (), root: Path = Path()) -> Comparison:
    """Compare two branches or messages; file names are relative to the root."""
    first, second = node_of(tree, one), node_of(tree, other)
    base = merge_base(tree, first, second)
    shared = set(tree.path(base)) if base != NONE else set()
    ways = [[uuid for uuid in tree.path(node) if uuid not in shared] for node in (first, second)]
    return Comparison(tree.uuid(base), ways[0], ways[1], differing_files(tree, taken, root, first, second))
