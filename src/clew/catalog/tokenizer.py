"""Splits text into words for the text index, which gets `normalize_text(text)` and splits it at separators.

Words are in lower case and without accents. An ideograph, a syllable of Hangul or Kana is a word of its own, so that a
run of them is a phrase. Words joined by `_`, `.` or `/` are several words, and a phrase finds them together. The parts
of camelCase identifiers (`camel_case_parts`) are indexed as further texts, one for each identifier.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from unicodedata import category, normalize

MAX_WORD_BYTES = 65_530
"""Longer words are not indexed."""
_MAX_WORD_CHARS = MAX_WORD_BYTES // 4
"""A word of at most this many characters is at most `MAX_WORD_BYTES` long, as UTF-8."""

_CASE_OF_BYTE = b"".join(
    b"A" if char.isupper() else b"a" if char.islower() else b"0" if char.isdigit() else b" "
    for char in (bytes([code]) for code in range(256))
)
"""Translates each byte: A for capitals, a for small letters, 0 for digits; a space for all others, also non-ASCII."""
_ASCII_BYTES = bytes(range(128))
_CAMEL_CASE_PART = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+"
_WORD = re.compile(r"[^\W_]+")
_MAX_IDENTIFIER_BYTES = 200
"""Longer runs of letters and digits are data, not identifiers."""
_NON_ASCII_RUN = r"[^\x00-\x7f]+"
_MAX_CACHED_RUN_CHARS = 16
"""Runs of non-ASCII characters up to this length repeat so often that their folding is cached."""

_SINGLE_CHARACTER_WORDS = (
    "[\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3040-\u30ff\u3105-\u318f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U0001b000-\U0001b2ff\U00020000-\U0003ffff]"
)
_BASE_LETTERS = {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h", "ŧ": "t"}
"""Letters that Unicode does not decompose into a base letter and an accent."""
_LETTER_SYMBOLS = ("\u24b6", "\u24e9"), ("\U0001f130", "\U0001f189")
"""Ranges of letters in circles and squares: symbols by category, which become letters in lower case or folded."""


def normalize_text(text: str) -> str:
    """The text in lower case, without accents, and with spaces around single-character words."""
    if text.isascii():
        return text.lower()
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair.
        return normalize_text(text.encode("utf-8", "replace").decode())
    high = raw.translate(None, _ASCII_BYTES).decode()
    if _KNOWN_SEPARATORS.issuperset(high) or all(map(_is_separator, set(high))):
        # Only ASCII letters have to be lowered, and that is many times faster for bytes.
        return raw.lower().decode()
    return _compiled(_NON_ASCII_RUN).sub(_fold_match, raw.lower().decode())


def _fold_match(found: re.Match[str]) -> str:
    return _fold_short_run(found[0]) if len(found[0]) <= _MAX_CACHED_RUN_CHARS else _fold_run(found[0])


def _fold_run(run: str) -> str:
    """Fold a run of non-ASCII characters. Its neighbours do not matter, because combining marks are removed."""
    return normalize("NFKC", run).casefold().translate(_FOLDED)


_fold_short_run = lru_cache(4096)(_fold_run)


def camel_case_parts(text: str) -> list[str]:
    """The parts of each camelCase identifier, joined by spaces; each identifier once."""
    raw = _without_accents(text).encode("utf-8", "surrogatepass")
    cases = raw.translate(_CASE_OF_BYTE)
    at = cases.find(b"aA")
    if at < 0:
        return []
    names: dict[bytes, None] = {}
    while at >= 0:
        start, end = cases.rfind(b" ", 0, at) + 1, cases.find(b" ", at)
        end = len(raw) if end < 0 else end
        if end - start <= _MAX_IDENTIFIER_BYTES:
            names[raw[start:end]] = None
        at = cases.find(b"aA", end)
    return [" ".join(_compiled(_CAMEL_CASE_PART).findall(name.decode())).lower() for name in names]


def _without_accents(text: str) -> str:
    """The text without accents, in its own case. Other non-ASCII characters separate identifiers, and may stay."""
    if text.isascii():
        return text
    others = set(text) - _KNOWN_SEPARATORS
    return (
        text.translate(_WITHOUT_ACCENTS) if any(char > "\x7f" and not _is_separator(char) for char in others) else text
    )


def has_overlong_word(text: str) -> bool:
    """True where a word may be too long for the index."""
    at = 0
    while at + _MAX_WORD_CHARS < len(text):
        end = at + _MAX_WORD_CHARS + 1
        space = max(text.rfind(" ", at, end), text.rfind("\n", at, end))
        if space < 0:
            return max(map(len, text[at:].split()), default=0) > _MAX_WORD_CHARS
        at = space + 1
    return False


def words(text: str) -> list[str]:
    """The words of a text in order, as the index has them, without the parts of camelCase identifiers."""
    found = _WORD.findall(normalize_text(text))
    return [word for word in found if len(word) <= _MAX_WORD_CHARS or len(word.encode()) <= MAX_WORD_BYTES]


def camel_case_words(text: str) -> list[list[str]]:
    """The parts of each camelCase identifier, as lists of words."""
    return [found.split() for found in camel_case_parts(text)]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern when it is first needed: most texts need none."""
    return re.compile(pattern)


_KNOWN_SEPARATORS: set[str] = set()
"""Non-ASCII characters that `_is_separator` has found so far."""


def _is_separator(char: str) -> bool:
    """True for a character that separates words before and after folding; `™` does not, as it is folded to letters."""
    if category(char)[0] not in "PSZ" or any(map(str.isalnum, normalize("NFKC", char))):
        return False
    if any(first <= char <= last for first, last in _LETTER_SYMBOLS):
        return False
    _KNOWN_SEPARATORS.add(char)
    return True


class _Foldings(dict[int, str]):
    """Maps a character to what replaces it: itself, its letter without accents in lower case, or a space."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = chr(code) if code < 0x80 else _fold_character(chr(code))
        return folded


_FOLDED = _Foldings()


class _AccentRemovals(dict[int, str]):
    """Maps a character to what replaces it, in its own case: itself, its letter without accents, or a space."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        bare = char if code < 0x80 else "".join(map(_fold_character, char.lower()))
        bare = bare if bare.isascii() else " "
        self[code] = bare = bare.capitalize() if code >= 0x80 and char.isupper() else bare
        return bare


_WITHOUT_ACCENTS = _AccentRemovals()


def _fold_character(char: str) -> str:
    kind = category(char)[0]
    if kind == "M":
        return ""
    if kind not in "LN":
        return " "
    if _compiled(_SINGLE_CHARACTER_WORDS).match(char):
        return f" {char} "
    letters = "".join(part for part in normalize("NFKD", char) if category(part)[0] in "LN")
    return _BASE_LETTERS.get(letters, letters.casefold()) or " "
