"""Which user messages are context that Codex put in, and not the words of a person."""

from __future__ import annotations

import re
from collections.abc import Sequence

from clew.agents.codex.records import UsagePayload
from clew.model.json import JSON

INJECTED = (
    "# AGENTS.md instructions",
    "<user_instructions>",
    "<environment_context>",
    "<user_shell_command>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<codex_internal_context",
    "<goal_context>",
    "<skill>",
    "<hook_prompt",
    "<recommended_plugins>",
    "<external_",
    "<user_action>",
    "Warning: The maximum number of unified exec processes",
    "Warning: apply_patch was requested via",
    "Warning: Your account was flagged",
)
"""How a text begins that Codex itself put in."""
SPOKEN = ("<user_shell_command>", "<subagent_notification>")
"""Of these what is part of the conversation: what a person ran, and what a sub-agent answered."""
_TURN = "<user_action>"
"""Injected, and still the beginning of a turn."""
TEXT_TYPES = ("input_text", "output_text", "text")
_OWN_KIND = "user."
_REQUEST = re.compile(r"^#+ My request for Codex:\s*$", re.MULTILINE)
_FOLDER = re.compile(r"<cwd>(.*?)</cwd>|^Current working directory: (.+)$", re.MULTILINE)


def texts_of(content: JSON) -> list[str]:
    """The texts of a message, as its item has them."""
    if type(content) is str:
        return [content]
    if type(content) is not list:
        return []
    texts = [part.get("text") for part in content if type(part) is dict and part.get("type") in TEXT_TYPES]
    return [text for text in texts if type(text) is str]


def is_injected(texts: Sequence[str], kinds: Sequence[str | None] | None) -> bool:
    """True for a user message that Codex wrote; since v0.152 it says for each block what it is."""
    if kinds:
        return not any(kind is not None and kind.startswith(_OWN_KIND) for kind in kinds)
    return any(text.startswith(INJECTED) for text in texts)


def is_injected_item(item: UsagePayload, texts: Sequence[str]) -> bool:
    """True for a user item, with its texts, that Codex wrote."""
    passed = item.internal_chat_message_metadata_passthrough
    return is_injected(texts, passed.content_item_kinds if passed is not None else None)


def starts_turn(texts: Sequence[str]) -> bool:
    """True for an injected message that begins a turn all the same: Codex counts it when it rolls turns back."""
    return any(text.startswith(_TURN) for text in texts)


def request_of(text: str | None) -> str | None:
    """A prompt without what an editor put before it."""
    if text is None:
        return None
    headings = list(_REQUEST.finditer(text))
    return text[headings[-1].end() :].strip() or text if headings else text


def folder_of(texts: Sequence[str]) -> str | None:
    """The working folder that injected context names; the oldest sessions say it nowhere else."""
    for text in texts:
        found = _FOLDER.search(text)
        if found:
            return found[1] or found[2]
    return None
