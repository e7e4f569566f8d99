"""Results that come twice, late, or behind other words: each stays with its call, and nothing of them is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clew.convert.losses import Loss
from clew.convert.prepare import prepare
from tests.convert.said import Said, only, said
from tests.convert.transcripts import spoke, transcript

OTHERS = ["codex", "gemini", "sage-agent", "sage-emacs"]


def called(*calls: str) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": call, "name": "Bash", "input": {"command": call}} for call in calls]


def answered(call: str, text: str, **more: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": call, "content": text, **more}]


def chained(folder: Path, *said: tuple[str, str | list[dict[str, Any]]]) -> Path:
    """A session in which each message follows the one before."""
    records = [
        spoke(role, words, uuid=f"u{number}", parentUuid=f"u{number - 1}" if number else None)
        for number, (role, words) in enumerate(said)
    ]
    return transcript(folder, *records)


def converted(path: Path, target: str, home: Path) -> tuple[list[Said], list[Loss]]:
    found = only(path)
    written = prepare(found.agent, found.source, target).write(home, allow_loss=True)
    copy = only(Path(written.files[0]))
    assert "no result was recorded" not in copy.source.path.read_text()
    return said(copy.agent, copy.source), written.losses


@pytest.mark.parametrize("target", OTHERS)
class TestTwice:
    def test_the_second_result_of_a_call_goes_over_as_words(self, tmp_path: Path, target: str) -> None:
        path = chained(
            tmp_path,
            ("user", "try"),
            ("assistant", called("c1")),
            ("user", answered("c1", "first")),
            ("user", answered("c1", "second")),
            ("assistant", "done"),
        )
        words, losses = converted(path, target, tmp_path / "home")
        assert words == [
            ("user", "try"),
            ("call", ""),
            ("result", "first"),
            ("user", "second"),
            ("assistant", "done"),
        ]
        assert losses == []

    def test_that_it_failed_is_named(self, tmp_path: Path, target: str) -> None:
        path = chained(
            tmp_path,
            ("user", "try"),
            ("assistant", called("c1")),
            ("user", answered("c1", "first")),
            ("user", answered("c1", "second", is_error=True)),
        )
        words, losses = converted(path, target, tmp_path / "home")
        assert ("user", "[failed]\nsecond") in words
        assert losses == [Loss(None, "that a call failed", "its text begins with [failed]", is_note=True)]

    def test_a_call_that_is_made_again_is_answered_again(self, tmp_path: Path, target: str) -> None:
        path = chained(
            tmp_path,
            ("user", "try"),
            ("assistant", called("c1")),
            ("user", answered("c1", "first")),
            ("assistant", called("c1")),
            ("user", answered("c1", "second")),
        )
        words, _ = converted(path, target, tmp_path / "home")
        assert [word for word in words if word[0] == "result"] == [("result", "first"), ("result", "second")]


@pytest.mark.parametrize("target", ["codex", "gemini"])
class TestLate:
    def test_words_between_two_results_leave_both_with_their_calls(self, tmp_path: Path, target: str) -> None:
        path = chained(
            tmp_path,
            ("user", "try"),
            ("assistant", called("c1", "c2")),
            ("user", answered("c1", "first")),
            ("user", "hurry up"),
            ("user", answered("c2", "second")),
            ("assistant", "done"),
        )
        words, losses = converted(path, target, tmp_path / "home")
        assert sorted(words) == sorted(
            [
                ("user", "try"),
                ("call", ""),
                ("call", ""),
                ("result", "first"),
                ("user", "hurry up"),
                ("result", "second"),
                ("assistant", "done"),
            ]
        )
        assert words[-1] == ("assistant", "done")
        assert losses == []

    def test_a_result_that_comes_after_more_was_said(self, tmp_path: Path, target: str) -> None:
        path = chained(
            tmp_path,
            ("user", "try"),
            ("assistant", called("c1")),
            ("user", "hurry up"),
            ("assistant", "it takes a while"),
            ("user", answered("c1", "there")),
            ("assistant", "done"),
        )
        words, losses = converted(path, target, tmp_path / "home")
        assert ("result", "there") in words
        assert [word for word in words if word[0] in ("user", "assistant")] == [
            ("user", "try"),
            ("user", "hurry up"),
            ("assistant", "it takes a while"),
            ("assistant", "done"),
        ]
        assert losses == []
