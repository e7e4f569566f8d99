"""Sessions of Gemini CLI for tests, written record by record, and the client's own replay in the plainest words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from hypothesis import strategies as st

from clew.agents.gemini import Gemini
from clew.agents.gemini.events import RESULTS_SUFFIX
from clew.io.codec import dumps
from clew.library import StoredSession
from clew.model.json import JSON

AGENT = Gemini()
ROOT = "/home/ada/src/bell"
HASH = hashlib.sha256(ROOT.encode()).hexdigest()
SESSION = "0c5f8e21-7b3a-4d96-a1e4-52d7c9f08b63"
NAME = "session-2026-10-20T09-14-0c5f8e21"

Record = dict[str, JSON]


def header(**more: JSON) -> Record:
    time = "2026-10-20T09:14:00.000Z"
    return {"sessionId": SESSION, "projectHash": HASH, "startTime": time, "lastUpdated": time, **more}


def user(id: str, content: JSON = "Ring the bell.", **more: JSON) -> Record:
    return {"id": id, "timestamp": "2026-10-20T09:15:00.000Z", "type": "user", "content": content, **more}


def gemini(id: str, content: JSON = "Ding.", **more: JSON) -> Record:
    return {"id": id, "timestamp": "2026-10-20T09:15:05.000Z", "type": "gemini", "content": content, **more}


def call(id: str, name: str = "read_file", status: str = "success", output: str = "done", **more: JSON) -> Record:
    result = [{"functionResponse": {"id": id, "name": name, "response": {"output": output}}}]
    return {"id": id, "name": name, "args": {"file_path": "bell.py"}, "result": result, "status": status, **more}


def tokens(input: int, output: int, cached: int = 0, thoughts: int = 0) -> Record:
    total = input + output + thoughts
    return {"input": input, "output": output, "cached": cached, "thoughts": thoughts, "tool": 0, "total": total}


def rewind(id: str) -> Record:
    return {"$rewindTo": id}


def replaced(*messages: JSON, **more: JSON) -> Record:
    return {"$set": {"messages": list(messages), **more}}


def log(folder: Path, *records: JSON, name: str = f"{NAME}.jsonl", project: str = "bell") -> Path:
    """An event log in its place below a store."""
    return write(folder, b"".join(dumps(record) + b"\n" for record in records), name, project)


def document(folder: Path, *messages: JSON, name: str = f"{NAME}.json", project: str = "bell", **more: JSON) -> Path:
    """A session of the older form in its place below a store."""
    text = json.dumps({**header(), "messages": list(messages), **more}, indent=2, ensure_ascii=False)
    return write(folder, text.encode(), name, project)


def write(folder: Path, content: bytes, name: str, project: str = "bell") -> Path:
    path = folder / ".gemini" / "tmp" / project / "chats" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def opened(path: Path) -> StoredSession:
    return StoredSession(AGENT, AGENT.locate(path))


def active(path: Path) -> list[str]:
    """The active path without the messages that we added."""
    session = opened(path)
    return [uuid for uuid in session.facts.tree.graph().active_path if not uuid.endswith(RESULTS_SUFFIX)]


def plain_replay(records: Iterable[JSON]) -> list[str]:
    """The ids that the client shows after it has read the records: an ordered map, as it keeps one itself."""
    shown: dict[str, JSON] = {}
    for record in records:
        if not isinstance(record, dict):
            continue
        patch = record.get("$set")
        if isinstance(record.get("$rewindTo"), str):
            ids = list(shown)
            at = ids.index(record["$rewindTo"]) if record["$rewindTo"] in shown else 0
            for gone in ids[at:]:
                del shown[gone]
        elif isinstance(record.get("id"), str):
            shown[record["id"]] = record
        elif isinstance(patch, dict):
            if isinstance(patch.get("messages"), list):
                shown = _rebuilt(patch["messages"])
        elif isinstance(record.get("sessionId"), str) and isinstance(record.get("messages"), list):
            shown = _rebuilt(record["messages"])
    return list(shown)


def _rebuilt(messages: list[JSON]) -> dict[str, JSON]:
    return {each["id"]: each for each in messages if isinstance(each, dict) and isinstance(each.get("id"), str)}


IDS = st.sampled_from("abcde")
EVENTS = st.one_of(
    st.builds(user, IDS, st.text(max_size=3)),
    st.builds(
        lambda id, text, calls: gemini(id, text, toolCalls=[call(c) for c in calls]),
        IDS,
        st.text(max_size=3),
        st.lists(IDS, max_size=2),
    ),
    st.builds(rewind, IDS | st.sampled_from(["", "zz"])),
    st.builds(
        lambda messages: replaced(*messages),
        st.lists(st.builds(user, IDS, st.text(max_size=2)) | st.just({"x": 1}), max_size=4),
    ),
    st.just({"$set": {"lastUpdated": "2026-10-20T09:14:00.000Z"}}),
    st.just({"future": True}),
    st.just({**header(), "messages": [user("a"), gemini("e")]}),
)
