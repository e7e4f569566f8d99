"""Turns the messages of a source into rows of the catalog. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from msgspec import UNSET

from clew.agents.tools import is_shell_tool
from clew.analysis.git_commits import commit_mentions, makes_commits
from clew.catalog import tool_arguments
from clew.catalog.ids import event_key, key_of, packed_uuid
from clew.catalog.schema import KEYS_PER_SOURCE, META_FLAG, SESSION_BLOCKS, SIDECHAIN_FLAG
from clew.catalog.searchable_text import FILE, TITLE, BlockText, block_texts, is_injected, metadata_of
from clew.catalog.sync_level import SyncLevel
from clew.model.message import Message
from clew.model.time import microseconds
from clew.redact.json_walk import credential_file_in

Row: TypeAlias = tuple[Any, ...]

IDLE_US = 300_000_000
"""Microseconds without a message after which a session counts as idle."""
MAX_OPEN_CALLS = 10_000
"""Tool calls that wait for their result."""
CREATED_MESSAGE_CHARS = 200
"""The result of a write says within this many characters that the file is new."""


class Rows:
    """Rows of one source. Strings that many rows repeat are written out; the row writer replaces them by keys."""

    def __init__(self) -> None:
        self.messages: list[Row] = []
        self.blocks: list[Row] = []
        self.texts: list[tuple[int, str, int, str]] = []
        """Text to be stored and indexed: key of the block, kind, time, text."""
        self.calls: list[list[Any]] = []
        self.credential_calls: list[Row] = []
        """Keys of calls that read credential files: search masks their output wherever the session repeats it."""
        self.results: list[Row] = []
        """Results of calls whose rows were handed over before."""
        self.uses: list[Row] = []
        self.changes: list[Row] = []
        self.todos: list[Row] = []
        self.commit_mentions: list[Row] = []
        """Commits that calls may have made: key, message, kind, hash or session, subject, begin and end of the call."""
        self.chars = 0


def stored_time(time: Any) -> int:
    """A point in time in microseconds since 1970; 0 if it is invalid or earlier."""
    return max(0, microseconds(time) or 0)


@dataclass
class _OpenCall:
    """A tool call that waits for its result."""

    key: int
    message: int
    time_us: int
    writes_file: bool
    changes: list[tool_arguments.RequestedChange]
    commit_command: str
    """The command, if it makes git commits."""


class RowBuilder:
    """Builds the rows of one source, message by message."""

    def __init__(
        self, agent: str, session: str, source: int, level: SyncLevel = SyncLevel.MESSAGES, undated_us: int = 0
    ) -> None:
        """`undated_us` is the time of messages that have none."""
        self._agent, self._session, self._base = agent, session, source * KEYS_PER_SOURCE
        self._level, self._undated_us = level, undated_us
        self._messages = self._blocks = self._calls = self._changes = self._todos = self._usages = 0
        self._mentions = 0
        self._last_us = 0
        self.active_us = 0
        self._replies: dict[int, tuple[int, str]] = {}
        """Time and git branch of each reply by its number: those of the API call that it belongs to."""
        self._open_calls: dict[str, _OpenCall] = {}
        self._call_rows: dict[int, list[Any]] = {}
        """Rows of calls that are still in `rows`, by key."""
        self._paths: dict[str, None] = {}
        """The files that calls named, in order."""
        self._last_message: tuple[str | None, bytes] = None, b""
        self.rows = Rows()

    def take_rows(self) -> Rows:
        """The rows built since the last call."""
        rows, self.rows = self.rows, Rows()
        self._call_rows.clear()
        return rows

    def add(self, message: Message) -> None:
        """Add the next message of the source: its rows, unless only sessions and usage are wanted."""
        self._messages += 1
        time = stored_time(message.timestamp) if message.timestamp else self._undated_us
        gap = max(0, time - self._last_us) if time and self._last_us else 0
        self.active_us += gap if gap < IDLE_US else 0
        self._last_us = time or self._last_us
        branch = metadata_of(message).git_branch or ""
        if message.role == "assistant":
            self._replies[self._messages] = time, branch
        if self._level >= SyncLevel.MESSAGES:
            self._add_rows(message, time, gap, branch)

    def _add_rows(self, message: Message, time: int, gap: int, branch: str) -> None:
        metadata, blocks = metadata_of(message), block_texts(message)
        key = self._base + self._messages
        chars = self._add_blocks(key, time, blocks)
        uuid, event = self._ids(message, (time if message.timestamp else 0) or chars)
        parent = self._parent_event(message.parent_uuid or None)
        model = (metadata.model.name if metadata.model is not UNSET else None) or ""
        flags = (metadata.is_sidechain is True) * SIDECHAIN_FLAG | (metadata.is_meta is True) * META_FLAG
        kind = _message_kind(message, blocks)
        row = (key, 1, event, uuid, parent, time, gap, kind, message.role, model, branch, flags, chars)
        self.rows.messages.append(row)
        self._last_message = message.uuid or None, event
        self.rows.chars += chars

    def _add_blocks(self, message: int, time: int, blocks: Iterable[BlockText]) -> int:
        """Add the blocks of a message. Returns how many characters they have."""
        chars = 0
        for idx, block in enumerate(blocks):
            chars += len(block.text)
            self._add_block(message, time, idx, block)
            if block.type == "tool_use":
                self._add_call(message, time, block)
            elif block.type == "tool_result":
                self._add_result(message, time, block)
        return chars

    def _ids(self, message: Message, mark: int) -> tuple[bytes | str, bytes]:
        """The native id and the event id of a message. Without the first, it is known by its place and a mark.

        Its text is not part of the id: others could test a guess with it, and masking would change it.
        """
        if message.uuid:
            uuid = packed_uuid(message.uuid)
            return uuid, event_key(self._agent, self._session, uuid)
        return "", key_of(self._agent, self._session, str(self._messages), message.role, str(mark))

    def _parent_event(self, uuid: str | None) -> bytes:
        if not uuid:
            return b""
        if uuid == self._last_message[0]:
            return self._last_message[1]
        return event_key(self._agent, self._session, packed_uuid(uuid))

    def _add_block(self, message: int, time: int, idx: int, block: BlockText) -> None:
        self._blocks += 1
        key = self._base + self._blocks
        self.rows.blocks.append((key, message, idx, block.type, block.kind, len(block.text), block.call_id))
        if block.text and block.kind:
            self.rows.texts.append((key, block.kind, time, block.text))

    def _add_call(self, message: int, time: int, block: BlockText) -> None:
        name, arguments = block.tool_name, block.arguments or {}
        self._calls += 1
        key = self._base + self._calls
        row: list[Any] = [key, block.call_id, message, 0, name, 0, time, 0]
        self.rows.calls.append(row)
        if credential_file_in(arguments) is not None:
            self.rows.credential_calls.append((key,))
        for idx, (content, status) in enumerate(tool_arguments.requested_todos(name, arguments)):
            self._todos += 1
            self.rows.todos.append((self._base + self._todos, message, idx, content, status))
        if path := tool_arguments.named_file(arguments):
            self._paths[path] = None
        if block.call_id:
            self._call_rows[key] = row
            changes = tool_arguments.requested_changes(name, arguments)
            writes_file = tool_arguments.writes_whole_files(name)
            is_commit = is_shell_tool(name) and makes_commits(block.text)
            command = block.text if is_commit else ""
            self._open_calls[block.call_id] = _OpenCall(key, message, time, writes_file, changes, command)
            if len(self._open_calls) > MAX_OPEN_CALLS:
                del self._open_calls[next(iter(self._open_calls))]

    def _add_result(self, message: int, time: int, block: BlockText) -> None:
        call = self._open_calls.pop(block.call_id, None)
        if call is None:
            return
        duration = max(0, time - call.time_us) if time and call.time_us else 0
        row = self._call_rows.get(call.key)
        if row is not None:
            row[3], row[5], row[7] = message, int(block.is_error), duration
        else:
            self.rows.results.append((message, int(block.is_error), duration, call.key))
        if not block.is_error:
            is_new = call.writes_file and "creat" in block.text[:CREATED_MESSAGE_CHARS].lower()
            for path, op, added, removed in call.changes:
                self._changes += 1
                key = self._base + self._changes
                self.rows.changes.append((key, call.message, path, "create" if is_new else op, added, removed))

        if call.commit_command:
            for mention in commit_mentions(call.commit_command, block.text, failed=block.is_error):
                self._mentions += 1
                self.rows.commit_mentions.append(
                    (self._base + self._mentions, call.message, *mention, call.time_us, max(time, call.time_us))
                )

    def add_usage(
        self, call_id: str, model: str, counts: tuple[int | None, ...], message: int, session_branch: str
    ) -> None:
        """Add the token usage of an API call, after its message.

        `call_id` is the same in every file that repeats the call; `counts` are in the order of
        `analysis.usage.TOKEN_FIELDS`, None where unknown; `message` is the number of its message, or 0.
        """
        self._usages += 1
        time, branch = self._replies.get(message, (0, ""))
        message_key = self._base + message if message else 0
        ids = (self._base + self._usages, 1, key_of(self._agent, call_id), message_key)
        self.rows.uses.append((*ids, model, branch or session_branch, time, *counts))

    def finish(self, title: str, ended_us: int) -> None:
        """Add the blocks of the session as a whole: the files that it touched, and its title."""
        if self._level < SyncLevel.MESSAGES:
            return
        self._blocks = SESSION_BLOCKS
        for path in self._paths:
            self._add_block(0, ended_us, 0, BlockText(FILE, FILE, path))
        if title:
            self._add_block(0, ended_us, 0, BlockText(TITLE, TITLE, title))


def _message_kind(message: Message, blocks: list[BlockText]) -> str:
    """The kind of a message, by its role and content. `user` is what a person wrote, or what a sub-agent was asked."""
    metadata = metadata_of(message)
    if any(block.type == "tool_result" for block in blocks):
        return "tool_result"
    if metadata.is_compact_summary is True:
        return "summary"
    is_meta = is_injected(message) or (metadata.is_meta is True and message.role == "user")
    return "meta" if is_meta else message.role
