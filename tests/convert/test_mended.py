"""A session written anew for its own agent, beside the original: whole, found, and with its sub-agents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clew.convert.losses import Converted
from clew.convert.prepare import prepare
from clew.export.verify import verify
from clew.host import Host
from clew.library import Library, StoredSession
from tests.agents import gemini_worlds as bell
from tests.agents import rollouts as codex
from tests.convert.said import said

PROJECT = ".claude/projects/-home-ada"
MAIN = "aaaaaaaa-0000-4000-8000-000000000001"


def write(path: Path, *records: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records))
    return path


def mend(home: Path, session: str, into: Path | None = None) -> tuple[Converted, dict[str, StoredSession]]:
    """Write a session anew in its own home, or in another; and what lies there then."""
    library = Library(Host.at(home))
    found = library.get(session)
    prepared = prepare(found.agent, found.source, found.agent.id, find=library.subagents(found))
    written = prepared.write(into or home)
    return written, {each.id: each for each in Library(Host.at(into or home)).sources()}


def words(session: StoredSession) -> list[tuple[str, str]]:
    return said(session.agent, session.source)


class TestCodex:
    @pytest.fixture
    def home(self, tmp_path: Path) -> Path:
        spawned = {"parent_thread_id": codex.THREAD, "depth": 1, "agent_nickname": "Kepler"}
        answer = json.dumps({"agent_id": codex.OTHER, "nickname": "Kepler"})
        codex.write(
            tmp_path,
            codex.meta(),
            *codex.asked("go"),
            codex.item("function_call", name="spawn_agent", arguments='{"message":"look"}', call_id="c1"),
            codex.item("function_call_output", call_id="c1", output=answer),
            codex.item("function_call", name="wait", arguments=json.dumps({"ids": [codex.OTHER]}), call_id="c2"),
            *codex.answered("done"),
        )
        head = codex.meta(codex.OTHER, source={"subagent": {"thread_spawn": spawned}})
        codex.write(tmp_path, head, *codex.asked("look"), *codex.answered("seen"), thread=codex.OTHER)
        return tmp_path

    def test_the_parent_names_the_new_sub_agent(self, home: Path) -> None:
        written, there = mend(home, codex.THREAD)
        parent = there[written.session_id]
        (name,) = [link.session_id for link in parent.header.subagents or ()]
        child = there[name or ""]
        assert child.id != codex.OTHER
        assert child.header.parent_session_id == written.session_id
        assert words(child) == words(there[codex.OTHER])
        assert codex.OTHER.encode() not in parent.path.read_bytes().partition(b'{"type":"clew-origin"')[0]
        assert verify(parent.agent, parent.source).holds

    def test_an_archived_one_lies_among_the_others_afterwards(self, home: Path) -> None:
        lines = [codex.meta(codex.THIRD), *codex.asked("old")]
        codex.write(home, *lines, thread=codex.THIRD, folder="archived_sessions")
        written, there = mend(home, codex.THIRD)
        assert "/.codex/sessions/2026/03/02/" in written.files[0]
        assert words(there[written.session_id]) == words(there[codex.THIRD])

    def test_one_whose_name_tells_another_id_gets_a_name_of_its_own(self, home: Path) -> None:
        codex.write(home, codex.meta(codex.THIRD), *codex.asked("odd"), thread="019f0000-0000-7000-8000-00000000000f")
        written, there = mend(home, codex.THIRD)
        assert written.session_id in written.files[0]
        assert words(there[written.session_id]) == [("user", "odd")]

    def test_what_replaces_a_rollout_becomes_a_thread_of_its_own(self, home: Path) -> None:
        base = {"thread_id": codex.THREAD, "end_ordinal_exclusive": 3}
        name = f"{codex.THREAD}_{codex.THIRD}"
        codex.write(home, codex.meta(history_base=base), *codex.asked("anew"), thread=name)
        library = Library(Host.at(home))
        found = library.get(name)
        prepared = prepare(found.agent, found.source, "codex")
        written = prepared.write(home, allow_loss=True)
        assert [loss.what for loss in written.losses] == [f"the history before it, in the thread {codex.THREAD}"]
        there = {each.id: each for each in library.sources()}
        assert words(there[written.session_id]) == [("user", "anew")]


class TestSageEmacs:
    def record(self, role: str, text: str, **more: Any) -> dict[str, Any]:
        return {"role": role, "content": text, "timestamp": "2026-01-10T12:00:00Z", **more}

    def home(self, tmp_path: Path, name: str, **more: Any) -> Path:
        folder = tmp_path / "home/.emacs.d/sage/projects/-home-ada-bell"
        write(folder / name, self.record("user", "ring", **more), self.record("assistant", "ding", **more))
        return tmp_path / "home"

    @pytest.mark.parametrize("more", [{}, {"session_id": "s1"}])
    @pytest.mark.parametrize("name", ["conversation.jsonl", "history/20260110-120000.jsonl"])
    def test_it_is_listed_under_the_id_that_was_told(self, tmp_path: Path, name: str, more: dict[str, str]) -> None:
        home = self.home(tmp_path, name, **more)
        if name.startswith("history"):
            (home / ".emacs.d/sage/projects/-home-ada-bell/metadata.json").write_text("{}")
        (session,) = Library(Host.at(home)).sources()
        written, there = mend(home, session.id, tmp_path / "new")
        assert list(there) == [written.session_id]
        assert Path(written.files[0]).name == "conversation.jsonl"
        assert words(there[written.session_id]) == words(session)


class TestClaudeCode:
    def said(self, role: str, uuid: str, parent: str | None, **more: Any) -> dict[str, Any]:
        message = {"role": role, "content": [{"type": "text", "text": f"words of {uuid}"}]}
        record = {"parentUuid": parent, "isSidechain": False, "cwd": "/home/ada", "sessionId": MAIN, **more}
        return {**record, "type": role, "message": message, "uuid": uuid, "timestamp": "2026-05-01T08:00:00.000Z"}

    @pytest.fixture
    def home(self, tmp_path: Path) -> Path:
        """The sub-agent lies beside its session, as older clients had it."""
        write(tmp_path / PROJECT / f"{MAIN}.jsonl", self.said("user", "u1", None), self.said("assistant", "u2", "u1"))
        inside = {"isSidechain": True, "agentId": "beef0001"}
        lines = self.said("user", "s1", None, **inside), self.said("assistant", "s2", "s1", **inside)
        write(tmp_path / PROJECT / "agent-beef0001.jsonl", *lines)
        return tmp_path

    def test_a_sub_agent_beside_its_session_goes_with_it_into_the_same_home(self, home: Path) -> None:
        before = {path: path.read_bytes() for path in home.rglob("*.jsonl")}
        written, _ = mend(home, MAIN)
        assert {path: path.read_bytes() for path in before} == before
        folder = home / PROJECT / written.session_id / "subagents"
        assert written.files[0] == str(home / PROJECT / f"{written.session_id}.jsonl")
        assert str(folder / "agent-beef0001.jsonl") in written.files
        parent = next(each for each in Library(Host.at(home)).sources() if each.id == written.session_id)
        assert [link.session_id for link in parent.header.subagents or ()] == ["agent-beef0001"]

    def test_a_sub_agent_by_itself_is_one_afterwards(self, home: Path) -> None:
        written, there = mend(home, "agent-beef0001")
        copy = there[written.session_id]
        assert written.session_id.startswith("agent-")
        assert (copy.is_subagent, copy.header.parent_session_id) == (True, MAIN)
        assert words(copy) == words(there["agent-beef0001"])


class TestGemini:
    def test_a_sub_agent_goes_with_its_session_into_the_same_home(self, tmp_path: Path) -> None:
        chats = tmp_path / ".gemini/tmp/bell/chats"
        write(chats / f"{bell.NAME}.jsonl", bell.header(kind="main"), bell.user("u1"), bell.gemini("g1"))
        inside = {**bell.header(kind="subagent"), "sessionId": "helper-1"}
        write(chats / bell.SESSION / "helper-1.jsonl", inside, bell.user("s1", "Pull."), bell.gemini("s2", "Pulled."))
        written, _ = mend(tmp_path, bell.SESSION)
        assert str(chats / written.session_id / "helper-1.jsonl") in written.files
        parent = next(each for each in Library(Host.at(tmp_path)).sources() if each.id == written.session_id)
        assert [link.session_id for link in parent.header.subagents or ()] == ["helper-1"]
