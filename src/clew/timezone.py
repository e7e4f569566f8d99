"""The user's time zone. Times that people read are in this zone; stored and machine-readable times are UTC.

`--timezone` and `CLEW_TIMEZONE` name the zone. Without them it is that of the settings in the web app, else that of
`TZ` or of the system.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache

from clew.errors import UsageError

ZONE_VARIABLE = "CLEW_TIMEZONE"
"""Names the zone. `--timezone` sets it for the running process and those that it starts."""
_preferred_zone: ContextVar[str] = ContextVar("preferred_zone", default="")
"""Names the zone where nothing else does; "" is that of the system."""


class SystemZone(tzinfo):
    """The zone that the C library uses: that of `TZ`, in any of its spellings, else that of the system."""

    def utcoffset(self, stamp: datetime | None) -> timedelta | None:
        """The offset of a local time; `fold` selects one of two equal local times."""
        return None if stamp is None else stamp.replace(tzinfo=None).astimezone().utcoffset()

    def tzname(self, stamp: datetime | None) -> str | None:
        """The abbreviation in use at a local time, as CET or CEST."""
        return None if stamp is None else stamp.replace(tzinfo=None).astimezone().tzname()

    def dst(self, stamp: datetime | None) -> timedelta | None:
        """Unknown: the C library only has the total offset."""
        return None

    def fromutc(self, stamp: datetime) -> datetime:
        """The local time of a time in UTC."""
        fixed = stamp.replace(tzinfo=UTC).astimezone()
        local = fixed.replace(tzinfo=self)
        return local if local.utcoffset() == fixed.utcoffset() else local.replace(fold=1)


SYSTEM = SystemZone()


def user_zone() -> tzinfo:
    """The zone of the user. Raises UsageError if `CLEW_TIMEZONE` names none."""
    name = os.environ.get(ZONE_VARIABLE) or _preferred_zone.get()
    return find_zone(name) if name else SYSTEM


@contextmanager
def prefer_zone(name: str) -> Iterator[None]:
    """Use this zone inside the block, unless `CLEW_TIMEZONE` names one; "" is that of the system."""
    token = _preferred_zone.set(name)
    try:
        yield
    finally:
        _preferred_zone.reset(token)


@cache
def find_zone(name: str) -> tzinfo:
    """The zone with a name of the IANA database, as Europe/Berlin. Raises UsageError if there is none."""
    if name.upper() in ("UTC", "Z"):
        return UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        known = available_timezones()
    if not known:
        raise UsageError(f"unknown time zone {name!r}: this system has no time zones; `pip install tzdata` adds them")
    near = _similar_names(name, known)
    hint = f"did you mean {near}?" if near else "try Europe/Berlin or UTC"
    raise UsageError(f"unknown time zone {name!r}; {hint}")


def _similar_names(name: str, known: set[str]) -> str:
    """The names that a misspelled one may stand for: a city without its continent, or other letters."""
    from difflib import get_close_matches

    spelled = name.replace(" ", "_").casefold()
    cities = sorted(zone for zone in known if zone.casefold() == spelled or zone.casefold().endswith(f"/{spelled}"))
    by_folded_name = {zone.casefold(): zone for zone in sorted(known)}
    close = [by_folded_name[found] for found in get_close_matches(spelled, by_folded_name, n=3)]
    return " or ".join((cities or close)[:3])


def local_time(stamp: datetime) -> datetime:
    """A point in time in the zone of the user. On the first and the last day of the calendar it may stay in UTC."""
    zone = user_zone()
    try:
        return stamp.astimezone(zone)
    except (OverflowError, ValueError):
        return stamp.astimezone(UTC)


def format_minute(stamp: datetime) -> str:
    """A point in time to the minute, in the zone of the user: `2026-11-03 14:05`."""
    return local_time(stamp).replace(tzinfo=None).isoformat(" ", "minutes")


def format_day(stamp: datetime) -> str:
    """The day of a point in time, in the zone of the user: `2026-11-03`."""
    return local_time(stamp).date().isoformat()


def zone_label(stamp: datetime | None = None) -> str:
    """What the zone of the user is called at a time, or now: CET, or UTC+05:45 where it has no abbreviation."""
    local = local_time(stamp or datetime.now(UTC))
    name = local.tzname() or ""
    return name if name.isalpha() else f"UTC{local.replace(microsecond=0).isoformat()[19:]}"
