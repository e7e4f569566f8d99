"""A session as it is read for a conversion: with the history that its own file only refers to."""

from __future__ import annotations

import shutil
import weakref
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp

import msgspec

from clew.agents.base import Agent, Receives, SourceFile, Unit, freeze, open_main, skim
from clew.convert.losing import Loss
from clew.convert.path import named_node
from clew.graph.links import NONE
from clew.io.compress import SUFFIXES
from clew.io.records import read_lines


class Whole:
    """Where a session is read. What had to be gathered lies in a file that goes when this does."""

    def __init__(self, agent: Agent, source: SourceFile) -> None:
        lines = agent.receiver().gathered(source.path, source.size) if isinstance(agent, Receives) else None
        self.is_gathered = lines is not None
        self.source = self._written(source, lines) if lines is not None else source
        self.facts = skim(agent, self.source, tree=True, counts=False)
        self._own = skim(agent, source, tree=True, counts=False) if self.is_gathered else self.facts
        self.lines_before = _lines(self.source) - _lines(source) if self.is_gathered else 0
        """How many lines of a history stand behind the first line."""
        self._agent, self._own_source = agent, source

    def _written(self, source: SourceFile, lines: Iterable[bytes]) -> SourceFile:
        folder = Path(mkdtemp(prefix="clew-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        packed = source.path.suffix in SUFFIXES
        path = folder / (source.path.stem if packed else source.path.name)
        with path.open("wb") as stream:
            stream.writelines(lines)
        return freeze(msgspec.structs.replace(source, path=path))

    def branch(self, named: str | None) -> str | None:
        """A message that names a branch, by its index in all that is read.

        What only repeats words of the history is no message there: the first behind it is on the same branch.
        """
        if named is None or not self.is_gathered:
            return named
        own, whole = self._messages
        links = self._own.tree.links
        node = named_node(links, named)
        while node != NONE and (index := _moved(links.messages[node], own, whole, self.lines_before)) is None:
            node = next((each for each, parent in enumerate(links.parents) if parent == node), NONE)
        return str(index) if node != NONE else None

    def placed(self, loss: Loss) -> Loss:
        """A loss, with the index that its message has in the session's own file, if it stands there."""
        if loss.message is None or not self.is_gathered:
            return loss
        own, whole = self._messages
        return msgspec.structs.replace(loss, message=_moved(loss.message, whole, own, -self.lines_before))

    @cached_property
    def _messages(self) -> tuple[array[int], array[int]]:
        """The lines that the messages stand on, in the session's own file and in all that is read."""
        read = self._agent.read
        own, whole = read(self._own_source, self._own), read(self.source, self.facts)
        return _lines_of(own), _lines_of(whole)


def _lines_of(units: Iterable[Unit]) -> array[int]:
    return array("q", (unit.line for unit in units if unit.is_message))


def _moved(index: int, here: array[int], there: array[int], by: int) -> int | None:
    """The index that a message has in the other file, so many lines further; None where that line holds no such."""
    line = here[index - 1]
    at = bisect_left(there, line + by) + index - 1 - bisect_left(here, line)
    return at + 1 if at < len(there) and there[at] == line + by else None


def _lines(source: SourceFile) -> int:
    with open_main(source) as stream:
        return sum(is_whole or text.endswith(b"\n") for text, _, _, is_whole in read_lines(stream))
