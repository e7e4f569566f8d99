"""Reading the value after a name, and judging whether it is a secret, a placeholder or a piece of code."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from clew.redact.matcher import TEXT_SEPARATOR, Find, compile_finder
from clew.redact.value_checks import DIGITS, chance, count_of, is_filler

LONGEST = 4096
_ENOUGH = 256
_MOST_BACKSLASHES = 64
_ESCAPED_QUOTE = re.compile(rb"\\+[\"'`]")
_OPENING = re.compile(rb"(?:[bfruBFRU]{1,2}(?=[\"'])|[$](?=\\*[\"']))?(?:\\*[\"'`]|\xe2\x80[\x9c\x98])")
_BARE = re.compile(rb"[^\s\"'`<>,;\\|]{1,4096}")
_TEMPLATE = re.compile(
    rb"[$]\{|[$]\(|[$][A-Za-z_][A-Za-z0-9_]*[$]?$|[$][0-9@*#?]$|\{\{|\{%|[{][A-Za-z_.]*[}]|<[^>]*>?$"
    rb"|%[A-Za-z_]+%|\[[A-Za-z _-]*\]"
    rb"|(?:process\.|import\.meta\.)?env[.:\[]|ENV\[|os\.|@[A-Za-z]+\.|!Ref|!Sub|!GetAtt|ssm:|vault:|op://"
    rb"|secret://|keyring:|env:|&(?:quot|apos|#[0-9]{2,5}|#[xX][0-9A-Fa-f]{2,4});?\Z"
)
_ELSEWHERE = re.compile(rb"(?i)(?:https?|wss?|file|s3|gs|ssh|git|arn|urn|data|sha[0-9]{1,3}|md5)[:-]|[A-Z]:\\")
_PATH = re.compile(rb"[~.]{0,2}/[\w.-]+/")
_CODE = re.compile(rb"[(\[{]|->|=>|::|&&|\|\||[A-Za-z_]\.[A-Za-z_][A-Za-z_]+(?:\.|$)|\?\.|\+\+")
_NAME = re.compile(rb"[A-Za-z_][A-Za-z_-]*[0-9]{0,2}")
_LETTERS = re.compile(rb"[A-Za-z]+")
_ALNUM = re.compile(rb"[A-Za-z0-9]+")
_SYMBOL = re.compile(rb"[!@#$%^&*?~+=]")
# What code and forms say in the place of a password.
_SAID_WORDS = (
    r"(?i)pass|pwd|secret|token|key|string|text|hidden|input|required|optional|invalid|missing|none|null|true"
    r"|false|number|object"
    r"|undefined|default|empty|prompt|plain|crypt|user|email|login|admin|auth|cred|boolean|unknown|value|valid"
    r"|change|enter|type"
    r"|field|form|label|error|success|fail|disabled|enabled|config|setting|manage|update|forgot|confirm|new"
    r"|old|current|show|hide"
    r"|tests?$|^test|^foo|^bar|^baz|^qux|^abc|^str$|^self|^this|hash|postgres|mysql|mongo|redis|local|guest"
    r"|example|external|internal"
)
_WORDS = re.compile(rb"[A-Za-z0-9][A-Za-z0-9'!@#$%^&*_-]{1,19}(?: [A-Za-z0-9!@#$%^&*_'-]{2,20}){1,23}")
_WORD_OF_PHRASE = re.compile(rb"[A-Za-z0-9!@#$%^&*_'-]{1,20}")
_ELLIPSIS = re.compile(rb"[ \t]*(?:\xe2\x80\xa6|\.\.\.)[ \t]*\Z")
_LONGEST_ELLIPSIS = 8
_PHRASE_LINE = re.compile(rb"([a-z][a-z0-9]{1,19}(?:[ -][a-z][a-z0-9]{1,19}){3,23})(?=[ \t]*(?:[\r\n\0#]|\Z))")
_SEED_LENGTHS = frozenset({12, 15, 18, 21, 24})
# Words that make a sentence of others.
_FUNCTION = frozenset(
    b"the an is are was be to your you my our their its for of and or in on at with by from as if it this that these"
    b" must not no can could may should will would has have had do does did please than then when where who why how"
    b" what which we they he she i me us them least more less only too so but use used using see here there long short"
    b" wrong bad good contains characters character letters digits min max stored saved sent given read set get got"
    b" provided rotated expired stays stay lives live kept goes match matches matched".split()
)


class Value(NamedTuple):
    """A value as it stands: from where to where, and whether in quotes."""

    start: int
    end: int
    quoted: bool
    is_cut: bool = False
    """The text around it was cut off before its end."""


def read(text: bytes, place: int, *, parameter: bool = False) -> Value | None:
    """The value that begins here."""
    opening = _OPENING.match(text, place)
    if opening is not None:
        return _read_quoted(text, opening)
    match = _BARE.match(text, place)
    if match is None:
        return None
    end = match.end()
    if parameter and (stop := text.find(b"&", place, end)) >= 0:
        end = stop
    if _ends_text(text, end) and (cut := _ELLIPSIS.search(text, max(place, end - _LONGEST_ELLIPSIS), end)):
        return Value(place, cut.start(), False, is_cut=True) if cut.start() > place else None
    return Value(place, _without_closers(text, place, end), False)


def read_to_quote(text: bytes, place: int) -> Value | None:
    """The quoted value that begins here, up to the next quote, be there a backslash before it."""
    opening = _OPENING.match(text, place)
    return _read_quoted(text, opening, has_escapes=False) if opening else None


def _read_quoted(text: bytes, opening: re.Match[bytes], *, has_escapes: bool = True) -> Value | None:
    start, quote = opening.end(), opening[0][-1:]
    if quote in b"\x9c\x98":
        quote = b"\xe2\x80"
    limit = min(len(text), start + LONGEST)
    line = text.find(b"\n", start, limit)
    limit = limit if line < 0 else line
    depth, end = opening[0].count(b"\\"), text.find(quote, start, limit)
    while has_escapes and end >= 0 and _is_escaped(text[max(start, end - _MOST_BACKSLASHES) : end], depth):
        end = text.find(quote, end + 1, limit)
    is_cut = False
    if end < 0:
        # A title or a preview that was cut off has no closing quote.
        cut = _ELLIPSIS.search(text, max(start, limit - _LONGEST_ELLIPSIS), limit)
        end = cut.start() if cut else limit
        is_cut = cut is not None or _ends_text(text, limit)
    while end > start and text[end - 1] == 0x5C:
        end -= 1
    return Value(start, end, True, is_cut) if end > start else None


def _ends_text(text: bytes, place: int) -> bool:
    """True where a text ends, or one of several that are searched together."""
    return place == len(text) or text.startswith(TEXT_SEPARATOR, place)


def _is_escaped(before: bytes, depth: int) -> bool:
    """True for a quote that does not end a value which began with so many backslashes and a quote."""
    count = len(before) - len(before.rstrip(b"\\"))
    return count > depth and (count - depth) % (2 * depth + 2) != 0


def _without_closers(text: bytes, start: int, end: int) -> int:
    """Brackets that were opened before the value do not belong to it."""
    for opener, closer in ((b"(", 0x29), (b"[", 0x5D), (b"{", 0x7D)):
        while end > start and text[end - 1] == closer and opener not in text[start:end]:
            end -= 1
    return end


def stands_for_another(value: bytes) -> bool:
    """A placeholder, a template, or a reference to where the secret is."""
    if is_filler(value) or _TEMPLATE.match(value) or _ELSEWHERE.match(value):
        return True
    return bool(_PATH.match(value)) and chance(value) < 12


def _says(value: bytes) -> bool:
    return _said()(value, 0, len(value))[0] >= 0


@lru_cache(maxsize=1)
def _said() -> Find:
    return compile_finder([_SAID_WORDS])


def is_phrase(value: bytes) -> bool:
    """A passphrase: some words that make no sentence."""
    words = value.split(b" ")
    if not _WORDS.fullmatch(value) or len(value) < 12 or _says(value) or is_filler(value):
        return False
    if not _FUNCTION.isdisjoint(word.lower() for word in words):
        return len(words) in _SEED_LENGTHS and value.islower()
    return len(words) >= 3 and sum(map(len, words)) >= 10


def is_cut_phrase(value: bytes) -> bool:
    """The beginning of a passphrase: two words or more, of which the last may not be whole."""
    words = value.split(b" ")
    if len(words) < 2 or not all(map(_WORD_OF_PHRASE.fullmatch, filter(None, words))) or len(value) < 6:
        return False
    return _FUNCTION.isdisjoint(word.lower() for word in words) and not _says(value) and not stands_for_another(value)


def is_with_quotes(value: bytes) -> bool:
    """A value with escaped quotes in it that is no sentence."""
    value = value[:_ENOUGH]
    plain, count = _ESCAPED_QUOTE.subn(b"", value)
    if not count or len(plain) < 4 or _says(plain) or stands_for_another(plain):
        return False
    return _FUNCTION.isdisjoint(word.lower() for word in _ALNUM.findall(plain))


def is_given_phrase(value: bytes) -> bool:
    """Words in quotes that are given to a program as its password."""
    return b" " in value and len(value) >= 6 and not stands_for_another(value)


def read_phrase(text: bytes, place: int) -> int | None:
    """Where a phrase ends that begins here, has no quotes, and goes to the end of its line."""
    match = _PHRASE_LINE.match(text, place)
    return match.end(1) if match is not None and is_phrase(match[1]) else None


def is_secret(value: bytes, quoted: bool) -> bool:
    """A key or token: chance, not words, not code. A long one is judged by its beginning."""
    value = value[:_ENOUGH]
    if quoted and b" " in value:
        return len(value.split(b" ")) in _SEED_LENGTHS and is_phrase(value)
    if len(value) < 8 or b" " in value or value.isdigit() or stands_for_another(value):
        return False
    if not quoted and _CODE.search(value) and chance(value) < 24:
        return False
    enough = 10 if len(value) >= 16 else 8
    return chance(value) >= enough or _is_strong(value)


def _is_strong(value: bytes) -> bool:
    """A password as people make them, with letters, digits and a sign or two, or as programs do, with many signs."""
    if not count_of(DIGITS, value) or not _LETTERS.search(value):
        return False
    signs = len(_SYMBOL.findall(value))
    return signs >= 5 or (signs > 0 and not _CODE.search(value))


def is_password(value: bytes, quoted: bool, capital: bool) -> bool:
    """A password: nearly anything, but a word only where it can be nothing else."""
    value = value[:_ENOUGH]
    if quoted and b" " in value:
        return is_phrase(value)
    if len(value) < 4 or b" " in value or stands_for_another(value):
        return False
    if _LETTERS.fullmatch(value):
        return (quoted or capital) and len(value) >= 5 and not _says(value)
    if not quoted and (_CODE.search(value) or (_NAME.fullmatch(value) and _says(value))):
        return chance(value) >= 24
    if value.isdigit():
        return len(value) >= 6 and (quoted or capital)
    return not (_NAME.fullmatch(value) and _says(value)) or chance(value) >= 12


def is_code(value: bytes) -> bool:
    """A piece of a program rather than a value."""
    return bool(_CODE.search(value))
