"""Values that were found once are found however they are written, and however many there are."""

from __future__ import annotations

import base64
import json
import random
import uuid
from functools import partial
from io import BytesIO
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.model.json import JSON
from clew.redact import KnownValues, Marker
from clew.redact.encodings import to_bytes
from clew.redact.native_files import mask_file
from clew.redact.redactor import MaskSettings, Redactor
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
    [hit] = KnownValues(VALUES).hits(text)
    found = text[hit.start : hit.end]
    # What a value shares with its neighbours in base64 is no part of it.
    assert found in text[len(before) : -len(" there")]
    assert len(found) >= len(FORMS[form].rstrip("=")) - (8 if form.startswith("base64") else 0)


@pytest.mark.parametrize(
    "value", ["pässwörter-und-日本語", "two words/and more+x", 'quo"ted\\back/slash', "  a b c d  "]
)
def test_a_value_of_other_letters_is_found_in_every_spelling(value: str) -> None:
    known = KnownValues([value])
    units = value.encode("utf-16-be")
    escapes = "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
    once = json.dumps(value)[1:-1]
    kept = json.dumps(value, ensure_ascii=False)[1:-1]
    quoted = [quote(value), quote(value, safe=""), quote_plus(value)]
    for spelled in (value, once, json.dumps(once)[1:-1], kept, kept.replace("/", "\\/"), *quoted, escapes):
        assert known.hits(f"(a{spelled})".encode()), spelled
    assert known.hits(value.encode().hex().encode())


def test_a_value_within_a_word_is_found() -> None:
    assert KnownValues(VALUES).hits(f"x{LAST}y".encode())


def test_a_session_of_many_values_hides_the_last_one_everywhere() -> None:
    redactor = Redactor(MaskSettings("secrets", Marker()))
    redactor.learn([{"text": f"DB_PASSWORD={value}", "more": "Nothing to see here. " * 40} for value in VALUES])
    assert len(redactor.values) > 700
    last = list(redactor.values)[-1]
    for spelled in (last, base64.b64encode(last.encode()).decode(), last.encode().hex()):
        assert spelled not in json.dumps(redactor.value({"note": f"see {spelled} there"}))


def test_texts_without_them_stay() -> None:
    text = b"An ordinary text, with VGhpcyBpcyBub3RoaW5n and deadbeefdeadbeefdeadbeef and \\u0041\\u0042 in 2024" * 50
    assert not KnownValues(VALUES).hits(text)
    assert not KnownValues(VALUES).hits(b"")
    assert not KnownValues([]).hits(text)


def found(values: list[str], text: bytes) -> list[bytes]:
    return [text[hit.start : hit.end] for hit in KnownValues(values).hits(text)]


def test_values_with_a_common_beginning_are_told_apart() -> None:
    values = [f"samesame{number}x" for number in range(300)]
    text = b"a samesame8x b\n" + b"samesame " * 20_000 + b"samesame299x"
    assert found(values, text) == [b"samesame8x", b"samesame299x"]


def test_the_longest_of_nested_values_is_found() -> None:
    nested = ["abcdefgh" + "i" * number for number in range(500)]
    assert found(nested, b"abcdefgh" + b"i" * 250 + b"z abcdefghz") == [b"abcdefgh" + b"i" * 250, b"abcdefgh"]


def test_a_value_at_the_border_of_two_search_windows_is_found() -> None:
    value = PLANT.password()
    for before in range((1 << 16) - 30, (1 << 16) + 30):
        assert found([value], b"." * before + value.encode() + b"." * (1 << 16)) == [value.encode()]


def test_long_values_with_a_common_beginning_are_told_apart_at_any_place() -> None:
    common = "".join(random.Random(5).choices("abcdefghijkl", k=3_000))
    first, second = f"{common}one", f"{common}two"
    for before in (0, 1, (1 << 16) - 1_500, (1 << 16) - 1, 1 << 16):
        text = f"{'.' * before}{second} {common} {common}tw {first}".encode()
        assert found([first, second], text) == [second.encode(), first.encode()]


@pytest.mark.parametrize("value", ["hunt3r", "hunt3r2", "p@ss1!"])
def test_a_value_of_six_or_seven_characters_is_known_as_a_word_by_itself(value: str) -> None:
    known = KnownValues([value])
    forms = (value, f"a:{value}@b", f'{{"a":"{value}"}}', f"x\\n{value}\\n", f"?q=a%20{value}&", value.encode().hex())
    for text in (*forms, "".join(f"\\u{ord(char):04x}" for char in value)):
        for before in ("", " ", "  ", "   "):
            assert known.hits(f"{before}{text}".encode()), text
    assert not known.hits(f"x{value}y 1{value} {value}1".encode())


def test_a_short_password_is_masked_wherever_it_stands_in_a_session() -> None:
    redactor = Redactor(MaskSettings("secrets", Marker()))
    records = [{"note": "try hunt3r2 then"}, {"env": "DB_PASS" + "WORD=hunt3r2"}, {"note": "word\\nhunt3r2\\n"}]
    redactor.learn(records)
    assert [json.dumps(redactor.value(each)).count("hunt3r2") for each in records] == [0, 0, 0]


