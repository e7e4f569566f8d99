"""Computes statistics: runs the SQL statements on a catalog or a warehouse, then computes ratios and percentiles."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from clew.analysis.pricing import NANO_DOLLARS, prices
from clew.analysis.usage import TOKEN_FIELDS, Usage
from clew.catalog import statements
from clew.catalog.filters import CatalogSessions, Condition, Mask, SessionSelector, SourcesWithText, no_text
from clew.catalog.ids import session_key
from clew.catalog.local_days import (
    HOUR_US,
    HOURS,
    UNKNOWN_CLOCK,
    UTC_DAYS,
    WEEKDAYS,
    LocalDays,
    day_name,
    days_of_period,
    hour_name,
    weekday_name,
)
from clew.catalog.schema import DAY_US, QUARTER_HOUR_US
from clew.catalog.statements import CHANGES, SESSIONS, TOOLS, TURNS, USAGE, USAGE_AMOUNTS, Statement, Table, aggregate
from clew.errors import UsageError
from clew.filters import Filters
from clew.model.time import format_utc, month_of, to_microseconds, week_of
from clew.timezone import user_zone

BLOCK_US = 5 * 3_600_000_000
BLOCK_SEARCH_DAYS = (1, 7)
"""Days of calls that are searched for the beginning of the active block, before all calls are read."""
BY = ("day", "week", "month", "weekday", "hour", *USAGE.groups, "tool")
"""The values of `--by`, except `block`."""
BLOCK = "block"
"""The value of `--by` for rows of five hours."""

KINDS = ("sessions", "subagents")
"""By the value of the column `is_agent_session`."""

PERIODS: Mapping[str, Callable[[str], str]] = {"week": week_of, "month": month_of}
"""Periods that are sums of days, and the function from a day to the name of its period."""

CLOCK_NAMES: Mapping[str, Callable[[int], str]] = {"day": day_name, "hour": hour_name, "weekday": weekday_name}
"""Columns that are computed from a time in the user's zone, and the function from a value to its name."""

Row = dict[str, Any]
Ask = Callable[[Statement], list[tuple[Any, ...]]]
"""Runs a statement and returns its rows."""


@dataclass(frozen=True)
class Amounts:
    """Token usage and cost of API calls: what adds up over groups of calls. None: not recorded by the agent."""

    calls: int = 0
    priced_calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_creation_5m_tokens: int | None = None
    cache_creation_1h_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_nano: int = 0

    @classmethod
    def from_sums(cls, sums: Mapping[str, Any]) -> Self:
        """Amounts from sums by name; SQL sums no rows to NULL."""
        return cls(**{name: value for name, value in sums.items() if value is not None})

    def __add__(self, other: Self) -> Self:
        """The amounts of both groups. What neither knows stays unknown; sessions and times are not kept."""
        return self.from_sums(
            {name: add_known((getattr(self, name), getattr(other, name))) for name in USAGE_AMOUNTS.sum_names}
        )

    @property
    def cache_creation_tokens(self) -> int | None:
        """Tokens written to the cache, for five minutes or an hour."""
        return add_known((self.cache_creation_5m_tokens, self.cache_creation_1h_tokens))

    @property
    def total_tokens(self) -> int | None:
        """Input and output."""
        return add_known((self.input_tokens, self.output_tokens))

    @property
    def cache_hit_rate(self) -> float | None:
        """The share of all input that was read from a cache."""
        all_input = add_known((self.cache_read_tokens, self.cache_creation_tokens, self.input_tokens))
        return ratio(self.cache_read_tokens, all_input)

    @property
    def cost_is_lower_bound(self) -> bool:
        """True if some calls used a model without a known price."""
        return self.priced_calls < self.calls


