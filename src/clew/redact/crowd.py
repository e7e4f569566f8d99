"""Records that hold so many signs that they are not looked at: every text of them that may be a secret is hidden.

Ids, hashes, times, signatures and the words that a format is made of stay, and so do short names: what is left still
parses, with as many members in the same order. All records are gone through as one text: a step in Python for each
would cost more than the hiding.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from typing import NamedTuple

from clew.redact.leaves import is_count
from clew.redact.untouched import is_left, is_uuid, told_by

_NAME = rb"[A-Za-z_$][A-Za-z_$-]{0,30}[0-9]{0,2}"
_STRING = rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
_COLON = rb"[ \t\r]*+:[ \t\r]*+"
_LITERAL = rb"(?:true|false|null|-?[0-9]{1,11}(?:\.[0-9]++)?(?:[eE][+-]?[0-9]{1,3})?)(?![^\s{}\[\],:\"])"
_PIECE = re.compile(
    rb"(?=\S)(?:"
    # A line that is no JSON.
    rb"^([^{\[\s][^\n]*+)"
    rb'|("' + _NAME + rb'"' + _COLON + rb")?(?:"
    rb'("(?:[a-z][a-z_/-]{0,23}|[^"\\\n]{0,5})"(?![ \t\r]*+:))'
    rb"|(" + _STRING + rb"(?![ \t\r]*+:)|(?!" + _LITERAL + rb")[^\s\"{}\[\],:]++)"
    rb"|(" + _STRING + _COLON + rb')|("[^\n]*+))?)'
    rb"((?>[ \t\r{}\[\],:]++|" + _LITERAL + rb")*+)",
    re.MULTILINE,
)
_MOST_NAMES = 4096
_MILLISECONDS = 13


class _Told(NamedTuple):
    """What the name before a text says."""

    name: str
    hides: bool
    """Even a short word under it is hidden."""
    keeps: bool
    """An id, a time or a signature under it may stay."""


class _Names(dict[bytes, _Told]):
    """What names say, by how they stand in a record; of more than so many, nothing good."""

    def __missing__(self, opening: bytes) -> _Told:
        name = opening[1 : opening.index(b'"', 1)].decode()
        if len(self) >= _MOST_NAMES:
            return _Told(name, True, False)
        told = told_by(name)
        keeps = told.holds_id or told.is_sealed or told.holds_time or is_count(name)
        self[opening] = _Told(name, told.names_secret, keeps)
        return self[opening]


def hider(marker: bytes) -> Callable[[bytes], bytes]:
    """A function from lines of JSON text to the same with a marker for every text that may hold something."""
    quoted, numbers, names = b'"' + marker + b'"', count(1), _Names()

    def hide(lines: bytes) -> bytes:
        pieces = _PIECE.split(lines)
        out: list[bytes] = []
        for between, line, opening, word, text, key, broken, calm in zip(
            *(pieces[at:-1:8] for at in range(8)), strict=True
        ):
            if opening is not None:
                between += opening
            if text is not None:
                told = names[opening] if opening is not None else None
                shown = text if told is not None and told.keeps and _stays(told, text) else quoted
            elif word is not None:
                shown = quoted if opening is not None and len(word) > 2 and names[opening].hides else word
            elif key is not None:  # members must differ
                shown = b'"%b.%d":' % (marker, next(numbers))
            else:
                shown = marker if line is not None else quoted if broken is not None else b""
            out += (between, shown, calm)
        return b"".join([*out, pieces[-1]])

    return hide


def _stays(told: _Told, literal: bytes) -> bool:
    """An id, a hash, a time, a signature, a count."""
    if literal[:1] != b'"':
        return literal.isdigit() and _is_number(told.name, literal.decode())
    text = literal[1:-1].decode("utf-8", "replace")
    known = told_by(told.name)
    if known.names_secret and not known.is_sealed:
        return known.holds_id and is_uuid(text)
    return is_left(told.name, text)


def _is_number(name: str, digits: str) -> bool:
    """A count, an id, or milliseconds."""
    return is_count(name) or is_left(name, digits) or (told_by(name).holds_time and len(digits) == _MILLISECONDS)
