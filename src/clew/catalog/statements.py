"""Every statistic as one plain SQL text that SQLite, DuckDB, PostgreSQL and Spark answer alike.

The rules, which a test holds: integers and strings only; WHERE, GROUP BY, COUNT, SUM, MIN, MAX, COUNT(DISTINCT), CASE
and sub-selects; a full tie-break in every ORDER BY, and never a NULL in one. No date functions, no AVG, no division, no
text functions. Ratios and percentiles are for who asks, from these exact integers. Columns and tables come from fixed
lists; what a user gives goes in as a parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

USAGE_COLUMNS = {
    "day": "day_utc",
    "week": "week_utc",
    "month": "month_utc",
    "agent": "agent",
    "model": "model",
    "project": "project",
    "branch": "git_branch",
    "session": "session_id",
}
"""What usage can be told apart by."""
SESSION_COLUMNS = {
    "day": "day_utc",
    "agent": "agent",
    "project": "project",
    "branch": "git_branch",
    "session": "session_id",
}
EVENT_COLUMNS = {"day": "day_utc", "agent": "agent", "project": "project", "session": "session_id"}
TOKENS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_creation_5m_tokens",
    "cache_creation_1h_tokens",
    "reasoning_tokens",
)
SUMS = ("calls", "priced_calls", *TOKENS, "cost_nano")

Value = str | int


class Condition(NamedTuple):
    """One condition of a WHERE, with the values for its marks."""

    text: str
    values: tuple[Value, ...]


class Statement(NamedTuple):
    """A text, and the values for its marks."""

    text: str
    values: tuple[Value, ...] = ()


def among(column: str, values: Sequence[Value]) -> Condition:
    """The column is one of these; none of them lets nothing pass."""
    if not values:
        return Condition("1 = 0", ())
    return Condition(f"{column} IN ({', '.join('?' * len(values))})", tuple(values))


def since(column: str, value: Value) -> Condition:
    """The column is this or later."""
    return Condition(f"{column} >= ?", (value,))


def until(column: str, value: Value) -> Condition:
    """The column is this or earlier."""
    return Condition(f"{column} <= ?", (value,))


def _where(conditions: Sequence[Condition]) -> tuple[str, tuple[Value, ...]]:
    if not conditions:
        return "", ()
    text = " AND ".join(condition.text for condition in conditions)
    return f" WHERE {text}", tuple(value for condition in conditions for value in condition.values)


_CALLS = (
    "(SELECT session_id, agent, model, project, git_branch, day_utc, week_utc, month_utc, 1 AS calls,"
    f" is_priced AS priced_calls, {', '.join(TOKENS)}, cost_nano, ts_us AS min_ts_us, ts_us AS max_ts_us FROM usage) x"
)
"""Call by call, where days are too coarse."""
_USED = (
    "COUNT(DISTINCT session_id) AS sessions, "
    + ", ".join(f"SUM({name}) AS {name}" for name in SUMS)
    + ", MIN(CASE WHEN min_ts_us > 0 THEN min_ts_us END) AS first_us, MAX(max_ts_us) AS last_us"
)


def usage_by(what: str, conditions: Sequence[Condition] = (), *, by_call: bool = False) -> Statement:
    """What was used, by day, model, project and so on."""
    column = USAGE_COLUMNS[what]
    where, values = _where(conditions)
    table = _CALLS if by_call else "usage_days"
    return Statement(
        f"SELECT {column} AS name, {_USED} FROM {table}{where} GROUP BY {column} ORDER BY {column}", values
    )


def usage_cells(what: str, other: str, conditions: Sequence[Condition] = (), *, by_call: bool = False) -> Statement:
    """What was used, by two things at once, as by day and model."""
    first, second = USAGE_COLUMNS[what], USAGE_COLUMNS[other]
    where, values = _where(conditions)
    table = _CALLS if by_call else "usage_days"
    sums = ", ".join(f"SUM({name}) AS {name}" for name in SUMS)
    return Statement(
        f"SELECT {first} AS name, {second} AS other, {sums} FROM {table}{where}"
        f" GROUP BY {first}, {second} ORDER BY {first}, {second}",
        values,
    )


def usage_total(conditions: Sequence[Condition] = (), *, by_call: bool = False) -> Statement:
    """What was used in all."""
    where, values = _where(conditions)
    return Statement(f"SELECT '' AS name, {_USED} FROM {_CALLS if by_call else 'usage_days'}{where}", values)


def usage_names(what: str) -> Statement:
    """The values that usage is told apart by."""
    column = USAGE_COLUMNS[what]
    return Statement(f"SELECT {column} AS name FROM usage_days GROUP BY {column} ORDER BY {column}")


def calls(conditions: Sequence[Condition] = ()) -> Statement:
    """Every call in the order of time."""
    where, values = _where(conditions)
    columns = f"ts_us, session_id, model, is_priced, {', '.join(TOKENS)}, cost_nano"
    return Statement(f"SELECT {columns} FROM usage{where} ORDER BY ts_us, usage_id", values)


_HELD = (
    "COUNT(*) AS sessions, SUM(message_count) AS messages, SUM(turn_count) AS turns, SUM(error_count) AS errors,"
    " SUM(active_us) AS active_us, SUM(CASE WHEN started_us > 0 THEN ended_us - started_us ELSE 0 END) AS duration_us"
)


def sessions_by(what: str, conditions: Sequence[Condition] = ()) -> Statement:
    """How many sessions there were, with how many turns and errors, and how long somebody was at work."""
    column = SESSION_COLUMNS[what]
    where, values = _where(conditions)
    return Statement(
        f"SELECT {column} AS name, {_HELD} FROM sessions{where} GROUP BY {column} ORDER BY {column}", values
    )


def sessions_total(conditions: Sequence[Condition] = ()) -> Statement:
    """The same in all."""
    where, values = _where(conditions)
    return Statement(f"SELECT '' AS name, {_HELD} FROM sessions{where}", values)


def session_names(conditions: Sequence[Condition] = ()) -> Statement:
    """What sessions are called."""
    where, values = _where(conditions)
    columns = "session_id, agent, native_id, title, project, git_branch"
    return Statement(f"SELECT {columns} FROM sessions{where} ORDER BY session_id", values)


_FOLDER = "CASE WHEN workspace = '' THEN project ELSE workspace END"
"""What tells the folders of sessions apart."""


def session_folders() -> Statement:
    """The folders that sessions were in, and what the projects are called. Where no path is told it is a tag."""
    return Statement(
        f"SELECT {_FOLDER} AS folder, project FROM sessions GROUP BY {_FOLDER}, project ORDER BY {_FOLDER}, project"
    )


def in_folders(folders: Sequence[str]) -> Condition:
    """The session was in one of these."""
    inside = among(_FOLDER, folders)
    return inside._replace(text=f"session_id IN (SELECT session_id FROM sessions WHERE {inside.text})")


_EACH_TOOL = (
    "(SELECT session_id, agent, project, name, day_utc, ts_us, 1 AS tool_calls, is_error AS tool_errors,"
    " duration_us AS tool_us, duration_us AS longest_us FROM tool_calls) x"
)
"""Call by call, where days are too coarse."""
_CALLED = "SUM(tool_calls) AS tool_calls, SUM(tool_errors) AS tool_errors, SUM(tool_us) AS tool_us"


def tools_by(what: str, conditions: Sequence[Condition] = (), *, by_call: bool = False) -> Statement:
    """How often tools were called, and how often that failed."""
    column = EVENT_COLUMNS[what]
    where, values = _where(conditions)
    table = _EACH_TOOL if by_call else "tool_days"
    return Statement(
        f"SELECT {column} AS name, {_CALLED} FROM {table}{where} GROUP BY {column} ORDER BY {column}", values
    )


def tools_total(conditions: Sequence[Condition] = (), *, by_call: bool = False) -> Statement:
    """The same in all."""
    where, values = _where(conditions)
    return Statement(f"SELECT '' AS name, {_CALLED} FROM {_EACH_TOOL if by_call else 'tool_days'}{where}", values)


def tools(conditions: Sequence[Condition] = (), *, by_call: bool = False) -> Statement:
    """The same tool by tool, the one that was called most first."""
    where, values = _where(conditions)
    return Statement(
        f"SELECT name, {_CALLED}, COUNT(DISTINCT session_id) AS sessions, MAX(longest_us) AS longest_us"
        f" FROM {_EACH_TOOL if by_call else 'tool_days'}{where} GROUP BY name ORDER BY tool_calls DESC, name",
        values,
    )


def tool_durations(conditions: Sequence[Condition] = ()) -> Statement:
    """How often each tool took how long: what percentiles are made from."""
    where, values = _where([Condition("result_event_id <> ''", ()), *conditions])
    return Statement(
        f"SELECT name, duration_us, COUNT(*) AS n FROM tool_calls{where}"
        " GROUP BY name, duration_us ORDER BY name, duration_us",
        values,
    )


_CHANGED = "COUNT(DISTINCT path) AS files, SUM(lines_added) AS lines_added, SUM(lines_removed) AS lines_removed"


def _changes(by_call: bool) -> str:
    return "file_changes" if by_call else "change_days"


def changes_by(what: str, conditions: Sequence[Condition] = (), *, by_call: bool = False) -> Statement:
    """How many files were changed, and by how many lines."""
    column = EVENT_COLUMNS[what]
    where, values = _where(conditions)
    return Statement(
        f"SELECT {column} AS name, {_CHANGED} FROM {_changes(by_call)}{where} GROUP BY {column} ORDER BY {column}",
        values,
    )


def changes_total(conditions: Sequence[Condition] = (), *, by_call: bool = False) -> Statement:
    """The same in all."""
    where, values = _where(conditions)
    return Statement(f"SELECT '' AS name, {_CHANGED} FROM {_changes(by_call)}{where}", values)


def changed_files(what: str, conditions: Sequence[Condition] = (), *, by_call: bool = False) -> Statement:
    """Which files were changed, by day or session: what is made of several of them counts a file once."""
    column = EVENT_COLUMNS[what]
    where, values = _where(conditions)
    return Statement(
        f"SELECT {column} AS name, path, SUM(lines_added) AS lines_added, SUM(lines_removed) AS lines_removed"
        f" FROM {_changes(by_call)}{where} GROUP BY {column}, path ORDER BY {column}, path",
        values,
    )


def names_of(table: str) -> Statement:
    """The values of what a filter looks at: names of tools, or paths of files."""
    column = {"tool_days": "name", "change_days": "path"}[table]
    return Statement(f"SELECT {column} AS name FROM {table} GROUP BY {column} ORDER BY {column}")


SESSIONS_WITH = {
    "tool": "SELECT session_id FROM tool_days{where} GROUP BY session_id ORDER BY session_id",
    "file": "SELECT session_id FROM change_days{where} GROUP BY session_id ORDER BY session_id",
    "error": "SELECT session_id FROM sessions WHERE error_count > 0 ORDER BY session_id",
    "edit": "SELECT session_id FROM change_days GROUP BY session_id ORDER BY session_id",
    "subagent": "SELECT parent_session_id AS session_id FROM sessions WHERE parent_session_id <> ''"
    " GROUP BY parent_session_id ORDER BY parent_session_id",
    "thinking": "SELECT session_id FROM messages WHERE event_id IN"
    " (SELECT event_id FROM blocks WHERE type = 'thinking') GROUP BY session_id ORDER BY session_id",
}
"""The sessions in which something is."""


def sessions_with(what: str, conditions: Sequence[Condition] = ()) -> Statement:
    """The sessions in which something is, or in which a tool or file is one of those given."""
    where, values = _where(conditions)
    return Statement(SESSIONS_WITH[what].replace("{where}", where), values)


def catalogue() -> Iterator[tuple[str, Statement]]:
    """Every statement there is, with and without conditions, for who tests them all."""
    chosen = [among("agent", ["codex", "gemini"]), since("day_utc", "2026-01-01"), until("day_utc", "2027-01-01")]
    timed = [*chosen[:1], since("min_ts_us", 1), until("max_ts_us", 2**60)]
    for conditions in ([], chosen):
        mark = " chosen" if conditions else ""
        for what in USAGE_COLUMNS:
            yield f"usage by {what}{mark}", usage_by(what, conditions)
            yield f"calls by {what}{mark}", usage_by(what, timed if conditions else [], by_call=True)
        yield f"usage by day and model{mark}", usage_cells("day", "model", conditions)
        yield f"calls by day and model{mark}", usage_cells("day", "model", timed if conditions else [], by_call=True)
        yield f"usage total{mark}", usage_total(conditions)
        yield f"calls total{mark}", usage_total(timed if conditions else [], by_call=True)
        yield f"calls{mark}", calls(conditions)
        for what in SESSION_COLUMNS:
            yield f"sessions by {what}{mark}", sessions_by(what, conditions)
        yield f"sessions total{mark}", sessions_total(conditions)
        yield f"sessions{mark}", session_names(conditions)
        exact = [*chosen[:1], since("ts_us", 1), until("ts_us", 2**60)] if conditions else []
        for each, by_call, limits in (("", False, conditions), ("each of ", True, exact)):
            for what in EVENT_COLUMNS:
                yield f"{each}tools by {what}{mark}", tools_by(what, limits, by_call=by_call)
                yield f"{each}changes by {what}{mark}", changes_by(what, limits, by_call=by_call)
                yield f"{each}files by {what}{mark}", changed_files(what, limits, by_call=by_call)
            yield f"{each}tools total{mark}", tools_total(limits, by_call=by_call)
            yield f"{each}changes total{mark}", changes_total(limits, by_call=by_call)
            yield f"{each}tools{mark}", tools(limits, by_call=by_call)
        yield f"durations{mark}", tool_durations(conditions)
    inside = [in_folders(["/home/ada/src/tidepool", "loom"])]
    yield "folders", session_folders()
    yield "usage of folders", usage_total(inside)
    yield "calls of folders", usage_total(inside, by_call=True)
    yield "sessions of folders", sessions_by("day", inside)
    yield "sessions of no folder", sessions_total([in_folders([])])
    for what in USAGE_COLUMNS:
        yield f"names by {what}", usage_names(what)
    for table in ("tool_days", "change_days"):
        yield f"names of {table}", names_of(table)
    for what in SESSIONS_WITH:
        yield f"sessions with {what}", sessions_with(what)
    yield "sessions with a tool", sessions_with("tool", [among("name", ["Bash", "Edit"])])
    yield "sessions with a file", sessions_with("file", [among("path", ["a.py"])])
