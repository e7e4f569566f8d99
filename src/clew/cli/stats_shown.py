"""Statistics as a table with bars, and as CSV."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from clew.cli.output import CsvOutput
from clew.render.csv import write_csv
from clew.render.tables import Column, cell_width, count, table
from clew.render.text_safety import one_line

_BAR = 12
_EIGHTHS = " ▏▎▍▌▋▊▉"
_SHORT = 8
_BARS = ""
_DISPENSABLE = (
    _BARS,
    "active",
    "errors",
    "files",
    "cache written",
    "tools",
    "hits",
    "turns",
    "sessions",
    "cache read",
    "95 %",
    "median",
    "in all",
    "longest",
    "title",
    "input",
)
"""The columns that give way on a narrow terminal, in this order."""

Row = dict[str, Any]
Cell = Callable[[Row], str]


def _number(name: str) -> Cell:
    return lambda row: count(row.get(name)) if row.get(name) is not None else ""


def cost_of(row: Row) -> str:
    """What it cost; where some of it has no price, that it was at least this."""
    if row.get("cost") is None:
        return "?" if row.get("calls") else ""
    return f"{'≥ ' if row['cost_is_at_least'] else ''}${row['cost']:,.2f}"


def _span(seconds: float | None) -> str:
    if not seconds:
        return ""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def _rate(row: Row) -> str:
    rate = row.get("cache_hit_rate")
    return f"{rate:.0%}" if rate is not None else ""


def _lines(row: Row) -> str:
    if not row.get("files_changed"):
        return ""
    came, went = ("?" if row[name] is None else row[name] for name in ("lines_added", "lines_removed"))
    return f"{row['files_changed']}: +{came} -{went}"


def _sessions(row: Row) -> str:
    """Those that used tokens, else all there are; nothing where only the catalog knows."""
    return _number("sessions")(row) if row.get("sessions") else _number("all_sessions")(row)


_USED: list[tuple[str, Cell]] = [
    ("sessions", _sessions),
    ("input", _number("input_tokens")),
    ("output", _number("output_tokens")),
    ("cache read", _number("cache_read_tokens")),
    ("cache written", _number("cache_creation_tokens")),
    ("hits", _rate),
    ("cost", cost_of),
]
_DONE: list[tuple[str, Cell]] = [
    ("turns", _number("turns")),
    ("tools", _number("tool_calls")),
    ("errors", _number("errors")),
    ("active", lambda row: _span(row.get("active_seconds"))),
    ("files", _lines),
]
_TOOLS: list[tuple[str, Cell]] = [
    ("calls", _number("tool_calls")),
    ("errors", _number("errors")),
    ("sessions", _number("sessions")),
    ("in all", lambda row: _span(row["seconds"])),
    ("median", lambda row: _span(row["median_seconds"])),
    ("95 %", lambda row: _span(row["p95_seconds"])),
    ("longest", lambda row: _span(row["longest_seconds"])),
]


def print_stats(found: Row, by: str, *, is_full: bool) -> None:
    """Rows with bars, and a last one for all."""
    if by == "tool":
        _print([(by, lambda row: str(row[by])), *_TOOLS], found["rows"], lambda row: float(row["tool_calls"]))
        return
    names: list[tuple[str, Cell]] = [(by, lambda row: _name(row, by))]
    if by == "session":
        names.append(("title", lambda row: row.get("title") or row.get("project") or ""))
    done = _DONE if is_full and by not in ("model", "block") else []
    total = {**found["totals"], by: "in all"}
    _print([*names, *_USED, *done], [*found["rows"], total], _weight, last=total)
    unpriced = [name or "(no name)" for name in found["totals"]["unpriced_models"]]
    if unpriced:
        click.echo(one_line(f"without a price, so costs are at least these: {', '.join(unpriced)}"), err=True)
    if not is_full:
        words = "turns, tools, files, and sessions without token counts, are known to the catalog"
        click.echo(f"{words}: `clew sync` makes one", err=True)


def _name(row: Row, by: str) -> str:
    name = str(row[by])
    if by == "session" and name != "in all":
        return name[: _SHORT + 6] if name.startswith("agent-") else name[:_SHORT]
    return name or "(unknown)"


def _weight(row: Row) -> float:
    return float(row["cost_nano"] or 0)


def _print(
    columns: Sequence[tuple[str, Cell]], rows: Sequence[Row], weight: Callable[[Row], float], last: Row | None = None
) -> None:
    most = max((weight(row) for row in rows if row is not last), default=0.0)
    titles = [
        Column(title, right=at > 0, flexible=at == 0 or title == "title") for at, (title, _) in enumerate(columns)
    ]
    titles.append(Column(_BARS))
    cells = [[cell(row) for _, cell in columns] for row in rows]
    for row, shown in zip(rows, cells, strict=True):
        shown.append("" if row is last else bar(weight(row), most))
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else None
    titles, cells = _narrowed(titles, cells, width)
    for line in table(titles, cells, width=width, color=terminal and "NO_COLOR" not in os.environ):
        click.echo(line, nl=False)


def _narrowed(titles: list[Column], cells: list[list[str]], width: int | None) -> tuple[list[Column], list[list[str]]]:
    """The table without as many of its columns as it takes to fit; those that tell least go first."""
    for title in _DISPENSABLE if width is not None else ():
        lines = table(titles, cells, width=width)
        if max(cell_width(line.rstrip("\n")) for line in lines) <= (width or 0):
            break
        kept = [at for at, column in enumerate(titles) if column.title != title]
        titles, cells = [titles[at] for at in kept], [[row[at] for at in kept] for row in cells]
    return titles, cells


def bar(part: float, most: float) -> str:
    """A bar as long as its share of the longest."""
    eighths = round(part / most * _BAR * 8) if most else 0
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def print_csv(rows: Sequence[Row]) -> None:
    """Rows as CSV, with nothing in it that a spreadsheet would run."""
    write_csv(rows, CsvOutput())
