"""Days of any zone in SQL are those of Python's own calendar."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.catalog.local_days import UTC_DAYS, LocalDays, day_name
from clew.catalog.schema import QUARTER_HOUR_US

ZONES = """
UTC Europe/Berlin Europe/London America/New_York America/St_Johns America/Havana America/Sao_Paulo Asia/Kathmandu
Asia/Kolkata Asia/Tehran Australia/Lord_Howe Australia/Eucla Pacific/Chatham Pacific/Kiritimati Pacific/Apia
Pacific/Marquesas Atlantic/Azores Africa/Casablanca Africa/Cairo Asia/Gaza Antarctica/Troll Etc/GMT+12
""".split()
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMES = st.datetimes(datetime(2020, 1, 1), datetime(2037, 12, 1), timezones=st.just(UTC))


def day_in_sql(days: LocalDays, stamp: datetime) -> str:
    time_us = (stamp - EPOCH) // timedelta(microseconds=1)
    with closing(sqlite3.connect(":memory:")) as db:
        (found,) = db.execute(f"SELECT {days.sql('ts_us')} FROM (SELECT {time_us} AS ts_us)").fetchone()
    return day_name(found)


@pytest.fixture(scope="module")
def known_days() -> dict[str, LocalDays]:
    return {name: LocalDays.of(ZoneInfo(name)) for name in ZONES}


@given(stamp=TIMES, name=st.sampled_from(ZONES))
def test_the_day_of_any_time(known_days: dict[str, LocalDays], stamp: datetime, name: str) -> None:
    assert day_in_sql(known_days[name], stamp) == stamp.astimezone(ZoneInfo(name)).date().isoformat()


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
