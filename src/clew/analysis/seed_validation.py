"""The validator of the session schema (seed 004), word for word, on files as they really are.

It knows messages of user and assistant only. Real files hold more kinds of records: each kind is a warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import msgspec

from clew.analysis.validation import Place, time_problem
from clew.model import Problem
from clew.model.unit import Unit

_TYPES = ("user", "assistant")


def check_seed_004(units: Iterable[Unit], place_of: Callable[[Unit], Place]) -> Iterator[Problem]:
    """The three rules; `message N` counts from zero, as there, and the problem's index from one, as here."""
    session: str | None = None
    number = 0
    others: Counter[str] = Counter()
    first: dict[str, Place] = {}
    for unit in units:
        kind = native_type(unit)
        if kind not in _TYPES:
            others[kind] += 1
            first.setdefault(kind, place_of(unit))
            continue
        session = unit.claimed_session if not number else session
        for code, detail in _rules(unit, session):
            yield place_of(unit).problem(code, f"message {number} {detail}", unit.value["index"])
        number += 1
    if not number:
        yield Place().problem("empty-session")
    for kind, count in others.items():
        found = first[kind].problem("unknown-type", f"type {kind!r} is no message, {count} times")
        yield msgspec.structs.replace(found, severity="warning")


def _rules(unit: Unit, session: str | None) -> Iterator[tuple[str, str]]:
    if unit.claimed_session != session:
        yield "other-session", "has different sessionId"
    time = time_problem(unit)
    if time is not None:
        yield time


def native_type(unit: Unit) -> str:
    """The agent's own name for what a unit is."""
    value = unit.value
    if not unit.is_message:
        return str(value.get("type") or value.get("kind"))
    named = unit.native.get("type")
    return named if isinstance(named, str) else str(value["role"])
