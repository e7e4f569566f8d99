"""Text tables for the terminal, and readable numbers and times."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import accumulate, takewhile
from typing import Any, NamedTuple

from clew.io.paths import escape_controls
from clew.model.json import JSON
from clew.model.time import parse_time
from clew.render.text_safety import mask_spans, one_line, visible
from clew.timezone import format_day, format_minute, zone_label

GAP = "  "
_SHORT_ID_CHARS, _AGENT_PREFIX = 8, "agent-"
ELLIPSIS = "…"
_HASH_CHARS = 12
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"
_INVISIBLE = frozenset({"Mn", "Me", "Cf"})
_AGES = ((60, 1, ""), (3600, 60, "min"), (86400, 3600, "h"), (30 * 86400, 86400, "d"))


class Column(NamedTuple):
    """A column of a table. A flexible one is narrowed to `least` cells where the table is too wide."""

    title: str
    right: bool = False
    flexible: bool = False
    least: int = 8
    drop_rank: int = 0
    """Where the table is still too wide, columns with the highest rank are left out first; 0: never."""
    is_path: bool = False
    """Cells are paths: spaces stay as they are, control characters are shown as `\\n`, so that they can be copied."""


def table(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], *, width: int | None = None, color: bool = False
) -> Iterator[str]:
    """The lines of a table, header first, each with its newline; `width` None: as wide as it needs to be."""
    cells = [
        [
            visible(escape_controls(cell)) if column.is_path else one_line(cell)
            for column, cell in zip(columns, row, strict=True)
        ]
        for row in rows
    ]
    kept = _columns_that_fit(columns, _natural(columns, cells), width)
    columns, cells = [columns[at] for at in kept], [[row[at] for at in kept] for row in cells]
    widths = _fit(columns, _natural(columns, cells), width)
    header = _row(columns, [column.title for column in columns], widths)
    yield f"{_BOLD}{header}{_PLAIN}\n" if color else header + "\n"
    for row in cells:
        yield _row(columns, row, widths) + "\n"


def _natural(columns: Sequence[Column], cells: list[list[str]]) -> list[int]:
    widths = [cell_width(column.title) for column in columns]
    for row in cells:
        widths = [max(width, cell_width(cell)) for width, cell in zip(widths, row, strict=True)]
    return widths


def _columns_that_fit(columns: Sequence[Column], widths: Sequence[int], width: int | None) -> list[int]:
    """The positions of the columns that stay: as many as fit when every flexible one is as narrow as it may be."""
    kept = list(range(len(columns)))
    least = list(map(_least, columns, widths))
    while width is not None and sum(least[at] + len(GAP) for at in kept) - len(GAP) > width:
        last = max(kept, key=lambda at: columns[at].drop_rank)
        if not columns[last].drop_rank:
            break
        kept.remove(last)
    return kept


def _least(column: Column, natural: int) -> int:
    """The width that a column keeps: for a flexible one, `least` cells and its title."""
    return min(natural, max(column.least, cell_width(column.title))) if column.flexible else natural


def _fit(columns: Sequence[Column], widths: list[int], width: int | None) -> list[int]:
    """Narrow the widest flexible column again and again, until the table fits or no column can be narrowed."""
    if width is None:
        return widths
    least = list(map(_least, columns, widths))
    for _ in range(sum(widths) + len(GAP) * (len(widths) - 1) - width):
        giving = [at for at in range(len(widths)) if widths[at] > least[at]]
        if not giving:
            break
        widths[max(giving, key=widths.__getitem__)] -= 1
    return widths


def _row(columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int]) -> str:
    shown = map(truncate, cells, widths)
    padded = [pad(cell, width, right=column.right) for cell, width, column in zip(shown, widths, columns, strict=True)]
    return GAP.join(padded).rstrip()


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Filled with spaces to the width; `right` puts the text at the right."""
    space = " " * (width - cell_width(text))
    return space + text if right else text + space


def truncate(text: str, width: int) -> str:
    """The beginning of the text in at most `width` cells, with … where something is missing."""
    if len(text) * 2 <= width or cell_width(text) <= width:
        return text
    used = accumulate(map(_char_width, text))
    kept = sum(1 for _ in takewhile(lambda cells: cells < width, used))
    # A mask is shown whole or not at all.
    kept = next((start for start, end in mask_spans(text) if start < kept < end), kept)
    return text[:kept].rstrip() + ELLIPSIS if width > 0 else ""


