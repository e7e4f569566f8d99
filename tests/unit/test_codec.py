"""JSON text: dialects that are spelled again byte for byte, and values no fast reader may change."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from clew.io.codec import COMPACT, DIALECTS, MAX_DEPTH, TooDeep, decode, dialect_of
from clew.model.json import JSON
from tests.properties.test_bytes import VALUES

VALUE: JSON = {"a": [1, 2.5, None, True], "é": "ü\U0001f600", "n": {"x": "/<>&\x7f"}}


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("compact", json.dumps(VALUE, ensure_ascii=False, separators=(",", ":"))),
        ("spaced", json.dumps(VALUE, ensure_ascii=False)),
        ("ascii", json.dumps(VALUE, separators=(",", ":"))),
        ("spaced-ascii", json.dumps(VALUE)),
    ],
)
def test_four_dialects_are_known(name: str, spelled: str) -> None:
    found = decode(spelled.encode())
    assert (found.value, found.dialect, found.findings) == (VALUE, name, ())
    assert DIALECTS[name](VALUE) == spelled.encode()


@pytest.mark.parametrize(
    "spelled",
    [
        '{"a" : 1}',
        '{ "a": 1 }',
        '{"a":1.0e0}',
        '{"a":1E5}',
        '{"a":-0}',
        '{"a":1.50}',
        '{"a":"\\/"}',
        '{"a":"\\u0041"}',
        '{"a":"\\u00E9"}',
        '{"a":0.1000000000000000055}',
    ],
)
def test_P02_other_spellings_have_no_dialect(spelled: str) -> None:
    found = decode(spelled.encode())
    assert found.dialect is None
    assert found.value == json.loads(spelled)


@pytest.mark.parametrize("digits", [1, 20, 309, 3999])
def test_P02_long_integers_are_exact(digits: int) -> None:
    number = 10 ** (digits - 1) + 7
    found = decode(b'{"n":%d}' % number)
    assert found.value == {"n": number}


def test_P02_an_integer_too_long_to_convert_is_text() -> None:
    found = decode(b'{"n":' + b"9" * 5000 + b"}")
    assert found.value == {"n": "9" * 5000}
    assert found.findings == ("number-range",)
    assert found.dialect is None


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999", "-1e400"])
def test_P04_what_is_no_number_is_its_word(word: str) -> None:
    found = decode(f'{{"n":{word}}}'.encode())
    assert found.value == {"n": word}
    assert (found.dialect, found.findings) == (None, ("number-range",))


def test_P04_no_dialect_writes_it() -> None:
    assert dialect_of({"n": float("nan")}, b'{"n":NaN}') is None


def test_P03_duplicate_keys() -> None:
    found = decode(b'{"a":{"b":1,"b":2},"c":3}')
    assert found.value == {"a": {"b": 2}, "c": 3}
    assert (found.dialect, found.findings) == (None, ("duplicate-key",))


def test_P05_lone_surrogates_are_shown_as_replacements() -> None:
    found = decode(rb'{"\ud800":"\udc00x","ok":"\ud83d\ude00"}')
    assert found.value == {"\ufffd": "\ufffdx", "ok": "\U0001f600"}
    assert (found.dialect, found.findings) == (None, ("lone-surrogate",))


def test_P05_invalid_utf8_is_shown_as_replacements() -> None:
    found = decode(b'{"a":"\xc0\xaf"}')
    assert found.value == {"a": "\ufffd\ufffd"}
    assert (found.dialect, found.findings) == (None, ("invalid-utf8",))


def test_P01_depth_is_limited() -> None:
    def nested(depth: int) -> bytes:
        return b"[" * depth + b"]" * depth

    assert decode(nested(MAX_DEPTH)).value is not None
    for depth in (MAX_DEPTH + 1, 1_000, 100_000):
        with pytest.raises(TooDeep):
            decode(nested(depth))


@pytest.mark.parametrize("text", [b"", b"{", b'{"a":1} {"b":2}', b"{'a':1}", b'{"a":01}', b'{"a":1,}', b"nul"])
def test_what_is_no_json_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"Expecting|Illegal|more than one value|Extra data"):
        decode(text)


@given(VALUES)
def test_the_compact_dialect_is_the_first_choice(value: JSON) -> None:
    raw = DIALECTS[COMPACT](value)
    assert dialect_of(value, raw) == COMPACT
