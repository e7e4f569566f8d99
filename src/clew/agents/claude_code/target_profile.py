"""What Claude Code can hold of other agents' sessions, and what its own records say beside messages."""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.claude_code.encode import SESSION_KEYS
from clew.agents.claude_code.queued_prompts import is_typed_by_person
from clew.agents.target_profile import Capacity, Compaction, RecordText, TargetProfile, read_summary_message
from clew.agents.tools import EDIT_ARGUMENTS, Arguments, Tool, todos_from, todos_into
from clew.model.unit import Unit

CAPACITY = Capacity(
    images=True,
    documents=True,
    images_in_results=True,
    document_types=("application/pdf", "text/plain"),
    failures=True,
    titles=True,
    subagents=True,
    todos=("user",),
    compactions=True,
)


def _active_form(todo: Arguments, _number: int) -> Arguments:
    """The form for what is under way, which the tool demands."""
    return {"activeForm": todo.get("content")}


_write_todos = todos_into({"active_form": "activeForm"}, defaults=_active_form)
_PATH = {"path": "file_path"}
TOOLS = (
    Tool("shell", "Bash"),
    Tool("read", "Read", _PATH),
    Tool("write", "Write", _PATH),
    Tool("edit", "Edit", {**_PATH, **EDIT_ARGUMENTS}),
    Tool("glob", "Glob"),
    Tool("grep", "Grep"),
    Tool("list", "LS"),
    Tool("fetch", "WebFetch"),
    Tool("search", "WebSearch"),
    Tool("todos", "TodoWrite", read=todos_from({"activeForm": "active_form"}), write=_write_todos),
)


def _aside(unit: Unit) -> RecordText | None:
    """A prompt that waited; one that was delivered stands in a message."""
    record = unit.native
    if record.get("type") != "queue-operation" or record.get("operation") != "enqueue":
        return None
    content = record.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    texts = [content] if isinstance(content, str) else [str(block.get("text") or "") for block in blocks]
    text = "\n".join(texts).strip()
    if not text or not is_typed_by_person(content):
        return None
    return RecordText(
        "a queued prompt that was never sent", "no message holds it", text, may_be_sent_later=True, is_note=True
    )


def _compaction(unit: Unit, before: Unit | None) -> Compaction | None:
    """The summary, and the messages that the boundary before it keeps."""
    compaction = read_summary_message(unit, before)
    details = before.native.get("compactMetadata") if before is not None else None
    kept = details.get("preservedSegment") if isinstance(details, dict) else None
    if compaction is None or not isinstance(kept, dict):
        return compaction
    return compaction._replace(first_kept=kept.get("headUuid"), last_kept=kept.get("tailUuid"))


def _citations(unit: Unit) -> Iterator[str]:
    message = unit.native.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "text" and block.get("citations"):
            yield "the citations of a text"


TARGET_PROFILE = TargetProfile(
    capacity=CAPACITY,
    tools=TOOLS,
    id_keys=SESSION_KEYS,
    resume=lambda session: ["claude", "--resume", str(session["id"])],
    can_find_by_id=lambda path, identity: path.name == f"{identity}.jsonl",
    aside=_aside,
    compaction=_compaction,
    unconvertible=_citations,
    nests_subagents=True,
    child_id=lambda identity: f"agent-a{identity.replace('-', '')[:16]}",
)
