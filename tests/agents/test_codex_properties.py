"""Codex CLI: whatever stands in a line, it comes back."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.codex.records import ITEM_KINDS
from tests.agents.rollouts import asked, context, event, item, meta, read, words, write
from tests.json_values import values

KEYS = ["id", "role", "content", "name", "call_id", "output", "arguments", "input", "summary", "action", "phase", "x"]
ANY = values(["type", "text", "a"], ["input_text", "hi"])
TEXTS = st.sampled_from(
    ["", "a", "é\n", "<skill>x", "\x1b[0m", "Exit code: 1\nWall time: 1 seconds\nOutput:\n", '{"a":1}']
)
VALUES = (
    TEXTS
    | ANY
    | st.lists(
        st.fixed_dictionaries({"type": st.sampled_from(["input_text", "summary_text"]), "text": TEXTS}), max_size=2
    )
)
PAYLOADS = st.builds(
    lambda kind, more: {"type": kind, **more},
    st.sampled_from([*ITEM_KINDS, "mystery"]),
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5),
)

SAID = st.lists(st.sampled_from(["OK.", "a", "b\n", "é", "\\"]) | st.integers(0, 99).map(str), min_size=1, max_size=20)


@pytest.mark.slow
@given(st.lists(PAYLOADS, max_size=6), st.booleans())
def test_items_of_any_content_come_back(payloads: list[dict[str, Any]], bare: bool) -> None:
    time = "2026-03-02T10:00:00.000Z"
    lines = [each if bare else {"timestamp": time, "type": "response_item", "payload": each} for each in payloads]
    with tempfile.TemporaryDirectory() as folder:
        found = read(write(Path(folder), meta(), *lines))
    ids = [message["uuid"] for message in found.messages]
    assert found.facts.messages == len(ids) == len(set(ids))


@given(st.lists(st.tuples(SAID, st.booleans()), min_size=1, max_size=3))
def test_what_events_repeat_stands_once(replies: list[tuple[list[str], bool]]) -> None:
    lines = [*asked("go")]
    for texts, is_behind in replies:
        events = [event("agent_message", message=text) for text in texts]
        said = words("assistant", *texts)
        lines += [said, *events, context()] if is_behind else [*events, said, context()]
    with tempfile.TemporaryDirectory() as folder:
        found = read(write(Path(folder), meta(), *lines))
    assert found.texts == ["go", *(text for texts, _ in replies for text in texts)]


@given(ANY | st.text().map(lambda text: json.dumps(text, indent=1)) | st.text())
def test_arguments_are_read_where_they_are_json(value: Any) -> None:
    text = value if isinstance(value, str) else json.dumps(value)
    call = item("function_call", name="f", arguments=text, call_id="c")
    with tempfile.TemporaryDirectory() as folder:
        (message,) = read(write(Path(folder), meta(), call)).messages
    found = message["content"][0]["input"]
    assert found == (text if isinstance(found, str) else json.loads(text))
