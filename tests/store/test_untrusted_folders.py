"""A session folder may come from a repository or another machine: what lies in it never causes a write elsewhere."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from clew.errors import ClewError, PathRefused, TargetRefused
from clew.host import data_dir
from clew.io.blobs import digest_of
from clew.store import Session, Store
from clew.store.blobs import Blobs
from clew.store.change_journal import Journal
from clew.store.file_state import NO_FILE, FileState
from clew.store.workspace import encode_index
from tests.cli.running import clew

PLANTED = b"echo planted\n"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "tide.txt").write_text("4 m\n")
    return folder


@pytest.fixture
def session(tmp_path: Path, work: Path) -> Session:
    with Store(tmp_path).session("tides") as session:
        session.user("make it 5", uuid="q1")
        with session.watch(session.assistant("I write.", uuid="a1"), ["tide.txt"]):
            (work / "tide.txt").write_text("5 m\n")
    return session


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder of the user's that nobody named."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "keep.txt").write_text("mine\n")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def plant_journal(session: Session, victim: Path, name: str = "undo-x.pending") -> None:
    """An undo journal that writes `.bashrc` and deletes `keep.txt` in the victim's folder."""
    session.backups.mkdir(exist_ok=True)
    with Store(session.folder.parent.parent).get("tides").watch("a1", ["planted"]):
        Path("planted").write_bytes(PLANTED)
    with Store(session.folder.parent.parent).get("tides").watch("a1", ["planted"]):
        Path("planted").unlink()
    kept = FileState(digest_of(b"mine\n"))
    files = {b".bashrc": (FileState(digest_of(PLANTED)), NO_FILE), b"keep.txt": (NO_FILE, kept)}
    (session.folder / name).write_bytes(msgspec.msgpack.encode(Journal("x", str(victim), files)))


def record(session: Session) -> None:
    Store(session.folder.parent.parent).session(session.id).user("hi")


def watch(session: Session) -> None:
    with Store(session.folder.parent.parent).session(session.id).watch("a1", ["tide.txt"]):
        pass


def undo(session: Session) -> None:
    Store(session.folder.parent.parent).session(session.id).undo()


def undo_and_redo(session: Session) -> None:
    again = Store(session.folder.parent.parent).session(session.id)
    again.undo()
    again.redo()


def fix(session: Session) -> None:
    clew("doctor", session.folder.parent.parent, "--fix")


def settle(session: Session) -> None:
    Store(session.folder.parent.parent).session(session.id).roll_back_interrupted_undo()


@pytest.mark.parametrize("command", [record, watch, undo, undo_and_redo, fix, settle])
@pytest.mark.parametrize("name", ["undo-x.pending", "undo-a1.pending", "restore-x.pending", "x.pending"])
def test_R16_a_journal_in_a_session_folder_is_not_followed(
    session: Session, victim: Path, command: Callable[[Session], None], name: str
) -> None:
    plant_journal(session, victim, name)
    command(session)
    assert contents(victim) == {"keep.txt": b"mine\n"}


def test_R16_journals_lie_in_the_data_folder_for_the_user_alone(
    session: Session, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, int, int]] = []

    def fail(*_: object) -> None:
        journals = data_dir().rglob("*.pending")
        seen.extend((one.name[:5], one.stat().st_mode & 0o777, one.parent.stat().st_mode & 0o777) for one in journals)
        raise OSError("no space left")

    monkeypatch.setattr("clew.store.undo.apply_all", fail)
    with pytest.raises(OSError, match="no space"):
        session.undo()
    assert seen == [("undo-", 0o600, 0o700)]
    assert not list(session.folder.glob("*.pending"))
    assert (work / "tide.txt").read_text() == "5 m\n"


def mirrored(session: Session) -> Path:
    """The same session below the folder where clew mirrors another machine's files."""
    home = data_dir() / "remotes" / "box" / "files" / "home" / "ann"
    home.mkdir(parents=True)
    shutil.copytree(session.folder.parent.parent, home / ".sage")
    return home


@pytest.mark.parametrize(
    "words",
    [
        ("undo", "tides"),
        ("undo", "tides", "--dry-run"),
        ("redo", "tides"),
        ("erase", "tides", "--write"),
        ("branch", "tides", "a1", "--name", "x"),
    ],
)
def test_mirrored_sessions_are_only_read(session: Session, work: Path, words: tuple[str, ...]) -> None:
    home = mirrored(session)
    before = contents(home)
    done = clew(*words, "--home", home)
    assert done.code == TargetRefused.exit_code and "it is read-only" in done.err, done
    assert contents(home) == before
    assert (work / "tide.txt").read_text() == "5 m\n"


