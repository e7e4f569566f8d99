"""Find personal data: cards, bank accounts, national numbers, e-mail addresses, telephone numbers.

A number is checked by its check digits where it has some. National numbers that are only digits count only behind their
name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from clew.redact.lazy_pattern import lazy_compile
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
# Searched for in groups: one automaton for all would have a new state at every digit of some texts.
GROUPS = ((_CORSICA, _NUMBER, _SSN, _PHONE_US, _PHONE_FR), (_IBAN, _NINO, _E164), (_EMAIL,))
_NATIONAL_NAMES = {
    "de_tax_id": "steuer-?id(?:nr)?|steuerliche identifikationsnummer|steueridentifikationsnummer|tax[ _-]?id|idnr",
    "nl_bsn": "bsn|burgerservicenummer|sofinummer",
    "br_cpf": "cpf",
    "ca_sin": "sin|social insurance number",
    "in_aadhaar": "aadhaar|aadhar",
    "pl_pesel": "pesel",
    "es_dni": "dni|nie|nif",
}
_NATIONAL_LINK = r"[^0-9A-Za-z\n]{1,6}(?i:(?:no|nr|num|number|nummer|is|ist|es|card)[^0-9A-Za-z\n]{1,4}){0,2}"
_NAMED_NUMBER = rf"\b(?i:{'|'.join(_NATIONAL_NAMES.values())}){_NATIONAL_LINK}[0-9XYZxyz][0-9 .-]{{6,13}}[0-9A-Za-z]"
_CPF = r"\b[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}\b"
_CODICE_FISCALE = r"\b[A-Z]{6}[0-9]{2}[A-EHLMPRST][0-9]{2}[A-Z][0-9]{3}[A-Z]\b"
NATIONAL_PATTERNS = (_NAMED_NUMBER, _CPF, _CODICE_FISCALE)
"""Candidate patterns of national numbers with a check digit."""

_EMAIL_FORM = lazy_compile(rb"[A-Za-z0-9._%+-]+@((?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,24})(?![A-Za-z0-9])")
_UNUSED_ACCOUNT = lazy_compile(
    rb"(?i)(?:^|[._+-])(?:no-?reply|donotreply)(?:$|[+])|^(?:git|root|hg|user|you|name|someone|example|test)$|\[bot\]"
)
_UNUSED_DOMAIN = lazy_compile(
    rb"(?i)(?:^|\.)(?:example\.(?:com|org|net|edu)|localhost|local|invalid|test|test\.com|internal|lan|example"
    rb"|noreply\.github\.com"
    rb"|anthropic\.com|gserviceaccount\.com)$"
)
_FILE_ENDING = lazy_compile(
    rb"(?i)\.(?:js|ts|py|git|md|json|jsx|tsx|css|html|png|jpe?g|svg|gif|txt|yml|yaml|toml|lock|map|rs|go|c|h|sh"
    rb"|whl|mjs|cjs|rb|lua|java|kt|swift|php|pl|cpp|hpp|service|timer|target|socket)$"
)
_REMOTE_USER = lazy_compile(rb"git|hg|svn|bzr|cvs|aur|gitea|gitlab|gogs|forgejo|org-[0-9]+")
_REMOTE_PATH = lazy_compile(rb":[A-Za-z0-9/~._-]")
"""A remote of version control, `git@host:path`, has the form of an e-mail address."""
_NO_DIGITS = bytes(char for char in range(256) if not 48 <= char <= 57)
_FRACTION = lazy_compile(rb"[0-9]\.$")
_NUMBERS = lazy_compile(rb"[0-9]+(?:[ -][0-9]+)+")
_MAX_NUMBERS_BYTES = 80
_MAX_ESCAPE_BYTES = 8
# The digits of a card: in groups of four; four, six and the rest, as some issuers print them; or in one group.
_GROUPED = lazy_compile(
    rb"(?<![0-9-])(?P<first>[0-9]{4})(?:(?P<four>(?P<by>[ -])[0-9]{4}(?:(?P=by)[0-9]{4}){2})(?:(?P=by)[0-9]{1,3})?"
    rb"|(?P<with>[ -])[0-9]{6}(?P=with)[0-9]{4,5}|[0-9]{10,15}(?![0-9]))(?![0-9])"
)
# Behind a card or an account, after a slash: a check code, a date of expiry, both, or the code of a bank.
_SLASH_AND_CODE = lazy_compile(
    rb"(?:(?:/ ?[0-9]{1,4}(?:-[0-9]{2,4})?){1,3}|/ ?[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?)(?![A-Za-z0-9/_-])"
)
_DATE = lazy_compile(rb"\+(?:19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}")
# Names of ids, sizes and times: one in ten of such numbers has the check digit of a card. A name is a whole word or a
# part of one, as in `created_ts`, `orderId` and `HTTPPort`; `paid` and `accounts` do not end in `id` or `count`.
_TECHNICAL_NAME = lazy_compile(
    rb"(?:(?<![A-Za-z\x80-\xff])|(?<=[a-z])(?=[A-Z])|(?=[A-Z][a-z]))"
    rb"(?i:offset|inode|ns|nanos|id|ids|ts|time|stamp|timestamp|size|bytes|pid|seq|sequence|nonce|hash|order"
    rb"|ref|reference|version|build|port|uid|gid|ppid|tid|uuid|guid|userid|rowid|mtime|ctime|atime|datetime"
    rb"|line|index|count|channel|snowflake|key|epoch|seed|number_of|rev|revision)[\"']?[ \t]?[=:#]?[ \t]?[\"']?\Z"
)
# The length of an IBAN, by country.
_IBAN_LENGTHS = {
    row[:2]: int(row[2:])
    for row in (
        "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29 ES24 FI18 "
        "FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LI21 LT20 LU20 "
        "LV21 MC27 MD24 ME22 MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SE24 SI19 SK24 "
        "SM27 TN24 TR26 UA29 VA22 VG24 XK20"
    ).split()
}


@lru_cache(maxsize=1)
def _finders() -> tuple[Find, ...]:
    return tuple(compile_finder(group) for group in GROUPS)


@lru_cache(maxsize=1)
def _national_finder() -> Find:
    return compile_finder(NATIONAL_PATTERNS)


def find_pii(text: bytes) -> list[Match]:
    """Find all personal data in some bytes."""
    found = [hit for find in _finders() for hit in find_matches(find, text, _check)]
    return found + find_matches(_national_finder(), text, _check_national)


def _check(text: bytes, start: int, end: int, use_name: bool = True) -> tuple[tuple[Match, ...], int]:
    hit = _match(text, start, end, use_name)
    if hit is None and text[start : start + 1].isdigit():
        hit = _card_among_numbers(text, start, use_name)
    return ((hit,), hit.end) if hit else ((), end)


def check_in_json(text: bytes, start: int, end: int) -> tuple[tuple[Match, ...], int]:
    """Check a candidate in JSON text, where the name before a number may be the key of another string.

    A candidate that spans two strings, or has a backslash near it, cannot be decided here and counts as a match.
    """
    if (
        text.find(b'"', start, end) >= 0
        or text.find(b"\\", max(0, start - _MAX_ESCAPE_BYTES), end + _MAX_ESCAPE_BYTES) >= 0
    ):
        return (Match(start, end, TOO_MANY_CANDIDATES, 0.0),), end
    return _check(text, start, end, use_name=False)


def _match(text: bytes, start: int, end: int, use_name: bool) -> Match | None:
    value = text[start:end]
    if b"@" in value:
        return _email(text, start)
    if _is_part(text, start, end):
        return None
    rule = _rule(value)
    if not rule or (use_name and value.isdigit() and _has_technical_name(text, start)):
        return None
    return Match(start, end, rule, 0.9)


def _has_technical_name(text: bytes, start: int) -> bool:
    return _TECHNICAL_NAME.search(text[max(0, start - 24) : start]) is not None


def _card_among_numbers(text: bytes, start: int, use_name: bool) -> Match | None:
    """Find a card with other numbers before or behind it, by its groups of digits."""
    numbers = _NUMBERS.match(text, start, start + _MAX_NUMBERS_BYTES)
    position, stop = start, numbers.end() if numbers else start
    while group := _GROUPED.search(text, position, stop):
        for end in {group.end(), group.end("four")} - {-1}:
            digits = group[0][: end - group.start()].translate(None, b" -")
            is_one_group = end - group.start() == len(digits)
            if use_name and is_one_group and _has_technical_name(text, group.start()):
                continue
            if is_card(digits) and not _is_part(text, group.start(), end):
                return Match(group.start(), end, "card", 0.85)
        position = group.end("first") + 1
    return None


def _is_part(text: bytes, start: int, end: int) -> bool:
    """Return True for digits that belong to a longer number, an id, a path, a version or a fraction."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if _joins(before) or _FRACTION.match(text[start - 2 : start]):
        return True
    return _joins(after) and _SLASH_AND_CODE.match(text, end) is None


