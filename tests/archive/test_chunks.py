"""Bytes are cut into chunks that give them back, and the same record is the same chunk anywhere."""

import io

from hypothesis import given
from hypothesis import strategies as st

from clew.archive import chunks as cutting
from clew.archive.chunks import LARGEST, LONG, SHORT, STRING, chunks, cut

_PIECES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([b"\n", b"\r\n", b"\r", b'"', b"\0", b"x" * SHORT, b"y" * LONG, b'"' + b"z" * STRING + b'"']),
)


@given(st.lists(_PIECES, max_size=30).map(b"".join), st.integers(1, 5000))
def test_what_is_cut_comes_back(content: bytes, window: int) -> None:
    was, cutting.WINDOW = cutting.WINDOW, window
    try:
        found = [chunk for some in cut(io.BytesIO(content), len(content)) for chunk in some]
    finally:
        cutting.WINDOW = was
    assert b"".join(found) == content
    assert all(found)


def test_no_more_is_read_than_was_asked_for() -> None:
    assert b"".join(b"".join(some) for some in cut(io.BytesIO(b"ab\ncd\nef"), 4)) == b"ab\nc"


def test_a_record_is_a_chunk() -> None:
    records = [bytes([65 + at]) * (SHORT + at) + b"\n" for at in range(5)]
    assert chunks(b"".join(records)) == records


def test_short_records_go_together_until_a_long_one_comes() -> None:
    long = b"L" * SHORT + b"\n"
    assert chunks(b"a\nb\n" + long + b"c\n") == [b"a\nb\n", long, b"c\n"]


def test_an_image_is_the_same_chunk_in_different_records() -> None:
    image = b"iVBORw0K" * (LONG // 4)
    one = b'{"uuid":"1","data":"' + image + b'","more":1}\n'
    other = b'{"uuid":"22","type":"image","data":"' + image + b'"}\n'
    assert image in chunks(one)
    assert image in chunks(other)


def test_no_chunk_is_larger_than_the_largest() -> None:
    assert max(map(len, chunks(b"x" * (3 * LARGEST)))) == LARGEST
