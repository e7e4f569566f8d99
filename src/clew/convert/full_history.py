"""A session as it is read for a conversion: with the history that its own file only refers to."""

from __future__ import annotations

import shutil
import weakref
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from tempfile import mkdtemp

import msgspec

from clew.agents.base import Agent, SourceFile, Unit, open_main, with_current_size
from clew.analysis.facts import Facts
from clew.analysis.links import NONE, Links
from clew.convert.losses import Loss
from clew.convert.path import BranchSelection, misnamed, named_node
from clew.io.compress import SUFFIXES

_PIECE = 1 << 20
_WITHIN = 20
"""So many bits of a place tell which record of its line it is."""


class Whole:
    """Where a session is read. What had to be gathered lies in a file that goes when this does.

    A record has the same place in both files: its line, so many lines further, and which one it is on that line. What
    is a message in one need not be one in the other: the history may say that an event only repeats something.
    """

    def __init__(self, agent: Agent, source: SourceFile) -> None:
        receiver = agent.receiver()
        lines = receiver.gathered(source.path, source.size) if receiver is not None else None
        self.is_gathered = lines is not None
        self.lines_before = 0
        """How many lines of a history stand behind the first line."""
        self._agent, self._own_source = agent, source
        self.source = self._written(source, lines) if lines is not None else source
        self.facts = agent.facts(self.source)
        self._places = array("q")
        """Where the messages stand in all that is read, once it was read."""

    def _written(self, source: SourceFile, lines: Iterable[bytes]) -> SourceFile:
        folder = Path(mkdtemp(prefix="clew-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        packed = source.path.suffix in SUFFIXES
        path = folder / (source.path.stem if packed else source.path.name)
        with path.open("wb") as stream:
            for text in lines:
                self.lines_before += text.endswith(b"\n")
                stream.write(text)
        self.lines_before -= _line_ends(source)
        return with_current_size(msgspec.structs.replace(source, path=path))

    def seen(self, units: Iterable[Unit]) -> Iterable[Unit]:
        """The units of all that is read as they are; where the messages stand is noted in passing."""
        return units if not self.is_gathered or self._places else _noted(units, self._places)

    def chosen(self, branch: str | None) -> BranchSelection:
        """The messages of a branch that is named as the session's own file shows it.

        What only repeats words of the history is no message in all that is read: the first behind it is on the same
        branch. Where there is none, the branch ends with the one before it, or with the history.
        """
        if branch is None or not self.is_gathered:
            return BranchSelection(self.facts, branch)
        for _ in self.seen(self._agent.units(self.source)):
            pass
        links = self._own.tree.links
        node = named_node(links, branch)
        if index := self._first(links, _below(links, node)):
            return BranchSelection(self.facts, str(index))
        index = self._first(links, links.ancestors(node)) or self._last_of_history()
        if index is None:
            raise misnamed(branch, "no message")
        return BranchSelection(self.facts, str(index), ends=True)

    def placed(self, loss: Loss) -> Loss:
        """A loss, with the index that its message has in the session's own file, if it stands there."""
        if loss.message is None or not self.is_gathered:
            return loss
        place = self._places[loss.message - 1] - (self.lines_before << _WITHIN)
        # Of what stands in the history, nothing needs to be known.
        index = _at(self._own_places, place) if place >> _WITHIN > 1 else None
        return msgspec.structs.replace(loss, message=index)

    def _first(self, links: Links, nodes: Iterable[int]) -> int | None:
        """The index, in all that is read, of the first of some nodes that is a message there."""
        own = (links.messages[node] for node in nodes)
        places = (self._own_places[index - 1] + (self.lines_before << _WITHIN) for index in own if index)
        return next(filter(None, (_at(self._places, place) for place in places)), None)

    def _last_of_history(self) -> int | None:
        """The index of the message that the session's own file goes on behind."""
        with open_main(self.source) as stream:
            size = sum(map(len, islice(stream, self.lines_before + 1)))
        history = self._agent.facts(msgspec.structs.replace(self.source, size=size)).tree
        last = history.links.uuid(history.leaf) if history.leaf != NONE else None
        links = self.facts.tree.links
        return next((links.messages[node] for node in range(len(links)) if last and links.uuid(node) == last), None)

    @cached_property
    def _own(self) -> Facts:
        return self._agent.facts(self._own_source)

    @cached_property
    def _own_places(self) -> array[int]:
        """Where the messages stand in the session's own file."""
        places = array("q")
        for _ in _noted(self._agent.units(self._own_source), places):
            pass
        return places


def _noted(units: Iterable[Unit], places: array[int]) -> Iterator[Unit]:
    """The units as they are, while the places of messages are noted."""
    line = within = 0
    for unit in units:
        within = within + 1 if unit.line == line else 0
        line = unit.line
        if unit.is_message:
            places.append((line << _WITHIN) + within)
        yield unit


def _at(places: array[int], place: int) -> int | None:
    """The index of the message at a place; None where that holds none."""
    at = bisect_left(places, place)
    return at + 1 if at < len(places) and places[at] == place else None


def _below(links: Links, node: int) -> Iterator[int]:
    """A node and all that follows it."""
    below = {node}
    for each in range(node, len(links)):
        if each == node or links.parents[each] in below:
            below.add(each)
            yield each


def _line_ends(source: SourceFile) -> int:
    with open_main(source) as stream:
        return sum(piece.count(b"\n") for piece in iter(partial(stream.read, _PIECE), b""))
