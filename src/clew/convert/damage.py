"""What of a session's bytes could not be read, and so cannot go over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clew.agents.base import Unit
from clew.convert.conversation import Loss
from clew.model.codes import CODES

_EMPTY = {"blank-line", "nul-run", "byte-order-mark"}
"""What holds no words: nobody misses it."""


class Damage:
    """Notes the damage while a session is read. The losses are complete once all was seen."""

    def __init__(self, lines_before: int = 0) -> None:
        """`lines_before`: of a history that stands behind the first line, and is not in the session's own file."""
        self._losses: list[Loss] = []
        self._before = lines_before

    def seen(self, units: Iterable[Unit]) -> Iterator[Unit]:
        """The units as they are."""
        for unit in units:
            if not unit.is_message and unit.value["kind"] == "fragment":
                self._note(unit)
            yield unit

    def _note(self, unit: Unit) -> None:
        code = next((code for code in unit.findings if code not in _EMPTY), "fragment")
        if unit.findings and _EMPTY.issuperset(unit.findings):
            return
        self._losses.append(Loss(None, f"{self._place(unit)}, which may hold a message", _meaning(code)))

    def _place(self, unit: Unit) -> str:
        if self._before and 1 < unit.line <= self._before + 1:
            return "a line of the history before it"
        line = unit.line if unit.line == 1 else unit.line - self._before
        return f"line {line}" + (f" of its file {unit.part + 1}" if unit.part else "")

    def losses(self, is_cut: bool) -> list[Loss]:
        """What was noted, and that the file could not be unpacked to its end."""
        rest = [Loss(None, "the rest of the file", _meaning("damaged-archive"))] if is_cut else []
        return self._losses + rest


def _meaning(code: str) -> str:
    meaning = CODES[code].meaning
    return meaning[0].lower() + meaning[1:].removesuffix(".")
