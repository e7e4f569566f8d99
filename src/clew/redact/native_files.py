"""Files as programs wrote them, masked: JSON lines, JSON, and plain text. What holds nothing stays byte for byte.

Bytes that are no UTF-8 pass through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from itertools import groupby, zip_longest
from typing import BinaryIO, Literal, NamedTuple

from clew.io.records import CHUNK, MAX_RECORD_BYTES, is_whole, pieces_of, read_chunks
from clew.model.json import JSON
from clew.redact.batching import stretches
from clew.redact.document_stamp import BEGINNING, stamped, stamper
from clew.redact.json_text import MISSING, read, to_text
from clew.redact.packed import (
    ORIGIN,
    PACKED,
    is_origin_line,
    is_origin_record,
    names_origin,
    without_long_base64,
)
from clew.redact.redactor import Redactor

Open = Callable[[], BinaryIO]
"""Opens a file at its beginning; packed ones cannot go back there."""
PIECE = 64 << 20
"""Plain text is looked at in pieces of about this size, which end where a line does."""
_MOST_BLANK = 100_000
"""So many blank lines are read before it is decided what a file is."""
_ORIGIN = ORIGIN.encode()


def mask_file(opened: Open, redactor: Redactor, path: str | None = None) -> Iterator[bytes]:
    """The bytes of a file, masked. It is read twice, so that what is found late is known early."""
    learn_file(opened, redactor, path)
    for stretch in _stretches(opened):
        # All of it is scanned again, since the file may have been rewritten: what was scanned before costs little.
        yield from (masked for _, masked in _masked(stretch, redactor, path))


def masked_parts(opened: Open, redactor: Redactor, path: str | None = None) -> Iterator[tuple[bytes, bytes]]:
    """A file that was learned from, in parts, each as it is and as it is masked; a line that changed is one."""
    for stretch in _stretches(opened):
        for raw, masked in _masked(stretch, redactor, path):
            if raw == masked or not stretch.apart:
                yield raw, masked
            else:
                yield from zip_longest(BytesIO(raw), BytesIO(masked), fillvalue=b"")


def _masked(stretch: _Stretch, redactor: Redactor, path: str | None) -> Iterator[tuple[bytes, bytes]]:
    if stretch.unread and redactor.setting.profile != "none":
        yield stretch.text, _unread(stretch, redactor)
        return
    for is_origin, text in _by_origin(stretch):
        if is_origin:
            yield text, b""  # A packed original goes, secrets and all.
            continue
        bare = _without_packed(text, redactor)
        parts = redactor.masked_lines(bare, path, apart=stretch.apart)
        if bare == text:
            for raw, masked in parts:
                yield raw, masked if masked is raw else _stamped(raw, masked, redactor.stamp(), stretch.apart)
        else:
            masked = b"".join(masked for _, masked in parts)
            yield text, _stamped(text, masked, redactor.stamp(), stretch.apart)


def _unread(stretch: _Stretch, redactor: Redactor) -> bytes:
    """A piece of a line that is too long to be looked at: one marker stands for all of them."""
    marker = f'"{redactor.unread()}"'.encode() if stretch.unread == "first" else b""
    return marker + (b"\n" if stretch.text.endswith(b"\n") else b"")


def _stamped(raw: bytes, masked: bytes, stamp: dict[str, JSON], apart: bool) -> bytes:
    """The text with the stamp in those documents that changed: each line may be one, or all of it."""
    if BEGINNING not in masked or raw == masked:
        return masked
    if not apart:
        return stamped(masked, stamp)
    put = stamper(stamp)
    lines = zip_longest(BytesIO(raw), BytesIO(masked), fillvalue=b"")
    return b"".join([new if old == new else put(new) for old, new in lines])


def _without_packed(text: bytes, redactor: Redactor) -> bytes:
    if not redactor.has_origin or redactor.setting.profile == "none":
        return text
    return without_long_base64(text, redactor.marker("", PACKED).encode())


def _by_origin(stretch: _Stretch) -> Iterator[tuple[bool, bytes]]:
    """The text of a stretch in parts, each with whether it belongs to the original that a converted session carries."""
    if _ORIGIN not in stretch.text:
        yield False, stretch.text
    elif stretch.apart:
        for is_origin, lines in groupby(BytesIO(stretch.text), is_origin_line):
            yield is_origin, b"".join(lines)
    else:
        yield is_origin_record(stretch.text), stretch.text


def learn_file(opened: Open, redactor: Redactor, path: str | None = None) -> None:
    """Learn what a file holds, without masking it."""
    for stretch in _stretches(opened):
        if stretch.unread:
            redactor.is_clean = False
            continue
        redactor.has_origin = redactor.has_origin or names_origin(stretch.text)
        for is_origin, text in _by_origin(stretch):
            if not is_origin:
                redactor.learn_lines(text, path, apart=stretch.apart)
    redactor.settle()


def mask(raw: bytes, redactor: Redactor, path: str | None = None) -> bytes:
    """A line, a document or a text, masked."""
    return masks([raw], redactor, path)[0]


def masks(raws: Sequence[bytes], redactor: Redactor, path: str | None = None) -> list[bytes]:
    """Lines, documents or texts, masked; the packed original of a converted session goes, secrets and all."""
    kept = [b"" if is_origin_line(raw) else _without_packed(raw, redactor) for raw in raws]
    pairs = zip(kept, redactor.records(kept, path), strict=True)
    return [old if new == old else stamped(new, redactor.stamp()) for old, new in pairs]


class _Stretch(NamedTuple):
    """A part of a file."""

    text: bytes
    apart: bool
    """Every line of it is a record."""
    unread: Literal["", "first", "next"] = ""
    """Whether it is a piece of a line that is too long to be looked at, the first or a later one."""


def _stretches(opened: Open) -> Iterator[_Stretch]:
    """Many lines of a file at a time, where every line is for itself; else all of it, unless that is too much."""
    with opened() as stream:
        while True:
            head, is_first_whole = _head(stream)
            if is_first_whole:
                break
            yield from _placed(((piece, False) for piece in pieces_of(head, stream)), apart=True)
        apart = head.lstrip()[:1] == b"{" and read(to_text(head.lstrip())) is not MISSING
        size = CHUNK if apart else min(PIECE, MAX_RECORD_BYTES)
        yield from _placed(_behind(head, read_chunks(stream, size)), apart)


def _head(stream: BinaryIO) -> tuple[bytes, bool]:
    """The lines up to the first that is not blank, and whether that one is whole; many blank ones are enough."""
    lines: list[bytes] = []
    for line in iter(lambda: stream.readline(MAX_RECORD_BYTES), b""):
        lines.append(line)
        if line.strip() or len(lines) == _MOST_BLANK or not is_whole(line):
            break
    return b"".join(lines), not lines or is_whole(lines[-1])


def _placed(chunks: Iterator[tuple[bytes, bool]], apart: bool) -> Iterator[_Stretch]:
    """Chunks of lines, and the pieces of lines that are too long, as parts of a file."""
    is_inside = False
    for chunk, whole in chunks:
        if not whole:
            yield _Stretch(chunk, True, "next" if is_inside else "first")
            is_inside = not chunk.endswith(b"\n")
        elif apart:
            yield from (_Stretch(text, True) for text in stretches([(chunk, True)]))
        elif chunk:
            yield _Stretch(chunk, False)


def _behind(head: bytes, chunks: Iterator[tuple[bytes, bool]]) -> Iterator[tuple[bytes, bool]]:
    first, is_first_whole = next(chunks, (b"", True))
    if is_first_whole:
        yield head + first, True
    else:
        yield from ((head, True), (first, False))
    yield from chunks
