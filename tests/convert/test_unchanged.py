"""A session comes back only as long as nothing of it changed; what changed gets an id of its own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from clew.agents.base import Agent, SourceFile
from clew.convert.losses import Converted
from clew.convert.prepare import Prepared, prepare
from clew.convert.restore_original import Restoration
from clew.host import Host
from clew.library import Library, StoredSession
from clew.sources.local import Found
from tests.agents import gemini_worlds as bell
from tests.convert.said import only, said

WITH_AGENTS = "38ed9768-3187-478b-a81f-4c75a5724c22"
PLAIN = "4e27a2d4-d285-4d42-9f9d-f3fa74062c23"


def way(home: Path, session: str, target: str) -> Prepared:
    library = Library(Host.at(home))
    found = library.get(session)
    return prepare(found.agent, found.source, target, find=library.subagents(found))


def sessions(home: Path) -> dict[str, StoredSession]:
    return {each.id: each for each in Library(Host.at(home)).sources()}


class TestWayBack:
    @pytest.mark.parametrize("place", ["codex", "gemini"])
    def test_a_sub_agent_that_went_on_is_not_dropped(self, demo: Path, tmp_path: Path, place: str) -> None:
        converted = way(demo, WITH_AGENTS, place).write(tmp_path / "there")
        child = next(each for each in sessions(tmp_path / "there").values() if each.is_subagent)
        words = said(child.agent, child.source)
        text = next(text for role, text in words if role == "assistant" and text)
        spelled = json.dumps(text)[1:-1].encode()
        child.path.write_bytes(child.path.read_bytes().replace(spelled, b"something new"))
        back = way(tmp_path / "there", converted.session_id, "claude-code")
        assert not isinstance(back, Restoration)
        written = back.write(tmp_path / "back", allow_loss=True)
        assert any(b"something new" in Path(file).read_bytes() for file in written.files)
        assert written.session_id != WITH_AGENTS

    def test_a_name_given_in_codex_is_not_dropped(self, demo: Path, tmp_path: Path) -> None:
        converted = way(demo, PLAIN, "codex").write(tmp_path / "there", allow_loss=True)
        with (tmp_path / "there/.codex/session_index.jsonl").open("a") as stream:
            stream.write(json.dumps({"id": converted.session_id, "thread_name": "Called anew"}) + "\n")
        self.check_called_anew(tmp_path, converted)

    def test_a_name_given_in_sage_is_not_dropped(self, demo: Path, tmp_path: Path) -> None:
        converted = way(demo, PLAIN, "sage-agent").write(tmp_path / "there", allow_loss=True)
        metadata = Path(converted.files[0]).with_name("metadata.json")
        metadata.write_text(json.dumps({**json.loads(metadata.read_text()), "customTitle": "Called anew"}))
        self.check_called_anew(tmp_path, converted)

    def check_called_anew(self, folder: Path, converted: Converted) -> None:
        written = way(folder / "there", converted.session_id, "claude-code").write(folder / "back", allow_loss=True)
        assert sessions(folder / "back")[written.session_id].header.title == "Called anew"

    @pytest.mark.parametrize("place", ["codex", "gemini", "sage-agent", "sage-emacs"])
    def test_what_did_not_change_comes_back(self, demo: Path, tmp_path: Path, place: str) -> None:
        for session in (PLAIN, WITH_AGENTS):
            converted = way(demo, session, place).write(tmp_path / session, allow_loss=True)
            back = prepare(*pair(only(Path(converted.files[0]))), "claude-code")
            assert isinstance(back, Restoration)

    def test_what_was_moved_away_alone_still_comes_back(self, demo: Path, tmp_path: Path) -> None:
        converted = way(demo, WITH_AGENTS, "codex").write(tmp_path / "there")
        alone = shutil.copy(converted.files[0], tmp_path)
        assert isinstance(prepare(*pair(only(Path(alone))), "claude-code"), Restoration)


def pair(found: Found) -> tuple[Agent, SourceFile]:
    return found.agent, found.source


class TestIdentity:
    def changed(self, home: Path, session: str, path: Path, old: bytes, new: bytes) -> tuple[str, str]:
        """The ids before and after an edit of equal size; both lie side by side."""
        assert len(old) == len(new)
        before = way(home, session, "codex").write(home / "out", allow_loss=True)
        assert way(home, session, "codex").describe(home / "out").session_id == before.session_id
        content = path.read_bytes()
        assert old in content
        path.write_bytes(content.replace(old, new))
        after = way(home, session, "codex").write(home / "out", allow_loss=True)
        return before.session_id, after.session_id

    def test_an_edit_of_equal_size(self, tmp_path: Path) -> None:
        chats = tmp_path / ".gemini/tmp/bell/chats"
        path = bell_chat(chats / f"{bell.NAME}.jsonl", "Ring the bell.")
        one, other = self.changed(tmp_path, bell.SESSION, path, b"Ring", b"Rung")
        assert one != other

    def test_a_change_in_a_sub_agent(self, tmp_path: Path) -> None:
        chats = tmp_path / ".gemini/tmp/bell/chats"
        bell_chat(chats / f"{bell.NAME}.jsonl", "Ring the bell.")
        inside = {**bell.header(kind="subagent"), "sessionId": "helper-1"}
        path = write(chats / bell.SESSION / "helper-1.jsonl", inside, bell.user("s1", "Pull."), bell.gemini("s2"))
        one, other = self.changed(tmp_path, bell.SESSION, path, b"Pull", b"Push")
        assert one != other

    def test_a_second_file_that_grew(self, tmp_path: Path) -> None:
        chats = tmp_path / ".gemini/tmp/bell/chats"
        bell_chat(chats / f"{bell.NAME}.jsonl", "Ring the bell.")
        second = chats / "session-2026-10-21T09-14-0c5f8e21.jsonl"
        write(second, bell.header(kind="main"), bell.user("v1", "Later."), bell.gemini("v2"))
        one, other = self.changed(tmp_path, bell.SESSION, second, b"Later", b"Laten")
        assert one != other

    def test_another_name(self, demo: Path, tmp_path: Path) -> None:
        home = tmp_path / "home"
        shutil.copytree(demo, home)
        (session, *_) = [each for each in sessions(home).values() if each.agent.id == "codex" and not each.is_subagent]
        ids = set()
        for name in ("One", "Two"):
            with (home / ".codex/session_index.jsonl").open("a") as stream:
                stream.write(json.dumps({"id": session.id, "thread_name": name}) + "\n")
            ids.add(way(home, session.id, "claude-code").describe(tmp_path).session_id)
        assert len(ids) == 2


def write(path: Path, *records: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records))
    return path


def bell_chat(path: Path, words: str) -> Path:
    return write(path, bell.header(kind="main"), bell.user("u1", words), bell.gemini("g1"))
