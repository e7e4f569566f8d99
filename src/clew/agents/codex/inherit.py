"""Lines that a rollout copied from another thread: a fork or a sub-agent begins with its parent's history."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from clew.agents.base import SourceFile, open_main
from clew.agents.codex import locate
from clew.agents.codex.lines import Line, Payload
from clew.errors import SourceUnreadable
from clew.io.compress import open_source
from clew.io.records import read_lines
from clew.model.time import parse_time

BURST = 1.0
"""Copied lines are written at once: a longer pause, in seconds, ends them where the parent cannot be asked."""

_STAMPED = re.compile(rb'\{"timestamp":"[^"]*",(?:"ordinal":\d+,)?')


class Copied:
    """Finds the line up to which a rollout is a copy."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source
        self.boundary = 0
        self.active = False
        """True while the lines that pass decide."""
        self._start: int | None = None
        self._time: str | None = None

    def begin(self, meta: Payload) -> None:
        """The rollout's own head: newer ones say which line is the first of their own."""
        self._start = meta.subagent_history_start_ordinal
        self.active = self._start is not None

    def found(self, thread: str, line: int) -> None:
        """The head of another thread stands on a line: from there on it is a copy, as far as they agree."""
        if line <= self.boundary:
            return
        self.boundary = line
        parent = locate.find_rollout(self._source.path, thread)
        agreeing = common_lines(self._source, line, parent) if parent is not None else 0
        if agreeing:
            self.boundary = line + agreeing - 1
        else:
            self.active = True

    def see(self, number: int, line: Line) -> None:
        """Let a line decide whether the copy goes on."""
        if self._start is not None:
            if line.ordinal is not None and line.ordinal < self._start:
                self.boundary = number
            else:
                self.active = False
            return
        times = [parse_time(time) for time in (self._time, line.timestamp)]
        self._time = line.timestamp
        if any((later - earlier).total_seconds() > BURST for earlier, later in pairwise(t for t in times if t)):
            self.active = False
        else:
            self.boundary = number


def common_lines(source: SourceFile, first: int, parent: Path) -> int:
    """How many lines of the source, from `first` on, are those of the parent, apart from their times."""
    count = 0
    try:
        with open_main(source) as own, open_source(parent) as other:
            lines = read_lines(own)
            for _ in range(first - 1):
                next(lines, None)
            for (text, *_), (theirs, *_) in zip(lines, read_lines(other), strict=False):
                if _STAMPED.sub(b"", text, count=1) != _STAMPED.sub(b"", theirs, count=1):
                    break
                count += 1
    except (OSError, SourceUnreadable):
        return count
    return count
