"""The content of Codex's items: roles, blocks, context that Codex injected, and how tool calls went."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

from msgspec import UNSET, to_builtins

from clew.agents.codex.locate import AGENT
from clew.agents.codex.records import RESULT_KINDS, TEXT_TYPES, Payload, UsagePayload
from clew.agents.content import split_data_url
from clew.io.codec import NOT_JSON, loads
from clew.model.blocks import Block, DocumentBlock, Image, Text, Thinking, ToolResult, ToolUse, Unknown
from clew.model.json import JSON
from clew.model.message import Role

TOOL_NAMES = {
    "local_shell_call": "local_shell",
    "web_search_call": "web_search",
    "tool_search_call": "tool_search",
    "image_generation_call": "image_generation",
}
"""Calls that say by their type which tool they call."""
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "developer": "system", "system": "system"}


def role_of(kind: str, role: str | None) -> Role:
    """The unified role of an item; a user message may still be injected context."""
    if kind == "message":
        return _ROLES.get(role or "", "system")
    return "user" if kind in RESULT_KINDS or kind == "agent_message" else "assistant"


def texts_of(content: JSON) -> list[str]:
    """The texts of a message, as its item has them."""
    if type(content) is str:
        return [content]
    if type(content) is not list:
        return []
    texts = [part.get("text") for part in content if type(part) is dict and part.get("type") in TEXT_TYPES]
    return [text for text in texts if type(text) is str]


# Content blocks


def blocks_of(kind: str, item: Payload) -> list[Block]:
    """The content blocks of an item."""
    match kind:
        case "message" | "agent_message":
            return content_blocks(item.content)
        case "reasoning":
            # One block for each summary; without any, what models that show their thoughts say, else an empty one.
            texts = _all_texts(item.summary) or ["\n\n".join(_all_texts(item.content))]
            thoughts = [Thinking(thinking=text) for text in texts]
            # The encrypted thoughts stand in the place of a signature: both go back to the provider as they are.
            thoughts[0].signature = item.encrypted_content
            return [*thoughts]
        case "function_call_output" | "custom_tool_call_output" | "tool_search_output":
            return [_result(kind, item)]
        case _:
            return _call(kind, item)


def content_blocks(content: JSON) -> list[Block]:
    """The blocks of a message: its content is a text or a list."""
    if type(content) is str:
        return [Text(text=content)]
    return [_block(part) for part in content] if type(content) is list else []


def _block(part: JSON) -> Block:
    """A content block; one of a kind or a shape that is not known is kept as it is."""
    kind = part.get("type") if type(part) is dict else None
    if kind in TEXT_TYPES and type(part.get("text")) is str:
        return Text(text=part["text"])
    if kind == "input_image":
        media_type, encoding, image = _embedded(part.get("image_url"))
        return Image(media_type=media_type, encoding=encoding, image=image)
    if kind == "input_audio":
        media_type, encoding, audio = _embedded(part.get("audio_url"))
        return DocumentBlock(media_type=media_type, encoding=encoding, document=audio)
    return Unknown(value=part)


def _embedded(address: JSON) -> tuple[JSON, JSON, JSON]:
    """Media type, encoding and content of an image or a sound, whose address may hold the bytes themselves."""
    return split_data_url(address) if type(address) is str else (UNSET, UNSET, UNSET)


def _all_texts(parts: JSON, key: str = "text") -> list[str]:
    texts = [part.get(key) for part in parts if type(part) is dict] if type(parts) is list else []
    return [text for text in texts if type(text) is str]


def _call(kind: str, item: Payload) -> list[Block]:
    given: JSON = {}
    match kind:
        case "function_call" if type(item.arguments) is str:
            given = _parse_arguments(item.arguments)
        case "function_call" | "tool_search_call":
            given = item.arguments if type(item.arguments) is dict else {}
        case "custom_tool_call":
            given = {"input": item.input} if item.input is not UNSET else {}
        case "local_shell_call" | "web_search_call":
            given = item.action if type(item.action) is dict else {}
        case "image_generation_call":
            given = {"prompt": item.revised_prompt}
    # Searches of the web and pictures have an id of the item only, and no result.
    tool_id = None if kind in ("web_search_call", "image_generation_call") else item.call_id
    blocks: list[Block] = [ToolUse(tool_id=tool_id, tool_name=TOOL_NAMES.get(kind) or item.name, input=given)]
    if kind == "image_generation_call" and type(item.result) is str:
        blocks.append(Image(media_type="image/png", encoding="base64", image=item.result))
    return blocks


def _parse_arguments(text: str) -> JSON:
    """The arguments in a string; the string itself where it holds neither an object nor a list."""
    try:
        value = loads(text)
    except (*NOT_JSON, UnicodeEncodeError):
        return text
    return value if type(value) in (dict, list) else text


def _result(kind: str, item: Payload) -> ToolResult:
    output = item.output
    if kind == "tool_search_output":
        output = "\n".join(_all_texts(item.tools, "name"))
    elif type(output) is list:
        output = [to_builtins(_block(part)) for part in output]
    elif type(output) is not str and output is not UNSET:
        # Some versions wrote an object instead of a text.
        text = output.get("text", output.get("content")) if type(output) is dict else None
        output = text if type(text) is str else ""
    status = exit_status(output)
    result = ToolResult(tool_id=item.call_id, tool_name=None, output=output)
    if status.is_error is not None:
        result.is_error = status.is_error
    facts = {"exit_code": status.exit_code, "duration": status.duration}
    known = {name: fact for name, fact in facts.items() if fact is not None}
    if known:
        result.extensions = {AGENT: known}
    return result


# How a call went, from the text of its result: Codex keeps no flag for it

_HEAD_CHARS, _TAIL_CHARS = 200, 160
"""How many characters at the beginning and at the end of a result are searched for the status."""
_EXIT = re.compile(r"Exit code: (?P<code>-?\d{1,9})\nWall time: (?P<seconds>[\d.]{1,20}) seconds?\n")
_PROCESS = re.compile(
    r"(?:Chunk ID: \S+\n)?Wall time: (?P<seconds>[\d.]{1,20}) seconds?\n"
    r"(?:Process exited with code (?P<code>-?\d{1,9})|Process running with)"
)
_STRUCTURED = re.compile(
    r'"metadata":\{"exit_code":(?P<code>-?\d{1,9}),"duration_seconds":(?P<seconds>[\d.eE+-]{1,24})\}\}$'
)
_SCRIPT = re.compile(r"Script (completed|failed|running)")
_FAILED = (
    "failed in sandbox",
    "execution error",
    "exec_command failed",
    "write_stdin failed",
    "apply_patch verification failed",
    "error: ",
    "exec command rejected by user",
    "aborted by user after ",
)


class ExitStatus(NamedTuple):
    """What is known of how a call went; None is unknown."""

    is_error: bool | None = None
    exit_code: int | None = None
    duration: float | None = None
    """In seconds."""


def exit_status(output: JSON) -> ExitStatus:
    """The status in a result, which is a text or a list of blocks."""
    if type(output) is list:
        # The status of a script in code mode is in the first block of its result.
        first = output[0] if output else None
        text = first.get("text") if type(first) is dict else None
        output = text[:_HEAD_CHARS] if type(text) is str else None
        if output is not None and (script := _SCRIPT.match(output)):
            return ExitStatus({"completed": False, "failed": True}.get(script[1]))
    if type(output) is not str:
        return ExitStatus()
    head, tail = output[:_HEAD_CHARS], output[-_TAIL_CHARS:]
    if head.startswith("{"):
        found = _STRUCTURED.search(tail) if head.startswith('{"output":') else None
    else:
        found = _EXIT.match(head) or _PROCESS.match(head)
    if found is None:
        return ExitStatus(True) if head.startswith(_FAILED) else ExitStatus()
    code = int(found["code"]) if found["code"] is not None else None
    return ExitStatus(code != 0 if code is not None else None, code, _seconds(found["seconds"]))


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    # Adding zero makes 0.0 of -0.0.
    return seconds + 0.0 if isfinite(seconds) else None


# User messages that are context which Codex put in, and not the words of a person

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
_REQUEST = re.compile(r"^#+ My request for Codex:\s*$", re.MULTILINE)
_FOLDER = re.compile(r"<cwd>(.*?)</cwd>|^Current working directory: (.+)$", re.MULTILINE)


def is_injected(texts: Sequence[str], kinds: Sequence[str | None] | None = None) -> bool:
    """True for a user message that Codex wrote; since v0.152 it says for each block what it is."""
    if kinds:
        return not any(kind is not None and kind.startswith("user.") for kind in kinds)
    return any(text.startswith(INJECTED) for text in texts)


def is_injected_item(item: UsagePayload, texts: Sequence[str]) -> bool:
    """True for a user item, with its texts, that Codex wrote."""
    passed = item.internal_chat_message_metadata_passthrough
    return is_injected(texts, passed.content_item_kinds if passed is not None else None)


def starts_turn(texts: Sequence[str]) -> bool:
    """True for an injected message that begins a turn all the same: Codex counts it when it rolls turns back."""
    return any(text.startswith("<user_action>") for text in texts)


def request_of(text: str | None) -> str | None:
    """A prompt without what an editor put before it."""
    if text is None:
        return None
    headings = list(_REQUEST.finditer(text))
    return text[headings[-1].end() :].strip() or text if headings else text


def folder_of(texts: Sequence[str]) -> str | None:
    """The working folder that injected context names; the oldest sessions say it nowhere else."""
    found = next(filter(None, map(_FOLDER.search, texts)), None)
    return found[1] or found[2] if found else None
