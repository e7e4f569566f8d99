"""clew stats: what was used, what it cost, and what was done."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from typing import Any

import click

from clew.catalog import database
from clew.catalog.answer import counted_stats, fresh_stats, over
from clew.catalog.stats import BLOCK, BY, Choice, Stats, report, with_names
from clew.cli.options import FILTER_NAMES, check_agents, common, filtering, wants_json
from clew.cli.quick_stats import keep_memory
from clew.cli.redacting import DATA, TEXT, redacting, redaction
from clew.cli.sourcing import REFRESH, wanted_sources
from clew.errors import SourceUnreadable, UsageError

HAS = ("error", "thinking", "subagent", "edit")
TIMES = ("day", "week", "month", BLOCK)
"""What rows stand for where their names are times."""


@click.command("stats")
@click.option("--by", type=click.Choice(BY), default="day", show_default=True, help="What a row stands for.")
@click.option("--blocks", is_flag=True, help="A row for each block of five hours.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option(
    "--engine", metavar="NAME", help="What to ask: sqlite (the catalog), duckdb:DIR, postgresql://..., spark://..."
)
@redacting
@filtering
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    by: str,
    blocks: bool,
    as_csv: bool,
    engine: str | None,
    homes: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Count tokens and what they cost, sessions, turns, tools, errors, time and changed lines.

    Every API call counts once, whatever files, resumed sessions, forks, sub-agents and machines repeat. Filters hold
    for each call: `--since` leaves out what was used before. From the catalog where it is fresh; without it, tokens
    and costs are counted from the sources, and the rest is unknown. `clew sync` makes a catalog.
    """
    choice = _choice({name: options.pop(name) for name in FILTER_NAMES})
    by = BLOCK if blocks else by
    with ExitStack() as stack:
        if engine is not None:
            stats = _asked(stack, context, engine, homes, choice)
        else:
            stats = _stats(context, homes, choice, by)
        found = report(stats, by)
    as_json = wants_json(context, as_json)
    masking = redaction(context, DATA if as_json or as_csv else TEXT)
    if masking.was_asked or by not in TIMES or found["totals"]["unpriced_models"]:
        # Times and figures do not come from what was said, and most statistics do without the rules.
        found = with_names(found, masking.names)
    if as_csv:
        from clew.cli.stats_shown import print_csv

        print_csv(found["rows"])
    elif as_json:
        sys.stdout.write(json.dumps(found, indent=2 if sys.stdout.isatty() else None) + "\n")
    else:
        from clew.cli.stats_shown import print_stats

        print_stats(found, by, is_full=stats.is_full)
    return 0 if found["rows"] else 1


def _asked(stack: ExitStack, context: click.Context, engine: str, homes: tuple[str, ...], choice: Choice) -> Stats:
    """Statistics from an engine that was named; the catalog is brought up to date first."""
    from clew.warehouse.engines import CATALOG, open_engine

    if engine == CATALOG:
        return _catalogued(context, homes, choice)
    opened = open_engine(engine)
    stack.callback(opened.close)
    return Stats(opened.ask, choice, is_full=True)


def _choice(given: dict[str, Any]) -> Choice:
    """The filters as statistics take them."""
    if given["text"] is not None:
        raise UsageError("--text: statistics do not look into what was said; `clew search` does")
    for what in given["has"]:
        if what not in HAS:
            raise UsageError(f"--has {what}: choose from {', '.join(HAS)}")
    check_agents(given["agent"])
    limits: dict[str, Any] = {}
    for name in ("since", "until"):
        if given[name] is not None:
            limits[f"{name}_us"] = _microseconds(given[name])
    plain = {name: given[name] for name in ("project", "branch", "model", "tool", "file")}
    return Choice(agent=tuple(given["agent"]), has=tuple(given["has"]), **plain, **limits)


def _microseconds(words: str) -> int:
    # Who gives no time need not load what reads it.
    from datetime import UTC, datetime

    from clew.filters import point_in_time
    from clew.model.time import microseconds

    return microseconds(point_in_time(words, datetime.now(UTC)).isoformat().replace("+00:00", "Z")) or 0


def _stats(context: click.Context, homes: tuple[str, ...], choice: Choice, by: str) -> Stats:
    """Statistics from the catalog where it is fresh, else from the sources as far as they tell, else after a sync."""
    named = (*context.find_root().obj["homes"], *homes)
    if not wanted_sources(context) and not context.meta.get(REFRESH):
        stats = fresh_stats(database.catalog_folder(named), choice)
        if stats is not None:
            return stats
    from clew.cli.options import library
    from clew.cli.output import say

    shelf = library(context, homes)
    if wanted_sources(context) and not context.meta.get(REFRESH):
        from clew.cli.cataloguing import folder_for

        stats = fresh_stats(folder_for(context, homes, shelf.hosts), choice)
        if stats is not None:
            return stats
    if by == "tool" or choice.needs_catalog:
        say("clew: only a catalog can tell; it is brought up to date, as `clew sync` does")
        return _catalogued(context, homes, choice)
    keep_memory()
    sources = ((session.agent, session.source) for session in shelf.sources())
    stats, unreadable = counted_stats(sources, choice, by=by, by_call=by == BLOCK)
    for problem in unreadable:
        say(f"clew: {problem}")
    return stats


def _catalogued(context: click.Context, homes: tuple[str, ...], choice: Choice) -> Stats:
    """Statistics from the catalog after a sync."""
    from clew.catalog.sync import sync
    from clew.cli.cataloguing import folder_for
    from clew.cli.options import library

    hosts = library(context, homes).hosts
    folder = folder_for(context, homes, hosts)
    sync(hosts, folder)
    db = database.open_reader(folder)
    if db is None:
        raise SourceUnreadable(f"{folder}: the catalog cannot be read")
    return over(db, choice, is_full=True)
