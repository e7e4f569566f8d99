"""Which message wrote each line of a file, from the versions that records prove. Pure; contents come from outside."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from clew.agents.file_evidence import How
from clew.file_history.diffs import lines_of
from clew.file_history.fingerprint import Certainty


class Origin(NamedTuple):
    """The message that wrote a line."""

    session: str
    agent: str
    message: int
    time: str | None
    prompt: tuple[int, str] | None
    certainty: Certainty
    how: How | None = None
    """How that is known."""


class Version(NamedTuple):
    """What the file was before a message, and what the message made of it. None is unknown; no file has no lines."""

    origin: Origin | None
    """None where the message only looked at it, or where it was put back."""
    before: bytes | None
    after: bytes | None
    is_put_back: bool = False
    """True for an undo or redo. Its lines keep the origins they had when the file last had this content."""


class Line(NamedTuple):
    """A line of the file as it is now."""

    number: int
    text: str
    origin: Origin | None


def blame(now: bytes, versions: Iterable[Version]) -> list[Line]:
    """For each line the message that wrote it. Versions come in the order of time."""
    lines: list[str] = []
    origins: list[Origin | None] = []
    known: dict[bytes, list[Origin | None]] = {}
    for version in versions:
        if version.before is not None:
            lines, origins = _carried(lines, origins, _lines(version.before), None)
            known[_key(lines)] = origins
        if version.after is not None:
            lines, origins = _carried(lines, origins, _lines(version.after), version.origin)
            if version.is_put_back:
                origins = known.get(_key(lines), origins)
            known[_key(lines)] = origins
    current = lines_of(now)
    _, origins = _carried(lines, origins, [_plain(line) for line in current], None)
    return [Line(number, text, origin) for number, (text, origin) in enumerate(zip(current, origins, strict=True), 1)]


def _key(lines: list[str]) -> bytes:
    """What tells one content from another, without holding it."""
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).digest()


def _lines(body: bytes) -> list[str]:
    return [_plain(line) for line in lines_of(body)]


def _plain(line: str) -> str:
    """What ends a line is not what was written."""
    return line.rstrip("\r\n")


def _carried(
    old: Sequence[str], origins: Sequence[Origin | None], new: list[str], origin: Origin | None
) -> tuple[list[str], list[Origin | None]]:
    """New lines with the origins of those that were there before; all others are of the given one."""
    result: list[Origin | None] = [origin] * len(new)
    for start, other, size in difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        result[other : other + size] = origins[start : start + size]
    return new, result
