"""Rows as CSV without anything that a spreadsheet would run as a formula."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from clew.render.text_safety import visible

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def write_csv(rows: Sequence[Mapping[str, Any]], out: SupportsWrite[str]) -> None:
    """Write a line of column names, and one for each row."""
    writer = csv.writer(out, lineterminator="\n")
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer.writerow(names)
    for row in rows:
        writer.writerow([escape_formula(row.get(name)) for name in names])


def escape_formula(value: Any) -> str:
    """The text of a cell, without control characters; a quote before it keeps a spreadsheet from running it."""
    if value is None:
        return ""
    if isinstance(value, Iterable) and not isinstance(value, str):
        value = " ".join(map(str, value))
    text = visible(str(value))
    return f"'{text}" if text.startswith(FORMULA_STARTS) and not isinstance(value, int | float) else text
