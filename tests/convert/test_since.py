"""What an agent notes for itself does not keep a session from coming back; what stays behind with it is named."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from clew.convert.prepare import Prepared, prepare
from clew.convert.restore_original import Restoration
from clew.errors import WouldLose
from clew.host import Host
from clew.library import Library
from tests.agents import gemini_worlds as bell
from tests.agents import rollouts as codex
from tests.cli.running import Ran, clew
from tests.convert.said import only
from tests.convert.transcripts import spoke, transcript

BEYOND = "content of the original that is not here"
THOUGHT = [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "two"}]
NOTES: dict[str, list[dict[str, Any]]] = {
    "gemini": [{"$set": {"lastUpdated": "2026-10-20T10:00:00.000Z"}}],
    "codex": [
        codex.event(
            "token_count",
            90,
            info={"total_token_usage": {"input_tokens": 5, "output_tokens": 1, "total_tokens": 6}},
            rate_limits=None,
        ),
        codex.line("turn_context", {"cwd": "/home/ada", "model": "m"}, 91),
    ],
    "claude-code": [
        {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}, "isSnapshotUpdate": False},
        {"type": "system", "subtype": "turn_duration", "durationMs": 5, "uuid": "n1", "parentUuid": None},
    ],
}
SAID: dict[str, list[dict[str, Any]]] = {
    "gemini": [bell.user("new", "and now?")],
    "codex": codex.asked("and now?"),
}


def forked(folder: Path) -> Path:
    """A transcript with a branch that was left, and a thought."""
    return transcript(
        folder,
        spoke("user", "one", uuid="u1", parentUuid=None),
        spoke("assistant", "left", uuid="u9", parentUuid="u1"),
        spoke("assistant", THOUGHT, uuid="u2", parentUuid="u1"),
        spoke("user", "three", uuid="u3", parentUuid="u2"),
    )


def there(path: Path, target: str, home: Path, *after: dict[str, Any]) -> Path:
    """The file of a conversion, with lines that its agent added since."""
    found = only(path)
    written = Path(prepare(found.agent, found.source, target).write(home, allow_loss=True).files[0])
    with written.open("a") as stream:
        stream.writelines(json.dumps(line) + "\n" for line in after)
    return written


def back(path: Path, target: str) -> Prepared:
    found = only(path)
    return prepare(found.agent, found.source, target)


@pytest.mark.parametrize("place", ["gemini", "codex"])
def test_notes_of_the_agent_leave_the_original_the_truth(tmp_path: Path, place: str) -> None:
    path = forked(tmp_path)
    prepared = back(there(path, place, tmp_path / "there", *NOTES[place]), "claude-code")
    assert isinstance(prepared, Restoration)
    assert Path(prepared.write(tmp_path / "back").files[0]).read_bytes() == path.read_bytes()


def test_so_where_the_original_lies_beside(tmp_path: Path) -> None:
    path = bell.log(tmp_path, bell.header(kind="main"), bell.user("u1"), bell.gemini("g1"))
    prepared = back(there(path, "claude-code", tmp_path / "there", *NOTES["claude-code"]), "gemini")
    assert isinstance(prepared, Restoration)
    assert Path(prepared.write(tmp_path / "back").files[0]).read_bytes() == path.read_bytes()


def test_so_where_the_agent_keeps_notes_in_a_file_of_their_own(tmp_path: Path) -> None:
    path = forked(tmp_path)
    written = there(path, "sage-agent", tmp_path / "there")
    written.with_name("snapshots.jsonl").write_text('{"messageId":"x","snapshot":{}}\n')
    assert only(written).source.parts == ("snapshots.jsonl",)
    prepared = back(written, "claude-code")
    assert isinstance(prepared, Restoration)
    assert Path(prepared.write(tmp_path / "back").files[0]).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("identity", ["--evil", "a\nb", "\ud800abc"])
def test_an_id_that_no_program_can_be_given_is_no_damage(tmp_path: Path, identity: str) -> None:
    path = tmp_path / f".gemini/tmp/bell/chats/{bell.NAME}.jsonl"
    path.parent.mkdir(parents=True)
    records = ({**bell.header(kind="main"), "sessionId": identity}, bell.user("u1"))
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    prepared = back(there(path, "codex", tmp_path / "there"), "gemini")
    assert [loss.what for loss in prepared.losses] == ["the command that continues it"]
    with pytest.raises(WouldLose):
        prepared.write(tmp_path / "back")
    assert Path(prepared.write(tmp_path / "back", allow_loss=True).files[0]).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    "line",
    [
        {"$set": {"messages": [bell.user("s1", "summary")]}},
        {"$set": {"summary": "Called anew"}},
        bell.user("new", "and now?"),
    ],
)
def test_a_line_that_changes_what_was_said_is_no_note(tmp_path: Path, line: dict[str, Any]) -> None:
    path = there(forked(tmp_path), "gemini", tmp_path / "there", bell.user("more", "more"), line)
    assert not isinstance(back(path, "claude-code"), Restoration)
    other = tmp_path / "other"
    other.mkdir()
    assert not isinstance(back(there(forked(other), "gemini", other / "there", line), "claude-code"), Restoration)


def test_taking_back_what_was_said_is_no_note(tmp_path: Path) -> None:
    path = there(forked(tmp_path), "gemini", tmp_path / "there")
    last = [record["id"] for record in map(json.loads, path.read_text().splitlines()) if "id" in record][-1]
    with path.open("a") as stream:
        stream.write(json.dumps(bell.rewind(last)) + "\n")
    assert not isinstance(back(path, "claude-code"), Restoration)


@pytest.mark.parametrize("place", ["gemini", "codex"])
def test_a_line_in_the_middle_is_no_note(tmp_path: Path, place: str) -> None:
    path = there(forked(tmp_path), place, tmp_path / "there")
    lines = path.read_bytes().splitlines(keepends=True)
    note = json.dumps(NOTES[place][0]).encode() + b"\n"
    path.write_bytes(b"".join([*lines[:2], note, *lines[2:]]))
    assert not isinstance(back(path, "claude-code"), Restoration)


class TestBeyond:
    @pytest.mark.parametrize("target", ["claude-code", "sage-agent"])
    @pytest.mark.parametrize("place", ["gemini", "codex"])
    def test_what_goes_on_without_it_names_what_it_held(self, tmp_path: Path, place: str, target: str) -> None:
        path = there(forked(tmp_path), place, tmp_path / "there", *SAID[place])
        prepared = back(path, target)
        (loss,) = [loss for loss in prepared.losses if loss.what.startswith(BEYOND)]
        assert "1 message on other branches" in loss.what
        assert path.name in loss.why
        with pytest.raises(WouldLose):
            prepared.write(tmp_path / "back")
        assert not (tmp_path / "back").exists()
        prepared.write(tmp_path / "back", allow_loss=True)

    def test_thoughts_are_counted(self, tmp_path: Path) -> None:
        path = there(forked(tmp_path), "sage-agent", tmp_path / "there")
        (loss,) = [loss for loss in back(path, "codex").losses if loss.what.startswith(BEYOND)]
        assert loss.what == f"{BEYOND}: thinking, 1 message on other branches"

    def test_what_lost_nothing_has_nothing_beyond(self, tmp_path: Path) -> None:
        path = transcript(tmp_path, spoke("user", "one", uuid="u1", parentUuid=None))
        assert back(there(path, "codex", tmp_path / "there", *SAID["codex"]), "claude-code").losses == []

    def test_a_mended_copy_keeps_what_it_carries(self, tmp_path: Path) -> None:
        path = there(forked(tmp_path), "codex", tmp_path / "there", *SAID["codex"])
        assert back(path, "codex").losses == []

    def test_one_branch_leaves_the_original_too(self, tmp_path: Path) -> None:
        found = only(there(forked(tmp_path), "codex", tmp_path / "there"))
        prepared = prepare(found.agent, found.source, "claude-code", branch="2")
        assert any(loss.what.startswith(BEYOND) for loss in prepared.losses)


class TestRegistered:
    def test_a_chat_that_comes_back_is_found_in_another_home(self, tmp_path: Path) -> None:
        home = tmp_path / "home"
        path = bell.log(home, bell.header(kind="main"), bell.user("u1"), bell.gemini("g1"))
        (path.parent.parent / ".project_root").write_text(bell.ROOT)
        written = back(there(path, "codex", tmp_path / "there"), "gemini").write(tmp_path / "back")
        store = tmp_path / "back/.gemini"
        assert json.loads((store / "projects.json").read_text())["projects"] == {bell.ROOT: "bell"}
        assert (store / "tmp/bell/.project_root").read_text() == bell.ROOT
        assert str(store / "projects.json") in written.files
        (session,) = Library(Host.at(tmp_path / "back")).sources()
        assert session.header.workspace == bell.ROOT

    def test_many_come_back_at_the_same_time(self, tmp_path: Path) -> None:
        ways = []
        for number in range(6):
            root, session = f"/home/ada/p{number}", f"0c5f8e2{number}-7b3a-4d96-a1e4-52d7c9f08b63"
            told = {**bell.header(kind="main"), "sessionId": session}
            path = bell.log(tmp_path / str(number), told, bell.user("u1"), bell.gemini("g1"), project=f"p{number}")
            (path.parent.parent / ".project_root").write_text(root)
            ways.append(back(there(path, "codex", tmp_path / f"there{number}"), "gemini"))
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda prepared: prepared.write(tmp_path / "back"), ways))
        projects = json.loads((tmp_path / "back/.gemini/projects.json").read_text())["projects"]
        assert projects == {f"/home/ada/p{number}": f"p{number}" for number in range(6)}

    def test_it_goes_to_the_folder_that_the_home_has_for_the_project(self, tmp_path: Path) -> None:
        path = bell.log(tmp_path / "home", bell.header(kind="main"), bell.user("u1"), bell.gemini("g1"))
        (path.parent.parent / ".project_root").write_text(bell.ROOT)
        registry = tmp_path / "back/.gemini/projects.json"
        registry.parent.mkdir(parents=True)
        registry.write_text(json.dumps({"projects": {"/elsewhere/bell": "bell", bell.ROOT: "bell-1"}}))
        written = back(there(path, "codex", tmp_path / "there"), "gemini").write(tmp_path / "back")
        assert Path(written.files[0]).parent == tmp_path / "back/.gemini/tmp/bell-1/chats"
        assert Path(written.files[0]).read_bytes() == path.read_bytes()

    def test_the_name_of_a_thread_comes_back(self, tmp_path: Path) -> None:
        path = codex.write(tmp_path / "home", codex.meta(), *codex.asked("go"), *codex.answered("done"))
        index = tmp_path / "home/.codex/session_index.jsonl"
        index.write_text(json.dumps({"id": codex.THREAD, "thread_name": "High water"}) + "\n")
        back(there(path, "gemini", tmp_path / "there"), "codex").write(tmp_path / "back")
        (session,) = Library(Host.at(tmp_path / "back")).sources()
        assert session.header.title == "High water"

    def test_a_name_that_nobody_gave_is_not_listed(self, tmp_path: Path) -> None:
        path = codex.write(tmp_path / "home", codex.meta(), *codex.asked("go"), *codex.answered("done"))
        back(there(path, "gemini", tmp_path / "there"), "codex").write(tmp_path / "back")
        assert not (tmp_path / "back/.codex/session_index.jsonl").exists()


class TestOriginal:
    """It can be had at any time."""

    def brought(self, path: Path, home: Path, *more: str) -> Ran:
        return clew("convert", path, "--to", "claude-code", "--home", home, "--original", *more)

    def test_it_comes_back_where_the_session_went_on(self, tmp_path: Path) -> None:
        path = forked(tmp_path)
        done = self.brought(there(path, "codex", tmp_path / "there", *SAID["codex"]), tmp_path / "back", "--json")
        assert (done.code, done.json["losses"]) == (0, [])
        assert Path(done.json["files"][0]).read_bytes() == path.read_bytes()

    def test_that_of_a_mended_copy_comes_back(self, tmp_path: Path) -> None:
        path = forked(tmp_path)
        with path.open("a") as stream:
            stream.write('{"type":"user","mess')
        done = self.brought(there(path, "claude-code", tmp_path / "there"), tmp_path / "back", "--json")
        assert Path(done.json["files"][0]).read_bytes() == path.read_bytes()

    def test_what_cannot_be_is_said(self, tmp_path: Path) -> None:
        path = forked(tmp_path)
        copy = there(path, "codex", tmp_path / "there")
        assert "contains no original" in self.brought(path, tmp_path / "back").err
        assert "byte for byte" in self.brought(copy, tmp_path / "back", "--branch", "2").err
        assert "byte for byte" in self.brought(copy, tmp_path / "back", "--redact", "secrets").err
        done = clew("convert", copy, "--to", "gemini", "--home", tmp_path / "back", "--original")
        assert (done.code, "--to claude-code" in done.err) == (2, True)
        assert not (tmp_path / "back").exists()
