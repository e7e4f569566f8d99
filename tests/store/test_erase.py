"""What `erase_record` removes: copies in the session's backup folder, and no other file, whatever a snapshot names."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from clew.errors import ClewError
from clew.store import Session, Store
from clew.store.erase import Erased, erase_record, erase_session
from tests.cli.running import clew
from tests.store.support import Quick, lines

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and pipes are those of POSIX")

WORD = "quahog"
BYTES = b"old content of a file\n"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """A session with a message to erase, and another session beside it."""
    store = Store(tmp_path, system=Quick())
    with store.session("other") as other:
        other.user("not to be touched")
        other.backups.mkdir()
        (other.backups / "copy.backup").write_bytes(BYTES)
    with store.session("s") as session:
        session.user(f"a {WORD}", uuid="secret")
        session.user("and more", uuid="kept")
        session.backups.mkdir()
    return session


def snapshot(session: Session, *paths: Any, message: Any = "secret") -> None:
    """Append a snapshot whose backups are called so."""
    backups = {f"f{number}": {"backupPath": path} for number, path in enumerate(paths)}
    record = {"type": "file_history_snapshot", "messageId": message, "timestamp": "2026-01-01T00:00:00Z"}
    with (session.folder / "snapshots.jsonl").open("a") as log:
        log.write(json.dumps({**record, "snapshot": {"trackedFiles": {}, "fileBackups": backups}}) + "\n")


def erase(session: Session) -> Erased:
    return erase_record(session.folder, "secret", Quick())


def other_files(session: Session) -> dict[str, bytes]:
    """Every file outside the session, and the names of those in it."""
    place = session.folder.parent.parent
    inside = {str(path.relative_to(place)): b"" for path in session.folder.rglob("*") if path.is_file()}
    outside = [path for path in place.rglob("*") if path.is_file() and session.folder not in path.parents]
    return inside | {str(path.relative_to(place)): path.read_bytes() for path in outside}


NAMES = [
    "messages.jsonl",
    "./messages.jsonl",
    "backups/../messages.jsonl",
    "backups/../MESSAGES.JSONL",
    "Messages.jsonl",
    "metadata.json",
    "snapshots.jsonl",
    "../other/messages.jsonl",
    "../other/backups/copy.backup",
    "../../config.json",
    "backups",
    "backups/",
    "backups/.",
    "backups/..",
    "..",
    ".",
    "",
    "/",
    "messages.jsonl\0",
    "C:messages.jsonl",
    "backups\\..\\messages.jsonl",
    "x" * 300,
    "backups/" + "x" * 5000,
    17,
    None,
    ["messages.jsonl"],
]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name)[:40])
def test_a_backup_path_removes_no_file_but_a_backup(session: Session, name: Any) -> None:
    snapshot(session, name)
    before = other_files(session)
    done = erase(session)
    assert other_files(session) == before
    assert (done.records, done.files) == (2, 0)
    assert [record["type"] for record in lines(session.folder / "messages.jsonl")] == ["erased", "user"]


@pytest.mark.parametrize("name", ["messages.jsonl", "metadata.json", "../other/backups/copy.backup", "keep/copy"])
def test_an_absolute_backup_path_removes_no_file_but_a_backup(session: Session, name: str) -> None:
    (session.folder / "keep").mkdir()
    (session.folder / "keep" / "copy").write_bytes(BYTES)
    named = session.folder / name
    snapshot(session, str(named))
    before = other_files(session)
    done = erase(session)
    assert other_files(session) == before
    assert (session.folder / "keep" / "copy").read_bytes() == BYTES
    assert [str(named) in copy for copy in done.copies] == [True]


@pytest.mark.parametrize("name", ["copy.backup", "backups/copy.backup", "/gone/backups/copy.backup", "ABSOLUTE"])
def test_a_backup_that_only_the_erased_message_names_is_removed(session: Session, name: str) -> None:
    for file in ("copy.backup", "other.backup"):
        (session.backups / file).write_bytes(BYTES)
    snapshot(session, str(session.backups / "copy.backup") if name == "ABSOLUTE" else name)
    assert (erase(session).files, [path.name for path in session.backups.iterdir()]) == (1, ["other.backup"])


def test_a_backup_that_another_message_names_is_kept(session: Session) -> None:
    (session.backups / "copy.backup").write_bytes(BYTES)
    snapshot(session, "backups/copy.backup")
    snapshot(session, "copy.backup", message="kept")
    assert erase(session) == (2, 0, [])
    assert (session.backups / "copy.backup").read_bytes() == BYTES


def test_a_backup_that_another_message_names_by_another_link_is_kept(session: Session) -> None:
    """As on a system where names that differ in case are one file: the same file is reached by two names."""
    (session.backups / "copy.backup").write_bytes(BYTES)
    os.link(session.backups / "copy.backup", session.backups / "COPY.BACKUP")
    snapshot(session, "backups/copy.backup")
    snapshot(session, "backups/COPY.BACKUP", message="kept")
    assert erase(session).files == 0
    assert (session.backups / "copy.backup").read_bytes() == (session.backups / "COPY.BACKUP").read_bytes() == BYTES


def test_a_link_among_the_backups_is_left_and_named(session: Session, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(BYTES)
    for name, target in (("a", outside), ("b", session.folder / "messages.jsonl"), ("c", "../messages.jsonl")):
        (session.backups / name).symlink_to(target)
    snapshot(session, "a", "backups/b", "c")
    done = erase(session)
    assert done.files == 0
    assert outside.read_bytes() == BYTES
    assert len(lines(session.folder / "messages.jsonl")) == 2
    assert [any(str(session.backups / name) in copy for copy in done.copies) for name in "abc"] == [True] * 3


def test_a_backup_with_other_hard_links_is_named(session: Session, tmp_path: Path) -> None:
    (session.backups / "copy.backup").write_bytes(BYTES)
    os.link(session.backups / "copy.backup", tmp_path / "outside")
    snapshot(session, "copy.backup")
    done = erase(session)
    assert (tmp_path / "outside").read_bytes() == BYTES
    assert not (session.backups / "copy.backup").exists()
    assert len(done.copies) == 1 and "1 more name" in done.copies[0]


def test_a_hard_link_to_the_log_among_the_backups_does_not_empty_the_log(session: Session) -> None:
    os.link(session.folder / "messages.jsonl", session.backups / "copy.backup")
    snapshot(session, "copy.backup")
    erase(session)
    assert len(lines(session.folder / "messages.jsonl")) == 2


def test_backups_in_a_linked_folder_are_left_and_named(session: Session, tmp_path: Path) -> None:
    outside, digest = tmp_path / "outside", "ab" * 32
    outside.mkdir()
    for name in ("copy.backup", f"{digest}.zst"):
        (outside / name).write_bytes(BYTES)
    session.backups.rmdir()
    session.backups.symlink_to(outside)
    snapshot(session, "backups/copy.backup", f"{digest}.zst")
    done = erase(session)
    assert [path.read_bytes() for path in outside.iterdir()] == [BYTES] * 2
    assert done.files == 0
    assert str(session.backups) in " ".join(done.copies)


@pytest.mark.parametrize("name", ["copy.backup", "ab" * 32 + ".zst"])
def test_a_pipe_in_the_place_of_a_backup_is_not_opened(session: Session, name: str) -> None:
    os.mkfifo(session.backups / name)
    (session.backups / f"{'cd' * 32}.zst").write_bytes(BYTES)
    snapshot(session, f"backups/{name}", f"{'cd' * 32}.zst")
    assert erase(session).files == 1


@pytest.mark.parametrize("name", ["messages.jsonl", "snapshots.jsonl"])
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_log_that_is_no_regular_file_is_refused_before_anything_changes(
    session: Session, tmp_path: Path, name: str, kind: str
) -> None:
    snapshot(session, "x")
    path, outside = session.folder / name, tmp_path / "outside"
    path.rename(outside)
    if kind == "link":
        path.symlink_to(outside)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    before = {file: file.read_bytes() for file in (outside, *session.folder.iterdir()) if file.is_file()}
    with pytest.raises(ClewError, match=name):
        erase(session)
    assert {file: file.read_bytes() for file in (outside, *session.folder.iterdir()) if file.is_file()} == before


def test_metadata_that_other_names_hold_are_named(session: Session, tmp_path: Path) -> None:
    os.link(session.folder / "metadata.json", tmp_path / "outside")
    assert WORD in (tmp_path / "outside").read_text()
    done = erase(session)
    assert WORD not in (session.folder / "metadata.json").read_text()
    assert [str(session.folder / "metadata.json") in copy for copy in done.copies] == [True]


def test_snapshots_that_cannot_be_read_are_named(session: Session) -> None:
    snapshot(session, "x")
    snapshot(session, "\udcff")
    done = erase(session)
    assert done.records == 2
    assert [f"line 2 of {session.folder / 'snapshots.jsonl'}" in copy for copy in done.copies] == [True]


@pytest.mark.parametrize("message", [[], {}, 5, None, True])
def test_a_snapshot_of_no_message_stops_nothing(session: Session, message: Any) -> None:
    (session.backups / "copy.backup").write_bytes(BYTES)
    snapshot(session, "copy.backup")
    snapshot(session, "copy.backup", message=message)
    assert erase(session) == (2, 0, [])


def test_a_linked_session_folder_is_refused(session: Session) -> None:
    link = session.folder.with_name("link")
    link.symlink_to(session.folder)
    before = (session.folder / "messages.jsonl").read_bytes()
    with pytest.raises(ClewError, match="link"):
        erase_session(link)
    with pytest.raises(ClewError, match="link"):
        erase_record(link, "secret")
    assert (session.folder / "messages.jsonl").read_bytes() == before


def test_erasing_a_session_follows_no_link_and_opens_no_pipe(session: Session, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(BYTES)
    (session.folder / "linked-folder").symlink_to(outside)
    (session.backups / "linked-file").symlink_to(outside / "file")
    os.mkfifo(session.backups / "pipe")
    os.link(outside / "file", session.backups / "hard")
    done = erase_session(session.folder, Quick())
    assert not session.folder.exists()
    assert (outside / "file").read_bytes() == BYTES
    assert len(done.copies) == 3


def test_without_write_a_refusal_is_said_too(session: Session, tmp_path: Path) -> None:
    path = session.folder / "messages.jsonl"
    path.rename(tmp_path / "outside")
    path.symlink_to(tmp_path / "outside")
    for words in ((), ("secret",), ("--write",)):
        done = clew("erase", path, *words, "--home", tmp_path)
        assert done.code == 4 and str(path) in done.err


ODD: list[Any] = [
    None,
    5,
    "x",
    [],
    {},
    [None],
    {"": None},
    {"x": []},
    {"x": {"backupPath": {}}},
    {"x": "messages.jsonl"},
]


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize(
    "key", ["snapshot", "trackedFiles", "fileBackups", "metadata", "clew", "found", "files", "root"]
)
def test_odd_values_in_snapshots_stop_nothing(session: Session, key: str, odd: Any) -> None:
    (session.backups / "copy.backup").write_bytes(BYTES)
    record = {
        "type": "file_history_snapshot",
        "messageId": "secret",
        "timestamp": "2026-01-01T00:00:00Z",
        "snapshot": {"trackedFiles": {}, "fileBackups": {"x": {"backupPath": "copy.backup"}}},
        "metadata": {"clew": {"root": "/", "found": {}, "files": {}}},
    }

    def put(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: odd if name == key else put(inner) for name, inner in value.items()}

    with (session.folder / "snapshots.jsonl").open("w") as log:
        log.write(json.dumps(put(record)) + "\n")
        log.write(json.dumps({**put(record), "messageId": "kept"}) + "\n")
    before = other_files(session)
    assert erase(session).files == 0
    assert other_files(session) == before


def test_an_incomplete_last_line_stays(session: Session) -> None:
    log = session.folder / "messages.jsonl"
    with log.open("ab") as stream:
        stream.write(b'{"type":"us')
    erase(session)
    assert log.read_bytes().endswith(b'{"type":"us')
    assert Store(session.folder.parents[2], system=Quick()).session("s").user("on").seq == 3


def test_positions_in_the_log_stay_valid(session: Session) -> None:
    log = session.folder / "messages.jsonl"
    before = log.read_bytes()
    erase(session)
    assert log.stat().st_size == len(before)
    assert log.read_bytes().splitlines()[1] == before.splitlines()[1]


def test_other_hard_links_of_the_log_are_named(session: Session, tmp_path: Path) -> None:
    os.link(session.folder / "messages.jsonl", tmp_path / "outside")
    assert [str(session.folder / "messages.jsonl") in copy for copy in erase(session).copies] == [True]


@pytest.mark.slow
def test_messages_that_others_append_meanwhile_are_not_lost(tmp_path: Path) -> None:
    store = Store(tmp_path, system=Quick())
    with store.session("s") as session:
        for number in range(20):
            session.user(f"{WORD} {number}", uuid=f"secret {number}")
    appended: list[list[str]] = [[], [], []]
    is_done = threading.Event()

    def append(uuids: list[str]) -> None:
        with store.session("s") as handle:
            while not is_done.is_set():
                uuids.append(handle.user("kept").uuid)

    threads = [threading.Thread(target=append, args=(uuids,), daemon=True) for uuids in appended]
    for thread in threads:
        thread.start()
    for number in range(20):
        erase_record(session.folder, f"secret {number}", Quick())
    is_done.set()
    for thread in threads:
        thread.join(60)
    records = lines(session.folder / "messages.jsonl")
    found = [record["uuid"] for record in records if record["type"] == "user"]
    assert sorted(found) == sorted(uuid for uuids in appended for uuid in uuids)
    assert [record["metadata"]["clew"]["seq"] for record in records] == list(range(1, len(records) + 1))
    assert all(WORD.encode() not in path.read_bytes() for path in session.folder.iterdir() if path.is_file())


def test_a_follower_sees_what_comes_after_an_erase_once(session: Session) -> None:
    coming = session.follow(poll=0.001, patience=0.3)
    assert [next(coming)["uuid"] for _ in range(2)] == ["secret", "kept"]
    erase(session)
    session.user("more", uuid="more")
    session.close()
    assert [record["uuid"] for record in coming] == ["more"]


def test_an_open_handle_knows_its_last_prompt_after_an_erase(tmp_path: Path) -> None:
    """The metadata are written every few seconds: what was appended since is found in the log."""
    with Store(tmp_path, system=Quick()).session("s") as session:
        for text in ("one", "two", "three"):
            session.user(text, uuid=text)
        erase_record(session.folder, "two", Quick())
        session.assistant("fine")
    assert (session.metadata["firstPrompt"], session.metadata["lastPrompt"]) == ("one", "three")
    assert session.metadata["messageCount"] == 4
