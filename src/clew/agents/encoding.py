"""What the encoders of several agents need: messages in the order that models' APIs demand, and parts of their content.

An encoder gets messages of any session, with content blocks as in the unified document, and writes native records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

from msgspec import Struct

from clew.agents.database import DUMP_VERSION, HEADER_KEY
from clew.agents.derived_ids import derived_id
from clew.io.codec import dumps
from clew.io.database_paths import FILE_SUFFIX
from clew.model.json import JSON
from clew.model.time import EPOCH, parse_time

Fields = dict[str, JSON]

NO_RESULT = "no result was recorded"
"""The result of a call that has none, for agents that need one: the APIs of models refuse calls without a result."""
IMPORT_SUFFIX = ".json"
"""Suffix of the file that a database agent imports."""
MAX_HELD_RECORDS = 100
"""Records held back at most while their calls have no results."""
UNKNOWN = "unknown"
"""Used where the session does not name the tool, model or provider."""

_PROVIDERS = {
    "claude": "anthropic",
    "gpt": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "gemini-": "google",
}
"""Providers by the beginnings of the names of their models."""


def json_line(record: Mapping[str, JSON]) -> bytes:
    """A record as a line of JSON."""
    return dumps(record) + b"\n"


def select_renamed(values: Mapping[str, JSON], names: Mapping[str, str]) -> Fields:
    """Those of the named values that are there, under their native keys, in the order of the names."""
    return {native: values[name] for name, native in names.items() if name in values}


def subagents_by_call(session: Mapping[str, JSON]) -> dict[JSON, list[Fields]]:
    """The links to sub-agents that have sessions, by the ids of the calls that started them."""
    links: dict[JSON, list[Fields]] = {}
    for link in session.get("subagents") or ():
        if link.get("session_id"):
            links.setdefault(link.get("tool_id"), []).append(link)
    return links


# Rows for a session that the agent imports: clew writes nothing into a database


def header_line(agent: str, schema: str, session: JSON) -> bytes:
    """The first line of a file of rows."""
    return json_line({HEADER_KEY: DUMP_VERSION, "agent": agent, "schema": schema, "session": session})


def row_line(table: str, row: Mapping[str, JSON]) -> bytes:
    """The line of a row."""
    return json_line({"table": table, "row": row})


def import_file(main_file: str) -> str:
    """The file that the agent imports, next to the rows of a session."""
    return import_file_name(main_file.removesuffix(FILE_SUFFIX))


def import_file_name(session_id: str) -> str:
    """The name of the file that the agent imports."""
    return session_id + IMPORT_SUFFIX


# Messages in the order of models' APIs


class ApiMessage(Struct):
    """A message as the API of a model takes it."""

    role: str
    """`assistant`, `user`, `system`, or `tool` for the result of one call."""
    content: list[Fields]
    """Blocks; of a result the `tool_result`, with the name of the tool."""
    time: datetime
    uuid: str
    metadata: Fields
    end_time: datetime | None = None
    """The time of a reply's last line."""
    parent_uuid: str | None = None


