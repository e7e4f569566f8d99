"""Days of any zone in SQL are those of Python's own calendar."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.catalog.local_days import UTC_DAYS, WEEKDAYS, LocalDays, day_name, days_of_period, hour_name, weekday_name
from clew.catalog.schema import DAY_US, QUARTER_HOUR_US
from clew.errors import UsageError
from clew.model.time import month_of, week_of

ZONES = """
UTC Europe/Berlin Europe/London America/New_York America/St_Johns America/Havana America/Sao_Paulo Asia/Kathmandu
Asia/Kolkata Asia/Tehran Australia/Lord_Howe Australia/Eucla Pacific/Chatham Pacific/Kiritimati Pacific/Apia
Pacific/Marquesas Atlantic/Azores Africa/Casablanca Africa/Cairo Asia/Gaza Antarctica/Troll Etc/GMT+12
""".split()
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMES = st.datetimes(datetime(2020, 1, 1), datetime(2037, 12, 1), timezones=st.just(UTC))


def day_in_sql(days: LocalDays, stamp: datetime) -> str:
    return day_name(in_sql(days.sql("ts_us"), stamp))


def clock_in_sql(days: LocalDays, stamp: datetime) -> tuple[str, str]:
    """The weekday and the hour."""
    weekday, hour = days.weekday_sql("ts_us"), days.hour_sql("ts_us")
    return weekday_name(in_sql(weekday, stamp)), hour_name(in_sql(hour, stamp))


def in_sql(expression: str, stamp: datetime) -> int:
    time_us = (stamp - EPOCH) // timedelta(microseconds=1)
    with closing(sqlite3.connect(":memory:")) as db:
        (found,) = db.execute(f"SELECT {expression} FROM (SELECT {time_us} AS ts_us)").fetchone()
    assert isinstance(found, int)
    return found


@pytest.fixture(scope="module")
def known_days() -> dict[str, LocalDays]:
    return {name: LocalDays.of(ZoneInfo(name)) for name in ZONES}


@given(stamp=TIMES, name=st.sampled_from(ZONES))
def test_the_day_of_any_time(known_days: dict[str, LocalDays], stamp: datetime, name: str) -> None:
    assert day_in_sql(known_days[name], stamp) == stamp.astimezone(ZoneInfo(name)).date().isoformat()


@given(stamp=TIMES, name=st.sampled_from(ZONES))
def test_the_weekday_and_the_hour_of_any_time(known_days: dict[str, LocalDays], stamp: datetime, name: str) -> None:
    local = stamp.astimezone(ZoneInfo(name))
    assert clock_in_sql(known_days[name], stamp) == (WEEKDAYS[local.weekday()], f"{local:%H}")


def test_hours_around_a_change_of_the_clock(known_days: dict[str, LocalDays]) -> None:
    change = datetime(2026, 10, 25, 1, tzinfo=UTC)
    hours = [clock_in_sql(known_days["Europe/Berlin"], change + timedelta(hours=number)) for number in range(-2, 2)]
    assert hours == [("Sunday", hour) for hour in ("01", "02", "02", "03")]
    assert clock_in_sql(known_days["Europe/Berlin"], EPOCH) == ("", "")
    since = LocalDays.of(ZoneInfo("Europe/Berlin"), int(change.timestamp() * 1e6))
    assert clock_in_sql(since, change - timedelta(days=3)) == ("Sunday", "02")


@given(day=st.dates())
def test_a_period_has_the_days_that_are_in_it(day: date) -> None:
    for period, name_of in (("day", str), ("week", week_of), ("month", month_of)):
        name = name_of(day.isoformat())
        try:
            first, last = days_of_period(period, name)
        except UsageError:
            assert day.year == 9999
            continue
        since = (day - EPOCH.date()).days * DAY_US
        assert first <= since <= last
        assert (last - first) // DAY_US in ({"day": [0], "week": [6], "month": range(27, 31)}[period])
    for wrong in ("soon", "2026-W60", "2026-13", "2026-02-30"):
        with pytest.raises(UsageError):
            days_of_period("week" if "W" in wrong else "day", wrong)


@pytest.mark.parametrize("name", [*ZONES[:2], *(pytest.param(name, marks=pytest.mark.slow) for name in ZONES[2:])])
def test_days_around_each_change_of_the_clock(known_days: dict[str, LocalDays], name: str) -> None:
    days, zone = known_days[name], ZoneInfo(name)
    for end_us, _ in days.periods[:-1]:
        assert end_us is not None
        change = EPOCH + timedelta(microseconds=end_us)
        assert change.astimezone(zone).utcoffset() != (change - timedelta(seconds=1)).astimezone(zone).utcoffset()
        for hours in range(-26, 27):
            for stamp in (change + timedelta(hours=hours), change + timedelta(hours=hours, microseconds=-1)):
                assert day_in_sql(days, stamp) == stamp.astimezone(zone).date().isoformat()


@pytest.mark.slow
def test_in_every_zone_days_begin_with_a_quarter_of_an_hour() -> None:
    """What the sums rely on."""
    for name in sorted(available_timezones()):
        zone = ZoneInfo(name)
        days = LocalDays.of(zone)
        assert not any(offset_us % QUARTER_HOUR_US for _, offset_us in days.periods), name
        for end_us, _ in days.periods[:-1]:
            assert end_us is not None
            change = EPOCH + timedelta(microseconds=end_us)
            # Casey in Antarctica moved its clocks at a minute past midnight, which begins no day.
            is_within_a_day = day_in_sql(days, change) == day_in_sql(days, change - timedelta(seconds=1))
            assert end_us % QUARTER_HOUR_US == 0 or is_within_a_day, name


@pytest.mark.slow
def test_all_changes_of_every_zone_are_found() -> None:
    stamps = [datetime(2020, 1, 1, 12, tzinfo=UTC) + timedelta(days=day) for day in range(0, 365 * 17, 5)]
    for name in sorted(available_timezones()):
        zone, days = ZoneInfo(name), LocalDays.of(ZoneInfo(name))
        for stamp in stamps:
            time_us = (stamp - EPOCH) // timedelta(microseconds=1)
            offset_us = next(offset for end, offset in days.periods if end is None or time_us < end)
            assert timedelta(microseconds=offset_us) == stamp.astimezone(zone).utcoffset(), (name, stamp)


@pytest.mark.parametrize("zone", ["Asia/Kathmandu", "America/New_York"])
def test_the_last_day_of_the_calendar(zone: str) -> None:
    assert day_in_sql(LocalDays.of(ZoneInfo(zone)), datetime.max.replace(tzinfo=UTC)) == "9999-12-31"


def test_no_time_is_of_no_day() -> None:
    for days in (UTC_DAYS, LocalDays.of(ZoneInfo("Asia/Kathmandu"))):
        assert day_in_sql(days, EPOCH) == ""
