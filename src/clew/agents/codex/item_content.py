"""The role and the content blocks of Codex's items."""

from __future__ import annotations

import re

from msgspec import UNSET, to_builtins

from clew.agents.codex.exit_status import exit_status
from clew.agents.codex.locate import AGENT
from clew.agents.codex.records import RESULT_KINDS, Payload
from clew.io.codec import NOT_JSON, loads
from clew.model.blocks import Block, DocumentBlock, Image, Text, Thinking, ToolResult, ToolUse, Unknown
from clew.model.json import JSON

TOOL_NAMES = {
    "local_shell_call": "local_shell",
    "web_search_call": "web_search",
    "tool_search_call": "tool_search",
    "image_generation_call": "image_generation",
}
"""Calls that say by their type which tool they call."""
_ROLES = {"user": "user", "assistant": "assistant", "developer": "system", "system": "system"}
_DATA_URL = re.compile(r"data:([^;,]*);base64,")


def role_of(kind: str, role: str | None) -> str:
    """The unified role of an item; that a user message may be injected is decided elsewhere."""
    if kind == "message":
        return _ROLES.get(role or "", "system")
    return "user" if kind in RESULT_KINDS or kind == "agent_message" else "assistant"


def blocks_of(kind: str, item: Payload) -> list[Block]:
    """The content blocks of an item."""
    match kind:
        case "message" | "agent_message":
            return content_blocks(item.content)
        case "reasoning":
            return _thoughts(item)
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
    if kind in ("input_text", "output_text", "text") and type(part.get("text")) is str:
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
    if type(address) is not str:
        return UNSET, UNSET, UNSET
    found = _DATA_URL.match(address)
    return (found[1], "base64", address[found.end() :]) if found else (UNSET, "url", address)


def _thoughts(item: Payload) -> list[Block]:
    """One block for each summary; without any, what models that show their thoughts say, else an empty one."""
    texts = _texts(item.summary) or ["\n\n".join(_texts(item.content))]
    blocks: list[Block] = [Thinking(thinking=text) for text in texts]
    # The encrypted thoughts stand in the place of a signature: both go back to the provider as they are.
    blocks[0].signature = item.encrypted_content  # type: ignore[union-attr]
    return blocks


def _texts(parts: JSON) -> list[str]:
    texts = [part.get("text") for part in parts if type(part) is dict] if type(parts) is list else []
    return [text for text in texts if type(text) is str]


def _call(kind: str, item: Payload) -> list[Block]:
    given: JSON = {}
    match kind:
        case "function_call":
            if type(item.arguments) is str:
                given = parse_arguments(item.arguments)
            elif type(item.arguments) is dict:
                given = item.arguments
        case "custom_tool_call":
            given = {"input": item.input} if item.input is not UNSET else {}
        case "local_shell_call" | "web_search_call":
            given = item.action if type(item.action) is dict else {}
        case "tool_search_call":
            given = item.arguments if type(item.arguments) is dict else {}
        case "image_generation_call":
            given = {"prompt": item.revised_prompt}
    # Searches of the web and pictures have an id of the item only, and no result.
    tool_id = None if kind in ("web_search_call", "image_generation_call") else item.call_id
    name = TOOL_NAMES.get(kind) or item.name
    blocks: list[Block] = [ToolUse(tool_id=tool_id, tool_name=name, input=given)]
    if kind == "image_generation_call" and type(item.result) is str:
        blocks.append(Image(media_type="image/png", encoding="base64", image=item.result))
    return blocks


def parse_arguments(text: str) -> JSON:
    """The arguments in a string; the string itself where it holds neither an object nor a list."""
    try:
        value = loads(text)
    except (*NOT_JSON, UnicodeEncodeError):
        return text
    return value if type(value) in (dict, list) else text


def _result(kind: str, item: Payload) -> ToolResult:
    output = _tool_names(item.tools) if kind == "tool_search_output" else _output(item.output)
    status = exit_status(output)
    result = ToolResult(tool_id=item.call_id, tool_name=None, output=output)
    if status.is_error is not None:
        result.is_error = status.is_error
    known: dict[str, JSON] = {} if status.exit_code is None else {"exit_code": status.exit_code}
    if status.duration is not None:
        known["duration"] = status.duration
    if known:
        result.extensions = {AGENT: known}
    return result


def _output(output: JSON) -> JSON:
    """What a tool gave back: a text, or blocks as JSON."""
    if type(output) is str or output is UNSET:
        return output
    if type(output) is list:
        return [_block_json(part) for part in output]
    # Some versions wrote an object where a text stands otherwise.
    text = output.get("text", output.get("content")) if type(output) is dict else None
    return text if type(text) is str else ""


def _block_json(part: JSON) -> JSON:
    """A block inside a result, which stands in the document as plain JSON."""
    return to_builtins(_block(part))


def _tool_names(tools: JSON) -> str:
    names = [tool.get("name") for tool in tools if type(tool) is dict] if type(tools) is list else []
    return "\n".join(name for name in names if type(name) is str)
