"""clew search: everything that was said, thought, called and given back."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from clew.catalog.database import DATABASE, catalog_folder
from clew.catalog.query import BadQuery
from clew.catalog.search import LIMIT, PLACES, Found, Redact, Request, Searcher, check, unmasked
from clew.cli import hits_shown
from clew.cli.options import FILTER_NAMES, common, filtering, library, take_filters, wants_json
from clew.cli.output import say
from clew.cli.redacting import DATA, TEXT, Redaction, redacting, redaction
from clew.cli.sourcing import REFRESH, wanted_sources
from clew.errors import Busy, SourceUnreadable, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from clew.host import Host


@click.command("search")
@click.argument("query", nargs=-1, required=True, metavar="QUERY...")
@click.option("--regex", is_flag=True, help="QUERY is a regular expression (RE2).")
@click.option("--substring", is_flag=True, help="QUERY is any piece of text, in any case.")
@click.option("--in", "places", metavar="WHERE", help=f"Only in these, parted by commas: {', '.join(PLACES)}.")
@click.option("--newest", is_flag=True, help="Newest first, not best first.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=LIMIT, show_default=True, help="So many hits.")
@click.option("--offset", type=click.IntRange(min=0), default=0, metavar="N", help="Leave out the first N hits.")
@click.option("--no-sync", is_flag=True, help="Search the catalog as it is.")
@click.option("--engine", metavar="NAME", help="Search what was pushed to a server: postgresql://...; newest first.")
@redacting
@filtering
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    query: tuple[str, ...],
    regex: bool,
    substring: bool,
    places: str | None,
    newest: bool,
    limit: int,
    offset: int,
    no_sync: bool,
    engine: str | None,
    homes: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Find prompts, answers, thinking, tool calls, tool output, file names and titles.

    Words must all occur. "Quoted words" stand side by side, pre* begins a word, OR and NOT and parentheses mean what
    they say, -word leaves out. snake_case, paths and dotted.names are found whole and in parts.

    Hits are listed by session; `clew show REF#N` opens one. Exit code 1: nothing was found.
    """
    if regex and substring:
        raise UsageError("--regex and --substring exclude each other")
    as_json = wants_json(context, as_json)
    request = Request(
        query=" ".join(query),
        mode="regex" if regex else "substring" if substring else "words",
        places=tuple(filter(None, (places or "").split(","))),
        newest=newest,
        limit=limit,
        offset=offset,
    )
    redact = _redact(redaction(context, DATA if as_json else TEXT))
    try:
        check(request)
        found = None
        if engine is None and not no_sync and not any(options[name] for name in FILTER_NAMES):
            found = _found_at_once(context, homes, request, redact)
        if found is None:
            found = _found_in_sources(context, homes, request, redact, engine, not no_sync, options)
    except BadQuery as error:
        click.echo(hits_shown.complaint(error), err=True, nl=False)
        return error.exit_code
    _print(found, as_json, offset, redact)
    return 0 if found.hits else 1


def _redact(chosen: Redaction) -> Redact:
    if not chosen.is_on:
        return unmasked
    # Each text is masked by itself: what is found in one hit need not be known to another.
    return chosen.text


def _found_at_once(context: click.Context, homes: tuple[str, ...], request: Request, redact: Redact) -> Found | None:
    """What is found in a catalog that is up to date; None where it is not.

    Nothing that reads sessions is loaded for it.
    """
    from clew.catalog.sync import is_up_to_date as is_fresh

    named = [*context.find_root().obj["homes"], *homes]
    if wanted_sources(context) or context.meta.get(REFRESH) or not all(map(os.path.isdir, named)):
        return None
    folder = catalog_folder(named)
    try:
        return _search(folder, request, redact) if is_fresh(folder) else None
    except (sqlite3.Error, ValueError, OSError):
        # The catalog, or its index, is damaged: the longer way mends it.
        return None