def short_project(name: str) -> str:
    """The name of a project in a table. Gemini CLI knows some projects only by a hash of 64 digits: 12 are shown."""
    return name[:_HASH_CHARS] if re.fullmatch("[0-9a-f]{64}", name) else name


def cell_width(text: str) -> int:
    """How many cells of a terminal the text takes: wide characters two, combining ones none."""
    return len(text) if text.isascii() else sum(map(_char_width, text))


@lru_cache(maxsize=4096)
def _char_width(char: str) -> int:
    import unicodedata  # few texts have such characters

    if unicodedata.category(char) in _INVISIBLE:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def ago(then: datetime | None, now: datetime) -> str:
    """How long ago, as "3 h ago"; beyond a month the day. Both times know their zone."""
    if then is None:
        return "-"
    seconds = int((now - then).total_seconds())
    span = abs(seconds)
    for limit, unit, name in _AGES:
        if span < limit:
            if not name:
                return "just now"
            return f"{span // unit} {name} ago" if seconds > 0 else f"in {span // unit} {name}"
    return format_day(then)


def clock(timestamp: JSON) -> str | None:
    """A recorded time to the minute, in the zone of the user; as it is where it cannot be read."""
    stamp = parse_time(timestamp)
    if stamp is not None:
        return format_minute(stamp)
    return timestamp if isinstance(timestamp, str) else None


def time_range(first: datetime, last: datetime) -> str:
    """Two points in time and their zone: `2026-11-03 14:05 to 15:10 CET`."""
    begin, end = format_minute(first), format_minute(last)
    zones = zone_label(first), zone_label(last)
    begin += f" {zones[0]}" if zones[0] != zones[1] else ""
    return f"{begin} to {end[11:] if begin[:10] == end[:10] else end} {zones[1]}"


def time_left(seconds: float) -> str:
    """Hours and minutes, rounded up to the minute."""
    hours, minutes = divmod(-int(-seconds // 60), 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min"


def duration(seconds: float) -> str:
    """A length of time in its largest unit; empty for none."""
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f}".removesuffix(".0") + " s" if seconds else ""


def size(number: int | None) -> str:
    """Bytes as "1.2 MB"; unknown is "-"."""
    if number is None:
        return "-"
    scaled, unit = _scale(number, ("B", "kB", "MB", "GB", "TB"))
    return f"{scaled} {unit}"


def cost(row: Mapping[str, Any]) -> str:
    """The cost in a row; where some of it has no price, that it was at least this; "-" where nothing is known."""
    if row.get("cost") is None:
        return "-"
    return f"{'≥ ' if row['cost_is_at_least'] else ''}{dollars(row['cost'])}"


def dollars(amount: float) -> str:
    """An amount as "$1,234.50"; less than half a cent has more digits, as it must not look like nothing."""
    return f"${amount:,.{4 if 0 < amount < 0.005 else 2}f}"


def short_ids(ids: Iterable[str], all_ids: Iterable[str]) -> dict[str, str]:
    """The shortest prefix of each id, of at least 8 characters, that no other one of all ids has; masks stay whole."""
    ordered = sorted(set(all_ids))
    short = {}
    for name in ids:
        number = bisect_left(ordered, name)
        neighbours = ordered[max(0, number - 1) : number] + ordered[number + 1 : number + 2]
        shared = max((_shared_chars(name, other) for other in neighbours), default=0)
        least = _SHORT_ID_CHARS + (len(_AGENT_PREFIX) if name.startswith(_AGENT_PREFIX) else 0)
        cut = max(least, shared + 1)
        short[name] = name[: next((end for start, end in mask_spans(name) if start < cut < end), cut)]
    return short


def _shared_chars(left: str, right: str) -> int:
    """How many characters two ids share at their beginning."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((number for number, (one, other) in pairs if one != other), min(len(left), len(right)))


def counted(number: int, noun: str) -> str:
    """A number of things as "1 file" or "2 files"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def count(number: int | None) -> str:
    """A count as "1.2M"; unknown is "-"."""
    if number is None:
        return "-"
    scaled, unit = _scale(number, ("", "k", "M", "B", "T"))
    return scaled + unit


def _scale(number: int, units: Sequence[str]) -> tuple[str, str]:
    value, step = float(number), 0
    # What would be rounded to 1000 is 1.0 of the next unit.
    while abs(value) >= (999.5 if step else 1000) and step < len(units) - 1:
        value /= 1000
        step += 1
    if not step:
        return str(number), units[0]
    return (f"{value:.1f}" if abs(value) < 99.95 else f"{value:.0f}"), units[step]
