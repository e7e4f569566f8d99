"""Tables of usage: the exact values behind each chart, as a page shows them and as CSV has them.

Each row links to the sessions behind its figures, and a cost says where it is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from markupsafe import Markup

from clew.catalog.local_days import WEEKDAYS
from clew.catalog.queries import Entry
from clew.catalog.stats import CLOCK_NAMES, PERIODS, Amounts, Row, Stats, UsageTotals, add_known, number_duplicates
from clew.web.context import Masking
from clew.web.request import usage_parameter
from clew.web.templates import (
    NANO_PER_DOLLAR,
    format_duration,
    format_money,
    format_number,
    format_row_cost,
    session_name,
    session_url,
)

MAX_RANKED = 10
"""Names in a ranking; all others are one more row."""
UNKNOWN_NAMES = {"model": "unknown model", "project": "no project", "tool": "unnamed tool"}
"""Words for a name that is not recorded."""
KIND_TITLES = {"sessions": "Sessions", "subagents": "Sub-agents"}
MICROSECONDS_PER_SECOND = 1_000_000


class Measure(NamedTuple):
    """What the length of a bar stands for."""

    title: str
    unit: str
    scale: int
    amount: Callable[[Amounts], int | None]
    spell: Callable[[int], str]
    is_lower_bound: Callable[[Amounts], bool]

    def length(self, used: Amounts) -> float:
        """The length of a part of a bar; 0 where the amount is unknown."""
        return (self.amount(used) or 0) / self.scale

    def format(self, groups: Iterable[Amounts], divisor: int = 1) -> str:
        """The sum of groups, or a part of it; a lower bound if some calls have no known amount."""
        found = list(groups)
        amount = self.total(found)
        if amount is None:
            return "unknown"
        return ("≥ " if any(map(self.is_lower_bound, found)) else "") + self.spell(amount // divisor)

    def total(self, groups: Iterable[Amounts]) -> int | None:
        """The sum of groups; None if it is unknown for all."""
        return add_known(map(self.amount, groups))

    def order(self, usage: Mapping[str, Iterable[Amounts]]) -> list[str]:
        """The names of sets of groups, the largest first; those whose amount is unknown last."""
        totals = {name: self.total(groups) for name, groups in usage.items()}
        sizes = [(-1 if total is None else total, name) for name, total in totals.items()]
        return [name for _, name in sorted(sizes, reverse=True)]


COST = Measure(
    "Cost",
    "$",
    NANO_PER_DOLLAR,
    lambda used: used.cost_nano if used.priced_calls else None,
    format_money,
    lambda used: used.cost_is_lower_bound,
)
TOKENS = Measure("Tokens", "", 1, lambda used: used.total_tokens, format_number, lambda _: False)
MEASURES = (COST, TOKENS)


class Column(NamedTuple):
    """A column of a table: its name in CSV, its heading, and the text of a cell."""

    name: str
    title: str
    format: Callable[[Row], str]
    is_number: bool = True


def _name_column(name: str) -> Column:
    return Column(name, name.capitalize(), lambda row: str(row[name]), is_number=False)


def _number_column(name: str, title: str) -> Column:
    return Column(name, title, lambda row: format_number(row[name]))


def _share_column(name: str, title: str) -> Column:
    return Column(name, title, lambda row: format_share(row[name]))


def _seconds_column(name: str, title: str) -> Column:
    return Column(name, title, lambda row: format_duration(int(row[name] * MICROSECONDS_PER_SECOND)))


SESSIONS_COLUMN = _number_column("sessions_with_calls", "Sessions")
USAGE_COLUMNS = (
    _number_column("calls", "Calls"),
    _number_column("input_tokens", "Input"),
    _number_column("output_tokens", "Output"),
    _number_column("cache_read_tokens", "Cache read"),
    _number_column("cache_creation_tokens", "Cache written"),
    _number_column("total_tokens", "Tokens"),
    Column("cost", "Cost", format_row_cost),
)
AT_LEAST = "cost_is_at_least"
"""The column of CSV that a table shows as ≥."""


class TableRow(NamedTuple):
    """A row of a table: values by column name, and the address of the sessions behind it."""

    values: Row
    url: str


class UsageTable(NamedTuple):
    """The exact values of a chart."""

    columns: Sequence[Column]
    rows: Sequence[TableRow]

    def cell_texts(self, row: TableRow) -> list[tuple[str, bool]]:
        """The texts of a row, and whether each is a number."""
        return [(column.format(row.values), column.is_number) for column in self.columns]

    def csv_rows(self) -> list[Row]:
        """The exact values by the names of columns."""
        names = [column.name for column in self.columns]
        names += [AT_LEAST] if "cost" in names else []
        return [{name: row.values[name] for name in names} for row in self.rows]


class UsageSource(NamedTuple):
    """What charts and tables of usage are made from."""

    stats: Stats
    mask_names: Callable[[list[str]], list[str]]
    sessions_url: Callable[[Mapping[str, str]], str]
    """The address of the sessions with calls in a group, as `Stats.session_keys` finds them."""
    find_entries: Callable[[Sequence[str]], Mapping[str, Entry]]
    """Finds sessions by their keys."""
    colours: Callable[[str], Mapping[str, int]]
    """By the name of a column, the number of the colour of each value that has one."""
    days: tuple[date, date]
    """The first and the last day of the axis of time."""
    step: str
    """What a bar on the axis of time stands for: day, week or month."""
    split: str
    """What the parts of such a bar stand for: model, project or agent."""
    caption: str
    """The range of time that all figures are of."""

    def names(self, column: str, values: Iterable[str]) -> dict[str, str]:
        """The names to show for the values of a column: masked, and different for different values."""
        known = list(dict.fromkeys(values))
        masked = dict(zip(known, self.mask_names(known), strict=True))
        shown = {value: name or UNKNOWN_NAMES.get(column, "unknown") for value, name in masked.items()}
        return number_duplicates(shown)

    def session_names(self, entries: Mapping[str, Entry]) -> dict[str, str]:
        """The titles of sessions, masked."""
        titles = [session_name(entry, lambda name: self.mask_names([name])[0]) for entry in entries.values()]
        return dict(zip(entries, self.mask_names(titles), strict=True))

    def row(self, used: UsageTotals, names: Row, group: Mapping[str, str]) -> TableRow:
        """A row of a table with the usage of a group."""
        return TableRow({**names, **used.as_row()}, self.sessions_url(group))


def sessions_url(base: Markup, masking: Masking) -> Callable[[Mapping[str, str]], Markup]:
    """Makes addresses of the sessions behind a figure: the address of a list of sessions, and a group."""
    begin = f"{base}{'&amp;' if '?' in base else '?'}"
    times = (*CLOCK_NAMES, *PERIODS)

    def url(group: Mapping[str, str]) -> Markup:
        values = {name: value if name in times else masking.reference(value) for name, value in group.items()}
        return Markup(begin + "&amp;".join(usage_parameter(name, value) for name, value in values.items()))

    return url


def format_share(share: float | None) -> str:
    """A share as a percentage."""
    return "unknown" if share is None else f"{share:.1%}"


def format_savings(nano: int | None) -> str:
    """Dollars saved; with a minus where the cache cost more than it saved."""
    if nano is None:
        return "unknown"
    return format_money(nano) if nano >= 0 else f"−{format_money(-nano)}"


class DailyUse(NamedTuple):
    """The average of the days of a range, with those without use, and the day with the most use."""

    measure: str
    days: int
    average: str
    peak: str
    peak_day: str
    url: str


def daily_use(source: UsageSource) -> DailyUse | None:
    """Cost by day, or tokens if no cost is known; None without use on a known day."""
    days: dict[str, list[Amounts]] = {}
    first, last = (day.isoformat() for day in source.days)
    # The chart over time asks for the same sums.
    for (day, _), used in source.stats.amounts_by("day", source.split).items():
        if first <= day <= last:
            days.setdefault(day, []).append(used)
    used_days = [used for found in days.values() for used in found]
    measure = next((each for each in MEASURES if any(each.amount(used) is not None for used in used_days)), None)
    if measure is None:
        return None
    peak = max(days, key=lambda day: (sum(map(measure.length, days[day])), day))
    count = (source.days[1] - source.days[0]).days + 1
    average = measure.format(used_days, count)
    return DailyUse(measure.title, count, average, measure.format(days[peak]), peak, source.sessions_url({"day": peak}))


def time_table(source: UsageSource) -> UsageTable:
    """The usage of each day, week or month and each model, project or agent."""
    step, split = source.step, source.split
    usage = source.stats.usage_by(step, split)
    names = source.names(split, (value for _, value in usage))
    rows = [
        source.row(used, {step: time or "unknown", split: names[value]}, {step: time, split: value})
        for (time, value), used in sorted(usage.items(), key=lambda item: item[0], reverse=True)
    ]
    return UsageTable((_name_column(step), _name_column(split), SESSIONS_COLUMN, *USAGE_COLUMNS), rows)


def name_table(source: UsageSource, by: str) -> UsageTable:
    """The usage of each project, agent or model, the highest cost first."""
    usage = {value: used for (value,), used in source.stats.usage_by(by).items()}
    names = source.names(by, usage)
    rows = [
        source.row(usage[value], {by: names[value]}, {by: value})
        for value in COST.order({value: [used] for value, used in usage.items()})
    ]
    return UsageTable((_name_column(by), SESSIONS_COLUMN, *USAGE_COLUMNS), rows)


def hour_table(source: UsageSource) -> UsageTable:
    """The usage in the hours of the week."""
    usage = {hour: used for hour, used in source.stats.usage_by("weekday", "hour").items() if hour[0]}
    groups = [
        {"weekday": weekday, "hour": hour}
        for weekday, hour in sorted(usage, key=lambda hour: (WEEKDAYS.index(hour[0]), hour[1]))
    ]
    rows = [source.row(usage[group["weekday"], group["hour"]], dict(group), group) for group in groups]
    return UsageTable((_name_column("weekday"), _name_column("hour"), SESSIONS_COLUMN, *USAGE_COLUMNS), rows)


class RankedSession(NamedTuple):
    """The length of the bar of a session, and the text beside it."""

    length: float
    text: str


def top_sessions(source: UsageSource) -> dict[str, dict[str, RankedSession]]:
    """The keys of the sessions with the highest cost, the most tokens and the longest duration, by what is ranked."""
    usage = {key: used for (key,), used in source.stats.amounts_by("session").items()}
    by_key = {key: [used] for key, used in usage.items()}
    found = {
        measure.title.lower(): {
            key: RankedSession(measure.length(usage[key]), measure.format([usage[key]]))
            for key in measure.order(by_key)[:MAX_RANKED]
            if measure.amount(usage[key]) is not None
        }
        for measure in MEASURES
    }
    times = source.stats.sessions_with_calls()
    longest = sorted(times, key=lambda key: (times[key]["duration_seconds"], key), reverse=True)[:MAX_RANKED]
    found["duration"] = {
        key: RankedSession(times[key]["duration_seconds"], _format_duration(times[key])) for key in longest
    }
    return found


def _format_duration(row: Row) -> str:
    total, active = (int(row[f"{name}_seconds"] * MICROSECONDS_PER_SECOND) for name in ("duration", "active"))
    return f"{format_duration(total) or '0 s'} · {format_duration(active) or '0 s'} active"


def session_table(source: UsageSource) -> UsageTable:
    """The sessions of all rankings, each once."""
    entries = source.find_entries(list(dict.fromkeys(key for found in top_sessions(source).values() for key in found)))
    usage, times = source.stats.usage_by("session"), source.stats.sessions_with_calls()
    titles = source.session_names(entries)
    projects = source.names("project", (entry.project for entry in entries.values()))
    rows = [
        TableRow(
            {
                "session": titles[key],
                "agent": entry.agent,
                "project": projects[entry.project],
                **usage[key,].as_row(),
                **{name: times[key][name] for name in ("duration_seconds", "active_seconds")},
            },
            session_url(entry),
        )
        for key, entry in entries.items()
    ]
    rows.sort(key=lambda row: -(row.values["cost_nano"] or 0))
    names = (_name_column("session"), _name_column("agent"), _name_column("project"))
    durations = (_seconds_column("duration_seconds", "Duration"), _seconds_column("active_seconds", "Active"))
    return UsageTable((*names, *durations, *USAGE_COLUMNS), rows)


def tool_table(source: UsageSource) -> UsageTable:
    """The calls and the errors of each tool."""
    found = source.stats.tool_errors()
    names = source.names("tool", (row["tool"] for row in found))
    rows = [TableRow({**row, "tool": names[row["tool"]]}, source.sessions_url({"tool": row["tool"]})) for row in found]
    columns = (
        _name_column("tool"),
        SESSIONS_COLUMN,
        _number_column("tool_calls", "Calls"),
        _number_column("errors", "Errors"),
        _share_column("error_rate", "Errors of calls"),
    )
    return UsageTable(columns, rows)


def cache_use(source: UsageSource) -> dict[str, Row]:
    """The share of input that each model read from its cache, and what that saved; the most read first."""
    usage = {model: used for (model,), used in source.stats.amounts_by("model").items()}
    savings = source.stats.cache_savings()
    names = source.names("model", usage)
    models = [model for model in usage if usage[model].cache_hit_rate is not None]
    models.sort(key=lambda model: (-(usage[model].cache_read_tokens or 0), model))
    found = {}
    for model in models:
        used, saved = usage[model], savings.get(model)
        found[model] = {
            "model": names[model],
            "input_tokens": used.input_tokens,
            "cache_read_tokens": used.cache_read_tokens,
            "cache_creation_tokens": used.cache_creation_tokens,
            "cache_hit_rate": used.cache_hit_rate,
            "saved": None if saved is None else saved / NANO_PER_DOLLAR,
            "saved_nano": saved,
        }
    return found


def cache_table(source: UsageSource) -> UsageTable:
    """What each model read from its cache, and what that saved."""
    rows = [TableRow(values, source.sessions_url({"model": model})) for model, values in cache_use(source).items()]
    columns = (
        _name_column("model"),
        _number_column("input_tokens", "Not cached"),
        _number_column("cache_read_tokens", "Cache read"),
        _number_column("cache_creation_tokens", "Cache written"),
        _share_column("cache_hit_rate", "Read from cache"),
        Column("saved", "Saved", lambda row: format_savings(row["saved_nano"])),
    )
    return UsageTable(columns, rows)


def kind_table(source: UsageSource) -> UsageTable:
    """The usage of sessions and of sub-agents."""
    usage = source.stats.usage_by_kind()
    rows = [source.row(used, {"kind": KIND_TITLES[kind]}, {"kind": kind}) for kind, used in usage.items() if used.calls]
    return UsageTable((_name_column("kind"), SESSIONS_COLUMN, *USAGE_COLUMNS), rows)
