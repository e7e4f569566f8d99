"""The entries that the client shows, from the newest snapshot and the journal behind it."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import msgspec

from clew.agents.base import SourceFile, open_file
from clew.agents.mistral_vibe import CURRENT
from clew.agents.mistral_vibe.records import (
    Action,
    Current,
    Delta,
    Entry,
    JournalRecord,
    Manifest,
    Part,
    ProjectionState,
    RuntimeState,
    TotalUsage,
    Usage,
)
from clew.io.codec import NOT_JSON, loads
from clew.io.json_document import read_document_stream
from clew.io.typed_records import decode_each, decode_leniently, decode_value
from clew.model.message import SourceRef

T = TypeVar("T", bound=msgspec.Struct)


class Completion(NamedTuple):
    """A request to the model that was answered."""

    action: str
    usage: Usage | None
    is_in_snapshot: bool
    """True where the total of the snapshot has its usage."""


class ModelCall(NamedTuple):
    """A call of a tool as the model made it."""

    id: str
    name: str | None
    arguments: str | None
    completion: str
    """The request that it is the answer to."""


class Projection:
    """The entries of a session with the records that hold them, and what the journal says of them."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source
        self.entries: dict[str, tuple[Entry, SourceRef]] = {}
        """By id, in order. An entry that was replaced is in the record that holds its last version."""
        self.completions: dict[str, Completion] = {}
        self._calls: dict[str, ModelCall] = {}
        self._call_of_action: dict[str, str] = {}
        self.snapshot_total: TotalUsage | None = None
        """The usage up to the snapshot."""
        self.snapshot_requests: list[str] = []
        """The actions of the requests that were answered up to the snapshot, in no particular order."""
        self.snapshot_sequence = 0
        self._first_sequence = 0
        self._read_snapshot()

    @property
    def is_journal_complete(self) -> bool:
        """False where a part of the journal was removed after a snapshot."""
        return self._first_sequence == 1 or self.snapshot_sequence == 0

    def call_of(self, action: str) -> ModelCall | None:
        """The call behind an action of a tool; None where its journal is gone."""
        return self._calls.get(self._call_of_action.get(action, ""))

    def _read_snapshot(self) -> None:
        current = self._read(CURRENT, Current)
        if current is None or not current.generation:
            return
        folder = f"generations/{current.generation}"
        manifest = self._read(f"{folder}/manifest.json", Manifest)
        if manifest is None or manifest.projection_state is None:
            return
        names = [f"chunks/{chunk}.json" for chunk in manifest.projection_state.chunks]
        if any(name not in self._source.parts for name in names):
            return
        for name in names:
            number = 1 + self._source.parts.index(name)
            with open_file(self._source, name) as stream:
                for position, record in enumerate(read_document_stream(stream)):
                    if record.value is not None and not record.is_header:
                        self._put(decode_value(record.value, Entry), SourceRef(number, position))
        self.snapshot_sequence = current.snapshot_sequence
        state = self._read(f"{folder}/projection-state.json", ProjectionState)
        session = state.snapshot.session if state is not None and state.snapshot is not None else None
        self.snapshot_total = session.token_usage if session is not None else None
        runtime = self._read(f"{folder}/runtime-state.json", RuntimeState) or RuntimeState()
        for action in decode_each(runtime.actions, Action):
            if action.kind == "completion" and action.state == "succeeded" and action.action_id is not None:
                self.snapshot_requests.append(action.action_id)

    def _read(self, name: str, record_type: type[T]) -> T | None:
        if name not in self._source.sides:
            return None
        with open_file(self._source, name) as stream:
            try:
                value = loads(stream.read())
            except NOT_JSON:
                return None
        return decode_leniently(value, record_type) if isinstance(value, dict) else None

    def _put(self, entry: Entry, source: SourceRef) -> None:
        if entry.id is not None:
            self.entries[entry.id] = entry, source

    def add(self, record: JournalRecord, source: SourceRef) -> None:
        """Apply a record of the journal."""
        self._first_sequence = self._first_sequence or record.sequence
        payload = record.payload
        if payload is None:
            return
        if record.type == "projection_delta" and record.sequence > self.snapshot_sequence:
            for delta in decode_each(payload.delta, Delta):
                if isinstance(delta.entry, dict) and delta.op in ("append_entry", "replace_entry"):
                    self._put(decode_value(delta.entry, Entry), source)
        action, result = payload.action_id, payload.result
        if record.type != "action_result" or action is None or result is None:
            return
        if result.call_id is not None:
            self._call_of_action[action] = result.call_id
        if result.type == "completion_succeeded" and result.result is not None:
            is_in_snapshot = record.sequence <= self.snapshot_sequence
            self.completions[action] = Completion(action, result.result.usage, is_in_snapshot)
            for part in decode_each(result.result.parts, Part):
                if part.type == "tool_call" and part.id is not None:
                    self._calls[part.id] = ModelCall(part.id, part.name, part.arguments_json, action)
