"""A text of which the search was given up is hidden each time it comes, and never taken for one that holds nothing."""

from __future__ import annotations

import json
import random
import string
from functools import partial
from io import BytesIO

import pytest

from clew.redact.looking import Setting
from clew.redact.marks import Marker
from clew.redact.native import mask_file
from clew.redact.tree import Redactor


def key(chance: random.Random) -> str:
    return "ghp" + "_" + "".join(chance.choices(string.ascii_letters + string.digits, k=36))


def crowded(chance: random.Random, *values: str) -> str:
    """More signs than are looked at, crowds of them apart from each other, and then some values."""
    many = " ".join(key(chance) for _ in range(900))
    groups = "".join("a b " * 420 + " " + " ".join(key(chance) for _ in range(6)) for _ in range(400))
    return f"{many} {groups} {' word' * 500} {' '.join(values)} end"


@pytest.mark.parametrize("profile", ["secrets", "all"])
def test_a_long_text_that_comes_twice_is_hidden_twice(profile: str) -> None:
    chance = random.Random(5)
    values = [key(chance) for _ in range(3)]
    text = crowded(chance, *values)
    records = [{"type": "user", "text": text}, *({"calm": f"{'plain words ' * 300}{n}"} for n in range(900))]
    records.append({"type": "assistant", "again": "yes", "text": text})
    content = "".join(json.dumps(record) + "\n" for record in records).encode()
    masked = b"".join(mask_file(partial(BytesIO, content), Redactor(Setting(profile, Marker(b"test"))))).decode()
    assert [value for value in values if value in masked] == []
