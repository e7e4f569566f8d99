"""Scans of a whole workspace: what a command changed is found, and nothing in the workspace is touched."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from clew.errors import SourceUnreadable
from clew.io.blobs import digest_of
from clew.store import Session, Store, workspace
from clew.store.blobs import Blobs
from clew.store.doctor import examine
from clew.store.file_state import StateChange
from clew.store.snapshots import Snapshots
from clew.store.undo_plan import Refused
from tests.cli.running import state
from tests.store.support import Quick, assert_whole

SCRIPT = """
printf 'new\\n' > created.txt
printf 'more\\n' >> kept/changed.txt
rm kept/gone.txt
chmod +x run.sh
mv moved.txt kept/moved.txt
mkdir -p a/b/c && printf x > a/b/c/deep
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "kept").mkdir(parents=True)
    for name in ("kept/changed.txt", "kept/gone.txt", "moved.txt", "run.sh", "still"):
        (root / name).write_bytes(name.encode() * 3)
    (root / "bytes").write_bytes(bytes(range(256)))
    return root


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Store(tmp_path, system=Quick()).session("s")


def watched(session: Session, root: Path, script: str) -> dict[str, StateChange]:
    watch = session.watch(session.assistant(script), root=root)
    watch.before()
    subprocess.run(["sh", "-c", script], cwd=root, check=True)
    return watch.after()


def kinds(changes: dict[str, StateChange]) -> dict[str, str]:
    def kind(change: StateChange) -> str:
        if change.before.digest is None:
            return "created"
        return "deleted" if change.after.digest is None else "modified"

    return {path: kind(change) for path, change in changes.items()}


def known_digests(work: Path) -> set[str | None]:
    """Of the files that stood there before."""
    return {digest_of(path.read_bytes()) for path in work.rglob("*") if path.is_file() and not path.is_symlink()}


@pytest.mark.seed("S1-40", "S1-58")
def test_what_a_command_did_is_seen(session: Session, work: Path, tmp_path: Path) -> None:
    found = watched(session, work, SCRIPT)
    assert kinds(found) == {
        "a/b/c/deep": "created",
        "created.txt": "created",
        "kept/changed.txt": "modified",
        "kept/gone.txt": "deleted",
        "kept/moved.txt": "created",
        "moved.txt": "deleted",
        "run.sh": "modified",
    }
    before, after = found["run.sh"]
    assert before.digest == after.digest and (before.mode, after.mode) == (0o644, 0o755)
    session.close()
    assert_whole(tmp_path)


def test_nothing_is_nothing(session: Session, work: Path) -> None:
    assert watched(session, work, "true") == {}
    assert watched(session, work, "touch still; chmod 755 run.sh; chmod 644 run.sh") == {}


def test_the_repository_is_not_touched_and_not_needed(session: Session, work: Path) -> None:
    def git(*words: str) -> None:
        config = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        subprocess.run(["git", *config, *words], cwd=work, check=True, capture_output=True)

    git("init", "-q")
    (work / ".gitignore").write_text("secret\n")
    git("add", "-A")
    git("commit", "-qm", "x")
    (work / "secret").write_text("ignored by git, and yet it is work")
    before = state(work / ".git")
    assert kinds(watched(session, work, "echo y > untracked; echo z >> secret")) == {
        "secret": "modified",
        "untracked": "created",
    }
    session.undo(root=work)
    assert not (work / "untracked").exists()
    assert (work / "secret").read_text() == "ignored by git, and yet it is work"
    assert state(work / ".git") == before


def test_what_is_ignored(tmp_path: Path, work: Path) -> None:
    place = tmp_path / "work"
    config = place / ".sage" / "config.json"
    config.parent.mkdir()
    config.write_text('{"clew": {"ignore": ["*.log", "kept/private", "build/"]}}')
    session = Store(place, system=Quick()).session("s")
    script = """
    mkdir -p node_modules/x kept/private .venv build sub/build .git
    for place in node_modules/x .venv build sub/build kept/private .git; do echo x > $place/file; done
    echo x > a.log; echo x > sub/b.log; echo x > sub/private; echo x > logs
    """
    assert kinds(watched(session, work, script)) == {"sub/private": "created", "logs": "created"}


def test_a_change_in_the_same_moment_of_the_same_size_is_seen(session: Session, work: Path) -> None:
    """The time of a file has its grain: two writes within it look the same to the system."""
    path = work / "still"
    for number in range(20):
        path.write_bytes(b"%03d" % number)
        with session.watch(session.assistant("x"), root=work):
            stamp = path.stat()
            path.write_bytes(b"%03d" % (number + 500))
            os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    taken = [one for one in session._snapshots.entries() if not one.is_open]
    assert all(set(one.files) == {"still"} for one in taken) and len(taken) == 20


