"""A request as pages see it, and the way from a page's function to a route."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup, escape
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from clew.catalog.queries import Entry
from clew.errors import ClewError, SourceUnreadable, UnknownReference, UsageError
from clew.filters import Filters
from clew.redact.findings import PROFILES
from clew.web.drawing import drawn
from clew.web.masking import masking, resolved, taught_by
from clew.web.shelf import NoCatalog, Shelf

FRAGMENT = "x-clew"
"""The header by which the app's own script asks for a part of a page."""
PROFILE = "clew-redact"
"""The cookie that says what is to be masked."""
FILTERS = ("agent", "project", "branch", "model", "since", "until", "tool", "file", "has", "text")
MANY = ("agent", "has")
LONGEST = 2_000
"""Characters of one parameter."""
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)


class Asked:
    """What a page is asked for."""

    def __init__(self, shelf: Shelf, request: Request) -> None:
        self.shelf, self._request = shelf, request
        self.path = request.url.path
        self.is_fragment = FRAGMENT in request.headers

    def part(self, name: str) -> str:
        """A part of the path."""
        return str(self._request.path_params[name])

    def word(self, name: str) -> str | None:
        """A parameter; None where it is empty."""
        value = self._request.query_params.get(name, "").strip()
        if len(value) > LONGEST:
            raise UsageError(f"{name}: too long")
        return resolved(value) or None

    def words(self, name: str) -> tuple[str, ...]:
        """All values of a parameter that may stand there several times."""
        given = self._request.query_params.getlist(name)
        return tuple(resolved(value.strip()[:LONGEST]) for value in given if value.strip())

    def number(self, name: str, default: int, most: int = 10**9) -> int:
        """A parameter that is a number."""
        value = self.word(name)
        return min(most, int(value)) if value is not None and _NUMBER.fullmatch(value) else default

    @property
    def given(self) -> dict[str, Any]:
        """The filters as they stand in the address."""
        return {name: self.words(name) if name in MANY else self.word(name) for name in FILTERS}

    def filters(self) -> Filters:
        """The filters in their own words; the same as on the command line."""
        return Filters.of(now=self.shelf.now(), **self.given)

    @property
    def profile(self) -> str:
        """What is masked: what the app was started with, or what this browser was told."""
        if self.shelf.profile != "none":
            return self.shelf.profile
        said = self._request.query_params.get("redact") or self._request.cookies.get(PROFILE, "")
        return said if said in PROFILES else "none"

    def address(self, path: str | None = None, /, **changes: object) -> Markup:
        """This address with some parameters changed; None takes one away. What is masked does not stand in it."""
        kept = [(name, value) for name, value in self._request.query_params.multi_items() if name not in changes]
        new = [(name, str(value)) for name, value in changes.items() if value is not None]
        refer = masking(self.profile).reference
        words = urlencode([(name, refer(value)) for name, value in (*kept, *new)])
        return escape((path or self.path) + (f"?{words}" if words else ""))


Page = Callable[[Asked], Response]


def page(asked: Asked, template: str, status: int = 200, **values: object) -> Response:
    """A page, or the part of it that is asked for."""
    entry = values.get("entry")
    redactor = asked.shelf.taught(entry, asked.profile) if isinstance(entry, Entry) else None
    with taught_by(redactor):
        return HTMLResponse(drawn(template, asked.profile, asked=asked, **values), status)


def route(shelf: Shelf, path: str, function: Page) -> Route:
    """A route to a page's function, which runs in a thread."""

    async def endpoint(request: Request) -> Response:
        return await shelf.run(_answer, Asked(shelf, request), function)

    return Route(path, endpoint)


def _answer(asked: Asked, function: Page) -> Response:
    try:
        return function(asked)
    except NoCatalog:
        return page(asked, "waiting.html", 200 if not asked.is_fragment else 503)
    except UnknownReference:
        return _trouble(asked, 404, "Nothing is here", "The catalog knows of nothing under this address.")
    except HTTPException as error:
        return _trouble(asked, error.status_code, "Nothing is here", "No page has this address.")
    except SourceUnreadable:
        # What the error says names files: it is for the terminal.
        what = "The source of this session cannot be read now. `clew doctor` says what is wrong with it."
        return _trouble(asked, 503, "This cannot be read", what)
    except UsageError as error:
        return _trouble(asked, 400, "This was not understood", str(error))
    except ClewError:
        return _trouble(asked, 503, "This did not work", "Try again; `clew doctor` says what is wrong.")


def _trouble(asked: Asked, status: int, title: str, words: str) -> Response:
    return page(asked, "trouble.html", status, title=title, words=words)


def nothing(_asked: Asked) -> Response:
    """Where no page is."""
    raise HTTPException(404)
