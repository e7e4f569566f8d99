"""The days of a time zone in portable SQL: the offsets of the zone become a CASE over the time in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple

from clew.catalog.schema import DAY_US
from clew.model.time import from_microseconds, to_microseconds

FIRST_YEAR, LAST_YEAR = 2020, 2037
"""Changes of a zone's offset are looked up in these years. Before and after, the nearest known offset counts."""
PROBE_STEP = timedelta(days=28)
"""Shorter than the shortest time between two changes of a zone's offset in these years (Morocco, 35 days)."""


class OffsetPeriod(NamedTuple):
    """A period with one offset from UTC."""

    end_us: int | None
    """When it ends; None for the last period."""
    offset_us: int


class LocalDays(NamedTuple):
    """The days of a zone."""

    periods: tuple[OffsetPeriod, ...]
    since_us: int | None = None
    """Earlier times count on the day of this time: a session may have begun before the time that is asked for."""

    @classmethod
    def of(cls, zone: tzinfo, since_us: int | None = None) -> LocalDays:
        """The days of a zone, from the changes of its offset."""
        periods = list[OffsetPeriod]()
        stamp = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
        offset = _offset(stamp, zone)
        while stamp.year <= LAST_YEAR:
            before, stamp = stamp, stamp + PROBE_STEP
            if _offset(stamp, zone) != offset:
                change = _find_change(before, stamp, zone)
                periods.append(OffsetPeriod(to_microseconds(change), _microseconds(offset)))
                offset = _offset(stamp, zone)
        return cls((*periods, OffsetPeriod(None, _microseconds(offset))), since_us)

    def sql(self, column: str) -> str:
        """An expression for the day of a time in microseconds, as `day_name` takes it; 0 where the time is 0."""
        cases = [f"WHEN {column} <= 0 THEN 0"]
        if self.since_us is not None:
            cases.append(f"WHEN {column} < {self.since_us} THEN {self._day_of(self.since_us)}")
        cases += [f"WHEN {column} < {end} THEN {_day_sql(column, offset)}" for end, offset in self.periods[:-1]]
        return f"CASE {' '.join(cases)} ELSE {_day_sql(column, self.periods[-1].offset_us)} END"

    def _day_of(self, time_us: int) -> int:
        offset = next(offset for end, offset in self.periods if end is None or time_us < end)
        return time_us + offset - (time_us + offset) % DAY_US


UTC_DAYS = LocalDays((OffsetPeriod(None, 0),))
LAST_DAY_US = to_microseconds(datetime(9999, 12, 31, tzinfo=UTC))
"""The last day of Python's calendar."""


def _offset(stamp: datetime, zone: tzinfo) -> timedelta:
    return stamp.astimezone(zone).utcoffset() or timedelta()


def _find_change(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """The first second with the offset that is in use at `after`."""
    new = _offset(after, zone)
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=(after - before) // timedelta(seconds=2))
        before, after = (before, middle) if _offset(middle, zone) == new else (middle, after)
    return after


def _microseconds(span: timedelta) -> int:
    return span // timedelta(microseconds=1)


def _day_sql(column: str, offset_us: int) -> str:
    """Local midnight of a time, as the local clock counts microseconds. Engines differ in integer division."""
    local = f"({column} + {offset_us})" if offset_us >= 0 else f"({column} - {-offset_us})"
    return f"{local} - {local} % {DAY_US}"


@lru_cache(maxsize=4096)
def day_name(day_us: int) -> str:
    """The name of a day from `LocalDays.sql`, such as `2026-11-03`; "" for 0, an unknown time."""
    return from_microseconds(min(day_us, LAST_DAY_US)).date().isoformat() if day_us else ""
