"""JSON text whose strings and numbers are replaced one by one; all between them stays byte for byte as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from clew.io.codec import NOT_JSON, dumps, loads
from clew.model.json import JSON
from clew.redact.skip_rules import FORMAT_NAMES

_LITERAL = re.compile(r'("[^"\\]*+(?:(?:\\.)++[^"\\]*+)*+"|(?<![\w.+-])-?\d[\d.eE+-]*+(?!\w))', re.DOTALL)
# A long text without escapes is searched for the few strings that change: what is no string, or may stand between two,
# is not searched for.
_LONG, _FEW = 1 << 14, 16
_BETWEEN = re.compile(r'["\x00-\x1f]|\A[\s\d:,\[\]{}.+\-eEtrufalsnNIity]*\Z')
_LENIENT = json.JSONDecoder(strict=False)
_SURROGATE = re.compile("[\ud800-\udfff]")
# What is said of a value that has something behind it: there is no other way to read it.
_MORE = "trailing characters"
MISSING = object()
"""What `read` gives for text that is no JSON."""


def read(text: str) -> JSON:
    """The value of JSON text, with all members of objects that name one twice; MISSING where it is no JSON."""
    try:
        value = loads(text)
        # One that is lost takes its quotes with it, and only this escape brings in others.
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
    """True for what begins like an object or a list."""
    return raw[:1] in (b"{", b"[") or raw.lstrip()[:1] in (b"{", b"[")


def parsed(raw: bytes) -> JSON:
    """The value of a record; the text that it is where it is no JSON."""
    text = to_text(raw)
    value = read(text) if may_be_json(raw) else MISSING
    return text if value is MISSING else value


def spelled(value: JSON) -> bytes:
    """The JSON text of a value; nothing where it has none. Lone surrogates are written as escapes."""
    try:
        try:
            return dumps(value)
        except UnicodeEncodeError:
            return json.dumps(value).encode()
    except (ValueError, TypeError, OverflowError, RecursionError):
        return b""


def to_text(raw: bytes) -> str:
    """Bytes as text; those that are no UTF-8 pass."""
    return raw.decode("utf-8", "surrogateescape")


def to_raw(text: str) -> bytes:
    """The bytes that a text was made of."""
    return text.encode("utf-8", "surrogateescape")


def _members(pairs: list[tuple[str, JSON]]) -> JSON:
    """An object; where a key occurs twice, a list of one object for each member, so that none is lost."""
    members = dict(pairs)
    return members if len(members) == len(pairs) else [{key: value} for key, value in pairs]


def splice(text: str, changes: Mapping[str, str]) -> str:
    """The JSON text with some of its strings replaced, and numbers of the same digits."""
    is_simple = FORMAT_NAMES.isdisjoint(changes) and not any(map(_BETWEEN.search, changes))
    if len(text) >= _LONG and 0 < len(changes) <= _FEW and "\\" not in text and is_simple:
        literals = re.compile(f'"(?:{"|".join(map(re.escape, changes))})"')
        return literals.sub(lambda found: _spell(changes[found[0][1:-1]], found[0]), text)
    pieces = _LITERAL.split(text)
    # Most literals are spelled as they are, and not replaced.
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
            pieces[2 * at + 1] = _spell(new, literal)
    return "".join(pieces) if some else text


def literals(text: str) -> Iterator[str]:
    """What the strings of JSON text mean, keys included, and its numbers."""
    return (_content(match[0]) for match in _LITERAL.finditer(text))


def number_text(number: float) -> str:
    """A number as JSON has it; nothing for one of thousands of digits."""
    try:
        return str(number)
    except ValueError:
        return ""


def _content(literal: str) -> str:
    """What a string literal means, or the digits of a number."""
    if literal[0] != '"':
        return literal
    if "\\" not in literal:
        return literal[1:-1]
    try:
        return str(_LENIENT.raw_decode(literal)[0])
    except ValueError:
        return literal[1:-1]


def _spell(text: str, like: str) -> str:
    """A string literal for a text, in ASCII where the one it replaces was, or where the text cannot be UTF-8."""
    if text.isascii() or (not like.isascii() and _SURROGATE.search(text) is None):
        return dumps(text).decode()
    return json.dumps(text)
