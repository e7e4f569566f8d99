"""Content blocks: what a message is made of, in source order."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from clew.model.base import Part
from clew.model.json import JSON, Extensions


class Text(Part, kw_only=True, tag_field="type", tag="text"):
    """Plain or Markdown text."""

    text: Annotated[str, Meta(description="The text.")]
    extensions: Extensions | UnsetType = UNSET


class Thinking(Part, kw_only=True, tag_field="type", tag="thinking"):
    """What the model thought before it answered."""

    thinking: Annotated[str, Meta(description="The text; empty where the agent keeps only the signature.")]
    signature: Annotated[str, Meta(description="The provider's signature, byte for byte.")] | UnsetType = UNSET
    extensions: Extensions | UnsetType = UNSET


class ToolUse(Part, kw_only=True, tag_field="type", tag="tool_use"):
    """The assistant asks for a tool to be run."""

    tool_id: Annotated[str | None, Meta(description="Links the call to its result.")]
    tool_name: str | None
    input: Annotated[JSON, Meta(description="The arguments, an object in every known agent.")]
    extensions: Extensions | UnsetType = UNSET


class ToolResult(Part, kw_only=True, tag_field="type", tag="tool_result"):
    """What the tool gave back."""

    tool_id: str | None
    tool_name: Annotated[str | None, Meta(description="The name of the matching call.")] | UnsetType = UNSET
    output: Annotated[JSON, Meta(description="A string, or a list of blocks.")] = UNSET
    is_error: bool | UnsetType = UNSET
    extensions: Extensions | UnsetType = UNSET


class Image(Part, kw_only=True, tag_field="type", tag="image"):
    """A picture, inside the document or by reference."""

    media_type: str | None | UnsetType = UNSET
    encoding: Annotated[str, Meta(description="base64 or url.")] | UnsetType = UNSET
    image: Annotated[str, Meta(description="The bytes in base64, or the address.")] | UnsetType = UNSET
    extensions: Extensions | UnsetType = UNSET


class DocumentBlock(Part, kw_only=True, tag_field="type", tag="document"):
    """An attached document such as a PDF."""

    media_type: str | None | UnsetType = UNSET
    encoding: Annotated[str, Meta(description="base64, text or url.")] | UnsetType = UNSET
    document: str | UnsetType = UNSET
    title: str | None | UnsetType = UNSET
    extensions: Extensions | UnsetType = UNSET


class Unknown(Part, kw_only=True, tag_field="type", tag="unknown"):
    """A block of a kind this version does not know, kept as it was."""

    value: Annotated[JSON, Meta(description="The block as the agent wrote it.")]
    extensions: Extensions | UnsetType = UNSET


def block_type(value: JSON) -> str:
    """What an unknown block is called: its type, else its first key."""
    if not isinstance(value, dict):
        return type(value).__name__
    return str(value.get("type") or next(iter(value), ""))


Block = Text | Thinking | ToolUse | ToolResult | Image | DocumentBlock | Unknown
