"""Server-sent events: a page that shows a session is notified within a second when the session grows."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from clew.agents.source import file_states
from clew.catalog import queries
from clew.catalog.queries import Entry
from clew.errors import ClewError
from clew.web.context import NO_MASKING, AppContext
from clew.web.pages.session import render_facts
from clew.web.request import PageRequest

MAX_STREAMS = 24
POLL_SECONDS = 0.25
HEARTBEAT_SECONDS = 15.0
"""Heartbeat interval, to detect disconnected clients."""


class _EventStream(StreamingResponse):
    """A stream that calls `on_end` exactly once, also if the client disconnects before the stream starts."""

    def __init__(self, events: AsyncIterator[str], on_end: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_end()


class LiveStreams:
    """The open streams, at most MAX_STREAMS."""

    def __init__(self, context: AppContext) -> None:
        self._context = context
        self._open_count = 0

    async def session(self, request: Request) -> Response:
        """Send the number of messages, the etags of all windows and the facts, now and whenever one of them changes."""
        if self._open_count >= MAX_STREAMS:
            return PlainTextResponse("Too many pages are open.\n", 503, {"Retry-After": "10"})
        # Counted before the first await: other requests run in between.
        self._open_count += 1
        page = PageRequest(self._context, request)
        try:
            entry = await self._context.run(self._context.entry, page.path_param("agent"), page.path_param("identity"))
        except ClewError:
            self._release()
            return PlainTextResponse("Session not found.\n", 404)
        except BaseException:
            self._release()
            raise
        return _EventStream(self._events(request, page.profile, entry), self._release)

    def _release(self) -> None:
        self._open_count -= 1

    async def _events(self, request: Request, profile: str, entry: Entry) -> AsyncIterator[str]:
        session = await self._context.run(self._context.session, entry, NO_MASKING)
        states: object = None
        sent = ""
        quiet_seconds = 0.0
        while not await request.is_disconnected():
            # Messages are read from the session's files; tokens, cost and times from the catalog, a little later.
            current = file_states(session.source), self._context.catalog_state()
            if current != states:
                states = current
                with contextlib.suppress(ClewError, OSError):
                    event = await self._context.run(self._event, profile, entry)
                    if event != sent:
                        sent, quiet_seconds = event, 0.0
                        yield event
            if quiet_seconds >= HEARTBEAT_SECONDS:
                quiet_seconds = 0.0
                yield ": heartbeat\n\n"
            await asyncio.sleep(POLL_SECONDS)
            quiet_seconds += POLL_SECONDS

    def _event(self, profile: str, entry: Entry) -> str:
        transcript = self._context.transcript(entry, profile)
        entry = queries.by_key(self._context.db, entry.key) or entry
        facts = render_facts(self._context, entry, profile, transcript)
        event = {"messages": transcript.messages, "windows": transcript.etags(), "facts": facts}
        return f"data: {json.dumps(event)}\n\n"
