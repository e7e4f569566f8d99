"""clew push: send sessions to a PostgreSQL server that many machines share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from clew.cli.options import common, dry_run_option, filtering, open_library, take_filters, wants_json
from clew.cli.output import print_json, print_message
from clew.cli.progress import progress_bar
from clew.errors import SourceUnreadable, UsageError
from clew.warehouse.columns import LEVELS

if TYPE_CHECKING:
    from clew.library import Library
    from clew.warehouse.postgres.push import PushReport

_MAX_PRINTED_PROBLEMS = 20


@click.command("push")
@click.argument("server", nargs=-1, metavar="postgresql://USER@HOST:PORT/DATABASE")
@click.option("--level", type=click.Choice(LEVELS), default="metrics", show_default=True, help="How much to send.")
@dry_run_option()
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

    Level `metrics` sends no text: counts, times, names of models and tools. `redacted` adds the text, with secrets and
    paths masked before anything is sent; `raw` sends it as it is. A push sends what the server does not have. It can be
    interrupted and repeated at any time.

    `clew stats --engine` and `clew search --engine` query the server. Do not put a password into the URL if others can
    see your commands: use ~/.pgpass or PGPASSWORD. Exit code 3: a source could not be read; 5: the server refused the
    data; 7: it does not answer.
    """
    if len(server) != 1:
        # click would print the argument, and with it a password.
        raise UsageError("name one server, as postgresql://USER@HOST:PORT/DATABASE")
    as_json = wants_json(context, as_json)
    report = _push(server[0], open_library(context, homes), level, dry_run, options, as_json)
    unreadable = report.pushed.unreadable
    for problem in unreadable[:_MAX_PRINTED_PROBLEMS]:
        print_message(f"clew: {problem}")
    if len(unreadable) > _MAX_PRINTED_PROBLEMS:
        print_message(f"clew: {len(unreadable) - _MAX_PRINTED_PROBLEMS} more sources cannot be read")
    if as_json:
        print_json(report.as_dict())
    else:
        _print_report(report, dry_run)
    return SourceUnreadable.exit_code if unreadable else 0


def _push(url: str, sessions: Library, level: str, dry_run: bool, options: dict[str, Any], as_json: bool) -> PushReport:
    from clew.warehouse.engines import require_server

    require_server(url, "the URL of a server has the form")
    from clew.warehouse.postgres.connection import check_url
    from clew.warehouse.postgres.push import push
    from clew.warehouse.publisher import load_publisher

    # Before sessions are looked for, so that a misspelled URL is reported at once.
    check_url(url)
    filters = take_filters(options, sessions)
    found = sessions.sources() if filters == type(filters)() else sessions.sessions(filters)
    sources = [session.source for session in found]
    with progress_bar("pushing", is_quiet=as_json) as on_progress:
        return push(url, sources, load_publisher(level), dry_run=dry_run, on_progress=on_progress)


def _print_report(report: PushReport, dry_run: bool) -> None:
    pushed = report.pushed
    if dry_run:
        count = f"{pushed.sources} of {report.sources} sources"
        print_message(f"{count} would be pushed at level {report.level}, {pushed.size:,} bytes")
    elif pushed.sources:
        count = f"{pushed.sources} sources pushed at level {report.level}, {pushed.rows:,} rows"
        print_message(f"{count}; {report.unchanged} unchanged")
    elif pushed.unreadable:
        print_message(f"nothing pushed: the server has {report.unchanged} of {report.sources} sources as they are")
    else:
        print_message(f"nothing new: the server has all {report.sources} sources")
