"""Records that hold so many signs that they are not looked at: every text of them that may be a secret is hidden.

Ids, hashes, times, signatures and the words that a format is made of stay, and so do short names: what is left still
parses, with as many members in the same order. All records are gone through as one text, and one expression tells what
stays: a step in Python for each text would cost more than the hiding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import chain, count

from clew.redact.untouched import ID, ID_ENDINGS, NAMES_SECRET, SEALED, SEALED_KEYS, TIME, TIME_ENDINGS, UUID

_SPACE = r"[ \t\r]*+"
_COLON = rf"{_SPACE}:{_SPACE}"
_NAME = r"[A-Za-z_$][A-Za-z_$-]{0,30}+[0-9]{0,2}+"
_STRING = r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
_END = r"(?=\s*+[,}\]])"
_LITERAL = rf"(?:-?[0-9]{{1,11}}+(?![0-9])(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]{{1,3}}+)?+|true|false|null){_END}"
# A word of a format, or a text too short to be a secret.
_WORD = r'"(?:[^"\\\n]{0,5}+"|[a-z][a-z_/-]{0,23}+")'
# A value ends so, and a key.
_ENDS, _NAMES = rf"(?={_SPACE}[,}}\]\n])", rf"(?={_SPACE}:)"
_NUMBER = r"-?(?:[0-9]++(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+|NaN|Infinity)"


def _either_case(words: str) -> str:
    return re.sub("[a-z]", lambda letter: f"[{letter[0]}{letter[0].upper()}]", words)


def _one_of(words: Iterable[str]) -> str:
    """Any of some expressions; those with the same first letter are tried together."""
    behind: dict[str, list[str]] = {}
    for word in words:
        behind.setdefault(word[0], []).append(word[1:])
    return "|".join(_either_case(f"{first}(?:{'|'.join(rests)})") for first, rests in behind.items())


def _ends(endings: Iterable[str]) -> str:
    """Behind a name that ends in one of some ways."""
    return "(?:" + "|".join(f'(?<={ending}")' for ending in endings) + ")"


_SECRET = rf"[A-Za-z_$-]{{0,30}}?(?:{_one_of(word.replace('$', chr(34)) for word in NAMES_SECRET)})"
_IS_ID = _ends(f'["_a-z0-9]{ending}' for ending in ID_ENDINGS)
_IS_TIME = _ends(TIME_ENDINGS)
_IDS = rf'(?:"(?:{ID})"|[0-9]{{12,20}}+{_END})'
_TIMES = rf'(?:"(?:{TIME})"|[0-9]{{13}}{_END})'
_SEALED = rf'"{SEALED}"'
# How all that stays begins, and some more does: quickly told.
_PROMISING = (
    r'(?:"(?:[^"\\\n]{0,5}+"|[a-z][a-z_/-]{0,23}+"|[0-9]|[0-9A-Fa-f]{6}|[a-z][0-9]|[A-Za-z0-9]{0,20}+[-_]'
    r"|[A-Za-z0-9+/_-]{100})|[0-9]{12})"
)
# A member: its name, and the value too if that stays, which the name may have to say. Most values say it themselves.
_MEMBER = (
    rf'(?:{_NAME}"{_COLON}(?:"[^"\\\n]{{0,2}}+"|(?!{_PROMISING}))'
    rf'|(?={_NAME}"{_SPACE}:)(?:'
    rf'(?={_NAME}"{_COLON}{_WORD})(?!{_SECRET}){_NAME}"{_COLON}{_WORD}'
    rf'|{_NAME}"{_COLON}(?={_WORD})'
    rf'|(?={_NAME}"{_IS_ID})(?:{_NAME}"{_COLON}"{UUID}"|(?!{_SECRET}){_NAME}"{_COLON}{_IDS})'
    rf'|(?={_NAME}"{_IS_TIME})(?!{_SECRET}){_NAME}"{_COLON}{_TIMES}'
    rf'|(?:{"|".join(sorted(SEALED_KEYS))})"{_COLON}{_SEALED}'
    rf'|{_NAME}"{_COLON}))'
)
# What stays, piece by piece: most is a member behind a comma or a bracket. What has a colon before it is no name.
_CALM = (
    rf'[\[,{{]++\s*+(?:"{_MEMBER}|{_WORD}(?!{_SPACE}:)|{_LITERAL})?+',
    r"[}\]: \t\r\f\v]++",
    rf'(?<!:)(?<!: )"(?:{_MEMBER}|[^"\\\n]{{0,5}}+"{_COLON})',
    rf"(?<!\n){_LITERAL}",
    r"\n(?:[^\n]{1,5}+(?=\n))?+",
)
# What does not: a text, a key, a number, and from where it is no JSON the rest of a line: a marker for each of its
# pieces, which may be of a byte or two, would cost more than all else.
_HIDDEN = (
    rf"{_STRING}{_ENDS}",
    rf"(?<!:)(?<!: ){_STRING}{_NAMES}",
    rf"(?<!\n){_NUMBER}{_ENDS}",
    r"[^{}\[\]\s:,][^\n]*+",
)
_STEP = re.compile(rf"((?:{'|'.join(_CALM)})*+)(?:{'|'.join(_HIDDEN)})".encode())
# The expression sees a line end before the first line, and something to hide behind the last.
_FIRST, _LAST = b"\n", b"\n{\1"


def hider(marker: bytes) -> Callable[[bytes], bytes]:
    """A function from lines of JSON text to the same with a marker for every text that may hold something."""
    quoted, numbers = b'"' + marker + b'"', count(1)
    key = re.compile(re.escape(quoted) + rb"(?=[ \t\r]*+:)")

    def hide(lines: bytes) -> bytes:
        text = quoted.join(_STEP.findall(_FIRST + lines + _LAST))[len(_FIRST) : 1 - len(_LAST)]
        first, *rest = key.split(text)
        if not rest:
            return text
        names = map((b'"' + marker.replace(b"%", b"%%") + b'.%d"').__mod__, numbers)  # members must differ
        return first + b"".join(chain.from_iterable(zip(names, rest, strict=False)))

    return hide


def covered(text: bytes, marker: bytes, apart: bool) -> bytes:
    """One marker in the place of a text, or, `apart`, of each of its lines; JSON stays JSON."""
    is_json = apart or text.lstrip()[:1] in (b"{", b"[", b'"')
    marker = b'"%b"' % marker if is_json else marker
    is_ended = text.endswith(b"\n")
    ended = text.count(b"\n") if apart else int(is_ended)
    return (marker + b"\n") * ended + (b"" if is_ended else marker)
