"""A message: one record of a conversation."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from clew.model.base import Part
from clew.model.blocks import Block, Text
from clew.model.json import JSON, Extensions
from clew.model.todo import Todo
from clew.model.usage import TokenUsage

Role = Literal["user", "assistant", "system"]


class ModelUse(Part, kw_only=True):
    """The model behind an assistant message, and why it stopped."""

    name: str | None | UnsetType = UNSET
    stop_reason: str | None | UnsetType = UNSET
    stop_sequence: str | None | UnsetType = UNSET


class ThinkingSettings(Part, kw_only=True):
    """How much thinking was requested from the model."""

    level: Annotated[str | None, Meta(description="none, low, medium or high; others are kept.")] | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET
    triggers: list[JSON] | UnsetType = UNSET


class Metadata(Part, kw_only=True):
    """Everything about a message but its words."""

    cwd: str | None | UnsetType = UNSET
    git_branch: str | None | UnsetType = UNSET
    agent_version: str | None | UnsetType = UNSET
    user_type: str | None | UnsetType = UNSET
    is_meta: Annotated[bool, Meta(description="Injected by the agent, not authored by a person.")] | UnsetType = UNSET
    model: ModelUse | UnsetType = UNSET
    token_usage: TokenUsage | UnsetType = UNSET
    request_id: str | None | UnsetType = UNSET
    message_id: Annotated[str, Meta(description="Shared by all lines of one API reply.")] | UnsetType = UNSET
    is_sidechain: Annotated[bool, Meta(description="Said by a sub-agent, beside the conversation.")] | UnsetType = UNSET
    is_branch: Annotated[bool, Meta(description="On a branch of the conversation, by its flag.")] | UnsetType = UNSET
    is_compact_summary: bool | UnsetType = UNSET
    logical_parent_uuid: (
        Annotated[str | None, Meta(description="The real predecessor across a compaction.")] | UnsetType
    ) = UNSET
    origin: (
        Annotated[str, Meta(description="Who sent a user message, where the agent says so: human, ...")] | UnsetType
    ) = UNSET
    platform: str | None | UnsetType = UNSET
    thinking: ThinkingSettings | UnsetType = UNSET
    todos: list[Todo] | UnsetType = UNSET
    estimated_tokens: Annotated[int, Meta(description="A guess by the agent, apart from counts.")] | UnsetType = UNSET


class SourceRef(Part, gc=False):
    """Where a message or record comes from: a file of the session (0 is the main one), and the record in it."""

    file: Annotated[int, Meta(description="Index into `native.files`.", ge=0)]
    record: Annotated[int, Meta(description="Index into the records of that file.", ge=0)]


class Message(Part, kw_only=True):
    """One record of a conversation, by a person, the model, or the agent itself."""

    index: Annotated[int, Meta(description="1-based, dense, in source order.", ge=1)]
    uuid: str | None | UnsetType = UNSET
    parent_uuid: str | None | UnsetType = UNSET
    role: Role
    timestamp: Annotated[str | None, Meta(description="ISO 8601.")] | UnsetType = UNSET
    content: list[Block]
    metadata: Metadata | UnsetType = UNSET
    source: SourceRef | UnsetType = UNSET
    extensions: Extensions | UnsetType = UNSET

    @property
    def text(self) -> str:
        """The text blocks of the message, without thinking, tool calls and results."""
        return "\n\n".join(block.text for block in self.content if isinstance(block, Text))
