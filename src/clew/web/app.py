"""The app: the guard, the way in, the files of its own, and the pages."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from clew.web.assets import TYPES, own_file
from clew.web.entry import OPEN, Entry
from clew.web.guard import Guard, Keys


def make_app(
    pages: Sequence[Route],
    keys: Keys,
    allowed: frozenset[str],
    used: Callable[[], None] = lambda: None,
    *,
    any_address: bool = False,
) -> ASGIApp:
    """The app with its pages behind the guard; `any_address` where it listens on all addresses of the machine."""
    entry = Entry(keys, used)
    own = [
        Route("/enter", entry.page),
        Route("/enter", entry.exchange, methods=["POST"]),
        Route("/static/{name}", static),
    ]
    inner = Starlette(routes=[*own, *pages], exception_handlers={HTTPException: _refused, Exception: _failed})
    return Guard(inner, keys, allowed, OPEN, any_address=any_address)


async def static(request: Request) -> Response:
    """One of the app's own files."""
    name = request.path_params["name"]
    if name not in TYPES:
        raise HTTPException(404)
    return Response(own_file(name), media_type=TYPES[name])


async def _refused(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return PlainTextResponse("Nothing is here.\n" if status == 404 else "Not possible.\n", status)


async def _failed(_request: Request, error: Exception) -> Response:
    """Whatever went wrong: no path and no line of ours leaves. What the error says itself may be somebody's words."""
    place = "".join(traceback.format_tb(error.__traceback__)[-4:])
    sys.stderr.write(f"clew: this should not have happened\n{place}{type(error).__name__}\n")
    return PlainTextResponse("Something went wrong; the terminal of `clew web` says where.\n", 500)
