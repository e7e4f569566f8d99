"""Values beside or within the control sequences of a terminal: colours, links, movements of the cursor."""

from __future__ import annotations

import json
from functools import partial
from io import BytesIO

import pytest

from clew.redact import Marker, redact
from clew.redact.native_files import mask_file
from clew.redact.redactor import MaskSettings, Redactor
from tests.redact.planted import Planter

PLANT = Planter("colours")
TOKEN = PLANT.github()
PASSWORD = PLANT.chars(7) + "-" + PLANT.chars(8)
ESCAPES = [
    "\x1b[",
    "\x9b",
    *[name + "[" for name in ("\\x1b", "\\x1B", "\\033", "\\u001b", "\\u001B", "\\e", "\\\\u001b", "^[")],
    "\\u009b",
    "[",
]


def masked_in_a_record(text: str, profile: str = "secrets") -> str:
    """The text as it comes back out of a line of JSON."""
    line = json.dumps({"type": "user", "message": {"role": "user", "content": text}}).encode() + b"\n"
    masked = b"".join(mask_file(partial(BytesIO, line), Redactor(MaskSettings(profile, Marker()))))
    content = json.loads(masked)["message"]["content"]
    assert isinstance(content, str)
    return content


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize("colour", ["32m", "1;38;5;196m", "0m"])
def test_a_coloured_value_is_masked(escape: str, colour: str) -> None:
    on, off = escape + colour, escape + "0m"
    for text, value in (
        (f"{on}{TOKEN}{off} done", TOKEN),
        (f"DB_PASSWORD={on}{PASSWORD}{off}\n", PASSWORD),
        (f"{on}DB_PASSWORD{off}={on}{PASSWORD}{off}\n", PASSWORD),
        (f"{on}ok{off}{on}{TOKEN}{off}", TOKEN),
    ):
        expected = text.replace(value, "[REDACTED]")
        assert redact(text) == expected
        assert masked_in_a_record(text) == expected


@pytest.mark.parametrize("escape", ESCAPES[:-1])
def test_a_value_with_sequences_within_is_masked(escape: str) -> None:
    """As `grep --color` shows what it found."""
    on, off = f"{escape}01;31m{escape}K", f"{escape}m{escape}K"
    for text in (f"{on}{TOKEN[:4]}{off}{TOKEN[4:]}", f"x {TOKEN[:14]}{on}{TOKEN[14:24]}{off}{TOKEN[24:]} y"):
        for masked in (redact(text), masked_in_a_record(text)):
            assert not any(part in masked for part in (TOKEN[4:14], TOKEN[14:24], TOKEN[24:]))
            assert "[REDACTED]" in masked


@pytest.mark.parametrize("end", ["\x07", "\x1b\\", "\\a", "\\u0007", "\\e\\\\", "\x9c"])
def test_a_link_neither_hides_a_value_nor_the_one_behind_it(end: str) -> None:
    begin = "\\e]8;;" if end.startswith("\\") else "\x1b]8;;"
    text = f"{begin}https://a.b/{TOKEN}{end}DB_PASSWORD={begin}https://a.b/{end}{PASSWORD}{begin}{end} ok"
    for masked in (redact(text), masked_in_a_record(text)):
        assert TOKEN not in masked
        assert PASSWORD not in masked


def test_other_sequences_do_not_hide_a_value() -> None:
    for sequence in ("\x1b(B\x1b[m", "\x1b[2J\x1b[1;1H", "\x1b[?25l", "\x1b7", "\x1b[K"):
        for masked in (redact(f"ok{sequence}{TOKEN}"), masked_in_a_record(f"ok{sequence}{TOKEN}")):
            assert TOKEN not in masked


def test_a_sequence_without_an_end_does_not_take_the_beginning_of_a_value() -> None:
    aws = PLANT.aws_id()
    for text in (f"\x1b[{TOKEN}", f"\x1b[{aws}", f"\x1b]0;{TOKEN}", f"\x1b]{TOKEN}"):
        assert TOKEN not in redact(text)
        assert aws not in redact(text)


def test_coloured_personal_numbers_and_machines_are_masked() -> None:
    card, address = "4539 1488 0343 6467", "192.168.17.31"
    for text in (f"\x1b[32m{card}\x1b[0m", f"\x1b[1m{address}\x1b[0m"):
        for masked in (redact(text, "all"), masked_in_a_record(text, "all")):
            assert card not in masked
            assert address not in masked


def test_coloured_text_without_a_value_stays() -> None:
    for text in (
        "\x1b[32mPASSED\x1b[0m tests/test_token.py::test_password \x1b[2m0.1s\x1b[22m",
        "password = \x1b[33m$\x1b[0m{DB_PASSWORD}",
        "rate(tokens[5m]) by (token)",
        "token: \x1b[36mstring\x1b[39m;",
    ):
        assert redact(text) == text
        assert masked_in_a_record(text) == text
