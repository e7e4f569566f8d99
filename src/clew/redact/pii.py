"""What names a person: cards, accounts, national numbers, e-mail, telephones. Each is proved where it can be."""

from __future__ import annotations

import re
from functools import lru_cache

from clew.redact import national_ids
from clew.redact.matcher import TOO_MANY_CANDIDATES, Find, Match, compile_finder, find_matches

_EMAIL = r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,5}"
_NUMBER = r"[0-9](?:[ -]?[0-9]){11,18}"
_IBAN = r"\b[A-Z]{2}[0-9]{2}(?:[A-Z0-9]{11,30}|(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,4})?)"
_CORSICA = r"\b[1-478](?: ?[0-9]{2}){2} ?2[ABab](?: ?[0-9]{3}){2} ?[0-9]{2}"
_SSN = r"\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b"
_NINO = r"\b[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]\b"
_E164 = r"\+[1-9][0-9](?:[ .()-]{0,2}[0-9]){6,13}"
_PHONE_US = r"\([2-9][0-9]{2}\)[ -]?[2-9][0-9]{2}-[0-9]{4}|\b[2-9][0-9]{2}[-.][2-9][0-9]{2}[-.][0-9]{4}\b"
_PHONE_FR = r"\b0[1-9](?:[ .-][0-9]{2}){4}\b"
# One automaton for all of them would have a new state at every digit of some texts.
GROUPS = ((_CORSICA, _NUMBER, _SSN, _PHONE_US, _PHONE_FR), (_IBAN, _NINO, _E164), (_EMAIL,))

_EMAIL_FORM = re.compile(rb"[A-Za-z0-9._%+-]+@((?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,24})(?![A-Za-z0-9])")
_NOBODY = re.compile(
    rb"(?i)(?:^|[._+-])(?:no-?reply|donotreply)(?:$|[+])|^(?:git|root|hg|user|you|name|someone|example|test)$|\[bot\]"
)
_NO_PLACE = re.compile(
    rb"(?i)(?:^|\.)(?:example\.(?:com|org|net|edu)|localhost|local|invalid|test|test\.com|internal|lan|example"
    rb"|noreply\.github\.com"
    rb"|anthropic\.com|gserviceaccount\.com)$"
)
_FILES = re.compile(
    rb"(?i)\.(?:js|ts|py|git|md|json|jsx|tsx|css|html|png|jpe?g|svg|gif|txt|yml|yaml|toml|lock|map|rs|go|c|h|sh"
    rb"|whl|mjs|cjs|rb|lua|java|kt|swift|php|pl|cpp|hpp|service|timer|target|socket)$"
)
_REMOTE_USER = re.compile(rb"git|hg|svn|bzr|cvs|aur|gitea|gitlab|gogs|forgejo|org-[0-9]+")
_REMOTE_PATH = re.compile(rb":[A-Za-z0-9/~._-]")
"""A remote of version control, `git@host:path`, has the form of an e-mail address."""
_NO_DIGITS = bytes(char for char in range(256) if not 48 <= char <= 57)
_FRACTION = re.compile(rb"[0-9]\.$")
_NUMBERS = re.compile(rb"[0-9]+(?:[ -][0-9]+)+")
_LONGEST_RUN = 80
# As long as an escape.
_BESIDE = 8
# In fours; as on some cards in four, six and the rest; or all together.
_GROUPED = re.compile(
    rb"(?<![0-9-])(?P<first>[0-9]{4})(?:(?P<four>(?P<by>[ -])[0-9]{4}(?:(?P=by)[0-9]{4}){2})(?:(?P=by)[0-9]{1,3})?"
    rb"|(?P<with>[ -])[0-9]{6}(?P=with)[0-9]{4,5}|[0-9]{10,15}(?![0-9]))(?![0-9])"
)
# What is written behind a card or an account: a check code, a date of expiry, both, or the code of a bank.
_SLASH_AND_CODE = re.compile(
    rb"(?:(?:/ ?[0-9]{1,4}(?:-[0-9]{2,4})?){1,3}|/ ?[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?)(?![A-Za-z0-9/_-])"
)
_DATE = re.compile(rb"\+(?:19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}")
# Names of numbers that are no person's, though one in ten would pass for a card. A name is a whole word or a part of
# one, as in `created_ts`, `orderId` and `HTTPPort`: `paid` and `accounts` are other words.
_COUNTED = re.compile(
    rb"(?:(?<![A-Za-z\x80-\xff])|(?<=[a-z])(?=[A-Z])|(?=[A-Z][a-z]))"
    rb"(?i:offset|inode|ns|nanos|id|ids|ts|time|stamp|timestamp|size|bytes|pid|seq|sequence|nonce|hash|order"
    rb"|ref|reference|version|build|port|uid|gid|ppid|tid|uuid|guid|userid|rowid|mtime|ctime|atime|datetime"
    rb"|line|index|count|channel|snowflake|key|epoch|seed|number_of|rev|revision)[\"']?[ \t]?[=:#]?[ \t]?[\"']?\Z"
)
# The length of an account number, by country.
_COUNTRIES = {
    row[:2]: int(row[2:])
    for row in (
        "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29 ES24 FI18 "
        "FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LI21 LT20 LU20 "
        "LV21 MC27 MD24 ME22 MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SE24 SI19 SK24 "
        "SM27 TN24 TR26 UA29 VA22 VG24 XK20"
    ).split()
}


