"""clew stats: count tokens, cost, turns, tool calls, time and changed lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from clew.catalog.budget import Budget, with_budget
from clew.catalog.filters import WarehouseSessions
from clew.catalog.ids import session_key
from clew.catalog.queries import with_subagents
from clew.catalog.stats import BLOCK, BY, Row, Stats, catalog_stats, report, with_names
from clew.catalog.sync_level import SyncLevel
from clew.cli.completion import complete_session
from clew.cli.options import common, filtering, open_library, print_no_sessions, take_filters, wants_json
from clew.cli.output import CsvOutput, print_table
from clew.cli.redaction import redacting, redaction
from clew.cli.sessions import open_catalog_of, suggest_moved_project
from clew.errors import UsageError
from clew.filters import Filters
from clew.library import Library
from clew.references import named_path
from clew.render.csv import write_csv
from clew.render.tables import (
    Column,
    clock,
    cost,
    count,
    counted,
    dollars,
    duration,
    short_ids,
    short_project,
    time_left,
)
from clew.render.text_safety import one_line
from clew.timezone import zone_label

TIMES = ("day", "week", "month", "weekday", "hour", BLOCK)
"""Groupings whose row names are times."""
_BAR = 12
_EIGHTHS = " ▏▎▍▌▋▊▉"
_BARS = ""
_SESSION = ("title", "project")
_DROPPED_FIRST = (
    _BARS,
    "project",
    "sub-agents",
    "active",
    "errors",
    "files",
    "cache write",
    "tools",
    "cache hit",
    "turns",
    "used by",
    "sessions",
    "cache read",
    "95 %",
    "median",
    "total",
    "longest",
    "input",
)
"""The columns that are left out on a narrow terminal, in this order."""
_DROP_RANKS = {title: len(_DROPPED_FIRST) - at for at, title in enumerate(_DROPPED_FIRST)}
_MIN_NAME_CELLS = {"model": 24, "title": 16}
"""The width that these columns keep, so that their values stay distinguishable."""

Cell = Callable[[Row], str]


@click.command("stats")
@click.argument("references", nargs=-1, metavar="[PATH|REF]...", shell_complete=complete_session)
@click.option("--by", type=click.Choice(BY), multiple=True, help="What each row sums up.  [default: day]")
@click.option("--blocks", is_flag=True, help="One row for each block of five hours.")
@click.option("--subagents", is_flag=True, help="With REF: count its sub-agents too.")
@click.option(
    "--budget",
    "budget_amount",
    metavar="AMOUNT",
    help="Compare the cost with this amount in dollars: of each row with --by or --blocks, or else in total.",
)
@click.option("--warn-at", metavar="PERCENT", help="With --budget: mark costs from this share of it, such as 80%.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option(
    "--engine", metavar="NAME", help="Read from: sqlite (the catalog), duckdb:DIR, postgresql://..., spark://..."
)
@redacting
@filtering
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    references: tuple[str, ...],
    by: tuple[str, ...],
    blocks: bool,
    subagents: bool,
    budget_amount: str | None,
    warn_at: str | None,
    as_csv: bool,
    engine: str | None,
    homes: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Count tokens and their cost, sessions, turns, tool calls, errors, time and changed lines.

    Every API call, turn and tool call counts once, even if several files, resumed sessions, forks or machines repeat
    it. Filters apply to each call: `--since` leaves out usage before that time. Cost is computed from public prices; >=
    means that some models have no known price. A session that `clew convert` wrote counts as one more session, with its
    turns and tool calls; its usage is not counted again.

    With REF, only these sessions are counted; with PATH, the sessions in a file or below a folder, without the catalog.

    Exit code 1: nothing was found, or a cost is above the budget. A cost that is only a lower bound is reported as
    unknown, and not as within the budget.
    """
    as_json, grouping = wants_json(context, as_json), _choose_grouping(by, blocks)
    budget = _choose_budget(budget_amount, warn_at, grouping)
    if budget is not None and as_csv and not (by or blocks):
        raise UsageError("--budget: --csv has no row of the total; add --by, or print --json")
    library = open_library(context, homes)
    filters = take_filters(options, library)
    with ExitStack() as stack:
        stats = _stats(stack, library, filters, engine, _Chosen(references, subagents))
        found = report(stats, grouping)
        if budget is not None:
            found = with_budget(found, budget, grouping if by or blocks else None, stats.sessions_without_usage())
    if not found["rows"] and engine is None and not references:
        suggest_moved_project(library, filters.folders)
    masking = redaction(context, for_programs=as_json or as_csv)
    if masking.was_asked or grouping not in TIMES or found["totals"]["unpriced_models"]:
        # Times and figures are not text of sessions: most statistics need no redaction rules.
        found = with_names(found, masking.names)
    if as_csv:
        # Nothing in it that a spreadsheet would run.
        write_csv(found["rows"], CsvOutput())
    elif as_json:
        sys.stdout.write(json.dumps(found, indent=2 if sys.stdout.isatty() else None) + "\n")
    elif found["rows"] and budget is not None:
        print_budget(found, grouping)
    elif found["rows"]:
        print_stats(found, grouping)
    else:
        sessions = found["totals"]["sessions"] + found["totals"]["subagents"]
        print_no_sessions(context, _COUNTED_SESSIONS.get(grouping, "sessions") if sessions else "sessions")
    return 0 if found["rows"] and (budget is None or not found["budget"]["is_exceeded"]) else 1


