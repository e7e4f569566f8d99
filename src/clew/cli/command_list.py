"""clew list: sessions, newest first."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import click

from clew.catalog.queries import SORTS
from clew.cli.options import common, filtering, open_library, print_no_sessions, take_filters, wants_json
from clew.cli.output import print_json, print_message, print_table
from clew.cli.redaction import Redaction, redacting, redaction
from clew.errors import Busy, SourceUnreadable
from clew.io.database_paths import is_in_database
from clew.model.json import JSON
from clew.model.time import parse_time

_SHOWN_COLUMNS = (
    "agent ended_at project messages total_tokens cost cost_is_at_least has_errors starred title source"
).split()


@click.command("list")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@click.option("--sort", type=click.Choice(SORTS), default="time", show_default=True, help="Newest or largest first.")
@click.option("--reverse", is_flag=True, help="Oldest or smallest first.")
@click.option("-n", "--limit", type=click.IntRange(min=1), metavar="N", help="List only the first N.")
@click.option("--subagents/--no-subagents", default=False, help="List the sessions of sub-agents too.")
@redacting
@filtering
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    paths: tuple[Path, ...],
    sort: str,
    reverse: bool,
    limit: int | None,
    subagents: bool,
    homes: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """List sessions, newest first. With --json, sub-agents are listed too.

    With PATH, list the sessions in a file or below a folder, without the catalog. `cost` counts the calls that no
    earlier copy of the session contains, as in `clew stats`. ! marks sessions with errors, ★ those with a star. Exit
    code 1: no session was found.
    """
    from clew.catalog.filters import catalog_condition
    from clew.catalog.queries import list_ids, list_rows
    from clew.cli.sessions import open_catalog_of, suggest_moved_project
    from clew.render.tables import short_ids

    as_json = wants_json(context, as_json)
    library = open_library(context, homes)
    filters = take_filters(options, library)
    for path in paths:
        if not path.exists() and not is_in_database(str(path)):
            raise SourceUnreadable(f"{path}: no such file or folder; `--project {path}` chooses sessions of a project")
    with open_catalog_of(library, filters, paths) as (db, find_text):
        condition = catalog_condition(db, filters, find_text)
        listed = list_rows(db, condition, subagents=subagents or as_json, limit=limit, sort=sort, reverse=reverse)
        names = {} if as_json else short_ids([row["id"] for row in listed], list_ids(db, condition))
    _add_annotations(listed)
    if not listed and not paths:
        suggest_moved_project(library, filters.folders)
    masking = redaction(context, for_programs=as_json)
    if as_json:
        print_json(masking.value(listed))
    elif listed:
        ids = [names[row["id"]] for row in listed]
        # The rows are masked with their keys, which say that a title may be cut, and then once more with the ids.
        shown = masking.value([{name: row[name] for name in _SHOWN_COLUMNS} for row in listed])
        _print(shown, ids, library.now(), sort, masking)
    elif paths:
        print_message("no sessions found", mask=False)
    else:
        print_no_sessions(context)
    return 0 if listed else 1


def _add_annotations(listed: list[dict[str, JSON]]) -> None:
    """Add the star and labels by which sessions are filtered, also those of messages; none if they cannot be read."""
    from clew.annotations import Annotations, AnnotationsUnreadable

    try:
        known = Annotations().index().marks
    except (Busy, AnnotationsUnreadable) as error:
        print_message(f"clew: {error}")
        known = {}
    for row in listed:
        annotation = known.get((row["agent"], row["id"]))
        row["starred"] = annotation is not None and annotation.starred
        row["labels"] = list(annotation.labels) if annotation is not None else []


def _print(listed: list[dict[str, JSON]], ids: list[str], now: datetime, sort: str, masking: Redaction) -> None:
    from clew.render.tables import Column, ago, cost, count, short_project

    foreign = any(row["source"]["type"] != "local" for row in listed)
    columns = [
        Column("id"),
        Column("agent", drop_rank=2),
        Column("last", drop_rank=1),
        Column("project", is_path=True, flexible=True, drop_rank=4),
        Column("messages", right=True, drop_rank=5),
        Column("tokens", right=True, drop_rank=7),
        Column("cost", right=True, drop_rank=6),
        Column(""),
        Column("title", flexible=True, least=20),
        *([Column("from", drop_rank=3)] if foreign else []),
    ]
    # What the rows are sorted by is not left out.
    columns = [column._replace(drop_rank=0) if column.title == sort else column for column in columns]
    cells = [
        [
            name,
            row["agent"],
            ago(parse_time(row["ended_at"]), now),
            short_project(row["project"] or ""),
            count(row["messages"]),
            count(row["total_tokens"]),
            cost(row),
            ("★" if row["starred"] else "") + ("!" if row["has_errors"] else ""),
            row["title"] or "",
            *([_place(row["source"])] if foreign else []),
        ]
        for name, row in zip(ids, listed, strict=True)
    ]
    print_table(columns, cells, masking)


def _place(source: dict[str, JSON]) -> str:
    """The machine or system that a session comes from; empty for this one."""
    return source["host"] or (source["type"] if source["type"] != "local" else "")
