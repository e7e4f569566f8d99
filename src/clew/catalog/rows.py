"""From the messages of a source to rows of the catalog. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, TypeAlias

from clew.catalog import changes
from clew.catalog.ids import event_key, key_of, packed_uuid
from clew.catalog.index_entries import FILE, TITLE, ApiCall, BlockEntry, MessageEntry
from clew.catalog.schema import KEYS_PER_SOURCE, SESSION_BLOCKS
from clew.model.time import parse_time

Row: TypeAlias = tuple[Any, ...]

PAUSE = 300_000_000
"""Microseconds without a message after which nobody was at work."""
MAX_CALLS = 10_000
"""So many calls wait for their result."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SIDECHAIN, _META = 1, 2
_CREATED = 200
"""An answer says at its beginning that a file is new."""


class Rows:
    """The rows of one source, or of what was added to it. Words stand as themselves; the writer numbers them."""

    def __init__(self) -> None:
        self.messages: list[Row] = []
        self.blocks: list[Row] = []
        self.texts: list[tuple[int, str, int, str]] = []
        """What is searched for: key of the block, kind, time, text."""
        self.calls: list[list[Any]] = []
        self.results: list[Row] = []
        """What became of calls of which the rows are written already."""
        self.uses: list[Row] = []
        self.changes: list[Row] = []
        self.todos: list[Row] = []
        """Blocks that are no longer true."""
        self.chars = 0


def microseconds(time: Any) -> int:
    """A point in time as it is stored; 0 where it is none, or before 1970."""
    if type(time) is str and len(time) == 24 and time[10] == "T" and time[23] == "Z":
        # Nearly all times are spelled like this.
        try:
            return _since_epoch(datetime.fromisoformat(time))
        except ValueError:
            pass
    stamp = parse_time(time)
    return _since_epoch(stamp) if stamp is not None else 0


