"""Which messages go over, and that all others are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clew.convert.conversion import NothingToConvert
from clew.convert.prepare import prepare
from clew.errors import WouldLose
from clew.store import Session, Store
from tests.convert.said import only, said
from tests.convert.transcripts import helped, spoke, transcript, tried

OTHERS = ["codex", "gemini", "sage-emacs"]


def texts(path: Path) -> list[str]:
    found = only(path)
    return [text for _, text in said(found.agent, found.source)]


def converted(path: Path, target: str, home: Path, branch: str | None = None) -> tuple[list[str], list[str]]:
    """What was said in the new session, and what was lost on the way."""
    found = only(path)
    written = prepare(found.agent, found.source, target, branch).write(home, allow_loss=True)
    return texts(Path(written.files[0])), [loss.what for loss in written.losses]


class TestBranchesOfTheStore:
    @pytest.fixture
    def session(self, tmp_path: Path) -> Session:
        """Asked twice: after the first answer the person went back."""
        session = Store(tmp_path / "store").session("tides")
        session.user("how high is the tide?", uuid="q1")
        session.assistant("4 m", uuid="a1")
        session.user("and tomorrow?", uuid="q2")
        session.assistant("5 m", uuid="a2")
        session.user("and at night?", uuid="q3", parent="a1")
        session.assistant("3 m", uuid="a3")
        return session

    @pytest.mark.parametrize("target", [*OTHERS, "claude-code"])
    def test_the_branch_that_was_left_is_a_loss(self, session: Session, tmp_path: Path, target: str) -> None:
        session.close()
        words, losses = converted(session.folder / "messages.jsonl", target, tmp_path / "home")
        assert words == ["how high is the tide?", "4 m", "and at night?", "3 m"]
        assert losses == ["2 messages on other branches"]

    @pytest.mark.parametrize("target", [*OTHERS, "sage-agent"])
    def test_the_rest_is_named_for_a_chosen_branch_too(self, session: Session, tmp_path: Path, target: str) -> None:
        session.close()
        path = session.folder / "messages.jsonl"
        words, losses = converted(path, target, tmp_path / "home", "a2")
        assert words == ["how high is the tide?", "4 m", "and tomorrow?", "5 m"]
        assert losses == ["2 messages on other branches"]
        with pytest.raises(WouldLose):
            prepare(only(path).agent, only(path).source, target, "a2").write(tmp_path / "other")

    def test_a_uuid_may_begin_with_digits_alone(self, session: Session, tmp_path: Path) -> None:
        session.user("and on Sunday?", uuid="20260614-a", parent="a1")
        session.close()
        words, _ = converted(session.folder / "messages.jsonl", "codex", tmp_path / "home", "20260614")
        assert words == ["how high is the tide?", "4 m", "and on Sunday?"]

    def test_a_uuid_with_which_another_begins_names_its_own_branch(self, session: Session, tmp_path: Path) -> None:
        session.user("and on Sunday?", uuid="q22", parent="a1")
        session.close()
        words, _ = converted(session.folder / "messages.jsonl", "codex", tmp_path / "home", "q2")
        assert words == ["how high is the tide?", "4 m", "and tomorrow?", "5 m"]

    def test_the_store_itself_loses_nothing(self, session: Session, tmp_path: Path) -> None:
        session.switch("main")
        session.close()
        words, losses = converted(session.folder / "messages.jsonl", "sage-agent", tmp_path / "home")
        assert words == ["how high is the tide?", "4 m", "and tomorrow?", "5 m"]
        assert losses == []


class TestMessagesWithoutNames:
    @pytest.mark.parametrize("target", [*OTHERS, "claude-code"])
    def test_those_without_uuids_follow_each_other(self, tmp_path: Path, target: str) -> None:
        path = transcript(tmp_path, spoke("user", "one"), spoke("assistant", "two"), spoke("user", "three"))
        assert converted(path, target, tmp_path / "home") == (["one", "two", "three"], [])

    @pytest.mark.parametrize("target", OTHERS)
    def test_those_that_never_name_a_parent_follow_each_other(self, tmp_path: Path, target: str) -> None:
        lines = [spoke("user", "one"), spoke("assistant", "two"), spoke("user", "")]
        path = transcript(tmp_path, *({**line, "uuid": f"u{at}", "parentUuid": None} for at, line in enumerate(lines)))
        assert converted(path, target, tmp_path / "home") == (["one", "two"], [])

    def test_those_with_names_and_those_without_make_one_path(self, tmp_path: Path) -> None:
        path = transcript(
            tmp_path,
            spoke("user", "one"),
            spoke("assistant", "two", uuid="u2", parentUuid=None),
            spoke("user", "three", uuid="u3", parentUuid="u2"),
            spoke("assistant", "four"),
            spoke("user", "five"),
        )
        assert converted(path, "codex", tmp_path / "home") == (["one", "two", "three", "four", "five"], [])

    def test_two_beginnings_with_names_stay_two(self, tmp_path: Path) -> None:
        path = transcript(
            tmp_path,
            spoke("user", "one", uuid="u1", parentUuid=None),
            spoke("assistant", "two", uuid="u2", parentUuid="u1"),
            spoke("user", "three", uuid="u3", parentUuid=None),
        )
        assert converted(path, "codex", tmp_path / "home") == (["three"], ["2 messages on other branches"])
        assert converted(path, "codex", tmp_path / "b", "1") == (["one", "two"], ["1 message on other branches"])

    def test_a_parent_that_is_missing_in_front_of_nameless_ones_is_bridged(self, tmp_path: Path) -> None:
        path = transcript(tmp_path, spoke("user", "one"), spoke("assistant", "two", uuid="u2", parentUuid="gone"))
        assert converted(path, "gemini", tmp_path / "home") == (["one", "two"], [])
        assert converted(path, "claude-code", tmp_path / "same") == (["one", "two"], [])


class TestResultsWithoutCalls:
    def result(self, content: Any) -> dict[str, Any]:
        return spoke("user", [{"type": "tool_result", "tool_use_id": "gone", "content": content}], uuid="r")

    @pytest.mark.parametrize("target", OTHERS)
    def test_one_that_says_nothing_is_no_session(self, tmp_path: Path, target: str) -> None:
        found = only(transcript(tmp_path, self.result("")))
        with pytest.raises(NothingToConvert, match="the session has no messages to convert"):
            prepare(found.agent, found.source, target)

    @pytest.mark.parametrize("target", OTHERS)
    def test_one_that_says_nothing_is_a_loss_beside_others(self, tmp_path: Path, target: str) -> None:
        path = transcript(tmp_path, self.result(""), spoke("assistant", "done", uuid="a", parentUuid="r"))
        assert converted(path, target, tmp_path / "home") == (["done"], ["an empty result"])

    def test_its_picture_goes_over(self, tmp_path: Path) -> None:
        picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
        path = transcript(tmp_path, self.result([{"type": "text", "text": "look"}, picture]))
        assert converted(path, "gemini", tmp_path / "home") == (["look", "AAAA"], [])
        assert converted(path, "sage-agent", tmp_path / "b") == (["look"], ["a picture in a tool's result"])

    def test_thoughts_alone_are_no_session(self, tmp_path: Path) -> None:
        thought = {"type": "thinking", "thinking": "hm", "signature": "x"}
        found = only(transcript(tmp_path, spoke("assistant", [thought])))
        with pytest.raises(NothingToConvert, match="the session has no messages to convert"):
            prepare(found.agent, found.source, "codex")


class TestSubAgentsInTheSameFile:
    @pytest.mark.parametrize(("parent", "named"), [(None, "the sub-agent s1"), ("u2", "2 messages of sub-agents")])
    def test_they_are_named(self, tmp_path: Path, parent: str | None, named: str) -> None:
        path = transcript(tmp_path, *helped(parent))
        assert converted(path, "codex", tmp_path / "home") == (["one", "two", "three"], [named])
        assert converted(path, "claude-code", tmp_path / "same") == (["one", "two", "three"], [])
        assert converted(path, "claude-code", tmp_path / "path", "u3") == (["one", "two", "three"], [named])

    def test_one_that_is_chosen_leaves_the_conversation(self, tmp_path: Path) -> None:
        path = transcript(tmp_path, *helped(None))
        assert converted(path, "codex", tmp_path / "home", "s1") == (
            ["aside", "aside too"],
            ["3 messages on other branches"],
        )


class TestFailures:
    @pytest.mark.parametrize(("is_error", "losses"), [(True, ["that a call failed"]), (False, [])])
    def test_what_codex_does_not_mark_is_named(self, tmp_path: Path, is_error: bool, losses: list[str]) -> None:
        path = transcript(tmp_path, *tried(is_error=is_error))
        assert converted(path, "codex", tmp_path / "home")[1] == losses
        assert converted(path, "gemini", tmp_path / "other")[1] == []

    def test_a_failure_without_its_call_is_named(self, tmp_path: Path) -> None:
        path = transcript(tmp_path, *tried(is_error=True)[2:])
        assert converted(path, "gemini", tmp_path / "home") == (["[failed]\nno"], ["that a call failed"])
