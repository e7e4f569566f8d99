"""The parts of a message: text, thoughts, calls, responses and attachments, each as a block of the model."""

from __future__ import annotations

from clew.agents.mapping import (
    ANY,
    MISSING,
    TEXT,
    Context,
    Fixed,
    Kind,
    Leaf,
    Nest,
    Part,
    Sections,
    Table,
    Values,
    place,
)
from clew.io.codec import dumps, loads
from clew.model.json import JSON

PART = "part"
"""Marks a thought or a call that stands among the parts; usually they have lists of their own."""
_NO_BLOCK = ("executableCode", "codeExecutionResult", "videoMetadata")
_SIGNATURE = "thoughtSignature"


class Response(Part):
    """What a tool said: `output` or `error` with a text; anything else is shown as JSON."""

    key = "response"

    def take(self, value: JSON, out: Sections, rest: Values, context: Context) -> None:
        block = out[""]
        if type(value) is dict and len(value) == 1:
            ((word, text),) = value.items()
            if type(text) is str and word in ("output", "error"):
                block["output"] = text
                if word == "error":
                    block["is_error"] = True
                return
        block["output"] = dumps(value).decode()
        context.own["json"] = True

    def give(self, sections: Sections, rest: Values, context: Context) -> JSON:
        block = sections[""]
        if "output" not in block:
            return MISSING
        if "json" in context.own:
            return loads(block["output"])
        return {"error" if block.get("is_error") else "output": block["output"]}


def _attachment(name: str, key: str, slot: str, field: str) -> Kind:
    table = Table(f"{key}.{slot}", Leaf("mimeType", "media_type", TEXT), Leaf(field, slot, TEXT), known=["displayName"])
    return Kind(name, Table(f"part.{key}.{slot}", Nest(key, table), known=["videoMetadata", _SIGNATURE]), (slot,))


TEXT_PART = Kind("text", Table("part.text", Leaf("text", "text", TEXT), known=[_SIGNATURE, "thought"]), ("text",))
THOUGHT_PART = Kind(
    "thinking",
    Table("part.thought", Leaf("text", "thinking", TEXT), Fixed("thought", True), Leaf(_SIGNATURE, "signature", TEXT)),
    ("thinking",),
)
CALL_PART = Kind(
    "tool_use",
    Table(
        "part.call",
        Nest(
            "functionCall",
            Table(
                "functionCall",
                Leaf("id", "tool_id", TEXT),
                Leaf("name", "tool_name", TEXT),
                Leaf("args", "input", ANY),
            ),
        ),
        known=[_SIGNATURE],
    ),
)
RESPONSE_PART = Kind(
    "tool_result",
    Table(
        "part.response",
        Nest(
            "functionResponse",
            Table(
                "functionResponse",
                Leaf("id", "tool_id", TEXT),
                Leaf("name", "tool_name", TEXT),
                Response(),
                known=["parts", "willContinue", "scheduling"],
            ),
        ),
        known=[_SIGNATURE],
    ),
)
IMAGE_PART = _attachment("image", "inlineData", "image", "data")
FILE_PART = _attachment("document", "inlineData", "document", "data")
IMAGE_LINK = _attachment("image", "fileData", "image", "fileUri")
FILE_LINK = _attachment("document", "fileData", "document", "fileUri")

_FILLED: dict[str, dict[str, JSON]] = {
    "tool_use": {"tool_id": None, "tool_name": None, "input": None},
    "tool_result": {"tool_id": None},
}


def _kind_of(part: Values) -> Kind | None:
    if type(part.get("functionCall")) is dict:
        return CALL_PART
    if type(part.get("functionResponse")) is dict:
        return RESPONSE_PART
    for key, image, other in (("inlineData", IMAGE_PART, FILE_PART), ("fileData", IMAGE_LINK, FILE_LINK)):
        blob = part.get(key)
        if type(blob) is dict:
            return image if str(blob.get("mimeType", "")).startswith("image/") else other
    if "text" in part:
        return THOUGHT_PART if part.get("thought") is True else TEXT_PART
    return None


def take_part(part: JSON, context: Context) -> Values:
    """The block of one part."""
    if type(part) is str:
        return {"type": "text", "text": part, "extensions": {context.agent: {"plain": True}}}
    kind = _kind_of(part) if type(part) is dict else None
    block = kind.take(part, context) if kind is not None else None
    if kind is None or block is None:
        if not (type(part) is dict and any(key in part for key in _NO_BLOCK)):
            context.unknown_block(part)
        return {"type": "unknown", "value": part}
    block = _filled(block, context)
    if kind.unified in ("image", "document"):
        block["encoding"] = "url" if kind in (IMAGE_LINK, FILE_LINK) else "base64"
    elif kind in (CALL_PART, THOUGHT_PART):
        block.setdefault("extensions", {}).setdefault(context.agent, {})[PART] = True
    return block


def _filled(block: Values, context: Context) -> Values:
    """The block with the slots that its kind must have; what is added is noted."""
    added = {name: value for name, value in _FILLED.get(block["type"], {}).items() if name not in block}
    if added:
        own = block.setdefault("extensions", {}).setdefault(context.agent, {})
        own["derived"] = list(added)
        block.update(added)
    return block


def give_part(block: Values, context: Context) -> JSON:
    """The part a block was made of."""
    own = (block.get("extensions") or {}).get(context.agent) or {}
    if block["type"] == "unknown":
        return block["value"]
    if "plain" in own:
        return block["text"]
    derived = own.get("derived", ())
    return _kind_for(block).give({name: item for name, item in block.items() if name not in derived}, context)


def _kind_for(block: Values) -> Kind:
    match block["type"]:
        case "image":
            return IMAGE_LINK if block.get("encoding") == "url" else IMAGE_PART
        case "document":
            return FILE_LINK if block.get("encoding") == "url" else FILE_PART
        case "thinking":
            return THOUGHT_PART
        case "tool_use":
            return CALL_PART
        case "tool_result":
            return RESPONSE_PART
    return TEXT_PART


class Content(Part):
    """Content as the API's types allow it: a text, one part, or a list of texts and parts."""

    stands_alone = True

    def __init__(self, key: str, slot: str = "content") -> None:
        self.key = key
        self.section, self.name = place(slot)

    def take(self, value: JSON, out: Sections, rest: Values, context: Context) -> None:
        if type(value) is str:
            blocks = [{"type": "text", "text": value}] if value else []
            context.own["plain"] = True
        elif type(value) is list:
            blocks = [take_part(part, context) for part in value]
        elif type(value) is dict:
            blocks = [take_part(value, context)]
            context.own["single"] = True
        else:
            rest[self.key] = value
            return
        out[self.section][self.name] = blocks

    def give(self, sections: Sections, rest: Values, context: Context) -> JSON:
        blocks = sections.get(self.section, {}).get(self.name)
        if blocks is None:
            return MISSING
        if "plain" in context.own:
            return "".join(block.get("text", "") for block in blocks)
        parts = [give_part(block, context) for block in blocks]
        return parts[0] if "single" in context.own and len(parts) == 1 else parts
