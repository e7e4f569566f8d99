"""clew list: sessions, newest first."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import click

from clew.cli.options import common, filtering, open_library, say_no_sessions, take_filters, wants_json
from clew.cli.output import print_json, print_table, say
from clew.cli.redaction import DATA, TEXT, Redaction, redacting, redaction
from clew.model.json import JSON
from clew.model.time import parse_time

_SHORT, _AGENT = 8, "agent-"
_SHOWN_COLUMNS = ("agent", "ended_at", "project", "messages", "total_tokens", "has_errors", "title", "source")


@click.command("list")
@click.option("-n", "--limit", type=click.IntRange(min=1), metavar="N", help="List only the newest N.")
@click.option("--subagents/--no-subagents", default=False, help="List the sessions of sub-agents too.")
@redacting
@filtering
@common
@click.pass_context
def command(
    context: click.Context, /, limit: int | None, subagents: bool, homes: tuple[str, ...], as_json: bool, **options: Any
) -> int:
    """List sessions, newest first. With --json, sub-agents are listed too.

    ! marks sessions with errors. Exit code 1: no session was found.
    """
    from clew.catalog.filters import catalog_condition
    from clew.catalog.queries import list_ids, list_rows, unreadable_sources
    from clew.catalog.search import catalog_text_finder

    as_json = wants_json(context, as_json)
    library = open_library(context, homes)
    filters = take_filters(options, library)
    with library.catalog(text=filters.needs_text) as catalog:
        condition = catalog_condition(catalog.db, filters, catalog_text_finder(catalog.db, catalog.folder))
        listed = list_rows(catalog.db, condition, subagents=subagents or as_json, limit=limit)
        names = shown_ids(list_ids(catalog.db, condition)) if not as_json else {}
        unreadable = unreadable_sources(catalog.db, filters.agent)
    for problem in unreadable:
        say(f"clew: {problem}")
    masking = redaction(context, DATA if as_json else TEXT)
    if as_json:
        print_json(masking.value(listed))
    elif listed:
        ids = [names[row["id"]] for row in listed]
        # The rows are masked with their keys, which say that a title may be cut, and then once more with the ids.
        shown = masking.value([{name: row[name] for name in _SHOWN_COLUMNS} for row in listed])
        _print(shown, ids, library.now(), masking)
    else:
        say_no_sessions(context)
    return 0 if listed else 1


def _print(listed: list[dict[str, JSON]], ids: list[str], now: datetime, masking: Redaction) -> None:
    from clew.render.tables import Column, ago, count

    foreign = any(row["source"]["type"] != "local" for row in listed)
    columns = [
        Column("id"),
        Column("agent", drop_rank=2),
        Column("last", drop_rank=1),
        Column("project", flexible=True, drop_rank=4),
        Column("messages", right=True, drop_rank=5),
        Column("tokens", right=True, drop_rank=6),
        Column(""),
        Column("title", flexible=True, least=20),
        *([Column("from", drop_rank=3)] if foreign else []),
    ]
    cells = [
        [
            name,
            row["agent"],
            ago(parse_time(row["ended_at"]), now),
            row["project"] or "",
            count(row["messages"]),
            count(row["total_tokens"]),
            "!" if row["has_errors"] else "",
            row["title"] or "",
            *([_place(row["source"])] if foreign else []),
        ]
        for name, row in zip(ids, listed, strict=True)
    ]
    print_table(columns, cells, masking)


def _place(source: dict[str, JSON]) -> str:
    """The machine or system that a session comes from; empty for this one."""
    return source["host"] or (source["type"] if source["type"] != "local" else "")


def shown_ids(ids: Iterable[str]) -> dict[str, str]:
    """The shortest unique prefix of each id, of at least 8 characters."""
    ordered = sorted(set(ids))
    shown = {}
    for before, name, after in zip(["", *ordered], ordered, [*ordered[1:], ""], strict=False):
        shared = max(_shared(name, other) for other in (before, after))
        least = _SHORT + (len(_AGENT) if name.startswith(_AGENT) else 0)
        shown[name] = name[: max(least, shared + 1)]
    return shown


def _shared(left: str, right: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(left), len(right)))
