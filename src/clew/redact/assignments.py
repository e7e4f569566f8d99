"""`NAME=value` in all its spellings: shell, .env, JSON, YAML, TOML, INI, code, with quotes of any depth."""

from __future__ import annotations

import re

from clew.redact import secret_names, value_reader
from clew.redact.matcher import Match
from clew.redact.value_checks import chance

_Q = r"[\"'`\\]"
# How a text ends that was cut off.
_CUT = r"[ \t]*(?:\xe2\x80\xa6|\.\.\.|\n\x00|$)"
_MARK = r"[0-9A-Z!@#%^&*+/?~$()=-]"
SIGNS = (
    rf"(?i:{secret_names.SIGNS})[\"'`\]\\)]{{0,6}}[ \t]{{0,8}}(?:[:?+]?=|=>|:)[ \t]{{0,4}}"
    rf"(?:{_Q}{{0,6}}(?:[a-z_.]{{4,30}}{_MARK}|[a-z_.]{{0,3}}{_MARK}[^\s]{{3}})|[\"'\\]{{1,6}}[a-z]{{5,40}}(?:[\"'\\]|{_CUT}))",
    # A phrase: words with spaces, in quotes or to the end of a line.
    rf"(?i:{secret_names.PHRASED})[\"'`\]\\)]{{0,6}}[ \t]{{0,8}}(?:[:?+]?=|=>|:)[ \t]{{0,4}}"
    rf"[\"'`\\]{{0,6}}[A-Za-z0-9'-]{{2,}} [A-Za-z0-9'-]{{2,}}(?:[ \"'`\\]|{_CUT})",
    # A value with a quote in it that is escaped more often than the first.
    rf"(?i:{secret_names.SIGNS})[\"'`\]\\)]{{0,6}}[ \t]{{0,8}}(?:[:?+]?=|=>|:)[ \t]{{0,4}}"
    r"(?:[\"'][^\"'\\\r\n]+\\+|\\+[\"'][^\"'\\\r\n]+\\{3,})[\"']",
    # A name and its value as two members, attributes or elements; two cells of a table; two items of a list.
    rf"(?i:{secret_names.SIGNS})(?:[\"'\\]{{0,6}}[ \t\r\n,]+[\"'\\]{{0,6}}value[\"'\\]{{0,6}}[ \t]*[:=]"
    r"|</name>[ \t\r\n]*<value>|[`*]*[ \t]*\|[ \t]*[^\s|]|[\"'\\]{1,6}[ \t]*,[ \t]*[\"'\\])",
    r"(?:PASSWORD|PASSWD|PASSPHRASE|PWD|PASS|SECRET|TOKEN|KEY)=[a-z]{5}|_PAT[\"']?[ \t]?[=:][ \t]?[\"']?[A-Za-z0-9]{8}",
)

_LONGEST = 80
_NAMED = re.compile(rb"([A-Za-z0-9_.\-]{1,80})([\"'`\]\\)]{0,6})([ \t]{0,8})([:?+]?=|=>|:)([ \t]{0,4})")
_PAIRED = re.compile(
    rb"([A-Za-z0-9_.\-]{1,80})(?:[\"'\\]{0,6}[ \t\r\n,]{1,80}[\"'\\]{0,6}value[\"'\\]{0,6}[ \t]{0,4}[:=][ \t]{0,4}"
    rb"|</name>[ \t\r\n]{0,80}<value>)"
)
_CELL = re.compile(
    rb"([A-Za-z0-9_.\-]{1,80})[`*]{0,2}[ \t]{0,80}\|[ \t]{0,80}[`*]{0,2}(?=[^\s|`]{8,200}[ \t`*]{0,80}\|)"
)
_ITEM = re.compile(rb"([A-Za-z0-9_.\-]{1,80})\\{0,6}[\"'][ \t]{0,4},[ \t]{0,4}(?=\\{0,6}[\"'])")
_LEAST_CHANCE = 8
_NAME_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
_LONGEST_NAME = 48


