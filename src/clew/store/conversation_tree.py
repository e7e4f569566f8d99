"""Who follows whom in a log: every record's uuid and parent, the branch each is on, and where it all stands.

A branch goes on with the first prompt or reply that follows a message; each further one begins a branch of its own.
Results, notes and titles belong to what they follow.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from clew.agents.sage_agent import SageAgent
from clew.agents.sage_agent.locate import source_file
from clew.agents.sage_agent.records import OLD_ROLES
from clew.io.codec import NOT_JSON
from clew.io.compress import open_regular
from clew.model.json import JSON
from clew.store.records import BRANCH, ERASED, MESSAGES

MAIN = "main"
NONE = -1
_CHUNK = 8 << 20
SIGNIFICANT = frozenset({"user", "assistant"})
"""Prompts and replies; everything else belongs to the one that it follows."""
_ADVANCING = MESSAGES - {"error"}
_WITH_FILES = ("undo", "redo")
_TYPES = {"tool": "tool_result"}
"""Of the older form: the role of a message, and its type today."""


class RecordHeader(msgspec.Struct, rename="camel", gc=False):
    """As much of a record as tells its place."""

    type: str = ""
    uuid: str | None = None
    parent_uuid: str | None = None
    branch_id: str | None = None
    message_id: str | None = None
    from_id: str | None = None
    action: str | None = None
    name: str | None = None
    was: str = ""
    role: JSON = ""
    """Only records of the older form say it here; they have no type, and mostly no id."""

    @property
    def kind(self) -> str:
        """What it is, or was before it was erased."""
        if self.is_old:
            return _TYPES.get(self.role) or str(self.role)
        return self.was if self.type == ERASED else self.type

    @property
    def is_old(self) -> bool:
        """True for a message of the older form."""
        return not self.type and isinstance(self.role, str) and self.role in OLD_ROLES

    @property
    def is_significant(self) -> bool:
        """True for a prompt or a reply."""
        return self.kind in SIGNIFICANT

    @property
    def is_switch(self) -> bool:
        """True for a record that moves the conversation elsewhere."""
        if self.type != BRANCH:
            return False
        return self.action in _WITH_FILES or (self.action == "switch" and self.message_id is not None)

    @property
    def advances_head(self) -> bool:
        """True when the next message follows this record."""
        return self.kind in _ADVANCING and self.uuid is not None


class _Own(msgspec.Struct):
    seq: int = 0


class _Numbers(msgspec.Struct):
    clew: _Own | None = None


class _Numbered(msgspec.Struct):
    metadata: _Numbers | None = None


_decode = msgspec.json.Decoder(RecordHeader)
_decode_number = msgspec.json.Decoder(_Numbered).decode


def parse_header(line: bytes) -> RecordHeader | None:
    """The place of one record; None where there is none that we know."""
    try:
        return _decode.decode(line)
    except NOT_JSON:
        return None


def number_of(line: bytes) -> int:
    """The number of a record in its log; 0 where another program wrote it."""
    try:
        found = _decode_number(line).metadata
    except NOT_JSON:
        return 0
    return found.clew.seq if found is not None and found.clew is not None else 0


def parse_all_headers(lines: bytes) -> list[RecordHeader] | None:
    """The places of many records; None where a line is none."""
    try:
        return _decode.decode_lines(lines)
    except NOT_JSON:
        return None


def parse_headers(lines: bytes) -> list[RecordHeader]:
    """The places of many records; lines that are none are passed over."""
    found = parse_all_headers(lines)
    return (
        found if found is not None else [one for line in lines.split(b"\n") if (one := parse_header(line)) is not None]
    )


def is_old(record: dict[str, JSON]) -> bool:
    """True for a whole record that is a message of the older form."""
    role = record.get("role")
    return not record.get("type") and isinstance(role, str) and role in OLD_ROLES


def with_given_ids(log: Path, start: int, lines: bytes) -> Iterator[RecordHeader]:
    """The places of records, with the ids and parents that readers give to the older form and to what follows it."""
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
    """The records of a log that have an id, by number, in its order; grows as the log does."""

    def __init__(self) -> None:
        self.end = 0
        """How far the log has been read."""
        self.places: dict[str, int] = {}
        self.uuids: list[str] = []
        self.parents: list[int] = []
        self.kinds: list[str] = []
        """Their types; one that was erased is no message any more, but keeps its place."""
        self.names: dict[str, str] = {}
        """The names that branches were given, by id."""
        self.head = NONE
        """Where the conversation stands."""
        self.given: list[str] = []
        """The ids of messages of the older form, which readers give them, in the order of the log."""
        self.moves: list[tuple[int, RecordHeader]] = []
        """The marks that moved it, each with the number of records before it."""
        self.orphans: dict[int, str] = {}
        """The parents of records that are not in the log, or not before them."""
        self._stated: dict[int, str] = {}
        self._erased: dict[int, str] = {}
        self._lines = _Lines()
        self._ends_old = False

    def read(self, path: Path, end: int | None = None) -> None:
        """Take in what the log has grown by; only whole lines count."""
        for chunk in whole_lines(path, self.end, end):
            found = parse_headers(chunk)
            has_old = self._ends_old or any(not record.type and record.is_old for record in found)
            self._ends_old = bool(found) and found[-1].is_old
            if has_old:
                found = list(with_given_ids(path, self.end, chunk))
                self.given += [str(record.uuid) for record in found if record.is_old]
            self.extend(found)
            self.end += len(chunk)

    def extend(self, found: Iterable[RecordHeader]) -> None:
        """Take in records."""
        places, uuids, parents, kinds = self.places, self.uuids, self.parents, self.kinds
        for record in found:
            uuid, kind, node = record.uuid, record.type or record.kind, len(uuids)
            if kind == BRANCH:
                self._note(record)
            elif uuid is not None and places.setdefault(uuid, node) == node:
                parent = record.parent_uuid
                uuids.append(uuid)
                kinds.append(kind)
                # Only what stands before it can be a parent, so there are no circles.
                at = places.get(parent, NONE) if parent is not None else NONE
                parents.append(at if at != node else NONE)
                if parent is not None and parents[-1] == NONE:
                    self.orphans[node] = parent
                if record.branch_id is not None:
                    self._stated[node] = record.branch_id
                if kind == ERASED:
                    self._erased[node] = kind = record.was
                if kind in _ADVANCING:
                    self.head = node

    def _note(self, mark: RecordHeader) -> None:
        if mark.action == "name" and mark.branch_id and mark.name:
            self.names[mark.branch_id] = mark.name
        elif mark.is_switch and (mark.message_id is None or mark.message_id in self.places):
            self.head = NONE if mark.message_id is None else self.places[mark.message_id]
            self.moves.append((len(self.uuids), mark))

    def _drawn(self) -> _Lines:
        """The branches, as far as the records go."""
        lines = self._lines
        for node in range(len(lines.branches), len(self.uuids)):
            kind = self._erased.get(node) or self.kinds[node]
            lines.add(node, self.parents[node], kind, self._stated.get(node) or self.uuids[node][:8])
        return lines

    @property
    def branches(self) -> list[str]:
        """For each record the id of its branch."""
        return self._drawn().branches

    @property
    def heads(self) -> dict[str, int]:
        """The last record of each branch, in the order the branches began."""
        return self._drawn().heads

    def forks_at(self, parent: int) -> bool:
        """True when a prompt or reply that follows this record would begin a branch."""
        lines = self._drawn()
        return (lines.owners[parent] if parent != NONE else NONE) in lines.continued

    def is_significant(self, node: int) -> bool:
        """True for a prompt or a reply, also where it was erased: tools belong to it as before."""
        return (self._erased.get(node) or self.kinds[node]) in SIGNIFICANT

    def uuid(self, node: int) -> str | None:
        """The uuid of a record; None where there is none."""
        return self.uuids[node] if node != NONE else None

    def ancestors(self, node: int) -> Iterator[int]:
        """The record itself, the one it follows, and so on to the root."""
        while node != NONE:
            yield node
            node = self.parents[node]

    def path(self, node: int | None = None) -> list[str]:
        """The uuids of the messages from the root to a record; without one, to where the conversation stands."""
        uuids, kinds, parents = self.uuids, self.kinds, self.parents
        at = self.head if node is None else node
        path = []
        while at != NONE:
            if kinds[at] in MESSAGES:
                path.append(uuids[at])
            at = parents[at]
        path.reverse()
        return path


class _Lines:
    """The branch of every record, drawn in the order of the log."""

    def __init__(self) -> None:
        self.branches: list[str] = []
        self.heads: dict[str, int] = {}
        self.owners: list[int] = []
        """For each record the prompt or reply it belongs to."""
        self.continued: set[int] = set()
        """Prompts and replies that another one follows; NONE: there is a root."""

    def add(self, node: int, parent: int, kind: str, fresh: str) -> None:
        """Draw the next record; `fresh` is the id of the branch it may begin."""
        owner = self.owners[parent] if parent != NONE else NONE
        significant = kind in SIGNIFICANT
        branch = self.branches[parent] if parent != NONE else MAIN
        if significant and owner in self.continued:
            branch = fresh
            while branch in self.heads or branch == MAIN:
                branch += "+"
        if significant or parent == NONE:
            self.continued.add(owner)
        self.owners.append(node if significant or owner == NONE else owner)
        self.branches.append(branch)
        if kind in _ADVANCING:
            self.heads[branch] = node


def whole_lines(path: Path, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The bytes of the log in large pieces, each of whole lines; what has no line end yet is left out."""
    with open_regular(path)[0] as stream:
        limit = os.fstat(stream.fileno()).st_size if end is None else end
        stream.seek(start)
        kept = b""
        while start < limit and (part := stream.read(min(_CHUNK, limit - start))):
            start += len(part)
            cut = part.rfind(b"\n") + 1
            if cut:
                yield kept + part[:cut] if kept else part[:cut]
                kept = part[cut:]
            else:
                kept += part
