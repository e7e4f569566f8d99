"""Records come back from their columns byte for byte, whatever they are."""

import base64
import json
import os
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.archive.blocks import LIMIT, SMALL, Codec, hash_of
from clew.archive.columns import SAME, Streams, gather, spread

_UUID = st.uuids().map(lambda one: str(one).encode())
_PIECE = st.one_of(
    st.binary(max_size=12).map(lambda one: one.replace(b"\1", b"")),
    st.sampled_from([b'"', b'\\"', b"\\", b'\\\\"', b"\n", b"\r", b"{", b'":', b"12.5", b"0", b"\xff", b"\0", b""]),
    _UUID,
    _UUID.map(bytes.upper),
    st.binary(min_size=75, max_size=120).map(base64.b64encode),
    st.binary(min_size=75, max_size=120).map(lambda one: base64.b64encode(one)[:-1] + b"="),
    st.text("_=/:-( x", min_size=64, max_size=90).map(str.encode),
)
_LINE = st.lists(_PIECE, max_size=6).map(b"".join)


def back(body: bytes) -> bytes:
    streams = spread(body)
    assert streams is not None
    return gather(streams, LIMIT)


@settings(deadline=None)
@given(st.lists(st.tuples(_LINE, st.integers(1, 5)), max_size=8))
def test_any_bytes_come_back(parts: list[tuple[bytes, int]]) -> None:
    body = b"\n".join(line for line, times in parts for _ in range(times))
    assert back(body) == body


@settings(deadline=None)
@given(st.lists(st.lists(_PIECE, min_size=3, max_size=3), min_size=3, max_size=12))
def test_lines_of_one_shape_come_back(rows: list[list[bytes]]) -> None:
    """Whatever the first line leads to expect of a column, the others may be something else."""
    body = b"\n".join(b'{"a":"' + b'","b":"'.join(row) + b'"}' for row in rows)
    assert back(body) == body


@pytest.mark.parametrize("piece", [b"ab cd", b"AB-cd", b"0" * 36, b"12345678-1234-1234-1234-12345678 9ab"])
def test_what_looks_like_an_id_and_is_none(piece: bytes) -> None:
    ids = [str(uuid.UUID(int=number)).encode() for number in range(4)]
    body = b"\n".join(b'"%s"' % one for one in (*ids, piece))
    assert back(body) == body


def test_ids_and_base64_are_kept_as_the_bytes_they_stand_for() -> None:
    rows = [{"id": str(uuid.uuid4()), "image": base64.b64encode(os.urandom(300 + at)).decode()} for at in range(20)]
    body = b"\n".join(json.dumps(row).encode() for row in rows)
    streams = spread(body)
    assert streams is not None
    assert len(streams.ids) == 16 * 20
    assert len(streams.binary) == sum(300 + at for at in range(20))
    assert gather(streams, LIMIT) == body


def test_what_is_said_twice_in_a_record_is_kept_once() -> None:
    texts = [os.urandom(100).hex() for _ in range(10)]
    body = b"\n".join(json.dumps({"content": text, "stdout": text}).encode() for text in texts)
    streams = spread(body)
    assert streams is not None
    assert len(streams.text) < 210 * 10
    assert gather(streams, LIMIT) == body


def test_bytes_that_stand_for_something_else_are_left_alone() -> None:
    assert spread(b'{"a":"\1"}') is None
    codec = Codec()
    chunks = [b'{"a":"\1"}\n' * 10, os.urandom(SMALL)]
    stored, dictionary = codec.pack(chunks, [hash_of(chunk, b"") for chunk in chunks], 0)
    assert (codec.unpack(stored, dictionary).body, dictionary) == (b"".join(chunks), 0)


def test_streams_that_do_not_fit_are_refused() -> None:
    streams = spread(b"\n".join(b'{"id":"%s","n":%d}' % (str(uuid.uuid4()).encode(), at) for at in range(9)))
    assert streams is not None
    for name in Streams._fields:
        whole = getattr(streams, name)
        for part in (whole[:-1], whole[: len(whole) // 2], b""):
            if part == whole:
                continue
            try:
                gather(streams._replace(**{name: part}), LIMIT)
            except ValueError:
                continue


def test_P10_a_few_bytes_that_stand_for_very_many_are_refused() -> None:
    import msgspec

    lines = bytes(2 * 100_000)
    plan = msgspec.msgpack.encode([[(3, bytes([SAME] * 3))], lines, [], b"", []])
    with pytest.raises(ValueError, match="more than any block"):
        gather(Streams(plan, b'"'.join([b"x" * 10_000] * 3), b"", b"", b""), LIMIT)


def test_P12_a_line_of_very_many_columns_takes_no_longer_than_its_length() -> None:
    line = b'"'.join(b"%064d" % at + b"x" * 20 for at in range(20_000))
    body = b"\n".join(line.replace(b"0", mark) for mark in (b"a", b"b", b"c", b"d"))
    assert back(body) == body
