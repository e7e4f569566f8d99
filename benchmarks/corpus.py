"""Homes to measure on: one that is named, one from a generator beside the checkout, or one of our own making.

Our own is deterministic: sessions of Claude Code with the kinds of records, the order of keys and the spread of
sizes that real ones have, and invented words.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Record = dict[str, Any]

GENERATOR = Path(__file__).resolve().parents[2] / "shared" / "tools" / "make_corpus.py"
UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9}

_WORDS = (
    "the tide table harbour bell reads a file and returns each line when level mean station north parse value test "
    "fails with an error because time zone offset is missing def class import return None self.height = 3.141 # TODO "
    "“marée” été naïve {} [] () \\n \\t \"quoted\" 'single' /home/ada/src/tidepool/tidepool/plot.py"
).split(" ")
_RESULTS = (120, 400, 900, 2_500, 2_500, 6_000, 20_000)
_SESSION_BYTES = (40_000, 150_000, 500_000, 2_000_000)
_CWD = "/home/ada/src/tidepool"
_START = datetime(2026, 10, 1, 8, 0, tzinfo=UTC)


def parse_size(text: str) -> int:
    """Bytes from `200MB`, `300KB` or a plain number."""
    unit = text[-2:].upper()
    return int(float(text[:-2]) * UNITS[unit]) if unit in UNITS else int(text)


@contextmanager
def corpus(home: Path | None, size: int) -> Iterator[tuple[Path, str]]:
    """A home of about this size, and where it comes from; one that was made is removed behind."""
    if home is not None:
        yield home, "named"
        return
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        made = Path(folder) / "home"
        if GENERATOR.is_file():
            command = [sys.executable, str(GENERATOR), "--size", f"{size / 10**6}MB", "--seed", "7", "--out", str(made)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            yield made, "made by the generator beside the checkout"
        else:
            write_home(made, size)
            yield made, "made by benchmarks/corpus.py"


def write_home(home: Path, size: int, seed: int = 7) -> None:
    """Sessions of Claude Code, a third of them with a sub-agent."""
    rng = random.Random(seed)
    written = 0
    folder = home / ".claude" / "projects" / "-home-ada-src-tidepool"
    while written < size:
        session = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        wanted = min(rng.choice(_SESSION_BYTES), size - written)
        written += write_session(folder / f"{session}.jsonl", rng.random(), size=wanted)[1]
        if rng.random() < 1 / 3:
            helper = folder / session / "subagents" / f"agent-{rng.getrandbits(28):07x}.jsonl"
            written += write_session(helper, rng.random(), size=wanted // 8, parent=session)[1]


def write_session(
    path: Path,
    seed: float,
    *,
    size: int | None = None,
    turns: int | None = None,
    scale: int = 1,
    parent: str | None = None,
) -> tuple[int, int]:
    """A session of so many bytes or turns; `scale` makes each text so many times longer. Returns turns and bytes."""
    agent = path.stem.removeprefix("agent-") if parent else None
    maker = _Session(random.Random(seed), parent or path.stem, scale, agent)
    path.parent.mkdir(parents=True, exist_ok=True)
    done = written = 0
    with path.open("wb") as out:
        while (done < turns) if turns is not None else (written < (size or 0)):
            for record in maker.turn():
                written += out.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
            done += 1
    return done, written


class _Session:
    """The records of one session, turn by turn."""

    def __init__(self, rng: random.Random, session: str, scale: int, agent: str | None) -> None:
        self._rng, self._session, self._scale, self._agent = rng, session, scale, agent
        # A stream of its own: sessions of one seed differ in the length of their texts only.
        self._pool = " ".join(random.Random(scale).choices(_WORDS, k=40_000 + 4_000 * scale))
        self._last: str | None = None
        self._time = _START + timedelta(minutes=rng.randrange(60 * 24 * 30))

    def turn(self) -> Iterator[Record]:
        """A prompt, some calls with their results, and the answer."""
        prompt = self._user(self._text(200))
        yield prompt
        if self._agent is None:
            yield self._snapshot(prompt["uuid"])
        for _ in range(self._rng.randrange(1, 5)):
            yield from self._call()
        yield self._assistant([{"type": "text", "text": self._text(700)}], self._reply(), "end_turn")

    def _call(self) -> Iterator[Record]:
        reply, call = self._reply(), f"toolu_{self._hex(24)}"
        yield self._assistant([{"type": "thinking", "thinking": "", "signature": self._hex(400)}], reply, "tool_use")
        path = f"{_CWD}/tidepool/{self._hex(4)}.py"
        block = {"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": path}}
        yield self._assistant([{**block, "caller": {"type": "direct"}}], reply, "tool_use")
        text = self._text(self._rng.choice(_RESULTS))
        result = [{"tool_use_id": call, "type": "tool_result", "content": text}]
        lines = text.count(" ")
        file = {"filePath": path, "content": text, "numLines": lines, "startLine": 1, "totalLines": lines}
        yield self._user(result, toolUseResult={"type": "text", "file": file}, sourceToolAssistantUUID=self._last)

    def _user(self, content: Any, **more: Any) -> Record:
        head = {**self._head(), "type": "user", "message": {"role": "user", "content": content}}
        return self._whole(head, **more)

    def _assistant(self, content: list[Record], reply: tuple[str, str, Record], stop: str) -> Record:
        message, request, usage = reply
        body: Record = {"model": "claude-opus-4-8", "id": message, "type": "message", "role": "assistant"}
        body |= {"content": content, "stop_reason": stop, "stop_sequence": None, "stop_details": None, "usage": usage}
        return self._whole({**self._head(), "message": body, "requestId": request, "type": "assistant"})

    def _head(self) -> Record:
        head: Record = {"parentUuid": self._last, "isSidechain": self._agent is not None}
        return {**head, "agentId": self._agent} if self._agent is not None else head

    def _whole(self, head: Record, **more: Any) -> Record:
        self._last = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        self._time += timedelta(milliseconds=self._rng.randrange(100, 9_000))
        record = {**head, "uuid": self._last, "timestamp": self._stamp(), **more, "userType": "external"}
        record |= {"entrypoint": "cli", "cwd": _CWD, "sessionId": self._session, "version": "2.1.218"}
        return {**record, "gitBranch": "main"}

    def _snapshot(self, prompt: str) -> Record:
        snapshot = {"messageId": prompt, "trackedFileBackups": {}, "timestamp": self._stamp()}
        return {"type": "file-history-snapshot", "messageId": prompt, "snapshot": snapshot, "isSnapshotUpdate": False}

    def _reply(self) -> tuple[str, str, Record]:
        usage = {
            "input_tokens": self._rng.randrange(1, 9),
            "cache_creation_input_tokens": self._rng.randrange(4_000),
            "cache_read_input_tokens": self._rng.randrange(150_000),
            "output_tokens": self._rng.randrange(20, 2_000),
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
            "service_tier": "standard",
            "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
        }
        return f"msg_{self._hex(24)}", f"req_{self._hex(24)}", usage

    def _text(self, length: int) -> str:
        length *= self._scale
        begin = int(self._rng.random() * (len(self._pool) - length))
        return self._pool[begin : begin + length]

    def _hex(self, length: int) -> str:
        return f"{self._rng.getrandbits(4 * length):0{length}x}"

    def _stamp(self) -> str:
        return self._time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
