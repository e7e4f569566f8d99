"""Is this text a secret? What placeholders, names, code and words look like, and what chance looks like."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from functools import lru_cache

from clew.redact.matcher import Find, compile_finder

_FILLER = (
    r"(?i)your[_-]|[_-]your|^your|votre[_-]|^my[_-]|example|placeholder|change_?-?me|replace_?-?(?:me|with)|insert_?-?(?:your|here)"
    r"|dummy|redacted|xxxxx|\*\*\*\*|\.\.\.|\xe2\x80\xa6|_here$|-here$|^todo$|^tbd$|^fixme|^sample|^fake|notreal|not-a-real"
    r"|deadbeef|cafebabe|01234567|12345678|abcdefgh|aaaaaa|^test[_-]?(?:key|token|secret)"
)
_RUN = re.compile(rb"(.)\1\1\1\1\1")
_WORD = re.compile(rb"[A-Za-z]*[0-9]{0,4}")
_TURN = re.compile(rb"[a-z][A-Z]")
_SPACED = bytes(char if bytes([char]).isalnum() else 32 for char in range(256))
_CONSONANTS = re.compile(rb"[bcdfghjklmnpqrstvwxz]{6}")
_STANDARD = bytes.maketrans(b"-_", b"+/")
_PRINTABLE = bytes([9, 10, 13, *range(32, 127)])
_ENOUGH = 256
DIGITS = b"0123456789"
_CAPITALS, _SMALL = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz"
_B62 = DIGITS + _CAPITALS + _SMALL


def is_filler(value: bytes) -> bool:
    """A placeholder: what stands in a text where a secret would."""
    value = value[:_ENOUGH]
    if not _differ(value, min(5, len(value))) or _RUN.search(value):
        return True
    return _filler()(value, 0, len(value))[0] >= 0


@lru_cache(maxsize=1)
def _filler() -> Find:
    return compile_finder([_FILLER])


def _differ(value: bytes, least: int) -> bool:
    """At least so many characters are different, which the first ones mostly tell."""
    return len(set(value[: 2 * least])) >= least or len(set(value)) >= least


def chance(value: bytes) -> int:
    """How many characters of a value belong to no word, name or number; of a long one, the beginning."""
    value = value[:_ENOUGH]
    return sum([len(part) for part in value.translate(_SPACED).split() if not _is_word(part)])


def _is_word(part: bytes) -> bool:
    if not _WORD.fullmatch(part):
        return False
    # Letters alone can be chance too: no language has six consonants in a row, no name so many humps.
    if len(part) < 12:
        return True
    return not _CONSONANTS.search(part.lower()) and len(_TURN.findall(part)) * 6 < len(part)


def is_random(value: bytes) -> bool:
    """For a key with a telling beginning: what follows is not made of words."""
    if is_filler(value):
        return False
    return _differ(value, min(8, len(value) // 2)) and chance(value) >= min(12, len(value) // 2)


def is_spread(value: bytes) -> bool:
    """For a beginning and a length that say all: many characters, and no placeholder."""
    return _differ(value, min(8, len(value) // 2)) and not is_filler(value)


def is_mixed(value: bytes) -> bool:
    """For a beginning that says little: digits, small letters and capitals, none of them rare."""
    return is_random(value) and min(count_of(kind, value) for kind in (DIGITS, _CAPITALS, _SMALL)) >= 2


def is_mixed_upper(value: bytes) -> bool:
    """The same for keys of capitals and digits."""
    return is_random(value) and 3 <= count_of(DIGITS, value) <= len(value) - 3


def count_of(kind: bytes, value: bytes) -> int:
    """How many characters of a value are of a kind."""
    return len(value) - len(value.translate(None, kind))


def has_crc(value: bytes) -> bool:
    """The last six characters are the CRC-32 of the thirty before, in base 62: GitHub's and npm's tokens."""
    body, tail, crc = value[-36:-6], value[-6:], 0
    for char in tail:
        digit = _B62.find(char)
        if digit < 0:
            return False
        crc = crc * 62 + digit
    return zlib.crc32(body) == crc


def is_jwt(value: bytes) -> bool:
    """The first part is the base64 of a JSON object with an algorithm."""
    header = unbase64(value.split(b".", 1)[0])
    return header is not None and header.startswith(b"{") and b'"alg"' in header


def unbase64(value: bytes) -> bytes | None:
    """The bytes behind a base64 text of either alphabet, with or without padding; None if it is none."""
    plain = value.rstrip(b"=").translate(_STANDARD)
    if len(plain) % 4 == 1:
        return None
    try:
        return base64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def is_printable(value: bytes) -> bool:
    """Text: nearly all of it printable ASCII."""
    return len(value.translate(None, _PRINTABLE)) * 20 <= len(value)