def _choose_budget(amount: str | None, warn_at: str | None, grouping: str) -> Budget | None:
    if amount is None:
        if warn_at is not None:
            raise UsageError("--warn-at needs --budget")
        return None
    if grouping == "tool":
        raise UsageError("--budget: the cost of a tool is not known; choose another --by")
    return Budget.parse(amount, warn_at)


def _choose_grouping(by: tuple[str, ...], blocks: bool) -> str:
    """What each row sums up."""
    given = [f"--by {name}" for name in by] + ["--blocks"] * blocks
    if len(given) > 1:
        raise UsageError(f"rows can be grouped in one way only; choose {' or '.join(given)}")
    return BLOCK if blocks else by[0] if by else "day"


class _Chosen(NamedTuple):
    """The sessions that were named."""

    references: tuple[str, ...]
    subagents: bool

    def paths(self) -> list[Path]:
        """The files and folders among them."""
        paths = [path for name in self.references if (path := named_path(name)) is not None]
        if paths and len(paths) < len(self.references):
            raise UsageError("name sessions either by their paths or by their ids")
        return paths

    def keys(self, library: Library) -> tuple[str, ...]:
        """The keys of the sessions, by which every engine knows them."""
        found = [session for name in self.references for session in library.find(name, missing=True)]
        keys = [session_key(session.agent.id, session.id) for session in found]
        if self.subagents:
            with library.catalog() as catalog:
                return tuple(with_subagents(catalog.db, keys))
        return tuple(keys)


def _stats(stack: ExitStack, library: Library, filters: Filters, engine: str | None, chosen: _Chosen) -> Stats:
    """Statistics from the catalog, or from the engine that was named; both stay open as long as the stack."""
    from clew.warehouse.engines import CATALOG, dialect_of, open_engine

    paths = chosen.paths()
    if chosen.references and not paths:
        filters = msgspec.structs.replace(filters, sessions=chosen.keys(library))
    if engine is None or engine == CATALOG:
        db, find_text = stack.enter_context(open_catalog_of(library, filters, paths, SyncLevel.MESSAGES))
        return catalog_stats(db, filters, find_text)
    if paths:
        raise UsageError("--engine: a path names no session of a warehouse; name the session by its id")
    opened = open_engine(engine)
    stack.callback(opened.close)
    return Stats(opened.ask, filters, WarehouseSessions(dialect_of(engine)))


def _number(name: str) -> Cell:
    return lambda row: count(row.get(name))


def _span(seconds: float | None) -> str:
    return duration(seconds or 0)


def _rate(row: Row) -> str:
    rate = row.get("cache_hit_rate")
    return f"{rate:.0%}" if rate is not None else ""


def _lines(row: Row) -> str:
    if not row.get("files_changed"):
        return ""
    came, went = ("?" if row[name] is None else row[name] for name in ("lines_added", "lines_removed"))
    return f"{row['files_changed']}: +{came} -{went}"


_SESSIONS: list[tuple[str, Cell]] = [("sessions", _number("sessions")), ("sub-agents", _number("subagents"))]
_SESSIONS_WITH_CALLS: list[tuple[str, Cell]] = [("used by", _number("sessions_with_calls"))]
_USED: list[tuple[str, Cell]] = [
    ("input", _number("input_tokens")),
    ("output", _number("output_tokens")),
    ("cache read", _number("cache_read_tokens")),
    ("cache write", _number("cache_creation_tokens")),
    ("cache hit", _rate),
    ("cost", cost),
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
    *_SESSIONS_WITH_CALLS,
    ("total", lambda row: _span(row["seconds"])),
    ("median", lambda row: _span(row["median_seconds"])),
    ("95 %", lambda row: _span(row["p95_seconds"])),
    ("longest", lambda row: _span(row["longest_seconds"])),
]


_COUNTED_SESSIONS = {
    "model": "sessions with token usage",
    BLOCK: "sessions with token usage",
    "tool": "sessions with tool calls",
}
"""What messages call the sessions that have a row, by grouping: others may exist, and have none."""


def print_stats(found: Row, by: str) -> None:
    """Print the rows with bars, and a last row with the total."""
    if by == "tool":
        _print([(by, lambda row: str(row[by])), *_TOOLS], found["rows"], lambda row: float(row["tool_calls"]))
        return
    total = {**found["totals"], by: "total"}
    names = _name_columns(found["rows"], by, total)
    sessions, done = (_SESSIONS, _DONE) if by not in ("model", BLOCK) else (_SESSIONS_WITH_CALLS, [])
    _print([*names, *sessions, *_USED, *done], [*found["rows"], total], _weight, last=total)
    for row in found["rows"]:
        if row.get("is_active"):
            click.echo(describe_active_block(row))
    _print_lower_bound(found)


