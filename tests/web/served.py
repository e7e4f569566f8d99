"""The app on a real server on this machine, in a thread of this process."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import uvicorn
from starlette.routing import Route

from clew.web.app import make_app
from clew.web.auth import SessionTokens, local_hosts
from clew.web.server import bind, uvicorn_config


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Served:
    """A server that runs, and requests to it with every header in our hand."""

    def __init__(self, port: int, tokens: SessionTokens) -> None:
        self.port, self.tokens = port, tokens
        self.host = f"127.0.0.1:{port}"

    def ask(self, path: str, method: str = "GET", body: bytes | None = None, **headers: str | bytes) -> Answer:
        """One request; `Host` and the like are what the caller says, and nothing is added."""
        sent = {"Host": self.host, **{name.replace("_", "-"): value for name, value in headers.items()}}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            if body is not None:
                sent.setdefault("Content-Length", str(len(body)))
            for name, value in sent.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def enter(self, token: str, **headers: str) -> Answer:
        """Exchange a token."""
        sent = {"Content_Type": "application/json", "X_Clew": "1", **headers}
        return self.ask("/enter", "POST", json.dumps({"token": token}).encode(), **sent)

    def cookie(self) -> str:
        """A cookie of somebody who was let in."""
        answer = self.enter(self.tokens.link_token)
        assert answer.status == 200, answer
        return answer.headers["set-cookie"].partition(";")[0]


@contextmanager
def served(pages: Sequence[Route]) -> Iterator[Served]:
    """The app with these pages, on a free port."""
    listening = bind("127.0.0.1", 0)
    port = listening.getsockname()[1]
    tokens = SessionTokens(port)
    server = uvicorn.Server(uvicorn_config(make_app(pages, tokens, local_hosts(port))))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield Served(port, tokens)
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
