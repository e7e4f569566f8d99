"""Runs a soak test: rounds until the number of kills is reached, a last check, and a summary."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Protocol


class Soak(Protocol):
    """A soak test that kills processes."""

    kills: int

    def round(self, number: int) -> None:
        """Kill processes, and check the state that they left."""

    def check(self) -> None:
        """Compare the stored data with what must be there."""

    def summary(self) -> str:
        """The counts so far, as text."""

    def is_clean(self) -> bool:
        """True where no check failed."""


def argument_parser(description: str | None, kills: int) -> argparse.ArgumentParser:
    """The options of every soak test."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--kills", type=int, default=kills)
    parser.add_argument("--seed", type=int, default=0)
    return parser


def run(soak: Soak, kills: int, report_every_rounds: int) -> int:
    """Run rounds until the number of kills is reached. Returns the exit code."""
    number, started = 0, time.monotonic()
    while soak.kills < kills:
        soak.round(number)
        number += 1
        if number % report_every_rounds == 0:
            print(f"{time.monotonic() - started:.0f} s: {soak.summary()}", file=sys.stderr, flush=True)
    soak.check()
    print(soak.summary())
    return 0 if soak.is_clean() else 1