@dataclass(frozen=True)
class UsageTotals(Amounts):
    """The amounts of a group of API calls, with the number of its sessions and the times of its first and last call."""

    sessions: int = 0
    first_us: int | None = None
    last_us: int | None = None

    def as_row(self) -> Row:
        """The totals as a row of `clew stats --json`."""
        has_cost = self.priced_calls > 0
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cache_read_tokens": self.cache_read_tokens,
            "cache_creation_tokens": self.cache_creation_tokens,
            "cache_creation_5m_tokens": self.cache_creation_5m_tokens,
            "cache_creation_1h_tokens": self.cache_creation_1h_tokens,
            "reasoning_tokens": self.reasoning_tokens,
            "total_tokens": self.total_tokens,
            "cost": self.cost_nano / NANO_DOLLARS if has_cost else None,
            "cost_nano": self.cost_nano if has_cost else None,
            "cost_is_at_least": self.cost_is_lower_bound,
            "calls": self.calls,
            "sessions_with_calls": self.sessions,
            "cache_hit_rate": self.cache_hit_rate,
            "first": format_utc(self.first_us) if self.first_us else None,
            "last": format_utc(self.last_us) if self.last_us else None,
        }


def catalog_stats(
    db: sqlite3.Connection,
    filters: Filters | None = None,
    sources_with_text: SourcesWithText | None = None,
    mask: Mask | None = None,
) -> Stats:
    """Statistics over an open catalog; filters by file or text need `sources_with_text`.

    With a mask, filters compare only what masked names show.
    """

    def ask(statement: Statement) -> list[tuple[Any, ...]]:
        return db.execute(statement.text, statement.values).fetchall()

    if filters is not None and filters.commits is not None:
        from clew.catalog.commit_links import with_commit_sessions  # calls git, once for all statements

        filters = with_commit_sessions(db, filters)
    return Stats(ask, filters or Filters(), CatalogSessions(db, sources_with_text or no_text, mask))


