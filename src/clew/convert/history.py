"""The messages of a session that are converted: one path, in its order, with the history its file only refers to."""

from __future__ import annotations

import shutil
import weakref
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from heapq import heappop, heappush
from itertools import islice
from pathlib import Path
from tempfile import mkdtemp

import msgspec

from clew.agents.base import Agent, Unit
from clew.agents.source import SourceFile, open_main, with_current_size
from clew.analysis.facts import Facts
from clew.analysis.links import MESSAGE, NONE, SAID, SIDECHAIN, Links
from clew.analysis.tree import find_path
from clew.convert.losses import Loss
from clew.errors import UsageError
from clew.io.compress import SUFFIXES


class BranchSelection:
    """The messages of one path, and how many others there are.

    A selection changes `facts.tree.links` (messages without a known parent get one), so make only one for each Facts.
    """

    def __init__(self, facts: Facts, branch: str | None, *, stops_at_named_message: bool = False) -> None:
        """`stops_at_named_message`: the branch ends with the message that it is named by, whatever follows that."""
        links = facts.tree.links
        self.bridges = _link_loose_messages(links)
        """For a message whose parent is missing the uuid it follows instead, by its index."""
        named = NONE if branch is None else _node_of_branch(links, branch)
        leaf = named if stops_at_named_message else _leaf(facts) if branch is None else _end(links, named)
        path = find_path(links, leaf)
        self._chosen = bytearray(facts.messages + 1)
        for node in path:
            self._chosen[links.messages[node]] = 1
        self._order = _order(links, path)
        self.left_out: list[int] = []
        """Indexes of the messages on other branches."""
        self.sidechain_messages: dict[str | None, list[int]] = {}
        """Indexes of the messages of sub-agents in the same file, by the uuid of the first message of each."""
        is_aside = leaf != NONE and bool(links.flags[leaf] & SIDECHAIN)
        firsts = array("i", range(len(links)))
        on_path = set(path)
        for node, (flags, parent) in enumerate(zip(links.flags, links.parents, strict=True)):
            if NONE < parent < node and flags & links.flags[parent] & SIDECHAIN:
                firsts[node] = firsts[parent]
            if flags & SAID and node not in on_path:
                if is_aside or not flags & SIDECHAIN:
                    self.left_out.append(links.messages[node])
                else:
                    self.sidechain_messages.setdefault(links.uuid(firsts[node]), []).append(links.messages[node])

    def contains(self, index: int) -> bool:
        """True for a message on the path."""
        return index < len(self._chosen) and self._chosen[index] == 1

    def in_order(self, units: Iterable[Unit]) -> Iterator[Unit]:
        """The units with the messages of the path in its order; a message before its turn waits in memory."""
        if self._order is None:
            yield from units
            return
        waiting: dict[int, Unit] = {}
        expected = iter(self._order)
        turn = next(expected, 0)
        for unit in units:
            index = unit.value["index"] if unit.is_message else 0
            if not self.contains(index):
                yield unit
            elif index != turn:
                waiting[index] = unit
            else:
                yield unit
                while (turn := next(expected, 0)) in waiting:
                    yield waiting.pop(turn)
        for index in (turn, *expected):
            if index in waiting:
                yield waiting[index]


def _order(links: Links, path: Sequence[int]) -> list[int] | None:
    """The messages of a path, each after the one that it follows, else as in the file; None where the file is so."""
    if not links.has_forward_links:
        return None
    chosen = set(path)
    followers: dict[int, list[int]] = {}
    for node in path:
        before = links.parents[node]
        while before != NONE and before not in chosen:
            before = links.parents[before]
        followers.setdefault(before, []).append(node)
    return [links.messages[node] for node in _in_order(followers, followers.get(NONE, []))]


