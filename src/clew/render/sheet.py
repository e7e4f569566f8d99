"""Rows as CSV, with nothing in it that a spreadsheet would run."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A cell that begins like this is a formula to a spreadsheet."""


def write_csv(rows: Sequence[Mapping[str, Any]], out: SupportsWrite[str]) -> None:
    """A line of names, and one for each row."""
    writer = csv.writer(out, lineterminator="\n")
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer.writerow(names)
    for row in rows:
        writer.writerow([defused(row.get(name)) for name in names])


def defused(value: Any) -> str:
    """A cell that is no formula."""
    if value is None:
        return ""
    if isinstance(value, Iterable) and not isinstance(value, str):
        value = " ".join(map(str, value))
    text = str(value)
    return f"'{text}" if text.startswith(_FORMULA) and not isinstance(value, int | float) else text
