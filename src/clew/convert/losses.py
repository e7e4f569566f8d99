"""The outcome of a conversion: the files, and the list of what is lost.

Lost is what the target cannot hold, and what of the source could not be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import UNSET, UnsetType

from clew.agents.base import Unit
from clew.model.codes import CODES

_WITHOUT_WORDS = {"blank-line", "nul-run", "byte-order-mark"}
"""Findings about lines that cannot hold a message."""


class Loss(msgspec.Struct, frozen=True):
    """Something the target cannot hold."""

    message: int | None
    """Index of the message in the session, the first of several; None: it concerns the whole."""
    what: str
    """In words; what is lost several times begins with how often."""
    why: str
    is_note: bool = False
    """True if no message, call, result or file is lost: it is reported, but does not need --allow-loss."""
    kind: str | UnsetType = UNSET
    """What is lost without the numbers and names that `what` has: it is equal in several sessions, so they are counted.
    Absent: `what` has neither."""
    count: int | UnsetType = UNSET
    """How many of this kind are lost; absent: one."""

    def in_subagent(self, name: str) -> Loss:
        """The loss of a sub-agent, for the list of the session that started it."""
        what = f"{self.what}, in the sub-agent {name}"
        return msgspec.structs.replace(self, message=None, what=what, kind=self.kind or self.what)


class Converted(msgspec.Struct, frozen=True):
    """What a conversion wrote, or would write."""

    session_id: str
    files: list[str]
    resume: list[str]
    losses: list[Loss]
    imports: list[list[str]] = []
    """The commands to be run before `resume`, by which the agent takes over the session and its sub-agents."""


def serious(losses: Sequence[Loss]) -> list[Loss]:
    """The losses that need the user's consent."""
    return [loss for loss in losses if not loss.is_note]


def refusal(losses: Sequence[Loss]) -> str:
    """Why a conversion with losses is refused, and what to do."""
    number = len(serious(losses))
    return f"{number} thing{'' if number == 1 else 's'} cannot be carried over; use --allow-loss to continue"


class Losses:
    """Collects losses; equal ones are counted."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, bool], tuple[Loss, int]] = {}
        """By what is lost, why, and whether it is a note: the first such loss, and how many there are."""

    def add(self, message: int | None, what: str, why: str) -> None:
        """Add a loss of a message, call, result or file."""
        self.append(Loss(message, what, why))

    def add_note(self, message: int | None, what: str, why: str) -> None:
        """Add something that the target cannot hold and that needs no consent."""
        self.append(Loss(message, what, why, is_note=True))

    def append(self, loss: Loss) -> None:
        """Add a loss; one with a `kind` has its number in `what`, and is added once."""
        key = (loss.what, loss.why, loss.is_note)
        first, times = self._found.get(key, (loss, 0))
        self._found[key] = first, times + 1

    def listed(self) -> list[Loss]:
        """The losses, in the order in which they were met."""
        return [
            loss
            if times == 1
            else msgspec.structs.replace(loss, what=f"{times} x {loss.what}", kind=loss.what, count=times)
            for loss, times in self._found.values()
        ]


class Damage:
    """Collects the lines of a session that cannot be read, while its units pass through `seen`."""

    def __init__(self, lines_before: int = 0) -> None:
        """`lines_before`: so many lines of an earlier history stand behind the first line, from another file."""
        self._losses: list[Loss] = []
        self._before = lines_before

    def seen(self, units: Iterable[Unit]) -> Iterator[Unit]:
        """The units as they are."""
        for unit in units:
            is_fragment = not unit.is_message and unit.value["kind"] == "fragment"
            codes = [code for code in unit.findings if code not in _WITHOUT_WORDS]
            if is_fragment and (codes or not unit.findings):
                why = _meaning(codes[0] if codes else "fragment")
                self._losses.append(
                    Loss(
                        None,
                        f"{self._place(unit)}, which may hold a message",
                        why,
                        kind="a line that may hold a message",
                    )
                )
            yield unit

    def _place(self, unit: Unit) -> str:
        if self._before and 1 < unit.line <= self._before + 1:
            return "a line of the history before it"
        line = unit.line if unit.line == 1 else unit.line - self._before
        return f"line {line}" + (f" of its file {unit.part + 1}" if unit.part else "")

    def losses(self, is_cut: bool) -> list[Loss]:
        """The damage of all units; `is_cut`: the file could not be decompressed to its end."""
        rest = [Loss(None, "the rest of the file", _meaning("damaged-archive"))] if is_cut else []
        return self._losses + rest


def _meaning(code: str) -> str:
    meaning = CODES[code].meaning
    return meaning[0].lower() + meaning[1:].removesuffix(".")
