"""Days, weeks and months as rows spell them, from microseconds since 1970. Loads nothing heavy."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def spelled(microseconds: int) -> str:
    """A point in time, as short as its precision allows."""
    stamp = _EPOCH + timedelta(microseconds=microseconds)
    precision = "seconds" if not stamp.microsecond else "microseconds" if stamp.microsecond % 1000 else "milliseconds"
    return stamp.replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def week_of(day: str) -> str:
    """The week of a day, `2026-W46`; none has none."""
    if not day:
        return ""
    year, week, _ = date.fromisoformat(day).isocalendar()
    return f"{year:04}-W{week:02}"


def month_of(day: str) -> str:
    """The month of a day, `2026-11`."""
    return day[:7]
