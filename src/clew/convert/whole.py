"""A session as it is read for a conversion: with the history that its own file only refers to."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Iterable
from pathlib import Path
from tempfile import mkdtemp

import msgspec

from clew.agents.base import Agent, Receives, SourceFile, freeze, open_main, skim
from clew.convert.losing import Loss
from clew.convert.path import index_of
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
        self._before = self.facts.messages - self._own.messages
        """How many messages stand before those of the session's own file."""

    def _written(self, source: SourceFile, lines: Iterable[bytes]) -> SourceFile:
        folder = Path(mkdtemp(prefix="clew-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        packed = source.path.suffix in SUFFIXES
        path = folder / (source.path.stem if packed else source.path.name)
        with path.open("wb") as stream:
            stream.writelines(lines)
        return freeze(msgspec.structs.replace(source, path=path))

    def branch(self, named: str | None) -> str | None:
        """A message that names a branch, by its index in all that is read."""
        if named is None or not self.is_gathered:
            return named
        return str(index_of(self._own.tree.links, named) + self._before)

    def placed(self, loss: Loss) -> Loss:
        """A loss, with the index that its message has in the session's own file, if it stands there."""
        if loss.message is None or not self.is_gathered:
            return loss
        own = loss.message - self._before
        return msgspec.structs.replace(loss, message=own if own > 0 else None)


def _lines(source: SourceFile) -> int:
    with open_main(source) as stream:
        return sum(is_whole or text.endswith(b"\n") for text, _, _, is_whole in read_lines(stream))
