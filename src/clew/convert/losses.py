"""What a conversion loses: what the target cannot hold, and what of the source could not be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from clew.agents.base import Unit
from clew.model.codes import CODES


class Loss(msgspec.Struct, frozen=True):
    """Something the target cannot hold."""

    message: int | None
    """Index of the message in the session, the first of several; None: it concerns the whole."""
    what: str
    """In words; what is lost several times begins with how often."""
    why: str


class Losses:
    """Collects losses; equal ones are counted."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[int | None, int]] = {}
        """For what is lost, and why, the first message and how often."""

    def add(self, message: int | None, what: str, why: str) -> None:
        """One more."""
        first, times = self._found.get((what, why), (message, 0))
        self._found[what, why] = first, times + 1

    def listed(self) -> list[Loss]:
        """The losses, in the order in which they were met."""
        return [
            Loss(message, what if times == 1 else f"{times} x {what}", why)
            for (what, why), (message, times) in self._found.items()
        ]


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
