"""A credential file that is longer than what is read at any price is hidden whole; JSON stays JSON."""

from __future__ import annotations

import json
from functools import partial
from io import BytesIO

import pytest

from clew.redact import paying
from clew.redact.looking import Setting
from clew.redact.marks import Marker
from clew.redact.native import mask, mask_file
from clew.redact.tree import Redactor

ENV = "/home/ada/src/tide/.env"
LINES = "".join(f"NAME_{number}=v{number:05}\n" for number in range(paying.CLOSE // 8))
RECORDS = "".join(json.dumps({"name": f"n{number}", "pin": str(number)}) + "\n" for number in range(paying.CLOSE // 8))
DOCUMENT = json.dumps({"pins": [str(number) for number in range(paying.CLOSE)]}, indent=1)


def redactor(profile: str = "secrets") -> Redactor:
    return Redactor(Setting(profile, Marker(b"test")))


def masked(text: str, path: str | None = ENV) -> tuple[str, int]:
    own = redactor()
    return b"".join(mask_file(partial(BytesIO, text.encode()), own, path)).decode(), own.masked.total()


def test_a_long_one_is_one_marker() -> None:
    found, count = masked(LINES)
    assert (found.startswith("[REDACTED:crowded"), found.count("\n"), count > 0) == (True, 1, True)
    assert masked(LINES.removesuffix("\n"))[0] == found.removesuffix("\n")


def test_a_short_one_is_read() -> None:
    found, _ = masked(LINES[:1000])
    assert "NAME_1=" in found and "v00001" not in found


@pytest.mark.parametrize("text", [RECORDS, RECORDS + '{"name":"last"', DOCUMENT, DOCUMENT + "\n"])
def test_json_stays_json(text: str) -> None:
    found, _ = masked(text, "/home/ada/credentials.json")
    lines = found.splitlines()
    assert len(lines) == (len(text.splitlines()) if text.startswith(RECORDS) else 1)
    assert {json.loads(line).split(":")[:2] == ["[REDACTED", "crowded"] for line in lines} == {True}


def test_values_and_texts_that_are_handed_over() -> None:
    value = {"pins": ["secret one"] * paying.CLOSE}
    own = redactor()
    own.learn([value], ENV)
    assert str(own.value(value, ENV)).startswith("[REDACTED:crowded")
    assert mask(LINES.encode(), redactor(), ENV).startswith(b"[REDACTED:crowded")


def test_other_files_of_that_length_are_read() -> None:
    assert masked(LINES, "/home/ada/notes.txt")[0] == masked(LINES, None)[0] == LINES
