"""clew totals: publish the cost of a month on a server, without rows of single people."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from clew.cli.options import as_json_option, wants_json
from clew.cli.output import print_json, print_message
from clew.errors import UsageError


@click.command("totals")
@click.argument("server", nargs=-1, metavar="postgresql://USER@HOST:PORT/DATABASE")
@click.option("--month", metavar="YYYY-MM", help="The month in UTC.  [default: the last one that is over]")
@click.option("--reader", metavar="ROLE", help="Let this role read the totals. It is refused if it can read more.")
@as_json_option
@click.pass_context
def command(
    context: click.Context, /, server: tuple[str, ...], month: str | None, reader: str | None, as_json: bool
) -> int:
    """Publish the cost and token usage of a month on a server: by day, team, project, branch and model.

    Every row is about at least five people. Smaller groups are merged, and more of them where a row minus rows of
    another table would be about fewer people. The totals are in the schema `clew_totals`, for readers who must not see
    what a single person did. A month that was published does not change.

    Log in as the role that owns the tables. Exit code 1: the month is about fewer than five people, so that nothing
    can be published; 5: the server refuses, or the reader could read more; 7: the server does not answer.
    """
    if len(server) != 1:
        # click would print the argument, and with it a password.
        raise UsageError("name one server, as postgresql://USER@HOST:PORT/DATABASE")
    from clew.warehouse.engines import require_server

    require_server(server[0], "the URL of a server has the form")
    from clew.warehouse.postgres.totals import check_month, last_month, publish_totals

    now = datetime.now(UTC)
    report = publish_totals(server[0], check_month(month or last_month(now), now), reader)
    has_rows = any(report.rows.values())
    if wants_json(context, as_json):
        print_json(report.as_dict())
    elif not has_rows:
        print_message(f"{report.month}: nothing published, because fewer than five people used agents")
    elif not report.is_new:
        print_message(f"{report.month} was published before; nothing changed")
    else:
        rows = ", ".join(f"{table} {count}" for table, count in report.rows.items())
        print_message(f"{report.month} published; rows: {rows}")
    return 0 if has_rows else 1