@lru_cache(maxsize=1)
def find_signs() -> tuple[Find, ...]:
    """Finders of the places that may name somebody, but for national numbers with a check digit."""
    return tuple(compile_finder(group) for group in GROUPS)


def find_pii(text: bytes) -> list[Match]:
    """Every personal number and address in some bytes."""
    return [hit for find in find_signs() for hit in find_matches(find, text, _look)] + national_ids.find_national_ids(
        text
    )


def _look(text: bytes, start: int, end: int) -> tuple[tuple[Match, ...], int]:
    hit = _judge(text, start, end) or (_card_among(text, start) if text[start : start + 1].isdigit() else None)
    return ((hit,), hit.end) if hit else ((), end)


def look_in_json(text: bytes, start: int, end: int) -> tuple[tuple[Match, ...], int]:
    """The same in JSON text, where the name before a number may be that of a member, and not count.

    What goes over the border of two strings, or has an escape of JSON within JSON beside it, is not told here, and
    taken for something.
    """
    if text.find(b'"', start, end) >= 0 or text.find(b"\\", max(0, start - _BESIDE), end + _BESIDE) >= 0:
        return (Match(start, end, TOO_MANY_CANDIDATES, 0.0),), end
    hit = _judge(text, start, end, named=False)
    if hit is None and text[start : start + 1].isdigit():
        hit = _card_among(text, start, named=False)
    return ((hit,), hit.end) if hit else ((), end)


def _judge(text: bytes, start: int, end: int, *, named: bool = True) -> Match | None:
    value = text[start:end]
    if b"@" in value:
        return _email(text, start)
    if _is_part(text, start, end):
        return None
    rule = _rule(value)
    if not rule or (named and value.isdigit() and _COUNTED.search(text[max(0, start - 24) : start])):
        return None
    return Match(start, end, rule, 0.9)


def _card_among(text: bytes, start: int, *, named: bool = True) -> Match | None:
    """A card with other numbers before it or behind it: what goes with what, only its groups tell."""
    run = _NUMBERS.match(text, start, start + _LONGEST_RUN)
    place, stop = start, run.end() if run else start
    while group := _GROUPED.search(text, place, stop):
        for end in {group.end(), group.end("four")} - {-1}:
            digits = group[0][: end - group.start()].translate(None, b" -")
            counted = (
                named
                and end - group.start() == len(digits)
                and _COUNTED.search(text[max(0, group.start() - 24) : group.start()])
            )
            if is_card(digits) and not counted and not _is_part(text, group.start(), end):
                return Match(group.start(), end, "card", 0.85)
        place = group.end("first") + 1
    return None


