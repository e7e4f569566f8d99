"""Who follows whom, for any number of records, in about 60 bytes each.

Nodes are added in source order. A node is *significant* when it is a prompt or begins a reply; everything
else (further lines of one reply, tool results, notes of the agent) belongs to the node it hangs on.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import islice

WINDOW = 4096
"""How many recent uuids are at hand while reading; older parents are looked up at the end."""

MESSAGE, SIGNIFICANT, RESULT, SIDECHAIN, SAID = 1, 2, 4, 8, 16
"""Flags: is a message; prompt or start of a reply; tool result; on a sidechain; said by user or assistant."""

NONE = -1
_BETWEEN = b"\n"


class Links:
    """The parent links of one session."""

    def __init__(self) -> None:
        self.flags = bytearray()
        self.parents = array("i")
        self.messages = array("i")
        """Message index of a node; 0 for a record that is no message."""
        self.times = array("d")
        self.missing: list[int] = []
        """Nodes whose parent is not there."""
        self.cycles: list[int] = []
        """Nodes whose parent was cut off because it led back to them."""
        self.repeated: list[int] = []
        self._uuids = bytearray(_BETWEEN)
        self._offsets = array("Q", [1])
        self._recent: dict[str, int] = {}
        self._wanted: dict[str, list[int]] = {}
        self._logical: dict[str, list[int]] = {}
        self._groups: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self.flags)

    def add(
        self,
        uuid: str | None,
        parent: str | None,
        flags: int,
        message: int = 0,
        time: float = 0.0,
        logical_parent: str | None = None,
    ) -> int:
        """Append a node; returns its number."""
        node = len(self.flags)
        self.flags.append(flags)
        self.messages.append(message)
        self.times.append(time)
        if uuid is not None:
            self._uuids += uuid.encode("utf-8", "surrogatepass") + _BETWEEN
            if uuid in self._recent:
                self.repeated.append(node)
            else:
                self._recent[uuid] = node
                if len(self._recent) > WINDOW:
                    del self._recent[next(iter(self._recent))]
        self._offsets.append(len(self._uuids))
        if parent is not None:
            found = self._recent.get(parent, node)
            self.parents.append(found if found != node else NONE)
            if found == node:
                self._wanted.setdefault(parent, []).append(node)
        else:
            self.parents.append(NONE)
            if logical_parent is not None:
                self._link(node, logical_parent, self._logical)
        return node

    def name(self, uuid: str | None, *_ignored: object) -> None:
        """Note only that a node of this uuid is there; for whom `holds` is enough."""
        if uuid is not None:
            self._uuids += uuid.encode("utf-8", "surrogatepass") + _BETWEEN

    def begins_reply(self, group: str) -> bool:
        """True for the first line of an API reply; remembers the replies read last."""
        if group in self._groups:
            return False
        self._groups[group] = None
        if len(self._groups) > WINDOW:
            del self._groups[next(iter(self._groups))]
        return True

    def uuid(self, node: int) -> str | None:
        """The uuid of a node, None where it has none."""
        begin, end = self._offsets[node], self._offsets[node + 1]
        return self._uuids[begin : end - 1].decode("utf-8", "surrogatepass") if end > begin else None

    def holds(self, uuid: str) -> bool:
        """True when a node has this uuid."""
        return holds(self._uuids, uuid)

    @property
    def uuids(self) -> bytes:
        """All uuids, for `holds`."""
        return bytes(self._uuids)

    def _link(self, node: int, parent: str, wanted: dict[str, list[int]]) -> None:
        found = self._recent.get(parent)
        if found is not None and found != node:
            self.parents[node] = found
        else:
            wanted.setdefault(parent, []).append(node)

    def resolve(self) -> None:
        """Find the parents that were not at hand, note those that do not exist, and cut circles."""
        pending = self._wanted.keys() | self._logical.keys()
        if pending:
            for node in range(len(self)):
                uuid = self.uuid(node)
                if uuid in pending:
                    pending.discard(uuid)
                    self._attach(uuid, node)
        self.missing += sorted(node for nodes in self._wanted.values() for node in nodes)
        for nodes in self._logical.values():
            for node in nodes:
                # A compaction may name a record that was never written: it follows what stands before it.
                self.parents[node] = self._before(node)
        self._wanted, self._logical = {}, {}
        self.cycles += self._cut_cycles()

    def _attach(self, uuid: str, node: int) -> None:
        for wanted in (self._wanted, self._logical):
            for child in wanted.pop(uuid, ()):
                self.parents[child] = node if node != child else NONE
                if node == child:
                    self.cycles.append(child)

    def _before(self, node: int) -> int:
        for earlier in range(node - 1, -1, -1):
            if self._offsets[earlier + 1] > self._offsets[earlier] and not self.flags[earlier] & SIDECHAIN:
                return earlier
        return NONE

    def _cut_cycles(self) -> list[int]:
        """Cut each circle at its first node; only a link that points forward can close one."""
        cut: list[int] = []
        walked = bytearray(len(self))
        for start in (node for node, parent in enumerate(self.parents) if parent > node):
            trail = []
            node = start
            while node != NONE and not walked[node]:
                walked[node] = 1
                trail.append(node)
                node = self.parents[node]
            if node != NONE and walked[node] == 1:
                first = min(self._circle(node))
                self.parents[first] = NONE
                cut.append(first)
            for step in trail:
                walked[step] = 2
        return cut

    def _circle(self, node: int) -> Iterator[int]:
        start = node
        while True:
            yield node
            node = self.parents[node]
            if node == start:
                return

    def ancestors(self, node: int) -> Iterator[int]:
        """The node itself, its parent, and so on to the root."""
        while node != NONE:
            yield node
            node = self.parents[node]

    def leaf(self, wanted: str | None = None) -> int:
        """Where the conversation stands: at the node named, else at what was said last on the main chain."""
        if wanted is not None:
            for node in range(len(self) - 1, -1, -1):
                if self.flags[node] & MESSAGE and self.uuid(node) == wanted:
                    return node
        for skip in (SIDECHAIN, 0):
            for node in range(len(self) - 1, -1, -1):
                flags = self.flags[node]
                if flags & SAID and not flags & skip and self.uuid(node) is not None:
                    return node
        return NONE

    def chunks(self, nodes: list[int] | array[int], size: int = 1000) -> Iterator[list[str]]:
        """The uuids of the nodes, a part at a time."""
        remaining = iter(nodes)
        while part := list(islice(remaining, size)):
            yield [uuid for uuid in map(self.uuid, part) if uuid is not None]


def holds(uuids: bytes | bytearray, uuid: str) -> bool:
    """True when the uuid is among those of some links."""
    return _BETWEEN + uuid.encode("utf-8", "surrogatepass") + _BETWEEN in uuids
