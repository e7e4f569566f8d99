"""Reads JSON leniently, and replaces single strings and numbers in JSON text: every other byte stays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from clew.io.codec import NOT_JSON, dumps, loads
from clew.model.json import JSON
from clew.redact.lazy_pattern import lazy_compile

FORMAT_NAMES = frozenset(
    "arguments attachment branch branches changes command content context description display document duration"
    " encoding entries events extensions filename function history images message messages metadata options origin"
    " output parameters parent payload platform priority project prompt records response result session sessions"
    " settings signature snapshot source status stderr stdout subagents summary system thinking thoughts timestamp"
    " tokens version workspace".split()
)
"""Names of members in the agents' formats that are ordinary words: never masked, even if a password is such a word."""
_LITERAL = lazy_compile(r'("[^"\\]*+(?:(?:\\.)++[^"\\]*+)*+"|(?<![\w.+-])-?\d[\d.eE+-]*+(?!\w))', re.DOTALL)
_LENIENT = json.JSONDecoder(strict=False)
_SURROGATE = lazy_compile("[\ud800-\udfff]")
# The error message for text behind a value: a lenient parser would not read it either.
_MORE = "trailing characters"
MISSING = object()
"""Returned by `read` for text that is not JSON."""


def read(text: str) -> JSON:
    """Parse JSON text, keeping all members of objects with duplicate keys; return MISSING if it is not JSON."""
    try:
        value = loads(text)
        # A lost member loses its quotes, and only this escape adds others.
        if "\\u0022" not in text and dumps(value).count(b'"') == text.count('"'):
            return value
    except (*NOT_JSON, UnicodeEncodeError) as error:
        if _MORE in str(error):
            return MISSING
    try:
        return json.loads(text, object_pairs_hook=_members, strict=False)
    except (ValueError, RecursionError):
        return MISSING


def may_be_json(raw: bytes) -> bool:
    """Tell whether bytes begin like an object or a list."""
    return raw[:1] in (b"{", b"[") or raw.lstrip()[:1] in (b"{", b"[")


def parsed(raw: bytes) -> JSON:
    """Parse a record; return its text if it is not JSON."""
    text = to_text(raw)
    value = read(text) if may_be_json(raw) else MISSING
    return text if value is MISSING else value


def json_bytes(value: JSON) -> bytes:
    """Encode a value as JSON; return b"" if it cannot be. Lone surrogates are written as escapes."""
    try:
        try:
            return dumps(value)
        except UnicodeEncodeError:
            return json.dumps(value).encode()
    except (ValueError, TypeError, OverflowError, RecursionError):
        return b""


def to_text(raw: bytes) -> str:
    """Decode bytes; those that are not UTF-8 pass."""
    return raw.decode("utf-8", "surrogateescape")


def to_raw(text: str) -> bytes:
    """Encode what `to_text` decoded."""
    return text.encode("utf-8", "surrogateescape")


def _members(pairs: list[tuple[str, JSON]]) -> JSON:
    """Build an object; with duplicate keys, a list of one object for each member, so that none is lost."""
    members = dict(pairs)
    return members if len(members) == len(pairs) else [{key: value} for key, value in pairs]


def splice(text: str, changes: Mapping[str, str]) -> str:
    """Replace some strings of JSON text, and numbers of the same digits."""
    pieces = _LITERAL.split(text)
    # Most literals have no escapes and are not replaced.
    some = [
        at
        for at, literal in enumerate(pieces[1::2])
        if literal[1:-1] in changes or "\\" in literal or literal in changes
    ]
    for at in some:
        literal = pieces[2 * at + 1]
        content = _content(literal)
        new = changes.get(content)
        is_name = content in FORMAT_NAMES and pieces[2 * at + 2].lstrip().startswith(":")
        if new is not None and not is_name:
            pieces[2 * at + 1] = _encode_literal(new, literal)
    return "".join(pieces) if some else text


def literals(text: str) -> Iterator[str]:
    """Yield the decoded strings of JSON text, keys included, and its numbers."""
    return (_content(match[0]) for match in _LITERAL.finditer(text))


def number_text(number: float) -> str:
    """Format a number as JSON does; return "" for one of thousands of digits."""
    try:
        return str(number)
    except ValueError:
        return ""


def _content(literal: str) -> str:
    """Decode a string literal; return the digits of a number."""
    if literal[0] != '"':
        return literal
    if "\\" not in literal:
        return literal[1:-1]
    try:
        return str(_LENIENT.raw_decode(literal)[0])
    except ValueError:
        return literal[1:-1]


def _encode_literal(text: str, like: str) -> str:
    """Encode a string literal, in ASCII if the one it replaces was, or if the text cannot be UTF-8."""
    if text.isascii() or (not like.isascii() and _SURROGATE.search(text) is None):
        return dumps(text).decode()
    return json.dumps(text)
