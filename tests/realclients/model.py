"""The scripted model: a server on loopback that plays its turns, keeps every request, and refuses unexpected ones."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from msgspec import Struct

from tests.realclients.history import JSON, Entry
from tests.realclients.script import DONE, Call, Script, Turn
from tests.realclients.wire import Answer, Wire, json_answer, new_id

PORT = 8787


class Request(Struct):
    """One request of a conversation. The thread is empty for the main one, else the task of a sub-agent."""

    path: str
    thread: str
    body: JSON


class UnexpectedRequest(Exception):
    """The script expects another request here, or the real service would refuse this one."""


class Model:
    """Answers requests with the turns of a script, without the network part."""

    def __init__(self, wire: Wire, script: Script) -> None:
        self.wire = wire
        self.script = script
        self.requests: list[Request] = []
        self.errors: list[str] = []
        self._threads = {"": list(script.turns), **{task: list(turns) for task, turns in script.agents.items()}}
        self._lock = threading.Lock()

    def answer(self, path: str, body: JSON) -> tuple[int, Answer]:
        """The status and the answer. A request that is refused is added to `errors`."""
        with self._lock:
            try:
                return 200, self.wire.answer_side_request(path, body) or self._answer_conversation(path, body)
            except UnexpectedRequest as error:
                self.errors.append(f"{path}: {error}")
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                self.errors.append(f"{path}: a request that cannot be read: {error!r}")
            error_body = {"message": self.errors[-1], "type": "invalid_request_error", "code": 400}
            return 400, json_answer({"error": error_body})

    def unused_turns(self) -> list[str]:
        """A message for each thread that has turns left."""
        return [f"thread {name!r}: {len(turns)} turns were not used" for name, turns in self._threads.items() if turns]

    def turns_left(self) -> int:
        """How many turns of the main thread are left."""
        return len(self._threads[""])

    def _answer_conversation(self, path: str, body: JSON) -> Answer:
        if not self.wire.is_conversation(path):
            raise UnexpectedRequest("no such address")
        entries = self.wire.decode_history(body)
        thread = next((task for task in self.script.agents if _mentions(entries, task)), "")
        self.requests.append(Request(path, thread, body))
        violations = list(self.wire.violations(body))
        if violations:
            raise UnexpectedRequest("; ".join(violations))
        turn = self._next_turn(thread)
        self._check(turn, entries, body)
        return self.wire.encode_turn(path, body, turn)

    def _next_turn(self, thread: str) -> Turn:
        turns = self._threads[thread]
        if turns:
            return turns.pop(0)
        if self.script.answers_forever:
            return DONE
        raise UnexpectedRequest(f"no turns are left in thread {thread!r}")

    def _check(self, turn: Turn, entries: list[Entry], body: JSON) -> None:
        newest = "\n".join(entry.text for entry in entries[-4:])
        if turn.after not in newest:
            raise UnexpectedRequest(f"expected {turn.after!r} in the newest entries, found {newest!r}")
        missing = {step.name for step in turn.steps if isinstance(step, Call)} - self.wire.tool_names(body)
        if missing:
            raise UnexpectedRequest(f"no tools named {sorted(missing)}; there are {sorted(self.wire.tool_names(body))}")


def _mentions(entries: list[Entry], task: str) -> bool:
    return any(entry.kind == "user" and task in entry.text for entry in entries)


def serve(model: Model) -> ThreadingHTTPServer:
    """Start a server for the model."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply(200, model.wire.answer_side_request(self.path.partition("?")[0], {}) or json_answer({}))

        do_HEAD = do_GET

        def do_POST(self) -> None:
            try:
                body = json.loads(self._body() or b"{}")
            except ValueError:
                body = None
            self._reply(*model.answer(self.path.partition("?")[0], body))

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing: the requests are kept in full."""

        def _body(self) -> bytes:
            if self.headers.get("transfer-encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("content-length") or 0))
            chunks: list[bytes] = []
            while size := int(self.rfile.readline(), 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(chunks)

        def _reply(self, status: int, answer: Answer) -> None:
            self.send_response(status)
            self.send_header("content-type", answer.media_type)
            self.send_header("content-length", str(len(answer.body)))
            # Clients record it, and readers know the lines of one reply by it.
            self.send_header("request-id", new_id("req_"))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

    server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