class Stats:
    """Statistics over the sessions that pass filters. Model, branch and time filter single API calls, not sessions.

    Days, weeks and months are those of the user's zone.
    """

    def __init__(self, ask: Ask, filters: Filters, selector: SessionSelector) -> None:
        self._answers: dict[Statement, list[tuple[Any, ...]]] = {}
        self._run, self._filters, self._selector = ask, filters, selector
        self._since = None if filters.since is None else to_microseconds(filters.since)
        self._until = None if filters.until is None else to_microseconds(filters.until)
        limits = (self._since, None if self._until is None else self._until + 1)
        self._each = any(limit is not None and limit % QUARTER_HOUR_US for limit in limits)
        """True where a limit is inside of a quarter of an hour, so that its sum cannot be used."""
        timeless = filters.without("since", "until")
        self._of_calls = [*self._in_sessions(timeless.without("model", "branch")), *self._call_names()]
        self._of_events = self._in_sessions(timeless)
        self._of_sessions = self._in_sessions(filters)

    @cached_property
    def _days(self) -> LocalDays:
        return LocalDays.of(user_zone(), self._since)

    def _in_sessions(self, filters: Filters) -> list[Condition]:
        return [self._selector.sessions(filters)] if filters != Filters() else []

    def _call_names(self) -> Iterator[Condition]:
        for column, wanted in (("model", self._filters.model), ("git_branch", self._filters.branch)):
            if wanted is not None:
                yield self._selector.contains(column, wanted)

    def _times(self, column: str) -> Iterator[Condition]:
        for limit, operator in ((self._since, ">="), (self._until, "<=")):
            if limit is not None:
                yield Condition(f"{column} {operator} ?", (limit,))
        if self._since is not None or self._until is not None:
            # 0: the time is unknown.
            yield Condition(f"{column} > 0")

    def _ask(self, statement: Statement) -> list[tuple[Any, ...]]:
        """Run a statement, and cache its rows."""
        if statement not in self._answers:
            self._answers[statement] = self._run(statement)
        return self._answers[statement]

    def _conditions(self, table: Table) -> list[Condition]:
        """The conditions that the rows of a table pass the filters."""
        if table is SESSIONS:
            return list(self._of_sessions)
        times = self._times(statements.time_column(table, each=self._each))
        return [*(self._of_calls if table.sums_table == USAGE.sums_table else self._of_events), *times]

    def _aggregate(
        self, table: Table, by: Sequence[str], group: Iterable[Condition] = ()
    ) -> Iterator[tuple[tuple[str, ...], tuple[Any, ...]]]:
        """The values of the columns in `by`, and the sums of the rows of a table that are in a group."""
        conditions = [*self._conditions(table), *group]
        days = self._days if CLOCK_NAMES.keys() & set(by) else UTC_DAYS
        for row in self._ask(aggregate(table, by, conditions, each=self._each, days=days)):
            yield _group_names(by, row), row[len(by) :]

    def _sums(self, table: Table, *by: str, group: Iterable[Condition] = ()) -> dict[tuple[str, ...], Row]:
        """The sums of the rows of a table in a group, by the values of the columns in `by`."""
        names = table.sum_names
        return {values: dict(zip(names, sums, strict=True)) for values, sums in self._aggregate(table, by, group)}

    def usage(self) -> UsageTotals:
        """The usage of all calls."""
        return UsageTotals.from_sums(self._sums(USAGE)[()])

    def session_usage(self, agent: str, native_id: str) -> UsageTotals:
        """The usage of one session."""
        conditions = [Condition("session_id = ?", (session_key(agent, native_id),))]
        (row,) = self._ask(aggregate(USAGE, (), conditions))
        return UsageTotals.from_sums(dict(zip(USAGE.sum_names, row, strict=True)))

    def usage_by(self, *by: str) -> dict[tuple[str, ...], UsageTotals]:
        """The usage grouped by columns, such as day and model."""
        if not PERIODS.keys() & set(by):
            return {names: UsageTotals.from_sums(sums) for names, sums in self._sums(USAGE, *by).items()}
        columns = ["day" if name in PERIODS else name for name in by]
        found: dict[tuple[str, ...], list[Row]] = {}
        for (*values, session), sums in self._sums(USAGE, *columns, "session").items():
            names = tuple(PERIODS.get(name, str)(value) for name, value in zip(by, values, strict=True))
            found.setdefault(names, []).append({**sums, "session": session})
        return {names: _add_usage(rows) for names, rows in found.items()}

    def amounts_by(self, *by: str) -> dict[tuple[str, ...], Amounts]:
        """As `usage_by`, but only what adds up over groups: much quicker to compute for weeks and months."""
        columns = ["day" if name in PERIODS else name for name in by]
        found: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
        for values, sums in self._aggregate(USAGE_AMOUNTS, columns):
            names = tuple(PERIODS.get(name, str)(value) for name, value in zip(by, values, strict=True))
            found.setdefault(names, []).append(sums)
        return {names: Amounts(*_add_columns(rows)) for names, rows in found.items()}

    def session_keys(self, group: Mapping[str, str]) -> list[str]:
        """The sessions with API calls in a group, such as {"weekday": "Monday", "hour": "09"}: those it counts.

        In a group with a tool: the sessions with calls of that tool.
        """
        table = TOOLS if "tool" in group else USAGE
        conditions = self._conditions(table)
        conditions += [condition for name, value in group.items() for condition in self._in_group(table, name, value)]
        return [row[0] for row in self._ask(aggregate(table, ["session"], conditions, each=self._each))]

    def _in_group(self, table: Table, name: str, value: str) -> Iterator[Condition]:
        """The conditions that a row counts in the group with this name in a column."""
        if name == "kind":
            is_subagent = KINDS.index(value) if value in KINDS else -1
            kinds = "SELECT session_id FROM sessions WHERE is_agent_session = ?"
            yield Condition(f"session_id IN ({kinds})", (is_subagent,))
            return
        column_name = "day" if name in PERIODS else name
        if column_name not in (*CLOCK_NAMES, *table.groups):
            raise UsageError(f"{name}: calls are not counted by this")
        column = statements.group_column(table, column_name, each=self._each, days=self._days)
        if column_name == "day":
            first, last = days_of_period(name, value)
            yield Condition(f"{column} >= ?", (first,))
            yield Condition(f"{column} <= ?", (last,))
        elif name in CLOCK_NAMES:
            names, length_us = (HOURS, HOUR_US) if name == "hour" else (WEEKDAYS, DAY_US)
            if value not in ("", *names):
                raise UsageError(f"unknown {name} {value!r}")
            yield Condition(f"{column} = ?", (names.index(value) * length_us if value else UNKNOWN_CLOCK,))
        else:
            yield Condition(f"{column} = ?", (value,))

    def usage_by_kind(self) -> dict[str, UsageTotals]:
        """The usage of sessions and of sub-agents that have a session of their own."""
        return {
            kind: UsageTotals.from_sums(self._sums(USAGE, group=self._in_group(USAGE, "kind", kind))[()])
            for kind in KINDS
        }

    def cache_savings(self) -> dict[str, int | None]:
        """What each model with cached input saved in nano-dollars by its cache; None where it cannot be known."""
        table = prices()
        return {
            model: table.cache_savings(
                model,
                used.cache_read_tokens or 0,
                used.cache_creation_5m_tokens or 0,
                used.cache_creation_1h_tokens or 0,
            )
            for (model,), used in self.amounts_by("model").items()
            if used.cache_read_tokens or used.cache_creation_tokens
        }

    def tool_errors(self) -> list[Row]:
        """The calls and the errors of each tool, without the time they took."""
        rows = [
            {
                "tool": name,
                "tool_calls": sums["tool_calls"],
                "errors": sums["tool_errors"],
                "error_rate": ratio(sums["tool_errors"], sums["tool_calls"]),
                "sessions_with_calls": sums["sessions"],
            }
            for (name,), sums in self._sums(TOOLS, "tool").items()
        ]
        return sorted(rows, key=lambda row: (-row["tool_calls"], row["tool"]))

    def sessions(self) -> Row:
        """The number of sessions, sub-agents and messages, and their working time."""
        return session_row(self._sums(SESSIONS)[()])

    def sessions_by(self, by: str) -> dict[str, Row]:
        """Sessions, sub-agents, messages and working time, grouped by a column."""
        return {name: session_row(sums) for (name,), sums in self._sums(SESSIONS, by).items()}

    def sessions_without_usage(self) -> int:
        """The number of sessions with replies, but without an API call at any time. What they cost is unknown."""
        with_calls = {key for key, *_ in self._ask(aggregate(USAGE_AMOUNTS, ("session",)))}
        found = [key for (key,), sums in self._sums(SESSIONS, "session").items() if sums["sessions"]]
        without = [key for key in found if key not in with_calls]
        return len(self._ask(statements.sessions_with_replies(without))) if without else 0

    def sessions_with_calls(self) -> dict[str, Row]:
        """The columns about sessions, by the key of each session with calls that pass the filters."""
        # A session has one branch, its calls may have others.
        conditions = self._in_sessions(self._filters.without("since", "until", "model", "branch"))
        calls, names = self.amounts_by("session"), SESSIONS.sum_names
        return {
            key: session_row(dict(zip(names, sums, strict=True)))
            for key, *sums in self._ask(aggregate(SESSIONS, ("session",), conditions))
            if (key,) in calls
        }

    def totals(self) -> Row:
        """The totals of all calls, sessions, tools and changes."""
        table = prices()
        unpriced = [
            name for name, used in self.by_model().items() if used["cost_is_at_least"] and table.price(name) is None
        ]
        # Sums by day are mostly cached, as a report by day needs them too.
        tools = add_rows(tool_row(sums) for sums in self._sums(TOOLS, "day").values())
        turns = add_rows(turn_row(sums) for sums in self._sums(TURNS, "day").values())
        done = {**self.sessions(), **turns, **change_row(self._sums(CHANGES)[()])}
        return {**self.usage().as_row(), "unpriced_models": unpriced, **NO_ACTIVITY, **done, **tools}

    def by_model(self) -> dict[str, Row]:
        """The usage of each model."""
        return {model: totals.as_row() for (model,), totals in self.usage_by("model").items()}

    def tokens_by_model(self) -> dict[str, Usage]:
        """The tokens of each model, as the unified document counts them."""
        found = self.usage_by("model").items()
        return {model: Usage(used.calls, *(getattr(used, name) for name in TOKEN_FIELDS)) for (model,), used in found}

    def rows(self, by: str) -> list[Row]:
        """A row for each value of a column, such as each day or project, in order."""
        if by == "tool":
            return self._tool_rows()
        used = {name: totals.as_row() for (name,), totals in self.usage_by(by).items()}
        activity = self._activity(by) if by != "model" else {}
        no_usage, no_activity = UsageTotals().as_row(), NO_ACTIVITY if by != "model" else {}
        rows = [
            {by: name, **used.get(name, no_usage), **no_activity, **activity.get(name, {})}
            for name in sorted({*used, *activity}, key=_row_order(by))
        ]
        return self._with_session_names(rows) if by == "session" else rows

    def _activity(self, by: str) -> dict[str, Row]:
        """What was done, for each value of a column. Weeks are sums of days, branches of sessions."""
        base, rename = self._base_column(by)
        found: dict[str, list[Row]] = {}
        for table, row_of in ((SESSIONS, session_row), (TURNS, turn_row), (TOOLS, tool_row)):
            for (name,), sums in self._sums(table, base).items():
                found.setdefault(rename(name), []).append(row_of(sums))
        rows = {name: add_rows(parts) for name, parts in found.items()}
        for name, changes in self._changes(by, base, rename).items():
            rows.setdefault(name, {}).update(change_row(changes))
        return rows

    def _base_column(self, by: str) -> tuple[str, Callable[[str], str]]:
        """The column that activity is summed by in SQL, and the function from its value to the name of a row."""
        if by in PERIODS:
            return "day", PERIODS[by]
        if by == "branch":
            branches = {row[0]: row[5] for row in self._ask(statements.session_names(self._of_sessions))}
            return "session", lambda session: branches.get(session, "")
        return by, str

    def _changes(self, by: str, base: str, rename: Callable[[str], str]) -> dict[str, Row]:
        if by == base:
            return {name: sums for (name,), sums in self._sums(CHANGES, base).items()}
        # A file that changed on several days of a week counts once.
        paths: dict[str, set[str]] = {}
        found: dict[str, Row] = {}
        for (name, path), sums in self._sums(CHANGES, base, "path").items():
            paths.setdefault(rename(name), set()).add(path)
            row = found.setdefault(rename(name), {"lines_added": None, "lines_removed": None})
            for lines in ("lines_added", "lines_removed"):
                row[lines] = add_known((row[lines], sums[lines]))
        return {name: {**row, "files_changed": len(paths[name])} for name, row in found.items()}

    def _with_session_names(self, rows: list[Row]) -> list[Row]:
        """Replace keys of sessions by agent, native id, title and project; the last active session first."""
        known = {row[0]: row[1:5] for row in self._ask(statements.session_names())}
        named = []
        for row in rows:
            agent, native, title, project = known.get(row["session"], ("", row["session"], "", ""))
            named.append({**row, "session": native, "agent": agent, "title": title, "project": project})
        return sorted(named, key=lambda row: (row["last"] or "", row["session"]), reverse=True)

    def _tool_rows(self) -> list[Row]:
        durations: dict[str, list[tuple[int, int]]] = {}
        for name, duration, count in self._ask(statements.tool_durations([*self._of_events, *self._times("ts_us")])):
            durations.setdefault(name, []).append((duration, count))
        sums = self._sums(TOOLS, "tool")
        return [
            {
                **row,
                "seconds": sums[row["tool"],]["tool_us"] / 1_000_000,
                "median_seconds": _seconds(percentile(durations.get(row["tool"], ()), 50)),
                "p95_seconds": _seconds(percentile(durations.get(row["tool"], ()), 95)),
                "longest_seconds": sums[row["tool"],]["longest_us"] / 1_000_000,
            }
            for row in self.tool_errors()
        ]

    def blocks(self, now_us: int) -> list[Row]:
        """Usage in blocks of five hours. A block begins at the full hour of the first call after the block before."""
        return _blocks(self._calls(), now_us)

    def active_block(self, now_us: int) -> Row | None:
        """The current block of five hours. Reads calls only as far back as needed to find where it began."""
        for days in BLOCK_SEARCH_DAYS:
            since = now_us - days * DAY_US
            calls = _after_pause(self._calls(Condition("ts_us >= ?", (since,))), since)
            if calls is not None:
                break
        else:
            calls = self._calls()
        return next((block for block in _blocks(calls, now_us) if block["is_active"]), None)

    def _calls(self, *conditions: Condition) -> list[tuple[Any, ...]]:
        """The calls whose time is known, ordered by time."""
        timed = Condition("ts_us > 0")
        return self._ask(statements.calls([*self._of_calls, *self._times("ts_us"), timed, *conditions]))


