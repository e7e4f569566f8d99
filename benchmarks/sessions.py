"""Generates one long session of Claude Code, Codex or Gemini CLI, with invented text."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks import corpus

Record = dict[str, Any]

_CWD = "/home/ada/src/tidepool"
_START = datetime(2026, 10, 1, 8, 0, tzinfo=UTC)
_WORDS = "the tide table harbour bell reads a file and returns each line when level mean station north fails".split()
_RESULT_CHARS = (120, 400, 900, 2_500, 6_000)


def write_session(agent: str, path: Path, *, size: int | None = None, turns: int | None = None, scale: int = 1) -> int:
    """Write a session of `size` bytes or `turns` turns, with texts `scale` times as long. Returns the turns."""
    if agent == "claude-code":
        return corpus.write_session(path, 0.5, size=size, turns=turns, scale=scale)[0]
    maker = _Codex(scale) if agent == "codex" else _Gemini(scale)
    done = written = 0
    with path.open("wb") as out:
        written += out.write(_json_line(maker.head()))
        while (done < turns) if turns is not None else (written < (size or 0)):
            written += sum(out.write(_json_line(record)) for record in maker.turn())
            done += 1
    return done


def file_name(agent: str, name: str) -> str:
    """A file name in the form that the agent uses for sessions."""
    begun = "2026-10-01T08-00"
    rollout = f"rollout-{begun}-00-{uuid.uuid5(uuid.NAMESPACE_URL, name)}.jsonl"
    return {"codex": rollout, "gemini": f"session-{begun}-{name}.jsonl"}.get(agent, f"{name}.jsonl")


def _json_line(record: Record) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


class _RecordMaker:
    def __init__(self, scale: int) -> None:
        self._rng, self._scale = random.Random(0), scale
        # A generator of its own: sessions differ only in the length of their texts.
        self._pool = " ".join(random.Random(scale).choices(_WORDS, k=20_000 + 2_000 * scale))
        self._time = _START
        self.session = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))

    def _text(self, length: int) -> str:
        begin = int(self._rng.random() * (len(self._pool) - length * self._scale))
        return self._pool[begin : begin + length * self._scale]

    def _stamp(self) -> str:
        self._time += timedelta(milliseconds=700)
        return self._time.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _name(self) -> str:
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))


class _Codex(_RecordMaker):
    def head(self) -> Record:
        payload: Record = {"id": self.session, "timestamp": self._stamp(), "cwd": _CWD, "originator": "codex_cli_rs"}
        return self._line("session_meta", {**payload, "cli_version": "0.99.0", "source": "cli"})

    def turn(self) -> Iterator[Record]:
        yield self._line("turn_context", {"cwd": _CWD, "model": "gpt-5.2-codex", "effort": "medium"})
        yield self._item("message", role="user", content=[{"type": "input_text", "text": self._text(200)}])
        for _ in range(self._rng.randrange(1, 5)):
            call = f"call_{self._rng.getrandbits(96):024x}"
            arguments = json.dumps({"command": ["cat", self._text(20)]}, separators=(",", ":"))
            yield self._item("function_call", name="shell", arguments=arguments, call_id=call)
            yield self._item("function_call_output", call_id=call, output=self._text(self._rng.choice(_RESULT_CHARS)))
        yield self._item("message", role="assistant", content=[{"type": "output_text", "text": self._text(700)}])

    def _item(self, kind: str, **more: Any) -> Record:
        return self._line("response_item", {"type": kind, **more})

    def _line(self, kind: str, payload: Record) -> Record:
        return {"timestamp": self._stamp(), "type": kind, "payload": payload}


class _Gemini(_RecordMaker):
    def head(self) -> Record:
        begun = self._stamp()
        return {"sessionId": self.session, "projectHash": "0" * 64, "startTime": begun, "lastUpdated": begun}

    def turn(self) -> Iterator[Record]:
        yield self._message("user", content=[{"text": self._text(200)}])
        for _ in range(self._rng.randrange(1, 5)):
            call = f"read_file-{self._rng.getrandbits(64):016x}"
            response = {
                "id": call,
                "name": "read_file",
                "response": {"output": self._text(self._rng.choice(_RESULT_CHARS))},
            }
            ran: Record = {"id": call, "name": "read_file", "args": {"file_path": self._text(20)}, "status": "success"}
            ran |= {"result": [{"functionResponse": response}], "timestamp": self._stamp()}
            yield self._message("gemini", content="", model="gemini-3-pro", toolCalls=[ran])
        yield self._message("gemini", content=self._text(700), model="gemini-3-pro")

    def _message(self, kind: str, **more: Any) -> Record:
        return {"id": self._name(), "timestamp": self._stamp(), "type": kind, **more}
