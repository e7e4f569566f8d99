"""One JSON document with an array of records: read in any layout, whatever the damage."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.io.codec import dumps, loads
from clew.io.json_document import DocumentRecord, read_document
from clew.model.json import JSON
from tests.json_values import values

VALUE: dict[str, JSON] = {
    "sessionId": "s-1",
    "messages": [{"id": "a", "n": [1, {"x": []}], "text": 'é\n"q" \u0001'}, {"id": "b", "o": {}}],
    "kind": "main",
}


def pretty(value: JSON, indent: int | None = 2) -> bytes:
    return json.dumps(value, indent=indent, ensure_ascii=False).encode()


def records(raw: bytes, keys: tuple[str, ...] = ("messages",)) -> list[DocumentRecord]:
    return list(read_document(raw, keys))


LAYOUTS = {
    "two spaces": pretty(VALUE),
    "two spaces, line feed": pretty(VALUE) + b"\n",
    "four spaces": pretty(VALUE, 4),
    "one line": json.dumps(VALUE).encode(),
    "compact": dumps(VALUE),
    "compact elements in an indented array": b'{\n  "messages": [\n    {"id":"a"},\n    {"id":"b"}\n  ]\n}\n',
    "CRLF": pretty(VALUE).replace(b"\n", b"\r\n"),
    "tabs": json.dumps(VALUE, indent="\t").encode(),
    "byte order mark": b"\xef\xbb\xbf" + pretty(VALUE),
    "blank lines around": b"\n \n" + pretty(VALUE) + b"\n\n",
    "no elements": pretty({"sessionId": "s", "messages": []}),
    "no elements, space": b'{"messages": [ \n ], "a": 1}',
    "no array": pretty({"sessionId": "s"}),
    "array of another type": pretty({"sessionId": "s", "messages": {"a": 1}}),
    "odd gaps": b'{"messages":[{"a":1} , {"b":2},\n\n{"c":3}]}',
    "odd numbers": b'{\n  "messages": [\n    {\n      "n": 1.50\n    },\n    {\n      "n": 1E5\n    }\n  ]\n}',
    "odd number in the header": b'{\n  "n": 1.50,\n  "messages": []\n}',
    "escapes": b'{"messages":[{"a":"\\u00e9\\/"}]}',
    "duplicate keys": b'{"messages":[{"a":1,"a":2}],"messages":[{"b":1}],"k":1,"k":2}',
    "no objects": b'{"messages":[1,null,"x",[2],{"a":1}]}',
    "invalid UTF-8": b'{"messages":[{"a":"\xff"},{"b":1}],"k":"\xfe"}',
    "lone surrogate": b'{"messages":[{"a":"\\ud83c"}]}',
    "too deep": b'{"messages":[{"a":' + b"[" * 5000 + b"]" * 5000 + b'},{"b":1}]}',
    "rather deep": b'{"messages":[{"a":' + b"[" * 300 + b"]" * 300 + b'},{"b":1}]}',
    "another document behind": pretty(VALUE) + b'{"type":"x"}\n',
    "NUL run": pretty(VALUE) + b"\0" * 300 + b"\n",
    "a malformed element": b'{"messages":[{"a":01},{"b":tru},{"c":1}]}',
    "an empty element in the usual layout": pretty({"messages": [{"a": 1}, {}, {"b": {"c": 1}}], "k": 1}),
    "elements that only look usual": b'{\n  "messages": [\n    {"a":{\n    }},\n    {\n      "b": 1\n    }\n  ]\n}',
    "a broken element in the usual layout": pretty(VALUE).replace(b"[\n        1,", b"[\n        01,"),
    "an array that only looks closed": pretty(VALUE).replace(b'"a"', b'"a"]').replace(b"\n    }\n  ]", b"\n    }\n  ]"),
    "a raw line feed in a string": b'{"messages":[{"a":"x\ny"},{"c":1}]}',
    "nothing": b"",
    "no JSON": b"hello\n",
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_byte_is_in_one_place(name: str) -> None:
    raw = LAYOUTS[name]
    found = records(raw)
    assert all(0 <= record.start <= record.stop <= len(raw) for record in found)
    starts = [record.start for record in found]
    assert starts == sorted(starts)


@pytest.mark.parametrize("name", ["two spaces", "four spaces", "compact", "CRLF", "odd gaps", "duplicate keys"])
def test_P04_cut_anywhere_every_complete_element_is_read(name: str) -> None:
    raw = LAYOUTS[name]
    whole = [record.value for record in records(raw)[1:]]
    for cut in range(len(raw)):
        found = [record.value for record in records(raw[:cut])[1:] if record.value is not None]
        complete = sum(record.stop <= cut for record in records(raw)[1:])
        assert found == whole[:complete]
        if 0 < cut < len(raw.rstrip()):
            assert "torn-tail" in {finding for record in records(raw[:cut]) for finding in record.findings}


def test_the_header_holds_the_members_around_the_array() -> None:
    header, *elements = records(LAYOUTS["two spaces"])
    assert header.value == {"sessionId": "s-1", "messages": [], "kind": "main"}
    assert [element.value for element in elements] == VALUE["messages"]
    assert [element.line for element in elements] == [4, 14]
    raw = LAYOUTS["two spaces"]
    assert [loads(raw[element.start : element.stop]) for element in elements] == VALUE["messages"]


def test_a_torn_document_keeps_the_members_before_the_array() -> None:
    raw = LAYOUTS["two spaces"]
    header, first, rest = records(raw[: raw.index(b'"b"') + 2])
    assert header.value == {"sessionId": "s-1", "messages": []}
    assert first.value is not None and first.value["id"] == "a"
    assert (rest.value, rest.findings) == (None, ("torn-tail",))


def test_an_array_without_an_object_around_it() -> None:
    raw = pretty([{"a": 1}, {"b": [2]}]) + b"\n"
    assert [record.value for record in records(raw, ())[1:]] == [{"a": 1}, {"b": [2]}]


def test_one_malformed_element_does_not_hide_the_others() -> None:
    found = records(LAYOUTS["a malformed element"])
    assert [record.value for record in found[1:]] == [None, None, {"c": 1}]
    assert found[1].findings == ("malformed-json",)


def test_what_stands_behind_the_document_is_told() -> None:
    assert records(LAYOUTS["another document behind"])[-1].findings == ("trailing-bytes",)
    assert records(LAYOUTS["NUL run"])[-1].findings == ("nul-run",)


def test_an_element_that_looks_like_two_is_read_as_one() -> None:
    elements: list[JSON] = [{"id": "1"}, {"id": "2"}, {"id": "3"}]
    raw = pretty({"messages": elements}).replace(b'"id": "2"', b'"id": "2", "odd": [{\n    },\n    {}]')
    assert [record.value for record in records(raw)[1:]] == [{"id": "1"}, {"id": "2", "odd": [{}, {}]}, {"id": "3"}]


ANYTHING = values(["messages", "a"], ["é", "\n"])
objects = st.dictionaries(st.text(max_size=4), ANYTHING, max_size=4)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(st.text(max_size=4), ANYTHING, max_size=3),
    st.lists(objects, max_size=4),
    st.sampled_from([None, 0, 1, 2, 4, "\t"]),
    st.booleans(),
)
def test_any_document_in_any_layout(header: dict[str, JSON], elements: list[JSON], indent: JSON, ascii: bool) -> None:
    document = {**header, "messages": elements}
    raw = json.dumps(document, indent=indent, ensure_ascii=ascii).encode()
    assert [record.value for record in records(raw)[1:]] == elements
