"""The user's time zone: from CLEW_TIMEZONE, TZ or the system."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import UsageError
from clew.timezone import SYSTEM, find_zone, format_day, format_minute, local_time, user_zone, zone_label

NOVEMBER = datetime(2026, 11, 3, 13, 5, 59, tzinfo=UTC)
JULY = datetime(2026, 7, 3, 13, 5, tzinfo=UTC)
BERLIN_RULE = "CET-1CEST,M3.5.0,M10.5.0/3"


@pytest.fixture
def system_berlin() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", BERLIN_RULE)
        time.tzset()
        yield
    time.tzset()


def test_a_named_zone_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_TIMEZONE", "Asia/Kathmandu")
    assert format_minute(NOVEMBER) == "2026-11-03 18:50"
    assert zone_label(NOVEMBER) == "UTC+05:45"
    monkeypatch.setenv("CLEW_TIMEZONE", "America/Los_Angeles")
    assert (format_minute(NOVEMBER), zone_label(NOVEMBER)) == ("2026-11-03 05:05", "PST")
    assert format_day(datetime(2026, 11, 3, 7, 59, tzinfo=UTC)) == "2026-11-02"


def test_tests_run_in_utc() -> None:
    assert user_zone() is SYSTEM
    assert (format_minute(NOVEMBER), zone_label(NOVEMBER)) == ("2026-11-03 13:05", "UTC")


@pytest.mark.usefixtures("system_berlin")
def test_tz_is_the_zone_without_a_name() -> None:
    assert (format_minute(NOVEMBER), zone_label(NOVEMBER)) == ("2026-11-03 14:05", "CET")
    assert (format_minute(JULY), zone_label(JULY)) == ("2026-07-03 15:05", "CEST")


@pytest.mark.usefixtures("system_berlin")
@given(st.datetimes(datetime(2020, 1, 1), datetime(2037, 1, 1), timezones=st.just(UTC)))
def test_the_zone_of_the_system_agrees_with_the_database(stamp: datetime) -> None:
    local = local_time(stamp)
    expected = stamp.astimezone(ZoneInfo("Europe/Berlin"))
    assert local.isoformat() == expected.isoformat()
    assert local.fold == expected.fold
    assert local.astimezone(UTC) == stamp


@pytest.mark.usefixtures("system_berlin")
def test_an_hour_that_occurs_twice() -> None:
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    second = first + timedelta(hours=1)
    assert format_minute(first) == format_minute(second) == "2026-10-25 02:30"
    assert (zone_label(first), zone_label(second)) == ("CEST", "CET")


@pytest.mark.parametrize("zone", ["Asia/Kathmandu", "America/New_York", ""])
@pytest.mark.parametrize("stamp", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
def test_the_ends_of_the_calendar_have_a_time(monkeypatch: pytest.MonkeyPatch, zone: str, stamp: datetime) -> None:
    """A session may claim any time; where the local one is none, it is that of UTC."""
    monkeypatch.setenv("CLEW_TIMEZONE", zone)
    assert format_minute(stamp) and format_day(stamp) and zone_label(stamp)


@pytest.mark.parametrize("name", ["UTC", "utc", "Z"])
def test_utc_needs_no_database(name: str) -> None:
    assert find_zone(name) is UTC


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("europe/berlin", "did you mean Europe/Berlin"),
        ("Berlin", "did you mean Europe/Berlin"),
        ("New York", "did you mean America/New_York"),
        ("Europe/Berln", "did you mean Europe/Berlin"),
        ("Europe", "unknown time zone 'Europe'"),
        ("../../etc/passwd", "unknown time zone"),
        ("/etc/localtime", "unknown time zone"),
        ("Mars/Phobos and Deimos", "try Europe/Berlin or UTC"),
        ("\0", "unknown time zone"),
        ("x" * 5000, "unknown time zone"),
    ],
)
def test_an_unknown_zone_is_refused_with_a_suggestion(name: str, suggestion: str) -> None:
    with pytest.raises(UsageError, match="unknown time zone") as refused:
        find_zone(name)
    assert suggestion in str(refused.value)