def _after_pause(calls: list[tuple[Any, ...]], since_us: int) -> list[tuple[Any, ...]] | None:
    """The calls after the first pause of five hours since a time, where a block begins; None without such a pause."""
    before = since_us
    for number, call in enumerate(calls):
        if call[0] - before >= BLOCK_US:
            return calls[number:]
        before = call[0]
    return None if calls else []


def _blocks(calls: Iterable[tuple[Any, ...]], now_us: int) -> list[Row]:
    found: list[tuple[int, list[tuple[Any, ...]]]] = []
    for call in calls:
        if not found or call[0] >= found[-1][0] + BLOCK_US:
            found.append((call[0] - call[0] % HOUR_US, []))
        found[-1][1].append(call)
    return [_block(start, members, now_us) for start, members in found]


def _add_usage(rows: Sequence[Row]) -> UsageTotals:
    """Add rows by day and session; a session with calls on several days counts once."""
    times = {
        "first_us": min((row["first_us"] for row in rows if row["first_us"] is not None), default=None),
        "last_us": max(row["last_us"] for row in rows),
    }
    sums = {name: add_known(row[name] for row in rows) for name in USAGE_AMOUNTS.sum_names}
    return UsageTotals.from_sums({**sums, **times, "sessions": len({row["session"] for row in rows})})


