"""The scripted model: a server on loopback that says its turns, keeps every request, and refuses what does not fit."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from msgspec import Struct

from tests.realclients.history import JSON, Entry
from tests.realclients.script import DONE, Call, Script, Turn
from tests.realclients.wire import Answer, Wire, plain

PORT = 8787


class Request(Struct):
    """One request of a conversation. The lane is empty for the main one, else the mark of a sub-agent."""

    path: str
    lane: str
    body: JSON


class Misfit(Exception):
    """The request does not fit the script, or the real service would refuse it."""


class Model:
    """Takes requests, gives answers; knows nothing of sockets."""

    def __init__(self, wire: Wire, script: Script) -> None:
        self.wire = wire
        self.script = script
        self.requests: list[Request] = []
        self.misfits: list[str] = []
        self._lanes: dict[str, list[Turn]] = {"": list(script.turns), **{k: list(v) for k, v in script.agents.items()}}
        self._lock = threading.Lock()

    def answer(self, path: str, body: JSON) -> tuple[int, Answer]:
        """The status and the answer; a request that does not fit is refused and remembered."""
        with self._lock:
            try:
                return 200, self.wire.side(path, body) or self._converse(path, body)
            except Misfit as misfit:
                self.misfits.append(f"{path}: {misfit}")
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                self.misfits.append(f"{path}: a request that cannot be read: {error!r}")
            return 400, plain({"error": {"message": self.misfits[-1], "type": "invalid_request_error", "code": 400}})

    def unsaid(self) -> list[str]:
        """The turns that nobody asked for."""
        return [f"lane {lane!r}: {len(turns)} turns were not asked for" for lane, turns in self._lanes.items() if turns]

    def _converse(self, path: str, body: JSON) -> Answer:
        if not self.wire.converses(path):
            raise Misfit("no such address")
        entries = self.wire.entries(body)
        lane = next((mark for mark in self.script.agents if _mentions(entries, mark)), "")
        self.requests.append(Request(path, lane, body))
        faults = list(self.wire.faults(body))
        if faults:
            raise Misfit("; ".join(faults))
        turn = self._take(lane)
        self._check(turn, entries, body)
        return self.wire.spell(path, body, turn)

    def _take(self, lane: str) -> Turn:
        turns = self._lanes[lane]
        if turns:
            return turns.pop(0)
        if self.script.answers_on:
            return DONE
        raise Misfit(f"nothing is left to say in lane {lane!r}")

    def _check(self, turn: Turn, entries: list[Entry], body: JSON) -> None:
        newest = "\n".join(entry.text for entry in entries[-4:])
        if turn.after not in newest:
            raise Misfit(f"expected {turn.after!r} in the newest entries, found {newest!r}")
        strange = {step.name for step in turn.steps if isinstance(step, Call)} - self.wire.tools(body)
        if strange:
            raise Misfit(f"no tools named {sorted(strange)}; there are {sorted(self.wire.tools(body))}")


def _mentions(entries: list[Entry], mark: str) -> bool:
    return any(entry.kind == "user" and mark in entry.text for entry in entries)


def serve(model: Model) -> ThreadingHTTPServer:
    """A server for the model, bound and answering."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply(200, model.wire.side(self.path.partition("?")[0], {}) or plain({}))

        do_HEAD = do_GET

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            try:
                body = json.loads(raw or b"{}")
            except ValueError:
                body = None
            self._reply(*model.answer(self.path.partition("?")[0], body))

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the requests are kept in full."""

        def _reply(self, status: int, answer: Answer) -> None:
            self.send_response(status)
            self.send_header("content-type", answer.media_type)
            self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

    server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
