"""Messages, transcripts and documents that several tests need."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from clew.agents.base import SourceFile, Unit
from clew.agents.claude_code import ClaudeCode
from clew.analysis.facts import Facts
from tests.demo_home import write_small_demo

SEEDS = Path(__file__).resolve().parents[1] / "fixtures" / "seeds"
SESSION = "0b0e2d8c-5a0f-4a5e-9d53-0d5a4f3c2b11"

Record = dict[str, Any]


def seed(name: str) -> Any:
    """An example of the seed documents, as `seed-002/example-document`."""
    return json.loads((SEEDS / f"{name}.json").read_text(encoding="utf-8"))


def say(index: int, role: str = "user", *blocks: Record | str, **fields: Any) -> Record:
    """A unified message; strings are text blocks, `uuid` is `m<index>` unless given."""
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    names = ("uuid", "parent_uuid", "timestamp", "extensions")
    message = {"index": index, "uuid": f"m{index}", "role": role, "content": content}
    message |= {name: fields.pop(name) for name in names if name in fields}
    return message | ({"metadata": fields} if fields else {})


def chain(*messages: Record) -> list[Record]:
    """The messages, each the child of the one before unless it says otherwise."""
    before = None
    for message in messages:
        message.setdefault("parent_uuid", before)
        before = message["uuid"]
    return list(messages)


def call(tool_id: str, name: str = "Bash", **arguments: Any) -> Record:
    return {"type": "tool_use", "tool_id": tool_id, "tool_name": name, "input": arguments}


def result(tool_id: str, output: Any = "done", **fields: Any) -> Record:
    return {"type": "tool_result", "tool_id": tool_id, "output": output, **fields}


def claude_line(kind: str, uuid: str, parent: str | None, content: Any = "hello", **more: Any) -> Record:
    """A record as Claude Code writes it."""
    line = {
        "parentUuid": parent,
        "isSidechain": False,
        "sessionId": SESSION,
        "type": kind,
        "message": {"role": kind, "content": content},
        "uuid": uuid,
        "timestamp": "2026-01-01T10:00:00.000Z",
    }
    return line | more


class Transcript(NamedTuple):
    """A transcript of Claude Code, read."""

    source: SourceFile
    session: Record
    facts: Facts
    messages: list[Record]
    records: list[Record]
    units: list[Unit]


def write_lines(folder: Path, *lines: Record | bytes | str, name: str = SESSION) -> SourceFile:
    """A transcript in a file of its own; bytes and strings are written as they are."""
    path = folder / f"{name}.jsonl"
    parts = [
        line if isinstance(line, bytes) else (line if isinstance(line, str) else json.dumps(line)).encode()
        for line in lines
    ]
    path.write_bytes(b"".join(part + b"\n" for part in parts))
    return ClaudeCode().locate(path)


def read_source(source: SourceFile) -> Transcript:
    agent = ClaudeCode()
    facts = agent.facts(source)
    units = list(agent.units(source))
    messages = [unit.value for unit in units if unit.is_message]
    records = [unit.value for unit in units if not unit.is_message]
    return Transcript(source, agent.session(source, facts), facts, messages, records, units)


def read_lines(folder: Path, *lines: Record | bytes | str) -> Transcript:
    return read_source(write_lines(folder, *lines))


def demo_transcripts(folder: Path) -> Iterator[Transcript]:
    """Every Claude Code session of the demo home, which is written into an empty folder."""
    write_small_demo(folder)
    for source in ClaudeCode().discover(folder / ".claude" / "projects"):
        yield read_source(source)
