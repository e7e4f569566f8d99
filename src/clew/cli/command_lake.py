"""clew lake: the tables of all sessions as Parquet, for engines that read them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from clew.cli.options import FILTER_NAMES, as_json_option, common, filtering, library, take_filters, wants_json
from clew.cli.output import print_json, say
from clew.warehouse.columns import LEVELS
from clew.warehouse.extras import need

if TYPE_CHECKING:
    from clew.agents.base import SourceFile
    from clew.library import Library
    from clew.warehouse.lake.verify import Proof
    from clew.warehouse.lake.write import Report

_UNREADABLE = 3
_DAMAGED = 5


@click.group("lake")
def command() -> None:
    """The tables of all sessions as Parquet objects, by day, for DuckDB, Spark and others.

    TARGET is a folder or a URL: `s3://bucket/folder` needs the extra `s3`. Any number of machines may write to the same
    target at the same time. `clew stats --engine duckdb:TARGET` asks it. With `--json` all print JSON.
    """


@command.command("write")
@click.argument("target")
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    default="metrics",
    show_default=True,
    help="metrics: no text at all; redacted: text without secrets; raw: everything.",
)
@filtering
@common
@click.pass_context
def write_command(
    context: click.Context, /, target: str, level: str, homes: tuple[str, ...], as_json: bool, **options: Any
) -> int:
    """Write the sessions that are new there, or have changed.

    Nothing leaves before it was masked. Interrupted at any point, what is complete counts, and the next run writes the
    rest. Exit code 3: a source could not be read; 5: the target is full, or of a newer clew; 7: it is out of reach.
    """
    need("lake")
    from clew.warehouse.lake.store import open_store
    from clew.warehouse.lake.write import write
    from clew.warehouse.publisher import writer

    shelf = library(context, homes)
    sources = _sources(shelf, options)
    as_json = wants_json(context, as_json)
    is_shown = sys.stderr.isatty() and not as_json
    report = write(open_store(target), sources, writer(level), tell=_counter() if is_shown else None)
    if is_shown:
        click.echo("\r\x1b[K", err=True, nl=False)
    for problem in report.unreadable:
        say(f"clew: {problem}")
    if as_json:
        print_json({**report._asdict(), "level": level, "unreadable": len(report.unreadable)})
    else:
        say(_told(report))
    return _UNREADABLE if report.unreadable else 0


def _told(report: Report) -> str:
    from clew.render.tables import count, size

    if not (report.written or report.unchanged or report.unreadable):
        return "no sessions were found, and nothing was written"
    done = f"sessions written: {count(report.written)}, and {count(report.unchanged)} were there"
    return f"{done}; {count(report.rows)} rows in {count(report.objects)} objects, {size(report.bytes)}"


def _sources(shelf: Library, options: dict[str, Any]) -> Iterator[SourceFile]:
    """The sources that pass the filters; without a filter none is looked into."""
    if any(options[name] for name in FILTER_NAMES):
        return (session.source for session in shelf.sessions(take_filters(options, shelf)))
    return (session.source for session in shelf.sources())


def _counter() -> Callable[[int, int], None]:
    def tell(done: int, total: int) -> None:
        click.echo(f"\r\x1b[K{done // 1_000_000} of {total // 1_000_000} MB", err=True, nl=False)

    return tell


@command.command("compact")
@click.argument("target")
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="MINUTES",
    help="Leave objects alone that are younger.",
)
@as_json_option
@click.pass_context
def compact_command(context: click.Context, /, target: str, grace: float, as_json: bool) -> int:
    """Merge the many small objects of days that are over, and drop rows that no longer count.

    Readers see the same rows before, after and meanwhile. Objects younger than --grace are left alone, because whoever
    wrote them may still be at work.
    """
    need("lake")
    from clew.render.tables import count, size
    from clew.warehouse.lake.compact import compact
    from clew.warehouse.lake.store import open_store

    report = compact(open_store(target), datetime.now(UTC), grace * 60)
    if wants_json(context, as_json):
        print_json(report._asdict())
    else:
        sizes = f"{size(report.bytes_before)} became {size(report.bytes_after)}"
        say(f"{count(report.before)} objects became {count(report.after)}, {sizes}")
    return 0


@command.command("verify")
@click.argument("target")
@click.option("--fix", is_flag=True, help="Move damaged objects aside, and let what lacks rows be written again.")
@as_json_option
@click.pass_context
def verify_command(context: click.Context, /, target: str, fix: bool, as_json: bool) -> int:
    """Read every object, and compare it with what it was. Exit code 5 where something is damaged or missing.

    With --fix damaged objects go to the folder `_damaged`, and the next `clew lake write` of each machine brings what
    it still has of the sessions that lack rows. What is left of them counts meanwhile.
    """
    need("lake")
    from clew.warehouse.lake.store import open_store
    from clew.warehouse.lake.verify import mend, verify

    store = open_store(target)
    proof = verify(store)
    if fix:
        mend(store, proof)
    is_wrong = bool(proof.damaged or proof.lacking)
    if wants_json(context, as_json):
        lacking = [one._asdict() for one in proof.lacking]
        print_json({**proof._asdict(), "lacking": lacking, "fixed": is_wrong and fix})
    else:
        _tell(proof, store.shown, fix)
    return _DAMAGED if is_wrong and not fix else 0


def _tell(proof: Proof, place: str, is_fixed: bool) -> None:
    from clew.render.tables import count, size

    for name in proof.damaged:
        say(f"clew: {place}: {name} is damaged: its content is not what its name says")
    for one in proof.lacking:
        day = f" that ended on {one.day}" if one.day else ""
        say(f"clew: {place}: rows are missing of a session of {one.agent}{day} (batch {one.batch}, from {one.origin})")
    damaged, lacking = count(len(proof.damaged)), count(len(proof.lacking))
    if not proof.damaged and not proof.lacking:
        say(f"{count(proof.batches)} sessions in {count(proof.objects)} objects, {size(proof.bytes)}: all as it was")
    elif is_fixed:
        say(f"moved to _damaged: {damaged}; sessions that `clew lake write` brings again: {lacking}")
    else:
        say(f"damaged objects: {damaged}; sessions that lack rows: {lacking}; --fix lets them be written again")
