"""Times in the formats of agents, made comparable. A time that cannot be parsed is None, never an exception."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from msgspec import UNSET, UnsetType

from clew.model.json import JSON

_CANONICAL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z")
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:[.,](\d+))?\s*(Z|z|[+-]\d\d(?::?\d\d)?)?")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Stands for a time that is not known, where a format demands one."""


def is_canonical(text: str) -> bool:
    """True if the text is a valid time in UTC with the format `YYYY-MM-DDTHH:MM:SS[.ffffff]Z`."""
    return _CANONICAL.fullmatch(text) is not None and parse_time(text) is not None


def is_later(time: str, other: str) -> bool:
    """True if the first of two canonical times is later; False if it is not a valid time."""
    if len(time) == len(other):
        if time <= other:
            return False
        try:
            # Asked for every record of a source, so the quick reader has the first word.
            return datetime.fromisoformat(time) is not None
        except ValueError:
            return parse_time(time) is not None
    # `.5Z` sorts before `Z` as text, so different precisions are compared as times.
    stamp, reference = parse_time(time), parse_time(other)
    return stamp is not None and reference is not None and stamp > reference


def parse_time(value: JSON) -> datetime | None:
    """The point in time an ISO 8601 text or an epoch number means; without a zone it is UTC."""
    if isinstance(value, str):
        return _parse_text(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _parse_epoch(value)
    return None


def _parse_text(text: str) -> datetime | None:
    if len(text) == 24 and text[10] == "T" and text[23] == "Z":
        # Nearly all times have this format, and this is twenty times faster.
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass
    match = _ISO.fullmatch(text.strip())
    if not match:
        return None
    day, clock, fraction, zone = match.groups()
    # A leap second is the end of its minute.
    leap = len(clock) == 8 and clock.endswith(":60")
    clock = clock[:-2] + "59" if leap else clock
    try:
        stamp = datetime.fromisoformat(f"{day}T{clock}{_offset(zone)}").astimezone(UTC)
        return stamp.replace(microsecond=int((fraction or "0")[:6].ljust(6, "0"))) + timedelta(seconds=leap)
    except (ValueError, OverflowError):
        return None


def _offset(zone: str | None) -> str:
    if zone in (None, "Z", "z"):
        return "+00:00"
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return f"{zone[0]}{digits[:2]}:{digits[2:]}"


def _parse_epoch(number: float) -> datetime | None:
    for scale in (1, 1_000, 1_000_000, 1_000_000_000):
        if abs(number) < 1e11 * scale:
            try:
                return EPOCH + timedelta(seconds=number / scale)
            except (OverflowError, ValueError):
                return None
    return None


def microseconds(value: JSON) -> int | None:
    """A time as microseconds since 1970; None if it is invalid."""
    stamp = parse_time(value)
    return None if stamp is None else to_microseconds(stamp)


def milliseconds(value: JSON) -> int | None:
    """A time as whole milliseconds since 1970; None if it is invalid."""
    stamp = parse_time(value)
    return None if stamp is None else to_milliseconds(stamp)


def to_microseconds(stamp: datetime) -> int:
    """The exact microseconds from 1970 to a point in time."""
    since = stamp - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def to_milliseconds(stamp: datetime) -> int:
    """The whole milliseconds from 1970 to a point in time."""
    return to_microseconds(stamp) // 1000


def spell_time(stamp: datetime) -> str:
    """The canonical spelling, as short as the precision allows."""
    stamp = stamp.astimezone(UTC)
    precision = "seconds" if not stamp.microsecond else "microseconds" if stamp.microsecond % 1000 else "milliseconds"
    return stamp.replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def spell_milliseconds(value: JSON | datetime) -> str:
    """A time as JavaScript spells it, to the millisecond; one that is unknown is the beginning of 1970."""
    stamp = (value if isinstance(value, datetime) else parse_time(value) or EPOCH).astimezone(UTC)
    return stamp.strftime("%Y-%m-%dT%H:%M:%S.") + f"{stamp.microsecond // 1000:03}Z"


def canonical_time(value: JSON) -> str | UnsetType:
    """A time in its canonical format; UNSET if it is missing or cannot be parsed."""
    if type(value) is str and len(value) == 24 and value[10] == "T" and value[23] == "Z":
        # Nearly all times have this format.
        return value
    if value is UNSET or value is None:
        return UNSET
    if type(value) is str and is_canonical(value):
        return value
    stamp = parse_time(value)
    return spell_time(stamp) if stamp is not None else UNSET


def from_microseconds(microseconds: int) -> datetime:
    """The time this many microseconds after 1970."""
    return EPOCH + timedelta(microseconds=microseconds)


def format_utc(microseconds: int) -> str:
    """Microseconds since 1970 in the canonical spelling."""
    return spell_time(from_microseconds(microseconds))


@lru_cache(maxsize=4096)
def week_of(day: str) -> str:
    """The ISO week of a day, `2026-W46`; "" for ""."""
    if not day:
        return ""
    year, week, _ = date.fromisoformat(day).isocalendar()
    return f"{year:04}-W{week:02}"


def month_of(day: str) -> str:
    """The month of a day, `2026-11`."""
    return day[:7]
