"""Rollouts of Codex CLI, written line by line for the tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from clew.agents.base import SourceFile
from clew.agents.codex import Codex
from clew.analysis.facts import Facts
from clew.export.verify import verify

AGENT = Codex()
THREAD = "019f0000-0000-7000-8000-00000000000a"
OTHER = "019f0000-0000-7000-8000-00000000000b"
THIRD = "019f0000-0000-7000-8000-00000000000c"
CWD = "/home/ada/src/tide"

Value = dict[str, Any]


class Rollout(NamedTuple):
    """A rollout, read."""

    source: SourceFile
    facts: Facts
    session: Value
    messages: list[Value]
    records: list[Value]

    @property
    def texts(self) -> list[str]:
        """The text of each message that is words."""
        return [block["text"] for m in self.messages for block in m["content"] if block["type"] == "text"]

    @property
    def active(self) -> list[str]:
        """The texts on the active path."""
        path = set(self.facts.tree.graph().active_path)
        kept = [message for message in self.messages if message["uuid"] in path]
        return [block["text"] for m in kept for block in m["content"] if block["type"] == "text"]


def line(kind: str, payload: Any, second: float = 0, **more: Any) -> Value:
    """An envelope; the time is some seconds after ten."""
    clock = f"2026-03-02T10:{int(second) // 60:02}:{second % 60:06.3f}Z"
    return {"timestamp": clock, **more, "type": kind, "payload": payload}


def meta(thread: str = THREAD, **more: Any) -> Value:
    head = {"id": thread, "timestamp": "2026-03-02T09:59:58.000Z", "cwd": CWD, "originator": "codex_cli_rs"}
    return line("session_meta", {**head, "cli_version": "0.118.0", "source": "cli", "model_provider": "openai", **more})


def item(kind: str, second: float = 1, /, **payload: Any) -> Value:
    return line("response_item", {"type": kind, **payload}, second)


def event(kind: str, second: float = 1, /, **payload: Any) -> Value:
    return line("event_msg", {"type": kind, **payload}, second)


def context(model: str = "gpt-5.3-codex", **more: Any) -> Value:
    return line("turn_context", {"cwd": CWD, "approval_policy": "never", "model": model, "effort": "high", **more})


def words(role: str, *texts: str, second: float = 1, **more: Any) -> Value:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", second, role=role, content=[{"type": kind, "text": text} for text in texts], **more)


def asked(text: str, second: float = 1) -> list[Value]:
    """A prompt with the event that repeats it."""
    return [words("user", text, second=second), event("user_message", second, message=text, images=[])]


def answered(text: str, second: float = 2) -> list[Value]:
    return [event("agent_message", second, message=text), words("assistant", text, second=second)]


def used(input: int, cached: int, output: int, reasoning: int = 0, **more: int) -> dict[str, int]:
    counts = {"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output}
    return {**counts, "reasoning_output_tokens": reasoning, "total_tokens": input + output, **more}


def tokens(total: Any, last: Any, second: float = 3) -> Value:
    return event("token_count", second, info={"total_token_usage": total, "last_token_usage": last}, rate_limits=None)


def spelled(*lines: Value | bytes) -> bytes:
    """The bytes of a rollout; bytes are taken as they are."""
    parts = [
        each if isinstance(each, bytes) else json.dumps(each, separators=(",", ":"), ensure_ascii=False).encode()
        for each in lines
    ]
    return b"".join(part + b"\n" for part in parts)


def place(home: Path, thread: str = THREAD, folder: str = "sessions/2026/03/02") -> Path:
    path = home / ".codex" / folder / f"rollout-2026-03-02T09-59-58-{thread}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def write(home: Path, *lines: Value | bytes, thread: str = THREAD, folder: str = "sessions/2026/03/02") -> Path:
    path = place(home, thread, folder)
    path.write_bytes(spelled(*lines))
    return path


def read(path: Path) -> Rollout:
    """A rollout read, after the proof that all its bytes come back."""
    source = AGENT.locate(path)
    assert verify(AGENT, source).different == []
    facts = AGENT.facts(source)
    units = list(AGENT.units(source))
    messages = [unit.value for unit in units if unit.is_message]
    records = [unit.value for unit in units if not unit.is_message]
    return Rollout(source, facts, AGENT.session(source, facts), messages, records)


def rollout(home: Path, *lines: Value | bytes, thread: str = THREAD) -> Rollout:
    return read(write(home, *lines, thread=thread))
