"""National numbers: checked by their check digits, and found behind their name where they are only digits."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from clew.redact import pii, scan

LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"


def made(seed: str, length: int, check: Callable[[bytes], bool], first: str = "123456789") -> str:
    """Make a number that passes a check."""
    chance = random.Random(seed)
    while True:
        value = chance.choice(first) + "".join(chance.choice("0123456789") for _ in range(length - 1))
        if check(value.encode()):
            return value


def fiscal(seed: str) -> str:
    chance = random.Random(seed)
    body = "RSSMRA" + f"{chance.randrange(10, 99)}T{chance.randrange(10, 28)}A{chance.randrange(100, 999)}"
    return next(body + end for end in map(chr, range(65, 91)) if pii.is_codice_fiscale((body + end).encode()))


def spanish(seed: str) -> str:
    number = random.Random(seed).randrange(10**7, 10**8)
    return f"{number}{LETTERS[number % 23]}"


NUMBERS = [
    ("Steuer-ID: {}", "de_tax_id", made("de", 11, pii.is_de_tax_id)),
    ("BSN {}", "nl_bsn", made("nl", 9, pii.is_bsn)),
    ("my CPF is {}", "br_cpf", made("br", 11, pii.is_cpf)),
    ("SIN: {}", "ca_sin", made("ca", 9, pii.is_sin)),
    ("Aadhaar number: {}", "in_aadhaar", made("in", 12, pii.is_aadhaar, "23456789")),
    ("PESEL: {}", "pl_pesel", made("pl", 11, pii.is_pesel)),
    ("DNI {}", "es_dni", spanish("es")),
    ('"dni": "{}"', "es_dni", spanish("json")),
    ("{}", "it_codice_fiscale", fiscal("it")),
]


@pytest.mark.parametrize(("around", "rule", "value"), NUMBERS, ids=lambda part: part[:12])
def test_a_number_with_right_check_digits_is_found(around: str, rule: str, value: str) -> None:
    text = around.format(value)
    assert [(text[one.start : one.end], one.rule) for one in scan(text, "pii")] == [(value, rule)]
    assert scan(text, "secrets") == []


@pytest.mark.parametrize(("around", "rule", "value"), NUMBERS, ids=lambda part: part[:12])
def test_a_number_with_a_wrong_check_digit_stays(around: str, rule: str, value: str) -> None:
    other = chr(65 + (ord(value[-1]) - 64) % 26) if value[-1].isalpha() else str((int(value[-1]) + 1) % 10)
    assert [one.rule for one in scan(around.format(value[:-1] + other), "pii") if one.rule == rule] == []


@pytest.mark.parametrize(("around", "rule", "value"), NUMBERS[:-1], ids=lambda part: part[:12])
def test_digits_without_a_name_stay(around: str, rule: str, value: str) -> None:
    assert scan(f"size {value} of", "pii") == []


def test_a_number_may_be_written_in_groups() -> None:
    value = made("groups", 12, pii.is_aadhaar, "23456789")
    text = f"Aadhaar: {value[:4]} {value[4:8]} {value[8:]}"
    assert [(one.start, one.rule) for one in scan(text, "pii")] == [(9, "in_aadhaar")]
    cpf = made("groups", 11, pii.is_cpf)
    assert [one.rule for one in scan(f"{cpf[:3]}.{cpf[3:6]}.{cpf[6:9]}-{cpf[9:]}", "pii")] == ["br_cpf"]
