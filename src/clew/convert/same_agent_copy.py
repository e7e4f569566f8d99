"""A session written anew for its own agent: every message and record, whole lines, nothing torn, under another id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clew.convert.losses import Loss
from clew.convert.path import BranchSelection
from clew.model.unit import Unit


class SameAgent:
    """The units of a session, repaired. The losses are complete once it was iterated."""

    def __init__(self, path: BranchSelection, whole: bool) -> None:
        self._path, self._whole = path, whole
        self.losses: list[Loss] = []
        self.said = 0
        """How many messages go over."""

    def of(self, units: Iterable[Unit]) -> Iterator[Unit]:
        """Everything but fragments. Unless the whole is wanted, only the messages on the path, and no rewinds.

        A rewind would take back messages of the path.
        """
        left_out = ("fragment",) if self._whole else ("fragment", "rewind")
        for unit in units:
            if not unit.is_message:
                if unit.value["kind"] not in left_out:
                    yield unit
            elif self._whole or self._path.holds(unit.value["index"]):
                self.said += 1
                yield self._relinked(unit)

    def _relinked(self, unit: Unit) -> Unit:
        """A message whose parent is missing follows the one before it."""
        instead = self._path.bridges.get(unit.value["index"])
        if instead is None or "parent_uuid" not in unit.value:
            return unit
        return unit._replace(value={**unit.value, "parent_uuid": instead})
