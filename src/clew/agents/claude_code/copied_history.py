"""A conversation that a client wrote into the same file a second time, with new uuids.

The copies of replies have the `message.id` of their originals, and copied results the id of their call. What the copy
goes on with hangs on its records, so these stand for their originals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from clew.agents.base import SourceFile, open_main
from clew.agents.claude_code.queued_prompts import Line
from clew.agents.claude_code.records import TRANSCRIPT, TranscriptRecord
from clew.io.records import RawRecord
from clew.model.json import JSON

MAX_HELD_RECORDS = 10_000
"""How many records are read to find out whether a prompt begins a copy."""


class CopiedRecord(NamedTuple):
    """A record that repeats an earlier one."""

    record: TranscriptRecord


MarkedLine = tuple[int, TranscriptRecord | RawRecord | CopiedRecord]


def mark_copies(source: SourceFile, lines: Iterable[Line]) -> Iterator[MarkedLine]:
    """The records of a transcript, with copies marked and links to them replaced by links to their originals."""
    finder: _CopyFinder | None = None
    has_root = False
    for line, record in lines:
        if finder is None and isinstance(record, TranscriptRecord) and _is_root_prompt(record):
            # Nearly every transcript has one root. Only of others is it necessary to know all earlier records.
            if has_root:
                finder = _CopyFinder(_index(source, line))
            has_root = True
        if finder is None:
            yield line, record
        else:
            yield from finder.add(line, record)
    if finder is not None:
        yield from finder.released(are_copies=False)


def _is_root_prompt(record: TranscriptRecord) -> bool:
    return record.type == "user" and record.parentUuid is None and record.isSidechain is not True


def _index(source: SourceFile, end: int) -> _Originals:
    """The records of a transcript before a line."""
    originals = _Originals()
    with open_main(source) as stream:
        for line, record in TRANSCRIPT.decode_file(stream):
            if line >= end:
                break
            if isinstance(record, TranscriptRecord):
                originals.add(record)
    return originals


class _Originals:
    """The uuids of records, by what their copies have in common with them."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[str, str, JSON], str] = {}
        """By message id, and type and content of a block."""
        self._results: dict[str, str] = {}
        """By the id of the call."""
        self._prompts: dict[int, str] = {}
        """By the hash of the content."""

    def add(self, record: TranscriptRecord) -> None:
        """Remember a record, unless an equal one is known."""
        if not record.uuid or record.isSidechain is True:
            return
        if record.type == "assistant":
            for key in _block_keys(record):
                self._blocks.setdefault(key, record.uuid)
        elif record.type == "user":
            calls = result_calls(record)
            for call in calls:
                self._results.setdefault(call, record.uuid)
            if not calls:
                self._prompts.setdefault(_content_hash(record), record.uuid)

    def reply(self, record: TranscriptRecord) -> str | None:
        """The record that holds the last block of a reply, if all its blocks are known."""
        found = [self._blocks.get(key) for key in _block_keys(record)]
        return found[-1] if found and None not in found else None

    def results(self, calls: list[str]) -> str | None:
        """The record that holds the results of these calls."""
        return self._results.get(calls[-1])

    def prompt(self, record: TranscriptRecord) -> str | None:
        """The first prompt with this content."""
        return self._prompts.get(_content_hash(record))


class _CopyFinder:
    """Finds copies behind the second root of a transcript."""

    def __init__(self, originals: _Originals) -> None:
        self._originals = originals
        self._copies: dict[str, str] = {}
        """Uuids of copies, each with that of its original."""
        self._held: list[Line] = []
        """Prompts that are copies if the reply behind them is one, and what stands between."""
        self._prompts: dict[str, str] = {}
        """Uuids of these prompts, each with that of its original."""

    def add(self, line: int, record: TranscriptRecord | RawRecord) -> Iterator[MarkedLine]:
        """The records that are known to be copies or not, now that the next one is read."""
        if isinstance(record, RawRecord) or record.isSidechain is True:
            yield from self._next(line, record)
            return
        calls = result_calls(record) if record.type == "user" else []
        if record.type == "user" and not calls:
            original = self._originals.prompt(record)
            if original is not None and record.uuid and (record.parentUuid is None or self._is_below_copy(record)):
                self._prompts[record.uuid] = original
                self._held.append((line, record))
                return
            yield from self.released(are_copies=False)
        elif record.type == "assistant" or calls:
            is_below = self._is_below_copy(record)
            original = self._originals.results(calls) if calls else self._originals.reply(record)
            is_copy = is_below and original is not None and bool(record.uuid)
            if is_below or len(self._held) >= MAX_HELD_RECORDS:
                yield from self.released(are_copies=is_copy)
            if is_copy:
                assert record.uuid and original is not None
                self._copies[record.uuid] = original
                yield line, CopiedRecord(record)
                return
        yield from self._next(line, record)

    def released(self, are_copies: bool) -> Iterator[MarkedLine]:
        """The records that were held."""
        held, prompts = self._held, self._prompts
        self._held, self._prompts = [], {}
        if are_copies:
            self._copies |= prompts
        for line, record in held:
            is_prompt = isinstance(record, TranscriptRecord) and record.uuid in prompts
            if is_prompt and are_copies:
                assert isinstance(record, TranscriptRecord)
                yield line, CopiedRecord(record)
            else:
                yield line, self._relinked(record)

    def _is_below_copy(self, record: TranscriptRecord) -> bool:
        return record.parentUuid in self._copies or record.parentUuid in self._prompts

    def _next(self, line: int, record: TranscriptRecord | RawRecord) -> Iterator[MarkedLine]:
        """A record that is no copy; it waits behind those that are held."""
        if not self._held:
            yield line, self._relinked(record)
            return
        self._held.append((line, record))
        if len(self._held) >= MAX_HELD_RECORDS:
            yield from self.released(are_copies=False)

    def _relinked(self, record: TranscriptRecord | RawRecord) -> TranscriptRecord | RawRecord:
        """A record that is no copy, with the originals in the place of copies."""
        if isinstance(record, RawRecord):
            return record
        self._originals.add(record)
        for name in ("parentUuid", "logicalParentUuid", "leafUuid", "messageId", "snapshotMessageId", "parentLastUuid"):
            uuid = getattr(record, name)
            if uuid in self._copies:
                setattr(record, name, self._copies[uuid])
        if record.snapshot is not None and record.snapshot.messageId in self._copies:
            record.snapshot.messageId = self._copies[record.snapshot.messageId]
        return record


def result_calls(record: TranscriptRecord) -> list[str]:
    """The calls that a record answers."""
    content = record.message.content if record.message is not None else None
    blocks = content if isinstance(content, list) else []
    calls = [block.get("tool_use_id") for block in blocks if isinstance(block, dict)]
    return [call for call in calls if isinstance(call, str)]


def _block_keys(record: TranscriptRecord) -> list[tuple[str, str, JSON]]:
    message = record.message
    if message is None or not message.id:
        return []
    blocks = message.content if isinstance(message.content, list) else [message.content]
    return [(message.id, *_block_key(block)) for block in blocks]


def _block_key(block: JSON) -> tuple[str, JSON]:
    kind = block.get("type") if isinstance(block, dict) else None
    match kind:
        case "text" | "thinking" if isinstance(block.get(kind), str):
            return kind, hash((block[kind], str(block.get("signature"))))
        case "tool_use" if isinstance(block.get("id"), str):
            return kind, block["id"]
    return str(kind), hash(msgspec.json.encode(block))


def _content_hash(record: TranscriptRecord) -> int:
    return hash(msgspec.json.encode(record.message.content if record.message is not None else None))