def _add_columns(rows: Sequence[tuple[Any, ...]]) -> Iterable[Any]:
    return rows[0] if len(rows) == 1 else map(add_known, zip(*rows, strict=True))


def _group_names(by: Sequence[str], row: Sequence[Any]) -> tuple[str, ...]:
    """The values of the columns in `by`; days, hours and weekdays by their names."""
    pairs = zip(by, row, strict=False)
    return tuple(CLOCK_NAMES[name](value) if name in CLOCK_NAMES else value for name, value in pairs)


def _row_order(by: str) -> Callable[[str], str | int]:
    """The sort key of the names of rows: the alphabet, or the order of the week."""
    return (lambda name: WEEKDAYS.index(name) if name else -1) if by == "weekday" else str


def _block(start: int, calls: list[tuple[Any, ...]], now_us: int) -> Row:
    times, sessions, models, priced, *columns = zip(*calls, strict=True)
    sums = dict(zip((*statements.TOKENS, "cost_nano"), map(add_known, columns), strict=True))
    counts = {"sessions": len(set(sessions)), "calls": len(times), "priced_calls": sum(priced)}
    totals = UsageTotals.from_sums({**sums, **counts, "first_us": min(times), "last_us": max(times)})
    end = start + BLOCK_US
    is_active = start <= now_us < end
    return {
        "block": format_utc(start),
        "end": format_utc(end),
        "is_active": is_active,
        **totals.as_row(),
        "models": sorted({model for model in models if model}),
        **(_projection(totals, end - now_us) if is_active else NO_PROJECTION),
    }