def _link_loose_messages(links: Links) -> dict[int, str]:
    """Let messages whose parent is unknown follow the one before them, so that a path does not end there.

    These are messages whose parent is missing, for which the uuid of the new parent is returned by their index; and
    messages that name no parent, where they or the one before have no uuid, or no message of the session has a parent.
    Any other message without a parent begins a conversation.
    """
    are_unlinked = not links.is_derived and all(parent == NONE for parent in links.parents) and not links.cycles
    lost = set(links.missing)
    before = {0: NONE, SIDECHAIN: NONE}
    bridges: dict[int, str] = {}
    for node, flags in enumerate(links.flags):
        last = before[flags & SIDECHAIN]
        if links.parents[node] == NONE and last != NONE:
            if node in lost:
                is_loose = not flags & SIDECHAIN
            else:
                is_nameless = are_unlinked or links.uuid(node) is None or links.uuid(last) is None
                is_loose = bool(flags & MESSAGE) and is_nameless
            # Lines may stand before those that they follow.
            if is_loose and not (links.has_forward_links and node in links.ancestors(last)):
                links.parents[node] = last
                if node in lost and (uuid := links.uuid(last)) is not None:
                    bridges[links.messages[node]] = uuid
        if flags & MESSAGE:
            before[flags & SIDECHAIN] = node
    return bridges


def _leaf(facts: Facts) -> int:
    """The last message of the conversation: the recorded leaf, and messages without a uuid that follow it."""
    links, leaf = facts.tree.links, facts.tree.leaf
    if leaf == NONE and facts.leaf_uuid == "":
        return NONE
    for skip in (SIDECHAIN, 0):
        with_words = [node for node, flags in enumerate(links.flags) if flags & SAID and not flags & skip]
        if with_words:
            last = with_words[-1]
            return last if leaf == NONE or _leads_to_leaf(links, last, leaf) else leaf
    return leaf


def _leads_to_leaf(links: Links, node: int, leaf: int) -> bool:
    """True where only messages without a uuid lead from a node up to the leaf."""
    while node > leaf and links.uuid(node) is None:
        node = links.parents[node]
    return node == leaf


def _node_of_branch(links: Links, branch: str) -> int:
    """The node a branch is named by: the index of a message on it, or the beginning of its uuid."""
    found = [node for node, index in enumerate(links.messages) if index and str(index) == branch]
    if not found:
        named = [node for node in range(len(links)) if (links.uuid(node) or "").startswith(branch)]
        # Some uuids are those of other messages with more behind them.
        found = [node for node in named if links.uuid(node) == branch] or named
    if len(found) != 1:
        raise _branch_error(branch, "several messages" if found else "no message")
    return found[0]


def _branch_error(branch: str, which: str) -> UsageError:
    """The error for a name that names no branch."""
    return UsageError(f"--branch {branch}: {which} of that name; give the index or the uuid of one on the branch")


def _end(links: Links, node: int) -> int:
    """The last node with words at or below a node."""
    last = node
    for each in _below(links, node):
        if links.flags[each] & SAID:
            last = each
    return last


def _below(links: Links, node: int) -> Iterator[int]:
    """A node and all that follows it, each after its parent, else as in the file."""
    followers: dict[int, list[int]] = {}
    for each, parent in enumerate(links.parents):
        followers.setdefault(parent, []).append(each)
    return _in_order(followers, [node])


def _in_order(followers: dict[int, list[int]], first: list[int]) -> Iterator[int]:
    """Some nodes and all that follows them, each after the one that it follows, else as in the file."""
    ready = sorted(first)
    while ready:
        node = heappop(ready)
        yield node
        for follower in followers.get(node, ()):
            heappush(ready, follower)


