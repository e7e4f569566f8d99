"""What converters easily lose: results of parallel calls, a stale leaf, prompts that look like notes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clew.convert.losses import Loss, serious
from clew.convert.prepare import prepare
from tests.convert.said import Said, only, said
from tests.convert.transcripts import spoke, transcript

TARGETS = ["codex", "gemini", "sage-agent"]


def converted(path: Path, target: str, home: Path) -> tuple[list[Said], list[Loss]]:
    found = only(path)
    written = prepare(found.agent, found.source, target).write(home)
    copy = only(Path(written.files[0]))
    return said(copy.agent, copy.source), written.losses


def call(identity: str) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": identity, "name": "Bash", "input": {"command": f"echo {identity}"}}]


def result(identity: str, **more: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": identity, "content": f"of {identity}", **more}]


def results_by_call(path: Path, target: str, home: Path) -> dict[str, str]:
    found = only(path)
    copy = only(Path(prepare(found.agent, found.source, target).write(home).files[0]))
    blocks = [block for unit in copy.agent.units(copy.source) if unit.is_message for block in unit.value["content"]]
    calls = {block["tool_id"]: str(block["input"]) for block in blocks if block["type"] == "tool_use"}
    return {calls[block["tool_id"]]: str(block["output"]) for block in blocks if block["type"] == "tool_result"}


@pytest.mark.parametrize("target", TARGETS)
def test_results_of_parallel_calls_stay_with_their_calls(target: str, tmp_path: Path) -> None:
    """Claude Code writes a record for each call of a reply; each result is the child of its own call."""
    path = transcript(
        tmp_path,
        spoke("user", "ring all", uuid="u1", parentUuid=None),
        spoke("assistant", call("c1"), uuid="u2", parentUuid="u1"),
        spoke("assistant", call("c2"), uuid="u3", parentUuid="u2"),
        spoke("assistant", call("c3"), uuid="u4", parentUuid="u3"),
        spoke("user", result("c2"), uuid="u5", parentUuid="u3"),
        spoke("user", result("c1"), uuid="u6", parentUuid="u2"),
        spoke("user", result("c3"), uuid="u7", parentUuid="u4"),
        spoke("assistant", "all rang", uuid="u8", parentUuid="u7"),
    )
    found = results_by_call(path, target, tmp_path / "home")
    assert len(found) == 3
    assert all(output.removeprefix("of ") in arguments for arguments, output in found.items())


@pytest.mark.parametrize("target", TARGETS)
def test_messages_behind_a_stale_leaf_go_over(target: str, tmp_path: Path) -> None:
    """The record `last-prompt` names the leaf at the last prompt; the replies that follow belong to the session."""
    path = transcript(
        tmp_path,
        spoke("user", "one", uuid="u1", parentUuid=None),
        {"type": "last-prompt", "lastPrompt": "one", "leafUuid": "u1", "sessionId": "s"},
        spoke("assistant", "two", uuid="u2", parentUuid="u1"),
        spoke("user", "three", uuid="u3", parentUuid="u2"),
        spoke("assistant", "four", uuid="u4", parentUuid="u3"),
    )
    words, losses = converted(path, target, tmp_path / "home")
    assert [text for _, text in words] == ["one", "two", "three", "four"]
    assert not losses


@pytest.mark.parametrize("target", TARGETS)
def test_the_bodies_of_commands_and_skills_go_over(target: str, tmp_path: Path) -> None:
    """Records with isMeta hold what a command or a skill told the model, so the model must get it."""
    path = transcript(
        tmp_path,
        spoke("user", "<command-name>/review</command-name>", uuid="u1", parentUuid=None),
        spoke("user", "Review the change with care.", uuid="u2", parentUuid="u1", isMeta=True),
        spoke("assistant", "It is fine.", uuid="u3", parentUuid="u2"),
    )
    words, _ = converted(path, target, tmp_path / "home")
    assert ("user", "Review the change with care.") in words


@pytest.mark.parametrize("target", TARGETS)
def test_an_ordinary_session_needs_no_consent(target: str, tmp_path: Path) -> None:
    """Thinking, failed calls, queued prompts and missing sub-agents are notes."""
    thought = [{"type": "thinking", "thinking": "hm", "signature": "x"}, {"type": "text", "text": "I try."}]
    path = transcript(
        tmp_path,
        spoke("user", "try", uuid="u1", parentUuid=None),
        spoke("assistant", thought, uuid="u2", parentUuid="u1"),
        spoke("assistant", call("c1"), uuid="u3", parentUuid="u2"),
        spoke("user", result("c1", is_error=True), uuid="u4", parentUuid="u3", toolUseResult={"agentId": "a1b2c3d"}),
        {"type": "queue-operation", "operation": "enqueue", "content": "later", "sessionId": "s"},
        spoke("assistant", "It failed.", uuid="u5", parentUuid="u4"),
    )
    words, losses = converted(path, target, tmp_path / "home")
    assert ("result", "of c1") in words
    assert not serious(losses)
    if target == "codex":
        found = results_by_call(path, target, tmp_path / "again")
        assert list(found.values()) == ["[failed]\nof c1"]
