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
from clew.web.guard import Keys, names
from clew.web.serve import bind, configured


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Served:
    """A server that runs, and requests to it with every header in our hand."""

    def __init__(self, port: int, keys: Keys) -> None:
        self.port, self.keys = port, keys
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
        answer = self.enter(self.keys.link)
        assert answer.status == 200, answer
        return answer.headers["set-cookie"].partition(";")[0]


@contextmanager
def served(pages: Sequence[Route]) -> Iterator[Served]:
    """The app with these pages, on a free port."""
    listening = bind("127.0.0.1", 0)
    port = listening.getsockname()[1]
    keys = Keys(port)
    server = uvicorn.Server(configured(make_app(pages, keys, names(port))))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield Served(port, keys)
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
