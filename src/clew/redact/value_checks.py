"""Read values, and decide whether they are secrets.

`read_value` reads what begins at a position, in quotes of any kind and depth of escaping, or bare. `is_secret_value` is
the one decision for everything that is found by its name or its surroundings. Token rules use the smaller checks
(`is_random` and the like), since a known prefix already says a lot.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from enum import Enum
from typing import NamedTuple

from clew.redact.lazy_pattern import lazy_compile
from clew.redact.matcher import TEXT_SEPARATOR

_MIN_DIGITS_OF_KEY = 20
"""Fewer digits are a number or a time: nanoseconds since 1970 have 19."""
CHECKED_CHARS = 256
"""A longer value is judged by its beginning."""
_MAX_CHECKED_CHARS_OF_TOKEN = 2_000
"""The characters of a token that are checked, if it has a known prefix."""
DIGITS = b"0123456789"
_CAPITALS, _SMALL = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz"
_BASE62 = DIGITS + _CAPITALS + _SMALL


class Written(Enum):
    """How a value is written, which decides how strict the checks are."""

    QUOTED = "in quotes, after an operator"
    BARE = "without quotes, after an operator"
    SHELL = "NAME=value with a name in capitals and no spaces"
    ARGUMENT = "after a flag of a command, or piped to it"
    NEARBY = "near a name without an operator: the next cell, item, line or word"


# --- Placeholders and references

_PLACEHOLDER_WORDS = lazy_compile(
    rb"(?i)your|votre|example|placeholder|change[_-]?(?:me|it)|changed|replace(?:[_-]?(?:me|with|this))?|insert|dummy"
    rb"|redacted|fake|sample|not[_-]?a?[_-]?real|todo|(?<![a-z0-9])tbd(?![a-z0-9])|fixme|(?:^|[_-])here$|^my(?=[_-])"
    rb"|<[^>]*>?|\.\.\.|\xe2\x80\xa6|^test[_-]?(?:key|token|secret|password)|mask(?:ed)?$|hidden|ignored?$|goes|blah"
)
"""Words that people write in the place of a secret. With one of them, only random characters make a secret."""
_MIXED_CASE = lazy_compile(rb"\A[a-z][A-Z]|[A-Z]{2}[a-z]|[a-z][A-Z](?![a-z])")
"""Random letters may spell such a word as `fAke` or `TOdo`; people write `fake`, `Fake`, `FAKE` or `changeMe`."""
_SEQUENCES = lazy_compile(
    rb"(?i)x{4,}|\*{3,}|_{4,}|\.{4,}|-{4,}|(.)\1{4,}|0?12345678?9?0?|23456789?|abcdefg?h?i?j?(?:klmnopqrstuvwxyz)?|0123456789|deadbeef|cafebabe|qwerty"
)
_TEMPLATE = lazy_compile(
    rb"[$]\{|[$]\(|[$][A-Za-z_][A-Za-z0-9_]*[$-]?$|[$][0-9@*#?]$|\{\{|\{%|[{][A-Za-z_.]*[}]|<[^>]*>?$"
    rb"|%[A-Za-z_]+%|%[sdvq]$|%\([a-z_]+\)s|\[[A-Za-z _:-]*\]$"
    rb"|(?:process\.|import\.meta\.)?env[.:\[]|ENV\[|os\.|@[A-Za-z]+\.|!Ref|!Sub|!GetAtt|ssm:|vault:|op://"
    rb"|secret://|keyring:|env:|[$]env:|&(?:quot|apos|#[0-9]{2,5}|#[xX][0-9A-Fa-f]{2,4});?\Z"
)
_ELSEWHERE = lazy_compile(rb"(?i)(?:https?|wss?|file|s3|gs|ssh|git|arn|urn|data|sha[0-9]{1,3}|md5)[:-]|[A-Z]:\\")
_REGEX = lazy_compile(rb"\[\^|\]\??[*+{]|\]\?\[|\(\?[:=!<]|\\[dwsS][+*]|\.\*")
_NAME_AND_OPERATOR = lazy_compile(rb"[A-Za-z_ .-]+[=:]+[ \t]*\Z")
_BRACED_NAME = lazy_compile(rb"[$#%]?\{[^{}]*\}")
_MIN_LITERAL_CHARS = 8
_PATH = lazy_compile(rb"[~.]{0,2}/[\w.-]+/|[\w.-]+(?:/[\w.-]+)+\.[A-Za-z]{2,4}\Z")


def is_placeholder(value: bytes) -> bool:
    """Return True for text in place of a secret: `your-key-here`, `xxxxxxxx`, `changeme`.

    Such a word inside a longer value does not make the value a placeholder, if random characters are left without it.
    """
    value = value[:CHECKED_CHARS]
    rest = _PLACEHOLDER_WORDS.sub(_blank_out, value)
    if rest != value and (count_random_chars(rest) < 8 or value.endswith((b"EXAMPLE", b"EXAMPLEKEY"))):
        return True
    rest = _SEQUENCES.sub(b"", rest)
    return len(set(rest)) < min(5, len(value)) or len(rest) * 3 <= len(value)


def _blank_out(word: re.Match[bytes]) -> bytes:
    return word[0] if word[0].isalpha() and _MIXED_CASE.search(word[0]) else b" "


def is_reference(value: bytes) -> bool:
    """Return True for a placeholder, a template, or a reference to where the secret is."""
    if _TEMPLATE.match(value) or _ELSEWHERE.match(value) or _NAME_AND_OPERATOR.match(value):
        return True
    if is_placeholder(value) or is_regex(value):
        return True
    # Of a format string, only the text around the names in braces can be a secret.
    literal, names = _BRACED_NAME.subn(b" ", value)
    if names and count_random_chars(literal) < _MIN_LITERAL_CHARS:
        return True
    return bool(_PATH.match(value)) and count_random_chars(value) < 12


# --- Random characters

_WORD_AND_DIGITS = lazy_compile(rb"(?:[A-Z]?[a-z]{2,}+|[A-Z]{2,}+|[A-Za-z](?![A-Za-z]))*+[0-9]{0,4}")
_CAMEL_CASE = lazy_compile(rb"[a-z]?(?:[A-Z]?[a-z]{1,}+)*+[0-9]{0,4}")
_CAPITAL_LETTERS = lazy_compile(rb"[A-Z]")
_CASE_CHANGE = lazy_compile(rb"[a-z][A-Z]")
_CONSONANTS = lazy_compile(rb"[bcdfghjklmnpqrstvwxz]{6}")
_SYMBOLS_TO_SPACES = bytes(char if bytes([char]).isalnum() else 32 for char in range(256))
_KEBAB_WORDS = lazy_compile(rb"(?:[A-Z]?[a-z]+|[A-Z]+|[0-9]{1,4})(?:[-_. ](?:[A-Z]?[a-z]+|[A-Z]+|[0-9]{1,4}))*")


def count_random_chars(value: bytes) -> int:
    """Count the characters of a value that belong to no word, name or number."""
    parts = value[:CHECKED_CHARS].translate(_SYMBOLS_TO_SPACES).split()
    return sum([len(part) for part in parts if not _is_word(part)])


def _is_word(part: bytes) -> bool:
    if _CAMEL_CASE.fullmatch(part) and len(part) >= 4 * len(_CAPITAL_LETTERS.findall(part)):
        return not _CONSONANTS.search(part.lower())
    if not _WORD_AND_DIGITS.fullmatch(part):
        return False
    # Letters alone can be random too: no language has six consonants in a row, no name so many changes of case.
    if len(part) < 12:
        return len(_CASE_CHANGE.findall(part)) < 3
    return not _CONSONANTS.search(part.lower()) and len(_CASE_CHANGE.findall(part)) * 6 < len(part)


def is_random(value: bytes) -> bool:
    """Return True for the rest of a token after a known prefix, unless it is made of words or a placeholder."""
    value = value[:_MAX_CHECKED_CHARS_OF_TOKEN]
    if not has_enough_distinct_chars(value):
        return False
    return not _KEBAB_WORDS.fullmatch(value) or count_random_chars(value) >= min(12, len(value) // 2)


def is_random_word(value: bytes) -> bool:
    """Return True where a prefix says little: many characters belong to no word."""
    return has_enough_distinct_chars(value) and count_random_chars(value) >= min(12, len(value) // 2)


def has_enough_distinct_chars(value: bytes) -> bool:
    """Return True for a value of many different characters that is not a placeholder."""
    least = min(8, len(value) // 2)
    return (len(set(value[: 2 * least])) >= least or len(set(value)) >= least) and not is_placeholder(value)


def has_digits_and_both_cases(value: bytes) -> bool:
    """Return True for a random value of small letters and capitals, with a digit or many changes of case."""
    if not is_random(value) or min(count_of(_CAPITALS, value), count_of(_SMALL, value)) < 2:
        return False
    return count_of(DIGITS, value) > 0 or len(_CASE_CHANGE.findall(value)) >= 3


def has_digits_and_capitals(value: bytes) -> bool:
    """Return True for a random value of capitals and at least one digit, not all of it digits."""
    return is_random(value) and 1 <= count_of(DIGITS, value) <= len(value) - 3


def count_of(kind: bytes, value: bytes) -> int:
    """Count the characters of a value that are of a kind."""
    return len(value) - len(value.translate(None, kind))


def has_crc(value: bytes) -> bool:
    """Return True where the last six characters are the CRC-32 of the thirty before in base 62 (GitHub, npm)."""
    body, tail, crc = value[-36:-6], value[-6:], 0
    for char in tail:
        digit = _BASE62.find(char)
        if digit < 0:
            return False
        crc = crc * 62 + digit
    return zlib.crc32(body) == crc


def is_nkey(value: bytes) -> bool:
    """Return True for a seed of NATS: base32 whose last two bytes are the CRC-16 of those before."""
    try:
        raw = base64.b32decode(value + b"=" * (-len(value) % 8))
    except binascii.Error:
        return False
    return binascii.crc_hqx(raw[:-2], 0) == int.from_bytes(raw[-2:], "little")


def is_jwt(value: bytes) -> bool:
    """Return True where the first part is the base64 of a JSON object with an algorithm."""
    header = unbase64(value.split(b".", 1)[0])
    return header is not None and header.startswith(b"{") and b'"alg"' in header


_STANDARD_BASE64 = bytes.maketrans(b"-_", b"+/")
_PRINTABLE = bytes([9, 10, 13, *range(32, 127)])


def unbase64(value: bytes) -> bytes | None:
    """Decode base64 of either alphabet, with or without padding; None if it is invalid."""
    plain = value.rstrip(b"=").translate(_STANDARD_BASE64)
    if len(plain) % 4 == 1:
        return None
    try:
        return base64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def is_printable(value: bytes) -> bool:
    """Return True for text: nearly all of it printable ASCII."""
    return len(value.translate(None, _PRINTABLE)) * 20 <= len(value)


# --- Code and words

_CODE = lazy_compile(
    rb"[(\[{]|->|=>|::|&&|\|\||[A-Za-z_]\.[A-Za-z_][A-Za-z_]+(?:\.|$)|\?\.|\w\+\+(?![\w+/=])|(?<![\w+/])\+\+[A-Za-z_]|[)\]}]:?\Z|\A[A-Za-z_.]*\\|[\w)\]]\)[.:;,]?\Z"
)
_NAME = lazy_compile(rb"[A-Za-z_][A-Za-z_-]*[0-9]{0,2}")
_LETTERS = lazy_compile(rb"[A-Za-z]+")
_WORDS_IN_NAME = lazy_compile(rb"[A-Z]?[a-z]+|[A-Z]+")
_SYMBOL = lazy_compile(rb"[!@#$%^&*?~+=]")
_IDENTIFIER = lazy_compile(
    rb"[A-Za-z_][A-Za-z0-9_]*(?:(?:\.|::|/)[A-Za-z_][A-Za-z0-9_]*)+|[A-Z]?[a-z]{2,}[0-9]{0,3}(?:[A-Z][a-z]{2,}[0-9]{0,3})+"
)
_VARIABLE_WITH_DIGITS = lazy_compile(rb"[*&]?[a-z]{1,8}[0-9]{1,3}(?:[A-Z]?[a-z]{3,})+")
"""`b64encoded`, `*s3ScanSecret`."""
_NAME_WITH_DIGITS = lazy_compile(rb"[A-Za-z]{1,8}[0-9]{1,5}(?:[A-Z]?[a-z]{2,})*")
"""`OAuth2Token`, `Ed25519`."""
_BRACKET_OR_SPACE = lazy_compile(rb"[\s()\[\]{}<>\\]")
_MIN_CHARS_OF_MIXED_PASSWORD = 5
_PASSWORD_SYMBOLS = frozenset(b"!@#%^~")
_KINDS_OF_CHARS = (DIGITS, _CAPITALS, _SMALL)
_TYPE_NAME = lazy_compile(rb"(?:\w+(?:\.|::))+\w*[A-Z][a-z]{3,}\w*")
_LOWER_NAME = lazy_compile(rb"[a-z0-9]+(?:[-_./:][a-z0-9]+)*")
_HASH_OR_ID = lazy_compile(
    rb"[0-9a-f]{16}|[0-9a-f]{24}|v?[0-9]+(?:\.[0-9]+)+[\w.+-]{0,40}|[0-9]{4}-[0-9]{2}-[0-9]{2}[0-9T:.Z+-]*"
)
_GROUPED_KEY = lazy_compile(rb"[A-Z0-9]{4,8}(?:-[A-Z0-9]{4,8}){3,}")
_DESCRIBING_WORDS = lazy_compile(
    rb"(?i)pass|pwd|secret|token|key|string|text|hidden|input|required|optional|invalid|missing|none|null|true"
    rb"|false|number|object|undefined|default|empty|prompt|plain|crypt|user|email|login|admin|auth|cred|boolean"
    rb"|unknown|value|valid|change|enter|type|field|form|label|error|success|fail|disabled|enabled|config|setting"
    rb"|manage|update|psk|forgot|confirm|new|old|current|show|hide|tests?$|^test|^foo|^bar|^baz|^qux|^abc|^str$|^self"
    rb"|^this|hash|postgres|mysql|mongo|redis|local|guest|example|external|internal|incorrect|wrong|exist"
)
"""Words that code and forms use in place of a password."""
_FUNCTION_WORDS = frozenset(
    b"the an is are was be to your you my our their its for of and or in on at with by from as if it this that these"
    b" must not no can could may should will would has have had do does did please than then when where who why how"
    b" what which we they he she i me us them least more less only too so but use used using see here there long short"
    b" wrong bad good contains characters character letters digits min max stored saved sent given read set get got"
    b" provided rotated expired stays stay lives live kept goes match matches matched".split()
)
"""Words that make a sentence of others."""
_PHRASE = lazy_compile(rb"[A-Za-z0-9][A-Za-z0-9'!@#$%^&*_-]{1,19}(?: [A-Za-z0-9!@#$%^&*_'-]{2,20}){1,23}")
_PHRASE_WORD = lazy_compile(rb"[A-Za-z0-9!@#$%^&*_'-]{1,20}")
_ESCAPED_QUOTE = lazy_compile(rb"\\+[\"'`]")
_SEED_PHRASE_WORDS = frozenset({12, 15, 18, 21, 24})


def is_regex(value: bytes) -> bool:
    """Return True for a regular expression with classes or repetitions."""
    return _REGEX.search(value) is not None


def is_code(value: bytes) -> bool:
    """Return True for a piece of a program rather than a value."""
    return bool(_CODE.search(value))


def is_strong_password(value: bytes) -> bool:
    """Return True for letters, digits and a symbol or two, as people write them, or many symbols."""
    if not count_of(DIGITS, value) or not _LETTERS.search(value):
        return False
    symbols = len(_SYMBOL.findall(value))
    return symbols >= 5 or (symbols > 0 and not is_code(value))


def is_mixed_password(value: bytes) -> bool:
    """Return True for small letters, capitals and digits that make no names, or have two symbols that are rare in code.

    A password may also have symbols that look like code: `?.`, `.*`, `++`. Text with brackets is not considered.
    """
    if _BRACKET_OR_SPACE.search(value) or _ELSEWHERE.match(value) or is_placeholder(value):
        return False
    parts = value.translate(_SYMBOLS_TO_SPACES).split()
    mixed = b"".join(part for part in parts if not _is_word(part) and not _NAME_WITH_DIGITS.fullmatch(part))
    if len(set(value) & _PASSWORD_SYMBOLS) > 1:
        mixed = value
    return len(mixed) >= _MIN_CHARS_OF_MIXED_PASSWORD and all(count_of(kind, mixed) for kind in _KINDS_OF_CHARS)


def is_phrase(value: bytes) -> bool:
    """Return True for a passphrase: some words that make no sentence."""
    words = value.split(b" ")
    if not _PHRASE.fullmatch(value) or len(value) < 12 or _DESCRIBING_WORDS.search(value) or is_placeholder(value):
        return False
    if not _FUNCTION_WORDS.isdisjoint(word.lower() for word in words):
        return len(words) in _SEED_PHRASE_WORDS and value.islower()
    return len(words) >= 3 and sum(map(len, words)) >= 10


def is_truncated_phrase(value: bytes) -> bool:
    """Return True for the beginning of a passphrase: two words or more, of which the last may not be whole."""
    words = value.split(b" ")
    if len(words) < 2 or not all(map(_PHRASE_WORD.fullmatch, filter(None, words))) or len(value) < 6:
        return False
    return _is_no_sentence(words) and not _DESCRIBING_WORDS.search(value) and not is_reference(value)


def has_escaped_quotes(value: bytes) -> bool:
    """Return True for a value with escaped quotes in it that is not a sentence."""
    plain, count = _ESCAPED_QUOTE.subn(b"", value[:CHECKED_CHARS])
    if not count or len(plain) < 4 or _DESCRIBING_WORDS.search(plain) or is_reference(plain):
        return False
    return _is_no_sentence(plain.translate(_SYMBOLS_TO_SPACES).split())


def _is_no_sentence(words: list[bytes]) -> bool:
    return _FUNCTION_WORDS.isdisjoint(word.lower() for word in words)


# --- The decision


def is_secret_value(meaning: str, value: bytes, written: Written) -> bool:
    """Decide whether the value of a name of this meaning (`password`, `secret`, `key`) is a secret."""
    value = value[:CHECKED_CHARS]
    if meaning == "password" and written is not Written.NEARBY and is_mixed_password(value):
        return True
    if len(value) < 4 or is_reference(value):
        return False
    if b" " in value:
        return _is_secret_phrase(meaning, value, written)
    if meaning == "password":
        return _is_password(value, written)
    if meaning == "secret":
        return _is_key(value, written) or (
            written is Written.SHELL and len(value) >= 8 and value.upper() != value and _is_password(value, written)
        )
    # `key` and its like name many other things.
    return len(value) >= 12 and b"," not in value and not _HASH_OR_ID.fullmatch(value) and _is_key(value, written)


def _is_secret_phrase(meaning: str, value: bytes, written: Written) -> bool:
    if written is Written.ARGUMENT:
        return meaning == "password" and len(value) >= 6
    if written is Written.NEARBY:
        return False
    return (
        is_phrase(value) if meaning == "password" else len(value.split(b" ")) in _SEED_PHRASE_WORDS and is_phrase(value)
    )


_MIN_RANDOM_LETTERS = 16


def _is_password(value: bytes, written: Written) -> bool:
    """Return True for nearly any value; for a word or a name only in quotes, in a shell or as an argument."""
    is_literal = written in (Written.QUOTED, Written.SHELL, Written.ARGUMENT)
    if written is Written.NEARBY:
        return not _is_ordinary(value) and _is_password_in_doubt(value)
    if written is Written.BARE and _LETTERS.fullmatch(value.strip(b"&*?!")):
        return count_random_chars(value) >= _MIN_RANDOM_LETTERS  # fewer are a type or a name
    if _LETTERS.fullmatch(value):
        words = _WORDS_IN_NAME.findall(value)
        return is_literal and len(value) >= 5 and (not _DESCRIBING_WORDS.search(value) or len(words) > 6)
    if value.isdigit():
        return len(value) >= 6 and is_literal
    is_name = bool(_NAME.fullmatch(value) and _DESCRIBING_WORDS.search(value))
    is_bare = written in (Written.BARE, Written.SHELL)
    if is_bare and (is_code(value) or is_name):
        return count_random_chars(value) >= 24
    return not is_name or count_random_chars(value) >= 12


def _is_password_in_doubt(value: bytes) -> bool:
    """Return True for random characters, or letters and digits with capitals or symbols."""
    if count_random_chars(value) >= 8 or (is_strong_password(value) and len(value) >= 6):
        return True
    return (
        len(value) >= 8
        and bool(count_of(DIGITS, value) and _LETTERS.search(value))
        and not _LOWER_NAME.fullmatch(value)
    )


def _is_ordinary(value: bytes) -> bool:
    return is_code(value) or bool(_IDENTIFIER.fullmatch(value) or _HASH_OR_ID.fullmatch(value))


def _is_key(value: bytes, written: Written) -> bool:
    """Return True for random characters and strong passwords, but not for code and type names."""
    if len(value) < 8 or (_IDENTIFIER.fullmatch(value) and count_random_chars(value) < 16):
        return False
    if value.isdigit():
        return len(value) >= _MIN_DIGITS_OF_KEY
    is_in_doubt = written in (Written.BARE, Written.NEARBY)
    if is_in_doubt and (_TYPE_NAME.fullmatch(value) or _VARIABLE_WITH_DIGITS.fullmatch(value)):
        return False
    if is_in_doubt and is_code(value) and count_random_chars(value) < 24:
        return False
    if _GROUPED_KEY.fullmatch(value):
        return True
    enough = 10 if len(value) >= 16 and value.lower() == value else 8
    return count_random_chars(value) >= enough or is_strong_password(value)


# --- Reading

MAX_VALUE_BYTES = 4096
_MAX_BACKSLASHES = 64
_MAX_ELLIPSIS_BYTES = 8
_CORNER_QUOTES = {b"\xe3\x80\x8c": b"\xe3\x80\x8d", b"\xe3\x80\x8e": b"\xe3\x80\x8f", b"\xc2\xab": b"\xc2\xbb"}
_OPENING_QUOTE = lazy_compile(
    rb"(?:[bfruBFRULN@$]{1,2}#?(?=\\*[\"']))?(?:\\*(?:\"\"\"|'''|[\"'`])|\xe2\x80[\x9c-\x9e\x98]|\xe3\x80[\x8c\x8e]|\xc2\xab)"
)
_BARE = lazy_compile(rb"[^\s\"'`<>,;\\|]{1,4096}")
_BARE_REST = lazy_compile(_BARE.pattern.replace(b"{1,4096}", b"*"))
_ELLIPSIS = lazy_compile(rb"[ \t]*(?:\xe2\x80\xa6|\.\.\.)[ \t]*\Z")
_PHRASE_LINE = lazy_compile(rb"([a-z][a-z0-9]{1,19}(?:[ -][a-z][a-z0-9]{1,19}){3,23})(?=[ \t]*(?:[\r\n\0#]|\Z))")


class Value(NamedTuple):
    """The position of a value, without its quotes."""

    start: int
    end: int
    quoted: bool
    is_truncated: bool = False
    """The text around it was cut off before its end."""


def read_value(text: bytes, position: int, *, is_url_parameter: bool = False) -> Value | None:
    """Read the value that begins here."""
    opening = _OPENING_QUOTE.match(text, position)
    if opening is not None:
        return _read_quoted(text, opening)
    match = _BARE.match(text, position)
    if match is None:
        return None
    end = match.end()
    if is_url_parameter and (stop := text.find(b"&", position, end)) >= 0:
        end = stop
    if _ends_text(text, end) and (cut := _ELLIPSIS.search(text, max(position, end - _MAX_ELLIPSIS_BYTES), end)):
        return Value(position, cut.start(), False, is_truncated=True) if cut.start() > position else None
    return Value(position, _without_closing_brackets(text, position, end), False)


def read_values(text: bytes, position: int, *, is_url_parameter: bool = False) -> list[Value]:
    """Return the values that may begin here: the usual one first, then others that a quote allows."""
    value = read_value(text, position, is_url_parameter=is_url_parameter)
    opening = _OPENING_QUOTE.match(text, position)
    if value is None or opening is None:
        return [value] if value else []
    # Where a backslash before a quote is no escape, the value ends at the quote. A quote that is never closed may be
    # followed by other text.
    others = [_read_quoted(text, opening, has_escapes=False), read_value(text, value.start)]
    return list(dict.fromkeys([value, *[Value(*other[:2], True) for other in others if other]]))


def end_of_long_value(text: bytes, value: Value) -> int:
    """Return the end of a value that may be longer than what was read of it."""
    rest = _BARE_REST.match(text, value.end) if value.end - value.start == MAX_VALUE_BYTES else None
    return rest.end() if rest else value.end


def read_phrase_line(text: bytes, position: int) -> int | None:
    """Return the end of a passphrase that begins here, has no quotes, and goes to the end of its line."""
    match = _PHRASE_LINE.match(text, position)
    return match.end(1) if match is not None and is_phrase(match[1]) else None


def _read_quoted(text: bytes, opening: re.Match[bytes], *, has_escapes: bool = True) -> Value | None:
    start, mark = opening.end(), opening[0].lstrip(b"bfruBFRULN@$#\\")
    quote = _CORNER_QUOTES.get(mark, b"\xe2\x80" if mark[:1] == b"\xe2" else mark)
    limit = min(len(text), start + MAX_VALUE_BYTES)
    if len(quote) < 3 or quote[:1] == b"\xe2":
        line = text.find(b"\n", start, limit)
        limit = limit if line < 0 else line
    depth, end = opening[0].count(b"\\"), text.find(quote, start, limit)
    while has_escapes and end >= 0 and _is_escaped(text[max(start, end - _MAX_BACKSLASHES) : end], depth):
        end = text.find(quote, end + 1, limit)
    is_truncated = False
    if end < 0:
        # A title or a preview that was cut off has no closing quote.
        cut = _ELLIPSIS.search(text, max(start, limit - _MAX_ELLIPSIS_BYTES), limit)
        end = cut.start() if cut else limit
        is_truncated = cut is not None or _ends_text(text, limit)
    end = start + len(text[start:end].rstrip(b"\\ \t"))
    start = end - len(text[start:end].lstrip(b" \t"))
    return Value(start, end, True, is_truncated) if end > start else None


def _ends_text(text: bytes, position: int) -> bool:
    """Return True where a text ends, or one of several that are searched together."""
    return position == len(text) or text.startswith(TEXT_SEPARATOR, position)


def _is_escaped(before: bytes, depth: int) -> bool:
    """Return True for a quote that does not end a value which began with so many backslashes and a quote."""
    count = len(before) - len(before.rstrip(b"\\"))
    return count > depth and (count - depth) % (2 * depth + 2) != 0


def _without_closing_brackets(text: bytes, start: int, end: int) -> int:
    """Leave out brackets that were opened before the value, and the punctuation behind it."""
    for opener, closer in ((b"(", 0x29), (b"[", 0x5D), (b"{", 0x7D)):
        while end > start and text[end - 1] == closer and opener not in text[start:end]:
            end -= 1
    return end
