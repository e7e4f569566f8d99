"""Times in every spelling agents use; what is no time is None and never an error."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.model.time import is_canonical, is_later, parse_time, spell_time

NOON = datetime(2026, 1, 11, 22, 0, tzinfo=UTC)


@pytest.mark.seed("S0-11", "S4-33")
@pytest.mark.parametrize(
    "text",
    [
        "2026-01-11T22:00:00Z",
        "2026-01-11T22:00:00.000Z",
        "2026-01-11T22:00:00+0000",
        "2026-01-11T22:00:00+00:00",
        "2026-01-11T22:00:00",
        "2026-01-11 22:00:00",
        "2026-01-11T22:00z",
        "2026-01-12T12:00:00+14:00",
        "2026-01-12T12:00:00+14",
        "2026-01-11T10:00:00-1200",
        " 2026-01-11T22:00:00,000000000Z ",
    ],
)
def test_P13_spellings_of_one_moment(text: str) -> None:
    assert parse_time(text) == NOON


@pytest.mark.seed("S4-33")
@pytest.mark.parametrize(
    "number", [1768168800, 1768168800.0, 1768168800_000, 1768168800_000_000, 1768168800_000_000_000]
)
def test_P13_epochs_of_one_moment(number: float) -> None:
    assert parse_time(number) == NOON


def test_P13_leap_seconds_end_their_minute() -> None:
    assert parse_time("2016-12-31T23:59:60Z") == datetime(2017, 1, 1, tzinfo=UTC)
    assert parse_time("2016-12-31T23:59:60.250Z") == datetime(2017, 1, 1, 0, 0, 0, 250_000, tzinfo=UTC)
    assert parse_time("2016-12-31T23:60Z") is None


def test_P13_extremes() -> None:
    assert parse_time("0001-01-01T00:00:00Z") == datetime(1, 1, 1, tzinfo=UTC)
    assert parse_time("9999-12-31T23:59:59.999999999Z") == datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    assert parse_time("2026-01-11T22:00:00." + "0" * 400 + "Z") == NOON
    assert parse_time(-1) == datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:60Z",
        "9999-99-99T99:99:99.999Z",
        "2026-02-30T00:00:00.000Z",
        "2026-01-11T25:00:00Z",
        "2026-01-11T22:00:00+99:99",
        "2026-01-11",
        "yesterday",
        "",
        "1" * 400,
        10**400,
        -(10**400),
        float("inf"),
        float("nan"),
        True,
        None,
        [],
        {},
    ],
    ids=lambda value: repr(value)[:30],
)
def test_P13_what_is_no_time(value: Any) -> None:
    assert parse_time(value) is None


@given(
    st.one_of(
        st.text(),
        st.floats(),
        st.integers(),
        st.from_regex(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d{4})?"),
    )
)
def test_P13_never_an_error(value: Any) -> None:
    stamp = parse_time(value)
    assert stamp is None or stamp.utcoffset() == timedelta(0)


@given(st.datetimes(timezones=st.just(UTC), min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)))
def test_spelling_and_reading_agree(stamp: datetime) -> None:
    text = spell_time(stamp)
    assert is_canonical(text)
    assert parse_time(text) == stamp


@given(
    st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)),
    st.integers(min_value=-14 * 60, max_value=14 * 60),
)
def test_offsets_are_converted(naive: datetime, minutes: int) -> None:
    stamp = naive.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert parse_time(stamp.isoformat()) == stamp.astimezone(UTC)


@given(*[st.datetimes(timezones=st.just(UTC), min_value=datetime(1, 1, 2), max_value=datetime(9999, 1, 1))] * 2)
def test_canonical_spellings_compare_as_times(one: datetime, two: datetime) -> None:
    assert is_later(spell_time(one), spell_time(two)) == (one > two)


def test_precision_does_not_decide_what_is_later() -> None:
    assert is_later("2026-01-11T22:00:00.5Z", "2026-01-11T22:00:00Z")
    assert not is_later("2026-01-11T22:00:00Z", "2026-01-11T22:00:00.5Z")
    assert not is_later("zzzz-01-11T22:00:00.000Z", "2026-01-11T22:00:00.000Z")
    assert not is_later("never", "2026-01-11T22:00:00Z")
