"""The catalog's rows of one source as Arrow tables.

Rows become Arrow as they come. Only tool calls wait for their results, and columns of the whole session for its end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from clew.analysis.pricing import PriceTable
from clew.analysis.usage import TOKEN_FIELDS
from clew.catalog.ids import session_key
from clew.catalog.ingest import Ingested
from clew.catalog.rows import Rows
from clew.catalog.schema import DAY_US, day_row
from clew.warehouse.columns import RATES, TABLES, Table
from clew.warehouse.privacy import FieldMasker

_ARROW_TYPES = {"int": pa.int64(), "str": pa.string()}
_CONSTANT_COLUMNS = frozenset({"batch", "session_id", "agent", "project"})
"""Columns with one value for the whole batch, added at the end."""
_HIDDEN_FOLDER = re.compile(r"[/\\]\.")
"""Agents keep their files in a hidden folder of a home."""
Row = tuple[Any, ...]
Columns = dict[str, Sequence[Any]]


def arrow_schema(table: Table) -> pa.Schema:
    """The columns of a table as Arrow types."""
    return pa.schema([(column.name, _ARROW_TYPES[column.type]) for column in table.columns])


SCHEMAS = {name: arrow_schema(table) for name, table in TABLES.items()}


class TableBuilder:
    """Builds the tables of one source."""

    def __init__(self, masker: FieldMasker, prices: PriceTable) -> None:
        self._masker, self._prices = masker, prices
        self._day_rows: dict[int, tuple[int, str, str, str]] = {}
        self._parts: dict[str, list[pa.RecordBatch]] = {name: [] for name in TABLES}
        # By `seq`, which counts from 1; 0 is the session as a whole.
        self._event_ids: list[str] = [""]
        self._times: list[int] = [0]
        self._calls: list[list[Any]] = []
        self._call_positions: dict[int, int] = {}

    def add(self, rows: Rows) -> None:
        """Add the next rows of the source."""
        self._add_messages(rows.messages)
        self._add_blocks(rows)
        for row in rows.calls:
            self._call_positions[row[0]] = len(self._calls)
            self._calls.append(row)
        for message, is_error, duration, key in rows.results:
            row = self._calls[self._call_positions[key]]
            row[3], row[5], row[7] = message, is_error, duration
        self._add_usage(rows.uses)
        self._add_file_changes(rows.changes)
        self._add_todos(rows.todos)

    def finish(self, end: Ingested, path: str = "") -> tuple[dict[str, pa.Table], str]:
        """All tables except `batches`, with an empty column `batch`, and the day on which the session ended.

        `path`: that of the source; the name of the user whose home it is in is masked everywhere.
        """
        self._add_tool_calls()
        session = self._session(end)
        mask = self._masker.mask_owner_names(
            json.loads(end.session[-1])["workspace"] or "", _HIDDEN_FOLDER.split(path)[0]
        )
        session |= {name: mask(session[name]) for name in ("project", "git_branch")}
        constants = {**{name: session[name] for name in ("session_id", "agent", "project")}, "batch": ""}
        tables = {"sessions": pa.Table.from_pylist([{**session, "batch": ""}], SCHEMAS["sessions"])}
        for name in TABLES:
            if name not in ("batches", "sessions"):
                tables[name] = _with_constants(SCHEMAS[name], self._parts[name], constants)
        for name in ("messages", "usage"):
            tables[name] = _map_column(tables[name], "git_branch", mask)
        return tables, self._day(session["ended_us"] or session["started_us"])

    def _append(self, table: str, columns: Columns) -> None:
        if columns and len(next(iter(columns.values()))):
            names = [name for name in TABLES[table].names if name not in _CONSTANT_COLUMNS]
            arrays = [_array(columns[name], SCHEMAS[table].field(name).type) for name in names]
            self._parts[table].append(pa.RecordBatch.from_arrays(arrays, names=names))

    def _day_row(self, time_us: int) -> tuple[int, str, str, str]:
        day = time_us // DAY_US
        found = self._day_rows.get(day)
        if found is None:
            found = self._day_rows[day] = day_row(day)
        return found

    def _day(self, time_us: int) -> str:
        return self._day_row(time_us)[1]

    def _add_messages(self, rows: list[Row]) -> None:
        if not rows:
            return
        mask = self._masker.name
        seq, _, events, uuids, parents, times, gaps, kinds, roles, models, branches, flags, chars = zip(
            *rows, strict=True
        )
        event_ids = [event.hex() for event in events]
        self._event_ids += event_ids
        self._times += times
        self._append(
            "messages",
            {
                "seq": seq,
                "event_id": event_ids,
                "native_uuid": list(map(self._native_uuid, uuids)),
                "parent_event_id": [parent.hex() for parent in parents],
                "ts_us": times,
                "day_utc": list(map(self._day, times)),
                "gap_us": gaps,
                "kind": kinds,
                "role": list(map(mask, roles)),
                "model": list(map(mask, models)),
                "git_branch": list(map(mask, branches)),
                "is_sidechain": [flag & 1 for flag in flags],
                "is_meta": [flag >> 1 & 1 for flag in flags],
                "text_chars": chars,
            },
        )

    def _native_uuid(self, uuid: bytes | str) -> str:
        if isinstance(uuid, str):
            return self._masker.identifier(uuid)
        if not self._masker.has_text:
            return ""
        digits = uuid.hex()
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def _add_blocks(self, rows: Rows) -> None:
        # Titles and file names belong to no message (seq 0). They only have text.
        has_text = self._masker.has_text
        blocks = rows.blocks if has_text else [row for row in rows.blocks if row[1]]
        if not blocks:
            return
        texts = {number: text for number, _, _, text in rows.texts} if has_text else {}
        text_times = {number: time for number, _, time, _ in rows.texts} if has_text else {}
        numbers, seq, idx, types, kinds, chars, calls = zip(*blocks, strict=True)
        times = [self._times[at] if at else text_times.get(number, 0) for number, at in zip(numbers, seq, strict=True)]
        self._append(
            "blocks",
            {
                "number": numbers,
                "seq": seq,
                "event_id": self._event_ids_at(seq),
                "idx": idx,
                "type": list(map(self._masker.name, types)),
                "kind": kinds,
                "chars": chars,
                "call_id": list(map(self._masker.identifier, calls)),
                "ts_us": times,
                "day_utc": list(map(self._day, times)),
                "text": [texts.get(number, "") for number in numbers],
            },
        )

    def _times_at(self, seq: Iterable[int]) -> list[int]:
        return [self._times[number] for number in seq]

    def _event_ids_at(self, seq: Iterable[int]) -> list[str]:
        return [self._event_ids[number] for number in seq]

    def _add_usage(self, rows: list[Row]) -> None:
        if not rows:
            return
        numbers, _, usage_ids, seq, models, branches, times, *counts = zip(*rows, strict=True)
        costs = [self._prices.cost_of_call(model, row[7:]) for model, row in zip(models, rows, strict=True)]
        days = [self._day_row(time) for time in times]
        rates = zip(*map(self._rates, models), strict=True)
        self._append(
            "usage",
            {
                "number": numbers,
                "seq": seq,
                "usage_id": [usage_id.hex() for usage_id in usage_ids],
                "event_id": self._event_ids_at(seq),
                "model": list(map(self._masker.name, models)),
                "git_branch": list(map(self._masker.name, branches)),
                "ts_us": times,
                "day_utc": [day[1] for day in days],
                "week_utc": [day[2] for day in days],
                "month_utc": [day[3] for day in days],
                **dict(zip(TOKEN_FIELDS, counts, strict=True)),
                "cost_nano": [cost or 0 for cost in costs],
                "is_priced": [int(cost is not None) for cost in costs],
                **dict(zip(RATES, rates, strict=True)),
            },
        )

    def _rates(self, model: str) -> Row:
        price = self._prices.price(model)
        if price is None:
            return (None,) * len(RATES)
        return (*price.rates, price.limit, *(price.above or (None,) * len(price.rates)))

    def _add_file_changes(self, rows: list[Row]) -> None:
        if not rows:
            return
        numbers, seq, paths, operations, added, removed = zip(*rows, strict=True)
        times = self._times_at(seq)
        self._append(
            "file_changes",
            {
                "number": numbers,
                "seq": seq,
                "event_id": self._event_ids_at(seq),
                "path": list(map(self._masker.path, paths)),
                "op": operations,
                "lines_added": added,
                "lines_removed": removed,
                "ts_us": times,
                "day_utc": list(map(self._day, times)),
            },
        )

    def _add_todos(self, rows: list[Row]) -> None:
        if not rows:
            return
        numbers, seq, idx, contents, statuses = zip(*rows, strict=True)
        self._append(
            "todos",
            {
                "number": numbers,
                "seq": seq,
                "event_id": self._event_ids_at(seq),
                "idx": idx,
                "content": contents if self._masker.has_text else [""] * len(rows),
                "status": list(map(self._masker.name, statuses)),
                "day_utc": list(map(self._day, self._times_at(seq))),
            },
        )

    def _add_tool_calls(self) -> None:
        if not self._calls:
            return
        numbers, call_ids, seq, results, names, errors, times, durations = zip(*self._calls, strict=True)
        self._append(
            "tool_calls",
            {
                "number": numbers,
                "seq": seq,
                "call_id": list(map(self._masker.identifier, call_ids)),
                "event_id": self._event_ids_at(seq),
                "result_event_id": self._event_ids_at(results),
                "name": list(map(self._masker.name, names)),
                "is_error": errors,
                "ts_us": times,
                "day_utc": list(map(self._day, times)),
                "duration_us": durations,
            },
        )

    def _session(self, end: Ingested) -> dict[str, Any]:
        (_, key, agent, native_id, parent, is_agent_session, title, project, branch, version, *numbers, header) = (
            end.session
        )
        started, ended, messages, turns, errors, active = numbers
        mask, fields = self._masker.name, json.loads(header)
        # The id is a hash of the native id; if that one is masked, of its mask.
        if mask(native_id) != native_id:
            key = session_key(agent, mask(native_id))
        if parent and mask(fields["parent_session_id"]) != fields["parent_session_id"]:
            parent = session_key(agent, mask(fields["parent_session_id"]))
        return {
            "session_id": key,
            "agent": agent,
            "native_id": mask(native_id),
            "parent_session_id": parent,
            "is_agent_session": is_agent_session,
            "title": title if self._masker.has_text else "",
            "workspace": self._masker.path(fields["workspace"] or ""),
            "project": mask(project),
            "git_branch": mask(branch),
            "agent_version": mask(version),
            "started_us": started,
            "ended_us": ended,
            "day_utc": self._day(started),
            "message_count": messages,
            "turn_count": turns,
            "error_count": errors,
            "active_us": active,
            "has_subagent_records": int(fields["has_subagent_records"]),
        }


def halve_until(fits: Callable[[pa.Table], bool], table: pa.Table) -> Iterator[pa.Table]:
    """Halve the rows of a table until each part fits, or is a single row."""
    if table.num_rows <= 1 or fits(table):
        yield table
        return
    half = table.num_rows // 2
    yield from halve_until(fits, table.slice(0, half))
    yield from halve_until(fits, table.slice(half))


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        # Half a surrogate pair, which JSON can write and UTF-8 cannot.
        return pa.array([value.encode("utf-8", "replace").decode() for value in values], kind)


def _map_column(table: pa.Table, name: str, change: Callable[[str], str]) -> pa.Table:
    """Apply a function to a column with few distinct values."""
    column = table[name]
    values = {value: change(value) for value in column.unique().to_pylist()}
    if all(value == changed for value, changed in values.items()):
        return table
    changed = pa.array([values[value] for value in column.to_pylist()], column.type)
    return table.set_column(table.schema.get_field_index(name), table.schema.field(name), changed)


def _with_constants(schema: pa.Schema, parts: list[pa.RecordBatch], constants: dict[str, str]) -> pa.Table:
    """Join the parts of a table, and add the columns that have one value in all rows."""
    complete = []
    for part in parts:
        names = set(part.schema.names)
        arrays = [
            part.column(name) if name in names else pa.repeat(pa.scalar(constants[name], pa.string()), part.num_rows)
            for name in schema.names
        ]
        complete.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return pa.Table.from_batches(complete, schema)
