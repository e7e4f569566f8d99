"""Secrets in carriers of every syntax, in noise and under encodings: none stays readable."""

from __future__ import annotations

import json
import random
import re
from functools import partial
from io import BytesIO

import pytest

from clew.redact import Marker, redact
from clew.redact.native_files import mask_file
from clew.redact.redactor import MaskSettings, Redactor
from tests.redact.carriers import COMMANDS, ENCODINGS, NAMED, NOISE, PASSWORDS, TOKENS, Planted, carriers, plant
from tests.redact.planted import MIN_FORM_CHARS, forms

COMBINATIONS = 5_000
_PER_RECORD = 25


def masked_in_transcript(texts: list[str]) -> list[str]:
    """Mask texts as tool results of one session each, so that no text profits from what another shows."""
    out = []
    for text in texts:
        line = {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "content": text}]}}
        content = json.dumps(line).encode() + b"\n"
        done = b"".join(mask_file(partial(BytesIO, content), Redactor(MaskSettings("secrets", Marker()))))
        out.append(json.loads(done)["message"]["content"][0]["content"])
    return out


def test_there_are_many_carriers() -> None:
    assert sum(map(len, NAMED.values())) + len(COMMANDS) + len(PASSWORDS) + len(TOKENS) >= 200


@pytest.mark.slow
@pytest.mark.parametrize(("is_password", "least"), [(False, 0.95), (True, 0.9)], ids=["tokens", "passwords"])
def test_values_in_carriers_are_masked(is_password: bool, least: float) -> None:
    chance = random.Random(f"carriers/{is_password}")
    planted = [plant(chance, *each, is_password) for each in carriers(is_password) for _ in range(3)]
    readable = [each for each in planted if each.value in redact(each.text)]
    assert len(readable) <= (1 - least) * len(planted), readable[:20]
    inside = masked_in_transcript([each.text for each in planted[::3]])
    missed = [each for each, text in zip(planted[::3], inside, strict=True) if each.value in text]
    assert [each for each in missed if each not in readable] == [], "the prefilter passed a record unread"


def _is_readable(each: Planted, text: str) -> bool:
    content = text.encode()
    return any(form in content for form in forms(each.value) if len(form) >= MIN_FORM_CHARS)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_nothing_stays_readable_in_noise_and_encodings(encoding: str) -> None:
    chance = random.Random(f"combinations/{encoding}")
    templates = list(carriers(False))
    name = ""
    if encoding == "base64":
        # Base64 is decoded where it shows a word such as `secret`.
        templates, name = [(family, each) for family, each in templates if family in NAMED], "client secret"
        templates = [(family, each) for family, each in templates if re.search("<[UsckP]>", each)]
    readable = []
    for number in range(COMBINATIONS // len(ENCODINGS) // _PER_RECORD):
        noise = list(NOISE.values())[number % len(NOISE)](chance)
        for _ in range(_PER_RECORD):
            family, template = chance.choice(templates)
            each = plant(chance, family, template, False, name)
            text = ENCODINGS[encoding](f"{noise}\n{each.text}\n")
            if _is_readable(each, redact(text)):
                readable.append((each, text[-200:]))
    assert readable == []
