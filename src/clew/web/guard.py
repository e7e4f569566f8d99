"""Who may ask: every request passes here before any page sees it.

A page in another tab, a name that was made to point here, another user of the machine: none of them gets an answer.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 64 * 1024
"""Nothing that a person sends here is longer."""
_OWN = frozenset({"same-origin", "none"})
"""Where a request may come from, as the browser says: a page of ours, or the person."""
_UNSAFE = frozenset({"POST", "PUT", "PATCH", "DELETE"})

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=(), interest-cohort=()"),
)


class Keys:
    """The secrets of one run: a link that is good for one exchange, and what it is exchanged for."""

    def __init__(self, port: int) -> None:
        self.cookie = f"clew-{port}"
        """The name of the cookie. Browsers send cookies to every port of an address, so each server has its own."""
        self._link = secrets.token_urlsafe(32)
        self._visitors: set[str] = set()

    @property
    def link(self) -> str:
        """The secret of the next link."""
        return self._link

    def exchange(self, given: str) -> str | None:
        """A visitor's key for the secret of a link, once; the next link has another secret."""
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self._link.encode()):
            return None
        self._link = secrets.token_urlsafe(32)
        visitor = secrets.token_urlsafe(32)
        self._visitors.add(visitor)
        return visitor

    def knows(self, given: str) -> bool:
        """True for a key that was given out; every key is compared, so that the time tells nothing."""
        return sum([hmac.compare_digest(given.encode(), known.encode()) for known in self._visitors]) > 0


def names(port: int, hosts: Iterable[str] = ()) -> frozenset[str]:
    """The names under which this server may be called."""
    return frozenset(f"{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]", *hosts))


class Guard:
    """Refuses what does not come from the person's own browser, and puts the same headers on every answer."""

    def __init__(
        self,
        app: ASGIApp,
        keys: Keys,
        allowed: frozenset[str],
        open_paths: frozenset[str],
        *,
        any_address: bool = False,
    ) -> None:
        self._app, self._keys, self._allowed, self._open = app, keys, allowed, open_paths
        self._any_address = any_address
        """The server listens on all addresses of the machine, and may be called by the one that was connected to."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        guarded = _with_headers(send, _keeping(scope))
        refusal = self._refusal(scope)
        if refusal is not None:
            await _refuse(guarded, *refusal)
            return
        await self._app(scope, _limited(receive), guarded)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        head = _head(scope)
        allowed = self._allowed | _connected_to(scope) if self._any_address else self._allowed
        if head is None or head.get("host", "").lower() not in allowed:
            return 421, "This server answers to its own name only."
        if head.get("sec-fetch-site", "none") not in _OWN or not _is_own(head.get("origin"), allowed):
            return 403, "This came from another page."
        if scope["method"] in _UNSAFE:
            if not head.get("content-type", "").startswith("application/json") or "x-clew" not in head:
                return 403, "This is no request of the app."
            if not head.get("content-length", "0").isdigit() or int(head.get("content-length", "0")) > MAX_BODY:
                return 413, "Too long."
        elif scope["method"] not in ("GET", "HEAD"):
            return 405, "Not possible."
        if scope["path"] not in self._open and not any(map(self._keys.knows, _cookies(head, self._keys.cookie))):
            return (303, "/enter") if "text/html" in head.get("accept", "") else (401, "Open the link clew printed.")
        return None


def _is_own(origin: str | None, allowed: frozenset[str]) -> bool:
    return origin is None or origin.lower().removeprefix("http://") in allowed


def _connected_to(scope: Scope) -> frozenset[str]:
    """The address and port of this machine that the request came to, as a browser spells them.

    An address cannot be made to point elsewhere, as a name can.
    """
    address, port = scope["server"] or ("", None)
    address = address.removeprefix("::ffff:")
    return frozenset({f"[{address}]:{port}" if ":" in address else f"{address}:{port}"} if port else ())


def _keeping(scope: Scope) -> bytes:
    """What a browser may keep: nothing of what pages say; a file of the app whose address says which it is."""
    if not scope["path"].startswith("/static/"):
        return b"no-store"
    return b"private, max-age=31536000, immutable" if scope.get("query_string", b"").startswith(b"v=") else b"no-cache"


def _head(scope: Scope) -> dict[str, str] | None:
    """The headers of a request; None where one that decides is there twice."""
    head: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in head and key in ("host", "origin", "content-length", "sec-fetch-site"):
            return None
        text = value.decode("latin-1")
        head[key] = f"{head[key]}; {text}" if key == "cookie" and key in head else text
    return head


def _cookies(head: dict[str, str], wanted: str) -> list[str]:
    """The values of a cookie. Other servers of the machine may have set others that follow no rule."""
    pairs = (pair.strip().partition("=") for pair in head.get("cookie", "").split(";"))
    return [value for name, _, value in pairs if name == wanted]


def _limited(receive: Receive) -> Receive:
    """A body that says nothing of its length, or not the truth, ends here too."""
    seen = 0

    async def limited() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        return message if seen <= MAX_BODY else {"type": "http.disconnect"}

    return limited


def _with_headers(send: Send, keeping: bytes) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [*HEADERS, (b"cache-control", keeping if message["status"] == 200 else b"no-store")]
            kept = [pair for pair in message.get("headers", ()) if pair[0].lower() != b"cache-control"]
            message = {**message, "headers": [*kept, *own]}
        await send(message)

    return guarded


async def _refuse(send: Send, status: int, text: str) -> None:
    body = text.encode() + b"\n"
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    if status == 303:
        headers.append((b"location", text.encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
