"""A file that is one document, and a value that is looked at alone."""

from __future__ import annotations

import json
from functools import partial
from io import BytesIO
from typing import Any

import pytest

from clew.redact import Marker, scan
from clew.redact.native_files import mask_file
from clew.redact.redactor import MaskSettings, Redactor
from tests.redact.planted import Planter

PLANT = Planter("documents")


def _masked(document: Any, redactor: Redactor) -> Any:
    content = json.dumps(document, indent=0).encode()
    return json.loads(b"".join(mask_file(partial(BytesIO, content), redactor)))


def _redactor(profile: str = "secrets") -> Redactor:
    return Redactor(MaskSettings(profile, Marker(b"k")))


@pytest.mark.slow
def test_RD09_a_document_of_thousands_of_keys_shows_none_and_keeps_its_members() -> None:
    keys = [PLANT.github() for _ in range(6000)]
    masked = _masked([{"type": "user", "text": key} for key in keys], _redactor())
    assert [each["type"] for each in masked] == ["user"] * len(keys)
    text = json.dumps(masked)
    assert not any(key in text for key in keys)


@pytest.mark.slow
def test_a_document_of_some_keys_among_many_calm_items_keeps_all_else() -> None:
    key = PLANT.github()
    items = [{"role": "user", "content": f"Nothing to see in number {n}."} for n in range(8000)]
    items[5000] = {"role": "user", "content": f"use {key} there"}
    masked = _masked(items, Redactor(MaskSettings("secrets", Marker())))
    assert masked[5000] == {"role": "user", "content": "use [REDACTED] there"}
    assert masked[:5000] + masked[5001:] == items[:5000] + items[5001:]


@pytest.mark.slow
def test_a_document_of_many_short_blocks_without_a_secret_stays() -> None:
    blocks = [{"text": f"word{n}"} for n in range(20_000)]
    assert _masked(blocks, _redactor()) == blocks


def test_a_key_over_three_blocks_is_hidden_in_each() -> None:
    key = PLANT.github()
    blocks = [{"text": f"It is {key[:14]}"}, {"text": key[14:28]}, {"text": f"{key[28:]} in three."}, {"text": "And?"}]
    masked = _redactor().learn_and_mask({"content": blocks})["content"]
    assert not any(part in json.dumps(masked) for part in (key[:14], key[14:28], key[28:]))
    assert masked[0]["text"].startswith("It is [") and masked[2]["text"].endswith("] in three.")
    assert masked[3] == {"text": "And?"}


@pytest.mark.slow
def test_the_findings_of_a_value_with_many_keys_are_all_told() -> None:
    keys = [PLANT.github() for _ in range(4000)]
    found = _redactor().findings({"list": [{"text": key} for key in keys]})
    assert {text[each.start : each.end] for text, each in found} == set(keys)


@pytest.mark.parametrize("before", ["", "token" * 40, "secret_" * 5000, "x" * 300 + "token."])
def test_the_end_of_a_name_of_any_length_tells_a_secret(before: str) -> None:
    value = PLANT.password()
    text = f"{before}_db_password={value}\n"
    assert value in {text[each.start : each.end] for each in scan(text)}
