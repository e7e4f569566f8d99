"""clew search: prompts, answers, thinking, tool calls and tool output."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from typing import Any

import click

from clew.catalog.query import BadQuery
from clew.catalog.search import LIMIT, SEARCH_FIELDS, Found, Hit, Redact, Request, Searcher, check, unmasked
from clew.cli.options import NO_SYNC, common, filtering, open_library, take_filters, wants_json
from clew.cli.output import say
from clew.cli.redaction import DATA, TEXT, Redaction, redacting, redaction
from clew.errors import SourceUnreadable, UsageError
from clew.library import Library
from clew.model.time import from_microseconds
from clew.timezone import format_minute

MARKS = "«", "»"
_BOLD, _HIT, _DIM, _PLAIN = "\x1b[1m", "\x1b[1;33m", "\x1b[2m", "\x1b[0m"


@click.command("search")
@click.argument("query", nargs=-1, required=True, metavar="QUERY...")
@click.option("--regex", is_flag=True, help="QUERY is a regular expression (RE2).")
@click.option("--substring", is_flag=True, help="QUERY is any piece of text, in any case.")
@click.option("--in", "places", metavar="WHERE", help=f"Only in these, parted by commas: {', '.join(SEARCH_FIELDS)}.")
@click.option("--newest", is_flag=True, help="Newest first, not best first.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=LIMIT, show_default=True, help="So many hits.")
@click.option("--offset", type=click.IntRange(min=0), default=0, metavar="N", help="Leave out the first N hits.")
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
    library = open_library(context, homes)
    filters = take_filters(options, library)
    request = Request(
        query=" ".join(query),
        mode="regex" if regex else "substring" if substring else "words",
        places=tuple(filter(None, (places or "").split(","))),
        newest=newest,
        limit=limit,
        offset=offset,
        filters=filters if filters != type(filters)() else None,
    )
    redact = _redact(redaction(context, DATA if as_json else TEXT))
    try:
        check(request)
        if engine is not None and engine != "sqlite":
            found, unindexed = _search_server(engine, request, redact), 0
        else:
            found, unindexed = _search_catalog(library, request, redact, may_repair=not context.meta.get(NO_SYNC))
    except BadQuery as error:
        click.echo(_visible(f"clew: {error}\n"), err=True, nl=False)
        return error.exit_code
    if unindexed:
        say(f"clew: {unindexed} texts are not indexed yet, and were not searched; `clew sync` indexes them", own=True)
    _print(found, unindexed, as_json, offset, redact)
    if not found.hits and engine is None:
        from clew.cli.sessions import suggest_moved_project

        suggest_moved_project(library, filters.folders)
    return 0 if found.hits else 1


def _redact(masking: Redaction) -> Redact:
    # Each text is masked by itself: what is found in one hit need not be known to another.
    return masking.text if masking.is_on else unmasked


def _search_catalog(library: Library, request: Request, redact: Redact, *, may_repair: bool) -> tuple[Found, int]:
    """Search the catalog; an index that cannot be read is built again from the stored text.

    Also returns how many texts were not searched, because the index does not hold them yet.
    """
    with library.catalog(text=True) as catalog:
        try:
            found = _search(Searcher(catalog.folder, redact), request)
            return found, catalog.unindexed_text().blocks if request.mode == "words" else 0
        except (sqlite3.DatabaseError, ValueError, OSError) as error:
            if not may_repair:
                raise UsageError("the catalog cannot be read; a search without --no-sync builds it again") from None
            say("clew: the catalog could not be read; building it again", own=True)
            _repair(library, is_index=not isinstance(error, sqlite3.DatabaseError))
    with library.catalog(text=True) as catalog:
        try:
            return _search(Searcher(catalog.folder, redact), request), 0
        except (sqlite3.DatabaseError, ValueError, OSError) as error:
            raise SourceUnreadable(f"{catalog.folder}: the catalog cannot be read: {error}") from error


def _search(searcher: Searcher, request: Request) -> Found:
    try:
        return searcher.search(request)
    finally:
        searcher.close()


def _repair(library: Library, *, is_index: bool) -> None:
    from clew.catalog.sync import rebuild_text_index, sync

    if is_index:
        rebuild_text_index(library.catalog_folder)
    else:
        sync(library.hosts, library.catalog_folder, full=True)


def _search_server(engine: str, request: Request, redact: Redact) -> Found:
    """Search what was pushed to a server."""
    from clew.warehouse.engines import require_server

    require_server(engine, "--engine: a search runs on sqlite, or on a server:")
    from clew.warehouse.postgres.search import ServerSearcher

    searcher = ServerSearcher(engine, redact)
    try:
        textless = searcher.textless()
        found = searcher.search(request)
    finally:
        searcher.close()
    if textless:
        say(f"clew: {textless} sessions were pushed without their text, and are not searched")
    return found


def _print(found: Found, unindexed: int, as_json: bool, offset: int, redact: Redact) -> None:
    terminal = sys.stdout.isatty()
    if as_json:
        hits = [_hit_row(hit, redact) for hit in found.hits]
        value = {"total": found.total, "unindexed_texts": unindexed, "hits": hits}
        layout: dict[str, Any] = {"indent": 2} if terminal else {"separators": (",", ":")}
        click.echo(json.dumps(value, ensure_ascii=False, **layout))
        return
    for line in _text_lines(found, terminal and "NO_COLOR" not in os.environ, redact):
        click.echo(line, nl=False, color=terminal)
    if not found.hits:
        say("no hits", own=True)
    end = offset + len(found.hits)
    if found.hits and found.total > end:
        say(f"clew: {offset + 1} to {end} of {found.total}; --offset {end} shows the next", own=True)


def _hit_row(hit: Hit, redact: Redact) -> dict[str, str | int | None]:
    return {
        "session": redact(hit.session),
        "message": hit.message,
        "agent": hit.agent,
        "kind": hit.kind,
        "timestamp": hit.timestamp,
        "snippet": hit.snippet.marked(*MARKS),
    }


def _text_lines(found: Found, color: bool, redact: Redact) -> Iterator[str]:
    """The hits of a page, those of a session together, each session where its first hit stands."""
    sessions: dict[tuple[str, str], list[Hit]] = {}
    for hit in found.hits:
        sessions.setdefault((hit.agent, hit.session), []).append(hit)
    for number, hits in enumerate(sessions.values()):
        if number:
            yield "\n"
        yield _session_line(hits[0], color, redact)
        for hit in hits:
            yield _hit_line(hit, color)


def _session_line(hit: Hit, color: bool, redact: Redact) -> str:
    words = [_one_line(word) for word in (hit.title, hit.project) if word]
    name = _one_line(f"{hit.agent}:{redact(hit.session)}")
    rest = "".join(f" · {word}" for word in words)
    return f"{_BOLD}{name}{_PLAIN}{_DIM}{rest}{_PLAIN}\n" if color else f"{name}{rest}\n"


def _hit_line(hit: Hit, color: bool) -> str:
    place = f"#{hit.message}" if hit.message is not None else ""
    time = format_minute(from_microseconds(hit.when)) if hit.when > 0 else ""
    label = f"  {place:>6} {hit.kind:<8} {time:<16}  "
    if color:
        return f"{_DIM}{label}{_PLAIN}{hit.snippet.marked(_HIT, _PLAIN)}\n"
    return f"{label}{hit.snippet.marked(*MARKS)}\n"


def _visible(text: str) -> str:
    from clew.render.text_safety import visible

    return visible(text)


def _one_line(text: str) -> str:
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    from clew.render.text_safety import one_line

    return one_line(text)
