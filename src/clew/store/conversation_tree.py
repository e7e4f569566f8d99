"""The conversation tree of a log: parent and branch of every record, the head, and the list of branches.

The first prompt or reply after a message continues its branch; each further one starts a new branch. Tool results,
notes and titles are on the branch of the record that they follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from clew.agents.sage_agent import SageAgent
from clew.agents.sage_agent.locate import source_file
from clew.agents.sage_agent.records import (
    ADVANCING_TYPES,
    BRANCH,
    ERASED,
    MESSAGE_ROLES,
    PROMPTS_AND_REPLIES,
    RecordHeader,
    parse_header,
    parse_headers,
)
from clew.errors import AmbiguousReference, UnknownReference
from clew.model.json import JSON
from clew.store.log import whole_lines

MAIN = "main"
NONE = -1
_MESSAGE_NUMBER = re.compile(r"#?(\d{1,18})")
_MIN_PREFIX_CHARS = 4
"""The shortest prefix of a uuid that names a message."""


def headers_with_derived_ids(log: Path, start: int, lines: bytes) -> Iterator[RecordHeader]:
    """Yield record headers; messages of the older form get the ids and parents that the agent derives for them."""
    agent, source = SageAgent(), source_file(log)
    given: dict[int, dict[str, JSON]] = {}
    for unit in agent.units(source):
        if unit.is_message and not unit.part and unit.start >= start:
            given[unit.start] = unit.value
    for line in lines.split(b"\n"):
        found, message = parse_header(line), given.get(start)
        if found is not None:
            if message is not None:
                found.uuid, found.parent_uuid = message["uuid"], message.get("parent_uuid")
            yield found
        start += len(line) + 1


class Tree:
    """The records of a log that have an id, by position; can be extended as the log grows."""

    def __init__(self) -> None:
        self.end = 0
        """The position in bytes up to which the log was read."""
        self.places: dict[str, int] = {}
        self.uuids: list[str] = []
        self.parents: list[int] = []
        self.kinds: list[str] = []
        """The type of each record."""
        self.names: dict[str, str] = {}
        """The names of branches, by id."""
        self.head = NONE
        """The record that the next message follows."""
        self.given: list[str] = []
        """The derived ids of messages of the older form, in the order of the log."""
        self.switch_records: list[tuple[int, RecordHeader]] = []
        """The branch records that moved the head, each with the number of records before it."""
        self.orphans: dict[int, str] = {}
        """The parents that are not in the log, or not before their record."""
        self._stated: dict[int, str] = {}
        self._erased: dict[int, str] = {}
        self._lines = _Branches()
        self._ends_old = False

    def read(self, path: Path, end: int | None = None) -> None:
        """Add the lines that were appended to the log; an incomplete last line is left out."""
        for chunk in whole_lines(path, self.end, end):
            found = parse_headers(chunk)
            has_old = self._ends_old or any(not record.type and record.is_old for record in found)
            self._ends_old = bool(found) and found[-1].is_old
            if has_old:
                found = list(headers_with_derived_ids(path, self.end, chunk))
                self.given += [str(record.uuid) for record in found if record.is_old]
            self.extend(found)
            self.end += len(chunk)

    def extend(self, found: Iterable[RecordHeader]) -> None:
        """Add records."""
        places, uuids, parents, kinds = self.places, self.uuids, self.parents, self.kinds
        for record in found:
            uuid, kind, node = record.uuid, record.type or record.kind, len(uuids)
            if kind == BRANCH:
                self._note(record)
            elif uuid is not None and places.setdefault(uuid, node) == node:
                parent = record.parent_uuid
                uuids.append(uuid)
                kinds.append(kind)
                # Only an earlier record can be a parent, so there are no cycles.
                at = places.get(parent, NONE) if parent is not None else NONE
                parents.append(at if at != node else NONE)
                if parent is not None and parents[-1] == NONE:
                    self.orphans[node] = parent
                if record.branch_id is not None:
                    self._stated[node] = record.branch_id
                if kind == ERASED:
                    self._erased[node] = kind = record.was
                if kind in ADVANCING_TYPES:
                    self.head = node

    def _note(self, mark: RecordHeader) -> None:
        if mark.action == "name" and mark.branch_id and mark.name:
            self.names[mark.branch_id] = mark.name
        elif mark.is_switch and (mark.message_id is None or mark.message_id in self.places):
            self.head = NONE if mark.message_id is None else self.places[mark.message_id]
            self.switch_records.append((len(self.uuids), mark))

    def _updated_branches(self) -> _Branches:
        """Find the branch of every record that was added since the last call."""
        lines = self._lines
        for node in range(len(lines.branches), len(self.uuids)):
            kind = self._erased.get(node) or self.kinds[node]
            lines.add(node, self.parents[node], kind, self._stated.get(node) or self.uuids[node][:8])
        return lines

    @property
    def branches(self) -> list[str]:
        """For each record the id of its branch."""
        return self._updated_branches().branches

    @property
    def heads(self) -> dict[str, int]:
        """The last record of each branch, in the order the branches began."""
        return self._updated_branches().heads

    def forks_at(self, parent: int) -> bool:
        """True when a prompt or reply that follows this record would start a branch."""
        lines = self._updated_branches()
        return (lines.owners[parent] if parent != NONE else NONE) in lines.continued

    def is_significant(self, node: int) -> bool:
        """True for a prompt or a reply, also for an erased one."""
        return (self._erased.get(node) or self.kinds[node]) in PROMPTS_AND_REPLIES

    def uuid(self, node: int) -> str | None:
        """The uuid of a record; None where there is none."""
        return self.uuids[node] if node != NONE else None

    def ancestors(self, node: int) -> Iterator[int]:
        """Yield a record, its parent, and so on to the root."""
        while node != NONE:
            yield node
            node = self.parents[node]

    def path(self, node: int | None = None) -> list[str]:
        """Return the uuids of the messages from the root to a record (default: the head)."""
        uuids, kinds, parents = self.uuids, self.kinds, self.parents
        at = self.head if node is None else node
        path = []
        while at != NONE:
            if kinds[at] in MESSAGE_ROLES:
                path.append(uuids[at])
            at = parents[at]
        path.reverse()
        return path


class _Branches:
    """The branch of every record, found in the order of the log."""

    def __init__(self) -> None:
        self.branches: list[str] = []
        self.heads: dict[str, int] = {}
        self.owners: list[int] = []
        """For each record the prompt or reply that it belongs to."""
        self.continued: set[int] = set()
        """Prompts and replies that another one follows; NONE: there is a root."""

    def add(self, node: int, parent: int, kind: str, fresh: str) -> None:
        """Add the next record; `fresh` is the id of the branch that it may start."""
        owner = self.owners[parent] if parent != NONE else NONE
        significant = kind in PROMPTS_AND_REPLIES
        branch = self.branches[parent] if parent != NONE else MAIN
        if significant and owner in self.continued:
            branch = fresh
            while branch in self.heads or branch == MAIN:
                branch += "+"
        if significant or parent == NONE:
            self.continued.add(owner)
        self.owners.append(node if significant or owner == NONE else owner)
        self.branches.append(branch)
        if kind in ADVANCING_TYPES:
            self.heads[branch] = node


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
    position: str | None = None
    """The uuid of the message where the conversation stands, on the active branch; after an undo not its last."""


def list_branches(tree: Tree) -> list[Branch]:
    """Return every branch that has a message, in the order in which they started."""
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
            position=tree.uuid(tree.head) if branch == active else None,
        )
        for branch, head in tree.heads.items()
        if branch in first
    ]


def numbered_message(tree: Tree, target: str) -> int | None:
    """The message that `12` or `#12` counts to; None where the target is not the number of a message."""
    found = _MESSAGE_NUMBER.fullmatch(target)
    messages = [node for node, kind in enumerate(tree.kinds) if kind in MESSAGE_ROLES] if found else []
    return messages[int(found[1]) - 1] if found and 0 < int(found[1]) <= len(messages) else None


def node_of(tree: Tree, target: str) -> int:
    """Find the record that a branch name or id, a message's uuid (or a prefix of it), `12` or `#12` refers to."""
    by_name = [branch for branch, name in tree.names.items() if name == target and branch in tree.heads]
    if by_name or target in tree.heads:
        return tree.heads[by_name[0] if by_name else target]
    if target in tree.places:
        return tree.places[target]
    numbered = numbered_message(tree, target)
    if numbered is not None and target.startswith("#"):
        return numbered
    near = [] if numbered is None else [numbered]
    if len(target) >= _MIN_PREFIX_CHARS:
        near += [node for uuid, node in tree.places.items() if uuid.startswith(target) and node not in near]
    if len(near) > 1:
        raise AmbiguousReference(f"{target!r} names several messages; give more of the uuid, or the number as '#12'")
    if not near:
        names = ", ".join(tree.names.get(branch, branch) for branch in tree.heads) or MAIN
        raise UnknownReference(f"no branch or message matches {target!r}; branches: {names}")
    return near[0]
