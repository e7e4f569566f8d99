"""What was said in a session, in words that do not depend on the agent that kept it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clew.agents.base import Agent, SourceFile
from clew.convert.conversation import FAILED_MARK
from clew.convert.history import BranchSelection
from clew.sources.local import Found, at_path

Said = tuple[str, str]


def only(path: Path) -> Found:
    """The one session of a file."""
    (found,) = at_path(path)
    return found


def said(agent: Agent, source: SourceFile, branch: str | None = None) -> list[Said]:
    """Texts, calls and results of the active path, or of the branch a message is on."""
    facts = agent.facts(source)
    path = BranchSelection(facts, branch)
    messages = [unit.value for unit in agent.units(source) if unit.is_message]
    return [
        word
        for message in messages
        if not is_note(message, agent) and path.contains(message["index"])
        for block in message["content"]
        for word in _words("assistant" if message["role"] == "assistant" else "user", block)
    ]


def is_note(message: dict[str, Any], agent: Agent) -> bool:
    """True for what the agent told itself or its model, and for commands to it."""
    receiver = agent.target_profile()
    text = next((block["text"] for block in message["content"] if block["type"] == "text"), "")
    if message["role"] == "system":
        return not (receiver and receiver.user_note_prefixes and text.startswith(receiver.user_note_prefixes))
    if receiver is None or not (message.get("metadata") or {}).get("is_meta"):
        return False
    return receiver.is_command(text) or (
        bool(receiver.injected_prefixes) and text.lstrip().startswith(receiver.injected_prefixes)
    )


def _words(role: str, block: dict[str, Any]) -> Iterator[Said]:
    match block["type"]:
        case "text" if block["text"]:
            yield role, block["text"]
        case "tool_use":
            yield "call", ""
        case "tool_result":
            yield "result", result_text(block.get("output")).removeprefix(f"{FAILED_MARK}\n")
        case "image":
            yield "picture", block.get("image", "")


def result_text(output: Any) -> str:
    """The text of a result, whether it is one or several."""
    if isinstance(output, list):
        return "\n".join(block["text"] for block in output if block.get("type") == "text")
    return str(output or "")


def calls_first(words: list[Said]) -> list[Said]:
    """The same with the calls of each run of calls and results before the results.

    Some agents keep each call with its result, others all calls of a reply before the results.
    """
    ordered: list[Said] = []
    waiting: list[Said] = []
    for word in words:
        if word[0] == "result":
            waiting.append(word)
        elif word[0] == "call":
            ordered.append(word)
        else:
            ordered += [*waiting, word]
            waiting = []
    return ordered + waiting
