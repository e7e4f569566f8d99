"""A share of the thousand kills that `scripts/push_soak.py` deals out: nothing is lost, and nothing doubled."""

from __future__ import annotations

import random
from pathlib import Path

from scripts.push_soak import Soak
from tests.warehouse.postgres.server import Server


def test_killed_pushes_lose_nothing_and_double_nothing(server: Server, tmp_path: Path) -> None:
    soak = Soak(server, tmp_path, random.Random(7))
    number = 0
    while soak.kills < 15:
        soak.round(number)
        number += 1
    soak.check()
    assert soak.completed > 0
    assert (soak.lost, soak.doubled, soak.damaged) == (0, 0, 0), soak.summary()
