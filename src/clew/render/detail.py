"""How much of a session is shown: one ladder of levels for every face and every export.

prompts        what people asked
conversation   and what the model answered, and where the conversation was compacted
actions        and every tool call, with the results that were errors
full           everything: all results, thinking, what the agent injected, and sub-agents inside the file
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

from clew.derive.prompts import is_prompt
from clew.derive.reminders import strip_reminders
from clew.model.json import JSON

Detail = Literal["prompts", "conversation", "actions", "full"]
DETAILS: tuple[Detail, ...] = get_args(Detail)

Voice = Literal["prompt", "reply", "result", "injected", "summary", "boundary", "aside"]
"""Who speaks: a person, the model, a tool, the agent itself; what a compaction kept; the compaction; a sub-agent."""

_SAID = frozenset({"text", "image", "document"})
_DONE = _SAID | {"tool_use"}

_SHOWN: dict[Detail, dict[Voice, frozenset[str]]] = {
    "prompts": {"prompt": _SAID},
    "conversation": {"prompt": _SAID, "reply": _SAID, "boundary": _SAID},
    "actions": {"prompt": _DONE, "reply": _DONE, "boundary": _SAID},
}


def voice(message: dict[str, JSON], *, in_subagent: bool = False) -> Voice:
    """Who speaks in a message. In a sub-agent's own session its task is the prompt."""
    metadata = message.get("metadata") or {}
    if metadata.get("is_sidechain") and not in_subagent:
        return "aside"
    if metadata.get("is_compact_summary"):
        return "summary"
    if message["role"] == "assistant":
        return "reply"
    if message["role"] == "system":
        is_boundary = metadata.get("logical_parent_uuid") is not None and message.get("parent_uuid") is None
        return "boundary" if is_boundary else "injected"
    if any(block["type"] == "tool_result" for block in message["content"]):
        return "result"
    return "prompt" if is_prompt(_spoken(message, metadata)) else "injected"


def _spoken(message: dict[str, JSON], metadata: dict[str, JSON]) -> dict[str, JSON]:
    """The message as its author wrote it: a reminder before the words of a person does not take them away."""
    content = [
        {**block, "text": strip_reminders(block["text"])} if block["type"] == "text" else block
        for block in message["content"]
    ]
    content = [block for block in content if block.get("text") != ""]
    return {**message, "content": content, "metadata": {**metadata, "is_sidechain": False}}


def blocks_shown(message: dict[str, JSON], speaker: Voice, detail: Detail) -> Iterator[dict[str, JSON]]:
    """The blocks of a message that a level shows, in their order."""
    if detail == "full":
        yield from message["content"]
        return
    kinds = _SHOWN[detail].get(speaker, frozenset())
    for block in message["content"]:
        if block["type"] in kinds or (detail == "actions" and speaker == "result" and _failed(block)):
            yield block


def _failed(block: dict[str, JSON]) -> bool:
    return block["type"] == "tool_result" and block.get("is_error") is True
