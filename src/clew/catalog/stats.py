"""Statistics: runs the statements and makes ratios and percentiles from their exact integers. Loads nothing heavy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from clew.catalog import statements
from clew.catalog.days import month_of, spelled, week_of
from clew.catalog.statements import Condition, Statement, among, in_folders, since, until
from clew.errors import UsageError

DAY_US = 86_400_000_000
BLOCK_US = 5 * 3_600_000_000
_HOUR_US = 3_600_000_000
_NANO = 10**9
BY = (*statements.USAGE_COLUMNS, "tool")
"""What statistics can be told apart by."""
BLOCK = "block"
"""And five hours."""

Row = dict[str, Any]
Ask = Callable[[Statement], list[tuple[Any, ...]]]
"""Answers a statement with its rows."""


class Choice(NamedTuple):
    """Which calls, sessions and events are looked at. All must hold; texts are parts of names, whatever their case."""

    agent: tuple[str, ...] = ()
    project: str | None = None
    branch: str | None = None
    model: str | None = None
    since_us: int | None = None
    until_us: int | None = None
    tool: str | None = None
    file: str | None = None
    has: tuple[str, ...] = ()

    @property
    def needs_catalog(self) -> bool:
        """True where usage alone does not tell."""
        return self.tool is not None or self.file is not None or bool(self.has)

    @property
    def by_call(self) -> bool:
        """True where whole days are too coarse."""
        limits = (self.since_us, None if self.until_us is None else self.until_us + 1)
        return any(limit is not None and limit % DAY_US for limit in limits)


class Stats:
    """Statistics over one set of rows. `is_full`: there is more than usage in it."""

    def __init__(self, ask: Ask, choice: Choice, *, is_full: bool) -> None:
        self._answers: dict[Statement, list[tuple[Any, ...]]] = {}
        self._open, self._choice, self.is_full = ask, choice, is_full
        self._by_call = choice.by_call
        self._usage = list(self._usage_conditions())
        self._sessions = list(self._session_conditions())
        self._events = list(self._event_conditions())

    def _ask(self, statement: Statement) -> list[tuple[Any, ...]]:
        """The answer to a statement, which is asked once."""
        if statement not in self._answers:
            self._answers[statement] = self._open(statement)
        return self._answers[statement]

    # Which rows

    def _usage_conditions(self) -> Iterator[Condition]:
        choice = self._choice
        if choice.agent:
            yield among("agent", choice.agent)
        yield from self._of_project()
        for what in ("branch", "model"):
            wanted = getattr(choice, what)
            if wanted is not None:
                names = [name for (name,) in self._ask(statements.usage_names(what))]
                yield among(statements.USAGE_COLUMNS[what], matching(wanted, names))
        if choice.since_us is not None:
            at = choice.since_us
            yield since("min_ts_us", at) if choice.by_call else since("day_utc", spelled(at)[:10])
        if choice.until_us is not None:
            at = choice.until_us
            yield until("max_ts_us", at) if choice.by_call else until("day_utc", spelled(at)[:10])
        if choice.until_us is not None or choice.since_us is not None:
            yield Condition("day_utc <> ''", ())
        yield from self._inside()

    def _of_project(self) -> Iterator[Condition]:
        """The condition that a session was in a folder whose path holds a text."""
        wanted = self._choice.project
        if wanted is not None:
            known = self._ask(statements.session_folders())
            yield in_folders([folder for folder, project in known if matching(wanted, _spellings(folder, project))])

    def _inside(self) -> Iterator[Condition]:
        """Conditions on the session for what is in it."""
        choice = self._choice
        for what, wanted, table in (("tool", choice.tool, "tool_days"), ("file", choice.file, "change_days")):
            if wanted is not None:
                names = matching(wanted, [name for (name,) in self._ask(statements.names_of(table))])
                column = {"tool": "name", "file": "path"}[what]
                yield self._in_sessions(statements.sessions_with(what, [among(column, names)]))
        for what in choice.has:
            yield self._in_sessions(statements.sessions_with(what))

    def _in_sessions(self, statement: Statement) -> Condition:
        return among("session_id", [row[0] for row in self._ask(statement)])

    def _session_conditions(self) -> Iterator[Condition]:
        choice = self._choice
        if not self.is_full:
            return
        if choice.agent:
            yield among("agent", choice.agent)
        yield from self._of_project()
        if choice.branch is not None:
            names = [row[0] for row in self._ask(statements.sessions_by("branch"))]
            yield among(statements.SESSION_COLUMNS["branch"], matching(choice.branch, names))
        if choice.model is not None:
            yield self._in_sessions(statements.usage_by("session", self._usage, by_call=choice.by_call))
        if choice.since_us is not None:
            yield since("ended_us", choice.since_us)
        if choice.until_us is not None:
            yield until("started_us", choice.until_us)
        yield from self._inside()

    def _event_conditions(self) -> Iterator[Condition]:
        choice = self._choice
        if not self.is_full:
            return
        timeless = choice._replace(since_us=None, until_us=None)
        if timeless != Choice():
            yield self._in_sessions(statements.session_names(self._sessions))
        if choice.since_us is not None:
            at = choice.since_us
            yield since("ts_us", at) if choice.by_call else since("day_utc", spelled(at)[:10])
        if choice.until_us is not None:
            at = choice.until_us
            yield until("ts_us", at) if choice.by_call else until("day_utc", spelled(at)[:10])

    # What they come to

    def totals(self) -> Row:
        """Everything in all."""
        (row,) = self._ask(statements.usage_total(self._usage, by_call=self._by_call))
        unpriced = [name for name, used in self.by_model().items() if used["cost_is_at_least"]]
        totals = {**used_of(row), "unpriced_models": unpriced, **UNTOLD}
        if self.is_full:
            for statement, told in (
                (statements.sessions_total(self._sessions), held_of),
                (statements.changes_total(self._events, by_call=self._by_call), changed_of),
            ):
                totals |= told(self._ask(statement)[0])
            # Days add up, and are mostly asked for anyway.
            days = self._ask(statements.tools_by("day", self._events, by_call=self._by_call)) or [("", 0, 0, 0)]
            totals |= called_of(("", *(sum(column) for column in list(zip(*days, strict=True))[1:])))
        return totals

    def by_model(self) -> dict[str, Row]:
        """What each model used."""
        return {row[0]: used_of(row) for row in self._used("model")}

    def _used(self, what: str) -> list[tuple[Any, ...]]:
        return self._ask(statements.usage_by(what, self._usage, by_call=self._by_call))

    def cells(self, by: str, other: str) -> list[tuple[str, str, Row]]:
        """What was used by two things at once: both names, and what it comes to."""
        found = self._ask(statements.usage_cells(by, other, self._usage, by_call=self._by_call))
        return [(name, second, used_of(("", 0, *sums, None, None))) for name, second, *sums in found]

    def rows(self, by: str) -> list[Row]:
        """What each day, project and so on comes to, in order."""
        if by == "tool":
            return self._tools()
        used = {row[0]: used_of(row) for row in self._used(by)}
        tells = by != "model"
        more = self._activity(by) if self.is_full and tells else {}
        names = sorted({*used, *more})
        blank, idle = used_of(None), (IDLE if self.is_full else UNTOLD) if tells else {}
        rows = [{by: name, **used.get(name, blank), **idle, **more.get(name, {})} for name in names]
        return self._named(rows) if by == "session" else rows

    def _activity(self, by: str) -> dict[str, Row]:
        """Turns, tools and files by name. Weeks and months are made of days, branches of sessions."""
        base, of = self._mapping(by)
        found: dict[str, Row] = {}
        for statement, told in (
            (statements.sessions_by(base, self._sessions), held_of),
            (statements.tools_by(base, self._events, by_call=self._by_call), called_of),
        ):
            for row in self._ask(statement):
                _add(found.setdefault(of(row[0]), {}), told(row))
        for name, changed in self._changes(by, base, of):
            found.setdefault(name, {}).update(changed)
        return found

    def _mapping(self, by: str) -> tuple[str, Callable[[str], str]]:
        if by in ("week", "month"):
            return "day", week_of if by == "week" else month_of
        if by == "branch":
            branches = {row[0]: row[5] for row in self._ask(statements.session_names(self._sessions))}
            return "session", lambda session: branches.get(session, "")
        return by, str

    def _changes(self, by: str, base: str, of: Callable[[str], str]) -> Iterator[tuple[str, Row]]:
        if by == base:
            for row in self._ask(statements.changes_by(base, self._events, by_call=self._by_call)):
                yield row[0], changed_of(row)
            return
        # A file that was changed on several days of a week is one file.
        paths: dict[str, set[str]] = {}
        lines: dict[str, list[int | None]] = {}
        for name, path, added, removed in self._ask(
            statements.changed_files(base, self._events, by_call=self._by_call)
        ):
            paths.setdefault(of(name), set()).add(path)
            sums = lines.setdefault(of(name), [None, None])
            sums[0], sums[1] = _sum((sums[0], added)), _sum((sums[1], removed))
        for name, files in paths.items():
            yield name, changed_of((name, len(files), *lines[name]))

    def _named(self, rows: list[Row]) -> list[Row]:
        """Rows of sessions with their own names; the one that was active last comes first."""
        known = {row[0]: row[1:5] for row in self._ask(statements.session_names())}
        named = []
        for row in rows:
            agent, native, title, project = known.get(row["session"], ("", row["session"], "", ""))
            named.append({**row, "session": native, "agent": agent, "title": title, "project": project})
        return sorted(named, key=lambda row: (row["last"] or "", row["session"]), reverse=True)

    def _tools(self) -> list[Row]:
        spans: dict[str, list[tuple[int, int]]] = {}
        for name, duration, count in self._ask(statements.tool_durations(self._events)):
            spans.setdefault(name, []).append((duration, count))
        rows = []
        for name, calls, errors, spent, sessions, longest in self._ask(
            statements.tools(self._events, by_call=self._by_call)
        ):
            rows.append(
                {
                    "tool": name,
                    "tool_calls": calls,
                    "errors": errors,
                    "error_rate": errors / calls,
                    "sessions": sessions,
                    "seconds": spent / 1_000_000,
                    "median_seconds": _seconds(percentile(spans.get(name, ()), 50)),
                    "p95_seconds": _seconds(percentile(spans.get(name, ()), 95)),
                    "longest_seconds": longest / 1_000_000,
                }
            )
        return rows

    def blocks(self, now_us: int) -> list[Row]:
        """Usage in blocks of five hours: one begins with the hour of the first call that no other block holds."""
        conditions = [_timed(condition) for condition in self._usage]
        held: list[tuple[int, list[tuple[Any, ...]]]] = []
        for row in self._ask(statements.calls(conditions)):
            if row[0] <= 0:
                continue
            if not held or row[0] >= held[-1][0] + BLOCK_US:
                held.append((row[0] - row[0] % _HOUR_US, []))
            held[-1][1].append(row)
        return [_block(start, rows, now_us) for start, rows in held]


def _timed(condition: Condition) -> Condition:
    """A condition on groups of calls, for a single call."""
    return condition._replace(text=condition.text.replace("min_ts_us", "ts_us").replace("max_ts_us", "ts_us"))


def _block(start: int, rows: list[tuple[Any, ...]], now_us: int) -> Row:
    times, sessions, models, priced, *columns = zip(*rows, strict=True)
    sums = [_sum(column) for column in columns]
    used = used_of(("", len(set(sessions)), len(times), sum(priced), *sums, min(times), max(times)))
    end = start + BLOCK_US
    return {
        "block": spelled(start),
        "end": spelled(end),
        "is_active": start <= now_us < end,
        **used,
        "models": sorted({model for model in models if model}),
    }


def _sum(column: Iterable[int | None]) -> int | None:
    known = [number for number in column if number is not None]
    return sum(known) if known else None


def matching(wanted: str, names: Iterable[str]) -> list[str]:
    """Those of the names that hold the text."""
    return [name for name in names if wanted.casefold() in name.casefold()]


def _spellings(folder: str, project: str) -> tuple[str, ...]:
    """What a project is found by: its path, as it is and as agents name folders by it. A tag says nothing."""
    if "/" not in folder and "\\" not in folder:
        return (project,)
    from clew.io.paths import encode_claude

    return folder, encode_claude(folder)


def used_of(row: Sequence[Any] | None) -> Row:
    """What a row of usage says. None is unknown, never zero."""
    if row is None:
        row = ("", 0, 0, 0, *[None] * 6, 0, None, None)
    _, sessions, calls, priced, given, said, read, short, long, reasoning, cost, first, last = row
    calls, priced, cost = calls or 0, priced or 0, cost or 0
    created = _sum((short, long))
    return {
        "input_tokens": given,
        "output_tokens": said,
        "cache_read_tokens": read,
        "cache_creation_tokens": created,
        "cache_creation_5m_tokens": short,
        "cache_creation_1h_tokens": long,
        "reasoning_tokens": reasoning,
        "total_tokens": _sum((given, said)),
        "cost": cost / _NANO if priced or not calls else None,
        "cost_nano": cost if priced or not calls else None,
        "cost_is_at_least": priced < calls,
        "calls": calls,
        "sessions": sessions,
        "cache_hit_rate": ratio(read, _sum((read, created, given))),
        "first": spelled(first) if first else None,
        "last": spelled(last) if last else None,
    }


def held_of(row: Sequence[Any]) -> Row:
    """What a row of sessions says."""
    _, sessions, messages, turns, errors, active, duration = row
    return {
        "all_sessions": sessions,
        "messages": messages or 0,
        "turns": turns or 0,
        "errors": errors or 0,
        "active_seconds": (active or 0) / 1_000_000,
        "duration_seconds": (duration or 0) / 1_000_000,
    }


def called_of(row: Sequence[Any]) -> Row:
    """What a row of tools says."""
    _, calls, errors, spent = row
    return {"tool_calls": calls or 0, "tool_errors": errors or 0, "tool_seconds": (spent or 0) / 1_000_000}


def changed_of(row: Sequence[Any]) -> Row:
    """What a row of changed files says."""
    _, files, added, removed = row
    # Where nothing was changed, nothing came or went; else nobody may have told how much.
    nothing = None if files else 0
    added, removed = nothing if added is None else added, nothing if removed is None else removed
    return {"files_changed": files, "lines_added": added, "lines_removed": removed}


IDLE = {**held_of(("", *[0] * 6)), **called_of(("", 0, 0, 0)), **changed_of(("", 0, 0, 0))}
"""What is told of a day on which nothing was done but used."""
UNTOLD: Row = dict.fromkeys(IDLE)
"""The same where only usage is known: unknown, which is not nothing."""


def _add(row: Row, more: Row) -> None:
    for name, number in more.items():
        row[name] = row.get(name, 0) + number


def ratio(part: int | None, whole: int | None) -> float | None:
    """A share; None where there is nothing to share."""
    return part / whole if part is not None and whole else None


def percentile(counted: Sequence[tuple[int, int]], percent: int) -> int | None:
    """By nearest rank, from values in order and how often each is; None where there is none."""
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
    """The whole of it, as JSON."""
    if by not in (*BY, BLOCK):
        raise UsageError(f"--by {by}: choose from {', '.join(BY)}")
    rows = stats.blocks(time.time_ns() // 1000) if by == BLOCK else stats.rows(by)
    return {"totals": stats.totals(), "by_model": stats.by_model(), "rows": rows}


def told_apart(names: Mapping[str, str]) -> dict[str, str]:
    """Names by what they stand for, with a number behind each that another has too: two models may be masked alike."""
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
"""The keys whose values are names, or lists of them."""


def with_names(found: Row, mask: Callable[[list[str]], list[str]]) -> Row:
    """A report with every name in it replaced by what `mask` makes of it. Figures and times stay as they are."""
    rows = [found["totals"], *found["rows"]]
    texts = list(found["by_model"])
    for value in (row[key] for row in rows for key in _NAMES if row.get(key)):
        texts += [value] if isinstance(value, str) else value
    known = list(dict.fromkeys(texts))
    names = dict(zip(known, mask(known), strict=True))
    names |= told_apart({model: names[model] for model in found["by_model"]})

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
