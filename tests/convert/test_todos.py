"""Todo lists: set by calls or kept on messages, they go over as they stand at the end, or are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clew.agents import registry
from clew.agents.tools import Translator
from clew.convert.prepare import prepare
from clew.store import Session, Store, TodoItem
from tests.convert.said import only
from tests.convert.transcripts import spoke, transcript

RING = {"content": "ring", "status": "in_progress", "activeForm": "ringing"}
POLISH = {"content": "polish", "status": "pending", "activeForm": "polishing"}
OTHERS = ["codex", "gemini", "sage-emacs"]


def converted(path: Path, target: str, home: Path) -> tuple[list[str] | None, list[tuple[int | None, str]]]:
    """The list as it stands on the messages of the new session, None where it never does, and the losses."""
    found = only(path)
    written = prepare(found.agent, found.source, target).write(home, allow_loss=True)
    there = only(Path(written.files[0]))
    units = there.agent.units(there.source)
    lists = [unit.value["metadata"]["todos"] for unit in units if "todos" in (unit.value.get("metadata") or {})]
    last = [todo["content"] for todo in lists[-1]] if lists else None
    return last, [(loss.message, loss.what) for loss in written.losses]


class TestOfTheStore:
    """Its messages carry the list; no call sets it."""

    @pytest.fixture
    def session(self, tmp_path: Path) -> Session:
        session = Store(tmp_path / "store").session("bells")
        session.user("one")
        return session

    def path(self, session: Session) -> Path:
        session.close()
        return session.folder / "messages.jsonl"

    def test_one_on_a_message_without_words_is_carried_by_the_next(self, session: Session, tmp_path: Path) -> None:
        session.assistant("", todos=[TodoItem(content="ring", status="in_progress")])
        session.user("two")
        assert converted(self.path(session), "claude-code", tmp_path / "home") == (["ring"], [])

    @pytest.mark.parametrize("target", [*OTHERS, "claude-code"])
    def test_one_on_a_last_message_without_words_is_named(self, session: Session, tmp_path: Path, target: str) -> None:
        session.assistant("", todos=[TodoItem(content="ring", status="in_progress")])
        assert converted(self.path(session), target, tmp_path / "home")[1] == [(2, "the todo list")]

    def test_that_no_message_follows_is_the_reason_told(self, session: Session) -> None:
        session.assistant("yes", todos=[TodoItem(content="ring", status="in_progress")])
        found = only(self.path(session))
        told = [loss.why for loss in prepare(found.agent, found.source, "claude-code").losses]
        assert told == ["no message follows it"]

    def emptied(self, session: Session) -> None:
        session.assistant("a", todos=[TodoItem(content="ring", status="in_progress")])
        session.user("b")
        session.assistant("done", todos=[])

    def test_an_emptied_one_stays_empty(self, session: Session, tmp_path: Path) -> None:
        self.emptied(session)
        session.user("c")
        assert converted(self.path(session), "claude-code", tmp_path / "home") == ([], [])

    def test_that_it_was_emptied_at_the_end_is_named(self, session: Session, tmp_path: Path) -> None:
        self.emptied(session)
        losses = [(4, "that the todo list was emptied")]
        assert converted(self.path(session), "claude-code", tmp_path / "home") == (["ring"], losses)

    @pytest.mark.parametrize("target", OTHERS)
    def test_what_no_longer_exists_is_no_loss(self, session: Session, tmp_path: Path, target: str) -> None:
        self.emptied(session)
        assert converted(self.path(session), target, tmp_path / "home")[1] == []


class TestOfClaudeCode:
    def path(self, folder: Path, called: list[dict[str, Any]], *later: dict[str, Any]) -> Path:
        call = {"type": "tool_use", "id": "c1", "name": "TodoWrite", "input": {"todos": called}}
        result = {"type": "tool_result", "tool_use_id": "c1", "content": "ok"}
        said = [spoke("user", "plan"), spoke("assistant", [call]), spoke("user", [result]), *later]
        named = [
            {**record, "uuid": f"u{at}", "parentUuid": f"u{at - 1}" if at else None} for at, record in enumerate(said)
        ]
        return transcript(folder, *named)

    @pytest.mark.parametrize("target", OTHERS)
    def test_one_that_changed_after_the_call_is_named(self, tmp_path: Path, target: str) -> None:
        path = self.path(tmp_path, [RING], spoke("user", "more", todos=[POLISH]))
        assert converted(path, target, tmp_path / "home")[1] == [(4, "the todo list")]

    @pytest.mark.parametrize("target", OTHERS)
    def test_one_that_messages_repeat_as_the_call_set_it_is_no_loss(self, tmp_path: Path, target: str) -> None:
        path = self.path(tmp_path, [RING], spoke("user", "more", todos=[RING]))
        assert converted(path, target, tmp_path / "home")[1] == []

    @pytest.mark.parametrize("target", OTHERS)
    def test_one_that_was_put_away_when_all_was_done_is_no_loss(self, tmp_path: Path, target: str) -> None:
        path = self.path(tmp_path, [{**RING, "status": "completed"}], spoke("user", "more", todos=[]))
        assert converted(path, target, tmp_path / "home")[1] == []

    def test_one_that_was_emptied_without_a_call_is_named(self, tmp_path: Path) -> None:
        path = self.path(tmp_path, [RING], spoke("user", "more", todos=[]))
        assert converted(path, "codex", tmp_path / "home")[1] == [(4, "that the todo list was emptied")]

    def test_a_call_that_failed_sets_nothing(self, tmp_path: Path) -> None:
        call = {"type": "tool_use", "id": "c2", "name": "TodoWrite", "input": {"todos": [POLISH]}}
        result = {"type": "tool_result", "tool_use_id": "c2", "content": "no", "is_error": True}
        path = self.path(tmp_path, [RING], spoke("assistant", [call]), spoke("user", [result]), spoke("user", "more"))
        assert converted(path, "sage-agent", tmp_path / "home") == (["ring"], [])

    def test_sage_agent_keeps_it_on_every_message(self, tmp_path: Path) -> None:
        """It has no tool that sets the list."""
        path = self.path(tmp_path, [RING], spoke("assistant", "so"), spoke("user", "more"))
        assert converted(path, "sage-agent", tmp_path / "home") == (["ring"], [])

    @pytest.mark.parametrize("target", OTHERS)
    def test_a_list_that_no_call_set_is_named(self, tmp_path: Path, target: str) -> None:
        path = transcript(tmp_path, spoke("user", "plan", uuid="u1", parentUuid=None, todos=[RING]))
        assert converted(path, target, tmp_path / "home") == (None, [(1, "the todo list")])


class TestOfTasks:
    """Newer versions of Claude Code set tasks one by one, by tools that nobody else has."""

    def path(self, folder: Path, **answer: Any) -> Path:
        call = {"type": "tool_use", "id": "c1", "name": "TaskCreate", "input": {"subject": "ring", "description": "it"}}
        result = {"type": "tool_result", "tool_use_id": "c1", "content": "Task #1 created", **answer}
        said = [spoke("user", "plan"), spoke("assistant", [call]), spoke("user", [result]), spoke("user", "more")]
        named = [
            {**record, "uuid": f"u{at}", "parentUuid": f"u{at - 1}" if at else None} for at, record in enumerate(said)
        ]
        return transcript(folder, *named)

    @pytest.mark.parametrize("target", OTHERS)
    def test_where_no_message_can_say_it_the_list_is_named(self, tmp_path: Path, target: str) -> None:
        assert converted(self.path(tmp_path), target, tmp_path / "home")[1] == [(3, "the todo list")]

    def test_messages_that_can_say_it_do(self, tmp_path: Path) -> None:
        assert converted(self.path(tmp_path), "sage-agent", tmp_path / "home") == (["ring"], [])

    def test_a_call_that_failed_sets_nothing(self, tmp_path: Path) -> None:
        path = self.path(tmp_path, is_error=True)
        assert converted(path, "sage-agent", tmp_path / "home") == ([], [])


class TestOfCalls:
    def path(self, folder: Path) -> Path:
        todos = [{"content": "ring", "status": "pending", "activeForm": "ringing", "priority": "high"}]
        call = {"type": "tool_use", "id": "c1", "name": "TodoWrite", "input": {"todos": todos}}
        reply = spoke("assistant", [call], uuid="u2", parentUuid="u1")
        return transcript(folder, spoke("user", "plan", uuid="u1", parentUuid=None), reply)

    @pytest.mark.parametrize(
        ("target", "entry"),
        [
            ("codex", {"step": "ring", "status": "pending", "active_form": "ringing", "priority": "high"}),
            ("gemini", {"description": "ring", "status": "pending", "active_form": "ringing", "priority": "high"}),
        ],
    )
    def test_all_of_an_entry_goes_over_with_the_call(self, tmp_path: Path, target: str, entry: dict[str, str]) -> None:
        found = only(self.path(tmp_path))
        written = prepare(found.agent, found.source, target).write(tmp_path / "home")
        there = only(Path(written.files[0]))
        messages = [unit.value for unit in there.agent.units(there.source)]
        (given,) = [block["input"] for each in messages for block in each.get("content", ()) if "input" in block]
        assert [entry] in given.values()

    @pytest.mark.parametrize("own", ["codex", "gemini"])
    def test_a_form_that_one_agent_demands_does_not_come_back(self, own: str) -> None:
        there, own_receiver = registry.get("claude-code").target_profile(), registry.get(own).target_profile()
        assert there is not None and own_receiver is not None
        tools, others = own_receiver.tools, there.tools
        name = next(tool.name for tool in tools if tool.kind == "todos")
        entry = {"step" if own == "codex" else "description": "ring", "status": "pending"}
        given = {"plan" if own == "codex" else "todos": [entry]}
        gone = Translator(tools, others).arguments(name, given)
        assert gone == {"todos": [{"content": "ring", "status": "pending", "activeForm": "ring"}]}
        assert Translator(others, tools).arguments("TodoWrite", gone) == given
