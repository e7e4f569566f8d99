"""Sessions that grow: whoever reads one is told within a second of what was written to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from clew.catalog.browsing import Entry
from clew.errors import ClewError
from clew.web.asking import Asked
from clew.web.shelf import Shelf
from clew.web.transcript import State, state_of

MOST = 24
"""Streams at a time; more are told to come back."""
PAUSE = 0.25
"""Seconds between two looks at the files of a session."""
BEAT = 15.0
"""Seconds after which a word is sent though nothing happened, so that a reader who has gone is noticed."""


class Streams:
    """The streams that are open."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._open = 0

    async def session(self, request: Request) -> Response:
        """Tells of one session how many messages it has, and prints of its windows, whenever its files change."""
        if self._open >= MOST:
            return PlainTextResponse("Too many pages are open.\n", 503, {"Retry-After": "10"})
        asked = Asked(self._shelf, request)
        try:
            entry = await self._shelf.run(self._shelf.entry, asked.part("agent"), asked.part("identity"))
        except ClewError:
            return PlainTextResponse("Nothing is here.\n", 404)
        return StreamingResponse(self._told(request, asked, entry), media_type="text/event-stream")

    async def _told(self, request: Request, asked: Asked, entry: Entry) -> AsyncIterator[str]:
        self._open += 1
        try:
            session = await self._shelf.run(self._shelf.session, entry, "none")
            state: State | None = None
            quiet = 0.0
            while not await request.is_disconnected():
                now = state_of(session)
                if now != state:
                    state, quiet = now, 0.0
                    with contextlib.suppress(ClewError, OSError):
                        yield await self._shelf.run(self._word, asked, entry)
                elif quiet >= BEAT:
                    quiet = 0.0
                    yield ": still here\n\n"
                await asyncio.sleep(PAUSE)
                quiet += PAUSE
        finally:
            self._open -= 1

    def _word(self, asked: Asked, entry: Entry) -> str:
        found = self._shelf.transcript(entry, asked.profile)
        return f"data: {json.dumps({'messages': found.messages, 'windows': found.prints()})}\n\n"
