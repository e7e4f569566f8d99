"""What other records repeat of an erased message is erased too, or named; what other messages name stays."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from clew.errors import SourceUnreadable
from clew.io.blobs import digest_in
from clew.store import Session, Store, TodoItem, TrackedFile
from clew.store.blobs import Blobs
from clew.store.doctor import examine
from clew.store.erase import Erased, erase_record
from clew.store.undo_plan import Refused
from tests.store.support import Quick, assert_whole, lines

WORD = "quahog"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    monkeypatch.chdir(root)
    (root / "a").write_text("zero\n")
    return root


def open_session(tmp_path: Path) -> Session:
    return Store(tmp_path, system=Quick()).session("s")


def told(session: Session, work: Path) -> None:
    """A prompt, a tool of a whole workspace that uses the word everywhere, and its result."""
    session.user("hi", uuid="prompt", todos=[TodoItem(content="plain")])
    todos = [TodoItem(content=f"buy a {WORD}")]
    with session.watch(session.assistant(f"a {WORD}", uuid="secret", todos=todos), root=work):
        (work / f"{WORD}.txt").write_text(f"{WORD} one\n" * 50)
        (work / "a").write_text(f"{WORD} two\n")
    session.system("done", uuid="behind")


def holding(session: Session) -> list[str]:
    """The files of a session that hold the word, also packed."""
    plain = [path.name for path in session.folder.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes()]
    blobs = Blobs(session.backups)
    return plain + [digest for digest in blobs.all() if WORD.encode() in blobs.get(digest)]


def erase(session: Session, uuid: str) -> Erased:
    session.close()
    return erase_record(session.folder, uuid, Quick())


def test_S17_undo_and_redo_keep_nothing_of_an_erased_message(tmp_path: Path, work: Path) -> None:
    session = open_session(tmp_path)
    told(session, work)
    session.undo()
    session.redo()
    (work / f"{WORD}.txt").unlink()
    (work / "a").write_text("clean\n")
    sizes = [path.stat().st_size for path in (session.folder / "messages.jsonl", session.folder / "snapshots.jsonl")]
    done = erase(session, "secret")
    assert (holding(session), done.copies) == ([], [])
    assert sizes == [
        path.stat().st_size for path in (session.folder / "messages.jsonl", session.folder / "snapshots.jsonl")
    ]
    stated = [record["todos"] for record in lines(session.folder / "messages.jsonl") if "todos" in record]
    assert stated == [[{"content": "plain", "status": "pending"}]] * 2
    assert list(examine(tmp_path)) == []
    assert_whole(tmp_path)


def test_S17_an_undo_of_an_erased_message_cannot_be_taken_back(tmp_path: Path, work: Path) -> None:
    session = open_session(tmp_path)
    told(session, work)
    session.undo()
    erase(session, "secret")
    assert holding(session) == []
    for force in (False, True):
        with pytest.raises(Refused, match="was erased"):
            open_session(tmp_path).redo(force=force)
    assert (work / "a").read_text() == "zero\n"


def test_S17_what_others_name_stays(tmp_path: Path, work: Path) -> None:
    session = open_session(tmp_path)
    with session.watch(session.assistant("first", uuid="secret"), ["a"]):
        (work / "a").write_text("one\n")
    with session.watch(session.assistant("second", uuid="kept"), ["a"]):
        (work / "a").write_text("two\n")
    session.undo()
    erase(session, "secret")
    again = open_session(tmp_path)
    again.redo()
    assert (work / "a").read_text() == "two\n"
    again.undo()
    assert (work / "a").read_text() == "one\n"


def test_S17_a_task_list_that_was_there_before_stays(tmp_path: Path, work: Path) -> None:
    session = open_session(tmp_path)
    session.user("hi", todos=[TodoItem(content="plain")])
    session.user("more", uuid="secret")
    session.user("end")
    erase(session, "secret")
    assert [record.get("todos") is not None for record in session.records()] == [True, False, True]


def test_S17_scans_that_name_erased_files_go_too(tmp_path: Path, work: Path) -> None:
    session = open_session(tmp_path)
    told(session, work)
    assert erase(session, "secret").copies == []
    assert all(WORD.encode() not in path.read_bytes() for path in session.folder.rglob("*") if path.is_file())
    assert list((session.folder / "scans").iterdir()) == []


def test_S17_a_file_whose_copy_was_erased_is_kept_again(tmp_path: Path, work: Path) -> None:
    session = open_session(tmp_path)
    told(session, work)
    time.sleep(0.06)  # so that it need not be read again for being too fresh
    with session.watch(session.assistant("look"), root=work):
        pass
    erase(session, "secret")
    again = open_session(tmp_path)
    with again.watch(again.assistant("another"), root=work):
        (work / f"{WORD}.txt").write_text("other\n")
    again.undo()
    assert (work / f"{WORD}.txt").read_text() == f"{WORD} one\n" * 50


def test_S17_a_small_snapshot_of_another_program_does_not_overwrite_the_next(tmp_path: Path, work: Path) -> None:
    session = open_session(tmp_path)
    session.user("hi", uuid="secret")
    log = session.folder / "snapshots.jsonl"
    bare = {"type": "file_history_snapshot", "messageId": "secret", "snapshot": {}}
    session.snapshot("other", {"x": TrackedFile(state="created")})
    log.write_bytes(json.dumps(bare, separators=(",", ":")).encode() + b"\n" + log.read_bytes())
    last = log.read_bytes().splitlines()[1]
    erase(session, "secret")
    assert lines(log)[0]["erased"] == "" and log.read_bytes().splitlines()[1] == last


def test_S17_copies_are_gone_by_name_too(tmp_path: Path, work: Path) -> None:
    session = open_session(tmp_path)
    told(session, work)
    known = {digest_in(path.name) for path in session.backups.iterdir()}
    erase(session, "secret")
    with pytest.raises(SourceUnreadable):
        for digest in known:
            Blobs(session.backups).get(str(digest))
