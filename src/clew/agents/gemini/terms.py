"""The words of a chat's records, what its token counts mean, and how a file begins. Loads nothing heavy."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import BinaryIO

from clew.io.codec import NOT_JSON, loads
from clew.model.json import JSON

PATCH, REWIND, MESSAGES, HISTORY = "$set", "$rewindTo", "messages", "history"
CHANCE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""An id made by chance is the same in no two sessions, unless one was copied."""
HEAD = 1 << 16
BOM = b"\xef\xbb\xbf"


def usage_of(tokens: Mapping[str, JSON]) -> dict[str, int]:
    """The counts in the model's terms; an object without any count above zero says nothing."""
    counts = {name: count for name, count in tokens.items() if type(count) is int and count >= 0}
    if not any(counts.values()):
        return {}
    usage: dict[str, int] = {}
    cached, thoughts = counts.get("cached"), counts.get("thoughts")
    if "input" in counts:
        usage["input_tokens"] = max(0, counts["input"] - (cached or 0))
    if "output" in counts:
        usage["output_tokens"] = counts["output"] + (thoughts or 0)
    if cached is not None:
        usage["cache_read_tokens"] = cached
    if thoughts is not None:
        usage["reasoning_tokens"] = thoughts
    return usage


class Joined:
    """A stream with the bytes in front of it that were read already."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head, self._stream = io.BytesIO(head), stream

    def read(self, size: int) -> bytes:
        """At most so many bytes, and never more than a head."""
        size = min(size, HEAD)
        return self._head.read(size) or self._stream.read(size)

    def readline(self, size: int) -> bytes:
        line = self._head.readline(size)
        if line.endswith(b"\n") or len(line) == size:
            return line
        return line + self._stream.readline(size - len(line))


def is_document(head: bytes, is_json: bool) -> bool:
    """True for one document over several lines, or an array; the name decides only where the text does not."""
    text = head.removeprefix(BOM).lstrip()
    end = text.find(b"\n", 0, HEAD)
    line = text[: end if end >= 0 else HEAD].strip()
    if line[:1] == b"[" or line == b"{":
        return True
    try:
        value = loads(line)
    except NOT_JSON:
        return is_json and line[:1] == b"{"
    return isinstance(value, dict) and type(value.get(HISTORY)) is list