class ApiOrder:
    """Puts messages into the order that the APIs of models demand, which sessions of other agents may not have.

    Consecutive assistant messages become one reply. Tool results directly follow the reply with their calls; other
    messages wait until all results are written. A result without an open call becomes text. A call without a result
    gets `no_result`, unless that is empty. Messages keep their branches. With `splits_texts`, a second text of the
    model starts a new reply if no call is open.
    """

    def __init__(self, session: Mapping[str, JSON], no_result: str = "", *, splits_texts: bool = False) -> None:
        self._session_id, self._no_result, self._splits_texts = session["id"], no_result, splits_texts
        self.time = parse_time(session.get("started_at")) or EPOCH
        """The time of the last message that has one."""
        self._reply: ApiMessage | None = None
        """The reply to which the next message may belong as well."""
        self._open_calls: dict[JSON, Fields] = {}
        """The calls of the last reply that have no result yet, by their ids."""
        self._waiting: list[ApiMessage] = []
        """Messages that came before the results of the last reply."""
        self._last_uuid: str | None = None
        """The uuid of the last message in the new order."""
        self._source: JSON = None
        """The uuid of the message that was added last."""
        self._piece_count = 0
        self._last_pieces: dict[JSON, str | None] = {None: None}
        """By the uuid of a message: the uuid of the last one that was made of it."""

    def add(self, message: Fields) -> Iterator[ApiMessage]:
        """The messages that are complete, now that this one is there."""
        self.time = parse_time(message.get("timestamp")) or self.time
        parent = message.get("parent_uuid", self._source)
        if parent != self._source and not self._answers_open_call(message):
            yield from self.finish()
            self._last_uuid = self._last_pieces.get(parent, self._last_uuid)
        self._source, self._piece_count = message.get("uuid") or derived_id(self._session_id, message["index"]), 0
        self._last_pieces[self._source] = self._last_pieces.get(parent, self._last_uuid)
        yield from self._add_reply(message) if message["role"] == "assistant" else self._add_other(message)

    def finish(self) -> Iterator[ApiMessage]:
        """The messages that were held back."""
        yield from self._finish_reply()
        for call in list(self._open_calls) if self._no_result else ():
            block = {"type": "tool_result", "tool_id": call, "output": self._no_result, "is_error": True}
            yield self._result(block, derived_id(self._session_id, "no result", call), {})
        self._open_calls = {}
        for message in self._waiting:
            yield self._linked(message)
        self._waiting = []

    def _add_reply(self, message: Fields) -> Iterator[ApiMessage]:
        is_split = self._splits_texts and not self._open_calls and _has_text(message["content"])
        if self._reply is None or (is_split and _has_text(self._reply.content)):
            yield from self.finish()
            self._reply = ApiMessage("assistant", [], self.time, self._piece_uuid(), {})
        self._last_pieces[self._source] = self._reply.uuid
        self._reply.end_time = self.time
        self._reply.metadata = {**(message.get("metadata") or {}), **self._reply.metadata}
        self._reply.content += message["content"]
        self._open_calls |= {block["tool_id"]: block for block in message["content"] if block["type"] == "tool_use"}

    def _finish_reply(self) -> Iterator[ApiMessage]:
        reply, self._reply = self._reply, None
        if reply is not None:
            yield self._linked(reply)

    def _add_other(self, message: Fields) -> Iterator[ApiMessage]:
        yield from self._finish_reply()
        metadata, content = message.get("metadata") or {}, list[Fields]()
        for block in message["content"]:
            if block["type"] != "tool_result":
                content.append(block)
            elif block["tool_id"] in self._open_calls:
                yield self._result(block, self._piece_uuid(), metadata)
            else:
                content += output_blocks(block.get("output"))
        if content:
            self._waiting.append(ApiMessage(message["role"], content, self.time, self._piece_uuid(), metadata))
        if not self._open_calls:
            yield from self.finish()

    def _answers_open_call(self, message: Fields) -> bool:
        """True for a result, whose parent may be the line of the reply that made its call."""
        return any(
            block["type"] == "tool_result" and block["tool_id"] in self._open_calls for block in message["content"]
        )

    def _result(self, block: Fields, uuid: str, metadata: Fields) -> ApiMessage:
        name = self._open_calls.pop(block["tool_id"])["tool_name"] or UNKNOWN
        return self._linked(ApiMessage("tool", [{**block, "tool_name": name}], self.time, uuid, metadata))

    def _piece_uuid(self) -> str:
        """The uuid of the next message that is made of the last one: the first has its uuid."""
        uuid = derived_id(self._source, self._piece_count) if self._piece_count else str(self._source)
        self._piece_count += 1
        self._last_pieces[self._source] = uuid
        return uuid

    def _linked(self, message: ApiMessage) -> ApiMessage:
        """Make a message follow the last one."""
        message.parent_uuid, self._last_uuid = self._last_uuid, message.uuid
        return message


def _has_text(blocks: list[Fields]) -> bool:
    return any(block["type"] == "text" and block["text"] for block in blocks)


