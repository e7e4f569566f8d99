"""Authentication: checks every request before a page sees it, and exchanges the printed link for a cookie.

A page in another tab, a DNS name made to point here and another user of the machine all get no answer. The secret of
the link follows its #, which browsers never send; a script posts it once and gets a cookie.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Iterable, Mapping

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 64 * 1024
TRUSTED_FETCH_SITES = frozenset({"same-origin", "none"})
"""Values of Sec-Fetch-Site: a page of this server, or the address bar."""
WRITING_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
UNIQUE_HEADERS = ("host", "origin", "content-length", "sec-fetch-site")
"""A request that sends one of these twice is refused."""

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
SECURITY_HEADERS = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=(), interest-cohort=()"),
)


class SessionTokens:
    """The secrets of one run: the one-time token of the link, and the cookies that were issued."""

    def __init__(self, port: int) -> None:
        self.cookie_name = f"clew-{port}"
        """Browsers send cookies to every port of an address, so each server has its own name."""
        self._link_token = secrets.token_urlsafe(32)
        self._issued: set[str] = set()

    @property
    def link_token(self) -> str:
        """The token of the next link."""
        return self._link_token

    def exchange(self, token: str) -> str | None:
        """Exchange the link's token for the value of a cookie. It works once; then there is another token."""
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self._link_token.encode()):
            return None
        self._link_token = secrets.token_urlsafe(32)
        cookie = secrets.token_urlsafe(32)
        self._issued.add(cookie)
        return cookie

    def is_valid(self, cookie: str) -> bool:
        """True for a cookie that was issued. All are compared, so that the time taken reveals nothing."""
        return sum([hmac.compare_digest(cookie.encode(), issued.encode()) for issued in self._issued]) > 0


LOGIN_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>clew</title>
<link rel="icon" href="{urls[icon.svg]}" type="image/svg+xml">
<link rel="stylesheet" href="{urls[page.css]}">
<link rel="stylesheet" href="{urls[app.css]}">
<script src="{urls[entry.js]}" defer></script>
</head>
<body class="app">
<main class="entry">
<h1>clew</h1>
<p id="entry" role="status">Signing in …</p>
<noscript><p>clew needs JavaScript once, to exchange the link for a cookie.</p></noscript>
</main>
</body>
</html>
"""


class _TokenBody(msgspec.Struct):
    token: str


class LoginRoutes:
    """The login page, and the request by which its script exchanges the token for a cookie."""

    def __init__(self, tokens: SessionTokens, on_login: Callable[[], None], static_urls: Mapping[str, str]) -> None:
        self._tokens, self._on_login = tokens, on_login
        self._html = LOGIN_PAGE.format(urls=static_urls)

    async def page(self, _request: Request) -> Response:
        """Show the login page."""
        return Response(self._html, media_type="text/html")

    async def exchange(self, request: Request) -> Response:
        """Set a cookie for the token of the link."""
        try:
            body = msgspec.json.decode(await request.body(), type=_TokenBody)
        except (msgspec.MsgspecError, ClientDisconnect, UnicodeDecodeError):
            return JSONResponse({"error": "no token"}, 400)
        cookie = self._tokens.exchange(body.token)
        if cookie is None:
            return JSONResponse({"error": "the link was used already, or belongs to another run"}, 403)
        self._on_login()
        response = JSONResponse({})
        response.set_cookie(self._tokens.cookie_name, cookie, httponly=True, samesite="strict", path="/")
        return response


def local_hosts(port: int, others: Iterable[str] = ()) -> frozenset[str]:
    """The values of the Host header that this server answers to."""
    return frozenset(f"{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]", *others))


class RequestGuard:
    """ASGI middleware: refuses requests that do not come from the user's own browser, and sets security headers."""

    def __init__(
        self,
        app: ASGIApp,
        tokens: SessionTokens,
        allowed_hosts: frozenset[str],
        public_paths: frozenset[str],
        *,
        immutable_prefix: str,
        any_address: bool = False,
    ) -> None:
        self._app, self._tokens, self._allowed_hosts, self._public_paths = app, tokens, allowed_hosts, public_paths
        self._immutable_prefix = immutable_prefix
        """Below this path are static files whose address names their content."""
        self._any_address = any_address
        """The server listens on all addresses, so the address that was connected to is allowed as Host."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        is_immutable = scope["path"].startswith(self._immutable_prefix)
        send = _with_security_headers(send, is_immutable)
        refusal = self._refusal(scope)
        if refusal is not None:
            await _send_refusal(send, *refusal)
            return
        await self._app(scope, _with_limited_body(receive), send)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Status and text with which a request is refused; None for one that may pass."""
        headers = _read_headers(scope)
        hosts = self._allowed_hosts | _connected_address(scope) if self._any_address else self._allowed_hosts
        if headers is None or headers.get("host", "").lower() not in hosts:
            return 421, "Unknown host name."
        if headers.get("sec-fetch-site", "none") not in TRUSTED_FETCH_SITES or not _is_own_origin(headers, hosts):
            return 403, "Cross-site request refused."
        if scope["method"] in WRITING_METHODS:
            if not headers.get("content-type", "").startswith("application/json") or "x-clew" not in headers:
                return 403, "Not a request of this app."
            length = headers.get("content-length", "0")
            if not length.isdigit() or int(length) > MAX_BODY_BYTES:
                return 413, "Request body too long."
        elif scope["method"] not in ("GET", "HEAD"):
            return 405, "Method not allowed."
        if scope["path"] in self._public_paths:
            return None
        if not any(map(self._tokens.is_valid, _cookie_values(headers, self._tokens.cookie_name))):
            wants_page = "text/html" in headers.get("accept", "")
            return (303, "/enter") if wants_page else (401, "Open the link that clew printed.")
        return None


