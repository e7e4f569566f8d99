"""Masks files: JSON lines, JSON documents and plain text. Records without a finding stay byte for byte.

Bytes that are not UTF-8 pass through; `mask_text_file` recodes files in UTF-16 and UTF-32.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from io import BytesIO
from itertools import groupby, zip_longest
from typing import BinaryIO, Literal, NamedTuple, cast

from clew.io.records import CHUNK, MAX_RECORD_BYTES, is_whole, pieces_of, read_chunks
from clew.model.json import JSON
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
from clew.redact.redactor import Redactor, chunk_lines

Open = Callable[[], BinaryIO]
"""Opens a file at its beginning; compressed files cannot seek."""
PIECE_BYTES = 64 << 20
"""Plain text is scanned in pieces of about this size, which end where a line does."""
_MAX_BLANK_LINES = 100_000
"""At most this many blank lines are read to detect the format of a file."""
_ORIGIN = ORIGIN.encode()
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ENCODING_SAMPLE_BYTES = 4096


def mask_file(opened: Open, redactor: Redactor, path: str | None = None) -> Iterator[bytes]:
    """Yield the bytes of a file, masked. It is read twice, so that values found late are masked early."""
    learn_file(opened, redactor, path)
    for part in _file_parts(opened):
        # All of it is scanned again, since the file may have been rewritten; cached records cost little.
        yield from (masked for _, masked in _masked(part, redactor, path))


def mask_text_file(opened: Open, redactor: Redactor, path: str | None = None) -> Iterator[bytes]:
    """Yield the bytes of a file that may be in UTF-16 or UTF-32, masked, in the encoding of the file."""
    encoding = _wide_encoding(opened)
    if encoding is None:
        return mask_file(opened, redactor, path)
    masked = mask_file(partial(_open_as_utf8, opened, encoding), redactor, path)
    return codecs.iterencode(codecs.iterdecode(masked, "utf-8", "surrogatepass"), encoding, "surrogatepass")


def _wide_encoding(opened: Open) -> str | None:
    """Return the encoding of a file whose characters have two or four bytes each, as PowerShell writes them."""
    with opened() as stream:
        head = stream.read(_ENCODING_SAMPLE_BYTES)
    for mark, encoding in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return encoding
    # Without a mark, every second byte of a Latin text is zero.
    half = len(head) // 2
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        if half and head[first::2].count(0) > half * 0.7 and head[1 - first :: 2].count(0) < half * 0.3:
            return encoding
    return None


def _open_as_utf8(opened: Open, encoding: str) -> BinaryIO:
    return cast("BinaryIO", codecs.EncodedFile(opened(), "utf-8", encoding, "replace"))


def masked_parts(opened: Open, redactor: Redactor, path: str | None = None) -> Iterator[tuple[bytes, bytes]]:
    """Yield a file that was learned from in parts, each as it is and masked; a line that changed is one part."""
    for part in _file_parts(opened):
        for raw, masked in _masked(part, redactor, path):
            if raw == masked or not part.one_record_per_line:
                yield raw, masked
            else:
                yield from zip_longest(BytesIO(raw), BytesIO(masked), fillvalue=b"")


def _masked(part: _FilePart, redactor: Redactor, path: str | None) -> Iterator[tuple[bytes, bytes]]:
    if part.too_long and redactor.settings.profile != "none":
        yield part.text, _mask_too_long(part, redactor)
        return
    for is_origin, text in _by_origin(part):
        if is_origin:
            yield text, b""  # The packed original of a converted session is dropped, with its secrets.
            continue
        bare = _without_packed(text, redactor)
        parts = redactor.masked_lines(bare, path, one_record_per_line=part.one_record_per_line)
        if bare == text:
            for raw, masked in parts:
                yield (
                    raw,
                    masked if masked is raw else _stamped(raw, masked, redactor.stamp(), part.one_record_per_line),
                )
        else:
            masked = b"".join(masked for _, masked in parts)
            yield text, _stamped(text, masked, redactor.stamp(), part.one_record_per_line)


def _mask_too_long(part: _FilePart, redactor: Redactor) -> bytes:
    """Mask a piece of a line that is too long to be scanned: one marker replaces all its pieces."""
    marker = f'"{redactor.mask_unscanned()}"'.encode() if part.too_long == "first" else b""
    return marker + (b"\n" if part.text.endswith(b"\n") else b"")


def _stamped(raw: bytes, masked: bytes, stamp: dict[str, JSON], one_record_per_line: bool) -> bytes:
    """Add the stamp to the documents that changed: each line may be one, or the whole text."""
    if BEGINNING not in masked or raw == masked:
        return masked
    if not one_record_per_line:
        return stamped(masked, stamp)
    put = stamper(stamp)
    lines = zip_longest(BytesIO(raw), BytesIO(masked), fillvalue=b"")
    return b"".join([new if old == new else put(new) for old, new in lines])


def _without_packed(text: bytes, redactor: Redactor) -> bytes:
    if not redactor.has_origin or redactor.settings.profile == "none":
        return text
    return without_long_base64(text, redactor.marker("", PACKED).encode())


def _by_origin(part: _FilePart) -> Iterator[tuple[bool, bytes]]:
    """Split a part by whether lines belong to the packed original that a converted session carries."""
    if _ORIGIN not in part.text:
        yield False, part.text
    elif part.one_record_per_line:
        for is_origin, lines in groupby(BytesIO(part.text), is_origin_line):
            yield is_origin, b"".join(lines)
    else:
        yield is_origin_record(part.text), part.text


def learn_file(opened: Open, redactor: Redactor, path: str | None = None) -> None:
    """Learn the secrets of a file without masking it."""
    for part in _file_parts(opened):
        if part.too_long:
            redactor.is_clean = False
            continue
        redactor.has_origin = redactor.has_origin or names_origin(part.text)
        for is_origin, text in _by_origin(part):
            if not is_origin:
                redactor.learn_lines(text, path, one_record_per_line=part.one_record_per_line)
    redactor.index_learned_values()


def mask(raw: bytes, redactor: Redactor, path: str | None = None) -> bytes:
    """Mask a line, a document or a text."""
    return masks([raw], redactor, path)[0]


def masks(raws: Sequence[bytes], redactor: Redactor, path: str | None = None) -> list[bytes]:
    """Mask lines, documents or texts; the packed original of a converted session is dropped."""
    kept = [b"" if is_origin_line(raw) else _without_packed(raw, redactor) for raw in raws]
    pairs = zip(kept, redactor.records(kept, path), strict=True)
    return [old if new == old else stamped(new, redactor.stamp()) for old, new in pairs]


class _FilePart(NamedTuple):
    """A part of a file."""

    text: bytes
    one_record_per_line: bool
    """Every line is a record; else the part is one text."""
    too_long: Literal["", "first", "next"] = ""
    """Whether it is a piece of a line that is too long to be scanned, the first or a later one."""


def _file_parts(opened: Open) -> Iterator[_FilePart]:
    """Read a file in parts: many lines at a time if each is a record, else all of it, up to `PIECE_BYTES`."""
    with opened() as stream:
        while True:
            head, is_first_whole = _head(stream)
            if is_first_whole:
                break
            yield from _to_parts(((piece, False) for piece in pieces_of(head, stream)), one_record_per_line=True)
        one_record_per_line = head.lstrip()[:1] == b"{" and read(to_text(head.lstrip())) is not MISSING
        size = CHUNK if one_record_per_line else min(PIECE_BYTES, MAX_RECORD_BYTES)
        yield from _to_parts(_prepend(head, read_chunks(stream, size)), one_record_per_line)


def _head(stream: BinaryIO) -> tuple[bytes, bool]:
    """Read up to the first line that is not blank; return also whether that line is whole."""
    lines: list[bytes] = []
    for line in iter(lambda: stream.readline(MAX_RECORD_BYTES), b""):
        lines.append(line)
        if line.strip() or len(lines) == _MAX_BLANK_LINES or not is_whole(line):
            break
    return b"".join(lines), not lines or is_whole(lines[-1])


def _to_parts(chunks: Iterator[tuple[bytes, bool]], one_record_per_line: bool) -> Iterator[_FilePart]:
    """Turn chunks of lines, and pieces of lines that are too long, into parts of a file."""
    is_inside = False
    for chunk, whole in chunks:
        if not whole:
            yield _FilePart(chunk, True, "next" if is_inside else "first")
            is_inside = not chunk.endswith(b"\n")
        elif one_record_per_line:
            yield from (_FilePart(text, True) for text in chunk_lines(chunk))
        elif chunk:
            yield _FilePart(chunk, False)


def _prepend(head: bytes, chunks: Iterator[tuple[bytes, bool]]) -> Iterator[tuple[bytes, bool]]:
    first, is_first_whole = next(chunks, (b"", True))
    if is_first_whole:
        yield head + first, True
    else:
        yield from ((head, True), (first, False))
    yield from chunks