HEX = "".join(random.Random(3).choices("0123456789abcdef", k=32))
UUID = str(uuid.UUID(HEX, version=4))
DIGITS = "827364" + "5519"
PLACES: list[tuple[str, str, JSON]] = [
    ("DD_API_" + "KEY", HEX, {"requestId": HEX, "input": {"sha": HEX}, "toolUseResult": {"commit": HEX}}),
    ("DD_API_" + "KEY", HEX, {"arguments": json.dumps({"id": HEX}), "uuid": f"call_{HEX}"}),
    ("HEROKU_API_" + "KEY", UUID, {"uuid": UUID, "client_id": UUID, "more": [{"parentUuid": UUID}]}),
    ("DB_PASS" + "WORD", "Tr0ub" + "4dor", {"answers": {"Tr0ub" + "4dor": True}}),
    ("DB_PASS" + "WORD", DIGITS, {"n": int(DIGITS), "usage": {"tokens": int(DIGITS)}, "id": [int(DIGITS)]}),
    ("DB_PASS" + "WORD", DIGITS, {"arguments": json.dumps({"n": int(DIGITS)}), "f": float(DIGITS), "m": -int(DIGITS)}),
    ("APP_SEC" + "RET", DIGITS * 3, {"n": int(DIGITS * 3), "total_tokens": int(DIGITS * 3)}),
]


@pytest.mark.parametrize(("name", "value", "record"), PLACES)
def test_a_value_is_masked_as_a_key_an_id_and_a_number(name: str, value: str, record: JSON) -> None:
    told: JSON = {"text": f"export {name}={value}"}
    redactor = Redactor(MaskSettings("secrets", Marker(b"key")))
    redactor.learn([record, told])
    masked = redactor.value(record)
    assert value in json.dumps(record)
    assert value not in json.dumps(masked)
    assert value not in json.dumps(Redactor(MaskSettings("secrets", Marker(b"key"))).learn_and_mask([told, record]))
    lines = json.dumps(record).encode() + b"\n" + json.dumps(told).encode() + b"\n"
    native = b"".join(mask_file(partial(BytesIO, lines), Redactor(MaskSettings("secrets", Marker(b"key")))))
    assert value.encode() not in native
    assert json.loads(native.splitlines()[0]) == masked
    assert any(value in text for text, _ in redactor.findings(record))


def test_an_id_that_is_a_value_stays_a_link() -> None:
    records: list[JSON] = [{"uuid": UUID, "text": "a"}, {"parentUuid": UUID}, {"t": "HEROKU_API_" + f"KEY={UUID}"}]
    redactor = Redactor(MaskSettings("secrets", Marker(b"key")))
    redactor.learn(records)
    first, second = redactor.value(records[0]), redactor.value(records[1])
    assert first["uuid"] == second["parentUuid"] != UUID


def test_a_password_that_is_a_name_in_the_format_leaves_the_format_whole() -> None:
    records: list[JSON] = [{"message": {"content": "see message here"}}, {"message": "DB_PASS" + "WORD=message"}]
    redactor = Redactor(MaskSettings("secrets", Marker()))
    redactor.learn(records)
    masked = [redactor.value(record) for record in records]
    assert masked == [{"message": {"content": "see [REDACTED] here"}}, {"message": "DB_PASS" + "WORD=[REDACTED]"}]
    lines = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    native = b"".join(mask_file(partial(BytesIO, lines), Redactor(MaskSettings("secrets", Marker()))))
    assert [json.loads(line) for line in native.splitlines()] == masked


@pytest.mark.slow
def test_a_record_that_is_masked_whole_keeps_no_token_as_a_key_or_an_id() -> None:
    token = Planter("key").aws_id()[:-2] + "37"
    record: JSON = {"type": "user", token: 1, "uuid": UUID, "n": int(DIGITS), "k": [f"ab{at}" for at in range(200_005)]}
    told: JSON = {"a": "HEROKU_API_" + f"KEY={UUID}", "b": "DB_PASS" + f"WORD={DIGITS}"}
    redactor = Redactor(MaskSettings("secrets", Marker()))
    redactor.learn([told])
    masked = json.dumps(redactor.learn_and_mask(record | {"x": "DB_PASS" + "WORD=Vt5y" + "Marble42"}))
    assert not [value for value in (token, UUID, DIGITS) if value in masked]
    assert masked.startswith('{"type": "user"')


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
    [hit] = KnownValues([other, value]).hits(text)
    assert text[hit.start : hit.end].lower() == digits.encode()


def test_a_value_in_hex_of_both_cases_is_found() -> None:
    mixed = "".join(digit.upper() if at % 3 else digit for at, digit in enumerate(RAW.hex()))
    assert KnownValues(VALUES).hits(mixed.encode())


def test_numbers_that_spell_no_letters_are_not_read() -> None:
    numbers = b"\n".join(b"%016d" % (10**15 + 7919 * number) for number in range(5000))
    assert KnownValues(["a long password"]).hits(numbers) == []


@given(st.lists(st.text("01 ", min_size=8, max_size=12), min_size=1, max_size=4), st.integers(0, 40), st.data())
def test_every_byte_of_every_value_is_found(texts: list[str], before: int, data: st.DataObject) -> None:
    pieces = data.draw(st.lists(st.sampled_from([*texts, "0101", "1 0 1 0", "0 11"]), max_size=60))
    text = ("0" * before + "".join(pieces) * 4).encode()
    expected = set[int]()
    for value in texts:
        for place in range(len(text)):
            if text.startswith(value.encode(), place):
                expected.update(range(place, place + len(value)))
    assert {place for hit in KnownValues(texts).hits(text) for place in range(hit.start, hit.end)} >= expected
