"""Read assignments in any syntax: a name that means a secret, what connects it with a value, and the value.

A candidate pattern finds the name and the beginning of a connection. `match_at` then reads the name around it, tries
the connections of `_CONNECTIONS` one after the other (an operator, a type and an operator, a call, an element, the next
line, a sentence and so on), reads the value behind the connection, and asks `is_secret_value`. Everything is read in
bounded windows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from clew.redact import secret_names, tables
from clew.redact.lazy_pattern import lazy_compile
from clew.redact.matcher import Match
from clew.redact.value_checks import (
    DIGITS,
    Value,
    Written,
    count_of,
    count_random_chars,
    end_of_long_value,
    has_escaped_quotes,
    is_code,
    is_reference,
    is_secret_value,
    is_strong_password,
    is_truncated_phrase,
    read_phrase_line,
    read_value,
    read_values,
)

_N = rf"(?i:{secret_names.NAMES})"
_CLOSE = r"[\"'`\]\\)*]*"
# A full-width colon or equals sign is an operator too. In Markdown, `**Password:** x` has the end of the bold text
# behind the operator; in YAML, a tag or an anchor is before the value.
_OPERATOR = (
    r"(?:[?+:.|&!=<~]*[:=][>=~]*(?:\*\*|__|[ \t]+(?:!!?[a-z]+|&[a-z]+)[ \t])?"
    r"|\xef\xbc[\x9a\x9d]|\\+uff1[ad]|<-|->|\|\||\?\?|\?:|[ \t]or)"
)
_QUOTE = r"(?:[a-zA-Z@$]?#?\\*(?:\"\"\"|'''|[\"'`])|\xe2\x80|\xe3\x80|\xc2\xab)"
# A quoted value, or a bare one that is more than a name in small letters.
_MARK = r"[0-9A-Z!@#%^&*+/?~$=-]"
_VALUE = rf"(?:[(\[{{][ \t]*)*(?:{_QUOTE}[ \t]*[^\s\"'`,)]|[a-z_.]*{_MARK})"
# name[] = {0x12, 0x34, ...}
_NUMBERS = r"[\w \t:=.*&<>\[\]-]*[{\[(]+[ \t\r\n\\]*[0-9]+(?:x[0-9a-fA-F]+)?[ \t]*,[ \t\r\n]*[0-9]"
_LINK = secret_names.LINK_WORDS
# All that may follow a name is one expression: the names are searched for once, which keeps the search small.
_CONNECTION_PATTERNS = (
    # name = value, name: value, name := value, name ?= value, name => value, name || value, <name>value
    rf"{_CLOSE}[ \t]*(?:{_OPERATOR}|>(?:<!\[CDATA\[)?)[ \t]*{_VALUE}",
    # name: Type = "value", name string = "value", name[] = "value"
    rf"{_CLOSE}(?:[ \t]*:?[ \t]*[A-Za-z0-9_.*&<>\[\]?|'{{}};]+){{1,5}}[ \t]*:?=[ \t]*"
    rf"(?:[A-Za-z_.]*[(\[{{][ \t]*(?:default[ \t]*=[ \t]*)?)*{_QUOTE}",
    # name = Type("value"), get("name", "value"), .name("value"), name 'value'
    rf"{_CLOSE}[ \t]*{_OPERATOR}?[ \t]*(?:new[ \t])?[A-Za-z0-9_.:<>\[\]]*[({{][ \t]*{_QUOTE}[^\s\"'`,)]",
    rf"(?:\\*[\"'`])?[\])]*[ \t]*,[ \t\r\n]*(?:default[ \t]*=[ \t]*)?{_QUOTE}",
    r"\\*\";s:[0-9]+:\\*\"",
    rf"[ \t]+{_QUOTE}[^\s\"'`]",
    # def name(): return "value", string name() { return "value"; }
    rf"\([^()\n]*\)[ \t\w:>*&-]*[{{:]?[ \t\r\n]*return[ \t]+{_QUOTE}",
    # The value on the next line, in a block of YAML, or in the next element.
    rf"{_CLOSE}[ \t]*[:=]?[ \t]*[|>\\(\[{{]*[+-]?[0-9]?[ \t\\]*[\r\n][ \t\r\n>|*+=\\-]*"
    r"(?:```[a-z]*[\r\n\\]+)?[\"'`]?[A-Za-z_.-]*[0-9!@#%^&*~$?+]",
    r"[\"'`]*(?:</[A-Za-z]+)?>[ \t\r\n\\]*<[A-Za-z]+>",
    # A sentence.
    rf"(?:[ \t]+[A-Za-z'\x80-\xff-]+){{0,5}}[ \t]*(?:{_LINK})?[ \t:]+[\"'`*(\[]*[A-Za-z!@#$%^&*_.+/-]*[0-9!@#$%^&*?]",
    _NUMBERS,
    *tables.CONNECTION_PATTERNS,
)
CANDIDATE_PATTERNS = (
    rf"{_N}(?:{'|'.join(_CONNECTION_PATTERNS)})",
    # KEY=value, pass: value, pw=value, PAT = value, key is value
    rf"(?i:key){_NUMBERS}",
    rf"(?i:key|pass|pw|pat|auth|bearer)(?:{_CLOSE}[ \t]*{_OPERATOR}|[ \t]+(?:is|was|-|to))[ \t]*{_QUOTE}?"
    r"[A-Za-z_.+/-]*[0-9!@#%^&*~$?]",
    r"(?:PASS|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PWD)=[a-z]{5}",
    # A phrase: words with spaces, in quotes or to the end of a line.
    rf"(?i:{secret_names.PHRASED}){_CLOSE}[ \t]*(?:{_OPERATOR}|>)[ \t]*[\"'`\\{{]*"
    r"[A-Za-z0-9'-]+ [A-Za-z0-9'-]+(?:[ \"'`\\\r\n]|\xe2\x80\xa6|$)",
    # setenv NAME value, ENV NAME value, #define NAME value, --name value
    r"(?:PASSWORD|PASSWD|PASSPHRASE|PWD|PASS|SECRET|TOKEN|KEY)[A-Z0-9_]*[ \t]+[\"']?[A-Za-z0-9!@#%^&*_]",
    r"-(?i:[a-z]+-)*(?i:password|passwd|passphrase|token|secret|api-?key|pass|pw|pwd|secret-?key|access-?key)"
    r"[ \t]+[\"']?[^\s\-\"'|<>&;$]",
    rf"(?i:{secret_names.FOREIGN})",
    # value="..." with the name nearby
    rf"(?i:\bvalue|parametervalue|\bval|<string|\bsecretstring)[\"'\\]*[ \t]*(?:[:>][ \t]*{_VALUE}|=>?[ \t]*{_QUOTE})",
    rf"\bdefault[ \t]+=[ \t]*{_QUOTE}",
    *tables.CANDIDATE_PATTERNS,
)

_MAX_NAME_BEFORE_KEYWORD = 48
_MAX_CONNECTION_BYTES = 120
_MIN_RANDOM_IN_BRACES = 16
_PAIR_WINDOW_BYTES = 240
# Letters beyond ASCII, but not a full-width colon or equals sign.
_NAME_BYTE = rb"(?:[A-Za-z0-9_.-]|(?!\xef\xbc[\x9a\x9d])[\x80-\xff])"
_NAME = lazy_compile(
    rb"[ \t(\"'-]{0,3}(%b|%b{1,80})" % (secret_names.SPACED_NAMES.encode("latin-1"), _NAME_BYTE), re.IGNORECASE
)
_NAME_CHARS = bytes([*b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-", *range(0x80, 0x100)])
_DIRECTIVE = lazy_compile(
    rb"(?i)(?:^|[\s%#`;&>])(?:define|env|arg|setenv|set(?:x|[ \t]+-[a-z]+)?|export|put|putenv"
    rb"|configure[ \t]+set|config[ \t]+set|requirepass)[ \t]+\Z"
)
_SQL_BEFORE = lazy_compile(rb"(?i)\b(?:with|set|by|identified|user|role|encrypted|login)[ \t]+\Z")
_SETTER = lazy_compile(
    rb"(?i)(?:\b(?:get|getenv|env|environ|setdefault|set|setproperty|getproperty|put|putenv|setenv|define|header|append"
    rb"|add|setitem|setrequestheader|insert|store|config|option|default|pair|entry|of|with\w{0,20}|setvar|setx|const)"
    rb"|[a-z](?:Get|Set|Put|Add|Header|Property|Env)|Property|Header|Env)[!?]?[(\[{ ][ \t]{0,4}"
    rb"\\{0,6}[\"'`][^\"'`\s]{0,40}\Z"
)


class _Connection(NamedTuple):
    """What may connect a name with its value."""

    pattern: re.Pattern[bytes]
    judge: Callable[[_Assignment], bool]


class _Assignment(NamedTuple):
    """A name, a connection and a value."""

    text: bytes
    name: bytes
    name_start: int
    meaning: str
    link: re.Match[bytes]
    value: Value

    @property
    def word(self) -> bytes:
        """The value."""
        return self.text[self.value.start : self.value.end]

    def before(self, count: int = 60) -> bytes:
        """Return the text before the name."""
        return self.text[max(0, self.name_start - count) : self.name_start]


def _has_digit_or_symbol(word: bytes) -> bool:
    return bool(count_of(DIGITS, word)) or is_strong_password(word + b"0")


def _judge_operator(found: _Assignment) -> bool:
    word, op = found.word, found.link["op"]
    if found.value.quoted:
        if has_escaped_quotes(word):
            return True
        # A flag is always followed by a value.
        written = Written.ARGUMENT if found.name.startswith(b"-") else Written.QUOTED
        return is_secret_value(found.meaning, word, written)
    if word.translate(None, b"_-.").lower() == found.name.translate(None, b"_-.").lower():
        return False  # a variable with the same name
    if word[:1] == b"=" or op[:1] in b"!<" or op in (b"==", b"===", b"or", b"||", b"??", b"->"):
        return False
    # `NAME=word` in a shell or an .env file is always a value.
    is_shell = op == b"=" and found.link["gap"] == b"" and found.name.upper() == found.name
    return is_secret_value(found.meaning, word, Written.SHELL if is_shell else Written.BARE)


def _judge_quoted(found: _Assignment) -> bool:
    return found.value.quoted and is_secret_value(found.meaning, found.word, Written.QUOTED)


def _judge_wrapped(found: _Assignment) -> bool:
    return found.value.quoted and is_secret_value(found.meaning, found.word, Written.NEARBY)


def _judge_default(found: _Assignment) -> bool:
    return _judge_quoted(found) and (_has_digit_or_symbol(found.word) or count_random_chars(found.word) >= 12)


def _judge_argument(found: _Assignment) -> bool:
    """The argument behind a name: any value in a call that sets or gets it by name, otherwise a random one."""
    if found.name.isupper() and found.before(1) in (b" ", b"(", b",", b"."):
        return _judge_default(found)  # setopt(handle, OPT_PASSWORD, "x")
    if found.before(1) not in (b'"', b"'", b"`"):
        return False
    is_setter = _SETTER.search(found.before(80)) is not None
    return _judge_default(found) if is_setter else _judge_wrapped(found)


def _judge_call(found: _Assignment) -> bool:
    """`.password("x")`, `setToken("x")`; `decrypt_password("x")` only if it is random."""
    if not secret_names.meaning(found.name.rpartition(b".")[2]):
        return False
    first = found.name[:4].lower()
    if first.startswith((b"set", b"with")) or found.name.startswith(b".") or b"." in found.name:
        return _judge_default(found)
    return _judge_wrapped(found)


def _judge_element(found: _Assignment) -> bool:
    if not _ELEMENT_START.search(found.before()) and b"</" not in found.link[0]:
        return False
    word = found.word
    # Jenkins writes encrypted values in braces.
    if word[:1] == b"{" and word[-1:] == b"}" and word[1:2] not in b"{%":
        return count_random_chars(word) >= _MIN_RANDOM_IN_BRACES
    return not word.isdigit() and is_secret_value(found.meaning, word, Written.QUOTED)


def _judge_space(found: _Assignment) -> bool:
    """A name in capitals or a flag, white space and a value."""
    word = found.word
    if found.name.startswith(b"-") or found.before(1) == b"-":
        return len(word) >= 6 and not is_code(word) and _is_argument(found.meaning, word, found.value.quoted)
    if _is_c_constant(found):
        return is_secret_value("secret", word, Written.BARE)
    if _DIRECTIVE.search(found.before(40)) or found.name in (b"requirepass", b"masterauth"):
        return is_secret_value(found.meaning, word, Written.SHELL)
    if _SQL_BEFORE.search(found.before(20)) and found.value.quoted:
        return is_secret_value("password", word, Written.QUOTED)
    return found.value.quoted and is_secret_value(found.meaning, word, Written.NEARBY)


def _is_c_constant(found: _Assignment) -> bool:
    """Return True for the bare word behind `#define NAME`, which is a number or the name of another constant."""
    return not found.value.quoted and found.before(12).rstrip().endswith(b"#define")


def _is_argument(meaning: str, word: bytes, is_quoted: bool) -> bool:
    if is_quoted and b" " in word:
        return is_secret_value(meaning, word, Written.ARGUMENT)
    return is_secret_value("secret", word, Written.QUOTED if is_quoted else Written.BARE) or (
        is_secret_value("password", word, Written.BARE) and bool(count_of(DIGITS, word)) and not word.isdigit()
    )


def _judge_numbers(found: _Assignment) -> bool:
    """Return True for numbers that can be the bytes of a key, and not for a table or a row of token ids."""
    numbers = [int(number, 0 if number[:2] == b"0x" else 10) for number in _BYTE.findall(found.word)]
    steps = {after - before for before, after in pairwise(numbers)}
    return not found.name.lower().endswith(b"s") and len(set(numbers)) >= _MIN_DISTINCT_BYTES and len(steps) > 2


def _judge_next_line(found: _Assignment) -> bool:
    if b" " in found.word and not found.value.quoted:
        return False
    return is_secret_value(found.meaning, found.word, Written.NEARBY)


def _judge_sentence(found: _Assignment) -> bool:
    word = found.word
    letters, digits = word.upper() != word.lower(), count_of(DIGITS, word)
    if len(word) < 6 or is_reference(word) or is_code(word) or not letters:
        return False
    if found.meaning != "password":
        is_random = count_random_chars(word) >= (8 if found.value.quoted else 12)
        return bool(digits) and is_random and is_secret_value(found.meaning, word, Written.NEARBY)
    if not found.value.quoted and word.rstrip(b"!?").isalpha():
        return False
    if not found.link["link"] and not found.value.quoted:
        is_constant = _is_c_constant(found) or _KEBAB_NAME.fullmatch(word)
        return bool(digits) and not is_constant and is_secret_value("password", word, Written.BARE)
    return bool(digits) or (is_strong_password(word + b"0") and is_secret_value("password", word, Written.QUOTED))


def _bytes(pattern: str) -> re.Pattern[bytes]:
    return lazy_compile(pattern.encode("latin-1"))


_END = r"[\"'`\]\\)*]{0,8}"
_QUOTED = r"(?=[bfruBFRULN@$]{0,2}#?\\{0,8}[\"'`]|\xe2\x80|\xe3\x80|\xc2\xab)"
_OP = (
    r"(?P<op>[?+:.|&!=<~]{0,2}[:=][>=~-]{0,2}|\xef\xbc[\x9a\x9d]|<-|->|\|\||\?\?|\?:|(?<=[ \t])or)"
    r"(?:(?:\*\*|__)(?=[ \t])|[ \t]{1,4}(?:!{1,2}[\w:-]{1,40}|&\w{1,40})(?=[ \t]))?"
)
_WRAPPER = r"(?:(?:new[ \t]{1,4})?[A-Za-z0-9_.:<>\[\]*&!]{1,40}[({][ \t]{0,4}(?:default[ \t]{0,2}=[ \t]{0,2})?){1,2}"
_MARKED = r"(?=[^\s]{0,60}[0-9!@#$%^&*?])"
_CONNECTIONS = (
    _Connection(
        _bytes(rf"{_END}(?P<gap>[ \t]{{0,16}}){_OP}[ \t]{{0,16}}(?:(?:[(\[{{][ \t]{{0,4}}){{1,3}}{_QUOTED})?"),
        _judge_operator,
    ),
    _Connection(
        _bytes(rf"{_END}[ \t]{{0,16}}{_OP}?[ \t]{{0,16}}{_WRAPPER}[\"'][\w.-]{{1,60}}[\"'],[ \t]{{0,4}}{_QUOTED}"),
        _judge_default,
    ),
    _Connection(_bytes(rf"{_END}[ \t]{{0,16}}{_OP}[ \t]{{0,16}}{_WRAPPER}{_QUOTED}"), _judge_wrapped),
    _Connection(
        _bytes(
            rf"(?:[\"'`]?[\])]{{1,2}})?(?:[ \t]{{0,4}}+:?+[ \t]{{0,4}}+[\w.*&<>\[\]?|'{{}};]{{1,40}}+){{1,5}}+"
            rf"[ \t]{{0,4}}+:?=[ \t]{{0,4}}(?:{_WRAPPER}|(?:[(\[{{][ \t]{{0,4}}){{0,3}}){_QUOTED}"
        ),
        _judge_quoted,
    ),
    # {"name": {"value": "x"}}
    _Connection(
        _bytes(
            rf"{_END}[ \t]{{0,4}}:[ \t]{{0,4}}\{{[ \t\r\n]{{0,40}}\\{{0,8}}[\"']value{_END}[ \t]{{0,4}}:"
            rf"[ \t]{{0,4}}{_QUOTED}"
        ),
        _judge_quoted,
    ),
    # In PHP: s:8:"name";s:11:"x"
    _Connection(_bytes(rf"\\{{0,6}}\";s:[0-9]{{1,6}}:{_QUOTED}"), _judge_quoted),
    _Connection(
        _bytes(
            rf"(?:\\{{0,6}}[\"'`])?[\])]{{0,2}}[ \t]{{0,4}},[ \t\r\n]{{0,40}}"
            rf"(?:default[ \t]{{0,2}}=[ \t]{{0,2}})?{_QUOTED}"
        ),
        _judge_argument,
    ),
    _Connection(_bytes(rf"[ \t]?[({{][ \t\r\n]{{0,20}}{_QUOTED}"), _judge_call),
    _Connection(
        _bytes(rf"\([^()\n]{{0,80}}\)[ \t\w:>*&-]{{0,40}}[{{:]?[ \t\r\n]{{0,40}}return[ \t]{{1,4}}{_QUOTED}"),
        _judge_wrapped,
    ),
    _Connection(
        _bytes(r"[\"']?(?:[ \t][^<>\n]{0,80})?>[ \t\r\n]{0,40}(?:<[A-Za-z:]{1,20}>[ \t\r\n]{0,40})?"),
        _judge_element,
    ),
    _Connection(_bytes(r"[\"']?</[A-Za-z:]{1,20}>[ \t\r\n\\]{0,80}<[A-Za-z:]{1,20}>[ \t\r\n]{0,40}"), _judge_element),
    _Connection(
        _bytes(
            rf"{_END}[ \t]{{0,4}}[:=][ \t]{{0,4}}[|>][+-]?[0-9]?[ \t\\]{{0,8}}"
            r"(?:[\r\n]{1,4}+[ \t>|+-]{1,40}+){1,2}+"
        ),
        _judge_next_line,
    ),
    _Connection(
        _bytes(
            rf"(?:{_END}[ \t]{{0,4}}[:=][ \t]{{0,4}}[(\[{{]?|\\{{0,8}}\"(?=[\r\n\\]{{2}}))"
            r"(?:\\{0,8}[\r\n]{1,4}+[ \t>|*+-]{0,40}+){1,4}+(?:`{3}[\w-]{0,20}\\{0,8}[\r\n]{1,4}[ \t>|]{0,40})?"
        ),
        _judge_next_line,
    ),
    _Connection(_bytes(rf"{_END}[ \t\r\n\\]{{0,40}}{_OP}[ \t\r\n\\]{{0,40}}{_QUOTED}"), _judge_wrapped),
    _Connection(_bytes(r"[\w \t:=.*&<>\[\]-]{0,60}[{\[(]{1,3}[ \t\r\n\\]{0,40}(?=[0-9])"), _judge_numbers),
    _Connection(_bytes(r"[ \t]{1,16}"), _judge_space),
    _Connection(
        _bytes(
            rf"(?:[ \t]{{1,3}}[A-Za-z'\x80-\xff-]{{1,24}}){{0,5}}?"
            rf"[ \t]{{0,3}}(?P<link>(?i:{_LINK}))[ \t:]{{1,4}}[*(\[]{{0,3}}{_MARKED}"
        ),
        _judge_sentence,
    ),
    _Connection(
        _bytes(rf"[ \t]{{0,3}}(?P<link>(?i:{secret_names.UNSPACED_LINK_WORDS}))[ \t]{{0,3}}[*(\[]{{0,3}}"),
        _judge_sentence,
    ),
    _Connection(_bytes(r"[ \t]{1,3}(?P<link>)"), _judge_sentence),
)
_ELEMENT_START = lazy_compile(rb"(?:<(?:[\w.-]{1,40}:)?|=[\"'])\Z")
_ELEMENT_TEXT = lazy_compile(rb"(?:<!\[CDATA\[)?([^<\s][^<\n]{3,4000}?)[ \t\r\n]{0,40}(?:\]\]>[ \t\r\n]{0,40})?</")
_BYTE = lazy_compile(rb"0x[0-9a-fA-F]{1,2}|[0-9]{1,3}")
_BYTES = lazy_compile(rb"(?:%b)(?:[ \t\r\n\\]{0,40},[ \t\r\n\\]{0,40}(?:%b)){11,1000}" % (_BYTE.pattern, _BYTE.pattern))
_MIN_DISTINCT_BYTES = 8
_WORD_BEFORE = lazy_compile(rb"([A-Za-z]+)[ \t]\Z")
_PAIR_NAME = lazy_compile(
    rb"(?i)(?:name|key|id|label|title|field|header|variable|property)"
    rb"(?:[ \t]{1,4}(?=\\{0,8}[\"'])|[\"'\\]{0,8}[ \t]{0,4}(?:[:=]|=>)[ \t]{0,4})[\"'\\]{0,8}([\w.\- ]{2,60})"
)
# One other member may be between the value and the name.
_OTHER_MEMBER = (
    rb"(?:[\"'\\]{1,8}\w{1,40}[\"'\\]{1,8}[ \t]{0,4}:[ \t]{0,4}[\"'\\]{0,8}[\w.-]{0,60}[\"'\\]{0,8}[ \t\r\n,]{1,40})?"
)
_NAME_AFTER_VALUE = lazy_compile(
    rb"[\"'\\]{0,8}[ \t\r\n,;]{1,40}" + _OTHER_MEMBER + rb"[\"'\\]{0,8}" + _PAIR_NAME.pattern[4:], re.IGNORECASE
)
_PAIR_VALUE = lazy_compile(
    rb"(?i)<?(?:(?:parameter)?value|val|string|secretstring|default(?=[ \t]+=))[\"'\\]{0,8}"
    rb"[ \t]{0,4}(?::|=>?|>)[ \t]{0,4}"
)
_KEBAB_NAME = lazy_compile(rb"[a-z]+[0-9]{0,2}(?:-[a-z]+[0-9]{0,2})+")
_SENTENCE_END = b".,;:)*\xe3\x80\x82\xe3\x80\x8d"


def match_at(text: bytes, start: int, end: int) -> tuple[tuple[Match, ...], int]:
    """Read the assignment at a candidate; return the hits and where to search on."""
    pair = _PAIR_VALUE.match(text, start)
    if pair is not None:
        return _match_pair(text, pair)
    if text[start] == 0x29:
        return tables.match_insert(text, start, end)
    match = _NAME.match(text, start)
    if match is None:
        return (), start + 1
    name_start, name_end = _start_of_name(text, match.start(1)), match.end(1)
    next_position = max(name_end, end - _MAX_CONNECTION_BYTES)
    name = text[name_start:name_end]
    # `AWS::IAM::AccessKey` is the name of a type.
    meaning = "" if text[name_start - 2 : name_start] == b"::" else secret_names.meaning(name)
    # The word before `key` may say that it is not a credential: `primary key`, `cache key`.
    if meaning == "key" and (word := _WORD_BEFORE.search(text, max(0, name_start - 20), name_start)):
        meaning = secret_names.meaning(word[1] + b"_" + name)
    if not meaning:
        return (), next_position
    for connection in _CONNECTIONS:
        link = connection.pattern.match(text, name_end)
        if link is None:
            continue
        for value in _values(text, link, connection, name_start):
            found = _Assignment(text, name, name_start, meaning, link, value)
            if _is_variable(found):
                continue
            phrase = read_phrase_line(text, value.start) if _is_line_of_config(found) else None
            if phrase is not None:
                return (Match(value.start, phrase, "assigned_password", 0.8),), phrase
            if connection.judge(found) or (value.quoted and value.is_truncated and is_truncated_phrase(found.word)):
                hit = _hit(found, connection)
                return (hit,), hit.end
    hits, position = tables.match_name(text, name_start, name_end, meaning)
    return (hits, position) if hits else ((), next_position)


def _values(text: bytes, link: re.Match[bytes], connection: _Connection, name_start: int) -> list[Value]:
    """Return what the value behind a connection may be: the usual reading first."""
    if connection.judge is _judge_element:
        match = _ELEMENT_TEXT.match(text, link.end())
        return [Value(match.start(1), match.end(1), True)] if match else []
    if connection.judge is _judge_numbers:
        match = _BYTES.match(text, link.end())
        return [Value(match.start(), match.end(), False)] if match else []
    is_parameter = text[name_start - 1 : name_start] in (b"?", b"&")
    values = read_values(text, link.end(), is_url_parameter=is_parameter)
    if connection.judge is _judge_sentence and values and not values[0].quoted:
        start, end = values[0][:2]
        return [Value(start, start + len(text[start:end].rstrip(_SENTENCE_END)), False)]
    return values


def _is_variable(found: _Assignment) -> bool:
    """`${NAME:-value}` has a value; `${NAME}` and `${NAME:?message}` have none."""
    is_expansion = found.before(2) == b"${"
    return is_expansion and (found.link.groupdict().get("op") or b"") not in (b":-", b":=", b"-", b"=")


def _hit(found: _Assignment, connection: _Connection) -> Match:
    if connection.judge is _judge_sentence:
        rule = "spoken_password" if found.meaning == "password" else "spoken_secret"
    elif connection.judge is _judge_element:
        rule = "xml_secret"
    elif found.name.startswith(b"-") and not found.link[0].strip():
        rule = "cli_secret"
    else:
        rule = "assigned_password" if found.meaning == "password" else "assigned_secret"
    return Match(found.value.start, end_of_long_value(found.text, found.value), rule, 0.85)


def _start_of_name(text: bytes, position: int) -> int:
    before = text[max(0, position - _MAX_NAME_BEFORE_KEYWORD) : position]
    return position - (len(before) - len(before.rstrip(_NAME_CHARS)))


def _is_line_of_config(found: _Assignment) -> bool:
    """Return True for a bare value after a name with nothing before it in its line, as in YAML and .env files."""
    if found.value.quoted or "op" not in found.link.groupdict():
        return False
    before = found.before(_MAX_NAME_BEFORE_KEYWORD)
    return not before[before.rfind(b"\n") + 1 :].strip(b" \t-")


def _match_pair(text: bytes, pair: re.Match[bytes]) -> tuple[tuple[Match, ...], int]:
    """Read `name: X, value: Y` and the same as attributes, from where the value is; the name may come after it."""
    value = read_value(text, pair.end())
    if value is None:
        return (), pair.end()
    start = max(0, pair.start() - _PAIR_WINDOW_BYTES)
    before = text[max(start, text.rfind(b"\0", start, pair.start()) + 1) : pair.start()]
    before = before[max(before.rfind(b"}"), before.rfind(b">"), before.rfind(b"]")) + 1 :]
    names = _PAIR_NAME.findall(before)[-1:]
    behind = _NAME_AFTER_VALUE.match(text, value.end) if not names else None
    names += [behind[1]] if behind else []
    word = text[value.start : value.end]
    for name in names:
        meaning = secret_names.meaning(name.strip())
        written = Written.QUOTED if value.quoted else Written.SHELL if name.upper() == name else Written.BARE
        if meaning and is_secret_value(meaning, word, written):
            rule = "assigned_password" if meaning == "password" else "assigned_secret"
            return (Match(value.start, value.end, rule, 0.85),), value.end
    return (), pair.end()