def _joins(char: bytes) -> bool:
    """Return True for a neighbour that belongs to the same word."""
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
    """Check the lengths and beginnings that card schemes issue, and the Luhn digit."""
    length, first = len(digits), digits[:2]
    issued = (
        (digits[:1] == b"4" and length == 16)
        or (length == 16 and (b"51" <= first <= b"55" or b"2221" <= digits[:4] <= b"2720"))
        or (length == 15 and first in {b"34", b"37"})
        or (16 <= length <= 19 and (digits[:4] == b"6011" or first in {b"65", b"62"} or b"644" <= digits[:3] <= b"649"))
        or (16 <= length <= 19 and b"3528" <= digits[:4] <= b"3589")
        or (length == 14 and (first in {b"36", b"38", b"39"} or b"300" <= digits[:3] <= b"305"))
    )
    return issued and len(set(digits)) > 1 and has_luhn_digit(digits)


def has_luhn_digit(digits: bytes) -> bool:
    """Check the last digit, which the others determine."""
    numbers = [char - 48 for char in reversed(digits)]
    doubled = [number * 2 - 9 * (number > 4) for number in numbers[1::2]]
    return (sum(numbers[::2]) + sum(doubled)) % 10 == 0


def is_iban(value: bytes) -> bool:
    """Check an account number: the length for its country, and the remainder by 97."""
    plain = value.replace(b" ", b"").decode("ascii", "replace")
    if _IBAN_LENGTHS.get(plain[:2]) != len(plain) or not "02" <= plain[2:4] <= "98":
        return False
    return int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1


