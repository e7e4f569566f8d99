"""Values that were found once are found however they are written, and however many there are, for a bounded cost."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.redact import Known, Marker
from clew.redact.flat import to_bytes
from clew.redact.grams import Found, Grams, merged
from clew.redact.tree import Redactor, Setting
from tests.redact.planted import Planter

PLANT = Planter("known")
VALUES = [PLANT.password() for _ in range(800)]
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
    "hex": RAW.hex(),
    "hex in capitals": RAW.hex().upper(),
    "hex behind half a byte": "a" + RAW.hex() + "bc",
    "escapes": "".join(f"\\u{ord(char):04x}" for char in LAST),
    "escapes in json": "".join(f"\\\\u{ord(char):04X}" for char in LAST),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("before", ["see ", "see: ", "I see ", "xyzsee "])
def test_one_of_many_values_is_found_in_every_spelling_at_any_place(form: str, before: str) -> None:
    text = f"{before}{FORMS[form]} there".encode()
    [hit] = Known(VALUES).hits(text)
    found = text[hit.start : hit.end]
    # What a value shares with its neighbours in base64 is no part of it.
    assert found in text[len(before) : -len(" there")]
    assert len(found) >= len(FORMS[form].rstrip("=")) - (8 if form.startswith("base64") else 0)


@pytest.mark.parametrize(
    "value", ["pässwörter-und-日本語", "two words/and more+x", 'quo"ted\\back/slash', "  a b c d  "]
)
def test_a_value_of_other_letters_is_found_in_every_spelling(value: str) -> None:
    known = Known([value])
    units = value.encode("utf-16-be")
    escapes = "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
    once = json.dumps(value)[1:-1]
    kept = json.dumps(value, ensure_ascii=False)[1:-1]
    quoted = [quote(value), quote(value, safe=""), quote_plus(value)]
    for spelled in (value, once, json.dumps(once)[1:-1], kept, kept.replace("/", "\\/"), *quoted, escapes):
        assert known.hits(f"(a{spelled})".encode()), spelled
    assert known.hits(value.encode().hex().encode())


def test_a_value_within_a_word_is_found() -> None:
    assert Known(VALUES).hits(f"x{LAST}y".encode())


def test_a_session_of_many_values_hides_the_last_one_everywhere() -> None:
    redactor = Redactor(Setting("secrets", Marker()))
    redactor.learn([{"text": f"DB_PASSWORD={value}", "more": "Nothing to see here. " * 40} for value in VALUES])
    assert len(redactor.values) > 700
    last = list(redactor.values)[-1]
    for spelled in (last, base64.b64encode(last.encode()).decode(), last.encode().hex()):
        assert spelled not in json.dumps(redactor.value({"note": f"see {spelled} there"}))


def test_texts_without_them_stay() -> None:
    text = b"An ordinary text, with VGhpcyBpcyBub3RoaW5n and deadbeefdeadbeefdeadbeef and \\u0041\\u0042 in 2024" * 50
    assert not Known(VALUES).hits(text)
    assert not Known(VALUES).hits(b"")
    assert not Known([]).hits(text)


def test_RD09_strings_of_the_same_letters_are_compared_no_oftener_than_a_text_allows() -> None:
    grams = Grams()
    grams.add(b"samesame%dx" % number for number in range(300))
    text = b"a samesame8x b\n" + b"samesame " * 20_000
    spans = grams.spans(text)
    assert text[slice(*spans[0])] == b"samesame8x"
    # What cannot be compared is taken for one of them, as one crowd.
    assert len(spans) == 2 and spans[1][1] >= len(text) - 16
    assert grams.compared <= 2000 + len(text) // 96 + 100


def test_RD09_a_crowd_ends_with_its_line_and_is_seen_from_within() -> None:
    grams = Grams()
    grams.add(b"samesame%dx" % number for number in range(300))
    crowd = b"samesame " * 30_000
    text = crowd + b"\n\0\nan ordinary text\n\0\n" + crowd
    spans = grams.spans(text)
    place = text.index(b"an ordinary")
    assert not any(start < place + 16 and end > place for start, end in spans)
    found = Found(grams.spans)
    start, end = spans[-1]
    middle = (start + end) // 2
    assert found.first(text, middle, len(text)) == (middle, end)
    assert found.first(text, len(text), len(text)) == (-1, -1)


@given(
    value=st.text(min_size=8, max_size=40),
    other=st.sampled_from(["pass word one", "zwei Wörter", "tab\tand\nline", "bell\x07bell\x07"]),
    before=st.from_regex(r"[0-9a-f]{0,5}", fullmatch=True),
    behind=st.from_regex(r"[0-9a-f]{0,5}", fullmatch=True),
    in_capitals=st.booleans(),
)
def test_a_value_in_hex_is_found_among_digits(
    value: str, other: str, before: str, behind: str, in_capitals: bool
) -> None:
    digits = before + to_bytes(value).hex() + behind
    text = f"see {digits.upper() if in_capitals else digits} there".encode()
    [hit] = Known([other, value]).hits(text)
    assert text[hit.start : hit.end].lower() == digits.encode()


def test_a_value_in_hex_of_both_cases_is_found() -> None:
    mixed = "".join(digit.upper() if at % 3 else digit for at, digit in enumerate(RAW.hex()))
    assert Known(VALUES).hits(mixed.encode())


def test_numbers_that_spell_no_letters_are_not_read() -> None:
    numbers = b"\n".join(b"%016d" % (10**15 + 7919 * number) for number in range(5000))
    known = Known(["a long password"])
    before = known.compared
    assert known.hits(numbers) == []
    assert known.compared == before


def _standing(forms: list[bytes], text: bytes) -> list[tuple[int, int]]:
    """The same as `Grams` finds, told one by one."""
    places = [(place, form) for form in forms for place in range(len(text)) if text.startswith(form, place)]
    return merged((place, place + len(form)) for place, form in places)


@pytest.mark.parametrize("form", ["(202) 555-{}", "{}-555 (202)"])
@pytest.mark.parametrize("shift", range(0, 24, 3))
def test_RD09_a_string_is_known_by_other_bytes_where_its_own_stand_everywhere(form: str, shift: int) -> None:
    first, second, third, fourth = (form.format(number).encode() for number in (1234, 5678, 9012, 7777))
    grams = Grams()
    grams.add([first, second, third])
    calm = form.format("and ").encode()
    # It is at the border of a part that the windows change.
    border = (1 << 12) - shift
    text = (calm * 2000)[:border] + first + calm * 3000 + second + b" " + calm * 400 + third
    assert grams.spans(text) == _standing([first, second, third], text)
    spent = grams.compared
    grams.add([fourth])
    assert grams.spans(calm * 5000 + fourth) == [(70_000, 70_000 + len(fourth))]
    assert grams.compared - spent < 100


@given(st.lists(st.text("01 ", min_size=8, max_size=12), min_size=1, max_size=4), st.integers(0, 40), st.data())
def test_strings_are_found_wherever_they_stand_however_worn_their_bytes_are(
    texts: list[str], before: int, data: st.DataObject
) -> None:
    forms = [text.encode() for text in texts]
    pieces = data.draw(st.lists(st.sampled_from([*forms, b"0101", b"1 0 1 0", b"0 11"]), max_size=60))
    text = b"0" * before + b"".join(pieces) * 4
    grams = Grams()
    grams.add(forms)
    for _ in range(2):
        assert grams.spans(text) == _standing(forms, text)
