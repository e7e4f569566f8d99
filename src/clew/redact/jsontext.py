"""JSON text whose strings and long numbers are replaced one by one; all between them stays byte for byte as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from clew.io.codec import NOT_JSON, dumps, loads
from clew.model.json import JSON

_LITERAL = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+"|(?<![\w.+-])\d{12,19}+(?![\w.+-]))', re.DOTALL)
_LENIENT = json.JSONDecoder(strict=False)
_SURROGATE = re.compile("[\ud800-\udfff]")
MISSING = object()
"""What `read` gives for text that is no JSON."""


def read(text: str) -> JSON:
    """The value of JSON text, with all members of objects that name one twice; MISSING where it is no JSON."""
    try:
        value = loads(text)
        # One that is lost takes its quotes with it, and only this escape brings in others.
        if "\\u0022" not in text and dumps(value).count(b'"') == text.count('"'):
            return value
    except (*NOT_JSON, UnicodeEncodeError):
        pass
    try:
        return json.loads(text, object_pairs_hook=_members, strict=False)
    except (ValueError, RecursionError):
        return MISSING


def _members(pairs: list[tuple[str, JSON]]) -> JSON:
    """An object; where a key occurs twice, a list of one object for each member, so that none is lost."""
    members = dict(pairs)
    return members if len(members) == len(pairs) else [{key: value} for key, value in pairs]


def splice(text: str, changes: Mapping[str, str]) -> str:
    """The JSON text with some of its strings replaced, and numbers of the same digits."""
    pieces = _LITERAL.split(text)
    # Most literals are spelled as they are, and not replaced.
    some = [
        at
        for at, literal in enumerate(pieces[1::2])
        if literal[1:-1] in changes or "\\" in literal or literal in changes
    ]
    for at in some:
        literal = pieces[2 * at + 1]
        new = changes.get(_content(literal))
        if new is not None:
            pieces[2 * at + 1] = _spell(new, literal)
    return "".join(pieces) if some else text


def _content(literal: str) -> str:
    """What a string literal means, or the digits of a number."""
    if literal[0] != '"':
        return literal
    if "\\" not in literal:
        return literal[1:-1]
    try:
        return str(_LENIENT.decode(literal))
    except ValueError:
        return literal[1:-1]


def _spell(text: str, like: str) -> str:
    """A string literal for a text, in ASCII where the one it replaces was, or where the text cannot be UTF-8."""
    if text.isascii() or (not like.isascii() and _SURROGATE.search(text) is None):
        return dumps(text).decode()
    return json.dumps(text)
