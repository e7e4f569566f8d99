"""Mistral Vibe's records to events."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import UNSET

from clew.agents.base import SourceFile
from clew.agents.content import parse_arguments
from clew.agents.decoding import EventDecoder, token_usage
from clew.agents.mistral_vibe import JOURNAL_FOLDER
from clew.agents.mistral_vibe.projection import Projection
from clew.agents.mistral_vibe.records import (
    JOURNAL,
    JOURNAL_TYPES,
    NO_ARRAY,
    Entry,
    JournalRecord,
    Part,
    SessionMeta,
    TotalUsage,
    Usage,
)
from clew.analysis.todos import as_todos
from clew.io.codec import dumps
from clew.io.typed_records import decode_each, decode_value
from clew.model.blocks import Block, Text, Thinking, ToolResult, ToolUse
from clew.model.events import Event, SessionInfo, UsageReport
from clew.model.json import JSON
from clew.model.message import Message, Metadata, ModelUse, Role
from clew.model.record import Record
from clew.model.time import canonical_time
from clew.model.usage import TokenUsage

RESULT_SUFFIX = ":result"
"""Behind the uuid of a call: the uuid of the message with its result."""
_ACTION = re.compile(r"(?:assistant|reasoning|effect)-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
"""The action that an entry comes from."""


def read_events(source: SourceFile) -> Iterator[Event]:
    """Decode a session: first all of the journal is applied, then the entries become events, in their order."""
    decoder = _VibeDecoder(source)
    yield from decoder.read_document(NO_ARRAY, decoder.meta)
    parts = [number for number, name in enumerate(source.parts, 1) if name.startswith(JOURNAL_FOLDER)]
    journal = [
        event for number in parts for event in decoder.read_lines(JOURNAL.decode_file, decoder.journal_record, number)
    ]
    yield from decoder.entries()
    yield from decoder.usage_before_journal()
    # Records of the journal speak of the session as a whole.
    for event in journal:
        if isinstance(event, Record):
            event.after = decoder.index
        yield event


def _session_info(meta: SessionMeta) -> SessionInfo:
    folder = meta.environment.working_directory if meta.environment is not None else None
    parent = meta.parent_session_id
    return SessionInfo(
        session_id=meta.session_id,
        cwd=folder or meta.origin_directory,
        git_branch=meta.git_branch,
        started_at=canonical_time(meta.start_time) or None,
        title=meta.title,
        has_derived_parents=True,
        extra={"extension": {"parent_session": parent}} if parent else None,
    )


class _VibeDecoder(EventDecoder):
    def __init__(self, source: SourceFile) -> None:
        super().__init__(source)
        self._session_id = source.path.parent.name
        self._projection = Projection(source)
        self._model: str | None = None
        self._replies: dict[str, int] = {}
        """The messages with text or thinking of the model, by the request that they are the answer to."""

    def meta(self, value: dict[str, JSON], _is_header: bool) -> Iterator[Event]:
        """The events of `meta.json`."""
        meta = decode_value(value, SessionMeta)
        self._model = (meta.config.model_name or meta.config.active_model) if meta.config is not None else None
        yield _session_info(meta)
        yield self.make_record("state", "meta")

    def journal_record(self, record: JournalRecord) -> Iterator[Event]:
        """Apply a line of the journal to the projection."""
        self._projection.add(record, self.ref)
        yield self.make_record("state" if record.type in JOURNAL_TYPES else "other", record.type)

    def entries(self) -> Iterator[Event]:
        """The events of the entries of the projection."""
        for entry, ref in self._projection.entries.values():
            self.ref = ref
            yield from self._entry(entry)

    def usage_before_journal(self) -> Iterator[UsageReport]:
        """The usage up to the snapshot, where the journal no longer has the requests.

        Only their sum is known. It is reported with the last request; the tokens of the others are unknown.
        """
        projection, total = self._projection, self._projection.snapshot_total
        if projection.is_journal_complete or total is None:
            return
        answered = [action for action in self._replies if action in projection.snapshot_requests]
        last = answered[-1] if answered else f"{self._session_id} up to {projection.snapshot_sequence}"
        place = self._replies.get(last, 0)
        yield UsageReport(call_id=last, usage=_token_usage(total), model=self._model, message_index=place)
        for action in projection.snapshot_requests if answered else ():
            if action != last:
                message = self._replies.get(action, place)
                yield UsageReport(call_id=action, usage=TokenUsage(), model=self._model, message_index=message)

    def _entry(self, entry: Entry) -> Iterator[Event]:
        match entry.type:
            case "message" if entry.role in ("user", "assistant", "system"):
                metadata = self._reply_metadata(entry) if entry.role == "assistant" else None
                role: Role = entry.role  # type: ignore[assignment]
                yield self._add(entry, role, _texts(entry.content), metadata)
            case "reasoning":
                yield self._add(entry, "assistant", [Thinking(thinking=entry.text or "")], self._reply_metadata(entry))
            case "effect" if entry.detail is not None:
                yield from self._effect(entry)
            case _:
                yield self.make_record("other", entry.type)

    def _effect(self, entry: Entry) -> Iterator[Message]:
        """A call of a tool, and its result. The journal has the call as the model made it."""
        detail, state, call = entry.detail, entry.state, self._projection.call_of(_action(entry))
        assert detail is not None
        if call is not None:
            tool_id, name, given = call.id, call.name, parse_arguments(call.arguments or "")
        else:
            tool_id, name, given = str(entry.id), (detail.toolName or "").rpartition(".")[2], detail.input
        metadata = self._reply_metadata(entry, call.completion if call is not None else None)
        yield self._add(entry, "assistant", [ToolUse(tool_id=tool_id, tool_name=name, input=given)], metadata)
        if state is None or state.output is None:
            return
        structured = state.output.structured_content
        failed = state.output.type != "success" or state.status == "failed"
        if isinstance(structured, dict) and structured.get("returncode"):
            failed = True
        texts = [part.text for part in decode_each(state.output.content, Part) if part.text]
        output = "\n".join(texts) if texts or structured is None else _structured_text(structured)
        result = ToolResult(tool_id=tool_id, tool_name=name, output=output, is_error=failed)
        yield self._add(entry, "user", [result], _todos(name, given), RESULT_SUFFIX)

    def _reply_metadata(self, entry: Entry, completion: str | None = None) -> Metadata:
        """The model, and the usage of the request; all messages of one reply repeat it."""
        metadata = Metadata()
        if self._model is not None:
            metadata.model = ModelUse(name=self._model)
        action = completion or _action(entry)
        if entry.type != "effect":
            self._replies[action] = self.index + 1
        found = self._projection.completions.get(action)
        if found is not None:
            metadata.message_id = found.action
            is_in_total = found.is_in_snapshot and not self._projection.is_journal_complete
            if found.usage is not None and not is_in_total:
                metadata.token_usage = _token_usage(found.usage)
        return metadata

    def _add(
        self, entry: Entry, role: Role, blocks: list[Block], metadata: Metadata | None, suffix: str = ""
    ) -> Message:
        time = entry.updatedAt if suffix else entry.createdAt
        return self.make_chained(role, blocks, metadata, uuid=f"{entry.id}{suffix}", time=time)


def _action(entry: Entry) -> str:
    found = _ACTION.match(entry.id or "")
    return found[1] if found else ""


def _token_usage(usage: Usage | TotalUsage) -> TokenUsage:
    return token_usage(
        input=usage.input_tokens,
        output=usage.output_tokens,
        cache_read=usage.cached_input_tokens,
        is_cache_in_input=True,
    )


def _texts(content: JSON) -> list[Block]:
    return [Text(text=part.text) for part in decode_each(content, Part) if part.text is not None]


def _structured_text(output: JSON) -> str:
    """What a command printed, or the file that was read; else the whole output as JSON."""
    if isinstance(output, dict):
        if isinstance(output.get("content"), str):
            return str(output["content"])
        if "returncode" in output:
            return "".join(text for name in ("stdout", "stderr") if isinstance(text := output.get(name), str))
    return dumps(output).decode()


def _todos(name: str | None, given: JSON) -> Metadata:
    metadata = Metadata()
    if name == "todo" and isinstance(given, dict) and given.get("action") == "write":
        metadata.todos = as_todos(given.get("todos")) or UNSET
    return metadata
