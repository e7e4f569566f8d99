"""The second layout: one conversation per project, metadata true after every append, archives without loss."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from clew import Host, Library
from clew.errors import PathRefused, UsageError
from clew.io.filesystem import System
from clew.store import Store, ToolRun
from clew.store.doctor import examine
from tests.store.support import Faulty, Quick, assert_whole, lines

WORKSPACE = "/home/ada/src/moon.phase"


def folder_of(place: Path) -> Path:
    return place / ".sage" / "projects" / "-home-ada-src-moon-phase"


@pytest.mark.seed("S0-6", "S0-9", "S0-16", "S0-18", "S0-33", "S0-34", "S0-46")
def test_records_and_metadata_are_those_of_the_schema(tmp_path: Path) -> None:
    with Store(tmp_path).project(WORKSPACE) as project:
        for number in range(3):
            receipt = project.append("user", f"message {number}")
            log, known = folder_of(tmp_path) / "conversation.jsonl", folder_of(tmp_path) / "metadata.json"
            metadata = json.loads(known.read_bytes())
            assert receipt.seq == metadata["message_count"] == number + 1
            assert metadata["total_size"] == log.stat().st_size
            assert metadata["project_dir"] == WORKSPACE
            assert metadata["created_at"] <= metadata["updated_at"]
        run = ToolRun(name="read_file", args={"path": "a.el"}, result="...", duration_ms=45, success=True)
        project.append("assistant", "Let me read that", tool_calls=[run], estimated_tokens=7)
    assert_whole(tmp_path)
    records = lines(log)
    assert list(records[0]) == ["role", "content", "timestamp", "uuid", "session_id"]
    assert records[3]["tool_calls"] == [
        {"name": "read_file", "args": {"path": "a.el"}, "result": "...", "duration_ms": 45, "success": True}
    ]
    assert records[3]["tokens"] == {"estimated": 7}
    assert len({record["session_id"] for record in records}) == 1
    [session] = Library(Host.at(tmp_path)).sources()
    assert session.header.workspace == WORKSPACE
    assert session.facts.tool_calls == 1


def test_another_process_goes_on(tmp_path: Path) -> None:
    one, two = Store(tmp_path).project(WORKSPACE), Store(tmp_path).project(WORKSPACE + "/")
    assert [handle.append("user", "x").seq for handle in (one, two, one, two)] == [1, 2, 3, 4]
    assert len({record["session_id"] for record in one.records()}) == 1
    assert_whole(tmp_path)


@pytest.mark.seed("S0-7")
def test_a_folder_of_an_older_spelling_is_used(tmp_path: Path) -> None:
    old = tmp_path / ".sage" / "projects" / "-home-ada-src-moon.phase-"
    old.mkdir(parents=True)
    with Store(tmp_path).project(WORKSPACE) as project:
        project.append("user", "x")
    assert (old / "conversation.jsonl").exists()
    assert not folder_of(tmp_path).exists()


@pytest.mark.seed("S0-42", "S0-40", "S0-41")
def test_a_conversation_is_archived_whole_and_a_new_one_begins(tmp_path: Path) -> None:
    store = Store(tmp_path, clock=lambda: 1_768_132_800.0)
    one, two = store.project(WORKSPACE), store.project(WORKSPACE)
    assert one.archive() is None
    one.append("user", "old")
    two.append("assistant", "older")
    before = (folder_of(tmp_path) / "conversation.jsonl").read_bytes()
    archive = one.archive()
    assert archive is not None
    assert archive.name == "20260111-120000.jsonl"
    assert archive.read_bytes() == before
    assert two.append("user", "new").seq == 1
    assert archive.read_bytes() == before
    assert_whole(tmp_path)
    again = two.archive()
    assert again is not None
    assert again.name == "20260111-120000-2.jsonl"
    assert two.archives() == sorted([archive, again])
    metadata = json.loads((folder_of(tmp_path) / "metadata.json").read_bytes())
    assert (metadata["message_count"], metadata["total_size"], metadata["project_dir"]) == (0, 0, WORKSPACE)
    assert len(list(Library(Host.at(tmp_path)).sources())) == 2
    one.append("user", "third")
    assert len({session.id for session in Library(Host.at(tmp_path)).sources()}) == 3
    with pytest.raises(UsageError):
        one.archive("../elsewhere")


@pytest.mark.seed("S0-44", "S0-43", "S0-45")
@pytest.mark.parametrize(
    ("role", "content", "timestamp"),
    [("tool", "x", None), ("user", "", None), ("user", 5, None), ("user", "x", "noon"), ("user", "\ud800", None)],
)
def test_what_the_schema_refuses_is_refused(tmp_path: Path, role: Any, content: Any, timestamp: str | None) -> None:
    with Store(tmp_path).project(WORKSPACE) as project:
        with pytest.raises(UsageError):
            project.append(role, content, timestamp=timestamp)
        project.append("user", "fine")
    assert_whole(tmp_path)


@pytest.mark.seed("S0-35")
def test_wrong_metadata_stop_nothing_and_are_mended(tmp_path: Path) -> None:
    with Store(tmp_path).project(WORKSPACE) as project:
        project.append("user", "x")
    known = folder_of(tmp_path) / "metadata.json"
    for wrong in ("{", '{"message_count": 9, "project_dir": "/home/ada/src/moon.phase"}', None):
        known.unlink() if wrong is None else known.write_text(wrong)
        [finding] = examine(tmp_path)
        assert finding.mend is not None
        finding.mend()
        assert list(examine(tmp_path)) == []
    known.write_text('{"message_count": 9, "total_size": 1}')
    assert Store(tmp_path).project(WORKSPACE).append("user", "y").seq == 2


@pytest.mark.slow
def test_S05_faults_at_every_call(tmp_path: Path) -> None:
    at = 0
    while True:
        at += 1
        system, place = Faulty(at, errno.ENOSPC, kind="torn"), tmp_path / str(at)
        acknowledged = []
        store = Store(place)
        store._config = store._config._replace(system=system)
        for number in range(3):
            try:
                with store.project(WORKSPACE) as project:
                    project.append("user", f"{number}")
                    acknowledged.append(f"{number}")
            except OSError:
                continue
        with Store(place, system=Quick()).project(WORKSPACE) as project:
            project.append("user", "afterwards")
        words = [record["content"] for record in lines(folder_of(place) / "conversation.jsonl")]
        assert [word for word in words if word in acknowledged] == acknowledged
        assert words[-1] == "afterwards"
        assert_whole(place)
        if not system.hit:
            break
    assert at > 20


def test_a_torn_conversation_is_mended(tmp_path: Path) -> None:
    with Store(tmp_path, system=System()).project(WORKSPACE) as project:
        project.append("user", "x")
    with (folder_of(tmp_path) / "conversation.jsonl").open("ab") as log:
        log.write(b'{"role":"user","con')
    with Store(tmp_path).project(WORKSPACE) as project:
        assert project.append("user", "y").seq == 2
    assert_whole(tmp_path)


@pytest.mark.parametrize("link", [".sage/projects", ".sage/projects/-home-ada-src-moon-phase"])
def test_a_project_is_not_written_through_a_link(link: str, tmp_path: Path) -> None:
    """A cloned repository may hold links: what is beside a conversation there would be replaced."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "-home-ada-src-moon-phase").mkdir(parents=True)
    place = tmp_path / "repo" / link
    place.parent.mkdir(parents=True)
    place.symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    with pytest.raises(PathRefused, match="link"), Store(tmp_path / "repo").project(WORKSPACE) as project:
        project.append("user", "hello")
    assert sorted(elsewhere.rglob("*")) == before


def test_archives_do_not_go_through_a_link(tmp_path: Path) -> None:
    with Store(tmp_path).project(WORKSPACE) as project:
        project.append("user", "hello")
        (tmp_path / "elsewhere").mkdir()
        (folder_of(tmp_path) / "history").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(PathRefused, match="link"):
            project.archive()
        assert project.archives() == []
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert (folder_of(tmp_path) / "conversation.jsonl").exists()


def test_a_message_that_is_too_long_to_be_read_again_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.store.writer.MAX_RECORD_BYTES", 1000)
    with Store(tmp_path).project(WORKSPACE) as project:
        project.append("user", "short")
        with pytest.raises(UsageError, match="longer than 1000 bytes"):
            project.append("user", "x" * 1000)
        assert [record["content"] for record in project.records()] == ["short"]
        assert project.append("user", "next").seq == 2
