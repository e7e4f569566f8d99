"""A rollout with the history that it builds upon: a fork, or what is left after a revert, only refers to it."""

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

_CHAIN = 100
"""Upon so many rollouts one may build."""
_PIECE = 1 << 20
_ORDINAL = re.compile(rb'\A(\{"timestamp":"[^"]*","ordinal":)\d+')


class _Stretch(NamedTuple):
    """A rollout, and how many of its bytes are part of the history; those of a packed one are counted unpacked."""

    path: Path
    end: int


def gathered(path: Path, size: int) -> Iterator[bytes] | None:
    """The lines of a rollout and of all it builds upon; None where it builds upon nothing, or that is not here."""
    own = _Stretch(path, sys.maxsize if path.suffix in SUFFIXES else size)
    try:
        head = _head(path)
        stretches = _stretches(own, head)
    except SourceUnreadable:
        return None
    return _lines(head, stretches) if head is not None and len(stretches) > 1 else None


def _head(path: Path) -> dict[str, JSON] | None:
    with open_source(path) as stream:
        text = next(read_lines(stream), (b"",))[0]
    try:
        head = loads(text)
    except NOT_JSON:
        head = None
    is_head = isinstance(head, dict) and head.get("type") == "session_meta" and isinstance(head.get("payload"), dict)
    return head if is_head else None


def _stretches(own: _Stretch, head: dict[str, JSON] | None) -> list[_Stretch]:
    """The rollouts that hold the history, the oldest first; none where something of it is missing."""
    stretches, seen = [own], {own.path}
    while head is not None and (base := head["payload"].get("history_base")) is not None:
        name, end = (base.get("thread_id"), base.get("end_byte_offset")) if isinstance(base, dict) else (None, None)
        found = locate.find_rollout(own.path, name) if isinstance(name, str) else None
        if found is None or found in seen or len(seen) > _CHAIN or type(end) is not int:
            return []
        if not _has_line_end(found, end):
            return []
        stretches.insert(0, _Stretch(found, end))
        seen.add(found)
        head = _head(found)
    # What begins without a head would lose its first line.
    return stretches if head is not None else []


def _has_line_end(path: Path, end: int) -> bool:
    """True where so many bytes of a rollout, once it is unpacked, are whole lines."""
    left, piece = end, b""
    with open_source(path) as stream:
        while left > 0 and (piece := stream.read(min(left, _PIECE))):
            left -= len(piece)
    return left == 0 and piece.endswith(b"\n")


def _lines(head: dict[str, JSON], stretches: list[_Stretch]) -> Iterator[bytes]:
    """A head that builds upon nothing, then what stands behind the heads, numbered through."""
    numbers = count()
    payload = {name: value for name, value in head["payload"].items() if name != "history_base"}
    yield _numbered(dumps({**head, "payload": payload}), next(numbers)) + b"\n"
    for path, end in stretches:
        with open_source(path) as stream:
            for text, line, start, is_whole in read_lines(stream):
                if start >= end:
                    break
                if line > 1:
                    yield _numbered(text, next(numbers)) if is_whole else text


def _numbered(text: bytes, number: int) -> bytes:
    return _ORDINAL.sub(rb"\g<1>%d" % number, text)