def _is_own_origin(headers: Mapping[str, str], hosts: frozenset[str]) -> bool:
    origin = headers.get("origin")
    return origin is None or origin.lower().removeprefix("http://") in hosts


def _connected_address(scope: Scope) -> frozenset[str]:
    """The address and port that the client connected to, as browsers write them in the Host header.

    An IP address cannot be rebound to another machine, as a DNS name can.
    """
    address, port = scope["server"] or ("", None)
    address = address.removeprefix("::ffff:")
    return frozenset({f"[{address}]:{port}" if ":" in address else f"{address}:{port}"} if port else ())


def _read_headers(scope: Scope) -> dict[str, str] | None:
    """The headers of a request, by lower-case name; None where one of UNIQUE_HEADERS is repeated."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        if name in headers and name in UNIQUE_HEADERS:
            return None
        headers[name] = f"{headers[name]}; {value}" if name == "cookie" and name in headers else value
    return headers


def _cookie_values(headers: Mapping[str, str], name: str) -> list[str]:
    """The values of a cookie. Split by hand: a malformed cookie of another local server must not hide ours."""
    pairs = (pair.strip().partition("=") for pair in headers.get("cookie", "").split(";"))
    return [value for found, _, value in pairs if found == name]


def _with_limited_body(receive: Receive) -> Receive:
    """Disconnect a client whose body exceeds the limit, whatever its Content-Length said."""
    received = 0

    async def limited() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        return message if received <= MAX_BODY_BYTES else {"type": "http.disconnect"}

    return limited


def _with_security_headers(send: Send, is_immutable: bool) -> Send:
    """Add security headers, and let browsers cache only immutable static files that were found."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            may_cache = is_immutable and message["status"] == 200
            caching = b"private, max-age=31536000, immutable" if may_cache else b"no-store"
            kept = [header for header in message.get("headers", ()) if header[0].lower() != b"cache-control"]
            message = {**message, "headers": [*kept, *SECURITY_HEADERS, (b"cache-control", caching)]}
        await send(message)

    return send_with_headers


async def _send_refusal(send: Send, status: int, text: str) -> None:
    body = text.encode() + b"\n"
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    if status == 303:
        headers.append((b"location", text.encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