def read_assigned(text: bytes, place: int, end: int) -> tuple[tuple[Match, ...], int]:
    """What is assigned to the name around this place, of which the sign ends at `end`, and where to look on."""
    match = _NAMED.match(text, place)
    if match is None:
        return _read_pair(text, place, end)
    begin = _start_of_name(text, place)
    name = text[begin : match.end(1)]
    meaning = "" if text[begin - 2 : begin] == b"${" else secret_names.meaning(name)
    parameter = text[begin - 1 : begin] in (b"?", b"&")
    value = value_reader.read(text, match.end(), parameter=parameter) if meaning else None
    if value is None or (text[value.start] == 0x3D and not value.quoted):
        return (), match.end()
    phrase = value_reader.read_phrase(text, value.start) if not value.quoted and _begins_line(text, begin) else None
    if phrase is not None:
        return (Match(value.start, phrase, "assigned_password", 0.8),), phrase
    # `NAME=word` in a shell or an .env can be nothing but a value.
    capital = match[4] == b"=" and not match[3] and not match[5] and name.upper() == name
    is_flag = value.quoted and name.startswith(b"-")
    # Where a backslash before a quote is no escape, the value ends there.
    for each in (value, value_reader.read_to_quote(text, match.end()) if value.quoted else None):
        if each is None:
            continue
        word = text[each.start : each.end]
        is_cut = each.quoted and each.is_cut and value_reader.is_cut_phrase(word)
        if is_cut or _is_found(word, meaning, each.quoted, capital, is_flag):
            return _hit(each, meaning), each.end
    return (), match.end()


def _is_found(word: bytes, meaning: str, quoted: bool, capital: bool, is_flag: bool = False) -> bool:
    if quoted and value_reader.is_with_quotes(word):
        return True
    if meaning == "password":
        return value_reader.is_password(word, quoted, capital) or (is_flag and value_reader.is_given_phrase(word))
    return value_reader.is_secret(word, quoted) or (capital and _is_plain(word))


def _hit(value: value_reader.Value, meaning: str) -> tuple[Match, ...]:
    rule = "assigned_password" if meaning == "password" else "assigned_secret"
    return (Match(value.start, value.end, rule, 0.85),)


def _start_of_name(text: bytes, place: int) -> int:
    before = text[max(0, place - _LONGEST_NAME) : place]
    return place - (len(before) - len(before.rstrip(_NAME_LETTERS)))


def _read_pair(text: bytes, place: int, end: int) -> tuple[tuple[Match, ...], int]:
    """The value behind a name that is a value itself: of an attribute, a cell, an item."""
    begin = _start_of_name(text, place)
    paired = _PAIRED.match(text, place)
    match = paired
    if match is None and text[begin - 1 : begin] in (b'"', b"'"):
        # The name is a whole item: `/etc/passwd` is none.
        match = _ITEM.match(text, place)
    if match is None and text[max(0, begin - _LONGEST) : begin].rstrip(b" \t`*").endswith(b"|"):
        match = _CELL.match(text, place)
    if match is None:
        # Of a name that is too long, only the end may be one.
        letters = end - place - len(text[place:end].lstrip(_NAME_LETTERS))
        return (), place + max(4, letters - _LONGEST)
    name = text[begin : match.end(1)]
    meaning = secret_names.meaning(name)
    value = value_reader.read(text, match.end()) if meaning else None
    if value is None:
        return (), match.end(1)
    word = text[value.start : value.end]
    if paired:
        found = _is_found(word, meaning, value.quoted, capital=name.upper() == name)
    else:
        # Names stand in rows and lists too, without values.
        found = chance(word) >= _LEAST_CHANCE and b" " not in word and not value_reader.stands_for_another(word)
    return (_hit(value, meaning), value.end) if found else ((), match.end(1))


def _begins_line(text: bytes, begin: int) -> bool:
    """True for a name with nothing before it in its line, as in YAML and .env files."""
    before = text[max(0, begin - _LONGEST_NAME) : begin]
    return not before[before.rfind(b"\n") + 1 :].strip(b" \t-")


def _is_plain(word: bytes) -> bool:
    """A word or a few, given to a name in capitals."""
    return len(word) >= 8 and value_reader.is_password(word, quoted=False, capital=True)
