"""Records that are hidden without being looked at: no secret is left, and what is left has the same shape."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from clew.redact.crowd import hider
from tests.redact.planted import Planter

MARKER = b"[REDACTED:crowded:abcdefgh]"
UUID = "00000000-0000-4000-8000-000000000007"
PLANT = Planter("crowd")


def hide(text: str) -> str:
    return hider(MARKER)(text.encode()).decode()


def hidden(value: Any, **how: Any) -> Any:
    return json.loads(hide(json.dumps(value, **how)))


@pytest.mark.parametrize(
    "kept",
    [
        {"type": "user", "role": "assistant"},
        {"uuid": UUID, "sessionId": UUID, "id": "toolu_01abc", "commit": "0" * 40},
        {"timestamp": "2026-01-01T00:00:00.123Z", "created_time": 1763226314000},
        {"signature": "A" * 200, "n": [1, -2.5, 3e5, True, False, None]},
        {"a": ["ok", "abc", "x1"], "b": {}, "c": []},
        [[[["a"]]], [], [{}]],
    ],
)
def test_words_of_a_format_ids_and_times_stay(kept: Any) -> None:
    assert hidden(kept) == kept
    assert hidden(kept, indent=0, ensure_ascii=False) == kept


@pytest.mark.parametrize(
    "record",
    [
        {"token": "hunter"},
        {"pin": "1234"},
        {"pass" + "word": "correct"},
        {"api_key_id": "a1b2c3d4e5f6"},
        {"text": "Tangerine42"},
        {"id": "Tangerine 42"},
        {"n": 4539148803436467},
        {"created_at": "not a time at all"},
        {"l": ["Tangerine42"]},
        {"signature": "A" * 90},
    ],
)
@pytest.mark.parametrize("form", ["{}", " {}", "x\n{}\n", '{{"a":[{}'])
def test_what_may_be_a_secret_goes(record: dict[str, Any], form: str) -> None:
    [value] = record.values()
    secret = str(value[0] if isinstance(value, list) else value)
    for how in ({}, {"separators": (",", ":")}, {"indent": 1}):
        assert secret not in hide(form.format(json.dumps(record, **how)))


def test_names_that_may_be_secrets_go_and_stay_different() -> None:
    keys = [PLANT.github() for _ in range(5)]
    found = hidden(dict.fromkeys(keys, 1))
    assert len(found) == len(keys)
    assert not any(key in name for key in keys for name in found)


@pytest.mark.parametrize(
    "line", ["plain Tangerine42", '"word" Tangerine42', "{broken: Tangerine42", '{"a":"Tangerine42']
)
@pytest.mark.parametrize("around", ["{}", '{{"a":1}}\n{}\n{{"b":[]}}\n', "{}\r\n\n{}"])
def test_what_is_no_json_goes_line_by_line(line: str, around: str) -> None:
    text = around.replace("{}", line).replace("{{", "{").replace("}}", "}")
    assert "Tangerine42" not in hide(text)
    assert hide(text).count("\n") == text.count("\n")


def test_digits_that_are_no_json_go() -> None:
    assert "4539" not in hide('"card" 4539 1488 0343 6467\n{ 4539 1488 0343 }\n4539, 1488\n')


@pytest.mark.parametrize("unit", ['""', ":x", '"":', ",x", "}x", "{x", '"" ', ':"x"', "1:", "}1e", "[-", "NaN "])
def test_RD09_from_where_a_line_is_no_json_it_is_hidden_as_one_however_many_pieces_it_has(unit: str) -> None:
    for head in ("{", '{"a":1,', '[{"b":'):
        found = hide(f"{head}{unit * 500}Tangerine42\n{{}}\n")
        assert "Tangerine42" not in found
        assert found.count("REDACTED") <= 2
        assert found.endswith("\n{}\n")


def test_numbers_that_have_no_json_text_leave_the_rest_of_a_record_as_it_is() -> None:
    found = hidden({"a": [float("inf"), float("-inf"), 1e300, 10**30], "n": float("nan"), "b": "word"})
    assert len(found["a"]) == 4
    assert found["b"] == "word"


def _value(chance: random.Random, depth: int = 0) -> Any:
    word = "".join(chance.choices('ab7Z-_ "\\é/\n', k=chance.randrange(14)))
    choices: list[Any] = [word, chance.randrange(10**17), chance.random(), None, True]
    if depth < 4:
        choices += [
            [_value(chance, depth + 1) for _ in range(chance.randrange(4))],
            {f"{word}{n}": _value(chance, depth + 1) for n in range(chance.randrange(4))},
        ]
    return chance.choice(choices)


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return [_shape(each) for each in value.values()]
    return [_shape(each) for each in value] if isinstance(value, list) else None


def test_any_structure_keeps_its_shape_and_hides_its_long_texts() -> None:
    chance = random.Random(7)
    for number in range(2000):
        value = [_value(chance), {"text": f"Tangerine42 {number}"}]
        found = hidden(value, ensure_ascii=bool(number % 2))
        assert _shape(found) == _shape(value)
        assert "Tangerine42" not in json.dumps(found)
