"""Values beyond those that are searched for in every spelling are still found, however they are written."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from clew.redact import Known, Marker
from clew.redact.known import MOST_SPELLED
from clew.redact.tree import Redactor, Setting
from tests.redact.planted import Planter

PLANT = Planter("further")
VALUES = [PLANT.password() for _ in range(MOST_SPELLED + 300)]
LAST = VALUES[-1]
RAW = LAST.encode()
FORMS = {
    "plain": LAST,
    "in json": json.dumps(LAST)[1:-1],
    "in an address": quote(LAST, safe=""),
    "base64": base64.b64encode(RAW).decode(),
    "base64 behind one letter": base64.b64encode(b":" + RAW + b"\n").decode(),
    "base64 behind two": base64.b64encode(b"u:" + RAW + b"@").decode(),
    "base64 of addresses": base64.urlsafe_b64encode(b">>?" + RAW).decode(),
    "base64 in a path": "path/" + base64.b64encode(b"u:" + RAW).decode(),
    "hex": RAW.hex(),
    "hex in capitals": RAW.hex().upper(),
    "escapes": "".join(f"\\u{ord(char):04x}" for char in LAST),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_value_past_the_limit_is_found_in_every_spelling(form: str) -> None:
    text = f"see {FORMS[form]} there".encode()
    [hit] = Known(VALUES).hits(text)
    assert b"see " in text[: hit.start] and text[hit.end :].lstrip(b"=") == b" there"
    core = FORMS[form].removeprefix("path/").rstrip("=").encode()
    assert core in text[hit.start : hit.end]


def test_a_session_of_more_values_than_the_limit_hides_the_last_one_everywhere() -> None:
    redactor = Redactor(Setting("secrets", Marker()))
    redactor.learn([{"text": f"DB_PASSWORD={value}"} for value in VALUES])
    assert len(redactor.values) > MOST_SPELLED
    for form, spelled in FORMS.items():
        assert spelled not in json.dumps(redactor.value({"note": f"see {spelled} there"})), form


def test_texts_without_them_stay() -> None:
    text = (
        b"An ordinary text, with VGhpcyBpcyBub3RoaW5nIGF0IGFsbC4= and deadbeefdeadbeefdeadbeef and \\u0041\\u0042" * 50
    )
    assert not Known(VALUES).hits(text)


def test_values_that_share_a_word_cost_no_more_than_one_look_each() -> None:
    shared = [f"word-{'x' * n}!" for n in range(20, 300)]
    known = Known([*VALUES[:MOST_SPELLED], *(f"samesame{'.' * n}end{n}" for n in range(1, 200)), *shared])
    text = b"a samesame........end8 b " + b"samesame " * 2000
    hits = known.hits(text)
    assert text[hits[0].start : hits[0].end].startswith(b"samesame........end8")
    assert len(hits) < 2100