def is_nir(value: bytes) -> bool:
    """Check a French social security number: a month, and the remainder by 97."""
    plain = value.replace(b" ", b"").upper().replace(b"2A", b"19").replace(b"2B", b"18")
    if len(plain) != 15 or not plain.isdigit() or plain[:1] not in b"123478":
        return False
    month = int(plain[3:5])
    return (1 <= month <= 12 or 20 <= month <= 42 or 50 <= month <= 99) and 97 - int(plain[:13]) % 97 == int(plain[13:])


def is_ssn(digits: bytes) -> bool:
    """Check a social security number of the United States: no part is zero, and 666 and 9xx are not issued."""
    return not (digits[:3] in {b"000", b"666"} or digits[:1] == b"9" or digits[3:5] == b"00" or digits[5:] == b"0000")


def _email(text: bytes, start: int) -> Match | None:
    match = _EMAIL_FORM.match(text, start)
    if match is None:
        return None
    user = match[0][: match[0].index(b"@")]
    if (
        _UNUSED_DOMAIN.search(match[1])
        or _UNUSED_ACCOUNT.search(user)
        or _FILE_ENDING.search(match[1])
        or (_REMOTE_USER.fullmatch(user) and _REMOTE_PATH.match(text, match.end()))
    ):
        return None
    return Match(match.start(), match.end(), "email", 0.9)


# --- National numbers with check digits

_NATIONAL_NAME_PATTERNS = [
    (rule, lazy_compile(rf"(?i:{name}){_NATIONAL_LINK}".encode())) for rule, name in _NATIONAL_NAMES.items()
]
_NATIONAL_NUMBER = lazy_compile(rb"[0-9XYZxyz][0-9 .-]{6,13}[0-9A-Za-z](?![0-9A-Za-z])")
_DNI_LETTERS = b"TRWAGMYFPDXBNJZSQVHLCKE"
_CODICE_ODD_VALUES = dict(zip("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", (
    1, 0, 5, 7, 9, 13, 15, 17, 19, 21,
    1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23,
), strict=True))  # fmt: skip
_VERHOEFF_PERMUTATION = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)


def _check_national(text: bytes, start: int, end: int) -> tuple[tuple[Match, ...], int]:
    value = text[start:end]
    if is_codice_fiscale(value):
        return (Match(start, end, "it_codice_fiscale", 0.9),), end
    if value[:1].isdigit():
        return ((Match(start, end, "br_cpf", 0.9),), end) if is_cpf(value.translate(None, b".-")) else ((), end)
    for rule, named in _NATIONAL_NAME_PATTERNS:
        name = named.match(text, start)
        number = _NATIONAL_NUMBER.match(text, name.end()) if name else None
        if number and _NATIONAL_CHECKS[rule](number[0].replace(b" ", b"").replace(b".", b"").replace(b"-", b"")):
            return (Match(number.start(), number.end(), rule, 0.9),), number.end()
    return (), end


