"""A request as pages see it, and the routes that call pages."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec
from markupsafe import Markup, escape
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from clew.annotations import AnnotationIndex, AnnotationsUnreadable
from clew.catalog.filters import with_annotated_sessions
from clew.catalog.queries import Entry
from clew.catalog.sessions import MessagesNotRead
from clew.errors import Busy, ClewError, SourceUnreadable, UnknownReference, UsageError
from clew.filters import FILTER_NAMES, FOLDER_FILTERS, Filters, is_yes
from clew.model.json import JSON
from clew.redact.findings import PROFILES
from clew.web import user_settings
from clew.web.context import NO_MASKING, AppContext, Masking, NoCatalog, masking, resolve_reference, use_redactor
from clew.web.templates import render
from clew.web.user_settings import Settings

FRAGMENT_HEADER = "x-clew"
"""Sent by the app's own scripts, which want a part of a page."""
PROFILE_COOKIE = "clew-redact"
FILTERS = tuple(name for name in FILTER_NAMES if name not in FOLDER_FILTERS)
REPEATABLE_FILTERS = ("agent", "has", "label")
REPEATABLE_PARAMETERS = (*REPEATABLE_FILTERS, "in")
USAGE_PREFIX = "used."
MAX_PARAM_CHARS = 2_000
NUMBER = re.compile(r"\d{1,9}", re.ASCII)
ALL_ROWS = 10**9


class PageRequest:
    """A request for a page."""

    def __init__(self, context: AppContext, request: Request) -> None:
        self.context, self._request = context, request
        self.path = request.url.path
        self.is_fragment = FRAGMENT_HEADER in request.headers

    def path_param(self, name: str) -> str:
        """A parameter inside the path."""
        return str(self._request.path_params[name])

    def param(self, name: str) -> str | None:
        """A query parameter; None if it is missing or empty."""
        value = self._request.query_params.get(name, "").strip()
        if len(value) > MAX_PARAM_CHARS:
            raise UsageError(f"{name}: too long")
        return resolve_reference(value) or None

    def params(self, name: str) -> tuple[str, ...]:
        """All values of a query parameter that may be repeated."""
        values = self._request.query_params.getlist(name)
        return tuple(resolve_reference(value.strip()[:MAX_PARAM_CHARS]) for value in values if value.strip())

    def number(self, name: str, default: int, maximum: int = ALL_ROWS) -> int:
        """A query parameter that is a number."""
        value = self.param(name)
        return min(maximum, int(value)) if value is not None and NUMBER.fullmatch(value) else default

    @property
    def filter_params(self) -> dict[str, Any]:
        """The filters as the user wrote them."""
        return {name: self.params(name) if name in REPEATABLE_FILTERS else self.param(name) for name in FILTERS}

    def filters(self) -> Filters:
        """The filters, which are those of the command line. Labels and stars are the sessions that have them now."""
        return with_annotated_sessions(
            Filters.of(now=self.context.now(), **self.filter_params), self.context.annotations.get
        )

    @property
    def is_starred(self) -> bool:
        """True if only what has a star is wanted."""
        return is_yes(self.param("starred"))

    @cached_property
    def annotations(self) -> AnnotationIndex:
        """The stars, labels, notes and titles of the user. Lists are shown without them if they cannot be read."""
        try:
            return self.context.annotations.get()
        except (Busy, AnnotationsUnreadable):
            return AnnotationIndex()

    @cached_property
    def settings(self) -> Settings:
        """The settings of the user, as they are now."""
        return user_settings.load()

    @property
    def usage_group(self) -> dict[str, str]:
        """The group of calls whose sessions a link of the usage page leads to; a value of "" stands for unknown."""
        given = self._request.query_params.items()
        wanted = ((name.removeprefix(USAGE_PREFIX), value) for name, value in given if name.startswith(USAGE_PREFIX))
        return {name: resolve_reference(value[:MAX_PARAM_CHARS]) for name, value in wanted}

    @property
    def profile(self) -> str:
        """The masking profile: the one the app was started with, or this browser chose, or that of the settings.

        While the settings cannot be read, no browser can choose less than they may ask for.
        """
        if self.context.profile != NO_MASKING:
            return self.context.profile
        if not self.can_show_secrets:
            return self.settings.masking
        chosen = self._request.query_params.get("redact") or self._request.cookies.get(PROFILE_COOKIE, "")
        return chosen if chosen in PROFILES else self.settings.masking

    @property
    def can_show_secrets(self) -> bool:
        """True if this browser may choose to mask nothing."""
        return self.context.profile == NO_MASKING and self.settings.is_masking_known

    def entry(self) -> Entry:
        """The session that the address names."""
        return self.context.entry(self.path_param("agent"), self.path_param("identity"))

    def masking_of(self, entry: Entry | None) -> AbstractContextManager[None]:
        """Mask what a session tells to be secret, inside a block; None is no session."""
        return use_redactor(self.context.session_redactor(entry, self.profile) if entry is not None else None)

    @property
    def masking(self) -> Masking:
        """Masks by that profile."""
        return masking(self.profile)

    def url(self, path: str | None = None, /, **changes: object) -> Markup:
        """This address with some query parameters changed; None removes one, a list gives it several values.

        Masked values become references.
        """
        kept = [(name, value) for name, value in self._request.query_params.multi_items() if name not in changes]
        given = [(name, value if isinstance(value, list) else [value]) for name, value in changes.items()]
        added = [(name, str(value)) for name, values in given for value in values if value is not None]
        query = urlencode([(name, self.masking.reference(value)) for name, value in (*kept, *added)])
        return escape((path or self.path) + (f"?{query}" if query else ""))

    def has_value(self, name: str, value: str) -> bool:
        """True if a query parameter has this value, perhaps among others. Case does not matter, as in filters."""
        return value.casefold() in map(str.casefold, self.params(name))

    def toggle_url(self, name: str, value: str, path: str | None = None) -> Markup:
        """This address with a value added to a query parameter, or removed from it; from the first page on.

        A parameter that has only one value gets this one in place of another.
        """
        others = [other for other in self.params(name) if other.casefold() != value.casefold()]
        added = [] if self.has_value(name, value) else [value]
        values = others + added if name in REPEATABLE_PARAMETERS else added
        return self.url(path, **{name: values, "page": None})


