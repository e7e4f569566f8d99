"""A large JSON object read as a stream, in any layout."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import InvalidDocument
from clew.io import jsonstream
from clew.io.codec import dumps
from clew.io.jsonstream import Scanner
from tests.properties.test_bytes import VALUES

ELEMENTS = st.lists(VALUES, max_size=6)


def read(text: bytes) -> dict[str, Any]:
    """The whole object, arrays element by element."""
    scanner = Scanner(io.BytesIO(text))
    found: dict[str, Any] = {}
    for key in scanner.members():
        scanner.key_done()
        found[key] = list(scanner.elements()) if scanner.peek() == b"[" else scanner.value()
    assert scanner.peek() == b""
    return found


def layouts(value: Any) -> dict[str, bytes]:
    lines = ",\n".join(json.dumps(item, ensure_ascii=False) for item in value["list"])
    return {
        "compact": dumps(value),
        "indented": json.dumps(value, indent=3).encode(),
        "lines": f'{{"list":[\n{lines}\n],\n"more":{json.dumps(value["more"])}}}'.encode(),
    }


@pytest.mark.slow
@given(ELEMENTS, VALUES, st.sampled_from(["compact", "indented", "lines"]), st.integers(1, 40))
def test_every_layout_reads_the_same_in_pieces_of_any_size(items: Any, more: Any, layout: str, piece: int) -> None:
    value = {"list": items, "more": more if not isinstance(more, list) else {"x": more}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonstream, "_PIECE", piece)
        assert read(layouts(value)[layout]) == value


@pytest.mark.parametrize("text", ['"', "\\", '\\"', '"\\\\"', "[{]}", '},{"', "x" * 200_000, '\\"' * 70_000])
def test_strings_longer_than_a_piece(text: str) -> None:
    value = {"list": [{"text": text + "end"}, {"text": "x" * 65_500 + text}], "more": text}
    for spelled in layouts(value).values():
        assert read(spelled) == value


@pytest.mark.parametrize("depth", [2, 990, 5000])
def test_elements_come_as_they_are_spelled_however_deep(depth: int) -> None:
    deep = b'{"a": ' * depth + b"1" + b"}" * depth
    scanner = Scanner(io.BytesIO(b'[{"a":1},\n %b, "x" ,[1, 2]\n]' % deep))
    assert list(scanner.element_texts()) == [b'{"a":1}', deep, b'"x"', b"[1, 2]"]


def test_several_scanners_share_a_stream() -> None:
    stream = io.BytesIO(b"[1,2,3]" + b" " * 100 + b'["a","b","c"]')
    numbers, letters = Scanner(stream).elements(), Scanner(stream, 7).elements()
    assert list(zip(numbers, letters, strict=True)) == [(1, "a"), (2, "b"), (3, "c")]


def test_numbers_that_a_fast_reader_refuses_are_read_carefully() -> None:
    assert read(b'{"a":{"n":1e999},"b":"\\ud800"}') == {"a": {"n": "1e999"}, "b": "\ufffd"}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{",
        b'{"a"',
        b'{"a":',
        b'{"a":[1',
        b'{"a":[1,',
        b'{"a":{"b":"',
        b'{"a":{"b":"' + b"x" * 100_000,
        b'{"a" 1}',
        b'{"a":[1 2]}',
        b'{"a":nope}',
        b'{"a":{"b":1,}}',
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":{"b":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    ],
)
def test_P01_what_is_no_json_is_refused_with_its_place(text: bytes) -> None:
    with pytest.raises(InvalidDocument, match=r"at byte \d+|more than one value"):
        read(text)
