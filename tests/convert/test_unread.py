"""Words in a form that nobody expects go over as JSON, or are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clew.convert.losses import Loss
from clew.convert.prepare import prepare
from tests.agents import gemini_worlds as bell
from tests.agents.rollouts import answered, asked, item, meta, words, write
from tests.convert.said import Said, only, said
from tests.convert.transcripts import spoke, transcript

TARGETS = ["claude-code", "codex", "gemini", "sage-agent", "sage-emacs"]


def converted(path: Path, target: str, home: Path) -> tuple[list[Said], list[Loss]]:
    found = only(path)
    written = prepare(found.agent, found.source, target).write(home, allow_loss=True)
    copy = only(Path(written.files[0]))
    return said(copy.agent, copy.source), written.losses


def others(agent: str) -> list[str]:
    return [target for target in TARGETS if target != agent]


@pytest.mark.parametrize("target", others("codex"))
class TestCodex:
    def rollout(self, folder: Path, *lines: dict[str, Any]) -> Path:
        return write(folder, meta(), *asked("go", 1), *lines, *answered("done", 5))

    @pytest.mark.parametrize(("output", "text"), [({"output": "hm"}, '{"output":"hm"}'), (123, "123")])
    def test_a_result_that_is_no_text(self, tmp_path: Path, target: str, output: Any, text: str) -> None:
        call = item("function_call", 2, name="f", arguments="{}", call_id="c")
        path = self.rollout(tmp_path, call, item("function_call_output", 3, call_id="c", output=output))
        spoken, losses = converted(path, target, tmp_path / "there")
        assert ("result", text) in spoken
        assert losses == []

    def test_a_role_that_nobody_knows(self, tmp_path: Path, target: str) -> None:
        path = self.rollout(tmp_path, words("critic", "hm"))
        _, losses = converted(path, target, tmp_path / "there")
        assert [loss.what for loss in losses] == ["a message of the kind 'critic'"]

    def test_what_a_sub_agent_answered(self, tmp_path: Path, target: str) -> None:
        told = '<subagent_notification>\n{"status":{"completed":"half up"}}\n</subagent_notification>'
        spoken, losses = converted(self.rollout(tmp_path, words("user", told)), target, tmp_path / "there")
        assert ("user", told) in spoken
        assert losses == []


@pytest.mark.parametrize("target", others("claude-code"))
class TestClaudeCode:
    @pytest.mark.parametrize(("content", "text"), [({"a": "hm"}, '{"a":"hm"}'), (123, "123")])
    def test_a_result_that_is_no_text(self, tmp_path: Path, target: str, content: Any, text: str) -> None:
        call = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {}}
        result = {"type": "tool_result", "tool_use_id": "c1", "content": content}
        path = transcript(
            tmp_path,
            spoke("user", "go", uuid="u1", parentUuid=None),
            spoke("assistant", [call], uuid="u2", parentUuid="u1"),
            spoke("user", [result], uuid="u3", parentUuid="u2"),
        )
        spoken, losses = converted(path, target, tmp_path / "there")
        assert ("result", text) in spoken
        assert losses == []

    def test_a_prompt_that_is_no_text(self, tmp_path: Path, target: str) -> None:
        odd = {**spoke("user", "", uuid="u1", parentUuid=None), "message": {"role": "user", "content": {"x": "hm"}}}
        path = transcript(tmp_path, odd, spoke("assistant", "done", uuid="u2", parentUuid="u1"))
        spoken, losses = converted(path, target, tmp_path / "there")
        assert ("user", '{"x":"hm"}') in spoken
        assert losses == []


@pytest.mark.parametrize("target", others("gemini"))
class TestGemini:
    def chat(self, folder: Path, *records: dict[str, Any]) -> Path:
        return bell.log(folder, bell.header(kind="main"), bell.user("u1", "go"), *records)

    def test_a_call_that_had_not_ended(self, tmp_path: Path, target: str) -> None:
        going = bell.gemini("g1", "wait", toolCalls=[bell.call("c", status="executing", output="half")])
        _, losses = converted(self.chat(tmp_path, going), target, tmp_path / "there")
        assert [loss.what for loss in losses] == ["the partial output of a call"]

    @pytest.mark.parametrize("prompt", ["/home/ada/x.py fails", "// why?", "/* why */", "?? what"])
    def test_prompts_that_only_look_like_commands(self, tmp_path: Path, target: str, prompt: str) -> None:
        spoken, _ = converted(self.chat(tmp_path, bell.user("u2", prompt)), target, tmp_path / "there")
        assert ("user", prompt) in spoken

    def test_a_command_that_the_model_answered_was_none(self, tmp_path: Path, target: str) -> None:
        path = self.chat(tmp_path, bell.user("u2", "/fix it"), bell.gemini("g1", "done"), bell.user("u3", "/quit"))
        spoken, losses = converted(path, target, tmp_path / "there")
        assert spoken == [("user", "go"), ("user", "/fix it"), ("assistant", "done")]
        assert losses == []
