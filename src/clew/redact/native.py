"""Files as programs wrote them, masked: JSON lines, JSON, and plain text. What holds nothing stays byte for byte.

Bytes that are no UTF-8 pass through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO
from typing import BinaryIO

from clew.io.records import MAX_LINE, read_lines
from clew.model.json import JSON
from clew.redact.jsontext import MISSING, read
from clew.redact.stamping import stamped
from clew.redact.tree import Redactor

Open = Callable[[], BinaryIO]
"""Opens a file at its beginning; packed ones cannot go back there."""
PIECE = 64 << 20
"""Plain text is looked at in pieces of about this size, which end where a line does."""
_ORIGIN = b'{"type":"clew-origin",'


def mask_file(opened: Open, redactor: Redactor, path: str | None = None) -> Iterator[bytes]:
    """The bytes of a file, masked. It is read twice, so that what is found late is known early."""
    learned = learn_file(opened, redactor, path)
    for number, raw in enumerate(_parts(opened)):
        if redactor.is_clean and number < learned and not raw.startswith(_ORIGIN):
            yield raw
        else:
            yield mask(raw, redactor, path)


def masked_parts(opened: Open, redactor: Redactor, path: str | None = None) -> Iterator[tuple[bytes, bytes]]:
    """The parts of a file that was learned from, each as it is and as it is masked; parts of JSON lines are lines."""
    for raw in _parts(opened):
        yield raw, mask(raw, redactor, path)


def learn_file(opened: Open, redactor: Redactor, path: str | None = None) -> int:
    """Learn what a file holds, without masking it; returns how many parts it has."""
    return redactor.learn(_learned(opened), path)


def mask(raw: bytes, redactor: Redactor, path: str | None = None) -> bytes:
    """A line, a document or a text, masked."""
    if raw.startswith(_ORIGIN):
        return b""  # the packed original of a converted session, secrets and all
    text = _text(raw)
    masked = redactor.line(text, path)
    if masked is text or masked == text:
        return raw
    return stamped(masked.encode("utf-8", "surrogateescape"), redactor.stamp())


def _learned(opened: Open) -> Iterator[JSON]:
    for raw in _parts(opened):
        if raw.startswith(_ORIGIN):
            yield None
            continue
        value = read(_text(raw)) if raw.lstrip()[:1] in (b"{", b"[") else MISSING
        yield _text(raw) if value is MISSING else value


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _parts(opened: Open) -> Iterator[bytes]:
    """The lines of a file where every line is for itself; else all of it, unless that is too much."""
    with opened() as stream:
        head = b""
        for line in stream:
            head += line
            if line.strip():
                break
        if head.lstrip()[:1] == b"{" and read(_text(head.lstrip())) is not MISSING:
            yield from BytesIO(head)
            yield from (text for text, _, _, _ in read_lines(stream))
            return
        while part := head + stream.read(PIECE):
            yield part + stream.readline(MAX_LINE)
            head = b""
