"""Charts of usage with their tables, as the pages Usage and Home show them and as CSV has them.

Each chart states its range, links to the sessions behind each figure, and says where a cost is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from markupsafe import Markup

from clew.analysis.pricing import prices
from clew.catalog.local_days import WEEKDAYS
from clew.catalog.queries import Entry
from clew.catalog.stats import (
    CLOCK_NAMES,
    PERIODS,
    Row,
    Stats,
    UsageTotals,
    catalog_stats,
    number_duplicates,
    ratio,
)
from clew.render.tables import counted
from clew.web.charts import COLOURS, Bar, HourCell, Part, bars, hour_grid, ranked
from clew.web.context import AppContext, Masking
from clew.web.date_range import axis_slots
from clew.web.request import usage_parameter
from clew.web.templates import NANO_PER_DOLLAR, format_money, format_number, format_row_cost, session_name, session_url

MAX_RANKED = 10
"""Names in a ranking; all others are one more row."""
PLAIN_COLOUR, ERROR_COLOUR = COLOURS + 1, COLOURS + 2
"""Colours of what is not a model."""
MAX_NAMED_MODELS = 5
UNKNOWN_NAMES = {"model": "unknown model", "project": "no project", "tool": "unnamed tool"}
"""Words for a name that is not recorded."""

Cells = Mapping[tuple[str, ...], UsageTotals]
"""Usage by a first name, such as a day or a project, and by model."""


class Measure(NamedTuple):
    """What the length of a bar stands for."""

    title: str
    unit: str
    amount: Callable[[UsageTotals], int | None]
    scale: int
    format: Callable[[Sequence[UsageTotals]], str]

    def length(self, used: UsageTotals) -> float:
        """The length of a part of a bar; 0 where the amount is unknown."""
        return (self.amount(used) or 0) / self.scale


def _cost(used: UsageTotals) -> int | None:
    return used.cost_nano if used.priced_calls else None


def _tokens(used: UsageTotals) -> int | None:
    return used.total_tokens


def _format_costs(usages: Sequence[UsageTotals]) -> str:
    """The sum of costs; a lower bound if some are unknown."""
    known = [used.cost_nano for used in usages if used.priced_calls]
    if not known:
        return "unknown"
    return ("≥ " if any(used.cost_is_lower_bound for used in usages) else "") + format_money(sum(known))


def _format_tokens(usages: Sequence[UsageTotals]) -> str:
    known = [tokens for used in usages if (tokens := used.total_tokens) is not None]
    return format_number(sum(known)) if known else "unknown"


MEASURES = (
    Measure("Cost", "$", _cost, NANO_PER_DOLLAR, _format_costs),
    Measure("Tokens", "", _tokens, 1, _format_tokens),
)


class Column(NamedTuple):
    """A column of a table: its name in CSV, its heading, and the text of a cell."""

    name: str
    title: str
    format: Callable[[Row], str]
    is_number: bool = True


def _name_column(name: str, title: str) -> Column:
    return Column(name, title, lambda row: str(row[name]), is_number=False)


def _number_column(name: str, title: str) -> Column:
    return Column(name, title, lambda row: format_number(row[name]))


def _share_column(name: str, title: str) -> Column:
    return Column(name, title, lambda row: format_share(row[name]))


USAGE_COLUMNS = (
    _number_column("sessions_with_calls", "Sessions"),
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


class Figure(NamedTuple):
    """A drawing with its legend."""

    title: str
    drawing: Markup
    """Empty if no value is known."""
    legend: Sequence[tuple[int, str, str]] = ()
    """Number of the colour, name, sum."""


class Section(NamedTuple):
    """One or two figures, and the exact values of both as a table."""

    name: str
    """The value of the parameter `chart` of the CSV."""
    title: str
    caption: str
    """The range of time that all figures are of."""
    figures: Sequence[Figure]
    columns: Sequence[Column]
    rows: Sequence[TableRow]
    notes: Sequence[str] = ()
    left_out: int = 0
    """Rows that the CSV has, and the table has not."""

    def cell_texts(self, row: TableRow) -> list[tuple[str, bool]]:
        """The texts of a row of the table, and whether each is a number."""
        return [(column.format(row.values), column.is_number) for column in self.columns]

    def csv_rows(self) -> list[Row]:
        """The exact values of the table by the names of columns."""
        names = [column.name for column in self.columns]
        names += [AT_LEAST] if "cost" in names else []
        return [{name: row.values[name] for name in names} for row in self.rows]


class ChartSource(NamedTuple):
    """What charts are drawn from."""

    stats: Stats
    colours: Mapping[str, int]
    """The number of the colour of each model that has one."""
    mask_names: Callable[[list[str]], list[str]]
    sessions_url: Callable[[Mapping[str, str]], str]
    """The address of the sessions with calls in a group, as `Stats.session_keys` finds them."""
    days: tuple[date, date]
    """The first and the last day of an axis of time."""
    caption: str
    max_rows: int | None = None
    """Rows of a table; None for all."""

    def names(self, kind: str, values: Iterable[str]) -> dict[str, str]:
        """The names to show for the values of a column: masked, and different for different values."""
        known = list(dict.fromkeys(values))
        masked = dict(zip(known, self.mask_names(known), strict=True))
        shown = {value: name or UNKNOWN_NAMES.get(kind, "unknown") for value, name in masked.items()}
        return number_duplicates(shown)

    def mask_name(self, name: str) -> str:
        """Mask one name."""
        return self.mask_names([name])[0]

    def colour(self, model: str) -> int:
        """The number of the colour of a model."""
        return self.colours.get(model, COLOURS)

    def row(self, used: UsageTotals, names: Row, group: Mapping[str, str]) -> TableRow:
        """A row of a table with the usage of a group."""
        return TableRow({**names, **used.as_row()}, self.sessions_url(group))


def colours_of_models(usage: Mapping[str, UsageTotals]) -> dict[str, int]:
    """Number the models by their larger share, of tokens or of cost, in the whole catalog; those with a colour."""
    shares: dict[str, float] = dict.fromkeys(usage, 0.0)
    for measure in MEASURES:
        amounts = {model: measure.amount(used) or 0 for model, used in usage.items()}
        total = sum(amounts.values()) or 1
        shares = {model: max(share, amounts[model] / total) for model, share in shares.items()}
    ordered = sorted(shares, key=lambda model: (-shares[model], model))
    return {model: number for number, model in enumerate(ordered[:COLOURS])}


def model_colours(context: AppContext) -> Mapping[str, int]:
    """The numbers of the colours of models: one colour for a model on all pages."""

    def compute() -> dict[str, int]:
        usage = catalog_stats(context.db).usage_by("model")
        return colours_of_models({model: used for (model,), used in usage.items()})

    return context.cached("model colours", compute)


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


def over_time(source: ChartSource, step: str, cells: Cells) -> Section:
    """Cost and tokens of each day, week or month by model, with a slot for those without use."""
    slots = dict.fromkeys(axis_slots(step, *source.days))
    models = source.names("model", (model for _, model in _in_colour_order(source, cells)))
    on_axis = {cell: used for cell, used in cells.items() if cell[0] in slots}
    figures = []
    for measure in MEASURES:
        title = f"{measure.title} by {step} and model"
        drawn = [_time_bar(source, measure, step, slot, on_axis, models) for slot in slots]
        is_known = any(measure.amount(used) is not None for used in on_axis.values())
        label = f"{title}, {source.caption}"
        drawing = bars(drawn, label, measure.unit) if is_known else Markup("")
        figures.append(Figure(title, drawing, _legend(source, measure, on_axis, models)))
    rows = [
        source.row(used, {step: name or "unknown", "model": models[model]}, {step: name, "model": model})
        for (name, model), used in sorted(cells.items(), key=lambda item: item[0], reverse=True)[: source.max_rows]
    ]
    columns = (_name_column(step, step.capitalize()), _name_column("model", "Model"), *USAGE_COLUMNS)
    notes = [*_price_notes(source, on_axis), *_off_axis_notes(step, cells, on_axis)]
    left_out = len(cells) - len(rows)
    return Section("time", "Over time", source.caption, figures, columns, rows, notes, left_out)


def _in_colour_order(source: ChartSource, cells: Cells) -> list[tuple[str, ...]]:
    return sorted(cells, key=lambda cell: (source.colour(cell[1]), cell[1], cell[0]))


def _time_bar(
    source: ChartSource, measure: Measure, step: str, slot: str, cells: Cells, models: Mapping[str, str]
) -> Bar:
    used = {model: cells[slot, model] for model in models if (slot, model) in cells}
    if not used:
        return Bar(slot, ())
    parts = _parts(source, measure, used)
    texts = [f"{models[model]} {measure.format([each])}" for model, each in used.items()]
    text = texts[0] if len(texts) == 1 else f"{measure.format(list(used.values()))} ({', '.join(texts)})"
    return Bar(slot, parts, text, source.sessions_url({step: slot}))


def _parts(source: ChartSource, measure: Measure, usage: Mapping[str, UsageTotals]) -> list[Part]:
    """The parts of a bar by model; models without a colour of their own are one part."""
    lengths: dict[int, float] = {}
    for model, used in usage.items():
        if length := measure.length(used):
            colour = source.colour(model)
            lengths[colour] = lengths.get(colour, 0.0) + length
    return [Part(colour, length) for colour, length in sorted(lengths.items())]


def _legend(
    source: ChartSource, measure: Measure, cells: Cells, models: Mapping[str, str]
) -> list[tuple[int, str, str]]:
    """The models in the order of their colours; those without a colour of their own are one entry."""
    by_colour: dict[int, dict[str, list[UsageTotals]]] = {}
    for (_, model), used in cells.items():
        by_colour.setdefault(source.colour(model), {}).setdefault(model, []).append(used)
    legend = []
    for colour, found in sorted(by_colour.items()):
        name = models[next(iter(found))] if len(found) == 1 else f"{len(found)} other models"
        legend.append((colour, name, measure.format([used for usages in found.values() for used in usages])))
    return legend


def _price_notes(source: ChartSource, cells: Cells) -> list[str]:
    """Which models make the costs of a chart lower bounds; the last name of a cell is its model."""
    incomplete = {cell[-1] for cell, used in cells.items() if used.cost_is_lower_bound}
    if not incomplete:
        return []
    table = prices()
    unpriced = sorted(model for model in incomplete if table.price(model) is None)
    notes = []
    if unpriced:
        notes.append(f"No price is known for {_listed(source, unpriced)}: costs leave out these calls.")
    if len(unpriced) < len(incomplete):
        others = sorted(incomplete.difference(unpriced))
        notes.append(f"Some calls of {_listed(source, others)} record no tokens: costs leave out these calls.")
    return notes


def _listed(source: ChartSource, models: Sequence[str]) -> str:
    names = list(source.names("model", models).values())
    more = len(names) - MAX_NAMED_MODELS
    return ", ".join(names[:MAX_NAMED_MODELS]) + (f" and {more} more" if more > 0 else "")


def _off_axis_notes(step: str, cells: Cells, on_axis: Cells) -> list[str]:
    """How many calls a chart over time does not show, because their time is unknown or outside of its axis."""
    timeless = sum(used.calls for (name, _), used in cells.items() if not name)
    outside = sum(used.calls for (name, model), used in cells.items() if name and (name, model) not in on_axis)
    notes = []
    if timeless:
        notes.append(f"In the table only: {counted(timeless, 'call')} without a known time.")
    if outside:
        notes.append(f"In the table only: {counted(outside, 'call')} of {step}s outside of the axis.")
    return notes


def by_name(source: ChartSource, by: str, usage: Mapping[str, UsageTotals], cells: Cells) -> Section:
    """Cost and tokens of the largest projects, agents or models, with a part for each model."""
    names = source.names(by, usage)
    models = source.names("model", (model for _, model in _in_colour_order(source, cells)))
    figures = []
    for measure in MEASURES:
        title = f"{measure.title} by {by}"
        drawing = ranked(_ranked_bars(source, measure, by, usage, cells, names))
        legend = _legend(source, measure, cells, models) if by != "model" else []
        figures.append(Figure(title, drawing, legend))
    ordered = _by_size(MEASURES[0], usage)[: source.max_rows]
    rows = [source.row(usage[value], {by: names[value]}, {by: value}) for value in ordered]
    columns = (_name_column(by, by.capitalize()), *USAGE_COLUMNS)
    notes = _price_notes(source, cells)
    return Section(by, f"By {by}", source.caption, figures, columns, rows, notes, len(usage) - len(rows))


def _by_size(measure: Measure, usage: Mapping[str, UsageTotals]) -> list[str]:
    """The largest first; those whose amount is unknown last."""

    def size(value: str) -> tuple[int, str]:
        amount = measure.amount(usage[value])
        return -1 if amount is None else amount, value

    return sorted(usage, key=size, reverse=True)


def _ranked_bars(
    source: ChartSource,
    measure: Measure,
    by: str,
    usage: Mapping[str, UsageTotals],
    cells: Cells,
    names: Mapping[str, str],
) -> list[Bar]:
    by_model: dict[str, dict[str, UsageTotals]] = {}
    for value, model in _in_colour_order(source, cells):
        by_model.setdefault(value, {})[model] = cells[value, model]
    ordered = _by_size(measure, usage)
    # A row for the others takes as much room as one of them.
    shown = ordered if len(ordered) <= MAX_RANKED + 1 else ordered[:MAX_RANKED]
    found = [
        Bar(
            names[value],
            _parts(source, measure, by_model.get(value, {})),
            measure.format([usage[value]]),
            source.sessions_url({by: value}),
        )
        for value in shown
    ]
    if others := [usage[value] for value in ordered[len(shown) :]]:
        length = sum(map(measure.length, others))
        found.append(Bar(f"{len(others)} other {by}s", [Part(PLAIN_COLOUR, length)], measure.format(others)))
    return found


def by_hour(source: ChartSource) -> Section:
    """Cost and tokens in the hours of the week."""
    usage = {cell: used for cell, used in source.stats.usage_by("weekday", "hour").items() if cell[0]}
    urls = {cell: source.sessions_url({"weekday": cell[0], "hour": cell[1]}) for cell in usage}
    figures, notes = (
        [],
        ["Hours of the local clock. Shades end at 1/16, 1/4, 9/16 and all of the largest; ?: unknown."],
    )
    for measure in MEASURES:
        title = f"{measure.title} by weekday and hour"
        cells = {}
        for cell, used in usage.items():
            amount, text = measure.amount(used), measure.format([used])
            value = None if amount is None else amount / measure.scale
            cells[cell] = HourCell(value, f"{text}, {used.calls:,} calls", urls[cell])
        is_known = any(cell.value is not None for cell in cells.values())
        drawing = hour_grid(cells, f"{title}, {source.caption}") if is_known else Markup("")
        figures.append(Figure(title, drawing))
        if is_known:
            (weekday, hour), most = max(cells.items(), key=lambda item: item[1].value or 0)
            notes.append(f"Most {measure.title.lower()}: {weekday} {hour}:00 to {hour}:59, {most.text}.")
    ordered = sorted(usage, key=lambda cell: (WEEKDAYS.index(cell[0]), cell[1]))
    rows = [
        TableRow({"weekday": weekday, "hour": hour, **usage[weekday, hour].as_row()}, urls[weekday, hour])
        for weekday, hour in ordered
    ]
    columns = (_name_column("weekday", "Weekday"), _name_column("hour", "Hour"), *USAGE_COLUMNS)
    notes += _price_notes(source, source.stats.usage_by("model"))
    return Section("hour", "By weekday and hour", source.caption, figures, columns, rows, notes)


def top_sessions(source: ChartSource, find_entries: Callable[[Sequence[str]], Mapping[str, Entry]]) -> Section:
    """The sessions with the highest cost and with the most tokens; sub-agents count by themselves."""
    usage = {key: used for (key,), used in source.stats.usage_by("session").items()}
    largest = {measure: _by_size(measure, usage)[:MAX_RANKED] for measure in MEASURES}
    keys = list(dict.fromkeys(key for found in largest.values() for key in found))
    entries = find_entries(keys)
    keys = [key for key in keys if key in entries]
    titles = source.mask_names([session_name(entries[key], source.mask_name) for key in keys])
    names = dict(zip(keys, titles, strict=True))
    figures = []
    for measure in MEASURES:
        found = [
            Bar(
                f"{names[key]}{' (sub-agent)' if entries[key].is_subagent else ''}",
                [Part(PLAIN_COLOUR, measure.length(usage[key]))],
                measure.format([usage[key]]),
                session_url(entries[key]),
            )
            for key in largest[measure]
            if key in names and measure.amount(usage[key]) is not None
        ]
        figures.append(Figure(f"Sessions by {measure.title.lower()}", ranked(found)))
    projects = source.names("project", (entries[key].project for key in keys))
    rows = [
        TableRow(
            {
                "session": names[key],
                "agent": entries[key].agent,
                "project": projects[entries[key].project],
                **usage[key].as_row(),
            },
            session_url(entries[key]),
        )
        for key in keys
    ]
    names_of_columns = {"session": "Session", "agent": "Agent", "project": "Project"}
    columns = (*(_name_column(name, title) for name, title in names_of_columns.items()), *USAGE_COLUMNS[1:])
    notes = ["Usage inside of this range; a sub-agent counts by itself."]
    notes += _price_notes(source, source.stats.usage_by("model"))
    return Section("session", "Top sessions", source.caption, figures, columns, rows, notes)


def tool_use(source: ChartSource) -> Section:
    """The calls and the errors of each tool."""
    found = source.stats.tool_errors()
    names = source.names("tool", (row["tool"] for row in found))
    drawn = [
        Bar(
            names[row["tool"]],
            [
                Part(PLAIN_COLOUR, float(row["tool_calls"] - row["errors"])),
                Part(ERROR_COLOUR, float(row["errors"])),
            ],
            f"{row['tool_calls']:,} · {format_share(row['error_rate'])} errors",
            source.sessions_url({"tool": row["tool"]}),
        )
        for row in found[: MAX_RANKED if len(found) > MAX_RANKED + 1 else None]
    ]
    if others := found[len(drawn) :]:
        calls, errors = (sum(row[name] for row in others) for name in ("tool_calls", "errors"))
        parts = [Part(PLAIN_COLOUR, float(calls - errors)), Part(ERROR_COLOUR, float(errors))]
        text = f"{calls:,} · {format_share(ratio(errors, calls))} errors"
        drawn.append(Bar(f"{len(others)} other tools", parts, text))
    rows = [TableRow({**row, "tool": names[row["tool"]]}, source.sessions_url({"tool": row["tool"]})) for row in found]
    columns = (
        _name_column("tool", "Tool"),
        _number_column("sessions_with_calls", "Sessions"),
        _number_column("tool_calls", "Calls"),
        _number_column("errors", "Errors"),
        _share_column("error_rate", "Errors of calls"),
    )
    legend = [(PLAIN_COLOUR, "without error", ""), (ERROR_COLOUR, "with error", "")]
    figures = [Figure("Tool calls and errors", ranked(drawn), legend if drawn else [])]
    return Section("tool", "Tools", source.caption, figures, columns, rows)


def cache_use(source: ChartSource) -> Section:
    """The share of input that was read from caches, and what that saved, for each model."""
    usage = {model: used for (model,), used in source.stats.usage_by("model").items()}
    saved = source.stats.cache_savings()
    names = source.names("model", usage)
    values: dict[str, Row] = {}
    for model, used in usage.items():
        row = used.as_row()
        if row["cache_hit_rate"] is not None:
            cost = saved.get(model)
            dollars = None if cost is None else cost / NANO_PER_DOLLAR
            values[model] = {"model": names[model], **row, "saved": dollars, "saved_nano": cost}
    ordered = sorted(values, key=lambda model: (-(values[model]["cache_read_tokens"] or 0), model))
    urls = {model: source.sessions_url({"model": model}) for model in ordered}
    shares = [
        Bar(
            names[model],
            [Part(source.colour(model), values[model]["cache_hit_rate"])],
            format_share(values[model]["cache_hit_rate"]),
            urls[model],
        )
        for model in ordered
    ]
    savings = [
        Bar(
            names[model],
            [Part(source.colour(model), max(0, saved[model] or 0) / NANO_PER_DOLLAR)],
            format_savings(saved[model]),
            urls[model],
        )
        for model in sorted(ordered, key=lambda model: -(saved.get(model) or 0))
        if saved.get(model) is not None
    ]
    columns = (
        _name_column("model", "Model"),
        _number_column("input_tokens", "Not cached"),
        _number_column("cache_read_tokens", "Cache read"),
        _number_column("cache_creation_tokens", "Cache written"),
        _share_column("cache_hit_rate", "Read from cache"),
        Column("saved", "Saved", lambda row: format_savings(row["saved_nano"])),
    )
    figures = [
        Figure("Share of input read from the cache", ranked(shares[:MAX_RANKED], maximum=1.0)),
        Figure("Saved by the cache", ranked(savings[:MAX_RANKED])),
    ]
    rows = [TableRow(values[model], urls[model]) for model in ordered]
    notes = _cache_notes(source, saved)
    if len(ordered) > MAX_RANKED:
        notes.append(f"The {MAX_RANKED} models that read most from the cache; the table has all {len(ordered)}.")
    return Section("cache", "Cache", source.caption, figures, columns, rows, notes)


def _cache_notes(source: ChartSource, saved: Mapping[str, int | None]) -> list[str]:
    notes = [
        "Input: tokens that were not cached, read from the cache, or written to it. Saved: what the tokens read and"
        f" written would have cost as plain input, less what they did cost, by the prices of {prices().date}."
    ]
    table = prices()
    tiered = sorted(model for model, cost in saved.items() if cost is None and table.price(model) is not None)
    unpriced = sorted(model for model, cost in saved.items() if cost is None and table.price(model) is None)
    if tiered:
        notes.append(f"Not computed for {_listed(source, tiered)}: the price depends on the length of each call.")
    if unpriced:
        notes.append(f"Not computed for {_listed(source, unpriced)}: no price is known.")
    return notes


def format_savings(nano: int | None) -> str:
    """Dollars saved; with a minus where the cache cost more than it saved."""
    if nano is None:
        return "unknown"
    return format_money(nano) if nano >= 0 else f"−{format_money(-nano)}"


def subagent_share(source: ChartSource) -> Section:
    """The parts of cost and tokens that sub-agents have."""
    usage = source.stats.usage_by_kind()
    titles = {"sessions": "Sessions", "subagents": "Sub-agents"}
    figures = []
    for measure in MEASURES:
        total = sum(measure.amount(used) or 0 for used in usage.values())
        found = [
            Bar(
                titles[kind],
                [Part(PLAIN_COLOUR, measure.length(used))],
                f"{measure.format([used])} · {format_share(ratio(measure.amount(used), total))}",
                source.sessions_url({"kind": kind}),
            )
            for kind, used in usage.items()
            if used.calls
        ]
        drawing = ranked(found) if total else Markup("")
        figures.append(Figure(f"{measure.title} of sessions and sub-agents", drawing))
    rows = [source.row(used, {"kind": titles[kind]}, {"kind": kind}) for kind, used in usage.items() if used.calls]
    columns = (_name_column("kind", "Kind"), *USAGE_COLUMNS)
    notes = ["A sub-agent whose records are in the file of its session counts for the session."]
    notes += _price_notes(source, source.stats.usage_by("model"))
    return Section("subagents", "Sub-agents", source.caption, figures, columns, rows, notes)
