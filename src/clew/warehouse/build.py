"""From the catalog's rows of one source to Arrow. Rows that are complete become Arrow as they come; a call waits for
its result, and what depends on the whole session for its end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from clew.analysis.pricing import PriceTable
from clew.catalog.ids import session_key
from clew.catalog.ingest import Ingested
from clew.catalog.rows import Rows
from clew.catalog.schema import DAY, day_row
from clew.warehouse.columns import COUNTS, RATES, TABLES, Table
from clew.warehouse.privacy import Words

_TYPES = {"int": pa.int64(), "str": pa.string()}
_LATER = frozenset({"batch", "session_id", "agent", "project"})
"""Columns that hold one value for the whole batch."""
_HIDDEN = re.compile(r"[/\\]\.")
"""Agents keep their files below a hidden folder of a home."""
Row = tuple[Any, ...]
Columns = dict[str, Sequence[Any]]


def schema_of(table: Table) -> pa.Schema:
    """A table's columns as Arrow has them."""
    return pa.schema([(column.name, _TYPES[column.type]) for column in table.columns])


SCHEMAS = {name: schema_of(table) for name, table in TABLES.items()}


class Builder:
    """The tables of one source. `prices` tell what a call costs, `words` what may leave."""

    def __init__(self, words: Words, prices: PriceTable) -> None:
        self._words, self._prices = words, prices
        self._days: dict[int, tuple[int, str, str, str]] = {}
        self.clear()

    def clear(self) -> None:
        """Forget what was added: the source is read another way."""
        self._parts: dict[str, list[pa.RecordBatch]] = {name: [] for name in TABLES}
        self._events: list[str] = [""]
        self._times: list[int] = [0]
        self._calls: list[list[Any]] = []
        self._call_at: dict[int, int] = {}

    def add(self, rows: Rows) -> None:
        """The next rows of the source."""
        self._messages(rows.messages)
        self._blocks(rows)
        for row in rows.calls:
            self._call_at[row[0]] = len(self._calls)
            self._calls.append(row)
        for message, is_error, took, key in rows.results:
            row = self._calls[self._call_at[key]]
            row[3], row[5], row[7] = message, is_error, took
        self._uses(rows.uses)
        self._changes(rows.changes)
        self._todos(rows.todos)

    def _append(self, table: str, columns: Columns) -> None:
        if columns and len(next(iter(columns.values()))):
            names = [name for name in TABLES[table].names if name not in _LATER]
            arrays = [_array(columns[name], SCHEMAS[table].field(name).type) for name in names]
            self._parts[table].append(pa.RecordBatch.from_arrays(arrays, names=names))

    def _named(self, time: int) -> tuple[int, str, str, str]:
        day = time // DAY
        found = self._days.get(day)
        if found is None:
            found = self._days[day] = day_row(day)
        return found

    def _day(self, time: int) -> str:
        return self._named(time)[1]

    def _messages(self, rows: list[Row]) -> None:
        if not rows:
            return
        word = self._words.word
        seq, _, events, uuids, parents, times, gaps, kinds, roles, models, branches, flags, chars = zip(
            *rows, strict=True
        )
        names = [event.hex() for event in events]
        self._events += names
        self._times += times
        self._append(
            "messages",
            {
                "seq": seq,
                "event_id": names,
                "native_uuid": list(map(self._uuid, uuids)),
                "parent_event_id": [parent.hex() for parent in parents],
                "ts_us": times,
                "day_utc": [self._day(time) for time in times],
                "gap_us": gaps,
                "kind": kinds,
                "role": list(map(word, roles)),
                "model": list(map(word, models)),
                "git_branch": list(map(word, branches)),
                "is_sidechain": [flag & 1 for flag in flags],
                "is_meta": [flag >> 1 & 1 for flag in flags],
                "text_chars": chars,
            },
        )

    def _blocks(self, rows: Rows) -> None:
        # Titles and names of files stand with no message; without text they are nothing.
        has_text = self._words.has_text
        found = rows.blocks if has_text else [row for row in rows.blocks if row[1]]
        if not found:
            return
        texts = {key: text for key, _, _, text in rows.texts} if has_text else {}
        numbers, seq, idx, types, kinds, chars, calls = zip(*found, strict=True)
        # What stands with no message has a time of its own.
        own = {key: time for key, _, time, _ in rows.texts} if has_text else {}
        times = [self._times[at] if at else own.get(number, 0) for number, at in zip(numbers, seq, strict=True)]
        self._append(
            "blocks",
            {
                "number": numbers,
                "seq": seq,
                "event_id": self._event(seq),
                "idx": idx,
                "type": list(map(self._words.word, types)),
                "kind": kinds,
                "chars": chars,
                "call_id": list(map(self._words.identifier, calls)),
                "ts_us": times,
                "day_utc": list(map(self._day, times)),
                "text": [texts.get(number, "") for number in numbers],
            },
        )

    def _uuid(self, uuid: bytes | str) -> str:
        """A native uuid as it is spelled; without text there is none."""
        if isinstance(uuid, str):
            return self._words.identifier(uuid)
        if not self._words.has_text:
            return ""
        digits = uuid.hex()
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def _at(self, seq: Iterable[int]) -> list[int]:
        times = self._times
        return [times[number] for number in seq]

    def _event(self, seq: Iterable[int]) -> list[str]:
        events = self._events
        return [events[number] for number in seq]

    def _uses(self, rows: list[Row]) -> None:
        if not rows:
            return
        word = self._words.word
        numbers, _, names, seq, models, branches, times, *counts = zip(*rows, strict=True)
        costs = [self._cost(model, row[7:]) for model, row in zip(models, rows, strict=True)]
        days = [self._named(time) for time in times]
        rates = zip(*map(self._rates, models), strict=True)
        self._append(
            "usage",
            {
                "number": numbers,
                "seq": seq,
                "usage_id": [name.hex() for name in names],
                "event_id": self._event(seq),
                "model": list(map(word, models)),
                "git_branch": list(map(word, branches)),
                "ts_us": times,
                "day_utc": [day[1] for day in days],
                "week_utc": [day[2] for day in days],
                "month_utc": [day[3] for day in days],
                **dict(zip(COUNTS, counts, strict=True)),
                "cost_nano": [cost or 0 for cost in costs],
                "is_priced": [int(cost is not None) for cost in costs],
                **dict(zip(RATES, rates, strict=True)),
            },
        )

    def _cost(self, model: str, counts: Iterable[int | None]) -> int | None:
        fresh, output, created, read, short, long, _ = counts
        if short is None:
            short = max(0, (created or 0) - (long or 0))
        return self._prices.cost(model, fresh or 0, output or 0, read or 0, short, long or 0)

    def _rates(self, model: str) -> Row:
        price = self._prices.price(model)
        if price is None:
            return (None,) * len(RATES)
        return (*price.rates, price.limit, *(price.above or (None,) * len(price.rates)))

    def _changes(self, rows: list[Row]) -> None:
        if not rows:
            return
        numbers, seq, paths, ops, added, removed = zip(*rows, strict=True)
        times = self._at(seq)
        self._append(
            "file_changes",
            {
                "number": numbers,
                "seq": seq,
                "event_id": self._event(seq),
                "path": list(map(self._words.path, paths)),
                "op": ops,
                "lines_added": added,
                "lines_removed": removed,
                "ts_us": times,
                "day_utc": list(map(self._day, times)),
            },
        )

    def _todos(self, rows: list[Row]) -> None:
        if not rows:
            return
        numbers, seq, idx, contents, statuses = zip(*rows, strict=True)
        self._append(
            "todos",
            {
                "number": numbers,
                "seq": seq,
                "event_id": self._event(seq),
                "idx": idx,
                "content": contents if self._words.has_text else [""] * len(rows),
                "status": list(map(self._words.word, statuses)),
                "day_utc": list(map(self._day, self._at(seq))),
            },
        )

    def _tool_calls(self) -> None:
        if not self._calls:
            return
        numbers, calls, seq, results, names, errors, times, took = zip(*self._calls, strict=True)
        self._append(
            "tool_calls",
            {
                "number": numbers,
                "seq": seq,
                "call_id": list(map(self._words.identifier, calls)),
                "event_id": self._event(seq),
                "result_event_id": self._event(results),
                "name": list(map(self._words.word, names)),
                "is_error": errors,
                "ts_us": times,
                "day_utc": list(map(self._day, times)),
                "duration_us": took,
            },
        )

    def finish(self, end: Ingested, path: str = "") -> tuple[dict[str, pa.Table], str]:
        """All tables but `batches`, with an empty column `batch`, and the day on which the session ended.

        `path` is where the source lies: whose home that is may stand in no name either.
        """
        self._tool_calls()
        session = self._session(end)
        hide = self._words.whose(json.loads(end.session[-1])["workspace"] or "", _HIDDEN.split(path)[0])
        session |= {name: hide(session[name]) for name in ("project", "git_branch")}
        whole = {name: session[name] for name in ("session_id", "agent", "project")}
        tables = {"sessions": pa.Table.from_pylist([{**session, "batch": ""}], SCHEMAS["sessions"])}
        for name in TABLES:
            if name not in ("batches", "sessions"):
                tables[name] = _whole(SCHEMAS[name], self._parts[name], {**whole, "batch": ""})
        for name in ("messages", "usage"):
            tables[name] = _changed(tables[name], "git_branch", hide)
        self.clear()
        return tables, self._day(session["ended_us"] or session["started_us"])

    def _session(self, end: Ingested) -> dict[str, Any]:
        _, key, agent, native, parent, is_agent, title, project, branch, version, started, ended, *counts, header = (
            end.session
        )
        word, whole = self._words.word, json.loads(header)
        if word(native) != native:
            key = session_key(agent, word(native))
        if parent:
            above = whole["parent_session_id"]
            parent = session_key(agent, word(above)) if word(above) != above else parent
        told = {"session_id": key, "agent": agent, "native_id": word(native), "parent_session_id": parent}
        told |= {"is_agent_session": is_agent, "title": title if self._words.has_text else ""}
        told |= {"workspace": self._words.path(whole["workspace"] or ""), "project": word(project)}
        told |= {"git_branch": word(branch), "agent_version": word(version)}
        told |= {"started_us": started, "ended_us": ended, "day_utc": self._day(started)}
        return told | dict(zip(("message_count", "turn_count", "error_count", "active_us"), counts, strict=True))


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        # Half a character, as JSON can spell it and UTF-8 cannot.
        return pa.array([value.encode("utf-8", "replace").decode() for value in values], kind)


def _changed(table: pa.Table, name: str, change: Callable[[str], str]) -> pa.Table:
    """The table with a column that has few values changed."""
    column = table[name]
    values = {value: change(value) for value in column.unique().to_pylist()}
    if all(value == now for value, now in values.items()):
        return table
    changed = pa.array([values[value] for value in column.to_pylist()], column.type)
    return table.set_column(table.schema.get_field_index(name), table.schema.field(name), changed)


def _whole(schema: pa.Schema, parts: list[pa.RecordBatch], same: dict[str, str]) -> pa.Table:
    """The parts of a table as one, with the columns that hold one value in all rows."""
    return pa.Table.from_batches(list(_filled(schema, parts, same)), schema)


def _filled(schema: pa.Schema, parts: list[pa.RecordBatch], same: dict[str, str]) -> Iterator[pa.RecordBatch]:
    for part in parts:
        names = set(part.schema.names)
        arrays = [
            part.column(name) if name in names else pa.repeat(pa.scalar(same[name], pa.string()), part.num_rows)
            for name in schema.names
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
