"""Read the value that begins at a position: in quotes of any kind and depth of escaping, or bare."""

from __future__ import annotations

import re
from typing import NamedTuple

from clew.redact.matcher import TEXT_SEPARATOR
from clew.redact.value_checks import is_phrase

MAX_VALUE_BYTES = 4096
_MAX_BACKSLASHES = 64
_MAX_ELLIPSIS_BYTES = 8
_CORNER_QUOTES = {b"\xe3\x80\x8c": b"\xe3\x80\x8d", b"\xe3\x80\x8e": b"\xe3\x80\x8f", b"\xc2\xab": b"\xc2\xbb"}
_OPENING_QUOTE = re.compile(
    rb"(?:[bfruBFRUL@$]{1,2}(?=\\*[\"']))?(?:\\*(?:\"\"\"|'''|[\"'`])|\xe2\x80[\x9c-\x9e\x98]|\xe3\x80[\x8c\x8e]|\xc2\xab)"
)
_BARE = re.compile(rb"[^\s\"'`<>,;\\|]{1,4096}")
_BARE_REST = re.compile(_BARE.pattern.replace(b"{1,4096}", b"*"))
_ELLIPSIS = re.compile(rb"[ \t]*(?:\xe2\x80\xa6|\.\.\.)[ \t]*\Z")
_PHRASE_LINE = re.compile(rb"([a-z][a-z0-9]{1,19}(?:[ -][a-z][a-z0-9]{1,19}){3,23})(?=[ \t]*(?:[\r\n\0#]|\Z))")


class Value(NamedTuple):
    """The position of a value, without its quotes."""

    start: int
    end: int
    quoted: bool
    is_truncated: bool = False
    """The text around it was cut off before its end."""


def read(text: bytes, position: int, *, is_url_parameter: bool = False) -> Value | None:
    """Read the value that begins here."""
    opening = _OPENING_QUOTE.match(text, position)
    if opening is not None:
        return _read_quoted(text, opening)
    match = _BARE.match(text, position)
    if match is None:
        return None
    end = match.end()
    if is_url_parameter and (stop := text.find(b"&", position, end)) >= 0:
        end = stop
    if _ends_text(text, end) and (cut := _ELLIPSIS.search(text, max(position, end - _MAX_ELLIPSIS_BYTES), end)):
        return Value(position, cut.start(), False, is_truncated=True) if cut.start() > position else None
    return Value(position, _without_closing_brackets(text, position, end), False)


def read_all(text: bytes, position: int, *, is_url_parameter: bool = False) -> list[Value]:
    """Return the values that may begin here: the usual one first, then others that a quote allows."""
    value = read(text, position, is_url_parameter=is_url_parameter)
    opening = _OPENING_QUOTE.match(text, position)
    if value is None or opening is None:
        return [value] if value else []
    # Where a backslash before a quote is no escape, the value ends at the quote. A quote that is never closed may be
    # followed by other text.
    others = [_read_quoted(text, opening, has_escapes=False), read(text, value.start)]
    return list(dict.fromkeys([value, *[Value(*other[:2], True) for other in others if other]]))


def end_of_long_value(text: bytes, value: Value) -> int:
    """Return the end of a value that may be longer than what was read of it."""
    rest = _BARE_REST.match(text, value.end) if value.end - value.start == MAX_VALUE_BYTES else None
    return rest.end() if rest else value.end


def read_phrase_line(text: bytes, position: int) -> int | None:
    """Return the end of a passphrase that begins here, has no quotes, and goes to the end of its line."""
    match = _PHRASE_LINE.match(text, position)
    return match.end(1) if match is not None and is_phrase(match[1]) else None


def _read_quoted(text: bytes, opening: re.Match[bytes], *, has_escapes: bool = True) -> Value | None:
    start, mark = opening.end(), opening[0].lstrip(b"bfruBFRUL@$\\")
    quote = _CORNER_QUOTES.get(mark, b"\xe2\x80" if mark[:1] == b"\xe2" else mark)
    limit = min(len(text), start + MAX_VALUE_BYTES)
    if len(quote) < 3 or quote[:1] == b"\xe2":
        line = text.find(b"\n", start, limit)
        limit = limit if line < 0 else line
    depth, end = opening[0].count(b"\\"), text.find(quote, start, limit)
    while has_escapes and end >= 0 and _is_escaped(text[max(start, end - _MAX_BACKSLASHES) : end], depth):
        end = text.find(quote, end + 1, limit)
    is_truncated = False
    if end < 0:
        # A title or a preview that was cut off has no closing quote.
        cut = _ELLIPSIS.search(text, max(start, limit - _MAX_ELLIPSIS_BYTES), limit)
        end = cut.start() if cut else limit
        is_truncated = cut is not None or _ends_text(text, limit)
    end = start + len(text[start:end].rstrip(b"\\ \t"))
    start = end - len(text[start:end].lstrip(b" \t"))
    return Value(start, end, True, is_truncated) if end > start else None


def _ends_text(text: bytes, position: int) -> bool:
    """Return True where a text ends, or one of several that are searched together."""
    return position == len(text) or text.startswith(TEXT_SEPARATOR, position)


def _is_escaped(before: bytes, depth: int) -> bool:
    """Return True for a quote that does not end a value which began with so many backslashes and a quote."""
    count = len(before) - len(before.rstrip(b"\\"))
    return count > depth and (count - depth) % (2 * depth + 2) != 0


def _without_closing_brackets(text: bytes, start: int, end: int) -> int:
    """Leave out brackets that were opened before the value, and the punctuation behind it."""
    for opener, closer in ((b"(", 0x29), (b"[", 0x5D), (b"{", 0x7D)):
        while end > start and text[end - 1] == closer and opener not in text[start:end]:
            end -= 1
    return end
