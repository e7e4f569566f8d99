"""A known value of which one block of text has the beginning and the next one the rest is masked in both."""

from __future__ import annotations

import json
from functools import partial
from io import BytesIO
from typing import Any

import pytest

from clew.redact import Marker
from clew.redact.native_files import mask_file
from clew.redact.redactor import MaskSettings, Redactor
from tests.redact.planted import Planter

PLANT = Planter("across")
VALUE = PLANT.password() + PLANT.password()
NAMED = {"env": f"DB_PASSWORD={VALUE}"}


def _blocks(*texts: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text} for text in texts]}


def _texts(record: dict[str, Any]) -> list[str]:
    return [block["text"] for block in record["content"]]


def _of_file(records: list[dict[str, Any]], profile: str = "secrets") -> list[dict[str, Any]]:
    content = "".join(json.dumps(record) + "\n" for record in records).encode()
    masked = b"".join(mask_file(partial(BytesIO, content), Redactor(MaskSettings(profile, Marker()))))
    return list(map(json.loads, masked.splitlines()))


def _of_document(records: list[dict[str, Any]], profile: str = "secrets") -> list[dict[str, Any]]:
    content = json.dumps(records, indent=1).encode()
    masked = json.loads(b"".join(mask_file(partial(BytesIO, content), Redactor(MaskSettings(profile, Marker())))))
    return list(masked)


def _of_values(records: list[dict[str, Any]], profile: str = "secrets") -> list[dict[str, Any]]:
    redactor = Redactor(MaskSettings(profile, Marker()))
    redactor.learn(records)
    masked: list[Any] = [redactor.value(record) for record in records]
    return masked


def _of_lines(records: list[dict[str, Any]], profile: str = "secrets") -> list[dict[str, Any]]:
    redactor = Redactor(MaskSettings(profile, Marker()))
    redactor.learn(records)
    return list(map(json.loads, redactor.lines(list(map(json.dumps, records)))))


WAYS = [_of_file, _of_document, _of_values, _of_lines]


@pytest.mark.parametrize("is_named_first", [True, False])
@pytest.mark.parametrize("cut", [1, 4, 9, len(VALUE) - 1])
@pytest.mark.parametrize("way", WAYS)
def test_a_value_that_is_known_from_another_record_is_masked_across_two_blocks(
    way: Any, cut: int, is_named_first: bool
) -> None:
    split = _blocks("so it goes " + VALUE[:cut], VALUE[cut:] + " and on")
    records = [NAMED, split] if is_named_first else [split, NAMED]
    assert _texts(way(records)[is_named_first]) == ["so it goes [REDACTED]", "[REDACTED] and on"]


@pytest.mark.parametrize("way", WAYS)
def test_a_value_that_is_known_from_another_record_is_masked_across_three_blocks(way: Any) -> None:
    split = _blocks("so " + VALUE[:5], VALUE[5:9], VALUE[9:] + " on")
    assert _texts(way([split, NAMED])[0]) == ["so [REDACTED]", "[REDACTED]", "[REDACTED] on"]


@pytest.mark.parametrize("way", WAYS)
def test_blocks_that_together_hold_no_known_value_stay_as_they_are(way: Any) -> None:
    records = [_blocks("so it goes " + VALUE[:9], VALUE[10:] + " and on"), NAMED]
    assert way(records)[0] == records[0]


@pytest.mark.parametrize("length", [1, 2000])
@pytest.mark.parametrize("way", WAYS)
def test_an_address_across_two_blocks_is_masked_in_both_however_long_they_are(way: Any, length: int) -> None:
    before, behind = "so it goes " * length, " and on it goes" * length
    [masked] = way([_blocks(before + "mara.lind@lind", "werk.de" + behind)], "all")
    assert _texts(masked) == [before + "[REDACTED]", "[REDACTED]" + behind]


@pytest.mark.parametrize("profile", ["secrets", "all"])
@pytest.mark.parametrize("way", WAYS)
def test_a_long_key_across_two_blocks_is_masked_in_both(way: Any, profile: str) -> None:
    key = PLANT.github()
    [masked] = way([_blocks("so it goes " * 900 + key[:30], key[30:] + " and on" * 900)], profile)
    assert _texts(masked) == ["so it goes " * 900 + "[REDACTED]", "[REDACTED]" + " and on" * 900]
