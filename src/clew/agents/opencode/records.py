"""OpenCode's rows and the JSON in them, as structs.

In version 1 a message is a row of `message` and a row of `part` for each of its parts; the column `data` is the object
without the ids, which are columns. In version 2 a message is one row of `session_message`, and its column `type` says
what it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from clew.agents.database import HEADER_KEY
from clew.agents.database_rows import json_in_column
from clew.io.typed_records import TokenCount, unknown_in, unknown_keys
from clew.model.json import JSON


class SessionRow(msgspec.Struct):
    """A row of `session` or `session_v2`."""

    id: str | None = None
    project_id: str | None = None
    parent_id: str | None = None
    slug: str | None = None
    directory: str | None = None
    title: str | None = None
    version: str | None = None
    share_url: str | None = None
    revert: str | None = None
    time_created: int | None = None
    time_updated: int | None = None
    time_archived: int | None = None
    fork_session_id: str | None = None


class MessageRow(msgspec.Struct):
    """A row of `message`, `part`, `session_message`, `session_input` or `event`."""

    id: str | None = None
    message_id: str | None = None
    type: str | None = None
    seq: int | None = None
    time_created: int | None = None
    data: str | None = None
    prompt: str | None = None


class Times(msgspec.Struct):
    """Milliseconds since 1970."""

    created: int | None = None
    completed: int | None = None
    start: int | None = None
    end: int | None = None
    ran: int | None = None


class CacheTokens(msgspec.Struct):
    """Input that was read from a cache or written to it; `Tokens.input` is without both."""

    read: TokenCount | None = None
    write: TokenCount | None = None


class Tokens(msgspec.Struct):
    """Token counts of one request; `output` is without `reasoning`."""

    input: TokenCount | None = None
    output: TokenCount | None = None
    reasoning: TokenCount | None = None
    cache: CacheTokens | None = None


class ModelName(msgspec.Struct):
    """The model of a message."""

    providerID: str | None = None
    modelID: str | None = None
    id: str | None = None


class Folders(msgspec.Struct):
    """Where the agent worked."""

    cwd: str | None = None


class ErrorData(msgspec.Struct):
    """What an error says."""

    message: str | None = None


class Error(msgspec.Struct):
    """Why a request failed."""

    name: str | None = None
    type: str | None = None
    message: str | None = None
    data: ErrorData | None = None

    @property
    def text(self) -> str:
        """The error in words."""
        said = self.message or (self.data.message if self.data is not None else None)
        return ": ".join(filter(None, (self.name or self.type, said))) or "error"


class MessageData(msgspec.Struct):
    """A message of version 1, without its parts."""

    id: str | None = None
    role: str | None = None
    time: Times | None = None
    modelID: str | None = None
    model: ModelName | None = None
    mode: str | None = None
    path: Folders | None = None
    tokens: Tokens | None = None
    finish: str | None = None
    error: Error | None = None
    summary: JSON = None


class ToolMetadata(msgspec.Struct):
    """What a tool tells of its call apart from its output."""

    exit: int | None = None
    todos: JSON = None
    sessionId: str | None = None
    parentSessionId: str | None = None


class ToolState(msgspec.Struct):
    """A call and its result, which are one object that changes in place."""

    status: str | None = None
    input: JSON = None
    output: JSON = None
    error: JSON = None
    metadata: ToolMetadata | None = None
    time: Times | None = None
    attachments: JSON = None
    content: JSON = None
    structured: JSON = None


class Part(msgspec.Struct):
    """A part of a message of version 1, or a piece of the content of a reply of version 2."""

    type: str | None = None
    id: str | None = None
    messageID: str | None = None
    text: str | None = None
    synthetic: bool | None = None
    time: Times | None = None
    metadata: JSON = None
    callID: str | None = None
    tool: str | None = None
    name: str | None = None
    state: ToolState | None = None
    mime: str | None = None
    filename: str | None = None
    url: str | None = None
    prompt: str | None = None


class File(msgspec.Struct):
    """A file that was attached to a prompt of version 2."""

    data: str | None = None
    uri: str | None = None
    mime: str | None = None
    name: str | None = None


class MessageOfVersion2(msgspec.Struct):
    """The data of a row of `session_message`, whatever its type."""

    text: str | None = None
    files: JSON = None
    content: JSON = None
    model: ModelName | None = None
    tokens: Tokens | None = None
    finish: str | None = None
    error: Error | None = None
    time: Times | None = None
    summary: str | None = None
    callID: str | None = None
    command: str | None = None
    output: str | None = None


class MessageEvent(msgspec.Struct):
    """An entry of the log of events about a message or a part."""

    messageID: str | None = None
    info: JSON = None
    part: JSON = None


class Revert(msgspec.Struct):
    """From this message on, everything is undone until the next prompt."""

    messageID: str | None = None


def data_of(native: Mapping[str, JSON]) -> dict[str, JSON]:
    """The JSON object in a row; empty where there is none."""
    value = json_in_column(native, "data")
    return value if isinstance(value, dict) else {}


_MESSAGE_KEYS = frozenset(
    "parentID agent providerID cost system tools format variant structured sessionID metrics".split()
)
_PART_KEYS = frozenset(
    "sessionID ignored snapshot reason tokens cost hash files source auto overflow tail_start_id attempt error "
    "description agent model command provider".split()
)
_STATE_KEYS = frozenset("title raw result".split())
_SESSION_MESSAGE_KEYS = frozenset(
    "agents agent cost snapshot reason recent metadata variant location type id providerMetadata".split()
)


def find_unknown_keys(native: Mapping[str, JSON]) -> Iterator[str]:
    """Keys of the JSON in a row that no struct has; columns may be added at any time and are not looked at."""
    if HEADER_KEY in native:
        return
    data, table = data_of(native), native.get("table")
    if table == "message":
        yield from unknown_keys(data, MessageData, _MESSAGE_KEYS)
    elif table == "part":
        yield from unknown_keys(data, Part, _PART_KEYS)
        yield from unknown_in("state", data.get("state"), ToolState, _STATE_KEYS)
    elif table == "session_message":
        yield from unknown_keys(data, MessageOfVersion2, _SESSION_MESSAGE_KEYS)