def _name_columns(rows: Sequence[Row], by: str, total: Row) -> list[tuple[str, Cell]]:
    """The columns that name a row."""
    ids = [str(row[by]) for row in rows] if by == "session" else []
    short = short_ids(ids, ids)
    heading = f"{by} ({zone_label()})" if by in TIMES else by
    names: list[tuple[str, Cell]] = [(heading, lambda row: "total" if row is total else _name(row, by, short))]
    if by == "session":
        names += [(name, _session_cell(name, total)) for name in _SESSION]
    if by == BLOCK:
        names.append(("end", _block_end))
    return names


def print_budget(found: Row, by: str) -> None:
    """Print the cost of each group, its share of the budget and what remains of it; without groups, of the total."""
    budget = found["budget"]
    total = {**found["totals"], by: "total"}
    names = _name_columns(found["rows"], by, total) if budget["by"] else [("", lambda _: "total")]
    compared: list[tuple[str, Cell]] = [
        ("cost", cost),
        (f"of {dollars(budget['amount'])}", _budget_share),
        ("remaining", _budget_remaining),
        ("budget", lambda row: row.get("budget_state", "")),
    ]
    rows = [*found["rows"], total] if budget["by"] else [total]
    _print([*names, *compared], rows, _weight, last=total)
    _print_lower_bound(found)
    if budget["sessions_without_usage"]:
        sessions = counted(budget["sessions_without_usage"], "session")
        click.echo(f"not counted, because their cost is unknown: {sessions} without recorded usage", err=True)


def _budget_share(row: Row) -> str:
    share = row.get("budget_share")
    if share is None:
        return ""
    shown = f"{share:.1%}"
    return ">100%" if share > 1 and shown == "100.0%" else shown


def _budget_remaining(row: Row) -> str:
    remaining = row.get("budget_remaining")
    if remaining is None:
        return ""
    return dollars(remaining) if remaining >= 0 else f"-{dollars(-remaining)}"


def _print_lower_bound(found: Row) -> None:
    if found["totals"]["cost_is_at_least"]:
        click.echo(one_line(f"costs are lower bounds: {_why_lower_bound(found)}"), err=True)


def _why_lower_bound(found: Row) -> str:
    unpriced = [name or "(unknown)" for name in found["totals"]["unpriced_models"]]
    incomplete = [model for model, used in found["by_model"].items() if used["cost_is_at_least"]]
    reasons = [f"no price is known for: {', '.join(unpriced)}"] if unpriced else []
    if len(incomplete) > len(unpriced):
        reasons.append("the tokens of some calls are unknown")
    return "; ".join(reasons)


def _session_cell(name: str, total: Row) -> Cell:
    return lambda row: short_project(row.get(name) or "") or ("" if row is total else "-")


def _name(row: Row, by: str, short: dict[str, str]) -> str:
    name = str(row[by])
    if by == "session":
        return short[name]
    if by == BLOCK:
        return clock(name) or name
    return short_project(name) or "(unknown)"


def _block_end(row: Row) -> str:
    end = (clock(row.get("end")) or "")[11:]
    return f"{end} active" if row.get("is_active") else end


def describe_active_block(row: Row) -> str:
    """The time left in the active block, and what it will have cost at its end."""
    parts = [f"active block: {time_left(row['remaining_seconds'])} left"]
    if row["projected_cost"] is not None:
        parts += [
            f"{dollars(row['cost_per_hour'])} an hour",
            f"{dollars(row['projected_cost'])} at its end at this rate",
        ]
    return ", ".join(parts)


def _weight(row: Row) -> float:
    return float(row["cost_nano"] or 0)


def _print(
    columns: Sequence[tuple[str, Cell]], rows: Sequence[Row], weight: Callable[[Row], float], last: Row | None = None
) -> None:
    most = max((weight(row) for row in rows if row is not last), default=0.0)
    titles = [_column(title, is_first=at == 0) for at, (title, _) in enumerate(columns)]
    titles.append(_column(_BARS, is_first=False))
    cells = [[cell(row) for _, cell in columns] for row in rows]
    for row, shown in zip(rows, cells, strict=True):
        shown.append("" if row is last else bar(weight(row), most))
    # Names were masked with the report, and the rest are figures.
    print_table(titles, cells, None)


_NEVER_CUT = frozenset({"session", *TIMES})
"""Columns of ids and times, which differ at the end."""


def _column(title: str, *, is_first: bool) -> Column:
    is_name = is_first or title in _SESSION
    return Column(
        title,
        right=not is_name and title != _BARS,
        flexible=is_name and title.partition(" ")[0] not in _NEVER_CUT,
        least=_MIN_NAME_CELLS.get(title, 12),
        drop_rank=0 if is_first else _DROP_RANKS.get(title, 0),
    )


def bar(part: float, most: float) -> str:
    """A bar as long as its share of the longest."""
    eighths = round(part / most * _BAR * 8) if most else 0
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()
