"""Charts of usage, as the pages Usage and Home show them.

Each chart states its range, links to the sessions behind each figure, and says where a cost is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from clew.analysis.pricing import prices
from clew.catalog.stats import Amounts, catalog_stats, ratio
from clew.render.tables import counted
from clew.web.charts import (
    COLOURS,
    ERROR_COLOUR,
    OTHER_COLOUR,
    PLAIN_COLOUR,
    Bar,
    BarPart,
    HourCell,
    bars,
    hour_grid,
    ranked,
)
from clew.web.context import AppContext
from clew.web.date_range import axis_slots
from clew.web.templates import NANO_PER_DOLLAR, session_url
from clew.web.usage_tables import (
    KIND_TITLES,
    MAX_RANKED,
    MEASURES,
    Measure,
    TableRow,
    UsageSource,
    cache_use,
    format_savings,
    format_share,
    tool_table,
    top_sessions,
)

MAX_NAMED_MODELS = 5

AmountsByPair = Mapping[tuple[str, ...], Amounts]
"""Amounts by a first name, such as a day or a project, and by the name that has a colour, such as a model."""


class Figure(NamedTuple):
    """A drawing with its legend."""

    title: str
    drawing: Markup
    """Empty if no value is known."""
    legend: Sequence[tuple[int, str, str]] = ()
    """Number of the colour, name, sum."""


class ChartSection(NamedTuple):
    """The figures of a subject, which a table has the exact values of."""

    name: str
    """The value of the parameter `chart` of the table and of its CSV."""
    title: str
    caption: str
    """The range of time that all figures are of."""
    figures: Sequence[Figure]
    has_values: bool
    notes: Sequence[str] = ()


def rank_colours(usage: Mapping[str, Amounts]) -> dict[str, int]:
    """Number the names with the largest shares, of tokens or of cost; as many as there are colours."""
    shares: dict[str, float] = dict.fromkeys(usage, 0.0)
    for measure in MEASURES:
        amounts = {name: measure.amount(used) or 0 for name, used in usage.items()}
        total = sum(amounts.values()) or 1
        shares = {name: max(share, amounts[name] / total) for name, share in shares.items()}
    ordered = sorted(shares, key=lambda name: (-shares[name], name))
    return {name: number for number, name in enumerate(ordered[:COLOURS])}


def catalog_colours(context: AppContext, column: str) -> Mapping[str, int]:
    """The numbers of the colours of models, projects or agents, by their use in the whole catalog: one on all pages."""

    def compute() -> dict[str, int]:
        usage = catalog_stats(context.db).amounts_by(column)
        return rank_colours({name: used for (name,), used in usage.items()})

    return context.cached(f"colours by {column}", compute)


def over_time(source: UsageSource, cells: AmountsByPair) -> ChartSection:
    """Cost and tokens of each day, week or month by model, project or agent, with a slot for those without use."""
    step, split = source.step, source.split
    slots = dict.fromkeys(axis_slots(step, *source.days))
    colours = source.colours(split)
    names = source.names(split, (value for _, value in _in_colour_order(colours, cells)))
    on_axis = {cell: used for cell, used in cells.items() if cell[0] in slots}
    by_slot: dict[str, dict[str, Amounts]] = {slot: {} for slot in slots}
    for slot, value in _in_colour_order(colours, on_axis):
        by_slot[slot][value] = on_axis[slot, value]
    figures = []
    for measure in MEASURES:
        title = f"{measure.title} by {step} and {split}"
        drawn = []
        for slot, used in by_slot.items():
            url = source.sessions_url({step: slot}) if used else ""
            drawn.append(Bar(slot, _parts(colours, measure, used), _describe_parts(measure, used, names), url))
        is_known = any(measure.amount(used) is not None for used in on_axis.values())
        drawing = bars(drawn, f"{title}, {source.caption}", measure.unit) if is_known else Markup("")
        figures.append(Figure(title, drawing, _legend(colours, measure, split, on_axis, names)))
    by_model = on_axis if split == "model" else source.stats.amounts_by("model")
    notes = [*_price_notes(source, by_model), *_off_axis_notes(step, cells, on_axis)]
    return ChartSection("time", "Over time", source.caption, figures, bool(cells), notes)


def _in_colour_order(colours: Mapping[str, int], cells: AmountsByPair) -> list[tuple[str, ...]]:
    return sorted(cells, key=lambda cell: (colours.get(cell[1], OTHER_COLOUR), cell[1], cell[0]))


def _describe_parts(measure: Measure, usage: Mapping[str, Amounts], names: Mapping[str, str]) -> str:
    texts = [f"{names[value]} {measure.format([used])}" for value, used in usage.items()]
    return ", ".join(texts) if len(texts) < 2 else f"{measure.format(usage.values())} ({', '.join(texts)})"


def _parts(colours: Mapping[str, int], measure: Measure, usage: Mapping[str, Amounts]) -> list[BarPart]:
    """The parts of a bar; names without a colour of their own are one part."""
    lengths: dict[int, float] = {}
    for value, used in usage.items():
        if length := measure.length(used):
            colour = colours.get(value, OTHER_COLOUR)
            lengths[colour] = lengths.get(colour, 0.0) + length
    return [BarPart(colour, length) for colour, length in sorted(lengths.items())]


def _legend(
    colours: Mapping[str, int], measure: Measure, split: str, cells: AmountsByPair, names: Mapping[str, str]
) -> list[tuple[int, str, str]]:
    """The names in the order of their colours; those without a colour of their own are one entry."""
    by_colour: dict[int, dict[str, list[Amounts]]] = {}
    for (_, value), used in cells.items():
        by_colour.setdefault(colours.get(value, OTHER_COLOUR), {}).setdefault(value, []).append(used)
    legend = []
    for colour, found in sorted(by_colour.items()):
        name = names[next(iter(found))] if len(found) == 1 else f"{len(found)} other {split}s"
        legend.append((colour, name, measure.format(used for usages in found.values() for used in usages)))
    return legend


def _price_notes(source: UsageSource, usage: Mapping[tuple[str, ...], Amounts]) -> list[str]:
    """Which models make the costs of a chart lower bounds; the last name of a group is its model."""
    incomplete = {group[-1] for group, used in usage.items() if used.cost_is_lower_bound}
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


def _listed(source: UsageSource, models: Sequence[str]) -> str:
    names = list(source.names("model", models).values())
    more = len(names) - MAX_NAMED_MODELS
    return ", ".join(names[:MAX_NAMED_MODELS]) + (f" and {more} more" if more > 0 else "")


def _off_axis_notes(step: str, cells: AmountsByPair, on_axis: AmountsByPair) -> list[str]:
    """How many calls a chart over time does not show, because their time is unknown or outside of its axis."""
    timeless = sum(used.calls for cell, used in cells.items() if not cell[0])
    outside = sum(used.calls for cell, used in cells.items() if cell[0] and cell not in on_axis)
    notes = []
    if timeless:
        notes.append(f"In the table only: {counted(timeless, 'call')} without a known time.")
    if outside:
        notes.append(f"In the table only: {counted(outside, 'call')} of {step}s outside of the axis.")
    return notes


def by_name(source: UsageSource, by: str) -> ChartSection:
    """Cost and tokens of the largest projects, agents or models, with a part for each model."""
    by_model: dict[str, dict[str, Amounts]] = {}
    colours = source.colours("model")
    found = source.stats.amounts_by(*dict.fromkeys((by, "model")))
    pairs: AmountsByPair = {(group[0], group[-1]): used for group, used in found.items()}
    for value, model in _in_colour_order(colours, pairs):
        by_model.setdefault(value, {})[model] = pairs[value, model]
    names = source.names(by, by_model)
    models = source.names("model", (model for used in by_model.values() for model in used))
    figures = []
    for measure in MEASURES:
        legend = _legend(colours, measure, "model", pairs, models) if by != "model" else []
        drawing = ranked(_ranked_bars(source, measure, by, by_model, names))
        figures.append(Figure(f"{measure.title} by {by}", drawing, legend))
    return ChartSection(by, f"By {by}", source.caption, figures, bool(pairs), _price_notes(source, pairs))


def _ranked_bars(
    source: UsageSource,
    measure: Measure,
    by: str,
    by_model: Mapping[str, Mapping[str, Amounts]],
    names: Mapping[str, str],
) -> list[Bar]:
    colours = source.colours("model")
    ordered = measure.order({value: used.values() for value, used in by_model.items()})
    found = [
        Bar(
            names[value],
            _parts(colours, measure, by_model[value]),
            measure.format(by_model[value].values()),
            source.sessions_url({by: value}),
        )
        for value in ordered[: _ranked_count(ordered)]
    ]
    if others := [used for value in ordered[len(found) :] for used in by_model[value].values()]:
        part = BarPart(PLAIN_COLOUR, sum(map(measure.length, others)))
        found.append(Bar(f"{len(ordered) - len(found)} other {by}s", [part], measure.format(others)))
    return found


def _ranked_count(ordered: Sequence[object]) -> int:
    """How many rows of a ranking are shown; a row for the others takes as much room as one of them."""
    return len(ordered) if len(ordered) <= MAX_RANKED + 1 else MAX_RANKED


def by_hour(source: UsageSource) -> ChartSection:
    """Cost and tokens in the hours of the week."""
    usage = {cell: used for cell, used in source.stats.amounts_by("weekday", "hour").items() if cell[0]}
    urls = {cell: source.sessions_url({"weekday": cell[0], "hour": cell[1]}) for cell in usage}
    notes = ["Hours of the local clock. Shades end at 1/16, 1/4, 9/16 and all of the largest; ?: unknown."]
    figures = []
    for measure in MEASURES:
        title = f"{measure.title} by weekday and hour"
        cells = {}
        for cell, used in usage.items():
            value = None if measure.amount(used) is None else measure.length(used)
            cells[cell] = HourCell(value, f"{measure.format([used])}, {used.calls:,} calls", urls[cell])
        is_known = any(cell.value is not None for cell in cells.values())
        drawing = hour_grid(cells, f"{title}, {source.caption}") if is_known else Markup("")
        figures.append(Figure(title, drawing))
        if is_known:
            (weekday, hour), most = max(cells.items(), key=lambda item: item[1].value or 0)
            notes.append(f"Most {measure.title.lower()}: {weekday} {hour}:00 to {hour}:59, {most.text}.")
    notes += _price_notes(source, source.stats.amounts_by("model"))
    return ChartSection("hour", "By weekday and hour", source.caption, figures, bool(usage), notes)


def by_session(source: UsageSource) -> ChartSection:
    """The sessions with the highest cost, the most tokens and the longest duration."""
    rankings = top_sessions(source)
    entries = source.find_entries([key for found in rankings.values() for key in found])
    names = source.session_names(entries)
    figures = []
    for title, found in rankings.items():
        drawn = [
            Bar(
                f"{names[key]}{' (sub-agent)' if entries[key].is_subagent else ''}",
                [BarPart(PLAIN_COLOUR, session.length)],
                session.text,
                session_url(entries[key]),
            )
            for key, session in found.items()
            if key in entries
        ]
        figures.append(Figure(f"Sessions by {title}", ranked(drawn)))
    notes = ["Cost and tokens inside of this range, durations of whole sessions; a sub-agent counts by itself."]
    notes += _price_notes(source, source.stats.amounts_by("model"))
    return ChartSection("session", "Top sessions", source.caption, figures, bool(entries), notes)


def by_tool(source: UsageSource) -> ChartSection:
    """The calls and the errors of each tool."""
    rows = tool_table(source).rows
    shown = rows[: _ranked_count(rows)]
    drawn = [_tool_bar(row.values["tool"], [row], row.url) for row in shown]
    if others := rows[len(shown) :]:
        drawn.append(_tool_bar(f"{len(others)} other tools", others, ""))
    legend = [(PLAIN_COLOUR, "without error", ""), (ERROR_COLOUR, "with error", "")]
    figures = [Figure("Tool calls and errors", ranked(drawn), legend if drawn else [])]
    return ChartSection("tool", "Tools", source.caption, figures, bool(rows))


def _tool_bar(name: str, rows: Sequence[TableRow], url: str) -> Bar:
    calls, errors = (sum(row.values[column] for row in rows) for column in ("tool_calls", "errors"))
    parts = [BarPart(PLAIN_COLOUR, float(calls - errors)), BarPart(ERROR_COLOUR, float(errors))]
    return Bar(name, parts, f"{calls:,} · {format_share(ratio(errors, calls))} errors", url)


def by_cache(source: UsageSource) -> ChartSection:
    """The share of input that was read from caches, and what that saved, for each model."""
    found = cache_use(source)
    saved = {model: row["saved_nano"] for model, row in found.items() if row["saved_nano"] is not None}

    def bar(model: str, length: float, text: str) -> Bar:
        part = BarPart(source.colours("model").get(model, OTHER_COLOUR), length)
        return Bar(found[model]["model"], [part], text, source.sessions_url({"model": model}))

    shares = [bar(model, row["cache_hit_rate"], format_share(row["cache_hit_rate"])) for model, row in found.items()]
    savings = [
        bar(model, max(0, saved[model]) / NANO_PER_DOLLAR, format_savings(saved[model]))
        for model in sorted(saved, key=lambda model: -saved[model])
    ]
    figures = [
        Figure("Share of input read from the cache", ranked(shares[:MAX_RANKED], maximum=1.0)),
        Figure("Saved by the cache", ranked(savings[:MAX_RANKED])),
    ]
    notes = _cache_notes(source)
    if len(found) > MAX_RANKED:
        notes.append(f"The {MAX_RANKED} models that read most from the cache; the table has all {len(found)}.")
    return ChartSection("cache", "Cache", source.caption, figures, bool(found), notes)


def _cache_notes(source: UsageSource) -> list[str]:
    notes = [
        "Input: tokens that were not cached, read from the cache, or written to it. Saved: what the tokens read and"
        f" written would have cost as plain input, less what they did cost, by the prices of {prices().date}."
    ]
    table = prices()
    unknown = sorted(model for model, saved in source.stats.cache_savings().items() if saved is None)
    tiered = [model for model in unknown if table.price(model) is not None]
    unpriced = [model for model in unknown if table.price(model) is None]
    if tiered:
        notes.append(f"Not computed for {_listed(source, tiered)}: the price depends on the length of each call.")
    if unpriced:
        notes.append(f"Not computed for {_listed(source, unpriced)}: no price is known.")
    return notes


def by_kind(source: UsageSource) -> ChartSection:
    """The parts of cost and tokens that sub-agents have."""
    usage = {kind: used for kind, used in source.stats.usage_by_kind().items() if used.calls}
    figures = []
    for measure in MEASURES:
        total = sum(measure.amount(used) or 0 for used in usage.values())
        found = [
            Bar(
                KIND_TITLES[kind],
                [BarPart(PLAIN_COLOUR, measure.length(used))],
                f"{measure.format([used])} · {format_share(ratio(measure.amount(used), total))}",
                source.sessions_url({"kind": kind}),
            )
            for kind, used in usage.items()
        ]
        drawing = ranked(found) if total else Markup("")
        figures.append(Figure(f"{measure.title} of sessions and sub-agents", drawing))
    notes = ["A sub-agent whose records are in the file of its session counts for the session."]
    notes += _price_notes(source, source.stats.amounts_by("model"))
    return ChartSection("subagents", "Sub-agents", source.caption, figures, bool(usage), notes)
