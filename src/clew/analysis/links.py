"""Who follows whom, for any number of records, in about 60 bytes each.

Nodes are added in source order. A node is *significant* when it is a prompt or begins a reply; everything
else (further lines of one reply, tool results, notes of the agent) belongs to the node it hangs on.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import islice

WINDOW = 4096
"""How many recent uuids are cached while reading; older parents are looked up at the end."""

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
        self.is_derived = False
        """True if the reader sets parents: then a message without a parent is a root."""
        self.has_forward_links = False
        """True where a parent stands behind its child."""
        self._leaps = 0
        """Nodes whose parent is not the node right before them."""
        self._uuids = bytearray(_BETWEEN)
        self._offsets = array("Q", [1])
        self._is_plain = True
        """True unless a uuid holds what stands between them."""
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
        self.parents.append(self._find(parent, node, logical_parent))
        if uuid is not None:
            self._name(uuid)
            if uuid in self._recent:
                self.repeated.append(node)
            else:
                self._recent[uuid] = node
                if len(self._recent) > WINDOW:
                    del self._recent[next(iter(self._recent))]
        self._offsets.append(len(self._uuids))
        return node

    def _find(self, parent: str | None, node: int, logical_parent: str | None) -> int:
        """The parent of a new node, or none; one that is not cached is looked up at the end."""
        at = NONE
        wanted, name = (self._wanted, parent) if parent is not None else (self._logical, logical_parent)
        if name is not None:
            at = self._recent.get(name, NONE)
            if at == NONE:
                wanted.setdefault(name, []).append(node)
        self._leaps += at != node - 1
        return at

    def _name(self, uuid: str | None) -> None:
        if uuid is not None:
            self._is_plain = self._is_plain and "\n" not in uuid
            self._uuids += uuid.encode("utf-8", "surrogatepass") + _BETWEEN

    def is_first_line_of_reply(self, group: str) -> bool:
        """True for the first line of an API reply; remembers the replies read last."""
        if group in self._groups:
            return False
        self._groups[group] = None
        if len(self._groups) > WINDOW:
            del self._groups[next(iter(self._groups))]
        return True

    @property
    def is_chain(self) -> bool:
        """True where each node hangs on the one before it, and the first on none."""
        return not self._leaps and (not self.parents or self.parents[0] == NONE)

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

    def resolve(self) -> None:
        """Find the parents that were not cached, record those that do not exist, and cut cycles."""
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
        if self.has_forward_links:
            self.cycles += self._cut_cycles()

    def _attach(self, uuid: str, node: int) -> None:
        for wanted in (self._wanted, self._logical):
            for child in wanted.pop(uuid, ()):
                self.parents[child] = node if node != child else NONE
                self.has_forward_links |= node > child
                if node == child:
                    self.cycles.append(child)

    def _before(self, node: int) -> int:
        """The message of the main chain before a node. Other records, such as progress, may lead nowhere."""
        for earlier in range(node - 1, -1, -1):
            has_uuid = self._offsets[earlier + 1] > self._offsets[earlier]
            if has_uuid and self.flags[earlier] & MESSAGE and not self.flags[earlier] & SIDECHAIN:
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
        """Where the conversation stands: at the node named, else at what was said last on the main chain.

        An empty name says that it stands nowhere: everything was taken back.
        """
        if wanted == "":
            return NONE
        if wanted is not None:
            for node in range(len(self) - 1, -1, -1):
                if self.flags[node] & MESSAGE and self.uuid(node) == wanted:
                    return node
        for skip in (SIDECHAIN, 0):
            for node in range(len(self) - 1, -1, -1):
                flags = self.flags[node]
                if flags & SAID and not flags & skip and self.uuid(node) is not None:
                    return self._end(node) if self.has_forward_links else node
        return NONE

    def _end(self, node: int) -> int:
        """Where what follows a node ends: lines may stand before those that they follow."""
        lane = self.flags[node] & SIDECHAIN
        followers: dict[int, list[int]] = {}
        for child, parent in enumerate(self.parents):
            if self.flags[child] & SIDECHAIN == lane:
                followers.setdefault(parent, []).append(child)
        end, waiting = (0, node), [(0, node)]
        while waiting:
            depth, each = waiting.pop()
            if self.flags[each] & SAID and self.uuid(each) is not None:
                end = max(end, (depth, each))
            waiting += [(depth + 1, follower) for follower in followers.get(each, ())]
        return end[1]

    def latest_below(self, node: int, first: int) -> int:
        """What was said last below a node, among the nodes from a number on; else the node itself.

        Nodes before that number may lead to it: Claude Code may name a leaf after it wrote the next records, as when a
        skill is loaded.
        """
        latest, below = node, {node}
        for later in range(node + 1, len(self)):
            if self.parents[later] in below:
                below.add(later)
                flags = self.flags[later]
                if later >= first and flags & SAID and not flags & SIDECHAIN and self.uuid(later) is not None:
                    latest = later
        return latest

    def chunks(self, nodes: list[int] | array[int], size: int = 1000) -> Iterator[list[str]]:
        """The uuids of the nodes, a part at a time."""
        remaining = iter(nodes)
        while part := list(islice(remaining, size)):
            yield self._names(part)

    def _names(self, nodes: list[int]) -> list[str]:
        """The uuids of the nodes that have one; nodes that stand close together are read at once."""
        first, last = min(nodes), max(nodes)
        if last - first < 2 * len(nodes):
            begin, end = self._offsets[first], self._offsets[last + 1]
            names = self._uuids[begin:end].decode("utf-8", "surrogatepass").split("\n")
            if self._is_plain and len(names) == last - first + 2:
                return [names[node - first] for node in nodes]
        return [uuid for uuid in map(self.uuid, nodes) if uuid is not None]


def holds(uuids: bytes | bytearray, uuid: str) -> bool:
    """True when the uuid is among those of some links."""
    return _BETWEEN + uuid.encode("utf-8", "surrogatepass") + _BETWEEN in uuids
