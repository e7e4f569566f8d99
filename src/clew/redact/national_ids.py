"""National numbers with a check digit: proved by it, and by a name before them where digits alone say too little."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from clew.redact.matcher import Find, Match, compile_finder, find_matches

_NAMES = {
    "de_tax_id": "steuer-?id(?:nr)?|steuerliche identifikationsnummer|steueridentifikationsnummer|tax[ _-]?id|idnr",
    "nl_bsn": "bsn|burgerservicenummer|sofinummer",
    "br_cpf": "cpf",
    "ca_sin": "sin|social insurance number",
    "in_aadhaar": "aadhaar|aadhar",
    "pl_pesel": "pesel",
    "es_dni": "dni|nie|nif",
}
_LINK = r"[^0-9A-Za-z\n]{1,6}(?i:(?:no|nr|num|number|nummer|is|ist|es|card)[^0-9A-Za-z\n]{1,4}){0,2}"
_NAMED = rf"\b(?i:{'|'.join(_NAMES.values())}){_LINK}[0-9XYZxyz][0-9 .-]{{6,13}}[0-9A-Za-z]"
_CPF = r"\b[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}\b"
_FISCAL = r"\b[A-Z]{6}[0-9]{2}[A-EHLMPRST][0-9]{2}[A-Z][0-9]{3}[A-Z]\b"
SIGNS = (_NAMED, _CPF, _FISCAL)

_WITH_NAME = [(rule, re.compile(rf"(?i:{name}){_LINK}".encode())) for rule, name in _NAMES.items()]
_NUMBER = re.compile(rb"[0-9XYZxyz][0-9 .-]{6,13}[0-9A-Za-z](?![0-9A-Za-z])")
_LETTERS = b"TRWAGMYFPDXBNJZSQVHLCKE"
_ODD = dict(zip("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", (
    1, 0, 5, 7, 9, 13, 15, 17, 19, 21,
    1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23,
), strict=True))  # fmt: skip
_TURN = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)


@lru_cache(maxsize=1)
def find_sign() -> Find:
    """The compile_finder of all that may be such a number."""
    return compile_finder(SIGNS)


def find_national_ids(text: bytes) -> list[Match]:
    """Every national number in some bytes."""
    return find_matches(find_sign(), text, _look)


def _look(text: bytes, start: int, end: int) -> tuple[tuple[Match, ...], int]:
    value = text[start:end]
    if is_codice_fiscale(value):
        return (Match(start, end, "it_codice_fiscale", 0.9),), end
    if value[:1].isdigit():
        return ((Match(start, end, "br_cpf", 0.9),), end) if is_cpf(_digits(value)) else ((), end)
    for rule, named in _WITH_NAME:
        name = named.match(text, start)
        number = _NUMBER.match(text, name.end()) if name else None
        if number and _PROOFS[rule](number[0].replace(b" ", b"").replace(b".", b"").replace(b"-", b"")):
            return (Match(number.start(), number.end(), rule, 0.9),), number.end()
    return (), end


def _digits(value: bytes) -> bytes:
    return bytes(char for char in value if 48 <= char <= 57)


def _numbers(value: bytes, length: int) -> list[int]:
    """The digits of a value; none unless it has so many and they are not all the same."""
    return [char - 48 for char in value] if len(value) == length and value.isdigit() and len(set(value)) > 1 else []


def is_de_tax_id(value: bytes) -> bool:
    """Germany: ten digits of which one occurs twice or three times, and ISO 7064."""
    digits = _numbers(value, 11)
    if not digits or not digits[0] or len(set(digits[:10])) not in (8, 9):
        return False
    product = 10
    for digit in digits[:10]:
        product = ((digit + product) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == digits[10]


def is_bsn(value: bytes) -> bool:
    """The Netherlands: 11."""
    digits = _numbers(value, 9)
    weights = (9, 8, 7, 6, 5, 4, 3, 2, -1)
    return bool(digits) and sum(map(int.__mul__, digits, weights)) % 11 == 0


def is_cpf(value: bytes) -> bool:
    """Brazil: two check digits."""
    digits = _numbers(value, 11)
    return bool(digits) and all(
        sum(digit * (length + 1 - place) for place, digit in enumerate(digits[:length])) * 10 % 11 % 10
        == digits[length]
        for length in (9, 10)
    )


def is_sin(value: bytes) -> bool:
    """Canada: the Luhn digit, and a beginning that is given out."""
    digits = _numbers(value, 9)
    doubled = [digit * 2 - 9 * (digit > 4) if place % 2 else digit for place, digit in enumerate(digits)]
    return bool(digits) and digits[0] not in (0, 8) and sum(doubled) % 10 == 0


def is_aadhaar(value: bytes) -> bool:
    """India: Verhoeff."""
    digits = _numbers(value, 12)
    if not digits or digits[0] < 2:
        return False
    check = 0
    for place, digit in enumerate(reversed(digits)):
        turned = digit
        for _ in range(place % 8):
            turned = _TURN[turned]
        check = _in_pentagon(check, turned)
    return check == 0


def _in_pentagon(one: int, other: int) -> int:
    """The product of two turns or flips of a pentagon."""
    if one < 5:
        return (one + other) % 5 + (0 if other < 5 else 5)
    return 5 + (one - other) % 5 if other < 5 else (one - other) % 5


def is_pesel(value: bytes) -> bool:
    """Poland: a month of one of five centuries, a day, and a weighted sum."""
    digits = _numbers(value, 11)
    if not digits:
        return False
    month, day = (digits[2] * 10 + digits[3]) % 20, digits[4] * 10 + digits[5]
    weights = (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)
    return 1 <= month <= 12 and 1 <= day <= 31 and sum(map(int.__mul__, digits, weights)) % 10 == 0


def is_dni(value: bytes) -> bool:
    """Spain: the letter that the number gives; a foreigner's begins with X, Y or Z."""
    plain = value.upper()
    first = b"XYZ".find(plain[:1])
    number = str(first).encode() + plain[1:8] if first >= 0 else plain[:8]
    return len(plain) == 9 and number.isdigit() and _LETTERS[int(number) % 23] == plain[8]


def is_codice_fiscale(value: bytes) -> bool:
    """Italy: sixteen characters, of which the last answers for the others."""
    plain = value.decode("ascii", "replace")
    if len(plain) != 16 or not plain.isalnum() or not plain[:6].isalpha():
        return False
    total = sum(_ODD[char] if place % 2 == 0 else int(char, 36) % 10 if char.isdigit() else ord(char) - 65
                for place, char in enumerate(plain[:15]))  # fmt: skip
    return chr(65 + total % 26) == plain[15]


_PROOFS: dict[str, Callable[[bytes], bool]] = {
    "de_tax_id": is_de_tax_id,
    "nl_bsn": is_bsn,
    "br_cpf": is_cpf,
    "ca_sin": is_sin,
    "in_aadhaar": is_aadhaar,
    "pl_pesel": is_pesel,
    "es_dni": is_dni,
}
