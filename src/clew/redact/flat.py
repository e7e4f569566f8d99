"""Texts as bytes, with the escapes of JSON made flat: each becomes as many characters as it had, so that places stay.

`\\n` becomes two line ends, at any depth of JSON in JSON: what follows an escaped line end then begins a word. Escaped
quotes stay; a reader of values takes the backslashes for part of the quote.
"""

from __future__ import annotations

import re

_CONTINUING = bytes(range(0x80, 0xC0))
_ESCAPES = {b"n": b"\n\n", b"r": b"\r\r", b"t": b"\t\t"}
_UNICODE = re.compile(rb"\\u[0-9A-Fa-f]{4}")
_RARE = 100


def to_bytes(text: str) -> bytes:
    """The text in UTF-8; lone surrogates pass."""
    return text.encode("utf-8", "surrogatepass")


def flatten(text: bytes) -> bytes:
    """The text without the escapes that hide the borders of values."""
    count = text.count(b"\\")
    if count * _RARE < len(text):
        return _flatten_few(text) if count else text
    for escape, plain in _ESCAPES.items():
        text = text.replace(b"\\" + escape, plain)
    return text


def _flatten_few(text: bytes) -> bytes:
    """The same, quicker where there are few: a search for one byte is several times as fast as one for two."""
    first, *rest = text.split(b"\\")
    pieces = [first]
    for piece in rest:
        plain = _ESCAPES.get(piece[:1])
        pieces += (b"\\", piece) if plain is None else (plain, piece[1:])
    return b"".join(pieces)


def without_escapes(record: bytes) -> bytes:
    """JSON text in which escapes are white space, but for those of signs; places stay. It has no escaped backslash."""
    plain = flatten(record).replace(b"\\b", b"  ").replace(b"\\f", b"  ")
    return _UNICODE.sub(b" " * 6, plain) if b"\\u" in plain else plain


def to_characters(text: bytes, places: list[int]) -> list[int]:
    """Places in bytes, ascending, as places in characters."""
    if text.isascii():
        return places
    characters, last, out = 0, 0, []
    for place in places:
        characters += len(text[last:place].translate(None, _CONTINUING))
        last = place
        out.append(characters)
    return out
