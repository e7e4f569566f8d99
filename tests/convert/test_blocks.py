"""Blocks and arguments that another agent spells otherwise, or has no place for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clew.agents import registry
from clew.agents.tools import Translator
from clew.convert.conversation import is_custom_title
from clew.convert.losses import Loss
from clew.convert.prepare import prepare
from tests.convert.said import only
from tests.convert.transcripts import spoke, transcript

PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}}
PLAIN = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "plain words"}}
OTHERS = ["codex", "gemini", "sage-agent", "sage-emacs"]


def converted(path: Path, target: str, home: Path) -> tuple[Path, list[Loss]]:
    found = only(path)
    written = prepare(found.agent, found.source, target).write(home, allow_loss=True)
    return Path(written.files[0]), written.losses


def read(folder: Path, *result: dict[str, Any]) -> Path:
    """A session in which a tool gave these blocks."""
    call = {"type": "tool_use", "id": "c1", "name": "Read", "input": {"file_path": "a.pdf"}}
    answer = {"type": "tool_result", "tool_use_id": "c1", "content": list(result)}
    return transcript(
        folder,
        spoke("user", "look", uuid="u1", parentUuid=None),
        spoke("assistant", [call], uuid="u2", parentUuid="u1"),
        spoke("user", [answer], uuid="u3", parentUuid="u2"),
    )


def messages(path: Path) -> list[dict[str, Any]]:
    found = only(path)
    return [unit.value for unit in found.agent.units(found.source) if unit.is_message]


class TestDocumentsInResults:
    @pytest.mark.parametrize("target", ["codex", "sage-agent", "sage-emacs"])
    def test_one_that_has_no_place_is_named_and_not_spelled_out(self, tmp_path: Path, target: str) -> None:
        path = read(tmp_path, {"type": "text", "text": "seen"}, PDF)
        file, losses = converted(path, target, tmp_path / "home")
        assert [(loss.message, loss.what) for loss in losses] == [(3, "a document in a tool's result")]
        assert "JVBERg==" not in str(messages(file))
        assert "seen" in str(messages(file))

    @pytest.mark.parametrize("target", OTHERS)
    def test_one_of_text_goes_over_as_text(self, tmp_path: Path, target: str) -> None:
        file, losses = converted(read(tmp_path, PLAIN), target, tmp_path / "home")
        assert losses == []
        assert "plain words" in str(messages(file))

    def test_gemini_and_claude_code_hold_it(self, tmp_path: Path) -> None:
        file, losses = converted(read(tmp_path, {"type": "text", "text": "seen"}, PDF), "gemini", tmp_path / "home")
        assert losses == []
        assert "JVBERg==" in str(messages(file))
        with file.open("a") as stream:
            stream.write('{"id":"n1","timestamp":"2026-11-15T10:00:00.000Z","type":"user","content":"and now?"}\n')
        again, losses = converted(file, "claude-code", tmp_path / "back")
        assert losses == []
        assert "JVBERg==" in str(messages(again))


class TestBlocksOfOneAgentAlone:
    @pytest.mark.parametrize(
        ("kind", "why"),
        [
            ("redacted_thinking", "only its own model can read it"),
            ("server_tool_use", "a tool of the model's provider, which no other agent has"),
            ("web_search_tool_result", "a tool of the model's provider, which no other agent has"),
            ("hologram", "no other agent supports it"),
        ],
    )
    @pytest.mark.parametrize("target", OTHERS)
    def test_the_reason_is_told(self, tmp_path: Path, target: str, kind: str, why: str) -> None:
        said = [{"type": "text", "text": "so"}, {"type": kind, "data": "x"}]
        path = transcript(tmp_path, spoke("assistant", said, uuid="u1", parentUuid=None))
        _, losses = converted(path, target, tmp_path / "home")
        assert [(loss.what, loss.why) for loss in losses] == [(f"a block of the kind {kind!r}", why)]


class TestArguments:
    def translator(self, source: str, target: str) -> Translator:
        one, other = registry.get(source).target_profile(), registry.get(target).target_profile()
        assert one is not None and other is not None
        return Translator(one.tools, other.tools)

    @pytest.mark.parametrize(
        ("source", "target", "name", "given"),
        [
            ("claude-code", "gemini", "Read", {"file_path": "a", "path": "b"}),
            ("claude-code", "gemini", "Edit", {"file_path": "a", "old_string": "x", "old": "y", "new_string": "z"}),
            ("claude-code", "codex", "Bash", {"command": "ls", "cmd": "pwd"}),
            ("codex", "claude-code", "exec_command", {"cmd": "ls", "command": "pwd"}),
            ("gemini", "claude-code", "grep_search", {"pattern": "x", "dir_path": "a", "path": "b"}),
        ],
    )
    def test_two_that_would_get_one_name_stay_as_they_are(
        self, source: str, target: str, name: str, given: dict[str, str]
    ) -> None:
        assert self.translator(source, target).arguments(name, given) == given

    def test_so_do_those_of_an_entry_of_a_todo_list(self) -> None:
        entry = {"content": "ring", "step": "1", "status": "pending"}
        assert self.translator("claude-code", "codex").arguments("TodoWrite", {"todos": [entry]}) == {"plan": [entry]}


@pytest.mark.parametrize(
    ("title", "prompt", "is_more"),
    [
        (None, "Ring the bell", False),
        ("Ring the bell", "Ring  the\nbell", False),
        ("Ring the…", "Ring the bell", False),
        ("Ring the bell", "# Context\n\n## My request:\nRing the bell", False),
        ("Bells of Bow", "Ring the bell", True),
        ("Bells of Bow", None, True),
    ],
)
def test_a_title_is_more_than_the_first_words(title: str | None, prompt: str | None, is_more: bool) -> None:
    assert is_custom_title(title, prompt) is is_more
