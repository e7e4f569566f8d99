"""Every statistical statement, with and without conditions, for the tests that compare engines."""

from __future__ import annotations

from collections.abc import Iterator

from clew.catalog.filters import Condition, in_list
from clew.catalog.ids import session_key
from clew.catalog.local_days import LocalDays
from clew.catalog.statements import (
    CHANGES,
    SESSIONS,
    TABLES,
    USAGE,
    Statement,
    aggregate,
    calls,
    session_names,
    sessions_with_replies,
    tool_durations,
)
from clew.timezone import find_zone
from tests.cli.running import FORKED


def every_statement() -> Iterator[tuple[str, Statement]]:
    """Every statement with its name."""
    zones = {name: LocalDays.of(find_zone(name)) for name in ("Europe/Berlin", "Asia/Kathmandu", "America/St_Johns")}
    agents = in_list("agent", ["codex", "gemini"])
    in_days = [agents, Condition("day_utc >= ?", ("2026-01-01",)), Condition("day_utc <= ?", ("2027-01-01",))]
    for name, table in TABLES.items():
        times = [agents, Condition("ts_us >= ?", (1,)), Condition("ts_us <= ?", (2**60,))]
        pairs = {
            USAGE.sums_table: [("day", "model"), ("day", "session"), ("weekday", "hour")],
            CHANGES.sums_table: [("day", "path"), ("session", "path")],
        }
        for by in (
            (),
            ("day",),
            ("hour",),
            ("weekday",),
            *((group,) for group in table.groups),
            *pairs.get(table.sums_table, ()),
        ):
            label = f"{name} by {' and '.join(by)}" if by else f"{name} in total"
            yield label, aggregate(table, by)
            yield f"{label}, filtered", aggregate(table, by, in_days)
            if table is not SESSIONS:
                yield f"{label}, one by one", aggregate(table, by, each=True)
                yield f"{label}, one by one, filtered", aggregate(table, by, times, each=True)
        for zone, days in zones.items():
            for by in ("day", "hour", "weekday"):
                yield f"{name} by {by} in {zone}", aggregate(table, (by,), days=days)
                if table is not SESSIONS:
                    yield f"{name} by {by} in {zone}, one by one", aggregate(table, (by,), each=True, days=days)
    for label, conditions in (("", []), (", filtered", in_days)):
        yield f"calls{label}", calls(conditions)
        yield f"names of sessions{label}", session_names(conditions)
        yield f"durations of tools{label}", tool_durations(conditions)
    yield "sessions with replies", sessions_with_replies([session_key("claude-code", FORKED), "none"])
    inside = Condition("session_id IN (SELECT session_id FROM sessions WHERE error_count > 0)")
    yield "usage of sessions with errors", aggregate(USAGE, conditions=[inside])
