"""A rollout through the two-way tables, for conversion and checks: every key of a record finds its place.

The tables know nothing of the records before; role, id, parent and metadata of a message come from its event.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from clew.agents.base import SourceFile, Unit
from clew.agents.codex import tables
from clew.agents.codex.events import first_thread_id, read_events, read_raw_records, rollout_name
from clew.agents.codex.records import EVENT_LINE
from clew.agents.codex.shape import shaped
from clew.agents.codex.tables import AGENT, BARE
from clew.agents.folding import Message, note
from clew.agents.jsondoc import note_document
from clew.agents.jsonl import Form, JsonlReading, count
from clew.io.records import RawRecord
from clew.model import Message as MessageEvent
from clew.model import Problem
from clew.model import Record as RecordEvent
from clew.model.json import JSON


class CodexReading(JsonlReading):
    """Messages and records of one rollout."""

    def __init__(self, source: SourceFile) -> None:
        super().__init__(AGENT, source, None, {}, {"thread": rollout_name(source, first_thread_id(source))})
        self._event: MessageEvent | RecordEvent | None = None

    def __iter__(self) -> Iterator[Unit]:
        # Each record gives one message or record event, in the same order.
        for record, event in zip(read_raw_records(self.source), self._read_events(), strict=False):
            self._event = event
            unit = self.unit(record)
            note_document(unit.value, AGENT, record)
            yield unit

    def _read_events(self) -> Iterator[MessageEvent | RecordEvent]:
        for event in read_events(self.source):
            if type(event) is MessageEvent or type(event) is RecordEvent:
                yield event
            elif type(event) is Problem and event.code == "damaged-archive":
                self.damage = event.message

    def unit(self, record: RawRecord, part: int = 0) -> Unit:
        """The unit of one record, with what its event says of it."""
        unit = super().unit(record, part)
        if unit.is_message and type(self._event) is MessageEvent:
            self._complete(unit.value, self._event)
        return unit

    def choose(self, value: dict[str, JSON]) -> Form:
        """The form of a record."""
        payload = value.get("payload")
        is_bare = "payload" not in value
        item = value if is_bare else payload if type(payload) is dict else None
        if type(self._event) is MessageEvent and item is not None:
            role = self._event.role
            if value.get("type") == EVENT_LINE:
                return Form(tables.EVENTS["agent_message" if role == "assistant" else "user_message"], role)
            kind = tables.item_kind(BARE if is_bare else value.get("type"), item) or "message"
            return Form((tables.BARE_ITEMS if is_bare else tables.ITEMS)[kind], role)
        form = tables.record_form(value)
        if form is None:
            count(self.unknown_types, tables.type_name(value))
        return form or tables.UNKNOWN

    def _complete(self, message: Message, event: MessageEvent) -> None:
        """Make blocks of what the table found, and add what the event says."""
        assert self.form is not None
        name = self.form.table.name
        if name.startswith("bare."):
            note(message, AGENT, bare=True)
        if not name.startswith("event."):
            shaped(message, name.partition(".")[2])
        for block, same in zip(message["content"], event.content, strict=True):
            if block["type"] == "tool_result":
                block["tool_name"] = same.tool_name  # type: ignore[union-attr]
        if event.extensions is not msgspec.UNSET:
            note(message, AGENT, **event.extensions[AGENT])
        own = message.get("uuid")
        if own is not None and event.uuid != own:
            self._keep_id(message, own)
        message["uuid"], message["parent_uuid"] = event.uuid, event.parent_uuid
        message.pop("metadata", None)
        if event.metadata is not msgspec.UNSET:
            message["metadata"] = msgspec.to_builtins(event.metadata)

    def _keep_id(self, message: Message, own: str) -> None:
        """An id that cannot be the message's goes to what else its item says."""
        extension = message.setdefault("extensions", {}).setdefault(AGENT, {})
        rest = extension.setdefault("rest", {})
        (rest if BARE in extension else rest.setdefault("payload", {}))["id"] = own
