"""The way in: the link's secret stands behind a #, which browsers never send, and is exchanged once for a cookie."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from clew.web.guard import Keys

OPEN = frozenset({"/enter", *(f"/static/{name}" for name in ("entry.js", "page.css", "app.css", "icon.svg"))})
"""What a browser may have before it is let in."""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>clew</title>
<link rel="icon" href="/static/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/static/page.css">
<link rel="stylesheet" href="/static/app.css">
<script src="/static/entry.js" defer></script>
</head>
<body class="app">
<main class="entry">
<h1>clew</h1>
<p id="entry" role="status">Letting you in …</p>
<noscript><p>clew needs JavaScript once, to exchange the link for a cookie.</p></noscript>
</main>
</body>
</html>
"""


class _Given(msgspec.Struct):
    token: str


class Entry:
    """The two routes of the way in."""

    def __init__(self, keys: Keys, used: Callable[[], None]) -> None:
        self._keys, self._used = keys, used

    async def page(self, _request: Request) -> Response:
        """What a browser without a key is shown."""
        return Response(PAGE, media_type="text/html")

    async def exchange(self, request: Request) -> Response:
        """A cookie for the secret of the link."""
        try:
            given = msgspec.json.decode(await request.body(), type=_Given)
        except (msgspec.MsgspecError, ClientDisconnect, UnicodeDecodeError):
            return JSONResponse({"error": "no token"}, 400)
        visitor = self._keys.exchange(given.token)
        if visitor is None:
            return JSONResponse({"error": "this link was used, or is of another run"}, 403)
        self._used()
        response = JSONResponse({})
        response.set_cookie(self._keys.cookie, visitor, httponly=True, samesite="strict", path="/")
        return response
