"""The law of the tables: whatever JSON stands in a record, the record comes back byte for byte."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.base import SourceFile
from clew.agents.claude_code import ClaudeCode, tables
from clew.agents.mapping import Blocks, Each, Nest, Table
from clew.derive.collect import collect
from clew.export.verify import verify

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
    if depth == 0:
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


def test_the_two_layouts_of_a_document_hold_the_same(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"type":"user","message":{"role":"user","content":"hi"}}\n')
    assert io.BytesIO(path.read_bytes()).read()
    assert verify(AGENT, SourceFile("claude-code", path)).holds
