"""What every soak does: rounds until there were so many kills, a last look, and the account."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Protocol


class Soak(Protocol):
    """Rounds of kills, and what came of them."""

    kills: int

    def round(self, number: int) -> None:
        """Something is killed, and what it left is looked at."""

    def check(self) -> None:
        """Compare what is there with what has to be."""

    def account(self) -> str:
        """What came of it so far."""

    def is_clean(self) -> bool:
        """True where nothing went wrong."""


def options(text: str | None, kills: int) -> argparse.ArgumentParser:
    """What can be said to every soak."""
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--kills", type=int, default=kills)
    parser.add_argument("--seed", type=int, default=0)
    return parser


def run(soak: Soak, kills: int, told_every: int) -> int:
    """Run rounds until there were so many kills; returns the exit code."""
    number, begun = 0, time.monotonic()
    while soak.kills < kills:
        soak.round(number)
        number += 1
        if number % told_every == 0:
            print(f"{time.monotonic() - begun:.0f} s: {soak.account()}", file=sys.stderr, flush=True)
    soak.check()
    print(soak.account())
    return 0 if soak.is_clean() else 1
