"""What Claude Code can hold of other agents' sessions, and the records it goes on with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clew.agents.folding import Message, Step, derived_id
from clew.agents.receiving import Capacity, Receiver
from clew.agents.tools import (
    EDIT,
    FETCH,
    GLOB,
    GREP,
    LIST,
    READ,
    SEARCH,
    SHELL,
    TODOS,
    WRITE,
    Arguments,
    Tool,
    todos_from,
    todos_into,
)
from clew.model.json import JSON

CAPACITY = Capacity(
    images=True, documents=True, pictured_results=True, failures=True, titles=True, subagents=True, todos=("user",)
)
VERSION = "2.1.0"
"""Records name the version that wrote them; the client asks for no certain one."""
MODEL = "unknown"
"""For replies of which nobody says what model gave them."""


def _write_todos(arguments: Arguments) -> Arguments:
    """The entries with the form for what is under way, which the tool demands."""
    arguments = _into(arguments)
    todos = arguments.get("todos")
    for todo in todos if type(todos) is list else ():
        if type(todo) is dict:
            todo.setdefault("activeForm", todo.get("content"))
    return arguments


_into = todos_into({"active_form": "activeForm"})
_PATH = {"path": "file_path"}
TOOLS = (
    Tool(SHELL, "Bash"),
    Tool(READ, "Read", _PATH),
    Tool(WRITE, "Write", _PATH),
    Tool(EDIT, "Edit", {**_PATH, "old": "old_string", "new": "new_string", "all": "replace_all"}),
    Tool(GLOB, "Glob"),
    Tool(GREP, "Grep"),
    Tool(LIST, "LS"),
    Tool(FETCH, "WebFetch"),
    Tool(SEARCH, "WebSearch"),
    Tool(TODOS, "TodoWrite", read=todos_from({"activeForm": "active_form"}), write=_write_todos),
)


RECEIVER = Receiver(
    CAPACITY,
    TOOLS,
    ("sessionId", "session_id"),
    lambda session: ["claude", "--resume", str(session["id"])],
    finds=lambda path, identity: path.name == f"{identity}.jsonl",
    keeps_children=True,
    child_id=lambda identity: f"agent-a{identity.replace('-', '')[:16]}",
)


def composed(units: Iterator[Step], session: Mapping[str, JSON]) -> Iterator[Step]:
    """The messages with every key that the client's own reader looks for, the title, and where it all ends."""
    last = reply = None
    time = session.get("started_at")
    for is_message, value in units:
        if not is_message:
            yield False, value
            continue
        time = value.get("timestamp") or time
        last = value.get("uuid") or derived_id(session["id"], value["index"])
        # What the model says up to the next word of somebody else is one reply to the client.
        reply = (reply or f"msg_{last}") if value["role"] == "assistant" else None
        fitted = {"parent_uuid": None, **value, "uuid": last, "metadata": _metadata(value, session, reply)}
        yield True, fitted if time is None else {**fitted, "timestamp": time}
    if session.get("title"):
        yield False, {"after": 0, "kind": "title", "type": "custom-title", "text": session["title"]}
    if last is not None:
        yield False, {"after": 0, "kind": "prompt", "type": "last-prompt", "message_uuid": last}


def _metadata(message: Message, session: Mapping[str, JSON], reply: str | None) -> Message:
    """What the message says of its surroundings, and what the client expects to be said."""
    metadata = {
        "is_sidechain": bool(session.get("is_agent_session")),
        "user_type": "external",
        "cwd": session["workspace"],
        "agent_version": VERSION,
        "git_branch": "",
        **(message.get("metadata") or {}),
    }
    if reply is not None:
        metadata["message_id"] = metadata.get("message_id") or reply
        metadata["model"] = {**_model(message), **(metadata.get("model") or {})}
    return metadata


def _model(message: Message) -> Message:
    calls = any(block["type"] == "tool_use" for block in message["content"])
    return {"name": MODEL, "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
