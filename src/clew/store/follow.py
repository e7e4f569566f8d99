"""Follows a log as it grows, like `tail -f`: complete records, in order, each once."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from clew.agents.sage_agent.records import number_of
from clew.io.filesystem import SYSTEM
from clew.model.json import JSON
from clew.store.log import incomplete_last_line, record_in, whole_lines


def follow(path: Path, after: int, poll: float, patience: float | None) -> Iterator[dict[str, JSON]]:
    """Yield the records after number `after`, and those that are appended later."""
    end, inode = 0, 0
    quiet_since = time.monotonic()
    while True:
        came = False
        found, size = _identity(path)
        if found and inode not in (0, found) and size < end:
            end = after = 0  # another log has taken its place; one that `erase` rewrote is as long as before
        inode = found or inode
        end = _last_line_end(path, end)
        for chunk in _new_lines(path, end):
            end += len(chunk)
            for line in chunk.split(b"\n"):
                record = record_in(line) if line and _is_after(line, after) else None
                if record is not None:
                    came = True
                    yield record
        if came:
            quiet_since = time.monotonic()
        elif patience is not None and time.monotonic() - quiet_since >= patience:
            return
        else:
            time.sleep(poll)


def _identity(path: Path) -> tuple[int, int]:
    """The inode and size of a file; zeros where there is none."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_ino, found.st_size


def _last_line_end(path: Path, end: int) -> int:
    """Return the last line end up to a position: a record whose write failed is removed again."""
    try:
        with path.open("rb", buffering=0) as stream:
            end = min(end, os.fstat(stream.fileno()).st_size)
            return end - len(incomplete_last_line(SYSTEM, stream.fileno(), end))
    except OSError:
        return end


def _is_after(line: bytes, after: int) -> bool:
    number = number_of(line)
    return number > after or not number


def _new_lines(path: Path, end: int) -> Iterator[bytes]:
    try:
        yield from whole_lines(path, end)
    except FileNotFoundError:
        return
