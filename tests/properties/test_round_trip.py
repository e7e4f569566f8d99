"""The law of the tables: whatever JSON stands in a record, the record comes back byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from clew.agents.quick import WORTH
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.base import Encodes, SourceFile
from clew.agents.claude_code import ClaudeCode, tables
from clew.agents.claude_code.orders import ORDERS
from clew.agents.mapping import Blocks, Each, Fixed, Leaf, Nest, Shared, Table, Time
from clew.derive.collect import collect
from clew.export.verify import verify
from clew.io.codec import dumps, loads
from clew.testing import unordered

from .test_bytes import VALUES, files

AGENT = ClaudeCode()
WORDS = st.sampled_from(
    ["user", "assistant", "system", "text", "tool_use", "tool_result", "message", "s-1", "", "text"]
)
TIMES = st.sampled_from(
    ["2026-01-11T22:00:00.000Z", "2026-01-11T17:00:00-0500", "2026-01-11", "no time", "2026-13-40T99:00:00.000Z"]
)
LEAVES = VALUES | WORDS | TIMES


def objects(table: Table, depth: int = 3) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with keys the table knows, in any order, holding anything."""
    if depth == 0 or not table.known:
        return st.just({})
    options: dict[str, st.SearchStrategy[Any]] = {}
    for key in sorted(table.known):
        field = table.fields.get(key)
        if isinstance(field, Nest):
            options[key] = objects(field.table, depth - 1) | LEAVES
        elif isinstance(field, Blocks):
            blocks = [objects(kind.table, depth - 1) for kind in tables.BLOCKS.values()]
            options[key] = st.lists(st.one_of(*blocks) | LEAVES, max_size=3) | LEAVES
        elif isinstance(field, Each):
            options[key] = (
                st.lists(objects(field.table, 1), max_size=2)
                | st.dictionaries(st.text(max_size=3), objects(field.table, 1), max_size=2)
                | LEAVES
            )
        else:
            options[key] = LEAVES
    keys = st.lists(st.sampled_from(sorted(options)), unique=True, max_size=8)
    return keys.flatmap(lambda chosen: st.fixed_dictionaries({key: options[key] for key in chosen}))


FORMS = [
    *tables.MESSAGES.items(),
    ("attachment", tables.QUEUED_PROMPT),
    *list(tables.RECORDS.items())[:8],
    ("novel", tables.UNKNOWN),
]


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    name, form = draw(st.sampled_from(FORMS))
    record = draw(objects(form.table))
    if draw(st.integers(0, 9)):
        record["type"] = name
    return record


def prove(raw: bytes, folder: Path) -> None:
    path = folder / "11111111-1111-4111-8111-111111111111.jsonl"
    path.write_bytes(raw)
    source = SourceFile("claude-code", path)
    assert verify(AGENT, source).different == []
    facts = AGENT.scan(source)
    read = collect((unit.is_message, unit.value) for unit in AGENT.read(source, facts))
    assert (facts.messages, facts.user_messages, facts.tool_calls) == (
        read.messages,
        read.user_messages,
        read.tool_calls,
    )


@given(st.lists(records(), min_size=1, max_size=5))
@pytest.mark.seed("S2-3")
def test_arbitrary_records_come_back(tmp_path_factory: pytest.TempPathFactory, lines: list[dict[str, Any]]) -> None:
    raw = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)
    prove(raw, tmp_path_factory.mktemp("records"))


@given(files())
def test_arbitrary_files_come_back(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    prove(raw, tmp_path_factory.mktemp("files"))


@st.composite
def regular_records(draw: st.DrawFn) -> dict[str, Any]:
    """Records in the order of keys of a known client, as the quick way expects them, with anything inside."""
    kind = draw(st.sampled_from(["user", "assistant"]))
    orders = {name: draw(st.sampled_from(known)) for name, known in ORDERS.items()}
    record = _ordered(draw, tables.MESSAGES[kind].table, orders)
    record["type"] = kind
    return {key: record[key] for key in orders[kind] if key in record}


def _ordered(draw: st.DrawFn, table: Table, orders: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key in orders.get(table.name, ()):
        field = table.fields.get(key)
        if draw(st.integers(0, 3)) == 0 and key not in ("message", "content"):
            continue
        if isinstance(field, Nest):
            result[key] = {} if draw(st.integers(0, 5)) == 0 else _ordered(draw, field.table, orders)
        elif isinstance(field, Blocks):
            kinds = [kind.table for name, kind in tables.BLOCKS.items() if name in orders]
            blocks = st.lists(st.sampled_from(kinds), max_size=2)
            result[key] = "text" if draw(st.booleans()) else [_ordered(draw, kind, orders) for kind in draw(blocks)]
        else:
            result[key] = _fitting(draw, field)
    return result


def _fitting(draw: st.DrawFn, field: Any) -> Any:
    """Mostly a value of the type that the field expects."""
    if draw(st.integers(0, 9)) == 0:
        return draw(LEAVES)
    match field:
        case Leaf():
            return draw(st.sampled_from([VALUE[kind] for kind in sorted(field.accepts, key=str)]))
        case Fixed():
            return field.value
        case Time():
            return "2026-01-11T22:00:00.000Z"
        case Shared():
            return {"role": "user", "session_id": "s-1", "slug": "calm-sea"}.get(field.name, "a1")
        case Each():
            return []
    return draw(VALUES)


VALUE: dict[type, Any] = {
    str: "word",
    int: 7,
    bool: True,
    type(None): None,
    list: [],
    dict: {"a": [1.5, {}]},
    float: 0.25,
}


@st.composite
def alike(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A record, so often that its like takes the quick way, and some with the same keys and other values."""
    record = draw(regular_records())
    return [record] * WORTH + [_varied(draw, record) for _ in range(2)]


def _varied(draw: st.DrawFn, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _varied(draw, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_varied(draw, item) for item in value]
    return draw(LEAVES) if draw(st.integers(0, 9)) == 0 else value


def encoded(reading: Encodes) -> tuple[list[bytes], list[bytes]]:
    """The texts of messages and of records."""
    messages, records = bytearray(), bytearray()
    for _ in reading.encode(messages, records, b"\0"):
        pass
    return bytes(messages).split(b"\0")[:-1], bytes(records).split(b"\0")[:-1]


@given(st.lists(alike(), min_size=1, max_size=3))
def test_the_quick_way_gives_what_the_general_way_gives(
    tmp_path_factory: pytest.TempPathFactory, groups: list[list[dict[str, Any]]]
) -> None:
    folder = tmp_path_factory.mktemp("regular")
    prove(b"".join(dumps(line) + b"\n" for lines in groups for line in lines), folder)
    source = SourceFile("claude-code", next(folder.iterdir()))
    facts = AGENT.scan(source)
    general = list(AGENT.read(source, facts))
    quick = AGENT.read(source, facts)
    assert isinstance(quick, Encodes)
    messages, records = encoded(quick)
    values = [[unordered(unit.value) for unit in general if unit.is_message is wanted] for wanted in (True, False)]
    assert [[unordered(loads(text)) for text in texts] for texts in (messages, records)] == values
