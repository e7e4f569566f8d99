"""Appends records to a session's log: each gets its parent, branch and number under the lock.

The head of the conversation is found from the end of the log. The whole log is read only for a message that branches
off, or that brings an id of its own which might be in the log already.
"""

from __future__ import annotations

import math
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from clew.agents.sage_agent.metadata import COUNT, new_metadata
from clew.agents.sage_agent.records import PROMPTS_AND_REPLIES, RecordHeader, number_of, parse_header
from clew.agents.sage_agent.written_records import Context, MessageRecord, Record, TodoItem, encode_lines, refuse_odd
from clew.errors import SourceUnreadable, UsageError, WouldLose
from clew.io.codec import decode
from clew.io.filesystem import SYSTEM, System, explain_permission_errors, make_folder
from clew.io.records import MAX_RECORD_BYTES
from clew.model.json import JSON
from clew.store.conversation_tree import MAIN, NONE, Tree
from clew.store.layout import FORMAT, MESSAGES, OWN, Redact, Settings, refuse_copy
from clew.store.log import Log
from clew.store.message_context import ContextReader
from clew.store.session_metadata import SessionMetadata, count_records, format_of

METADATA_INTERVAL_SECONDS = 5
"""How often metadata.json is renewed while messages are appended."""
_UUID_VERSION_4 = uuid.UUID(int=0, version=4).int
_UUID_RANDOM_BITS = uuid.UUID(int=(1 << 128) - 1, version=4).int ^ _UUID_VERSION_4
_CANNOT_ENCODE = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)

Clock = Callable[[], float]
"""Returns the seconds since 1970."""


class Draft(msgspec.Struct):
    """A message that is not in a log yet. Without a parent it follows the head of the conversation."""

    record: MessageRecord
    parent: str | None | UnsetType = UNSET
    sidechain: bool | None = None
    extra: dict[str, JSON] | None = None

    def __post_init__(self) -> None:
        """Refuse metadata that JSON cannot hold."""
        if self.extra:
            refuse_odd(self.extra, "the metadata")


class Receipt(msgspec.Struct, frozen=True):
    """A record is in the log: its id and its number."""

    uuid: str
    seq: int
    written: bool = True
    """False where the log held a record of this id already."""


@dataclass(slots=True)
class SessionHead:
    """The end of a conversation: what the next message follows."""

    seq: int = 0
    head: str | None = None
    branch: str = MAIN
    is_tip: bool = True
    """False where a message that follows the head may begin a branch."""
    todos: list[TodoItem] | msgspec.Raw | UnsetType = UNSET
    """The task list at the head; UNSET where the end of the log does not have one."""


class RecordSlot(NamedTuple):
    """Id, time and number of a record that is about to be appended, and the conversation before it."""

    uuid: str
    time: str
    head: SessionHead
    tree: Tree
    number: dict[str, JSON]


class WriterConfig(NamedTuple):
    """Settings of a store, and its access to clock and file system."""

    settings: Settings = Settings()
    system: System = SYSTEM
    clock: Clock = time.time
    version: str = "0.1.0"
    redact: Redact | None = None
    prepare_store: Callable[[], object] = bool
    """Called before the first folder is made, so that a new store records its format."""


