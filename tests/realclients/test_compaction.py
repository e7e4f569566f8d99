"""A session that its client compacted is converted: the target sends what the source's own client would send."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.realclients.client import Client, Part, Story
from tests.realclients.clients import CLIENTS
from tests.realclients.conversion import convert
from tests.realclients.history import Entry, texts
from tests.realclients.recording import RESUME_PROMPT, Recording, record, resume, resume_recording
from tests.realclients.script import Call, Say, Usage, turn

CLAUDE, CODEX = CLIENTS["claude"], CLIENTS["codex"]
BEFORE, AFTER = "Make the bell ring twice.", "And what colour has it?"
ANSWERS = ("It rings twice.", "It is green.")
SUMMARY = "The bell was made to ring twice."
FULL = Usage(input=200_000)
"""More than the model's limit below, so that Codex compacts the session before the next prompt."""


def _claude_parts(project: Path) -> tuple[Part, ...]:
    call = Call("Bash", {"command": "cat bell.py", "description": "Read the bell"})
    return (
        Part(BEFORE, (turn(call), turn(Say(ANSWERS[0])))),
        Part("/compact", (turn(Say(f"<analysis>Bells.</analysis><summary>{SUMMARY}</summary>")),)),
        Part(AFTER, (turn(Say(ANSWERS[1])),)),
    )


def _codex_parts(project: Path) -> tuple[Part, ...]:
    call = Call("exec_command", {"cmd": "cat bell.py"})
    return (
        Part(BEFORE, (turn(call), turn(Say(ANSWERS[0]), usage=FULL))),
        # The model answers the request for a summary with "done".
        Part(AFTER, (turn(Say(ANSWERS[1])),)),
    )


STORIES = {
    "claude": Story("claude-compacted", CLAUDE, _claude_parts),
    "codex": Story("codex-compacted", CODEX, _codex_parts, options=("-c", "model_auto_compact_token_limit=100000")),
}
PAIRS = [("claude", CODEX), ("codex", CLAUDE)]


@pytest.fixture(scope="module")
def compacted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recording]:
    return {name: record(story, tmp_path_factory.mktemp(name)) for name, story in STORIES.items()}


def stripped(history: list[Entry]) -> list[tuple[str, str]]:
    """Kinds and texts; Claude Code ends a prompt with a line feed where another one follows."""
    return [(entry.kind, entry.text.strip()) for entry in history]


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=[f"{source}-to-{target.name}" for source, target in PAIRS])
def test_the_target_sends_what_the_source_would(
    source: str, target: Client, compacted: dict[str, Recording], tmp_path: Path
) -> None:
    recording = compacted[source]
    own = recording.client.copy_home(recording.home, tmp_path / "own")
    expected = resume_recording(recording, own, recording.session).check().history()
    outcome = convert(recording.session, recording.home, target, tmp_path / "there")
    resumed = resume(target, tmp_path / "there", recording.project, outcome["session_id"]).check()
    assert stripped(resumed.history()) == stripped(expected)
    assert not [entry for entry in expected if entry.kind == "call"]
    assert "before the compaction" in outcome["losses"][0]["what"] and outcome["losses"][0]["is_note"]


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=[f"{source}-to-{target.name}" for source, target in PAIRS])
def test_the_full_history_is_sent_if_asked(
    source: str, target: Client, compacted: dict[str, Recording], tmp_path: Path
) -> None:
    recording = compacted[source]
    outcome = convert(recording.session, recording.home, target, tmp_path, "--full-history")
    resumed = resume(target, tmp_path, recording.project, outcome["session_id"]).check()
    history = resumed.history()
    assert texts(history, "user")[0].strip() == BEFORE
    assert [entry.kind for entry in history if entry.kind in ("call", "result")] == ["call", "result"]
    assert set(ANSWERS) <= set(texts(history, "answer"))
    assert texts(history, "user")[-1] == RESUME_PROMPT
