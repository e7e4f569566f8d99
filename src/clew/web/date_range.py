"""The range of dates that a page of usage is about: a preset or two times, its exact limits, and words for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from clew.catalog.stats import PERIODS
from clew.filters import point_in_time
from clew.model.time import spell_time
from clew.timezone import format_minute, local_time, zone_label

MICROSECOND = timedelta(microseconds=1)
ALL = "all"
MAX_DAYS_BY_DAY, MAX_DAYS_BY_WEEK = 92, 730
"""A chart of a longer range has a bar for each week, or for each month."""
DAYS_PER_YEAR, DAYS_BETWEEN_ZONE_LABELS = 366, 28
MAX_SLOTS = 400
"""An axis of time with more days, weeks or months begins later."""


class DateRange(NamedTuple):
    """The times from `since` to `until`, both included; None where the range has no limit."""

    since: datetime | None = None
    until: datetime | None = None
    preset: str = ""
    """The name of the preset; "" for times that a user wrote."""

    def axis_days(self, first_used: date | None, today: date) -> tuple[date, date]:
        """The first and the last day of an axis of time: from the first use to today where the range has no limit."""
        last = local_time(self.until).date() if self.until is not None else today
        first = local_time(self.since).date() if self.since is not None else first_used or last
        return min(first, last), last

    def query_parameters(self) -> dict[str, str | None]:
        """The parameters `since` and `until` of an address for exactly this range; None without a limit."""
        return {name: _limit_in_words(limit) for name, limit in (("since", self.since), ("until", self.until))}


class Preset(NamedTuple):
    """A range that a link of the page offers, by its first and its last day; None where it has no limit."""

    title: str
    days: Callable[[date], tuple[date | None, date | None]]


def _month_before(today: date) -> tuple[date, date]:
    last = today.replace(day=1) - timedelta(days=1)
    return last.replace(day=1), last


PRESETS: Mapping[str, Preset] = {
    "today": Preset("Today", lambda today: (today, None)),
    "7d": Preset("7 days", lambda today: (today - timedelta(days=6), None)),
    "30d": Preset("30 days", lambda today: (today - timedelta(days=29), None)),
    "90d": Preset("90 days", lambda today: (today - timedelta(days=89), None)),
    "month": Preset("This month", lambda today: (today.replace(day=1), None)),
    "last-month": Preset("Last month", _month_before),
    "year": Preset("This year", lambda today: (today.replace(month=1, day=1), None)),
    ALL: Preset("All", lambda _today: (None, None)),
}
"""By the value of the parameter `range`. Days are those of the user's zone, today included."""


def preset_range(name: str, now: datetime) -> DateRange:
    """The range of a preset; of all times for an unknown name."""
    known = name if name in PRESETS else ALL
    first, last = PRESETS[known].days(local_time(now).date())
    since = None if first is None else point_in_time(first.isoformat(), now)
    until = None if last is None else end_of_day(last, now)
    return DateRange(since, until, known)


def end_of_day(day: date, now: datetime) -> datetime:
    """The last moment of a day of the user's zone, which may be 23 or 25 hours after midnight."""
    return point_in_time((day + timedelta(days=1)).isoformat(), now) - MICROSECOND


def _limit_in_words(limit: datetime | None) -> str | None:
    """A limit as a user would write it: a day, or a local time; in UTC where the local clock shows it twice."""
    if limit is None:
        return None
    local = local_time(limit).replace(tzinfo=None)
    text = local.date().isoformat() if local.time() == datetime.min.time() else local.isoformat()
    return text if point_in_time(text, limit) == limit else spell_time(limit)


def describe_range(first: datetime | None, last: datetime | None, today: date) -> str:
    """The exact times and the zone: `2026-10-20 00:00 to 2026-11-18 (today), CEST and CET`."""
    begin = "the beginning" if first is None else format_minute(first)
    end = f"{today.isoformat()} (today)" if last is None else format_minute(last)
    noon = datetime(today.year, today.month, today.day, 12, tzinfo=UTC)
    return f"{begin} to {end}, {zone_names(first or last or noon, last or noon)}"


def zone_names(first: datetime, last: datetime) -> str:
    """What the user's zone is called in a range: two names where the clocks changed."""
    days = min(max(0, (last - first).days), DAYS_PER_YEAR)
    times = [first, *(last - timedelta(days=before) for before in range(days, 0, -DAYS_BETWEEN_ZONE_LABELS)), last]
    return " and ".join(dict.fromkeys(map(zone_label, times)))


def step_of(first: date, last: date) -> str:
    """What a bar of a chart over these days stands for: a day, a week or a month."""
    days = (last - first).days + 1
    return "day" if days <= MAX_DAYS_BY_DAY else "week" if days <= MAX_DAYS_BY_WEEK else "month"


def axis_slots(step: str, first: date, last: date) -> list[str]:
    """The names of all days, weeks or months from the first to the last day, used or not; at most the latest 400."""
    name_of = PERIODS.get(step, str)
    days_per_slot = {"day": 1, "week": 7, "month": 31}[step]
    first = max(first, last - timedelta(days=min((last - date.min).days, days_per_slot * MAX_SLOTS)))
    days = (first + timedelta(days=number) for number in range((last - first).days + 1))
    return list(dict.fromkeys(name_of(day.isoformat()) for day in days))[-MAX_SLOTS:]
