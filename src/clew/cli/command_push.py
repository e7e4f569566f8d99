"""clew push: what was used and done, on a server that many machines share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from clew.cli.options import common, filtering, library, take_filters, wants_json
from clew.cli.output import print_json, say
from clew.cli.progress import progress_bar
from clew.errors import UsageError
from clew.warehouse.columns import LEVELS

if TYPE_CHECKING:
    from clew.library import Library
    from clew.warehouse.postgres.push import Report

_UNREADABLE = 3
_SHOWN = 20
"""So many sources that cannot be read are named."""


@click.command("push")
@click.argument("server", nargs=-1, metavar="postgresql://USER@HOST:PORT/DATABASE")
@click.option("--level", type=click.Choice(LEVELS), default="metrics", show_default=True, help="How much leaves.")
@click.option("--dry-run", is_flag=True, help="Say what would be pushed, and push nothing.")
@filtering
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    server: tuple[str, ...],
    level: str,
    dry_run: bool,
    homes: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Push sessions to a PostgreSQL server, where those of many machines are merged.

    At level `metrics` no text leaves: counts, times, names of models and tools. `redacted` adds what was said, with
    secrets and paths masked before anything is sent; `raw` sends it as it is. A push sends what the server does not
    have, and may be repeated or interrupted at any time.

    `clew stats --engine` and `clew search --engine` ask the server. Give no password in the address where others can
    see your commands: ~/.pgpass and PGPASSWORD work. Exit code 3: a source could not be read; 5: the server cannot
    take it; 7: it does not answer.
    """
    if len(server) != 1:
        # Not told by click, which would print what was given, and with it a password.
        raise UsageError("name one server, as postgresql://USER@HOST:PORT/DATABASE")
    as_json = wants_json(context, as_json)
    shelf = library(context, homes)
    report = _push(server[0], shelf, level, dry_run, options, as_json)
    for problem in report.work.unreadable[:_SHOWN]:
        say(f"clew: {problem}")
    if len(report.work.unreadable) > _SHOWN:
        say(f"clew: {len(report.work.unreadable) - _SHOWN} more sources cannot be read")
    if as_json:
        print_json(report.counts())
    else:
        _tell(report, dry_run)
    return _UNREADABLE if report.work.unreadable else 0


def _push(url: str, shelf: Library, level: str, is_dry: bool, options: dict[str, Any], as_json: bool) -> Report:
    from clew.warehouse.engines import need_server

    need_server(url, "the address of a server is spelled")
    from clew.warehouse.postgres.connection import check_address
    from clew.warehouse.postgres.push import push
    from clew.warehouse.publisher import writer

    # Before anything is looked for: a misspelled address is told at once.
    check_address(url)
    filters = take_filters(options, shelf)
    found = shelf.sources() if filters == type(filters)() else shelf.sessions(filters)
    sources = [session.source for session in found]
    with progress_bar("pushing", is_quiet=as_json) as on_progress:
        return push(url, sources, writer(level), is_dry=is_dry, tell=on_progress)


def _tell(report: Report, is_dry: bool) -> None:
    work = report.work
    if is_dry:
        say(f"{work.sources} of {report.sources} sources would be pushed at level {report.level}, {work.size:,} bytes")
    elif work.sources:
        say(f"{work.sources} sources pushed at level {report.level}, {work.rows:,} rows; {report.unchanged} unchanged")
    elif work.unreadable:
        say(f"nothing pushed: the server has {report.unchanged} of {report.sources} sources as they are")
    else:
        say(f"nothing new: the server has all {report.sources} sources")
