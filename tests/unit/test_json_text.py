"""Changed JSON text keeps the bytes of everything that did not change."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.io.json_text import replace_values

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)
objects = st.dictionaries(st.text(max_size=3), values, max_size=4)


@given(objects, objects, st.sampled_from([None, 1, 2, "\t"]))
def test_the_result_has_the_new_values(before: dict[str, Any], after: dict[str, Any], indent: int | str | None) -> None:
    assert json.loads(replace_values(json.dumps(before, indent=indent), after)) == after


@given(objects, st.sampled_from([None, 2, "\t"]))
def test_a_member_that_is_added_and_removed_leaves_the_same_bytes(
    before: dict[str, Any], indent: int | str | None
) -> None:
    text = json.dumps(before, indent=indent) + "\n"
    added = replace_values(text, {**before, "longer": {"list": [1]}})
    assert replace_values(added, before) == text


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        ('{\n    "a":1,\n    "b" : [1,\n 2]\n}', {"c": []}, '{\n    "a":1,\n    "b" : [1,\n 2],\n    "c": []\n}'),
        ('{"a": 1}', {"b": {"c": [1]}}, '{"a": 1, "b": {"c": [1]}}'),
        ("{}", {"a": [1]}, '{\n  "a": [\n    1\n  ]\n}'),
        ('{\r\n\t"a": 1\r\n}\r\n', {"b": {"c": 1}}, '{\r\n\t"a": 1,\r\n\t"b": {\r\n\t\t"c": 1\r\n\t}\r\n}\r\n'),
        ('{\n  "a": {}\n}', {"a": {"b": 1}}, '{\n  "a": {\n    "b": 1\n  }\n}'),
        ('{\n  "a": [1,2,  3]\n}', {"a": [1, 2, 3, 4]}, '{\n  "a": [1,2,  3, 4]\n}'),
        ('{\n  "a": [1,2,  3]\n}', {"a": [1, 3]}, '{\n  "a": [1,  3]\n}'),
        ("", {"a": 1}, '{\n  "a": 1\n}\n'),
        ('{"a": 1,  "b": 0}', {"a": True, "b": False}, '{"a": true,  "b": false}'),
        ('{"a": [1,  [true]]}', {"a": [True, [1]]}, '{"a": [true,  [1]]}'),
        ('{"a": [1,true]}', {"a": [True]}, '{"a": [true]}'),
        ('{"a": {"b": 1}}', {"a": {"b": 1.0}}, '{"a": {"b": 1.0}}'),
    ],
)
def test_layout(before: str, changes: dict[str, Any], after: str) -> None:
    assert replace_values(before, {**json.loads(before or "{}"), **changes}) == after
