"""Between the tables and the document: calls, results and thoughts become blocks, and go back."""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.codex.exit_status import exit_status, note_exit_status
from clew.agents.codex.item_content import TOOL_NAMES
from clew.agents.codex.tables import AGENT, BARE
from clew.agents.folding import Message, Step, note, own_extension
from clew.model.json import JSON

_CALL = ("tool_id", "tool_name", "input")
_RESULT = ("tool_id", "output")
_INPUT = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "web_search_call": "action",
    "tool_search_call": "arguments",
}
"""The key of what a call is given."""


def payload_rest(message: Message) -> dict[str, JSON]:
    """What an item said beyond the model."""
    own = own_extension(message, AGENT)
    rest = own.get("rest") or {}
    item = rest if BARE in own else rest.get("payload")
    return item if isinstance(item, dict) else {}


def shaped(message: Message, kind: str) -> None:
    """Make blocks of the values that the table of this kind put beside the content."""
    if kind == "message" or kind == "agent_message":
        return
    if kind == "reasoning":
        message["content"] = _thoughts(message)
    elif kind.endswith("_output"):
        message["content"] = [_result(message, kind)]
    else:
        message["content"] = _call(message, kind)


def _thoughts(message: Message) -> list[Message]:
    signature = message.pop("signature", None)
    texts = message.pop("thoughts", None) or [_shown_thoughts(payload_rest(message).get("content"))]
    blocks = [{"type": "thinking", "thinking": text} for text in texts]
    if signature is not None:
        blocks[0]["signature"] = signature
    return blocks


def _shown_thoughts(content: JSON) -> str:
    """The thoughts of models that show them whole."""
    texts = [part.get("text") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return "\n\n".join(text for text in texts if isinstance(text, str))


def _call(message: Message, kind: str) -> list[Message]:
    block: Message = {"type": "tool_use", "tool_id": None, "tool_name": TOOL_NAMES.get(kind), "input": {}}
    if "input" not in message and kind in _INPUT:
        table = f"bare.{kind}" if BARE in own_extension(message, AGENT) else kind
        note(message, AGENT, absent=[*own_extension(message, AGENT).get("absent", ()), f"{table}.{_INPUT[kind]}"])
    block |= {name: message.pop(name) for name in _CALL if name in message}
    picture = message.pop("image", None)
    if kind == "image_generation_call":
        block["input"] = {"prompt": payload_rest(message).get("revised_prompt")}
    if picture is None:
        return [block]
    return [block, {"type": "image", "media_type": "image/png", "encoding": "base64", "image": picture}]


def _result(message: Message, kind: str) -> Message:
    block: Message = {"type": "tool_result", "tool_id": message.pop("tool_id", None), "tool_name": None}
    if "output" in message:
        block["output"] = message.pop("output")
    elif kind == "tool_search_output":
        block["output"] = _tool_names(payload_rest(message).get("tools"))
    elif "output" in payload_rest(message):
        block["output"] = _object_text(payload_rest(message)["output"])
    note_exit_status(block, exit_status(block.get("output")))
    return block


def _tool_names(tools: JSON) -> str:
    names = [tool.get("name") for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    return "\n".join(name for name in names if isinstance(name, str))


def _object_text(output: JSON) -> str:
    """Some versions wrote an object where a text stands otherwise."""
    if isinstance(output, dict):
        text = output.get("text", output.get("content"))
        return text if isinstance(text, str) else ""
    return ""


def unshaped(units: Iterator[Step], thread: str) -> Iterator[Step]:
    """The units as the tables know them; an id that begins with the thread's was given by us."""
    prefix = f"{thread}:"
    for is_message, value in units:
        yield is_message, _unshaped(value, prefix) if is_message else value


def _unshaped(message: Message, prefix: str) -> Message:
    message = dict(message)
    uuid = message.get("uuid")
    if not isinstance(uuid, str) or uuid.startswith(prefix):
        message.pop("uuid", None)
    blocks = message["content"]
    first = blocks[0] if blocks else {}
    kind = first.get("type")
    if kind == "thinking":
        message["thoughts"] = [block["thinking"] for block in blocks if block["type"] == "thinking"]
        message |= {"signature": first["signature"]} if "signature" in first else {}
    elif kind == "tool_use":
        message |= {name: first[name] for name in _CALL if first.get(name) is not None}
        picture = next((block.get("image") for block in blocks if block["type"] == "image"), None)
        message |= {"image": picture} if picture is not None else {}
    elif kind == "tool_result":
        message |= {name: first[name] for name in _RESULT if first.get(name) is not None}
    return message
