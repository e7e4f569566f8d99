"""Statistics as portable SQL, with the same results in SQLite, DuckDB, PostgreSQL and Spark.

The rules, which a test checks: integers and strings only; WHERE, GROUP BY, COUNT, SUM, MIN, MAX, COUNT(DISTINCT), CASE
and sub-selects; a full tie-break in every ORDER BY, and never a NULL in one. No date functions, no AVG, no division, no
text functions. Ratios and percentiles are computed by the caller from these exact integers. Columns and tables come
from fixed lists; what a user gives is a parameter. Conditions of filters come from `catalog/filters.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from clew.catalog.filters import Condition, Value, in_list
from clew.catalog.local_days import UTC_DAYS, LocalDays

TOKENS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_creation_5m_tokens",
    "cache_creation_1h_tokens",
    "reasoning_tokens",
)


class Statement(NamedTuple):
    """An SQL text, and the values of its `?` parameters."""

    text: str
    values: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Table:
    """Rows that can be summed, by day and by other columns."""

    sums_table: str
    """The table with one row per session and quarter of an hour, in the column `quarter_hour_us`."""
    each: str
    """The single rows, with their time in the column `ts_us`, for limits inside of a quarter of an hour."""
    groups: Mapping[str, str]
    """The columns to group by, other than the day."""
    sums: Mapping[str, str]

    @property
    def sum_names(self) -> tuple[str, ...]:
        """The names of the sums, in the order of a row."""
        return tuple(self.sums)


def _sums(*names: str) -> dict[str, str]:
    return {name: f"SUM({name})" for name in names}


_ACTIVITY_GROUPS = {"agent": "agent", "project": "project", "session": "session_id"}
_TIME_RANGE = {"first_us": "MIN(CASE WHEN min_ts_us > 0 THEN min_ts_us END)", "last_us": "MAX(max_ts_us)"}

USAGE = Table(
    sums_table="usage_days",
    each="(SELECT session_id, agent, model, project, git_branch, day_utc, ts_us, 1 AS calls,"
    f" is_priced AS priced_calls, {', '.join(TOKENS)}, cost_nano, ts_us AS min_ts_us, ts_us AS max_ts_us FROM usage) x",
    groups={
        "agent": "agent",
        "model": "model",
        "project": "project",
        "branch": "git_branch",
        "session": "session_id",
    },
    sums={
        "sessions": "COUNT(DISTINCT session_id)",
        **_sums("calls", "priced_calls", *TOKENS, "cost_nano"),
        **_TIME_RANGE,
    },
)
USAGE_AMOUNTS = replace(USAGE, sums=_sums("calls", "priced_calls", *TOKENS, "cost_nano"))
"""The sums of usage that add up over groups; sessions and times do not."""
SESSIONS = Table(
    sums_table="sessions",
    each="sessions",
    groups={**_ACTIVITY_GROUPS, "branch": "git_branch"},
    sums={
        "sessions": "SUM(CASE WHEN is_agent_session = 0 THEN 1 ELSE 0 END)",
        "subagents": "SUM(CASE WHEN is_agent_session = 0 THEN 0 ELSE 1 END)",
        "messages": "SUM(message_count)",
        "active_us": "SUM(active_us)",
        "duration_us": "SUM(CASE WHEN started_us > 0 THEN ended_us - started_us ELSE 0 END)",
    },
)
TURNS = Table(
    sums_table="turn_days",
    each="(SELECT session_id, agent, project, day_utc, ts_us, 1 AS turns FROM turns) x",
    groups=_ACTIVITY_GROUPS,
    sums=_sums("turns"),
)
TOOLS = Table(
    sums_table="tool_days",
    each="(SELECT session_id, agent, project, name, day_utc, ts_us, 1 AS tool_calls, is_error AS tool_errors,"
    " duration_us AS tool_us, duration_us AS longest_us FROM tool_calls) x",
    groups={**_ACTIVITY_GROUPS, "tool": "name"},
    sums={
        **_sums("tool_calls", "tool_errors", "tool_us"),
        "sessions": "COUNT(DISTINCT session_id)",
        "longest_us": "MAX(longest_us)",
    },
)
CHANGES = Table(
    sums_table="change_days",
    each="file_changes",
    groups={**_ACTIVITY_GROUPS, "path": "path"},
    sums={"files_changed": "COUNT(DISTINCT path)", **_sums("lines_added", "lines_removed")},
)
TABLES = {"usage": USAGE, "sessions": SESSIONS, "turns": TURNS, "tools": TOOLS, "changes": CHANGES}


def aggregate(
    table: Table,
    by: Sequence[str] = (),
    conditions: Sequence[Condition] = (),
    *,
    each: bool = False,
    days: LocalDays = UTC_DAYS,
) -> Statement:
    """Sum the rows that pass the conditions, for each combination of the columns named in `by`, in their order.

    A row of the answer has the values of `by`, then `table.sum_names`; days, hours and weekdays are those of
    `LocalDays`. `each` asks the rows one by one instead of the sums, as a condition on the time within a quarter of an
    hour needs.
    """
    columns = {name: group_column(table, name, each=each, days=days) for name in by}
    names = [f"{columns[name]} AS {name}_name" for name in by]
    sums = [f"{sum_} AS {name}_sum" for name, sum_ in table.sums.items()]
    where, values = _where(conditions)
    # By number: an expression for days is long.
    numbers = ", ".join(str(number) for number, _ in enumerate(by, 1))
    grouped = f" GROUP BY {numbers} ORDER BY {numbers}" if by else ""
    rows = table.each if each else table.sums_table
    return Statement(f"SELECT {', '.join([*names, *sums])} FROM {rows}{where}{grouped}", values)


def group_column(table: Table, name: str, *, each: bool = False, days: LocalDays = UTC_DAYS) -> str:
    """The expression whose values rows are grouped by."""
    clock = {"day": days.sql, "hour": days.hour_sql, "weekday": days.weekday_sql}
    return clock[name](time_column(table, each=each)) if name in clock else table.groups[name]


def time_column(table: Table, *, each: bool) -> str:
    """The column with the time of rows, or of the sums of them."""
    return "started_us" if table is SESSIONS else "ts_us" if each else "quarter_hour_us"


def _where(conditions: Sequence[Condition]) -> tuple[str, tuple[Value, ...]]:
    if not conditions:
        return "", ()
    text = " AND ".join(condition.text for condition in conditions)
    return f" WHERE {text}", tuple(value for condition in conditions for value in condition.values)


def calls(conditions: Sequence[Condition] = ()) -> Statement:
    """Every call, ordered by time."""
    where, values = _where(conditions)
    columns = f"ts_us, session_id, model, is_priced, {', '.join(TOKENS)}, cost_nano"
    return Statement(f"SELECT {columns} FROM usage{where} ORDER BY ts_us, usage_id", values)


def session_names(conditions: Sequence[Condition] = ()) -> Statement:
    """The key, agent, id, title, project and branch of sessions, and 1 for a session of a sub-agent."""
    where, values = _where(conditions)
    columns = "session_id, agent, native_id, title, project, git_branch, is_agent_session"
    return Statement(f"SELECT {columns} FROM sessions{where} ORDER BY session_id", values)


def sessions_with_replies(sessions: Sequence[str]) -> Statement:
    """The keys of those sessions in which an agent replied."""
    where, values = _where([Condition("role = 'assistant'"), in_list("session_id", sessions)])
    return Statement(f"SELECT DISTINCT session_id FROM messages{where} ORDER BY session_id", values)


def tool_durations(conditions: Sequence[Condition] = ()) -> Statement:
    """The number of calls of each tool with each duration, for percentiles."""
    where, values = _where([Condition("result_event_id <> ''"), *conditions])
    return Statement(
        f"SELECT name, duration_us, COUNT(*) AS n FROM tool_calls{where}"
        " GROUP BY name, duration_us ORDER BY name, duration_us",
        values,
    )
