"""What words a text has. The text index gets `normalize_text(text)`, cut at all that is no letter or digit.

Words are in lower case and without accents. An ideograph, a syllable of Hangul or Kana is a word of its own, so that a
run of them is a phrase. What `_` or `.` or `/` joins are several words, and a phrase finds them whole. The parts of
camelCase are words too: they stand behind the text, each identifier's by themselves (`camel_case_parts`).
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from unicodedata import category, normalize

MAX_WORD = 65_530
"""Longer words, in bytes, are not indexed."""
_GIANT = MAX_WORD // 4
"""Characters that can be as many bytes."""

_CASES = b"".join(
    b"A" if char.isupper() else b"a" if char.islower() else b"0" if char.isdigit() else b" "
    for char in (bytes([code]) for code in range(256))
)
"""What kind of letter each byte is; all that is not ASCII parts words here."""
_ASCII = bytes(range(128))
_HUMP = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+"
_WORD = re.compile(r"[^\W_]+")
_LONGEST = 200
"""A longer run of letters is no identifier."""
_HIGH = r"[^\x00-\x7f]+"
_SHORT = 16
"""Runs beyond ASCII up to this length are met again and again."""

_ALONE = (
    "[\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3040-\u30ff\u3105-\u318f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U0001b000-\U0001b2ff\U00020000-\U0003ffff]"
)
_PLAIN = {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h", "ŧ": "t"}
_LETTERS_AS_SIGNS = ("\u24b6", "\u24e9"), ("\U0001f130", "\U0001f189")


def normalize_text(text: str) -> str:
    """The text as it is indexed: folded where anything in it needs to be."""
    if text.isascii():
        return text.lower()
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair.
        return normalize_text(text.encode("utf-8", "replace").decode())
    high = raw.translate(None, _ASCII).decode()
    if _HARMLESS.issuperset(high) or all(map(_is_harmless, set(high))):
        # Only ASCII has cases then, and bytes are many times quicker.
        return raw.lower().decode()
    return _compiled(_HIGH).sub(_fold_match, raw.lower().decode())


def _fold_match(found: re.Match[str]) -> str:
    return _fold_short(found[0]) if len(found[0]) <= _SHORT else _fold(found[0])


def _fold(run: str) -> str:
    """Letters beyond ASCII. What stands before and behind has no part in it: marks on letters go anyway."""
    return normalize("NFKC", run).casefold().translate(_FOLDED)


_fold_short = lru_cache(4096)(_fold)


def camel_case_parts(text: str) -> list[str]:
    """The parts of each camelCase identifier, each identifier once."""
    raw = _bare(text).encode("utf-8", "surrogatepass")
    cases = raw.translate(_CASES)
    at = cases.find(b"aA")
    if at < 0:
        return []
    names: dict[bytes, None] = {}
    while at >= 0:
        start, end = cases.rfind(b" ", 0, at) + 1, cases.find(b" ", at)
        end = len(raw) if end < 0 else end
        if end - start <= _LONGEST:
            names[raw[start:end]] = None
        at = cases.find(b"aA", end)
    return [" ".join(_compiled(_HUMP).findall(name.decode())).lower() for name in names]


def _bare(text: str) -> str:
    """The text without accents, in its own case; what has no such letters may stay as it is, as it parts words here."""
    if text.isascii():
        return text
    others = set(text) - _HARMLESS
    return text.translate(_BARE) if any(char > "\x7f" and not _is_harmless(char) for char in others) else text


def has_overlong_word(text: str) -> bool:
    """True where a word may be too long for the index."""
    at = 0
    while at + _GIANT < len(text):
        end = at + _GIANT + 1
        space = max(text.rfind(" ", at, end), text.rfind("\n", at, end))
        if space < 0:
            return max(map(len, text[at:].split()), default=0) > _GIANT
        at = space + 1
    return False


def words(text: str) -> list[str]:
    """The words of a text, in order, as the index sees them; without the parts of camelCase."""
    return [word for word in _WORD.findall(normalize_text(text)) if len(word.encode()) <= MAX_WORD]


def parts(text: str) -> list[list[str]]:
    """The words of the parts of each camelCase identifier."""
    return [found.split() for found in camel_case_parts(text)]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern that few texts need."""
    return re.compile(pattern)


_HARMLESS: set[str] = set()
"""Characters beyond ASCII that part words and nothing else."""


def _is_harmless(char: str) -> bool:
    """True for what parts words, and still would when it is folded; `™` becomes letters."""
    if category(char)[0] not in "PSZ" or any(map(str.isalnum, normalize("NFKC", char))):
        return False
    if any(first <= char <= last for first, last in _LETTERS_AS_SIGNS):
        return False
    _HARMLESS.add(char)
    return True


class _Folds(dict[int, str]):
    """What stands for a character: itself, its letter without accents, or a space."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = chr(code) if code < 0x80 else _folded(chr(code))
        return folded


_FOLDED = _Folds()


class _Bares(dict[int, str]):
    """What stands for a character where its case counts: itself, its letter without accents, or a space."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        bare = char if code < 0x80 else "".join(map(_folded, char.lower()))
        bare = bare if bare.isascii() else " "
        self[code] = bare = bare.capitalize() if code >= 0x80 and char.isupper() else bare
        return bare


_BARE = _Bares()


def _folded(char: str) -> str:
    kind = category(char)[0]
    if kind == "M":
        return ""
    if kind not in "LN":
        return " "
    if _compiled(_ALONE).match(char):
        return f" {char} "
    letters = "".join(part for part in normalize("NFKD", char) if category(part)[0] in "LN")
    return _PLAIN.get(letters, letters.casefold()) or " "
