"""clew search: prompts, answers, thinking, tool calls and tool output."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterator
from typing import Any

import click

from clew.catalog.queries import list_ids
from clew.catalog.query import BadQuery
from clew.catalog.search import LIMIT, SEARCH_FIELDS, Found, Hit, Redact, Request, Searcher, check, unmasked
from clew.catalog.sync_level import SyncLevel
from clew.cli.options import NO_SYNC, common, filtering, given_filters, open_library, take_filters, wants_json
from clew.cli.output import print_message, terminal_width, use_color
from clew.cli.redaction import Redaction, redacting, redaction
from clew.cli.sessions import print_unreadable, suggest_moved_project
from clew.errors import SourceUnreadable, UsageError
from clew.library import Library
from clew.model.time import from_microseconds
from clew.render.tables import cell_width, short_ids, short_project, truncate
from clew.render.text_safety import one_line, visible
from clew.timezone import format_minute

MARKS = "«", "»"
MIN_TITLE_CELLS = 12
WIDE_CELLS = 80
"""On a narrower terminal, hits are printed without their times."""
_BOLD, _HIT, _PLAIN = "\x1b[1m", "\x1b[1;4m", "\x1b[0m"
"""Without colours, which may be unreadable on a light or on a dark background."""


@click.command("search")
@click.argument("query", nargs=-1, required=True, metavar="QUERY...")
@click.option("--regex", is_flag=True, help="QUERY is a regular expression (RE2).")
@click.option("--substring", is_flag=True, help="QUERY is any part of a text; upper and lower case are the same.")
@click.option("--in", "places", metavar="WHERE", help=f"Only in one or more of: {','.join(SEARCH_FIELDS)}.")
@click.option("--newest", is_flag=True, help="Sort by time, newest first, instead of best match first.")
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=LIMIT, show_default=True, help="Print at most N hits."
)
@click.option("--offset", type=click.IntRange(min=0), default=0, metavar="N", help="Skip the first N hits.")
@click.option("--engine", metavar="NAME", help="Search a server, see `clew push`: postgresql://...; newest first.")
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
    """Search prompts, answers, thinking, tool calls, tool output, file names and titles.

    All words must occur. "Quoted words" must occur side by side; pre* matches words that begin with pre; OR, NOT and
    parentheses combine; -word excludes. snake_case, paths and dotted.names are found whole and in parts. Backups of
    files that agents keep are not searched, although `clew diff` shows them.

    Hits are grouped by session and begin with a reference: `clew show 7c1e5f2a#4` prints that message. Exit code 1:
    nothing was found.
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
    redact = _redact(redaction(context, for_programs=as_json))
    ids: dict[str, str] = {}
    try:
        check(request)
        if engine is not None and engine != "sqlite":
            found, unindexed = _search_server(engine, request, redact), 0
        else:
            found, unindexed, ids = _search_catalog(library, request, redact, may_repair=not context.meta.get(NO_SYNC))
    except BadQuery as error:
        hint = "" if regex or substring else "--substring searches for the text as it is\n"
        click.echo(visible(f"clew: {error}\n{hint}"), err=True, nl=False)
        return error.exit_code
    if unindexed:
        print_message(f"clew: {unindexed} texts are not indexed yet and were not searched; run `clew sync`", mask=False)
    if as_json:
        _print_json(found, unindexed, redact)
    else:
        for line in _text_lines(found, ids, redact):
            click.echo(line, nl=False, color=sys.stdout.isatty())
        _print_count(context, request, found)
    if not found.hits and engine is None:
        suggest_moved_project(library, filters.folders)
    return 0 if found.hits else 1


def _redact(masking: Redaction) -> Redact:
    # Each text is masked by itself: what is found in one hit need not be known to another.
    return masking.text if masking.is_on else unmasked


