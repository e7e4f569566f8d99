"""The lean way into the catalog tells exactly what the unified document would."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clew.agents.told import Odd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.agents.claude_code import ClaudeCode
from clew.catalog.ingest import Ingested, _general, _told, ingest
from clew.catalog.rows import Rows
from clew.demo import write_demo
from tests.catalog.worlds import claude_lines, spelled

NAMES = ("messages", "blocks", "texts", "calls", "results", "uses", "changes", "todos")
SESSION = "0a0a0a0a-1111-4111-8111-111111111111"
AGENT = ClaudeCode()


def flat(steps: Iterator[Any]) -> dict[str, Any]:
    """All that was told, whatever the portions."""
    found: dict[str, Any] = {name: [] for name in NAMES}
    for step in steps:
        if isinstance(step, Ingested):
            found["session"], found["header"] = step.session[:-1], json.loads(step.session[-1])
        elif isinstance(step, Rows):
            for name in NAMES:
                found[name] += [tuple(row) for row in getattr(step, name)]
    return found


def same(path: Path) -> bool:
    """Compare both ways; False where the lean way refuses."""
    source = AGENT.locate(path)
    try:
        lean = flat(_told(AGENT, source, 1))
    except Odd:
        assert flat(ingest(AGENT, source, 1)) == flat(_general(AGENT, source, 1, at_once=False))
        return False
    assert lean == flat(_general(AGENT, source, 1, at_once=False))
    return True


def test_the_demo_goes_the_lean_way(tmp_path: Path) -> None:
    write_demo(tmp_path)
    paths = [source.path for source in AGENT.discover(tmp_path / ".claude" / "projects")]
    assert paths and sum(map(same, paths)) >= len(paths) // 2


def _changed(kind: str) -> bytes:
    lines = claude_lines(SESSION, 0, 12)
    text = spelled(lines)
    first = spelled(lines[:1])
    odd: dict[str, bytes] = {
        "torn": text[:-40],
        "unended": text[:-1],
        "glued": text.replace(b"}\n{", b"}{", 1),
        "blank": text.replace(b"\n", b"\n\n", 2),
        "garbage": first + b"\x00\x01 nothing\n" + text[len(first) :],
        "surrogate": text.replace(b"weave", b"\\ud800"),
        "latin": text.replace(b"weave", b"\xe9\xe8"),
        "time": text.replace(b"2026-10-01T00:00:07.250Z", b"1760000000"),
        "number": text.replace(b'"output_tokens":10', b'"output_tokens":1e3'),
        "unknown block": text.replace(b'"type":"thinking"', b'"type":"pondering"'),
        "sidechain": text.replace(b'"isSidechain":false', b'"isSidechain":true'),
        "meta": text.replace(b'"isSidechain":false', b'"isMeta":true,"isSidechain":false'),
        "synthetic": text.replace(b"claude-sonnet-4-5-20250929", b"<synthetic>"),
        "error": text.replace(b'"is_error":false', b'"is_error":true'),
        "returns": text.replace(b"\n", b"\r\n"),
        "marker": text.replace(b"weave", b"<command-name>weave"),
        "summary": spelled([{"type": "summary", "summary": "Old", "leafUuid": lines[3]["uuid"]}]) + text,
        "queued": text
        + spelled(
            [{**lines[0], "type": "attachment", "attachment": {"type": "queued_command", "prompt": "and then?"}}]
        ),
        "titles": text + spelled([{"type": "ai-title", "aiTitle": "A", "sessionId": SESSION}]),
        "list result": text.replace(b'"The file was updated0."', b'[{"type":"text","text":"up"},{"type":"image"}]'),
        "empty": b"",
    }
    return odd[kind]


KINDS = (
    "torn,unended,glued,blank,garbage,surrogate,latin,time,number,sidechain,meta,synthetic,error,returns,marker,summary,"
    "queued,titles,empty,unknown block,list result"
).split(",")


@pytest.mark.parametrize("kind", KINDS)
def test_both_ways_agree_on(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(_changed(kind))
    same(path)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.integers(0, 6000), st.binary(max_size=3)), max_size=4), st.integers(0, 12))
def test_both_ways_agree_on_damage(tmp_path: Path, cuts: list[tuple[int, bytes]], count: int) -> None:
    text = bytearray(spelled(claude_lines(SESSION, 0, count)))
    for at, piece in cuts:
        text[at : at + len(piece)] = piece
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(text)
    same(path)
