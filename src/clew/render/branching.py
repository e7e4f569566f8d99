"""Finds the branch of each message of a forked session, from the document's graph and the stream of messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clew.analysis.tree import Tree
from clew.model import ForkPoint
from clew.model.json import JSON
from clew.render.detail import CONVERSATION
from clew.render.parts import Branch, Fork


class Forks:
    """The forks of a session by the message they follow, and the branches it went on with."""

    def __init__(self, points: Iterable[ForkPoint], active: Iterable[str]) -> None:
        active = list(active)
        path = set(active)
        self.start = active[0] if active else None
        """The message that the conversation goes back to: not the first of the session where a link is missing."""
        self._forks: dict[int, list[Branch]] = {}
        self.roots: dict[int, bool] = {}
        for point in points:
            branches = [Branch(branch.index, branch.uuid in path) for branch in point.branches]
            self._forks.setdefault(point.index, []).extend(branches)
            self.roots.update((branch.index, branch.is_active) for branch in branches)

    def __bool__(self) -> bool:
        return bool(self._forks)

    def __len__(self) -> int:
        return len(self._forks)

    def fork(self, index: int) -> Fork | None:
        """The fork that follows a message."""
        branches = self._forks.get(index)
        return Fork(index, tuple(branches), CONVERSATION) if branches else None

    @staticmethod
    def of_tree(tree: Tree) -> Forks:
        """The forks in the tree of a session."""
        undone = tree.undone()
        known = [fork for fork in tree.forks if undone is None or fork.node != undone.node]
        points = [tree.fork_point(fork) for fork in (*known, *([undone] if undone is not None else []))]
        if not points:
            return Forks((), ())
        return Forks(points, (uuid for part in tree.links.chunks(tree.path) for uuid in part))

    @staticmethod
    def of_graph(graph: JSON) -> Forks:
        """The forks as a unified document states them; None where it has no graph."""
        if not isinstance(graph, dict) or not graph.get("fork_points"):
            return Forks((), ())
        import msgspec

        return Forks(msgspec.convert(graph["fork_points"], Sequence[ForkPoint]), graph.get("active_path") or ())


class Branching:
    """Tracks the branch of each message of a forked session, in order."""

    def __init__(self, forks: Forks) -> None:
        self.forks = forks
        self._places: dict[str, tuple[int | None, bool]] = {}
        self.place: tuple[int | None, bool] = (None, False)
        """Of the last message: the first message of its branch, and whether the branch is abandoned."""

    def see(self, message: dict[str, JSON]) -> None:
        """Find the branch of the next message. Without a known parent, it is on the branch of the message before it.

        But what the conversation goes back to is on no branch, whatever was left before it.
        """
        uuid = message.get("uuid")
        above = self._places.get(message.get("parent_uuid") or "", self.place)
        if uuid is not None and uuid == self.forks.start:
            above = None, False
        is_active = self.forks.roots.get(message["index"])
        if is_active is None:
            self.place = above
        else:
            self.place = message["index"], above[1] or not is_active
        if uuid is not None:
            self._places[uuid] = self.place
