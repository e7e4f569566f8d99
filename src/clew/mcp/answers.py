"""Bounded answers: pages of rows and of text, and the cursors that read on."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from clew.errors import UsageError
from clew.mcp.arguments import Arguments
from clew.model.json import JSON
from clew.render.text_safety import visible

MAX_ANSWER_CHARS = 24_000
"""Characters of JSON in an answer: what some clients put before a model without cutting it."""
MAX_VALUE_CHARS = 2_000
"""A longer text within a row is cut; `show` and `file_at` have all of it."""
_DIGEST_CHARS = 12


class Position(NamedTuple):
    """Where an answer continues: a row or message, and a character in it."""

    item: int = 0
    char: int = 0


def encode_cursor(tool: str, asked: Arguments, position: Position) -> str:
    """The cursor for the rest of an answer to these arguments."""
    body = msgspec.json.encode((_digest(tool, asked), *position))
    return base64.urlsafe_b64encode(body).decode().rstrip("=")


def decode_cursor(tool: str, asked: Arguments, cursor: str) -> Position:
    """The position of a cursor; the start without one. Raises UsageError if it is not one of this question."""
    if not cursor:
        return Position()
    try:
        body = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        digest, item, char = msgspec.json.decode(body, type=tuple[str, int, int])
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise UsageError("the cursor is not valid; ask again without it") from None
    if digest != _digest(tool, asked):
        raise UsageError("the cursor belongs to other arguments; repeat them, or ask again without it")
    if not (0 <= item < 1 << 53 and 0 <= char < 1 << 53):
        raise UsageError("the cursor is not valid; ask again without it")
    return Position(item, char)


def _digest(tool: str, asked: Arguments) -> str:
    text = msgspec.json.encode([tool, msgspec.structs.replace(asked, cursor="")], order="deterministic")
    return hashlib.sha256(text).hexdigest()[:_DIGEST_CHARS]


class Page(NamedTuple):
    """A part of the rows of an answer."""

    rows: list[JSON]
    rest: Position | None
    """Where the next part begins; None at the end."""


def page_of_rows(rows: Iterable[dict[str, JSON]], start: int, limit: int) -> Page:
    """The rows that fit into an answer, from `start` on. At least one, with long texts cut."""
    taken: list[JSON] = []
    chars = 0
    for number, row in enumerate(rows):
        if number < start:
            continue
        short = cut_texts(row)
        size = len(msgspec.json.encode(short))
        if taken and (len(taken) >= limit or chars + size > MAX_ANSWER_CHARS):
            return Page(taken, Position(number))
        taken.append(short)
        chars += size
    return Page(taken, None)


class TextPage(NamedTuple):
    """A part of the numbered texts of an answer."""

    texts: list[tuple[int, str]]
    rest: Position | None
    """Where the next part begins; None at the end."""


def page_of_texts(texts: Iterable[tuple[int, str]], start: Position) -> TextPage:
    """The texts that fit into an answer. The first begins at the character `start.char` if its number is `start.item`.

    No more texts are read than fit.
    """
    taken: list[tuple[int, str]] = []
    left = MAX_ANSWER_CHARS
    for number, text in texts:
        begin = start.char if number == start.item else 0
        if not left:
            return TextPage(taken, Position(number, begin))
        piece = text[begin : begin + left]
        taken.append((number, piece))
        left -= len(piece)
        if begin + len(piece) < len(text):
            return TextPage(taken, Position(number, begin + len(piece)))
    return TextPage(taken, None)


def cut_texts(value: JSON) -> JSON:
    """The value with every long text cut."""
    if isinstance(value, str):
        return value if len(value) <= MAX_VALUE_CHARS else f"{value[:MAX_VALUE_CHARS]}… ({len(value)} characters)"
    if isinstance(value, dict):
        return {key: cut_texts(item) for key, item in value.items()}
    return [cut_texts(item) for item in value] if isinstance(value, list | tuple) else value


def visible_texts(value: JSON) -> JSON:
    """The value with control and invisible characters shown: text that a user cannot see could instruct an agent."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible(key): visible_texts(item) for key, item in value.items()}
    return [visible_texts(item) for item in value] if isinstance(value, list | tuple) else value