class SessionWithHistory:
    """A session together with the history that its file only refers to, as forks of Codex do.

    Both are joined in a temporary file, which is removed with this object. A record has the same position in both
    files: its line, `lines_before` further on, and its number on that line. A message in one need not be a message in
    the other: the history may show that an event only repeats something.
    """

    def __init__(self, agent: Agent, source: SourceFile) -> None:
        profile = agent.target_profile()
        lines = profile.read_with_history(source.path, source.size) if profile is not None else None
        self.is_joined = lines is not None
        self.lines_before = 0
        """How many lines of the history stand behind the first line."""
        self._agent, self._own_source = agent, source
        self.source = self._join(source, lines) if lines is not None else source
        self.facts = agent.facts(self.source)
        self._positions: list[_Position] = []
        """Of the messages, once all units were read."""

    def _join(self, source: SourceFile, lines: Iterable[bytes]) -> SourceFile:
        folder = Path(mkdtemp(prefix="clew-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        path = folder / (source.path.stem if source.path.suffix in SUFFIXES else source.path.name)
        with path.open("wb") as stream:
            for text in lines:
                self.lines_before += text.endswith(b"\n")
                stream.write(text)
        with open_main(source) as stream:
            self.lines_before -= sum(line.endswith(b"\n") for line in stream)
        return with_current_size(msgspec.structs.replace(source, path=path))

    def units(self) -> Iterator[Unit]:
        """The units of the session and its history."""
        units = self._agent.units(self.source)
        return units if not self.is_joined or self._positions else _noting_positions(units, self._positions)

    def select(self, branch: str | None) -> BranchSelection:
        """The messages of a branch that is named as the session's own file shows it.

        A message that only repeats the history is none here: the first one behind it is on the same branch. Where there
        is none, the branch ends with the one before it, or with the history.
        """
        if branch is None or not self.is_joined:
            return BranchSelection(self.facts, branch)
        for _ in self.units():
            pass
        links = self._agent.facts(self._own_source).tree.links
        node = _node_of_branch(links, branch)
        if index := self._first_message(links, _below(links, node)):
            return BranchSelection(self.facts, str(index))
        index = self._first_message(links, links.ancestors(node)) or self._last_of_history()
        if index is None:
            raise _branch_error(branch, "no message")
        return BranchSelection(self.facts, str(index), stops_at_named_message=True)

    def with_own_index(self, loss: Loss) -> Loss:
        """A loss with the index that its message has in the session's own file; None where it is in the history."""
        if loss.message is None or not self.is_joined:
            return loss
        line, number = self._positions[loss.message - 1]
        own = (line - self.lines_before, number)
        is_own = own[0] > 1 and own in self._own_positions
        return msgspec.structs.replace(loss, message=self._own_positions.index(own) + 1 if is_own else None)

    def _first_message(self, links: Links, nodes: Iterable[int]) -> int | None:
        """The index, with the history, of the first of some nodes of the session's own file that is a message."""
        indexes = {position: index for index, position in enumerate(self._positions, 1)}
        for own in (links.messages[node] for node in nodes):
            if own:
                line, number = self._own_positions[own - 1]
                if found := indexes.get((line + self.lines_before, number)):
                    return found
        return None

    def _last_of_history(self) -> int | None:
        """The index of the message that the session's own file goes on behind."""
        with open_main(self.source) as stream:
            size = sum(map(len, islice(stream, self.lines_before + 1)))
        history = self._agent.facts(msgspec.structs.replace(self.source, size=size)).tree
        last = history.links.uuid(history.leaf) if history.leaf != NONE else None
        links = self.facts.tree.links
        return next((links.messages[node] for node in range(len(links)) if last and links.uuid(node) == last), None)

    @cached_property
    def _own_positions(self) -> list[_Position]:
        """Of the messages of the session's own file."""
        positions: list[_Position] = []
        for _ in _noting_positions(self._agent.units(self._own_source), positions):
            pass
        return positions


_Position = tuple[int, int]
"""The line of a record, and its number on that line."""


def _noting_positions(units: Iterable[Unit], positions: list[_Position]) -> Iterator[Unit]:
    """The units as they are; the positions of messages are added to the list."""
    line = number = 0
    for unit in units:
        number = number + 1 if unit.line == line else 0
        line = unit.line
        if unit.is_message:
            positions.append((line, number))
        yield unit
