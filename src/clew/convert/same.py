"""A session written anew for its own agent: every message and record, whole lines, nothing torn, under another id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clew.agents.base import Unit
from clew.convert.conversation import Loss
from clew.convert.path import Chosen
from clew.model.json import JSON

_SPELLING = ("raw", "raw_base64", "end", "dialect")
"""What only the bytes of the original need."""


class SameAgent:
    """The units of a session, mended. The losses are complete once it was iterated."""

    def __init__(self, path: Chosen, agent: str, whole: bool) -> None:
        self._path, self._agent, self._whole = path, agent, whole
        self.losses: list[Loss] = []
        self.said = 0
        """How many messages go over."""

    def of(self, units: Iterable[Unit]) -> Iterator[tuple[bool, dict[str, JSON]]]:
        """Everything but fragments; of the messages only those on the path, unless the whole is wanted."""
        for unit in units:
            value = unit.value
            if unit.is_message:
                if not self._whole and not self._path.holds(value["index"]):
                    continue
                self.said += 1
                self._relink(value)
            elif value["kind"] == "fragment":
                continue
            self._respell(value)
            yield unit.is_message, value

    def _relink(self, value: dict[str, JSON]) -> None:
        """A message whose parent is missing follows the one before it."""
        instead = self._path.bridges.get(value["index"])
        if instead is not None and "parent_uuid" in value:
            value["parent_uuid"] = instead

    def _respell(self, value: dict[str, JSON]) -> None:
        own = (value.get("extensions") or {}).get(self._agent) or {}
        for name in _SPELLING:
            own.pop(name, None)