def _search_catalog(
    library: Library, request: Request, redact: Redact, *, may_repair: bool
) -> tuple[Found, int, dict[str, str]]:
    """Search the catalog; an index that cannot be read is built again from the stored text.

    Also returns how many texts were not searched because they are not indexed yet, and short ids by session id.
    """
    with library.catalog(SyncLevel.TEXT) as catalog:
        try:
            found = _search(Searcher(catalog.folder, redact), request)
            print_unreadable(catalog.db, request.filters.agent if request.filters is not None else ())
            ids = short_ids({hit.session for hit in found.hits}, list_ids(catalog.db)) if found.hits else {}
            return found, catalog.unindexed_text().blocks if request.mode == "words" else 0, ids
        except (sqlite3.DatabaseError, ValueError, OSError) as error:
            if not may_repair:
                raise UsageError("the catalog cannot be read; search without --no-sync to rebuild it") from None
            print_message("clew: the catalog could not be read; rebuilding it", mask=False)
            _repair(library, is_index=not isinstance(error, sqlite3.DatabaseError))
    with library.catalog(SyncLevel.TEXT) as catalog:
        try:
            found = _search(Searcher(catalog.folder, redact), request)
            return found, 0, short_ids({hit.session for hit in found.hits}, list_ids(catalog.db))
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

    require_server(engine, "--engine: search needs sqlite or a server:")
    from clew.warehouse.postgres.search import ServerSearcher

    searcher = ServerSearcher(engine, redact)
    try:
        textless = searcher.textless()
        found = searcher.search(request)
    finally:
        searcher.close()
    if textless:
        print_message(f"clew: {textless} sessions were pushed without text and are not searched")
    return found


def _print_json(found: Found, unindexed: int, redact: Redact) -> None:
    hits = [_hit_row(hit, redact) for hit in found.hits]
    value = {"total": found.total, "unindexed_texts": unindexed, "hits": hits}
    layout: dict[str, Any] = {"indent": 2} if sys.stdout.isatty() else {"separators": (",", ":")}
    click.echo(json.dumps(value, ensure_ascii=False, **layout))


def _print_count(context: click.Context, request: Request, found: Found) -> None:
    """Say which part of the hits is shown, or that there are none and which filters were set."""
    end = request.offset + len(found.hits)
    if not found.hits:
        filters = given_filters(context)
        print_message(f"nothing found for {request.query!r}" + (f" with {filters}" if filters else ""))
    elif found.total > end:
        print_message(
            f"clew: {request.offset + 1} to {end} of {found.total}; --offset {end} shows the next", mask=False
        )


def _hit_row(hit: Hit, redact: Redact) -> dict[str, str | int | None]:
    return {
        "session": redact(hit.session),
        "message": hit.message,
        "agent": hit.agent,
        "kind": hit.kind,
        "timestamp": hit.timestamp,
        "snippet": hit.snippet.marked(*MARKS),
    }


def _text_lines(found: Found, ids: dict[str, str], redact: Redact) -> Iterator[str]:
    """The hits of a page by session; the sessions in the order of their first hits."""
    color = use_color()
    sessions: dict[tuple[str, str], list[Hit]] = {}
    for hit in found.hits:
        sessions.setdefault((hit.agent, hit.session), []).append(hit)
    for number, hits in enumerate(sessions.values()):
        if number:
            yield "\n"
        name = redact(hits[0].session)
        if name == hits[0].session:
            name = ids.get(name, name)
        name = one_line(name)
        yield _session_line(hits[0], name, color)
        for hit in hits:
            yield _hit_line(hit, name, color)


def _session_line(hit: Hit, name: str, color: bool) -> str:
    title = one_line(hit.title or "") or "(no title)"
    words = (short_project(hit.project or ""), hit.agent, name)
    rest = "".join(f" · {one_line(word)}" for word in words if word)
    if (width := terminal_width()) is not None:
        title = truncate(title, max(MIN_TITLE_CELLS, width - cell_width(rest)))
    return f"{_BOLD}{title}{_PLAIN}{rest}\n" if color else f"{title}{rest}\n"


def _hit_line(hit: Hit, name: str, color: bool) -> str:
    """A hit as `7c1e5f2a#4`, ready for `clew show`, with its kind, time and snippet."""
    reference = f"{name}#{hit.message}" if hit.message is not None else name
    label = f"  {reference:<{len(name) + 4}} {hit.kind:<8} "
    if (terminal_width() or WIDE_CELLS) >= WIDE_CELLS:
        time = format_minute(from_microseconds(hit.when)) if hit.when > 0 else ""
        label += f"{time:<16}  "
    marks = (_HIT, _PLAIN) if color else MARKS
    return f"{label}{hit.snippet.marked(*marks)}\n"
