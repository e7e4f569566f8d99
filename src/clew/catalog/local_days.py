"""Days, weekdays and hours of a zone in portable SQL: the offsets of the zone become a CASE over the time in UTC."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple

from clew.catalog.schema import DAY_US
from clew.errors import UsageError
from clew.model.time import from_microseconds, to_microseconds

FIRST_YEAR, LAST_YEAR = 2020, 2037
"""Changes of a zone's offset are looked up in these years. Before and after, the nearest known offset counts."""
PROBE_STEP = timedelta(days=28)
"""Shorter than the shortest time between two changes of a zone's offset in these years (Morocco, 35 days)."""
HOUR_US = 3_600_000_000
WEEK_US = 7 * DAY_US
MONDAY_TO_THURSDAY_US = 3 * DAY_US
"""1970 began on a Thursday."""
UNKNOWN_CLOCK = -1
"""The hour and the weekday of an unknown time; 0 is midnight, and Monday."""
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HOURS = tuple(f"{hour:02}" for hour in range(24))


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
        return self._case(column, 0, _midnight)

    def hour_sql(self, column: str) -> str:
        """An expression for the hour of the day of a time, as `hour_name` takes it."""
        return self._case(column, UNKNOWN_CLOCK, lambda local: f"{local} % {DAY_US} - {local} % {HOUR_US}")

    def weekday_sql(self, column: str) -> str:
        """An expression for the weekday of a time, as `weekday_name` takes it."""
        since_monday = f"+ {MONDAY_TO_THURSDAY_US}) % {WEEK_US}"
        return self._case(column, UNKNOWN_CLOCK, lambda local: f"({_midnight(local)} {since_monday}")

    def _case(self, column: str, unknown: int, of_local: Callable[[str], str]) -> str:
        """An expression of the local clock, which counts microseconds; `unknown` where the time is 0."""
        cases = [f"WHEN {column} <= 0 THEN {unknown}"]
        if self.since_us is not None:
            offset = next(offset for end, offset in self.periods if end is None or self.since_us < end)
            cases.append(f"WHEN {column} < {self.since_us} THEN {of_local(str(self.since_us + offset))}")
        for end, offset in self.periods[:-1]:
            cases.append(f"WHEN {column} < {end} THEN {of_local(_local_sql(column, offset))}")
        return f"CASE {' '.join(cases)} ELSE {of_local(_local_sql(column, self.periods[-1].offset_us))} END"


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


def _local_sql(column: str, offset_us: int) -> str:
    return f"({column} + {offset_us})" if offset_us >= 0 else f"({column} - {-offset_us})"


def _midnight(local: str) -> str:
    """The midnight before a local time. Engines differ in integer division."""
    return f"{local} - {local} % {DAY_US}"


@lru_cache(maxsize=4096)
def day_name(day_us: int) -> str:
    """The name of a day from `LocalDays.sql`, such as `2026-11-03`; "" for 0, an unknown time."""
    return from_microseconds(min(day_us, LAST_DAY_US)).date().isoformat() if day_us else ""


def hour_name(hour_us: int) -> str:
    """The name of an hour from `LocalDays.hour_sql`, such as `09`; "" for an unknown time."""
    return HOURS[hour_us // HOUR_US] if hour_us != UNKNOWN_CLOCK else ""


def weekday_name(weekday_us: int) -> str:
    """The name of a weekday from `LocalDays.weekday_sql`; "" for an unknown time."""
    return WEEKDAYS[weekday_us // DAY_US] if weekday_us != UNKNOWN_CLOCK else ""


def days_of_period(period: str, name: str) -> tuple[int, int]:
    """The first and the last day of a `day`, `week` or `month` by its name, as `day_name` takes them.

    The name "" stands for an unknown time. Raises UsageError if there is no such day, week or month.
    """
    if not name:
        return 0, 0
    try:
        if period == "week":
            first = date.fromisoformat(f"{name}-1")
            last = first + timedelta(days=6)
        elif period == "month":
            first = date.fromisoformat(f"{name}-01")
            last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
        else:
            first = last = date.fromisoformat(name)
    except (ValueError, OverflowError):
        raise UsageError(f"unknown {period} {name!r}") from None
    return (first - date(1970, 1, 1)).days * DAY_US, (last - date(1970, 1, 1)).days * DAY_US
