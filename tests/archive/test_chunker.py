"""Files are cut into chunks that give them back, and shared records give shared chunks wherever they lie."""

import io
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.archive import chunker
from clew.archive.chunker import (
    LONG_RECORD_BYTES,
    LONG_STRING_BYTES,
    MAX_CHUNK_BYTES,
    MAX_GROUP_BYTES,
    MIN_GROUP_BYTES,
    cut,
    split,
)

_PIECES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([b"\n", b"\r\n", b"\r", b'"', b"\0", b"x" * MIN_GROUP_BYTES, b"y" * LONG_RECORD_BYTES]),
    st.just(b'"' + b"z" * LONG_STRING_BYTES + b'"'),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_PIECES, max_size=30).map(b"".join), st.integers(1, 5000))
def test_the_chunks_joined_are_the_content(monkeypatch: pytest.MonkeyPatch, content: bytes, window: int) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(chunker, "WINDOW_BYTES", window)
        found = [chunk for some in cut(io.BytesIO(content), len(content)) for chunk in some]
    assert b"".join(found) == content
    assert all(found)


def test_no_more_is_read_than_was_asked_for() -> None:
    assert b"".join(b"".join(some) for some in cut(io.BytesIO(b"ab\ncd\nef"), 4)) == b"ab\nc"


def test_most_chunks_are_shared_after_an_insertion() -> None:
    chance = random.Random(1)
    records = [chance.randbytes(chance.randint(100, 900)).hex().encode() + b"\n" for _ in range(1000)]
    before = split(b"".join(records))
    after = split(b"".join([*records[:500], b"inserted\n", *records[500:]]))
    assert len(set(after) - set(before)) < 5
    assert all(len(chunk) <= 2 * MAX_GROUP_BYTES for chunk in before)


def test_an_image_is_the_same_chunk_in_different_records() -> None:
    image = b"iVBORw0K" * (LONG_RECORD_BYTES // 4)
    one = b'{"uuid":"1","data":"' + image + b'","more":1}\n'
    other = b'{"uuid":"22","type":"image","data":"' + image + b'"}\n'
    assert image in split(one)
    assert image in split(other)


def test_no_chunk_is_larger_than_the_largest() -> None:
    assert max(map(len, split(b"x" * (3 * MAX_CHUNK_BYTES)))) == MAX_CHUNK_BYTES
