"""Batches made by dice: few names, so that copies meet in every way; and what must be shown of any set of them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from clew.analysis.pricing import PriceTable
from clew.analysis.usage import TOKEN_FIELDS
from clew.catalog.schema import day_row
from clew.warehouse.build import SCHEMAS
from clew.warehouse.columns import COPIES, RATES, TABLES
from clew.warehouse.ingest import Batch, batch_name
from clew.warehouse.merge_sql import PUBLIC, merged_tables
from tests.warehouse.postgres.machines import Rows

_DAY = 86_400_000_000
_DAYS = (0, 20_360, 20_362, 20_393)
_PRICES = PriceTable(
    "2026-01-01",
    {
        "m": {"input": 3_000, "output": 15_001, "cache_read": 300},
        "n": {"input": 2_000, "output": 7_000, "above": {"tokens": 60, "input": 4_499, "output": 9_000}},
    },
    {},
)
"""One with a price, one with another above a limit; a third has none."""
_LEVELS = ("metrics", "redacted", "raw")


def batch_of(dice: random.Random, sources: int = 5) -> Batch:
    """A batch of a source: what is in it, and what the source was like."""
    tables = _tables(random.Random(dice.randrange(40)))
    name = batch_name(tables)
    for table, rows in tables.items():
        tables[table] = rows.set_column(0, rows.schema.field(0), pa.array([name] * rows.num_rows, pa.string()))
    note: dict[str, Any] = {"batch": name, "source_id": f"source{dice.randrange(sources)}", "origin": "loom"}
    note |= {"agent": "codex", "level": dice.choice(_LEVELS), "schema_version": dice.choice((1, 1, 2))}
    note |= {"redact_version": dice.choice(("000001 a", "000002 b")), "price_version": dice.choice(("000001 x",))}
    note |= {"mtime_ns": dice.randrange(4), "size": dice.randrange(3), "day_utc": ""}
    return Batch(name, {"batches": pa.Table.from_pylist([note], SCHEMAS["batches"]), **tables})


def _tables(dice: random.Random) -> dict[str, pa.Table]:
    native = dice.choice("pqr")
    same = {"batch": "", "session_id": f"session-{native}", "agent": "codex", "project": dice.choice(("", "/loom"))}
    messages = [_message(dice, seq) for seq in range(1, dice.randrange(2, 6))]
    found: dict[str, list[dict[str, Any]]] = {"messages": messages}
    found["blocks"] = [_part(dice, messages, number, text=dice.choice("uvw")) for number in range(1, 4)]
    found["blocks"].append({"number": 9, "seq": 0, "type": "title", "kind": "title", "text": "a title"})
    for table in ("tool_calls", "file_changes", "todos"):
        found[table] = [_part(dice, messages, number) for number in range(1, dice.randrange(1, 4))]
    found["usage"] = [_use(dice, messages, number) for number in range(1, dice.randrange(1, 4))]
    session = {"native_id": native, "is_agent_session": dice.randrange(2), "message_count": dice.randrange(3)}
    session |= {"ended_us": dice.randrange(3) * _DAY, "day_utc": day_row(dice.choice(_DAYS))[1]}
    found["sessions"] = [session]
    return {table: _rows(table, rows, same) for table, rows in found.items()}


def _message(dice: random.Random, seq: int) -> dict[str, Any]:
    day = dice.choice(_DAYS)
    time = day * _DAY + (dice.randrange(2) if day else 0)
    return {"seq": seq, "event_id": f"event{dice.randrange(6)}", "ts_us": time, "day_utc": day_row(day)[1]}


def _part(dice: random.Random, messages: list[dict[str, Any]], number: int, text: str = "") -> dict[str, Any]:
    message = dice.choice(messages)
    found = {"number": number, "name": dice.choice("fg"), "path": dice.choice("ab"), "type": dice.choice("st")}
    found |= {"is_error": dice.randrange(2), "duration_us": dice.randrange(9), "lines_added": dice.randrange(9)}
    return {**message, **found, "text": text, "kind": "answer"}


def _use(dice: random.Random, messages: list[dict[str, Any]], number: int) -> dict[str, Any]:
    found: dict[str, Any] = {**dice.choice(messages), "number": number, "usage_id": f"use{dice.randrange(5)}"}
    day = day_row(found["ts_us"] // _DAY)
    found |= {"week_utc": day[2], "month_utc": day[3], "model": dice.choice("mno")}
    counts = {name: dice.choice((None, 1, 5, 50)) for name in TOKEN_FIELDS}
    price = _PRICES.price(found["model"])
    if price is None:
        return {**found, **counts, "is_priced": 0}
    fresh, output, created, read, short, long, _ = (count or 0 for count in counts.values())
    cost = _PRICES.cost(found["model"], fresh, output, read, short or max(0, created - long), long)
    rates = zip(RATES, (*price.rates, price.limit, *(price.above or [None] * 5)), strict=True)
    return {**found, **counts, **dict(rates), "is_priced": 1, "cost_nano": cost}


def _rows(table: str, rows: list[dict[str, Any]], same: dict[str, Any]) -> pa.Table:
    whole = []
    for row in rows:
        blank = {
            column.name: None if column.may_be_null else 0 if column.type == "int" else ""
            for column in TABLES[table].columns
        }
        whole.append({**blank, **{name: value for name, value in {**same, **row}.items() if name in blank}})
    return pa.Table.from_pylist(whole, SCHEMAS[table])


def shown(batches: Iterable[Batch]) -> dict[str, tuple[list[str], Rows]]:
    """What the rule for every engine makes of a set of batches, worked out by another engine: names and rows."""
    import duckdb

    found = list(batches)
    db = duckdb.connect()
    for table in TABLES:
        copies = pa.concat_tables([batch.tables[table] for batch in found])
        db.register(f"{table}_arrow", copies)
        db.execute(f"CREATE TABLE {table}{COPIES} AS SELECT DISTINCT * FROM {table}_arrow")
    for name, text in merged_tables(rows_are_unique=False, int_div="//").items():
        db.execute(f"CREATE TABLE {name} AS {text}")
    answers = {}
    for name in PUBLIC:
        answer = db.execute(f"SELECT * FROM {name}")
        answers[name] = [column[0] for column in answer.description], sorted(answer.fetchall(), key=repr)
    db.close()
    return answers
