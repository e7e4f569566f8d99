"""Laws of the record reader: nothing is lost, whatever the bytes are."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.io.records import RawRecord, read_records

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
RECORDS = st.dictionaries(st.text(max_size=8), VALUES, max_size=6)
SPELLINGS = st.sampled_from(
    [{"separators": (",", ":")}, {}, {"ensure_ascii": False}, {"indent": None, "sort_keys": True}]
)
JUNK = st.sampled_from(
    [b"\0" * 9, b"\xef\xbb\xbf", b"", b" ", b"[1]", b"{", b'{"a":', b"\xff", b"null", b'{"a":1}{"b":2}', b"\r"]
)


def read(raw: bytes) -> list[RawRecord]:
    return list(read_records(io.BytesIO(raw)))


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Lines of records in any spelling, with junk between and inside them."""
    lines = draw(st.lists(st.tuples(JUNK, RECORDS, SPELLINGS, st.sampled_from([b"\n", b"\r\n", b""])), max_size=8))
    spelled = [junk + json.dumps(record, **how).encode("utf-8", "replace") + end for junk, record, how, end in lines]
    return b"".join(spelled)


@pytest.mark.slow
@given(st.binary(max_size=300) | files())
@pytest.mark.seed("S4-31")
def test_every_byte_is_in_exactly_one_record(raw: bytes) -> None:
    records = read(raw)
    assert b"".join(record.raw + record.end for record in records) == raw
    at = 0
    for record in records:
        assert record.start == at
        assert raw[record.start : record.stop] == record.raw
        at = record.stop + len(record.end)


@pytest.mark.slow
@given(st.lists(RECORDS, min_size=1, max_size=6), SPELLINGS, st.data())
@pytest.mark.seed("S1-31")
def test_P09_truncation_at_any_byte_loses_at_most_the_last_record(
    records: list[object], how: dict[str, object], data: st.DataObject
) -> None:
    lines = [json.dumps(record, **how).encode("utf-8", "surrogatepass") + b"\n" for record in records]  # type: ignore[arg-type]
    raw = b"".join(lines)
    cut = data.draw(st.integers(0, len(raw)))
    whole = 0
    while whole < len(lines) and len(b"".join(lines[: whole + 1])) <= cut:
        whole += 1
    found = [record.value for record in read(raw[:cut]) if record.value is not None]
    assert found[:whole] == [record.value for record in read(b"".join(lines[:whole]))]
    assert len(found) <= whole + 1


@pytest.mark.slow
@given(files(), st.data())
@pytest.mark.seed("S0-47")
def test_reading_in_two_parts_equals_reading_at_once(raw: bytes, data: st.DataObject) -> None:
    starts = [0, *(at + 1 for at, byte in enumerate(raw) if byte == 10)]
    cut = data.draw(st.sampled_from(starts))
    line = raw[:cut].count(b"\n") + 1
    second = list(read_records(io.BytesIO(raw[cut:]), line, cut))
    assert read(raw[:cut]) + second == read(raw)


@pytest.mark.slow
@given(files())
def test_a_record_is_spelled_again_as_it_was(raw: bytes) -> None:
    from clew.io.codec import DIALECTS

    for record in read(raw):
        if record.dialect is not None:
            assert DIALECTS[record.dialect](record.value) == record.raw
