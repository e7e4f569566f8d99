"""Codex's records to events."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec
from msgspec import UNSET, UnsetType

from clew.agents.base import SourceFile, file_stem, masked_text, open_main
from clew.agents.codex import locate
from clew.agents.codex.duplicate_events import Entry, mark_only_copies
from clew.agents.codex.history import CopiedHistory
from clew.agents.codex.items import blocks_of, content_blocks, is_injected_item, role_of, starts_turn, texts_of
from clew.agents.codex.records import (
    DOCUMENT_ITEMS,
    EVENT_LINE,
    ITEM_LINES,
    RECORD_KINDS,
    RESULT_KINDS,
    ROLLOUT,
    USAGE,
    AnyRecord,
    Payload,
    RolloutRecord,
    UsagePayload,
    UsageRecord,
    document_session,
    is_document,
    item_of,
    meta_of,
)
from clew.agents.codex.request_usage import RequestTracker, add_usage
from clew.agents.codex.thread_state import ThreadState
from clew.agents.content import text_or_none, text_or_unset
from clew.agents.decoding import EventDecoder, metadata_of
from clew.io.codec import NOT_JSON, loads
from clew.io.compress import damage
from clew.io.records import RawRecord, read_records
from clew.io.typed_records import RecordDecoder, decode_leniently
from clew.model import Problem
from clew.model.blocks import Block, ToolUse
from clew.model.codes import problem
from clew.model.events import Event, SessionInfo, SubagentStarted, UsageReport
from clew.model.json import JSON
from clew.model.message import Message, ModelUse, Role, SourceRef, ThinkingSettings
from clew.model.record import Record
from clew.model.time import canonical_time

MAX_HELD_EVENTS = 4096
"""How many events wait for the usage of the reply before them."""
HEAD_RECORDS = 8
HEAD_BYTES = 1 << 16
"""How far to search for the thread id: the first line up to HEAD_BYTES, then the first HEAD_RECORDS records."""
SPAWN_TOOL = "spawn_agent"
STOP_REASONS = {"final_answer": "end_turn"}
"""Why the model stopped, by the phase of its words."""


def read_events(source: SourceFile) -> Iterator[Event]:
    """Decode a rollout, in file order."""
    return _decode(source, ROLLOUT)


def session_id(source: SourceFile, thread: str | None) -> str:
    """The id of a session: that of its thread, and of its rollout where that replaces another."""
    named = locate.parse_name(source.path)
    name = thread or (named.thread if named else file_stem(source.path))
    return f"{name}_{named.rollout}" if named is not None and named.rollout else name


def first_thread_id(source: SourceFile) -> str | None:
    """The thread id that the first record of a rollout tells; reads no further than its head."""
    if not is_document(source):
        size = min(source.size, HEAD_BYTES) if source.frozen else HEAD_BYTES
        with open_main(msgspec.structs.replace(source, size=size, frozen=True)) as stream:
            records = list(USAGE.decode_line(stream.readline(HEAD_BYTES)))
        if records and type(records[0]) is UsageRecord:
            return _thread_id(records[0])
    for entry in islice(_entries(source, USAGE), HEAD_RECORDS):
        if isinstance(entry.record, UsageRecord):
            return _thread_id(entry.record)
    return None


def _thread_id(record: AnyRecord) -> str | None:
    meta = meta_of(record)
    return meta.id if meta is not None else None


def _decode(source: SourceFile, decoder: RecordDecoder[RolloutRecord] | RecordDecoder[UsageRecord]) -> Iterator[Event]:
    events = _RolloutDecoder(source)
    ready = events.ready
    for entry in mark_only_copies(_entries(source, decoder)):
        events.add(entry)
        if ready:
            yield from ready
            ready.clear()
    events.finish()
    yield from ready


def _entries(source: SourceFile, decoder: RecordDecoder[RolloutRecord] | RecordDecoder[UsageRecord]) -> Iterator[Entry]:
    """The records of a rollout."""
    if is_document(source):
        yield from _document_entries(source, decoder.record_type)
        return
    with open_main(source) as stream:
        for line, record in decoder.decode_file(stream):
            if isinstance(record, RawRecord):
                yield Entry(line, line - 1, record)
            else:
                kind, payload = item_of(record)
                yield Entry(line, line - 1, record, kind, payload)
        if found := damage(stream):
            yield Entry(0, 0, problem("damaged-archive", found, file=str(source.path)))


def _document_entries(source: SourceFile, record_type: type[AnyRecord]) -> Iterator[Entry]:
    """The records of a session that is one JSON document: what stands around its items, then each item."""
    # Hardly a session is a document.
    from clew.io.json_document import read_document_stream

    with open_main(source) as stream:
        for number, raw in enumerate(read_document_stream(stream, (DOCUMENT_ITEMS,))):
            if raw.value is None:
                yield Entry(raw.line, number, raw)
                continue
            record = decode_leniently(document_session(raw.value) or raw.value, record_type)
            kind, payload = item_of(record)
            yield Entry(raw.line, number, record, kind, payload)


class _RolloutDecoder(EventDecoder):
    """Decodes the records of a rollout.

    Of narrow records (`UsageRecord`) come messages without content, and no other records.

    Usage is reported behind the reply it belongs to (until late 2025 before it). So the last message of the model is
    held back, with everything behind it, until the next one comes.
    """

    def __init__(self, source: SourceFile) -> None:
        super().__init__(source)
        self.ready: list[Event] = []
        """Events that are complete; the caller takes them away."""
        self._held: list[Event] = []
        self._open: Message | None = None
        """The last message of the model, with which `_held` begins."""
        self._reports: list[UsageReport] = []
        self._reply_time: str | None | UnsetType = None
        self._thread = ThreadState("")
        self._has_begun = False
        self._meta: UsagePayload | None = None
        self._parents: list[str] = []
        """Threads whose history was copied into this one."""
        self._copied = CopiedHistory(source)
        self._requests = RequestTracker()
        self._root = self._turn = ""
        """Thread and turn that requests are identified by: in copied history those of the parent."""
        self._spawn_calls: set[str] = set()
        """Calls whose results name the sub-agent they started."""
        self._subagents: set[str] = set()

    def add(self, entry: Entry) -> None:
        """Decode the next record; what is complete by then is in `ready`."""
        record, self.ref = entry.record, SourceRef(0, entry.index)
        if isinstance(record, RawRecord):
            for event in self.fragment(record, entry.line):
                self._emit(event)
            return
        if isinstance(record, Problem):
            self._emit(record)
            return
        if not self._has_begun:
            # Derived ids begin with the id of the rollout where it replaces another, else with that of the thread.
            named, self._has_begun = locate.parse_name(self.source.path), True
            name = (named and named.rollout) or session_id(self.source, _thread_id(record))
            name = masked_text(self.source, name)
            self._thread, self._root = ThreadState(name), name
        if self._copied.is_undecided:
            self._copied.on_line(entry.line, record)
        kind, payload = entry.kind, entry.payload
        if kind is not None and payload is not None:
            self._add_item(entry, record, kind, payload)
            return
        if entry.is_only_copy and payload is not None:
            self._add_only_copy(entry, record, payload)
            return
        if isinstance(record, RolloutRecord):
            self._emit(self._record(record, entry.payload))
        if payload is not None and record.payload is not UNSET:
            self._add_setting_or_event(record, payload, entry.line)
        elif (meta := meta_of(record)) is not None:
            self._add_meta(meta, entry.line)

    def finish(self) -> None:
        """All records were added."""
        self._report(self._requests.finish())
        self._release()
        if not self._has_begun:
            return
        thread, meta = self._thread, self._meta
        self.ready.append(
            SessionInfo(
                cwd=(meta.cwd if meta is not None else None) or thread.context.get("cwd"),
                leaf_uuid=thread.last or ("" if thread.was_rolled_back else None),
                has_derived_parents=True,
                extra=self._lineage(),
            )
        )

    # What is held back

    def _emit(self, event: Event) -> None:
        if self._open is None:
            self.ready.append(event)
            return
        self._held.append(event)
        if len(self._held) > MAX_HELD_EVENTS:
            self._release()

    def _release(self) -> None:
        """Nothing more is said of the usage of the last message of the model."""
        self.ready += self._reports
        self.ready += self._held
        self._reports, self._held, self._open = [], [], None

    def _report(self, reports: list[UsageReport]) -> None:
        for report in reports:
            report.timestamp = self._reply_time or None
            message = self._open
            if message is None or message.index != report.message_index:
                self._emit(report)
                continue
            metadata = metadata_of(message)
            known = metadata.token_usage
            metadata.token_usage = report.usage if known is UNSET else add_usage(known, report.usage)
            self._reports.append(report)

    # Messages

    def _add_item(self, entry: Entry, record: AnyRecord, kind: str, item: UsagePayload) -> None:
        role = role_of(kind, item.role)
        is_injected, begins_turn = role == "system", kind == "agent_message"
        if kind == "message" and role == "user":
            texts = texts_of(item.content)
            is_injected = is_injected_item(item, texts)
            begins_turn = not is_injected or starts_turn(texts)
            if is_injected:
                role = "system"
                self._thread.read_injected(texts)
        passed = item.internal_chat_message_metadata_passthrough
        if passed is not None and passed.turn_id:
            self._turn = passed.turn_id
        blocks: list[Block] = []
        stop_reason: str | UnsetType = UNSET
        if isinstance(item, Payload):
            blocks = blocks_of(kind, item)
            if kind == "message":
                stop_reason = STOP_REASONS.get(item.phase or "", UNSET)
        # An item without an envelope has no time of its own.
        time = UNSET if record.payload is UNSET else record.timestamp
        message = self._message(entry, role, time, blocks)
        self._place(message, item.id, entry.line, is_injected, begins_turn)
        if kind == "agent_message":
            metadata_of(message).origin = "agent"
        self._add_message(message, stop_reason, item.call_id or item.id or "")
        if self._spawn_calls and isinstance(item, Payload) and kind in RESULT_KINDS:
            self._find_spawned(item)

    def _add_only_copy(self, entry: Entry, record: AnyRecord, event: UsagePayload) -> None:
        """An event whose text stands in no item is a message."""
        role: Role = "assistant" if event.type == "agent_message" else "user"
        blocks: list[Block] = []
        stop_reason: str | UnsetType = UNSET
        if isinstance(event, Payload):
            blocks = content_blocks(event.message)
            stop_reason = STOP_REASONS.get(event.phase or "", UNSET)
        message = self._message(entry, role, record.timestamp, blocks)
        self._place(message, None, entry.line, is_injected=False, begins_turn=role == "user")
        self._add_message(message, stop_reason, "")

    def _message(self, entry: Entry, role: Role, time: JSON, blocks: list[Block]) -> Message:
        message = self.make_message(role, blocks, time=time)
        if entry.line <= self._copied.boundary:
            message.extensions = {locate.AGENT: {"inherited": True}}
        for block in blocks:
            if type(block) is ToolUse and block.tool_name == SPAWN_TOOL and block.tool_id is not None:
                self._spawn_calls.add(block.tool_id)
        return message

    def _place(self, message: Message, item_id: str | None, line: int, is_injected: bool, begins_turn: bool) -> None:
        """Give a message its id, its parent and what holds for it."""
        thread = self._thread
        if begins_turn:
            self._report(self._requests.begin_turn())
        message.uuid = thread.message_id(item_id, line)
        message.parent_uuid = thread.add_message(message.uuid, is_injected, begins_turn)
        if thread.has_changed_context:
            metadata = metadata_of(message)
            for name, fact in thread.take_changed_context().items():
                setattr(metadata, name, fact)
        if is_injected:
            metadata_of(message).is_meta = True

    def _add_message(self, message: Message, stop_reason: str | UnsetType, item: str) -> None:
        """Emit a message. One of the model gets its settings, and waits for its usage."""
        if message.role != "assistant":
            self._emit(message)
            return
        thread = self._thread
        if thread.model or stop_reason is not UNSET:
            metadata_of(message).model = ModelUse(name=thread.model or UNSET, stop_reason=stop_reason)
        if thread.effort:
            metadata_of(message).thinking = ThinkingSettings(level=thread.effort)
        self._release()
        self._open, self._reply_time = message, message.timestamp
        self._held.append(message)
        self._requests.add_item(message.index, thread.model, item)

    def _find_spawned(self, item: Payload) -> None:
        """The result of a call that started a sub-agent names it."""
        if item.call_id not in self._spawn_calls or type(item.output) is not str:
            return
        try:
            result = loads(item.output)
        except (*NOT_JSON, UnicodeEncodeError):
            return
        if isinstance(result, dict) and isinstance(result.get("agent_id"), str):
            self._add_subagent(result["agent_id"], text_or_none(result.get("nickname")), item.call_id)

    def _add_subagent(self, thread: str, name: str | None, call: str | None, is_certain: bool = False) -> None:
        if is_certain or thread not in self._subagents:
            self._subagents.add(thread)
            self._emit(SubagentStarted(session_id=thread, agent_id=name, tool_id=call))

    # Other records

    def _add_setting_or_event(self, record: AnyRecord, payload: UsagePayload, line: int) -> None:
        match record.type:
            case "event_msg":
                self._add_event(payload, line)
            case "turn_context":
                thread = self._thread
                thread.model = payload.model or thread.model
                thread.effort = payload.effort
                thread.update_context(cwd=payload.cwd)
                self._turn = payload.turn_id or self._turn
            case "session_meta":
                self._add_meta(payload, line)
            case "inter_agent_communication":
                self._thread.begin_turn()

    def _add_event(self, event: UsagePayload, line: int) -> None:
        match event.type:
            case "token_count":
                if event.info is not None:
                    model, is_inherited = self._thread.model, line <= self._copied.boundary
                    reports = self._requests.add_event(event.info, self._turn or self._root, model, is_inherited)
                    self._report(reports)
            case "thread_rolled_back":
                self._thread.roll_back(event.num_turns)
            case "task_started" | "turn_started":
                self._turn = event.turn_id or self._turn
            case "collab_agent_spawn_end":
                if isinstance(event, Payload) and event.new_thread_id:
                    self._add_subagent(event.new_thread_id, event.new_agent_nickname, event.call_id, is_certain=True)
            case "sub_agent_activity":
                if isinstance(event, Payload) and event.agent_thread_id:
                    self._add_subagent(event.agent_thread_id, event.agent_path, event.event_id)

    def _add_meta(self, meta: UsagePayload, line: int) -> None:
        """The head of the session, a later version of it, or the head of the thread it was copied from."""
        if self._meta is None:
            self._meta = meta
            self._root = meta.id or self._root
            self._copied.on_own_header(meta.subagent_history_start_ordinal)
            self._emit(session_info(meta))
        elif meta.id and meta.id != self._meta.id:
            self._parents.append(meta.id)
            if not self.index:
                self._root = meta.id
                self._copied.on_parent_header(meta.id, line)
            return
        self._thread.update_context(
            cwd=meta.cwd,
            git_branch=meta.git.branch if meta.git is not None else None,
            agent_version=meta.cli_version,
            user_type=meta.originator,
        )

    def _record(self, record: RolloutRecord, payload: UsagePayload | None) -> Record:
        is_envelope = record.payload is not UNSET
        kind, line_type = "other", record.type
        text: str | UnsetType = UNSET
        if is_envelope and payload is not None:
            name = payload.type if record.type == EVENT_LINE or record.type in ITEM_LINES else record.type
            kind = RECORD_KINDS.get(name or "", "other")
            if kind == "other" and name != line_type and name is not None:
                line_type = f"{line_type}.{name}"
            if kind == "summary":
                text = text_or_unset(payload.message)
            elif kind == "title" and isinstance(payload, Payload):
                text = payload.thread_name or UNSET
        elif not is_envelope and (record.record_type is not UNSET or (record.id and record.timestamp is not UNSET)):
            kind = "state"
        return self.make_record(kind, text_or_unset(line_type), time=record.timestamp, text=text)

    def _lineage(self) -> dict[str, JSON]:
        """Where the thread comes from, as far as its head tells."""
        meta = self._meta or UsagePayload()
        named = locate.parse_name(self.source.path)
        parent = self._parents[0] if self._copied.boundary and self._parents else None
        facts = {
            "thread": meta.id if named is not None and named.rollout else None,
            "root_session": meta.session_id if meta.session_id != meta.id else None,
            "forked_from": meta.forked_from_id or parent,
            "history_mode": meta.history_mode,
            "history_base": meta.history_base,
            "source": meta.source,
            "archived": True if locate.ARCHIVED in self.source.path.parts else None,
        }
        known = {name: fact for name, fact in facts.items() if fact is not None}
        return {"extension": known} if known else {}


def session_info(meta: UsagePayload) -> SessionInfo:
    """The identity of a session, from its head."""
    spawn = _spawn(meta)
    parent = meta.parent_thread_id or (spawn or {}).get("parent_thread_id")
    return SessionInfo(
        session_id=meta.id,
        agent_id=_agent_name(meta, spawn) if spawn is not None else None,
        parent_session_id=parent if isinstance(parent, str) else None,
        is_subagent=spawn is not None,
        started_at=canonical_time(meta.timestamp) or None,
    )


def _spawn(meta: UsagePayload) -> dict[str, JSON] | None:
    """What the head of a sub-agent, or of a session that Codex runs for itself, says of its origin."""
    source = meta.source
    if isinstance(source, dict) and ("subagent" in source or "internal" in source):
        inner = source.get("subagent", source.get("internal"))
        spawn = inner.get("thread_spawn") if isinstance(inner, dict) else None
        if isinstance(spawn, dict):
            return spawn
        role = next(iter(inner.values()), None) if isinstance(inner, dict) else inner
        return {"agent_role": role}
    return {} if meta.parent_thread_id or meta.thread_source == "subagent" else None


def _agent_name(meta: UsagePayload, spawn: dict[str, JSON]) -> str | None:
    names = (
        meta.agent_path,
        spawn.get("agent_path"),
        meta.agent_nickname,
        spawn.get("agent_nickname"),
        spawn.get("agent_role"),
        spawn.get("agent_type"),
    )
    return next((name for name in names if isinstance(name, str) and name), None)


def read_raw_records(source: SourceFile) -> Iterator[RawRecord]:
    """The records of a rollout as JSON with their bytes, for the checks."""
    from clew.io.json_document import read_document_stream

    with open_main(source) as stream:
        yield from read_document_stream(stream, (DOCUMENT_ITEMS,)) if is_document(source) else read_records(stream)