NO_PROJECTION: Row = {"remaining_seconds": None, "cost_per_hour": None, "projected_cost": None}


def _projection(totals: UsageTotals, remaining_us: int) -> Row:
    """The expected cost of a block at its end, at the rate between its first and its last call."""
    worked_us = (totals.last_us or 0) - (totals.first_us or 0)
    remaining = remaining_us / 1_000_000
    if not worked_us or not totals.priced_calls:
        return {**NO_PROJECTION, "remaining_seconds": remaining}
    per_us = totals.cost_nano / NANO_DOLLARS / worked_us
    projected = totals.cost_nano / NANO_DOLLARS + per_us * remaining_us
    return {"remaining_seconds": remaining, "cost_per_hour": per_us * HOUR_US, "projected_cost": projected}


def add_known(numbers: Iterable[int | None]) -> int | None:
    """The sum of the numbers that are known; None where none is."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def session_row(sums: Row) -> Row:
    """The columns about sessions."""
    return {
        "sessions": sums["sessions"] or 0,
        "subagents": sums["subagents"] or 0,
        "messages": sums["messages"] or 0,
        "active_seconds": (sums["active_us"] or 0) / 1_000_000,
        "duration_seconds": (sums["duration_us"] or 0) / 1_000_000,
    }


def turn_row(sums: Row) -> Row:
    """The column about turns."""
    return {"turns": sums["turns"] or 0}


def tool_row(sums: Row) -> Row:
    """The columns about tool calls. `errors` is an older name of `tool_errors`."""
    seconds, errors = (sums["tool_us"] or 0) / 1_000_000, sums["tool_errors"] or 0
    return {"errors": errors, "tool_calls": sums["tool_calls"] or 0, "tool_errors": errors, "tool_seconds": seconds}


def change_row(sums: Row) -> Row:
    """The columns about changed files. Lines are None where files changed by an unknown number of lines."""
    unknown = None if sums["files_changed"] else 0
    lines = {name: unknown if sums[name] is None else sums[name] for name in ("lines_added", "lines_removed")}
    return {"files_changed": sums["files_changed"], **lines}


NO_ACTIVITY: Row = {
    **session_row(dict.fromkeys(SESSIONS.sums, 0)),
    **turn_row(dict.fromkeys(TURNS.sums, 0)),
    **tool_row(dict.fromkeys(TOOLS.sums, 0)),
    **change_row(dict.fromkeys(CHANGES.sums, 0)),
}
"""The columns of a row with API calls only."""


def add_rows(rows: Iterable[Row]) -> Row:
    """The sums of rows with the same keys."""
    total: Row = {}
    for row in rows:
        for name, number in row.items():
            total[name] = total.get(name, 0) + number
    return total


def ratio(part: int | None, whole: int | None) -> float | None:
    """A part of a whole; None where unknown."""
    return part / whole if part is not None and whole else None


def percentile(counted: Sequence[tuple[int, int]], percent: int) -> int | None:
    """The percentile by nearest rank of (value, count) pairs in ascending order; None without values."""
    total = sum(count for _, count in counted)
    rank = -(-total * percent // 100)
    for value, count in counted:
        rank -= count
        if rank <= 0:
            return value
    return None


def _seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1_000_000


def report(stats: Stats, by: str) -> Row:
    """The report of `clew stats --json`."""
    if by not in (*BY, BLOCK):
        raise UsageError(f"--by {by}: choose from {', '.join(BY)}")
    rows = stats.blocks(time.time_ns() // 1000) if by == BLOCK else stats.rows(by)
    return {"totals": stats.totals(), "by_model": stats.by_model(), "rows": rows}


def number_duplicates(names: Mapping[str, str]) -> dict[str, str]:
    """Make names unique by adding numbers: masking may give two models the same name."""
    given: dict[str, str] = {}
    taken: set[str] = set()
    for known, name in names.items():
        number = 1
        given[known] = name
        while given[known] in taken:
            number += 1
            given[known] = f"{name} ({number})"
        taken.add(given[known])
    return given


_NAMES = ("agent", "model", "project", "branch", "session", "title", "tool", "models", "unpriced_models")
"""The keys of a row whose values are names or lists of names."""


def with_names(found: Row, mask: Callable[[list[str]], list[str]]) -> Row:
    """The report with every name masked; numbers and times are unchanged."""
    rows = [found["totals"], *found["rows"]]
    texts = list(found["by_model"])
    for value in (row[key] for row in rows for key in _NAMES if row.get(key)):
        texts += [value] if isinstance(value, str) else value
    known = list(dict.fromkeys(texts))
    names = dict(zip(known, mask(known), strict=True))
    names |= number_duplicates({model: names[model] for model in found["by_model"]})

    def renamed(key: str, value: Any) -> Any:
        if key not in _NAMES or not value:
            return value
        return names[value] if isinstance(value, str) else [names[item] for item in value]

    totals, *others = ({key: renamed(key, value) for key, value in row.items()} for row in rows)
    return {
        **found,
        "totals": totals,
        "by_model": {names[model]: used for model, used in found["by_model"].items()},
        "rows": others,
    }
