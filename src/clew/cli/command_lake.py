"""clew lake: write the tables of all sessions as Parquet, and maintain them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from clew.cli.options import (
    Number,
    as_json_option,
    common,
    filtering,
    open_library,
    refuse_json,
    take_filters,
    wants_json,
)
from clew.cli.output import print_json, print_message
from clew.cli.progress import progress_bar
from clew.errors import SourceUnreadable
from clew.extras import require_extra
from clew.warehouse.columns import LEVELS

if TYPE_CHECKING:
    from clew.warehouse.lake.verify import VerifyReport
    from clew.warehouse.lake.write import WriteReport

_DAMAGED_EXIT_CODE = 5


@click.group("lake")
def command() -> None:
    """Write all sessions as Parquet tables, by month, for DuckDB, Spark and others.

    TARGET is a folder or a URL: `s3://bucket/folder` needs the extra `s3`. Any number of machines may write to the same
    target at the same time. `clew stats --engine duckdb:TARGET` reads it.
    """


@command.command("write")
@click.argument("target")
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    default="metrics",
    show_default=True,
    help="metrics: no text; redacted: text without secrets; raw: everything.",
)
@filtering
@common
@click.pass_context
def write_command(
    context: click.Context, /, target: str, level: str, homes: tuple[str, ...], as_json: bool, **options: Any
) -> int:
    """Write the sessions that are new in the lake, or have changed.

    Data is masked before it is written. After an interruption, complete sessions count, and the next run writes the
    rest. Exit code 3: a source could not be read; 5: the target is full, or of a newer clew; 7: not reachable.
    """
    require_extra("lake")
    from clew.warehouse.lake.store import open_store
    from clew.warehouse.lake.write import write
    from clew.warehouse.publisher import load_publisher

    library = open_library(context, homes)
    sources = (session.source for session in library.sessions(take_filters(options, library)))
    as_json = wants_json(context, as_json)
    with progress_bar("writing", is_quiet=as_json) as on_progress:
        report = write(open_store(target), sources, load_publisher(level), on_progress=on_progress)
    for problem in report.unreadable:
        print_message(f"clew: {problem}")
    if as_json:
        print_json({**report._asdict(), "level": level, "unreadable": len(report.unreadable)})
    else:
        print_message(_write_summary(report))
    return SourceUnreadable.exit_code if report.unreadable else 0


def _write_summary(report: WriteReport) -> str:
    from clew.render.tables import count, size

    if not (report.written or report.unchanged or report.unreadable):
        return "no sessions found, nothing written"
    done = f"sessions written: {count(report.written)}, unchanged: {count(report.unchanged)}"
    return f"{done}; {count(report.rows)} rows in {count(report.objects)} objects, {size(report.bytes)}"


@command.command("compact")
@click.argument("target")
@click.option(
    "--grace",
    type=Number(min=0),
    default=60.0,
    show_default=True,
    metavar="MINUTES",
    help="Skip objects that are younger.",
)
@as_json_option
@click.pass_context
def compact_command(context: click.Context, /, target: str, grace: float, as_json: bool) -> int:
    """Merge the small objects of each month; drop outdated rows.

    Readers see the same rows before, during and after it. Objects younger than --grace are skipped, because their
    writer may still be running. Objects by day, which older versions wrote, are replaced by objects by month.
    """
    require_extra("lake")
    from clew.render.tables import count, size
    from clew.warehouse.lake.compact import compact
    from clew.warehouse.lake.store import open_store

    report = compact(open_store(target), datetime.now(UTC), grace * 60)
    if wants_json(context, as_json):
        print_json(report._asdict())
    else:
        sizes = f"{size(report.bytes_before)} before, {size(report.bytes_after)} now"
        print_message(f"merged {count(report.before)} objects into {count(report.after)}; {sizes}")
    return 0


@command.command("verify")
@click.argument("target")
@click.option("--fix", is_flag=True, help="Move damaged objects away, and have incomplete sessions written again.")
@as_json_option
@click.pass_context
def verify_command(context: click.Context, /, target: str, fix: bool, as_json: bool) -> int:
    """Read every object and check its content. Exit code 5 if something is damaged or missing.

    With --fix damaged objects are moved to the folder `_damaged`, and the next `clew lake write` of each machine writes
    the incomplete sessions that it still has. The rest of their rows counts meanwhile.
    """
    require_extra("lake")
    from clew.warehouse.lake.store import open_store
    from clew.warehouse.lake.verify import repair, verify

    store = open_store(target)
    report = verify(store)
    if fix:
        repair(store, report)
    is_wrong = bool(report.damaged or report.incomplete)
    if wants_json(context, as_json):
        incomplete = [session._asdict() for session in report.incomplete]
        print_json({**report._asdict(), "incomplete": incomplete, "fixed": is_wrong and fix})
    else:
        _print_verify_report(report, store.display_url, fix)
    return _DAMAGED_EXIT_CODE if is_wrong and not fix else 0


def _print_verify_report(report: VerifyReport, lake: str, is_fixed: bool) -> None:
    from clew.render.tables import count, size

    for name in report.damaged:
        print_message(f"clew: {lake}: {name} is damaged: its content does not match the hash in its name")
    for session in report.incomplete:
        day = f" that ended on {session.day}" if session.day else ""
        source = f"(batch {session.batch}, from {session.origin})"
        print_message(f"clew: {lake}: rows are missing of a session of {session.agent}{day} {source}")
    damaged, incomplete = count(len(report.damaged)), count(len(report.incomplete))
    if not report.damaged and not report.incomplete:
        print_message(
            f"{count(report.batches)} sessions in {count(report.objects)} objects, {size(report.bytes)}: no errors"
        )
    elif is_fixed:
        print_message(f"moved to _damaged: {damaged}; sessions that `clew lake write` will write again: {incomplete}")
    else:
        print_message(f"damaged objects: {damaged}; incomplete sessions: {incomplete}; --fix has them written again")


@command.command("spark-job")
@click.pass_context
def spark_job_command(context: click.Context, /) -> int:
    """Print the path of a spark-submit job that fills a lake.

    It writes the sessions of an archive:

    spark-submit --master spark://HOST:7077 "$(clew lake spark-job)" ARCHIVE LAKE [--level LEVEL]
    """
    refuse_json(context)
    from importlib.util import find_spec

    found = find_spec("clew.warehouse.spark.job")
    assert found is not None
    click.echo(found.origin)
    return 0