class Writer:
    """Appends to one session's log, for any number of threads."""

    def __init__(self, folder: Path, config: WriterConfig) -> None:
        self.folder, self._session, self._config = folder, folder.name, config
        settings = config.settings
        self.context_reader = ContextReader(settings.user_type)
        self._log = Log(
            folder / MESSAGES,
            system=config.system,
            durable=settings.durability == "disk",
            wait=settings.lock_wait,
            on_change=self._resume,
        )
        self._metadata = SessionMetadata(folder, config.system, config.redact)
        self._metadata_written = -math.inf
        self._is_prepared = self._is_new = False
        self._head = SessionHead()
        self._tree: Tree | None = None
        """The whole log; read when it is needed, and extended from then on."""

    def append(self, drafts: Sequence[Draft]) -> list[Receipt]:
        """Append messages. On return all of them are in the log; on an error none that was not there before."""
        self._prepare()
        receipts: list[Receipt] = []
        records: list[MessageRecord] = []
        with self._log.locked():
            now, context = self.now(), self.context_reader.read()
            try:
                for draft in drafts:
                    if draft.record.uuid or draft.parent is not UNSET:
                        self._whole_tree()  # read before the first message of the batch is added to it
                for draft in drafts:
                    record = draft.record
                    if record.uuid and record.uuid in self._whole_tree().places:
                        receipts.append(Receipt(record.uuid, self._number_of(record.uuid, receipts), written=False))
                        continue
                    self._place(draft, now, context)
                    receipts.append(Receipt(record.uuid, self._head.seq))
                    records.append(record)
                if records:
                    self._log.append(encode_records(records, self._config.redact))
                elif receipts:
                    self._log.sync_existing()
            except BaseException:
                self._tree = None  # it may have messages that are not in the log
                raise
            for record in records:
                self._metadata.note(record)
            if records:
                self._after_append()
        return receipts

    def append_record(self, make: Callable[[RecordSlot], tuple[Record, SessionHead]]) -> Receipt:
        """Append a record that is not a message; `make` returns it, and the head of the conversation after it."""
        self._prepare()
        with self._log.locked():
            number, record_id = self._head.seq + 1, new_uuid()
            slot = RecordSlot(record_id, self.now(), replace(self._head), self._whole_tree(), {OWN: {"seq": number}})
            record, head = make(slot)
            line = encode_records([record], self._config.redact)
            self._log.append(line)
            self._head = replace(head, seq=number)
            if (header := parse_header(line)) is not None:
                slot.tree.extend([header])
            self._metadata.is_current = False
            self._after_append()
            return Receipt(record_id, number)

    def describe(self, **stated: JSON) -> None:
        """Renew metadata.json, with the stated values in it."""
        self._prepare()
        with self._log.locked():
            self._write_metadata(stated)

    def close(self) -> None:
        """Make everything durable and bring metadata.json up to date."""
        try:
            if not self._metadata.is_current:
                self.describe()
        finally:
            self._log.close()
            self._is_prepared = False

    def now(self) -> str:
        """The time as records hold it: UTC, with milliseconds."""
        return format_timestamp(self._config.clock())

    def _prepare(self) -> None:
        """Before the first append: create the folders, and refuse a store that must not be written to."""
        if self._is_prepared:
            return
        written = max(self._config.settings.store, format_of(self.folder))
        if written > FORMAT:
            raise WouldLose(f"{self.folder}: a newer version of clew wrote this store ({written}); it is read-only")
        refuse_copy(self.folder)
        with explain_permission_errors(self.folder):
            self._config.prepare_store()
            make_folder(self._config.system, self.folder)
        self._is_prepared = True

    def _resume(self) -> None:
        """Find the head of the conversation from the end of the log, which another handle wrote."""
        log = self._log
        self._is_new = log.end == 0
        if log.was_replaced:
            self._metadata.forget()
        if log.was_replaced or (self._tree is not None and self._tree.end > log.end):
            self._tree = None
        elif self._tree is not None:
            self._whole_tree()  # what others appended comes before what this handle adds to the tree
        self._head = find_head(log.backward(), log.path) or self._find_head_by_tree()

    def _find_head_by_tree(self) -> SessionHead:
        """Find the head from the whole log: messages of the older form have no ids of their own."""
        tree, seq = self._whole_tree(), count_records(self._log.path)
        if tree.head == NONE:
            return SessionHead(seq)
        return SessionHead(seq, tree.uuids[tree.head], tree.branches[tree.head], not tree.forks_at(tree.head))

    def _whole_tree(self) -> Tree:
        """The records of the log, while it is locked."""
        if self._tree is None:
            self._tree = Tree()
        if self._tree.end < self._log.end:
            self._tree.read(self._log.path, self._log.end)
        return self._tree

    def _place(self, draft: Draft, now: str, context: Context) -> None:
        """Give a message its id, number, parent and branch, and make it the head of the conversation."""
        record, head = draft.record, self._head
        record.uuid = record.uuid or new_uuid()
        self._set_parent(draft, head)
        if record.todos is not UNSET:
            head.todos = record.todos
        elif record.type != "tool_result":
            record.todos = head.todos
        record.session_id = self._session
        record.timestamp = now if record.timestamp is UNSET else record.timestamp
        record.context = context if record.context is UNSET else record.context
        record.version = self._config.version if record.version is UNSET else record.version
        head.seq, head.head = head.seq + 1, record.uuid
        number = {"seq": head.seq}
        # A number that a copied record has from another session does not count here.
        record.metadata = {OWN: number} | draft.extra | {OWN: number} if draft.extra else {OWN: number}
        if self._tree is not None:
            header = RecordHeader(record.type, record.uuid, record.parent_uuid, record.branch_id or None)
            self._tree.extend([header])

    def _set_parent(self, draft: Draft, head: SessionHead) -> None:
        """Set parent and branch of a message, and the branch of the head after it."""
        record, parent = draft.record, draft.parent
        if parent is UNSET:
            parent = head.head
        elif parent != head.head:
            head.todos, head.is_tip = UNSET, False
        record.branch_parent_uuid = UNSET
        if not head.is_tip:
            self._branch_off(record, parent, head)
        record.parent_uuid = parent
        is_main = head.branch == MAIN
        record.branch_id = UNSET if is_main else head.branch
        record.is_sidechain = not is_main if draft.sidechain is None else draft.sidechain

    def _branch_off(self, record: MessageRecord, parent: str | None, head: SessionHead) -> None:
        """Move the head to the branch of a message that follows an older one; a prompt or reply may begin one."""
        tree = self._whole_tree()
        node = NONE if parent is None else tree.places.get(parent)
        if node is None:
            raise UsageError(f"session {self._session}: no record has the uuid {parent!r}, so it cannot be a parent")
        head.branch = tree.branches[node] if node != NONE else MAIN
        has_follower = tree.forks_at(node)
        if record.type in PROMPTS_AND_REPLIES and has_follower:
            head.branch = new_uuid()[:8]
            while head.branch in tree.heads:
                head.branch = new_uuid()[:8]
            record.branch_parent_uuid = parent
        head.is_tip = record.type in PROMPTS_AND_REPLIES or not has_follower

    def _number_of(self, record_id: str, batch: Sequence[Receipt]) -> int:
        """The number of a record that is in the batch or in the log."""
        for receipt in batch:
            if receipt.uuid == record_id:
                return receipt.seq
        for line in self._log.backward():
            header = parse_header(line)
            if header is not None and header.uuid == record_id:
                return number_of(line)
        return 0

    def _after_append(self) -> None:
        if self._tree is not None:
            self._tree.end = self._log.end
        if self._config.clock() - self._metadata_written >= METADATA_INTERVAL_SECONDS:
            # The messages are safe; metadata that cannot be written now are written later, or by `clew doctor`.
            with suppress(OSError, SourceUnreadable, *_CANNOT_ENCODE):
                self._write_metadata({})

    def _write_metadata(self, stated: dict[str, JSON]) -> None:
        self._metadata_written = self._config.clock()
        defaults = new_metadata(self._session, self.now(), self._config.version)
        self._metadata.write(defaults, {**stated, COUNT: self._head.seq}, is_new=self._is_new)