def _is_part(text: bytes, start: int, end: int) -> bool:
    """Digits that belong to a longer number, an id, a path, a version or a fraction."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if _joins(before) or _FRACTION.match(text[start - 2 : start]):
        return True
    return _joins(after) and _SLASH_AND_CODE.match(text, end) is None


def _joins(char: bytes) -> bool:
    """The neighbour belongs to the same word: a longer number, an id, a version."""
    return char.isalnum() or char in (b"_", b"-", b"/")


def _rule(value: bytes) -> str:
    digits = value.translate(None, _NO_DIGITS)
    if value[:1] == b"+":
        return "phone" if 8 <= len(digits) <= 15 and not _DATE.match(value) else ""
    if value[:2].isalpha():
        return "iban" if is_iban(value) else "nino" if len(digits) == 6 else ""
    if value[:1] == b"(" or len(digits) == 10:
        return "phone"
    if len(digits) == 9:
        return "ssn" if is_ssn(digits) else ""
    if is_nir(value):
        return "nir"
    return "card" if is_card(digits) else ""


def is_card(digits: bytes) -> bool:
    """A card number: the lengths and beginnings that schemes issue, and the Luhn digit."""
    length, first = len(digits), digits[:2]
    issued = (
        (digits[:1] == b"4" and length == 16)
        or (length == 16 and (b"51" <= first <= b"55" or b"2221" <= digits[:4] <= b"2720"))
        or (length == 15 and first in {b"34", b"37"})
        or (16 <= length <= 19 and (digits[:4] == b"6011" or first in {b"65", b"62"} or b"644" <= digits[:3] <= b"649"))
        or (16 <= length <= 19 and b"3528" <= digits[:4] <= b"3589")
        or (length == 14 and (first in {b"36", b"38", b"39"} or b"300" <= digits[:3] <= b"305"))
    )
    return issued and len(set(digits)) > 1 and luhn(digits)


def luhn(digits: bytes) -> bool:
    """The last digit answers for the others."""
    total = 0
    for place, char in enumerate(reversed(digits)):
        digit = char - 48
        total += digit if place % 2 == 0 else digit * 2 - 9 * (digit > 4)
    return total % 10 == 0


def is_iban(value: bytes) -> bool:
    """An account number: the country's length, and 97."""
    plain = value.replace(b" ", b"").decode("ascii", "replace")
    if _COUNTRIES.get(plain[:2]) != len(plain) or not "02" <= plain[2:4] <= "98":
        return False
    return int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1


def is_nir(value: bytes) -> bool:
    """A French social security number: a month, and 97."""
    plain = value.replace(b" ", b"").upper().replace(b"2A", b"19").replace(b"2B", b"18")
    if len(plain) != 15 or not plain.isdigit() or plain[:1] not in b"123478":
        return False
    month = int(plain[3:5])
    return (1 <= month <= 12 or 20 <= month <= 42 or 50 <= month <= 99) and 97 - int(plain[:13]) % 97 == int(plain[13:])


def is_ssn(digits: bytes) -> bool:
    """A number that the United States have given out or may."""
    return not (digits[:3] in {b"000", b"666"} or digits[:1] == b"9" or digits[3:5] == b"00" or digits[5:] == b"0000")


def _email(text: bytes, start: int) -> Match | None:
    match = _EMAIL_FORM.match(text, start)
    if match is None:
        return None
    user = match[0][: match[0].index(b"@")]
    if (
        _NO_PLACE.search(match[1])
        or _NOBODY.search(user)
        or _FILES.search(match[1])
        or (_REMOTE_USER.fullmatch(user) and _REMOTE_PATH.match(text, match.end()))
    ):
        return None
    return Match(match.start(), match.end(), "email", 0.9)