def _numbers(value: bytes, length: int) -> list[int]:
    """Return the digits of a value that has this many and not all equal; otherwise an empty list."""
    return [char - 48 for char in value] if len(value) == length and value.isdigit() and len(set(value)) > 1 else []


def is_de_tax_id(value: bytes) -> bool:
    """Check a German tax number: ten digits of which one occurs twice or three times, and ISO 7064."""
    digits = _numbers(value, 11)
    if not digits or not digits[0] or len(set(digits[:10])) not in (8, 9):
        return False
    product = 10
    for digit in digits[:10]:
        product = ((digit + product) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == digits[10]


def is_bsn(value: bytes) -> bool:
    """Check a citizen service number of the Netherlands: a weighted sum, modulo 11."""
    digits = _numbers(value, 9)
    weights = (9, 8, 7, 6, 5, 4, 3, 2, -1)
    return bool(digits) and sum(map(int.__mul__, digits, weights)) % 11 == 0


def is_cpf(value: bytes) -> bool:
    """Check the two check digits of a Brazilian taxpayer number."""
    digits = _numbers(value, 11)
    return bool(digits) and all(
        sum(digit * (length + 1 - position) for position, digit in enumerate(digits[:length])) * 10 % 11 % 10
        == digits[length]
        for length in (9, 10)
    )


def is_sin(value: bytes) -> bool:
    """Check a social insurance number of Canada: the Luhn digit, and a first digit that is issued."""
    return bool(_numbers(value, 9)) and value[:1] not in (b"0", b"8") and has_luhn_digit(value)


def is_aadhaar(value: bytes) -> bool:
    """Check an Aadhaar number of India by Verhoeff's method."""
    digits = _numbers(value, 12)
    if not digits or digits[0] < 2:
        return False
    check = 0
    for position, digit in enumerate(reversed(digits)):
        permuted = digit
        for _ in range(position % 8):
            permuted = _VERHOEFF_PERMUTATION[permuted]
        check = _multiply_in_dihedral_group(check, permuted)
    return check == 0


def _multiply_in_dihedral_group(one: int, other: int) -> int:
    """Multiply two elements of the symmetry group of a pentagon: 0 to 4 rotate it, 5 to 9 reflect it."""
    if one < 5:
        return (one + other) % 5 + (0 if other < 5 else 5)
    return 5 + (one - other) % 5 if other < 5 else (one - other) % 5


def is_pesel(value: bytes) -> bool:
    """Check a PESEL of Poland: a month with an offset for the century, a day, and a weighted sum."""
    digits = _numbers(value, 11)
    if not digits:
        return False
    month, day = (digits[2] * 10 + digits[3]) % 20, digits[4] * 10 + digits[5]
    weights = (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)
    return 1 <= month <= 12 and 1 <= day <= 31 and sum(map(int.__mul__, digits, weights)) % 10 == 0


def is_dni(value: bytes) -> bool:
    """Check the letter of a Spanish identity number; those of foreigners begin with X, Y or Z."""
    plain = value.upper()
    first = b"XYZ".find(plain[:1])
    number = str(first).encode() + plain[1:8] if first >= 0 else plain[:8]
    return len(plain) == 9 and number.isdigit() and _DNI_LETTERS[int(number) % 23] == plain[8]


def is_codice_fiscale(value: bytes) -> bool:
    """Check the last of the sixteen characters of an Italian fiscal code."""
    plain = value.decode("ascii", "replace")
    if len(plain) != 16 or not plain.isalnum() or not plain[:6].isalpha():
        return False
    odd = sum(_CODICE_ODD_VALUES[char] for char in plain[:15:2])
    even = sum(int(char) if char.isdigit() else ord(char) - 65 for char in plain[1:15:2])
    return chr(65 + (odd + even) % 26) == plain[15]


_NATIONAL_CHECKS: dict[str, Callable[[bytes], bool]] = {
    "de_tax_id": is_de_tax_id,
    "nl_bsn": is_bsn,
    "br_cpf": is_cpf,
    "ca_sin": is_sin,
    "in_aadhaar": is_aadhaar,
    "pl_pesel": is_pesel,
    "es_dni": is_dni,
}
