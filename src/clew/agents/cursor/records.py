"""The JSON in Cursor's rows, as structs. Its messages have some sixty more keys, which are not decoded."""

from __future__ import annotations

import msgspec

from clew.model.json import JSON


class KeyRow(msgspec.Struct):
    """A row of the table."""

    key: str | None = None
    value: str | None = None


class BubbleHeader(msgspec.Struct):
    """An entry of the list that gives the order of the messages."""

    bubbleId: str | None = None


class ModelConfig(msgspec.Struct):
    """The model that was chosen."""

    modelName: str | None = None


class SubagentInfo(msgspec.Struct):
    """Who started a sub-agent."""

    parentComposerId: str | None = None


class Uri(msgspec.Struct):
    """An address of the editor."""

    fsPath: str | None = None
    path: str | None = None
    external: str | None = None


class Workspace(msgspec.Struct):
    """The folder that was open, in newer versions."""

    uri: Uri | None = None


class Composer(msgspec.Struct):
    """A chat. Times are milliseconds since 1970."""

    composerId: str | None = None
    name: str | None = None
    createdAt: int | None = None
    unifiedMode: str | None = None
    isArchived: bool | None = None
    modelConfig: ModelConfig | None = None
    fullConversationHeadersOnly: JSON = None
    conversation: JSON = None
    """The messages themselves, until mid 2025."""
    todos: JSON = None
    subComposerIds: JSON = None
    subagentInfo: SubagentInfo | None = None
    workspaceIdentifier: Workspace | None = None


class Thinking(msgspec.Struct):
    """What the model thought."""

    text: str | None = None
    signature: str | None = None


class ToolCall(msgspec.Struct):
    """A call and its result, which are one object that changes in place. Arguments and result are JSON text."""

    name: str | None = None
    toolCallId: str | None = None
    modelCallId: str | None = None
    status: str | None = None
    rawArgs: JSON = None
    params: JSON = None
    result: JSON = None
    error: JSON = None


class ImageData(msgspec.Struct):
    """A picture in a prompt."""

    data: JSON = None
    path: str | None = None


class Bubble(msgspec.Struct):
    """A message, or a piece of a reply: text, a thought or a call."""

    bubbleId: str | None = None
    type: int | None = None
    text: str | None = None
    createdAt: JSON = None
    requestId: str | None = None
    usageUuid: str | None = None
    thinking: Thinking | None = None
    toolFormerData: ToolCall | None = None
    modelInfo: ModelConfig | None = None
    images: JSON = None