def new_uuid() -> str:
    """A random uuid, version 4."""
    # `str(uuid.uuid4())` takes three times as long, which would be a tenth of an append.
    digits = f"{int.from_bytes(os.urandom(16), 'big') & _UUID_RANDOM_BITS | _UUID_VERSION_4:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def format_timestamp(seconds: float) -> str:
    """A time as records hold it: UTC, with milliseconds."""
    second, microseconds = divmod(round(seconds * 1_000_000), 1_000_000)
    return f"{_format_second(second)}.{microseconds // 1000:03}Z"


@lru_cache(maxsize=1)
def _format_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def encode_records(records: Sequence[msgspec.Struct], redact: Redact | None) -> bytes:
    """Return the lines of records, masked by `redact`; raises UsageError for a record that could not be read again."""
    try:
        lines = encode_lines(records if redact is None else [redact(_as_json(one)) for one in records])
    except _CANNOT_ENCODE as error:
        raise UsageError(f"the record cannot be written as JSON: {error}") from error
    if len(lines) >= MAX_RECORD_BYTES and max(map(len, lines.split(b"\n"))) >= MAX_RECORD_BYTES:
        raise UsageError(f"a record is longer than {MAX_RECORD_BYTES} bytes, and could not be read again")
    return lines


def _as_json(record: msgspec.Struct) -> dict[str, JSON]:
    """A record as plain JSON values, so that all of it can be masked: also a todo list copied from the log."""
    value: dict[str, JSON] = msgspec.to_builtins(record, enc_hook=_decode_raw)
    return value


def _decode_raw(value: JSON) -> JSON:
    if isinstance(value, msgspec.Raw):
        # Another program may have written it, so a strict decoder may not accept it.
        return decode(bytes(value)).value
    raise TypeError(f"JSON has no {type(value).__name__}")


class _HeaderWithTodos(RecordHeader, rename="camel"):
    todos: msgspec.Raw | UnsetType = UNSET


_decode_todos = msgspec.json.Decoder(_HeaderWithTodos).decode


def find_head(lines: Iterator[bytes], path: Path) -> SessionHead | None:
    """Find the head of a conversation from its lines, last first; None where the whole log is needed."""
    seq: int | None = None
    last: RecordHeader | None = None
    expected: str | None = None
    for line in lines:
        header = parse_header(line)
        if header is None:
            continue
        if seq is None:
            # A record without a number was written by another program: then all are counted.
            seq = number_of(line) or count_records(path)
        if last is not None and header.uuid != expected:
            break
        if header.is_switch and last is None:
            branch, todos = header.branch_id or MAIN, _decode_todos(line).todos
            return SessionHead(seq, header.message_id, branch, False, todos)
        if header.is_old:
            return None
        if not header.advances_head:
            continue
        last = last or header
        if header.is_significant or header.parent_uuid is None:
            return SessionHead(seq, last.uuid, last.branch_id or MAIN, True, _decode_todos(line).todos)
        expected = header.parent_uuid
    if last is not None:
        return SessionHead(seq or 0, last.uuid, last.branch_id or MAIN, False)
    return SessionHead(seq or 0, todos=[] if seq is None else UNSET)
