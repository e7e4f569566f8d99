"""Answers of limited size: pages of rows and of texts, and cursors, by which clients ask for the next page."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from clew.errors import UsageError
from clew.mcp.arguments import Arguments
from clew.model.json import JSON
from clew.render.text_safety import visible

MAX_ANSWER_CHARS = 24_000
"""The size of the rows or texts of an answer. Some clients cut a much longer one before a model reads it."""
_ROW_CHARS = 100
"""About the size of a row without its text."""
MAX_VALUE_CHARS = 2_000
"""A longer text within a row is cut; `show` and `file_at` return the whole text."""
_DIGEST_CHARS = 12


class Position(NamedTuple):
    """Where a page begins: the number of a row or message, and of a character in it."""

    item: int = 0
    char: int = 0


def encode_cursor(asked: Arguments, position: Position) -> str:
    """The cursor for the page of the answer to these arguments that begins at a position."""
    body = msgspec.json.encode((_digest(asked), *position))
    return base64.urlsafe_b64encode(body).decode().rstrip("=")


def decode_cursor(asked: Arguments, cursor: str) -> Position:
    """The position in a cursor; without a cursor, the start.

    Raises UsageError if the cursor belongs to another tool or to other arguments.
    """
    if not cursor:
        return Position()
    try:
        body = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        digest, item, char = msgspec.json.decode(body, type=tuple[str, int, int])
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise UsageError("the cursor is not valid; ask again without it") from None
    if digest != _digest(asked):
        raise UsageError("the cursor belongs to other arguments; repeat them, or ask again without it")
    if not (0 <= item < 1 << 53 and 0 <= char < 1 << 53):
        raise UsageError("the cursor is not valid; ask again without it")
    return Position(item, char)


def _digest(asked: Arguments) -> str:
    text = msgspec.json.encode([type(asked).__name__, msgspec.structs.replace(asked, cursor="")], order="deterministic")
    return hashlib.sha256(text).hexdigest()[:_DIGEST_CHARS]


class Page(NamedTuple):
    """A page of rows."""

    rows: list[JSON]
    rest: Position | None
    """Where the next page begins; None on the last page."""


def page_of_rows(rows: Iterable[dict[str, JSON]], start: int, limit: int) -> Page:
    """The rows from `start` on that fit into an answer, with long texts cut; at least one, if there is one."""
    page_rows: list[JSON] = []
    chars = 0
    for number, row in enumerate(rows):
        if number < start:
            continue
        cut_row = cut_texts(row)
        row_chars = len(msgspec.json.encode(cut_row))
        if page_rows and (len(page_rows) >= limit or chars + row_chars > MAX_ANSWER_CHARS):
            return Page(page_rows, Position(number))
        page_rows.append(cut_row)
        chars += row_chars
    return Page(page_rows, None)


class TextPage(NamedTuple):
    """A page of texts, each with its number."""

    texts: list[tuple[int, str]]
    rest: Position | None
    """Where the next page begins; None on the last page."""


def page_of_texts(texts: Iterable[tuple[int, str]], start: Position) -> TextPage:
    """The texts that fit into an answer. The text with the number `start.item` begins at its character `start.char`.

    `texts` is read only as far as the page needs it.
    """
    pieces: list[tuple[int, str]] = []
    chars_left = MAX_ANSWER_CHARS
    for number, text in texts:
        begin = start.char if number == start.item else 0
        if chars_left <= 0:
            return TextPage(pieces, Position(number, begin))
        piece = text[begin : begin + chars_left]
        pieces.append((number, piece))
        chars_left -= len(msgspec.json.encode(piece)) + _ROW_CHARS
        if begin + len(piece) < len(text):
            return TextPage(pieces, Position(number, begin + len(piece)))
    return TextPage(pieces, None)


def cut_texts(value: JSON) -> JSON:
    """The value with every text of more than `MAX_VALUE_CHARS` cut."""
    return _map_texts(value, _cut_text)


def visible_texts(value: JSON) -> JSON:
    """The value with control and invisible characters shown: text that a user cannot see could instruct an agent."""
    return _map_texts(value, visible)


def _cut_text(text: str) -> str:
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}… ({len(text)} characters)"


def _map_texts(value: JSON, change: Callable[[str], str]) -> JSON:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _map_texts(item, change) for key, item in value.items()}
    return [_map_texts(item, change) for item in value] if isinstance(value, list | tuple) else value
