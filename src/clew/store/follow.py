"""A log as it grows: whole records, in order, each once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from clew.io.codec import NOT_JSON, loads
from clew.model.json import JSON
from clew.store.tree import number_of, whole_lines


def follow(path: Path, after: int, poll: float, patience: float | None) -> Iterator[dict[str, JSON]]:
    """Records behind number `after`, those to come included."""
    end = 0
    quiet_since = time.monotonic()
    while True:
        came = False
        for chunk in _grown(path, end):
            end += len(chunk)
            for line in chunk.split(b"\n"):
                if line and _is_behind(line, after):
                    came = True
                    yield from _record(line)
        if came:
            quiet_since = time.monotonic()
        elif patience is not None and time.monotonic() - quiet_since >= patience:
            return
        else:
            time.sleep(poll)


def _is_behind(line: bytes, after: int) -> bool:
    number = number_of(line)
    return number > after or not number


def _grown(path: Path, end: int) -> Iterator[bytes]:
    try:
        yield from whole_lines(path, end)
    except FileNotFoundError:
        return


def _record(line: bytes) -> Iterator[dict[str, JSON]]:
    try:
        value = loads(line)
    except NOT_JSON:
        return
    if isinstance(value, dict):
        yield value
