"""Sessions for import, as two files: rows (for clew) and the JSON file that `goose session import` reads.

clew writes nothing into the database. The import keeps messages with their ids and times, and gives the session an id
of its own. So the file names the id that clew knows the session by in `extension_data`, which the client keeps; see
`clew.agents.goose.layout`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from clew.agents.base import Header
from clew.agents.encoding import (
    IMPORT_SUFFIX,
    UNKNOWN,
    Fields,
    call_arguments,
    header_line,
    model_name,
    output_blocks,
    row_line,
    subagents_by_call,
    text_or_image,
)
from clew.agents.goose.layout import CONVERTED_KEY
from clew.io.codec import dumps
from clew.model.json import JSON
from clew.model.time import format_utc, microseconds
from clew.model.unit import Unit

SCHEMA_VERSION = "16"
"""The version of the schema whose rows are written."""
NO_TITLE = "Converted session"
"""The name of a session without a title."""


def encode(header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
    """The rows of the session as the main file, and the file to import beside it."""
    session = header.session
    imported = f"{session['id']}{IMPORT_SUFFIX}"
    row = _session_row(session)
    yield "", header_line(header.agent, SCHEMA_VERSION, session["id"])
    yield "", row_line("sessions", {**row, "extension_data": dumps(row["extension_data"]).decode()})
    yield imported, dumps(row)[:-1] + b',"conversation":['
    composer = _Composer(session)
    for unit in units:
        message = composer.message(unit.value) if unit.is_message else None
        if message is None:
            continue
        yield imported, (b"," if composer.count > 1 else b"") + dumps(message)
        yield "", row_line("messages", _message_row(message, str(session["id"]), composer.count))
    yield imported, f'],"message_count":{composer.count}}}\n'.encode()


def session_name(session: Mapping[str, JSON]) -> str:
    """The name that a session has in the client: its title and its id, since it is found by its name."""
    title = "".join(
        character if character.isprintable() else " " for character in str(session.get("title") or NO_TITLE)
    )
    return f"{title} {name_suffix(str(session['id']))}"


def name_suffix(identity: str) -> str:
    """The end of the name of a converted session."""
    return f"({identity})"


def _session_row(session: Mapping[str, JSON]) -> Fields:
    parent = session.get("parent_session_id")
    converted = {"session": session["id"], **({"parent": parent} if parent else {})}
    started = microseconds(session.get("started_at")) or 0
    return {
        "id": session["id"],
        "working_dir": session.get("workspace") or "/",
        "name": session_name(session),
        "user_set_name": True,
        "session_type": "sub_agent" if parent else "user",
        "created_at": format_utc(started),
        "updated_at": format_utc(microseconds(session.get("ended_at")) or started),
        "extension_data": {CONVERTED_KEY: converted},
    }


def _message_row(message: Fields, session: str, count: int) -> Fields:
    return {
        "id": count,
        "message_id": message["id"],
        "session_id": session,
        "role": message["role"],
        "content_json": dumps(message["content"]).decode(),
        "created_timestamp": message["created"],
        "metadata_json": dumps(message["metadata"]).decode(),
    }


class _Composer:
    """Composes messages."""

    def __init__(self, session: Mapping[str, JSON]) -> None:
        self.count = 0
        self._seconds = (microseconds(session.get("started_at")) or 1_000_000) // 1_000_000
        self._subagents = subagents_by_call(session)

    def message(self, message: Fields) -> Fields | None:
        """A message of the client; None for one without content."""
        content = [item for block in message["content"] if (item := self._item(block)) is not None]
        if not content:
            return None
        self.count += 1
        # The client orders messages by their times.
        self._seconds = max(self._seconds, (microseconds(message.get("timestamp")) or 0) // 1_000_000)
        details = message.get("metadata") or {}
        metadata: Fields = {"userVisible": not details.get("is_meta"), "agentVisible": True}
        if message["role"] == "assistant" and (model := model_name(details)):
            metadata["inference"] = {"provider": UNKNOWN, "requestedModel": model}
        return {
            "id": message.get("uuid") or f"msg_{self.count}",
            "role": "assistant" if message["role"] == "assistant" else "user",
            "created": self._seconds,
            "content": content,
            "metadata": metadata,
        }

    def _item(self, block: Fields) -> Fields | None:
        match block["type"]:
            case "text":
                return {"type": "text", "text": block["text"]} if block["text"] else None
            case "thinking":
                # Signatures are valid for one provider only, so it is omitted.
                thought = block["thinking"]
                return {"type": "thinking", "thinking": thought, "signature": ""} if thought else None
            case "tool_use":
                call = {"name": block["tool_name"] or UNKNOWN, "arguments": call_arguments(block)}
                return {"type": "toolRequest", "id": block["tool_id"], "toolCall": {"status": "success", "value": call}}
            case "tool_result":
                return self._result(block)
            case _:
                return _content_item(block)

    def _result(self, block: Fields) -> Fields:
        content = [_content_item(item) for item in output_blocks(block.get("output"))]
        value: Fields = {"content": content, "isError": block.get("is_error") is True}
        if subagents := self._subagents.get(block["tool_id"]):
            value["_meta"] = {"subagent_session_id": subagents[-1]["session_id"]}
        return {"type": "toolResponse", "id": block["tool_id"], "toolResult": {"status": "success", "value": value}}


def _content_item(block: Fields) -> Fields:
    """Text, or a picture, in the spelling of the Model Context Protocol."""
    if item := text_or_image(block):
        return item
    text = block.get(block["type"])
    return {"type": "text", "text": text if isinstance(text, str) else dumps(block.get("value", block)).decode()}
