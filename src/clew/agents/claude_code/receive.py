"""What Claude Code can hold of other agents' sessions, and the records it goes on with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clew.agents.claude_code.locate import AGENT
from clew.agents.folding import Message, Step, derived_id
from clew.agents.receiving import Aside, Capacity, Receiver
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
    images=True,
    documents=True,
    pictured_results=True,
    image_types=("image/png", "image/jpeg", "image/gif", "image/webp"),
    document_types=("application/pdf", "text/plain"),
    failures=True,
    titles=True,
    subagents=True,
    todos=("user",),
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


_NOTICES = ("<task-notification>", "<agent-notification>")
"""How a text begins that waits like a prompt and is none."""


def _aside(record: Mapping[str, JSON]) -> Aside | None:
    """A prompt that waits to be sent."""
    if record.get("type") != "queue-operation":
        return None
    rest = _rest(record)
    given = record.get("text") or rest.get("content")
    blocks = [block for block in given if isinstance(block, dict)] if isinstance(given, list) else []
    texts = [given] if isinstance(given, str) else [str(block.get("text") or "") for block in blocks]
    text = "\n".join(texts).strip()
    if rest.get("operation") != "enqueue" or not text or text.startswith(_NOTICES):
        return None
    return Aside("a prompt that waited and was never sent", "no message holds it", text=text, waits=True)


def _rest(value: Mapping[str, JSON]) -> Mapping[str, JSON]:
    own = (value.get("extensions") or {}).get(AGENT) or {}
    rest = own.get("rest")
    return rest if isinstance(rest, dict) else {}


def _address(block: Mapping[str, JSON]) -> str | None:
    source = _rest(block).get("source")
    address = source.get("url") if isinstance(source, dict) else None
    return address if isinstance(address, str) else None


RECEIVER = Receiver(
    CAPACITY,
    TOOLS,
    ("sessionId", "session_id"),
    lambda session: ["claude", "--resume", str(session["id"])],
    finds=lambda path, identity: path.name == f"{identity}.jsonl",
    aside=_aside,
    address=_address,
    unsaid={"citations": "the citations of a text"},
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
        content = [_linked(block) for block in value["content"]]
        fitted = {"parent_uuid": None, **value, "uuid": last, "content": content}
        fitted["metadata"] = _metadata(value, session, reply)
        yield True, fitted if time is None else {**fitted, "timestamp": time}
    if session.get("title"):
        yield False, {"after": 0, "kind": "title", "type": "custom-title", "text": session["title"]}
    if last is not None:
        yield False, {"after": 0, "kind": "prompt", "type": "last-prompt", "message_uuid": last}


def _linked(block: Message) -> Message:
    """What stands elsewhere, with its address where the client looks for it."""
    if block["type"] == "tool_result" and isinstance(block.get("output"), list):
        return {**block, "output": [_linked(each) if isinstance(each, dict) else each for each in block["output"]]}
    kind = block.get("type")
    if kind not in ("image", "document") or block.get("encoding") != "url" or block.get(kind) is None:
        return block
    kept = {name: item for name, item in block.items() if name not in (kind, "media_type")}
    return {**kept, "extensions": {AGENT: {"rest": {"source": {"url": block[kind]}}}}}


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
