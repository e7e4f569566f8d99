"""Levels of detail, the same for every output format. Each level includes those before it.

prompts        prompts of the user
conversation   replies of the model, compactions and forks
actions        tool calls, and results that are errors
full           all results, thinking, injected text, and sub-agents inside the file
"""

from __future__ import annotations

from typing import Literal, get_args

from clew.analysis.injected_text import REMINDER, strip_reminders
from clew.analysis.prompts import is_prompt
from clew.model.json import JSON

Detail = Literal["prompts", "conversation", "actions", "full"]
DETAILS: tuple[Detail, ...] = get_args(Detail)
PROMPTS, CONVERSATION, ACTIONS, FULL = range(4)

Speaker = Literal["prompt", "reply", "result", "injected", "summary", "boundary", "aside"]
"""The source of a message: user, model, tool, agent, summary of a compaction, compaction, sub-agent."""

_CONTENT_TYPES = ("text", "image", "document")
LEVELS: dict[Speaker, dict[str, int]] = {
    **{speaker: {} for speaker in get_args(Speaker)},
    "prompt": {**dict.fromkeys(_CONTENT_TYPES, PROMPTS), "tool_use": ACTIONS},
    "reply": {**dict.fromkeys(_CONTENT_TYPES, CONVERSATION), "tool_use": ACTIONS},
    "boundary": dict.fromkeys(_CONTENT_TYPES, CONVERSATION),
}
"""The first level that shows a block, by speaker and block type; others are shown only at level `full`.

The level of tool results is in `result_level`.
"""
_NOTHING: dict[str, JSON] = {}


def speaker_of(message: dict[str, JSON], *, in_subagent: bool = False) -> Speaker:
    """The speaker of a message. In the session of a sub-agent, its task is the prompt."""
    metadata = message.get("metadata") or _NOTHING
    if metadata.get("is_sidechain") and not in_subagent:
        return "aside"
    if metadata.get("is_compact_summary"):
        return "summary"
    role = message["role"]
    if role == "assistant":
        return "reply"
    if role == "system":
        is_boundary = metadata.get("logical_parent_uuid") is not None and message.get("parent_uuid") is None
        return "boundary" if is_boundary else "injected"
    for block in message["content"]:
        if block["type"] == "tool_result":
            return "result"
    return "prompt" if is_prompt(_without_reminders(message, metadata)) else "injected"


def is_remark(message: dict[str, JSON]) -> bool:
    """True for a note by clew in place of an unreadable record: its index is 0, while messages count from 1."""
    return bool(message["index"] == 0)


def _without_reminders(message: dict[str, JSON], metadata: dict[str, JSON]) -> dict[str, JSON]:
    """The message without reminders, so that a prompt with a reminder before it still counts as a prompt."""
    if not metadata.get("is_sidechain") and all(map(_is_whole, message["content"])):
        return message
    content = [
        {**block, "text": strip_reminders(block["text"])} if block["type"] == "text" else block
        for block in message["content"]
    ]
    content = [block for block in content if block.get("text") != ""]
    return {**message, "content": content, "metadata": {**metadata, "is_sidechain": False}}


def _is_whole(block: dict[str, JSON]) -> bool:
    """True for a block without reminders."""
    return block["type"] != "text" or (block["text"] != "" and REMINDER not in block["text"])


def block_level(block: dict[str, JSON], speaker: Speaker) -> int:
    """The first level that shows a block of a message."""
    kind = block["type"]
    return result_level(block) if kind == "tool_result" and speaker == "result" else LEVELS[speaker].get(kind, FULL)


def at_detail(message: dict[str, JSON], detail: Detail, *, in_subagent: bool = False) -> dict[str, JSON] | None:
    """A message with the blocks that a level of detail shows; None where there are none."""
    deepest = DETAILS.index(detail)
    if deepest == FULL or is_remark(message):
        return message
    speaker = speaker_of(message, in_subagent=in_subagent)
    content = [block for block in message["content"] if block_level(block, speaker) <= deepest]
    return {**message, "content": content} if content else None


def result_level(block: dict[str, JSON]) -> int:
    """The first level that shows a tool result: errors are shown with the actions."""
    return ACTIONS if block.get("is_error") is True else FULL
