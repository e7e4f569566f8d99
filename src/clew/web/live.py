"""Sessions that grow: whoever reads one is told within a second of what was written to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from clew.catalog.queries import Entry
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


class _Stream(StreamingResponse):
    """A stream that says when it has ended, also where its reader had gone before it began."""

    def __init__(self, words: AsyncIterator[str], ended: Callable[[], None]) -> None:
        super().__init__(words, media_type="text/event-stream")
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


class Streams:
    """The streams that are open."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._open = 0

    async def session(self, request: Request) -> Response:
        """Tells of one session how many messages it has, and prints of its windows, whenever its files change."""
        if self._open >= MOST:
            return PlainTextResponse("Too many pages are open.\n", 503, {"Retry-After": "10"})
        # Counted before anything is waited for: others ask meanwhile.
        self._open += 1
        asked = Asked(self._shelf, request)
        try:
            entry = await self._shelf.run(self._shelf.entry, asked.part("agent"), asked.part("identity"))
        except ClewError:
            self._release()
            return PlainTextResponse("Nothing is here.\n", 404)
        except BaseException:
            self._release()
            raise
        return _Stream(self._told(request, asked, entry), self._release)

    def _release(self) -> None:
        self._open -= 1

    async def _told(self, request: Request, asked: Asked, entry: Entry) -> AsyncIterator[str]:
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

    def _word(self, asked: Asked, entry: Entry) -> str:
        found = self._shelf.transcript(entry, asked.profile)
        return f"data: {json.dumps({'messages': found.messages, 'windows': found.prints()})}\n\n"