def test_what_did_not_change_is_not_read_again(session: Session, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched(session, work, "true")
    time.sleep(0.1)
    watched(session, work, "true")
    read: list[bytes] = []
    real = Snapshots.keep

    def keep(self: Snapshots, new: Sequence[bytes]) -> list[str | None]:
        read.extend(new)
        return real(self, new)

    monkeypatch.setattr(Snapshots, "keep", keep)
    watched(session, work, "true")
    assert read == []
    watched(session, work, "echo x > new")
    assert len(read) == 1


def test_a_folder_that_cannot_be_looked_into_is_not_gone(
    session: Session, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched(session, work, "true")
    real = workspace._entries

    def closed(folder: str) -> Any:
        if folder.endswith("kept/"):
            raise PermissionError(13, "closed")
        return real(folder)

    monkeypatch.setattr(workspace, "_entries", closed)
    assert kinds(watched(session, work, "echo x > new")) == {"new": "created"}
    monkeypatch.undo()
    assert kinds(watched(session, work, "rm kept/gone.txt")) == {"kept/gone.txt": "deleted"}


def test_links_are_seen_but_not_followed_and_pipes_are_left_alone(session: Session, work: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("x")
    script = f"ln -s {outside} link; ln -s {outside}/secret file; mkfifo pipe; echo x > plain"
    found = watched(session, work, script)
    assert {path: change.after.link for path, change in found.items()} == {
        "link": os.fsencode(outside),
        "file": os.fsencode(outside / "secret"),
        "plain": None,
    }
    assert session._snapshots.blobs.all() == {found["plain"].after.digest, *known_digests(work)}


def test_R12_any_name_is_seen_and_comes_back(session: Session, work: Path, tmp_path: Path) -> None:
    names = [
        b"line\nbreak",
        b"caf\xe9",
        b"\xff\xfe",
        "ärger".encode(),
        b"tab\there",
        "rtl\u202etxt".encode(),
        b"n" * 255,
    ]
    watch = session.watch(session.assistant("x"), root=work)
    watch.before()
    for name in names:
        (work / os.fsdecode(name)).write_bytes(name)
    assert {os.fsencode(path) for path in watch.after()} == set(names)
    with session.watch(session.assistant("y"), root=work):
        for name in names:
            (work / os.fsdecode(name)).write_bytes(b"changed")
    session.undo(root=work)
    assert all((work / os.fsdecode(name)).read_bytes() == name for name in names)
    session.undo(root=work)
    assert not any((work / os.fsdecode(name)).exists() for name in names)
    session.redo(root=work)
    assert all((work / os.fsdecode(name)).read_bytes() == name for name in names)
    session.close()
    assert_whole(tmp_path)


def test_R03_names_that_only_other_systems_take_for_something_else_are_kept(session: Session, work: Path) -> None:
    found = watched(session, work, "printf x > 'a:b'; printf x > aux.c; ln -s 'a:b' 'l.'")
    assert {path: (change.after.digest, change.after.missing) for path, change in found.items()} == {
        "a:b": (digest_of(b"x"), None),
        "aux.c": (digest_of(b"x"), None),
        "l.": (None, None),
    }
    assert found["l."].after.link == b"a:b"


def test_what_a_command_did_that_was_cut_off_is_undone_apart(session: Session, work: Path, tmp_path: Path) -> None:
    session.user("go")
    cut = session.assistant("is killed").uuid
    session.watch(cut, root=work).before()
    (work / "created").write_text("by the one that was killed")
    again = Store(tmp_path, system=Quick()).session("s")
    assert kinds(watched(again, work, "echo x > later")) == {"later": "created"}
    again.undo(root=work)
    assert (work / "created").exists() and not (work / "later").exists()
    with pytest.raises(Refused, match="was interrupted"):
        again.undo(root=work)
    again.undo(root=work, force=True)
    assert not (work / "created").exists()


def test_what_could_not_be_kept_is_tried_again(session: Session, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Snapshots, "keep", lambda _, new: ["no room"] * len(new))
        watched(session, work, "true")
    watched(session, work, "true")
    found = watched(session, work, "rm still")
    assert found["still"].before.missing is None
    session.undo(root=work)
    assert (work / "still").exists()


def test_a_damaged_cache_is_found_anew(session: Session, work: Path) -> None:
    watched(session, work, "true")
    [index] = (session.folder / "scans").iterdir()
    index.write_bytes(b"\xc1 nonsense")
    assert kinds(watched(session, work, "echo x > new")) == {"new": "created"}


def test_only_the_last_index_of_each_workspace_is_kept(session: Session, work: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for number in range(3):
        watched(session, work, f"echo {number} > new")
        with session.watch(session.assistant("x"), root=other):
            pass
    scans = session.folder / "scans"
    assert len(list(scans.iterdir())) == 2
    Blobs(scans).put([b"left by a crash"])
    session.close()
    assert [one.problem.code for one in examine(tmp_path)] == ["backup-unused"]
    session.clear()
    assert len(list(scans.iterdir())) == 2 and list(examine(tmp_path)) == []


def test_sessions_of_earlier_versions_are_scanned_anew(session: Session, work: Path, tmp_path: Path) -> None:
    """They kept the last scan in a file of its own, which the record named otherwise."""
    watched(session, work, "echo one > new")
    session.close()
    [index] = (session.folder / "scans").iterdir()
    index.unlink()
    (session.folder / "scans").rmdir()
    (session.folder / "workspace-0123456789abcdef.seen").write_bytes(b"\x92\x80\x80")
    log = session.folder / "snapshots.jsonl"
    log.write_bytes(re.sub(rb'"scan":"[0-9a-f]{64}"', b'"look":"0123456789ab"', log.read_bytes()))
    again = Store(tmp_path, system=Quick()).session("s")
    assert kinds(watched(again, work, "echo two > new")) == {"new": "modified"}
    for content in ("one\n", None):
        again.undo(root=work)
        assert ((work / "new").read_text() if (work / "new").exists() else None) == content


def test_a_workspace_that_is_not_there(session: Session, work: Path) -> None:
    watch = session.watch(session.assistant("x"), root=work)
    for path in sorted(work.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    work.rmdir()
    with pytest.raises(SourceUnreadable):
        watch.before()
