"""What Codex is told twice, in items and in events, is said once to who reads it; a failure is told, or named."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agents.rollouts import answered, asked, event, line, meta, read, write
from tests.convert.test_words import convert, onward, spoken, whats
from tests.unit.samples import SESSION, claude_line

TEXTS = st.lists(st.sampled_from(["OK.", "a", "b\n", "é"]) | st.integers(0, 99).map(str), min_size=1, max_size=20)
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
FAILED = {"type": "text", "text": "error: no such file"}


def transcript(folder: Path, *contents: tuple[str, Any]) -> Path:
    """A session of Claude Code, of roles and what they say."""
    path = folder / f"{SESSION}.jsonl"
    names = [f"u{at}" for at in range(len(contents))]
    lines = [
        claude_line(role, name, before, content)
        for (role, content), name, before in zip(contents, names, [None, *names], strict=False)
    ]
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    return path


def blocks(texts: list[str]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text} for text in texts]


@pytest.mark.slow
@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
def test_texts_of_any_number_come_back_once(prompt: list[str], replies: list[list[str]]) -> None:
    talk = [("user", prompt), *(("assistant", reply) for reply in replies), ("user", ["again"])]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = transcript(folder, *((role, blocks(texts)) for role, texts in talk))
        there, losses = onward(path, "codex", folder / "there")
        messages, lost = convert(there, "claude-code", folder / "back")
    assert (losses, lost) == ([], [])
    assert spoken(messages) == [(role, text) for role, texts in talk for text in texts]


@pytest.mark.parametrize(
    "output",
    [FAILED["text"], [FAILED], [FAILED, PICTURE], [PICTURE, FAILED], [{"type": "text", "text": ""}, FAILED, PICTURE]],
)
def test_a_failure_that_is_not_read_from_what_is_written_is_named(tmp_path: Path, output: Any) -> None:
    called = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": output}
    path = transcript(tmp_path, ("user", "go"), ("assistant", [called]), ("user", [result]))
    there, losses = onward(path, "codex", tmp_path / "there")
    told = [
        each.get("is_error") for m in read(there).messages for each in m["content"] if each["type"] == "tool_result"
    ]
    assert told == [None if losses else True]
    assert whats(losses) in ([], [(None, "that a call failed")])


def test_thoughts_that_only_events_of_codex_tell_go_on_or_are_named(tmp_path: Path) -> None:
    thought = {"type": "thinking", "thinking": "The tide turns at six.", "signature": "s"}
    talk = ("user", "When?"), ("assistant", [thought]), ("assistant", blocks(["At six."])), ("user", "Sure?")
    there, losses = onward(transcript(tmp_path, *talk), "codex", tmp_path / "there")
    assert losses == []
    messages, lost = convert(there, "gemini", tmp_path / "gemini")
    kept = [block.get("thinking") for message in messages for block in message["content"]]
    assert (whats(lost), [text for text in kept if text]) == ([], ["The tide turns at six."])
    messages, lost = convert(there, "claude-code", tmp_path / "claude")
    assert whats(lost) == [(1, "thinking")]
    assert [text for _, text in spoken(messages)] == ["When?", "At six.", "Sure?"]


def test_a_thought_that_an_item_tells_too_goes_over_once(tmp_path: Path) -> None:
    item = {"type": "reasoning", "summary": [{"type": "summary_text", "text": word} for word in ("one", "two")]}
    events = [event("agent_reasoning", 2, text=word) for word in ("one", "two")]
    path = write(tmp_path, meta(), *asked("go"), *events, line("response_item", item, 3), *answered("done", 4))
    messages, lost = convert(path, "gemini", tmp_path / "there")
    kept = [block["thinking"] for message in messages for block in message["content"] if block["type"] == "thinking"]
    assert (whats(lost), "\n".join(kept).split()) == ([], ["one", "two"])