def _found_in_sources(
    context: click.Context,
    homes: tuple[str, ...],
    request: Request,
    redact: Redact,
    engine: str | None,
    may_sync: bool,
    options: dict[str, Any],
) -> Found:
    """What is found on a server, or in the catalog over all sources, which is brought up to date where it may be."""
    from clew.cli.cataloguing import folder_for

    shelf = library(context, homes)
    filters = take_filters(options, shelf)
    request = request._replace(filters=filters if filters != type(filters)() else None)
    if engine is not None and engine != "sqlite":
        return _found_on(engine, request, redact)
    return _found(shelf.hosts, folder_for(context, homes, shelf.hosts), request, may_sync, redact)


def _found(hosts: Sequence[Host], folder: Path, request: Request, may_sync: bool, redact: Redact) -> Found:
    if may_sync:
        _bring_up_to_date(hosts, folder)
    try:
        return _search(folder, request, redact)
    except (sqlite3.DatabaseError, ValueError, OSError) as error:
        if not may_sync:
            raise UsageError("the catalog cannot be read; a search without --no-sync makes it anew") from None
        say("clew: the catalog could not be read; making it anew", own=True)
        _mend(hosts, folder, is_index=not isinstance(error, sqlite3.DatabaseError))
    try:
        return _search(folder, request, redact)
    except (sqlite3.DatabaseError, ValueError, OSError) as error:
        raise SourceUnreadable(f"{folder}: the catalog cannot be read: {error}") from error


def _found_on(engine: str, request: Request, redact: Redact) -> Found:
    """What is found on a server."""
    from clew.warehouse.engines import need_server

    need_server(engine, "--engine: a search runs on sqlite, or on a server:")
    from clew.warehouse.postgres.search import ServerSearcher

    searcher = ServerSearcher(engine, redact)
    try:
        textless = searcher.textless()
        found = searcher.search(request).read()
    finally:
        searcher.close()
    if textless:
        say(f"clew: {textless} sessions were pushed without their text, and are not searched")
    return found


def _mend(hosts: Sequence[Host], folder: Path, is_index: bool) -> None:
    from clew.catalog.sync import rebuild_text_index

    if is_index:
        rebuild_text_index(folder)
    else:
        _sync(hosts, folder, full=True)


def _search(folder: Path, request: Request, redact: Redact) -> Found:
    searcher = Searcher(folder, redact)
    try:
        return searcher.search(request).read()
    finally:
        searcher.close()


def _bring_up_to_date(hosts: Sequence[Host], folder: Path) -> None:
    from clew.catalog.sync import is_up_to_date as is_fresh

    if is_fresh(folder):
        return
    told: list[str] = []

    def tell(*_: object) -> None:
        # Said once, and only where something is read: a look at the files alone is not worth a word.
        if not told:
            told.append("clew: bringing the catalog up to date")
            say(told[0], own=True)

    if not (folder / DATABASE).exists():
        tell()
    try:
        _sync(hosts, folder, tell=tell)
    except Busy:
        say("clew: another sync is at work; searching what is there")


def _sync(
    hosts: Sequence[Host], folder: Path, full: bool = False, tell: Callable[[str, int, int], None] | None = None
) -> None:
    from clew.catalog.sync import sync

    report = sync(hosts, folder, full=full, on_progress=tell)
    if report.moved is not None:
        say(f"clew: the catalog could not be used; it was moved to {report.moved} and made anew")


def _print(found: Found, as_json: bool, offset: int, redact: Redact) -> None:
    terminal = sys.stdout.isatty()
    if as_json:
        click.echo(hits_shown.as_json(found, terminal, redact), nl=False)
        return
    for line in hits_shown.as_text(found, terminal and "NO_COLOR" not in os.environ, redact):
        click.echo(line, nl=False, color=terminal)
    if not found.hits:
        say("no hits", own=True)
    more = hits_shown.remainder(found, offset)
    if more:
        say(more, own=True)
