"""Files as programs wrote them, masked: JSON lines, JSON, and plain text. What holds nothing stays byte for byte.

Bytes that are no UTF-8 pass through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from itertools import islice
from operator import itemgetter
from typing import BinaryIO

from clew.io.records import MAX_LINE, read_texts
from clew.model.json import JSON
from clew.redact.jsontext import MISSING, read
from clew.redact.stamping import BEGINNING, stamped
from clew.redact.tree import Redactor, batches

Open = Callable[[], BinaryIO]
"""Opens a file at its beginning; packed ones cannot go back there."""
PIECE = 64 << 20
"""Plain text is looked at in pieces of about this size, which end where a line does."""
_ORIGIN = b'{"type":"clew-origin",'


def mask_file(opened: Open, redactor: Redactor, path: str | None = None) -> Iterator[bytes]:
    """The bytes of a file, masked. It is read twice, so that what is found late is known early."""
    learned = learn_file(opened, redactor, path)
    parts = _parts(opened)
    if redactor.is_clean:
        yield from (b"" if raw.startswith(_ORIGIN) else raw for raw in islice(parts, learned))
    yield from (masked for _, masked in _masked(parts, redactor, path))


def masked_parts(opened: Open, redactor: Redactor, path: str | None = None) -> Iterator[tuple[bytes, bytes]]:
    """The parts of a file that was learned from, each as it is and as it is masked; parts of JSON lines are lines."""
    yield from _masked(_parts(opened), redactor, path)


def _masked(parts: Iterable[bytes], redactor: Redactor, path: str | None) -> Iterator[tuple[bytes, bytes]]:
    for batch in batches(parts, len):
        # A packed original goes, secrets and all.
        kept = [b"" if raw.startswith(_ORIGIN) else raw for raw in batch]
        for number, masked in redactor.changed(kept, path).items():
            kept[number] = stamped(masked, redactor.stamp()) if masked.startswith(BEGINNING) else masked
        yield from zip(batch, kept, strict=True)


def learn_file(opened: Open, redactor: Redactor, path: str | None = None) -> int:
    """Learn what a file holds, without masking it; returns how many parts it has."""
    return redactor.learn_lines(_parts(opened), _value, path)


def mask(raw: bytes, redactor: Redactor, path: str | None = None) -> bytes:
    """A line, a document or a text, masked."""
    return masks([raw], redactor, path)[0]


def masks(raws: Sequence[bytes], redactor: Redactor, path: str | None = None) -> list[bytes]:
    """Lines, documents or texts, masked; the packed original of a converted session goes, secrets and all."""
    texts = ["" if raw.startswith(_ORIGIN) else _text(raw) for raw in raws]
    found = []
    for raw, text, masked in zip(raws, texts, redactor.lines(texts, path), strict=True):
        is_same = masked is text or masked == text
        found.append((raw if text else b"") if is_same else stamped(_bytes(masked), redactor.stamp()))
    return found


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _value(raw: bytes) -> JSON:
    if raw.startswith(_ORIGIN):
        return None
    value = read(_text(raw)) if raw.lstrip()[:1] in (b"{", b"[") else MISSING
    return _text(raw) if value is MISSING else value


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
            yield from map(itemgetter(0), read_texts(stream))
            return
        while part := head + stream.read(PIECE):
            yield part + stream.readline(MAX_LINE)
            head = b""
