"""Whose words a user message holds: Codex puts context of its own into the same role."""

from __future__ import annotations

import re
from collections.abc import Sequence

from clew.derive.prompts import MARKERS

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
_OWN_KIND = "user."
_REQUEST = re.compile(r"^#+ My request for Codex:\s*$", re.MULTILINE)
_FOLDER = re.compile(r"<cwd>(.*?)</cwd>|^Current working directory: (.+)$", re.MULTILINE)


def is_injected(texts: Sequence[str], kinds: Sequence[object] | None) -> bool:
    """True for a user message that Codex wrote; newer versions say for each block what it is."""
    if kinds:
        return not any(isinstance(kind, str) and kind.startswith(_OWN_KIND) for kind in kinds)
    return any(text.startswith(INJECTED) for text in texts)


def starts_turn(texts: Sequence[str]) -> bool:
    """True for an injected message that begins a turn all the same."""
    return any(text.startswith(_TURN) for text in texts)


def is_human(texts: Sequence[str], attached: bool) -> bool:
    """True for the words or pictures of a person, in a message that is not injected."""
    if any(text.startswith(MARKERS) for text in texts):
        return False
    return bool(texts) or attached


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