def _since_epoch(stamp: datetime) -> int:
    span = stamp - _EPOCH
    return max(0, (span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds)


class RowMaker:
    """Makes the rows of one source, message by message."""

    def __init__(self, agent: str, session: str, source: int) -> None:
        self._agent, self._session, self._base = agent, session, source * KEYS_PER_SOURCE
        self.seq = self.blocks = self.calls = self.changes = self.todos = 0
        self.used = self.last_us = self.active_us = self.errors = 0
        self._times: dict[int, tuple[int, str]] = {}
        """Time and branch of replies, which tell when a request was made."""
        self._open: dict[str, list[Any]] = {}
        """Calls that wait for their result: number, time, whether it writes a file, and what it changes."""
        self._paths: dict[str, None] = {}
        """The files that calls named, in their order."""
        self._last: tuple[str | None, bytes] = None, b""
        self._kept: dict[int, list[Any]] = {}
        self.rows = Rows()

    def take_rows(self) -> Rows:
        """The rows made so far; from now on they are written."""
        rows, self.rows = self.rows, Rows()
        self._kept.clear()
        return rows

    def add(self, messages: Iterable[MessageEntry]) -> None:
        """The next messages of the source."""
        for message in messages:
            self._message(message)

    def _message(self, message: MessageEntry) -> None:
        uuid, parent, said_at, role, model, branch, is_sidechain, is_meta, _, blocks = message
        self.seq += 1
        key = self._base + self.seq
        time = microseconds(said_at) if said_at else 0
        chars = self._content(key, time, blocks) if blocks else 0
        gap = max(0, time - self.last_us) if time and self.last_us else 0
        self.active_us += gap if gap < PAUSE else 0
        self.last_us = time or self.last_us
        if role == "assistant":
            self._times[self.seq] = time, branch
        packed, event = self._names(message, time or chars)
        above = self._parent(parent)
        flags = is_sidechain * _SIDECHAIN | is_meta * _META
        self.rows.messages.append(
            (key, 1, event, packed, above, time, gap, message.kind, role, model, branch, flags, chars)
        )
        self._last = uuid, event
        self.rows.chars += chars

    def _content(self, message: int, time: int, blocks: Iterable[BlockEntry]) -> int:
        """The blocks of a message. Returns how many characters they have."""
        chars = 0
        for idx, (type_, kind, text, call, name, given, is_error) in enumerate(blocks):
            chars += len(text)
            self._block(message, time, idx, type_, kind, text, call)
            if type_ == "tool_use":
                self._call(message, time, call, name, given or {})
            elif type_ == "tool_result":
                self._result(message, time, call, is_error, text)
        return chars

    def _names(self, message: MessageEntry, mark: int) -> tuple[bytes | str, bytes]:
        """The native name and the name of a message. One without the first is known by its place, and by a mark.

        What was said is not in it: such a name would let others test a guess, and masking would change it.
        """
        if message.uuid:
            uuid = packed_uuid(message.uuid)
            return uuid, event_key(self._agent, self._session, uuid)
        return "", key_of(self._agent, self._session, str(self.seq), message.role, str(mark))

    def _parent(self, uuid: str | None) -> bytes:
        if not uuid:
            return b""
        if uuid == self._last[0]:
            return self._last[1]
        return event_key(self._agent, self._session, packed_uuid(uuid))

    def _block(self, message: int, time: int, idx: int, type_: str, kind: str, text: str, call: str) -> None:
        self.blocks += 1
        key = self._base + self.blocks
        self.rows.blocks.append((key, message, idx, type_, kind, len(text), call))
        if text and kind:
            self.rows.texts.append((key, kind, time, text))

    def _call(self, message: int, time: int, call_id: str, name: str, given: dict[str, Any]) -> None:
        self.calls += 1
        row: list[Any] = [self._base + self.calls, call_id, message, 0, name, 0, time, 0]
        self.rows.calls.append(row)
        for idx, (content, status) in enumerate(changes.todos_of(name, given)):
            self.todos += 1
            self.rows.todos.append((self._base + self.todos, message, idx, content, status))
        self._paths.update(dict.fromkeys(changes.files_of(given)))
        if call_id:
            self._kept[row[0]] = row
            meant = [list(change) for change in changes.changes_of(name, given)]
            self._open[call_id] = [row[0], message, time, changes.is_write(name), meant]
            if len(self._open) > MAX_CALLS:
                del self._open[next(iter(self._open))]

    def _result(self, message: int, time: int, call_id: str, is_error: bool, text: str) -> None:
        self.errors += is_error
        call = self._open.pop(call_id, None)
        if call is None:
            return
        key, asked, began, writes, meant = call
        took = max(0, time - began) if time and began else 0
        row = self._kept.get(key)
        if row is not None:
            row[3], row[5], row[7] = message, int(is_error), took
        else:
            self.rows.results.append((message, int(is_error), took, key))
        if not is_error:
            is_new = writes and "creat" in text[:_CREATED].lower()
            for path, op, added, removed in meant:
                self.changes += 1
                op = "create" if is_new else op
                self.rows.changes.append((self._base + self.changes, asked, path, op, added, removed))

    def finish(self, title: str, time: int) -> None:
        """Add what is known at the end of the session, with its time: the files it touched, and its title."""
        self.blocks = SESSION_BLOCKS
        for path in self._paths:
            self._block(0, time, 0, FILE, FILE, path, "")
        if title:
            self._block(0, time, 0, TITLE, TITLE, title, "")

    def use(self, call: ApiCall, branch: str) -> None:
        """What a request used, once its message was taken in; `branch` is the session's, where that names none."""
        self.used += 1
        time, named = self._times.get(call.message, (0, ""))
        message = self._base + call.message if call.message else 0
        key = key_of(self._agent, call.key)
        self.rows.uses.append(
            (self._base + self.used, 1, key, message, call.model, named or branch, time, *call.counts)
        )
