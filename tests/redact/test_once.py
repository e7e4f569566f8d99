"""Nothing is searched or read twice without need, and what is given up is not looked at for anything else."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from functools import partial
from io import BytesIO
from typing import Any

import pytest

from benchmarks.redaction_hostile import SESSIONS, TEXTS
from clew.redact import Marker, leaves, pii, scan_all, tree
from clew.redact.finding import kinds_of
from clew.redact.jsontext import all_spelled, spelled
from clew.redact.native import mask_file
from clew.redact.rules import standard
from clew.redact.sieve import Sieve
from clew.redact.tree import Redactor, Setting
from tests.redact.planted import Planter

PLANT = Planter("once")
SIZE = 300_000


def _masked(content: str, profile: str = "all") -> tuple[Redactor, bytes]:
    redactor = Redactor(Setting(profile, Marker()))
    return redactor, b"".join(mask_file(partial(BytesIO, content.encode()), redactor))


def _counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[int]:
    """The sizes of what a function is asked about from here on."""
    original: Callable[..., Any] = getattr(owner, name)
    sizes: list[int] = []

    def counted(*given: Any, **how: Any) -> Any:
        sizes.append(len(next(each for each in given if hasattr(each, "__len__"))))
        return original(*given, **how)

    monkeypatch.setattr(owner, name, counted)
    return sizes


def test_RD09_a_document_that_is_given_up_is_not_searched_for_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _counted(monkeypatch, pii, "pii_hits")
    redactor, _ = _masked(SESSIONS["surroundings, in records, as one document"](random.Random(1), 4 * SIZE))
    assert redactor.masked["crowded"]
    assert not asked


def test_RD09_what_comes_after_a_document_that_is_given_up_is_looked_at_in_every_way() -> None:
    redactor = Redactor(Setting("secrets", Marker()))
    crowd = SESSIONS["surroundings, in records, as one document"](random.Random(1), 4 * SIZE)
    calm = {"note": "nothing to see here " * 200_000}
    packed = base64.b64encode(f"DB_PASSWORD={PLANT.password()}".encode()).decode()
    redactor.value(json.loads(crowd))
    assert redactor.masked["crowded"]
    assert redactor.value(calm) is calm
    assert redactor.value({"note": packed}) == {"note": "[REDACTED]"}


def test_RD09_a_document_that_holds_nothing_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _counted(monkeypatch, Sieve, "held")
    content = json.dumps([{"note": f"nothing {number} here"} for number in range(4000)], indent=1)
    _, masked = _masked(content)
    assert masked == content.encode()
    assert len(asked) == 1


def test_a_document_without_a_sign_is_masked_where_it_names_what_is_known_since() -> None:
    value = PLANT.password()
    redactor = Redactor(Setting("secrets", Marker()))
    content = f'{{\n "note": "{value}"\n}}\n'.encode()
    redactor.learn_lines(content, apart=False)
    assert redactor.is_clean
    redactor.learn([{"env": f"DB_PASSWORD={value}"}])
    assert b"".join(new for _, new in redactor.masked_lines(content, apart=False)) == b'{\n "note": "[REDACTED]"\n}\n'


def test_RD09_a_list_of_which_most_must_be_met_is_not_spelled_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _counted(monkeypatch, tree, "all_spelled")
    texts = [f"password={PLANT.password()} " + "and nothing else " * 40 for _ in range(200)]
    _, masked = _masked(json.dumps({"list": [{"note": text} for text in texts]}, indent=1), "secrets")
    assert masked.count(b"password=[REDACTED] and") == len(texts)
    assert asked and max(asked) < len(texts) // 2


def test_a_line_that_is_no_json_is_read_as_json_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _counted(monkeypatch, leaves, "read")
    value = PLANT.github()
    _, masked = _masked("{}\n" + json.dumps({"note": value}) + ",\n")
    assert masked == b'{}\n{"note": "[REDACTED]"},\n'
    assert not asked


@pytest.mark.parametrize("length", [20, 6000])
def test_a_known_value_across_two_long_texts_is_masked_in_both(length: int) -> None:
    value = PLANT.password() + PLANT.password()
    before, behind = "so it goes " * length, " and on it goes" * length
    texts = [before + value[:9], value[9:] + behind, f" or {value}"]
    blocks = [{"type": "text", "text": text} for text in texts]
    content = "".join(json.dumps(each) + "\n" for each in ({"env": f"DB_PASSWORD={value}"}, {"content": blocks}))
    _, masked = _masked(content, "secrets")
    assert [each["text"] for each in json.loads(masked.splitlines()[1])["content"]] == [
        before + "[REDACTED]",
        "[REDACTED]" + behind,
        " or [REDACTED]",
    ]


def test_RD09_a_crowd_that_meets_a_finding_makes_no_value_of_both() -> None:
    text = TEXTS["everything"](random.Random(1), 4 * SIZE)
    found = scan_all([text[place : place + 5000] for place in range(0, len(text), 5000)], "all")
    long = [each.rule for own in found.values() for each in own if each.end - each.start > 2000]
    assert long
    assert set(long) == {"crowded"}


def test_RD09_a_sieve_stops_where_more_is_held_than_may_be() -> None:
    sieve = standard().sieve(kinds_of("all"))
    assert sieve is not None
    records = [json.dumps({"n": f"password={PLANT.password()}"}).encode() for _ in range(400)]
    assert len(sieve.held(records)) == len(records)
    assert 10 < len(sieve.held(records, most=10)) < 100


def test_values_are_spelled_together_as_each_by_itself() -> None:
    values: list[Any] = [{"a": "\n"}, [1, None], "é", 1.5]
    assert all_spelled(values) == list(map(spelled, values))
    odd: list[Any] = [{"a": "\ud800"}, {"b": 2}]
    assert all_spelled(odd) == list(map(spelled, odd))
