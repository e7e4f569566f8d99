"""Content as Gemini's API spells it: a list of parts. Gemini CLI and agents that descend from it keep messages so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import UnsetType

from clew.agents.content import attachment_block, text_or_none, text_or_unset
from clew.agents.encoding import UNKNOWN, output_attachments, output_text
from clew.io.codec import dumps
from clew.io.typed_records import unknown_in
from clew.model.blocks import Block, Text, Thinking, ToolResult, ToolUse, Unknown
from clew.model.json import JSON

OPAQUE_PARTS = frozenset({"executableCode", "codeExecutionResult", "videoMetadata"})
"""Parts that are known, and that are shown as they are."""
DOCUMENT_TYPES = ("application/pdf", "text/", "audio/", "video/")
"""How the types of documents begin that parts can hold."""
_COMMAND = re.compile(r"\?|/[A-Za-z][\w:-]*(?:\s.*)?", re.DOTALL)
_SHELL_TOOL = "run_shell_command"
_FAILED_COMMAND = re.compile(
    r"^(?:Exit Code: -?[1-9]\d*|Signal: \w+)(?:\n(?:Signal|Background PIDs|Process Group PGID): .*)*"
    r"(?:\n</untrusted_context>)?\s*\Z",
    re.MULTILINE,
)
"""The last lines of the output of a command that failed."""
_MAX_COMMAND_STATUS_CHARS = 2_000
_PART_KEYS = {
    "functionCall": ("id", "name", "args"),
    "functionResponse": ("id", "name", "response", "parts", "willContinue", "scheduling"),
    "inlineData": ("mimeType", "data", "displayName"),
    "fileData": ("mimeType", "fileUri", "displayName"),
}
"""The kinds of parts that are objects, with the keys of each."""
_PLAIN_PART_KEYS = ("text", "thought", "thoughtSignature", *sorted(OPAQUE_PARTS))


def is_command(text: str) -> bool:
    """True for a prompt that the client takes for a command to itself."""
    return _COMMAND.fullmatch(text.strip()) is not None


# From parts to blocks


def block_of_part(part: JSON) -> Block:
    """The block of one part; a part of a kind or a shape that is not known is kept as it is."""
    if type(part) is str:
        return Text(text=part)
    if type(part) is not dict:
        return Unknown(value=part)
    if type(call := part.get("functionCall")) is dict:
        name = text_or_none(call.get("name"))
        return ToolUse(tool_id=text_or_none(call.get("id")), tool_name=name, input=call.get("args"))
    if type(response := part.get("functionResponse")) is dict:
        return _result_block(response)
    for key, content_key, encoding in (("inlineData", "data", "base64"), ("fileData", "fileUri", "url")):
        if type(blob := part.get(key)) is dict:
            return _attachment_block(blob, content_key, encoding) or Unknown(value=part)
    if type(text := part.get("text")) is str:
        if part.get("thought") is True:
            return Thinking(thinking=text, signature=text_or_unset(part.get("thoughtSignature")))
        return Text(text=text)
    return Unknown(value=part)


def _result_block(response: dict[str, JSON]) -> ToolResult:
    block = ToolResult(tool_id=text_or_none(response.get("id")), tool_name=text_or_none(response.get("name")))
    if "response" in response:
        key, text = single_text(response["response"])
        block.output = text if text is not None else dumps(response["response"]).decode()
        if key == "error" or is_failed_command(block.tool_name, block.output):
            block.is_error = True
    return block


def is_failed_command(tool: str | None | UnsetType, output: JSON) -> bool:
    """True for the output of a shell command that failed; to the client the call was a success."""
    if tool != _SHELL_TOOL or type(output) is not str:
        return False
    return _FAILED_COMMAND.search(output[-_MAX_COMMAND_STATUS_CHARS:]) is not None


def single_text(said: JSON) -> tuple[str | None, str | None]:
    """The key and the text of a response that is an `output` or an `error` and no more."""
    if type(said) is dict and len(said) == 1:
        ((key, text),) = said.items()
        if key in ("output", "error") and type(text) is str:
            return key, text
    return None, None


def _attachment_block(blob: dict[str, JSON], content_key: str, encoding: str) -> Block | None:
    content, media_type = blob.get(content_key), text_or_unset(blob.get("mimeType"))
    if type(content) is not str:
        return None
    return attachment_block(content, media_type, encoding)


def is_attachment(part: JSON) -> bool:
    """True for a part that is a picture or another file."""
    return type(part) is dict and ("inlineData" in part or "fileData" in part)


def find_unknown_part_keys(part: JSON) -> Iterator[str]:
    """The keys of a part that are not known, each behind the kind of its object."""
    if type(part) is not dict:
        return
    known = (*_PART_KEYS, *_PLAIN_PART_KEYS)
    # A part without any known key is a block of an unknown kind, which is reported as such.
    if any(key in known for key in part):
        yield from unknown_in("part", part, known=known)
    for kind, keys in _PART_KEYS.items():
        if type(inner := part.get(kind)) is dict:
            yield from unknown_in(kind, inner, known=keys)


# From blocks to parts


def parts_of_block(block: Mapping[str, JSON]) -> Iterator[dict[str, JSON]]:
    """The parts for a text, a picture, a document or a result; other blocks give none."""
    match block["type"]:
        case "text" if block["text"]:
            yield {"text": block["text"]}
        case "image" | "document" if block.get(block["type"]) is not None:
            content, media_type = block[block["type"]], block.get("media_type") or "application/octet-stream"
            if block.get("encoding") == "url":
                yield {"fileData": {"mimeType": media_type, "fileUri": content}}
            elif block.get("encoding") == "text":
                yield {"text": content}
            else:
                yield {"inlineData": {"mimeType": media_type, "data": content}}
        case "tool_result":
            text = output_text(block.get("output"))
            response = {"error" if block.get("is_error") is True else "output": text}
            named = {"id": block["tool_id"] or UNKNOWN, "name": block.get("tool_name") or UNKNOWN}
            yield {"functionResponse": {**named, "response": response}}
            for attached in output_attachments(block.get("output")):
                yield from parts_of_block(attached)
