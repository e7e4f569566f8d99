"""clew watch: what runs now, and what it costs."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import Any

import click
import msgspec

from clew.catalog.running import RUNNING, running_sessions
from clew.catalog.sync_level import SyncLevel
from clew.cli import INTERRUPTED
from clew.cli.options import Number, common, filtering, open_library, take_filters, wants_json
from clew.cli.output import print_json, use_color
from clew.cli.redaction import Redaction, redacting, redaction
from clew.filters import Filters
from clew.library import Library
from clew.model.json import JSON

_MIN_SECONDS = 0.5
_MAX_SECONDS = 86_400.0


@click.command("watch")
@click.option("--once", is_flag=True, help="Print the present state, and end.")
@click.option(
    "--every",
    type=Number(_MIN_SECONDS, _MAX_SECONDS),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds between updates.",
)
@redacting
@filtering
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    once: bool,
    every: float,
    homes: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Show the sessions that run now or wait for you, and the cost of today, until you press Ctrl-C.

    A session runs if its file was written to within five minutes; it waits for you if its last message is an answer.
    With --json, each update is one line. In a pipe without --json, the state is printed once.
    """
    library = open_library(context, homes)
    filters = take_filters(options, library)
    json = wants_json(context, as_json)
    masking = redaction(context, for_programs=json)
    masking.prepare()

    def read_state() -> dict[str, JSON]:
        # Every update shows all sessions again: what is masked in the last one is reported at the end.
        masking.masked.clear()
        return present_state(library, filters)

    try:
        if json:
            while True:
                print_json(masking.value(read_state()))
                sys.stdout.flush()
                if once:
                    return 0
                time.sleep(every)
        if once or not sys.stdout.isatty():
            for line in _lines(read_state(), masking, _width()):
                click.echo(line, nl=False)
            return 0
        _show_live(read_state, masking, every)
    except KeyboardInterrupt:
        # This is how the command ends; there is nothing to say about it.
        return INTERRUPTED
    return 0


def present_state(library: Library, filters: Filters) -> dict[str, JSON]:
    """What runs now, what waits, and what was used today, from the catalog after a sync."""
    from clew.catalog.filters import matching_sources
    from clew.catalog.queries import entries
    from clew.catalog.stats import catalog_stats
    from clew.filters import point_in_time
    from clew.model.time import format_utc, spell_time

    with library.catalog(SyncLevel.MESSAGES, filters) as catalog:
        db, now = catalog.db, library.now()
        running = running_sessions(db, now)
        if running and filters != Filters():
            passing = set(matching_sources(db, filters, catalog.sources_with_text))
            running = {number: state for number, state in running.items() if number in passing}
        found = entries(db, list(running))
        midnight = point_in_time("today", now)
        today = msgspec.structs.replace(filters, since=max(filters.since or midnight, midnight))
        used = catalog_stats(db, today, catalog.sources_with_text).usage()
    return {
        "at": spell_time(now),
        "today": _amounts(used.as_row()) | {"sessions": used.sessions},
        "sessions": [
            {
                "state": running[one.number],
                "agent": one.agent,
                "id": one.id,
                "is_subagent": one.is_subagent,
                "project": one.project,
                "branch": one.branch,
                "title": one.title,
                "models": list(one.models),
                "started_at": format_utc(one.started_us) if one.started_us > 0 else None,
                "last_message_at": format_utc(one.ended_us) if one.ended_us > 0 else None,
                "messages": one.messages,
                **_amounts(one.used.as_row()),
            }
            for one in found
        ],
    }


def _amounts(row: dict[str, Any]) -> dict[str, JSON]:
    return {name: row[name] for name in ("cost", "cost_is_at_least", "total_tokens")}


def _width() -> int | None:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _lines(state: dict[str, JSON], masking: Redaction, width: int | None) -> list[str]:
    """The state as lines of text that fit the terminal."""
    from clew.model.time import parse_time
    from clew.render.tables import Column, ago, cost, count, counted, short_project, table, truncate
    from clew.timezone import local_time

    now = parse_time(state["at"])
    assert now is not None
    sessions = state["sessions"]
    running = sum(one["state"] == RUNNING for one in sessions)
    what = f"{running} running, {len(sessions) - running} waiting for you" if sessions else "nothing runs"
    today = f"today {cost(state['today'])}, {counted(state['today']['sessions'], 'session')}"
    heading = f"{local_time(now):%H:%M:%S}  {what}  ·  {today}"
    columns = [
        Column("state"),
        Column("agent", drop_rank=1),
        Column("project", flexible=True),
        Column("last", right=True, drop_rank=2),
        Column("messages", right=True, drop_rank=5),
        Column("tokens", right=True, drop_rank=3),
        Column("cost", right=True),
        Column("id", drop_rank=4),
        Column("title", flexible=True, drop_rank=6),
    ]
    cells = [
        [
            "waiting" if one["state"] != RUNNING else "running",
            one["agent"],
            short_project(one["project"] or "") + (" (sub-agent)" if one["is_subagent"] else ""),
            ago(parse_time(one["last_message_at"]), now) if one["last_message_at"] else "",
            count(one["messages"]),
            count(one["total_tokens"]),
            cost(one),
            one["id"][:8],
            one["title"] or "",
        ]
        for one in sessions
    ]
    # Masked before they are cut to fit; each by itself, so that no cell makes the next one a secret.
    names = list(dict.fromkeys(cell for row in cells for cell in row))
    shown = dict(zip(names, masking.names(names), strict=True))
    lines = [f"{truncate(heading, width) if width is not None else heading}\n"]
    if cells:
        masked = [[shown[cell] for cell in row] for row in cells]
        lines += ["\n", *table(columns, masked, width=width, color=use_color())]
    return lines


def _show_live(read_state: Callable[[], dict[str, JSON]], masking: Redaction, every: float) -> None:
    """Draw the state again and again, on a screen of its own."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    def drawn() -> Text:
        lines = _lines(read_state(), masking, _width())[: max(shutil.get_terminal_size().lines - 1, 2)]
        return Text.from_ansi("".join(lines), no_wrap=True)

    console = Console(no_color=not use_color() or None, highlight=False)
    first = drawn()  # A first sync shows its progress on the ordinary screen.
    live = Live(first, console=console, screen=True, auto_refresh=False)
    try:
        live.start()
        while True:
            time.sleep(every)
            live.update(drawn(), refresh=True)
    finally:
        # The terminal must not stay on the other screen, without a cursor.
        live.stop()
