"""One session: its head, its outline, and its transcript in windows."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import datetime

from markupsafe import Markup
from starlette.responses import HTMLResponse, Response, StreamingResponse

from clew.catalog import queries
from clew.catalog.queries import Entry
from clew.errors import UnknownReference
from clew.model.json import JSON
from clew.render.outline import session_title
from clew.render.page.fragments import LIMIT, Cut, More
from clew.render.page.frame import branches, count
from clew.web.asking import Asked, page
from clew.web.drawing import address, drawn, span
from clew.web.masking import taught_by
from clew.web.pages.home import RUNNING
from clew.web.pages.panels import PANELS
from clew.web.transcript import WINDOW, Started, bounds

PRINT = "X-Clew-Print"
"""The header that says which state of a window it is; the stream of the session tells when there is another."""
_HERE = "<!-- the messages -->"


def entry_of(asked: Asked) -> Entry:
    """The session that the address names."""
    return asked.shelf.entry(asked.part("agent"), asked.part("identity"))


def page_of(asked: Asked) -> Response:
    """The page, with one window; the others come when they are looked at."""
    shelf, entry = asked.shelf, entry_of(asked)
    at = asked.number("window", 0)
    # A window that the address names is read with all that came of it later; the beginning alone is there sooner.
    transcript = (shelf.transcript if at else shelf.beginning)(entry, asked.profile)
    first = max(0, min(transcript.windows, at) - 1)
    (entry,) = queries.with_children(shelf.db, [entry], None)
    newer, older = queries.neighbours(shelf.db, entry)
    return page(
        asked,
        "session.html",
        entry=entry,
        title=session_title(transcript.header if transcript.is_all else _titled(transcript.header, entry)),
        header=transcript.header,
        parent=queries.by_key(shelf.db, entry.parent) if entry.parent else None,
        newer=newer,
        older=older,
        windows=[(number, *_bounds(number, transcript.messages)) for number in range(transcript.windows)],
        first=first,
        html=Markup(transcript.window(first, _started(entry, shelf.now()), more_of(entry))),
        mark=transcript.print_of(first),
        messages=transcript.messages,
        is_all=transcript.is_all,
        size=WINDOW,
        panels=PANELS,
        now=shelf.now(),
    )


def _titled(header: dict[str, JSON], entry: Entry) -> dict[str, JSON]:
    """The header with the title that a session got in the end."""
    return {**header, "title": entry.title or header.get("title")}


def _bounds(number: int, messages: int) -> tuple[int, int]:
    first, last = bounds(number)
    return first, min(last, messages)


def started_by(asked: Asked, entry: Entry) -> Started:
    """The sessions that this one started."""
    (found,) = queries.with_children(asked.shelf.db, [entry], None)
    return _started(found, asked.shelf.now())


def _started(entry: Entry, now: datetime) -> Started:
    links = {child.id: address(child) for child in entry.children}
    return Started(links, {child.id: _about(child, now) for child in entry.children})


def _about(entry: Entry, now: datetime) -> str:
    """How long a sub-agent's session is, and how it stands."""
    words = [count(entry.messages, "message")]
    words += [span(entry.ended_us - entry.started_us)] if entry.ended_us > entry.started_us > 0 else []
    words += [count(entry.errors, "error")] if entry.errors else []
    words += ["still running"] if entry.ended_us >= (now - RUNNING).timestamp() * 1e6 else []
    return ", ".join(words)


def window(asked: Asked) -> Response:
    """The HTML of one window."""
    entry, number = entry_of(asked), int(asked.part("number"))
    transcript = asked.shelf.transcript(entry, asked.profile)
    if number >= transcript.windows:
        raise UnknownReference("there is no such window")
    html = transcript.window(number, started_by(asked, entry), more_of(entry))
    return HTMLResponse(html, headers={PRINT: transcript.print_of(number)})


def more_of(entry: Entry) -> More:
    """Where a text is cut stands a link to what comes behind it."""
    return lambda cut: str(_more(entry, cut, LIMIT))


def _more(entry: Entry, cut: Cut, start: int) -> Markup:
    left = len(cut.text) - start
    if left <= 0:
        return Markup()
    place = f"{address(entry)}/more/{cut.section}/{cut.number}?from={start}"
    return Markup(f'<a class="more" data-more href="{place}">Show more: {left:,} characters are left</a>')


def more(asked: Asked) -> Response:
    """What comes behind the end of a text that was cut, as much as is shown at once."""
    entry, start = entry_of(asked), asked.number("from", LIMIT)
    cut = asked.shelf.transcript(entry, asked.profile).cut(int(asked.part("section")), int(asked.part("number")))
    if cut is None or start >= len(cut.text):
        raise UnknownReference("there is no such text")
    rest = _more(entry, cut, start + LIMIT)
    if asked.is_fragment:
        return HTMLResponse(f'<span class="rest" tabindex="-1">{cut.piece(start)}</span>{rest}')
    return page(asked, "more.html", entry=entry, cut=cut, start=start, html=Markup(cut.piece(start)), rest=rest)


def printed(asked: Asked) -> Response:
    """All windows on one page, for paper: they are made one after the other, while the browser reads."""
    shelf, entry = asked.shelf, entry_of(asked)
    transcript = shelf.transcript(entry, asked.profile)
    started, more = started_by(asked, entry), more_of(entry)
    values = {"entry": entry, "title": session_title(transcript.header), "header": transcript.header}
    with taught_by(shelf.taught(entry, asked.profile)):
        drawing = drawn("print.html", asked.profile, asked=asked, messages=transcript.messages, **values)
    before, behind = drawing.split(_HERE)

    async def pieces() -> AsyncIterator[str]:
        yield before
        for number in range(transcript.windows):
            yield await shelf.run(transcript.window, number, started, more)
        yield behind

    return StreamingResponse(pieces(), media_type="text/html")


def outline(asked: Asked) -> Response:
    """The prompts of the whole session, and the tree of its branches."""
    entry = entry_of(asked)
    table = asked.shelf.transcript(entry, asked.profile).contents()
    forks = [[branch or 0, [way.index for way in fork.branches]] for branch, fork in table.forks]
    now = [way.index for _, fork in table.forks for way in fork.branches if way.is_active]
    return page(
        asked,
        "outline.html",
        base=address(entry),
        prompts=table.prompts,
        tree=Markup(branches(table.forks, table.labels)),
        forks=json.dumps(forks),
        chosen=json.dumps(now),
    )
