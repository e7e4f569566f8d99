"""clew sync: bring the catalog up to date."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.catalog.database import catalog_folder
from clew.catalog.sync import is_up_to_date, sync
from clew.cli.options import REFRESH, common, open_library, wanted_sources, wants_json
from clew.cli.output import print_json, print_message
from clew.cli.progress import progress_bars

if TYPE_CHECKING:
    from clew.catalog.change_detection import Hosts
    from clew.catalog.sync_report import SyncReport

WATCH_INTERVAL_SECONDS = 1.0
QUIET_SECONDS = 2.0
"""A sync that took longer prints a summary also where stderr is not a terminal."""


@click.command("sync")
@click.option("--watch", is_flag=True, help="Keep running, and sync again when files change.")
@click.option("--full", is_flag=True, help="Read every source again.")
@click.option("--forget-gone", is_flag=True, help="Erase the sessions whose files were deleted.")
@common
@click.pass_context
def command(
    context: click.Context, /, watch: bool, full: bool, forget_gone: bool, homes: tuple[str, ...], as_json: bool
) -> int:
    """Update the catalog: the index of all sessions that the other commands read.

    First, sessions, token usage, messages and their text are read from files that changed; then the text index for
    `clew search` is updated. Other commands sync as far as they need: `clew list` reads sessions and usage alone. The
    catalog is a cache, except that it keeps sessions whose files were deleted. Exit code 5: another sync is running.
    """
    hosts, folder = _hosts_and_folder(context, homes)
    as_json = wants_json(context, as_json)
    _sync(hosts, folder, full, as_json)
    if forget_gone:
        from clew.catalog.sync import forget_gone as forget

        print_message(f"{forget(folder)} sessions erased")
    while watch:
        time.sleep(WATCH_INTERVAL_SECONDS)
        if not is_up_to_date(hosts, folder):
            _sync(hosts, folder, False, as_json)
    return 0


def _hosts_and_folder(context: click.Context, homes: tuple[str, ...]) -> tuple[Hosts, Path]:
    """The hosts to read, and the folder of their catalog. Where that is possible, hosts are found only if needed."""
    named = (*context.find_root().obj["homes"], *homes)
    if wanted_sources(context) or context.meta.get(REFRESH) or not all(Path(home).is_dir() for home in named):
        library = open_library(context, homes)
        return library.hosts, library.catalog_folder
    return lambda: open_library(context, homes).hosts, catalog_folder(named)


def _sync(hosts: Hosts, folder: Path, full: bool, as_json: bool) -> None:
    started = time.monotonic()
    with progress_bars(is_quiet=as_json) as on_progress:
        report = sync(hosts, folder, full=full, on_progress=on_progress)
    if report.moved is not None:
        print_message(f"clew: the catalog could not be read; it was moved to {report.moved} and rebuilt")
    for problem in report.unreadable_folders:
        print_message(f"clew: {problem}")
    if report.unreadable:
        print_message(f"clew: sources that cannot be read: {report.unreadable}; `clew doctor` lists them")
    for found in report.unknown_formats:
        print_message(f"clew: {found}; `clew doctor` lists them")
    if as_json:
        print_json(report.counts())
    elif sys.stderr.isatty() or time.monotonic() - started > QUIET_SECONDS:
        _print_summary(report)


def _print_summary(report: SyncReport) -> None:
    from clew.render.tables import counted

    read = f"{counted(report.work.files, 'file')} read, {counted(report.work.lines, 'line')}"
    print_message(f"{read}; {counted(report.sources, 'source')}, {report.gone} of them deleted")
    if report.problems:
        print_message(f"{counted(report.problems, 'source')} with problems; `clew doctor` lists them")
