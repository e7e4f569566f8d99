"""Messages that stand before their turn, held until then: the first at hand, all others on the disk."""

from __future__ import annotations

import marshal
from array import array
from tempfile import SpooledTemporaryFile

from clew.agents.base import Unit

AT_HAND = 8 << 20
"""So many bytes are held in memory."""
_NOT = -1


class Held:
    """Messages by their index; each is taken once. `last`: the highest index there may be."""

    def __init__(self, last: int) -> None:
        self._file = SpooledTemporaryFile(max_size=AT_HAND)  # noqa: SIM115 - closed on leaving
        self._places = array("q", [_NOT]) * (last + 1)
        self._end = 0

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()

    def __contains__(self, index: int) -> bool:
        return 0 < index < len(self._places) and self._places[index] != _NOT

    def put(self, unit: Unit) -> None:
        """Hold a message."""
        self._places[unit.value["index"]] = self._end
        self._file.seek(self._end)
        self._file.write(marshal.dumps([*unit]))
        self._end = self._file.tell()

    def take(self, index: int) -> Unit:
        """A message that is held."""
        self._file.seek(self._places[index])
        self._places[index] = _NOT
        unit: Unit = Unit(*marshal.load(self._file))
        return unit
