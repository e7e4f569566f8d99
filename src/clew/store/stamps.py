"""New ids and times, quickly: both are made for every record."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds since 1970."""


FIRST = 10**11
"""Added to numbers, it makes them twelve digits long, as the last part of a uuid is."""


def beginning() -> str:
    """All of a random uuid but its last part, which then is a number: enough random bits for one writer."""
    return new_uuid()[:24]


def new_uuid() -> str:
    """A random uuid, version 4."""
    return str(uuid.uuid4())


class Times:
    """Times of a clock, spelled with milliseconds; what was spelled last is at hand."""

    def __init__(self, clock: Clock = time.time) -> None:
        self.clock = clock
        self.second, self._prefix = -1, ""
        self.milli, self._spelled = -1, ""

    def now(self) -> str:
        """The time now."""
        milli = int(self.clock() * 1000)
        if milli == self.milli:
            return self._spelled
        second = milli // 1000
        if second != self.second:
            self.second, self._prefix = second, time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(second))
        self.milli, self._spelled = milli, f"{self._prefix}{milli % 1000:03d}Z"
        return self._spelled