def usage_parameter(name: str, value: str) -> str:
    """A parameter of an address that `PageRequest.usage_group` reads."""
    return urlencode({f"{USAGE_PREFIX}{name}": value})


View = Callable[[PageRequest], Response]


def respond(request: PageRequest, template: str, status: int = 200, **values: object) -> Response:
    """Render a template. If it shows a session (`entry`), the secrets of that session are masked in all of it."""
    entry = values.get("entry")
    with request.masking_of(entry if isinstance(entry, Entry) else None):
        return HTMLResponse(render(template, request.profile, request=request, **values), status)


def route(context: AppContext, path: str, view: View, *, at_once: int | None = None) -> Route:
    """A route that calls a view in a thread of the context. Beyond `at_once`, requests wait without a thread."""
    limit = asyncio.Semaphore(at_once) if at_once is not None else nullcontext()

    async def endpoint(request: Request) -> Response:
        async with limit:
            return await context.run(_call_view, PageRequest(context, request), view)

    return Route(path, endpoint)


Body = TypeVar("Body", bound=msgspec.Struct)
Action = Callable[[PageRequest, Body], JSON]


def action(context: AppContext, path: str, body_type: type[Body], perform: Action[Body]) -> Route:
    """A route by which the app's own scripts change something: they post JSON and get JSON.

    `RequestGuard` has checked that the request comes from a page of this app.
    """

    async def endpoint(request: Request) -> Response:
        try:
            body = msgspec.json.decode(await request.body(), type=body_type)
        except (msgspec.MsgspecError, ClientDisconnect, UnicodeDecodeError):
            return JSONResponse({"error": "The request is not what this address expects."}, 400)
        return await context.run(_perform_action, PageRequest(context, request), perform, body)

    return Route(path, endpoint, methods=["POST"])


def _perform_action(request: PageRequest, perform: Action[Body], body: Body) -> Response:
    try:
        return JSONResponse(perform(request, body))
    except (UnknownReference, NoCatalog):
        return JSONResponse({"error": "Nothing in the catalog has this address."}, 404)
    except UsageError as error:
        return JSONResponse({"error": request.masking.text(str(error))}, 400)
    except ClewError:
        return JSONResponse({"error": "This failed; `clew doctor` shows what is wrong."}, 503)


def _call_view(request: PageRequest, view: View) -> Response:
    try:
        return view(request)
    except NoCatalog:
        return respond(request, "indexing.html", 200 if not request.is_fragment else 503)
    except UnknownReference:
        return _error(request, 404, "Not found", "Nothing in the catalog has this address.")
    except HTTPException as error:
        return _error(request, error.status_code, "Page not found", "There is no page at this address.")
    except MessagesNotRead:
        text = "The source file of this session was deleted before its messages were read: none of them can be shown."
        return _error(request, 410, "Messages not read", text)
    except AnnotationsUnreadable:
        text = "The file with stars, labels and notes cannot be read. `clew doctor` shows the reason."
        return _error(request, 503, "Stars, labels and notes unreadable", text)
    except SourceUnreadable:
        # The message of the error names files, so it does not leave the machine.
        text = "The source of this session cannot be read. `clew doctor` shows the reason."
        return _error(request, 503, "Session unreadable", text)
    except UsageError as error:
        return _error(request, 400, "Invalid request", str(error))
    except ClewError:
        return _error(request, 503, "Request failed", "Try again; `clew doctor` shows what is wrong.")


def _error(request: PageRequest, status: int, title: str, text: str) -> Response:
    return respond(request, "error.html", status, title=title, text=text)


def not_found(_request: PageRequest) -> Response:
    """Answer for every address without a page."""
    raise HTTPException(404)
