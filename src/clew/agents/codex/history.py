"""History that a rollout has from other threads.

A fork or a sub-agent may begin with a copy of its parent's lines. Or a fork, or a thread after a revert, holds only
what came later: then its head says `history_base`, the thread with the beginning, and how many bytes of it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
from msgspec import Raw

from clew.agents.base import SourceFile, open_main
from clew.agents.codex import locate
from clew.agents.codex.records import AnyRecord
from clew.errors import SourceUnreadable
from clew.io.codec import NOT_JSON, dumps, loads
from clew.io.compress import SUFFIXES, open_source
from clew.io.records import read_lines
from clew.model.json import JSON
from clew.model.time import parse_time

BURST_SECONDS = 1.0
"""Copied lines are written at once: a longer pause ends them where the parent is not at hand."""
MAX_CHAIN_ROLLOUTS = 100
"""Upon so many rollouts one may build."""
_CHUNK_BYTES = 1 << 20
_ORDINAL = re.compile(rb'\A(\{"timestamp":"[^"]*","ordinal":)\d+')
_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode


class CopiedHistory:
    """Finds the line up to which a rollout is a copy."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source
        self.boundary = 0
        """The last line that is a copy."""
        self.is_undecided = False
        """True while further lines decide whether the copy goes on."""
        self._first_own_ordinal: int | None = None
        self._time: object = None

    def on_own_header(self, first_own_ordinal: int | None) -> None:
        """The rollout's own head; since v0.144 a sub-agent's says which line is the first of its own."""
        self._first_own_ordinal = first_own_ordinal
        self.is_undecided = first_own_ordinal is not None

    def on_parent_header(self, thread: str, line: int) -> None:
        """The head of another thread: from there on the rollout is a copy, as far as it agrees with the parent."""
        if line <= self.boundary:
            return
        self.boundary = line
        parent = locate.find_rollout(self._source.path, thread)
        common = count_common_lines(self._source, line, parent) if parent is not None else 0
        if common:
            self.boundary = line + common - 1
        else:
            self.is_undecided = True

    def on_line(self, line: int, record: AnyRecord) -> None:
        """Let a line decide whether the copy goes on."""
        if self._first_own_ordinal is not None:
            if record.ordinal is not None and record.ordinal < self._first_own_ordinal:
                self.boundary = line
            else:
                self.is_undecided = False
            return
        earlier, later = parse_time(self._time), parse_time(record.timestamp)
        self._time = record.timestamp
        if earlier is not None and later is not None and (later - earlier).total_seconds() > BURST_SECONDS:
            self.is_undecided = False
        else:
            self.boundary = line


def count_common_lines(source: SourceFile, first: int, parent: Path) -> int:
    """How many lines of the source, from `first` on, are those of the parent, apart from their times and numbers."""
    count = 0
    # A mask hides different things in different files. Nothing but a number leaves this function.
    unmasked = msgspec.structs.replace(source, mask=None)
    try:
        with open_main(unmasked) as own, open_source(parent) as other:
            lines = _contents(own)
            for _ in range(first - 1):
                next(lines, None)
            for one, another in zip(lines, _contents(other), strict=False):
                if one != another:
                    break
                count += 1
    except (OSError, SourceUnreadable):
        return count
    return count


def _contents(stream: BinaryIO) -> Iterator[dict[str, Raw] | bytes]:
    """What each line says, without its time and number, which a copy does not keep."""
    for text, _, _, _ in read_lines(stream):
        try:
            members = _decode_members(text)
        except NOT_JSON:
            yield text
            continue
        members.pop("timestamp", None)
        members.pop("ordinal", None)
        yield members


# History that a rollout builds upon


class _Part(NamedTuple):
    """A rollout, and how many of its bytes are part of the history; those of a packed one are counted unpacked."""

    path: Path
    end: int


def read_with_history(path: Path, size: int) -> Iterator[bytes] | None:
    """The lines of a rollout and of all it builds upon; None where it builds upon nothing, or that is not here."""
    own = _Part(path, sys.maxsize if path.suffix in SUFFIXES else size)
    try:
        head = _read_head(path)
        parts = _history_parts(own, head)
    except SourceUnreadable:
        return None
    return _joined_lines(head, parts) if head is not None and len(parts) > 1 else None


def base_problem(path: Path, base: dict[str, JSON]) -> str | None:
    """What is wrong with the history that a rollout builds upon, through all that it builds upon in turn."""
    seen = {path}
    for _ in range(MAX_CHAIN_ROLLOUTS):
        name = base.get("thread_id")
        found = locate.find_rollout(path, name) if isinstance(name, str) else None
        if found is None:
            return f"the rollout {name} that the history begins in is not here"
        if found in seen:
            return f"the rollout {name} builds upon itself"
        seen.add(found)
        try:
            with open_source(found) as stream:
                size = sum(map(len, iter(lambda: stream.read(_CHUNK_BYTES), b"")))
            head = _read_head(found)
        except (OSError, SourceUnreadable):
            size, head = 0, None
        end = base.get("end_byte_offset")
        if isinstance(end, int) and size < end:
            return f"the rollout {name} has {size} bytes, not the {end} that the history begins with"
        further = head["payload"].get("history_base") if head is not None else None
        if not isinstance(further, dict):
            return None
        base = further
    return "the history has no beginning"


def _read_head(path: Path) -> dict[str, JSON] | None:
    """The first record of a rollout, where it is the head of a session."""
    with open_source(path) as stream:
        text = next(read_lines(stream), (b"",))[0]
    try:
        head = loads(text)
    except NOT_JSON:
        head = None
    is_head = isinstance(head, dict) and head.get("type") == "session_meta" and isinstance(head.get("payload"), dict)
    return head if is_head else None


def _history_parts(own: _Part, head: dict[str, JSON] | None) -> list[_Part]:
    """The rollouts that hold the history, the oldest first; none where something of it is missing."""
    parts, seen = [own], {own.path}
    while head is not None and (base := head["payload"].get("history_base")) is not None:
        name, end = (base.get("thread_id"), base.get("end_byte_offset")) if isinstance(base, dict) else (None, None)
        found = locate.find_rollout(own.path, name) if isinstance(name, str) else None
        if found is None or found in seen or len(seen) > MAX_CHAIN_ROLLOUTS or type(end) is not int:
            return []
        if not _ends_with_line(found, end):
            return []
        parts.insert(0, _Part(found, end))
        seen.add(found)
        head = _read_head(found)
    # What begins without a head would lose its first line.
    return parts if head is not None else []


def _ends_with_line(path: Path, end: int) -> bool:
    """True where so many bytes of a rollout, once it is unpacked, are whole lines."""
    left, chunk = end, b""
    with open_source(path) as stream:
        while left > 0 and (chunk := stream.read(min(left, _CHUNK_BYTES))):
            left -= len(chunk)
    return left == 0 and chunk.endswith(b"\n")


def _joined_lines(head: dict[str, JSON], parts: list[_Part]) -> Iterator[bytes]:
    """A head that builds upon nothing, then what stands behind the heads, numbered through."""
    numbers = count()
    payload = {name: value for name, value in head["payload"].items() if name != "history_base"}
    yield _numbered(dumps({**head, "payload": payload}), next(numbers)) + b"\n"
    for path, end in parts:
        with open_source(path) as stream:
            for text, line, start, is_whole in read_lines(stream):
                if start >= end:
                    break
                if line > 1:
                    yield _numbered(text, next(numbers)) if is_whole else text


def _numbered(text: bytes, number: int) -> bytes:
    return _ORDINAL.sub(rb"\g<1>%d" % number, text)
