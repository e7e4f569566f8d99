"""The history that a rollout builds upon: a fork, or a thread after a revert, holds only what came later.

Its head then says `history_base`: the thread that holds the beginning, and how many bytes of it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

from clew.agents.codex import locate
from clew.errors import SourceUnreadable
from clew.io.codec import NOT_JSON, dumps, loads
from clew.io.compress import SUFFIXES, open_source
from clew.io.records import read_lines
from clew.model.json import JSON

MAX_CHAIN = 100
"""Upon so many rollouts one may build."""
_CHUNK_BYTES = 1 << 20
_ORDINAL = re.compile(rb'\A(\{"timestamp":"[^"]*","ordinal":)\d+')


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
    for _ in range(MAX_CHAIN):
        name = base.get("thread_id")
        found = locate.find_rollout(path, name) if isinstance(name, str) else None
        if found is None:
            return f"the rollout {name} that the history begins in is not here"
        if found in seen:
            return f"the rollout {name} builds upon itself"
        seen.add(found)
        size, further = _size_and_base(found)
        end = base.get("end_byte_offset")
        if isinstance(end, int) and size < end:
            return f"the rollout {name} has {size} bytes, not the {end} that the history begins with"
        if further is None:
            return None
        base = further
    return "the history has no beginning"


def _size_and_base(path: Path) -> tuple[int, dict[str, JSON] | None]:
    """The unpacked size of a rollout, and the base it builds upon itself."""
    try:
        with open_source(path) as stream:
            size = sum(map(len, iter(lambda: stream.read(_CHUNK_BYTES), b"")))
        head = _read_head(path)
    except (OSError, SourceUnreadable):
        return 0, None
    base = head["payload"].get("history_base") if head is not None else None
    return size, base if isinstance(base, dict) else None


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
        if found is None or found in seen or len(seen) > MAX_CHAIN or type(end) is not int:
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
