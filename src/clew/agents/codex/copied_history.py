"""Lines that a rollout copied from another thread: a fork or a sub-agent begins with its parent's history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Raw

from clew.agents.base import SourceFile, open_main
from clew.agents.codex import locate
from clew.agents.codex.records import AnyRecord
from clew.errors import SourceUnreadable
from clew.io.codec import NOT_JSON
from clew.io.compress import open_source
from clew.io.records import read_lines
from clew.model.time import parse_time

BURST_SECONDS = 1.0
"""Copied lines are written at once: a longer pause ends them where the parent is not at hand."""

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
