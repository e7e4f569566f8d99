"""clew sync: the catalog brought up to date."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click

from clew.cli.options import common, library, wants_json
from clew.cli.output import print_json, say
from clew.host import Host

_PAUSE = 1.0
"""Seconds between two looks while watching."""


@click.command("sync")
@click.option("--watch", is_flag=True, help="Go on, and take in what changes.")
@click.option("--full", is_flag=True, help="Read every source again.")
@click.option("--forget-gone", is_flag=True, help="Erase the sessions whose sources are gone.")
@common
@click.pass_context
def command(
    context: click.Context, /, watch: bool, full: bool, forget_gone: bool, homes: tuple[str, ...], as_json: bool
) -> int:
    """Bring the catalog up to date: what search and statistics look into.

    Files that did not change cost a look at their time; files that grew, their new lines. The catalog is a cache:
    without it everything is read from the sources; only sessions whose sources are gone live in it alone. Exit code
    5: another sync is at work.
    """
    shelf = library(context, homes)
    hosts, folder = shelf.hosts, shelf.catalog_folder
    as_json = wants_json(context, as_json)
    _sync(hosts, folder, full, as_json)
    if forget_gone:
        from clew.catalog.sync import forget_gone as forget

        say(f"{forget(folder)} sessions erased")
    while watch:
        time.sleep(_PAUSE)
        if not _is_fresh(folder):
            _sync(hosts, folder, False, as_json)
    return 0


def _is_fresh(folder: Path) -> bool:
    from clew.catalog.change_detection import is_fresh

    return is_fresh(folder)


def _sync(hosts: tuple[Host, ...], folder: Path, full: bool, as_json: bool) -> None:
    from clew.catalog.sync import sync

    with ExitStack() as stack:
        report = sync(hosts, folder, full=full, tell=progress(stack) if sys.stderr.isatty() and not as_json else None)
    if report.moved is not None:
        say(f"clew: the catalog could not be used; it was moved to {report.moved} and made anew")
    for path in report.passed_over:
        say(f"clew: {ascii(path)[1:-1]}: its name is no text, so it is left out of the catalog; `clew list` shows it")
    if report.unreadable:
        say(f"clew: sources that cannot be read: {report.unreadable}; `clew doctor` lists them")
    if as_json:
        print_json(report.counts())
    elif sys.stderr.isatty():
        work = report.work
        read = f"{_some(work.files, 'file')} read, {_some(work.lines, 'line')}"
        say(f"{read}; {_some(report.sources, 'source')}, {report.gone} of them gone")
        if report.problems:
            say(f"{_some(report.problems, 'source')} with problems; `clew doctor` lists them")


def _some(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def progress(stack: ExitStack) -> Callable[[int, int], None]:
    """A bar that appears when there is something to tell."""
    state: dict[str, object] = {}

    def tell(done: int, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

        if "bar" not in state:
            columns = ("reading", BarColumn(), DownloadColumn(), TimeRemainingColumn())
            bar = stack.enter_context(Progress(*columns, console=Console(stderr=True), transient=True))
            state.update(bar=bar, task=bar.add_task("", total=total))
        state["bar"].update(state["task"], completed=done)  # type: ignore[attr-defined]

    return tell