def test_a_mirror_is_not_mended(session: Session) -> None:
    home = mirrored(session)
    (home / ".sage/sessions/tides/.x.tmp").write_text("x")
    before = contents(home)
    assert clew("doctor", home, "--fix").code == TargetRefused.exit_code
    assert contents(home) == before


def test_nothing_is_recorded_in_a_mirror(session: Session) -> None:
    home = mirrored(session)
    before = contents(home)
    with pytest.raises(TargetRefused):
        Store(home).session("tides").user("hi")
    with pytest.raises(TargetRefused):
        Store(home).session("new").user("hi")
    with pytest.raises(TargetRefused):
        Store(home).project("/p").append("user", "hi")
    linked = session.folder.parent.parent.parent / "link"
    linked.symlink_to(home)
    with pytest.raises(TargetRefused):
        Store(linked).session("tides").user("hi")
    assert contents(home) == before


@pytest.mark.parametrize(
    "inner", ["sessions", "sessions/tides", *(f"sessions/tides/{name}" for name in ("backups", "rescue", "scans"))]
)
def test_folders_of_a_store_that_are_links_are_refused(session: Session, victim: Path, inner: str) -> None:
    place = session.folder.parent.parent / inner
    if place.exists():
        shutil.move(place, victim / "moved")
    else:
        (victim / "moved").mkdir()
    (victim / "moved" / ".x.tmp").write_text("mine too")
    place.symlink_to(victim / "moved")
    before = contents(victim)
    for command in (record, watch, undo):
        with pytest.raises(PathRefused, match="symbolic link"):
            command(session)
    fix(session)
    assert contents(victim) == before


@pytest.mark.parametrize("named", ["", ".sage"])
def test_a_link_in_place_of_the_store_is_refused(session: Session, victim: Path, tmp_path: Path, named: str) -> None:
    repository, store = tmp_path / "repository", victim / ".sage"
    repository.mkdir()
    store.mkdir()
    (repository / ".sage").symlink_to(store)
    with pytest.raises(PathRefused, match="name the path that it leads to"):
        Store(repository / named)
    assert clew("doctor", repository / named, "--fix").code == PathRefused.exit_code
    assert contents(victim) == {"keep.txt": b"mine\n"}
    Store(store).session("new").user("hi")
    assert (store / "sessions/new/messages.jsonl").exists()


def test_a_link_in_place_of_the_store_is_followed_in_the_users_own_home(
    victim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "me").mkdir()
    (tmp_path / "me/.sage").symlink_to(victim)
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    Store(tmp_path / "me").session("new").user("hi")
    assert (victim / "sessions/new/messages.jsonl").exists()


@pytest.mark.parametrize("name", ["messages.jsonl", "snapshots.jsonl", "metadata.json", "quarantine.jsonl"])
def test_files_of_a_session_that_are_links_are_not_written_through(session: Session, victim: Path, name: str) -> None:
    place = session.folder / name
    place.unlink(missing_ok=True)
    place.symlink_to(victim / "keep.txt")
    for command in (record, watch, undo, fix):
        with suppress(OSError, ClewError):
            command(session)
    assert contents(victim) == {"keep.txt": b"mine\n"}


def test_modes_are_not_changed_through_links(session: Session, victim: Path) -> None:
    (victim / "keep.txt").chmod(0o644)
    config = session.folder.parent.parent / "config.json"
    config.unlink(missing_ok=True)
    config.symlink_to(victim / "keep.txt")
    fix(session)
    assert (victim / "keep.txt").stat().st_mode & 0o777 == 0o644


def test_an_undo_looks_at_no_folder_that_only_a_record_names(session: Session, victim: Path, work: Path) -> None:
    """A record of a tool that was cut off names any folder; its files would be copied into the session's folder."""
    [scan] = Blobs(session.folder / "scans").put([encode_index(str(victim), {})])
    own = {"root": str(victim), "open": True, "scan": scan, "ignored": ["nothing"], "files": {}}
    log = session.folder / "snapshots.jsonl"
    known = msgspec.json.decode(log.read_bytes().splitlines()[-1])
    maps: dict[str, object] = {"trackedFiles": {}, "fileBackups": {}}
    line = msgspec.json.encode({**known, "snapshot": maps, "metadata": {"clew": own}})
    log.write_bytes(log.read_bytes() + line + b"\n")
    Store(session.folder.parent.parent).get("tides").undo(force=True)
    assert digest_of(b"mine\n") not in {path.name.replace("-", ":") for path in session.backups.iterdir()}
    assert not any(b"mine" in path.read_bytes() for path in session.backups.iterdir())
    assert str(victim) not in os.fsdecode(log.read_bytes().splitlines()[-1])