class HeldRecords:
    """Holds records back until the results of their calls are there, for agents that keep both in one record."""

    def __init__(self, end_call: Callable[[Fields], None]) -> None:
        """`end_call` completes a call that nothing answers."""
        self._end_call = end_call
        self._records: list[Fields] = []
        self._open_calls: dict[JSON, tuple[Fields, Fields]] = {}
        """The native calls without a result, each with its record, by the ids of the calls."""

    @property
    def last(self) -> Fields | None:
        """The record that came last, to which more may be added."""
        return self._records[-1] if self._records else None

    def add(self, record: Fields) -> None:
        """Hold a record."""
        self._records.append(record)

    def add_call(self, call_id: JSON, call: Fields, record: Fields) -> None:
        """A call in a record, which waits for its result."""
        if call_id in self._open_calls:
            self._end_call(self._open_calls[call_id][0])
        self._open_calls[call_id] = call, record

    def take_call(self, block: Fields) -> tuple[Fields, Fields] | None:
        """The call that a block answers, and its record; None for a block that is no result, or has no call."""
        return self._open_calls.pop(block["tool_id"], None) if block["type"] == "tool_result" else None

    def take_complete(self) -> Iterator[Fields]:
        """The records that are complete. The last one is not: the next message may be another line of it."""
        while len(self._records) > 1 and (len(self._records) > MAX_HELD_RECORDS or not self._open_in(self._records[0])):
            yield self._ended(self._records.pop(0))

    def take_all(self) -> Iterator[Fields]:
        """All records that are held."""
        while self._records:
            yield self._ended(self._records.pop(0))

    def _open_in(self, record: Fields) -> list[JSON]:
        return [call_id for call_id, (_, holder) in self._open_calls.items() if holder is record]

    def _ended(self, record: Fields) -> Fields:
        for call_id in self._open_in(record):
            self._end_call(self._open_calls.pop(call_id)[0])
        return record


# Content


def model_name(metadata: Mapping[str, JSON]) -> str | None:
    """The model that gave a reply, where its metadata say so."""
    return (metadata.get("model") or {}).get("name") or None


def provider_of(model: str) -> str:
    """The provider of a model, by its name."""
    return next((provider for start, provider in _PROVIDERS.items() if model.startswith(start)), UNKNOWN)


def joined_text(blocks: Iterable[Mapping[str, JSON]]) -> str:
    """The texts of a message as one, for agents whose messages have no more."""
    return "\n\n".join(block["text"] for block in blocks if block["type"] == "text" and block["text"])


def call_arguments(block: Mapping[str, JSON]) -> Fields:
    """The arguments of a `tool_use` block by their names; models take no others."""
    return block["input"] if isinstance(block["input"], dict) else {"input": block["input"]}


def output_text(output: JSON) -> str:
    """The output of a tool as one text, without its images and documents."""
    texts = [block.get("text") for block in output_blocks(output)]
    return "\n".join(text for text in texts if isinstance(text, str))


def output_blocks(output: JSON) -> list[Fields]:
    """The output of a tool as blocks; what is no block becomes text."""
    return [_output_block(item) for item in (output if isinstance(output, list) else [output])]


def _output_block(item: JSON) -> Fields:
    is_block = isinstance(item, dict) and "type" in item
    if is_block and (item["type"] != "text" or isinstance(item.get("text"), str)):
        return dict(item)
    text = "" if item is None else item if isinstance(item, str) else dumps(item).decode()
    return {"type": "text", "text": text}


def output_attachments(output: JSON) -> list[Fields]:
    """The images and documents in the output of a tool."""
    return [block for block in output_blocks(output) if block["type"] in ("image", "document")]


def text_or_image(block: Mapping[str, JSON], media_type_key: str = "mimeType") -> Fields | None:
    """A text, or an image with its bytes; an image by URL becomes its address as text."""
    if block["type"] == "text":
        return {"type": "text", "text": block["text"]}
    if block["type"] != "image" or not block.get("image"):
        return None
    if block.get("encoding") == "url":
        return {"type": "text", "text": block["image"]}
    return {"type": "image", "data": block["image"], media_type_key: block.get("media_type") or "image/png"}


def attachment_url(block: Mapping[str, JSON]) -> str:
    """The address of an image or document, or a data URL with its bytes."""
    content = block.get(block["type"]) or ""
    if block.get("encoding") == "url":
        return str(content)
    return f"data:{block.get('media_type') or 'application/octet-stream'};base64,{content}"
