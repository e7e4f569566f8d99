"""The ASGI application: authentication, the pages, static files and plain error responses."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePosixPath

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from clew.web.auth import LoginRoutes, RequestGuard, SessionTokens

STATIC_FOLDER = files("clew.web") / "static"
SHARED_WITH_EXPORT = ("code.js", "page.css", "view.js")
"""Static files that exported pages use as well."""
MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
STATIC_FILES = tuple(
    sorted(
        name
        for name in {*SHARED_WITH_EXPORT, *(file.name for file in STATIC_FOLDER.iterdir())}
        if PurePosixPath(name).suffix in MEDIA_TYPES
    )
)
"""All static files; no other name is served."""
STYLE_SHEETS = (
    "page.css",
    "app.css",
    *(name for name in STATIC_FILES if name.endswith(".css") and name not in {"page.css", "app.css"}),
)
"""Style sheets of every page; later ones add to the first two."""
IMPORTED_MODULES = tuple(
    name
    for name in STATIC_FILES
    if name.endswith(".js") and name not in {*SHARED_WITH_EXPORT, "app.js", "entry.js", "layout.js"}
)
"""ES modules that app.js imports; pages preload them."""
LOGIN_FILES = ("entry.js", "page.css", "app.css", "icon.svg")
"""Static files that the login page needs before there is a cookie."""


def make_app(
    pages: Sequence[Route],
    tokens: SessionTokens,
    allowed_hosts: frozenset[str],
    on_login: Callable[[], None] = lambda: None,
    *,
    any_address: bool = False,
) -> ASGIApp:
    """Build the application. `any_address`: the server listens on all addresses of the machine."""
    login = LoginRoutes(tokens, on_login, {name: static_url(name) for name in LOGIN_FILES})
    own_routes = [
        Route("/enter", login.page),
        Route("/enter", login.exchange, methods=["POST"]),
        Route("/static/{version}/{name}", serve_static),
    ]
    handlers = {HTTPException: _http_error, Exception: _internal_error}
    starlette = Starlette(routes=[*own_routes, *pages], exception_handlers=handlers)
    public_paths = frozenset({"/enter", *map(static_url, LOGIN_FILES)})
    return RequestGuard(
        starlette,
        tokens,
        allowed_hosts,
        public_paths,
        immutable_prefix=f"/static/{static_version()}/",
        any_address=any_address,
    )


@lru_cache
def static_file(name: str) -> bytes:
    """Read a static file of the package."""
    folder = files("clew.render") / "page" if name in SHARED_WITH_EXPORT else STATIC_FOLDER
    return (folder / name).read_bytes()


@lru_cache
def static_version() -> str:
    """Hash the content of all static files. One version for all, because ES modules import each other by name."""
    digest = sha256()
    for name in STATIC_FILES:
        digest.update(static_file(name))
    return digest.hexdigest()[:16]


def static_url(name: str) -> str:
    """The address of a static file. The content at this address never changes, so browsers may cache it for ever."""
    return f"/static/{static_version()}/{name}"


async def serve_static(request: Request) -> Response:
    """Serve a static file of the current version."""
    name = request.path_params["name"]
    if name not in STATIC_FILES or request.path_params["version"] != static_version():
        raise HTTPException(404)
    return Response(static_file(name), media_type=media_type(name))


def media_type(name: str) -> str:
    """The media type of a static file."""
    return MEDIA_TYPES[PurePosixPath(name).suffix]


async def _http_error(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return PlainTextResponse("Page not found.\n" if status == 404 else "Method not allowed.\n", status)


async def _internal_error(_request: Request, error: Exception) -> Response:
    """Report an unexpected error to the terminal, without its message, which may quote a session."""
    frames = "".join(traceback.format_tb(error.__traceback__)[-4:])
    sys.stderr.write(f"clew: internal error ({type(error).__name__}). This is a bug, please report it.\n{frames}")
    return PlainTextResponse("Internal error; see the terminal of `clew web`.\n", 500)
