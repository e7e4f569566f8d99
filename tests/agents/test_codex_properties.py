"""Codex CLI: whatever stands in a line, it comes back, and both ways of reading give the same."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from clew.agents.codex.parts import Arguments
from clew.agents.codex.tables import AGENT as NAME
from clew.agents.codex.tables import ITEMS
from clew.agents.mapping import Context
from clew.derive.collect import collect
from tests.agents.rollouts import AGENT, asked, context, event, meta, read, words, write
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
    st.sampled_from([*ITEMS, "mystery"]),
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5),
)

SAID = st.lists(st.sampled_from(["OK.", "a", "b\n", "é", "\\"]) | st.integers(0, 99).map(str), min_size=1, max_size=20)


@given(st.lists(PAYLOADS, max_size=6), st.booleans())
def test_items_of_any_content_come_back(payloads: list[dict[str, Any]], bare: bool) -> None:
    time = "2026-03-02T10:00:00.000Z"
    lines = [each if bare else {"timestamp": time, "type": "response_item", "payload": each} for each in payloads]
    with tempfile.TemporaryDirectory() as folder:
        found = read(write(Path(folder), meta(), *lines))
        counted = collect((True, message) for message in found.messages)
        assert (found.facts.messages, found.facts.prompts) == (counted.messages, counted.prompts)
        assert found.facts.links.uuids == counted.links.uuids


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
def test_arguments_of_any_spelling_come_back(value: Any) -> None:
    text = value if isinstance(value, str) else json.dumps(value)
    part, rest, out = Arguments(), {}, {"": {}}  # type: ignore[var-annotated]
    part.take(text, out, rest, Context(NAME, {}))
    assert part.give(out, rest, Context(NAME, {})) == text
    assert AGENT.id == NAME
