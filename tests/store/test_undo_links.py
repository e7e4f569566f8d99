"""Undo of more than content: links are put back as links, and files and folders that changed places change back."""

from __future__ import annotations

import errno
import os
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from clew.errors import PathRefused
from clew.store import Refused, Session, Store
from clew.store.change_journal import undo_journals
from clew.store.doctor import examine
from tests import children
from tests.store.support import Quick, assert_whole, lines

Tree = dict[str, str | bytes]


def tree(root: Path) -> Tree:
    """Every file with its bytes, and every link with where it leads; what lies aside for a moment does not count."""
    return {
        os.path.relpath(path, root): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in sorted(root.rglob("*"))
        if (path.is_symlink() or path.is_file()) and not path.name.startswith(".clew-")
    }


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "work"
    (root / "folder").mkdir(parents=True)
    monkeypatch.chdir(root)
    (root / "a.txt").write_bytes(b"one\n")
    (root / "b.txt").write_bytes(b"two\n")
    (root / "folder" / "c.txt").write_bytes(b"three\n")
    (root / "link").symlink_to("a.txt")
    (root / "way").symlink_to("folder")
    (root / "broken").symlink_to("nowhere")
    return root


@pytest.fixture
def session(tmp_path: Path, work: Path) -> Session:
    session = Store(tmp_path, system=Quick()).session("s")
    session.user("go", uuid="q")
    return session


def command(session: Session, script: str) -> None:
    """A command that is run while the whole workspace is watched."""
    with session.watch(session.assistant(script)):
        subprocess.run(["sh", "-ec", script], check=True)


SCRIPTS = {
    "a link becomes a file": "rm link; printf x > link",
    "a file becomes a link": "rm b.txt; ln -s a.txt b.txt",
    "a link leads elsewhere": "ln -sfn b.txt link",
    "links come and go": "rm link way broken; ln -s folder/c.txt other; mkdir deep; ln -s ../a.txt deep/up",
    "a link becomes a folder": "rm way; mkdir way; printf x > way/x",
    "a folder becomes a link": "mv folder moved; ln -s moved folder",
    "a file becomes a folder": "rm a.txt; mkdir -p a.txt/inner/empty; printf x > a.txt/inner/x; printf y > a.txt/y",
    "a folder becomes a file": "rm -r folder; printf x > folder",
    "two change places": "mv folder f; mv a.txt folder; mv f a.txt",
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_whatever_changed_places_changes_back(session: Session, work: Path, tmp_path: Path, script: str) -> None:
    before = tree(work)
    command(session, script)
    behind = tree(work)
    assert behind != before
    session.undo()
    assert tree(work) == before
    session.redo()
    assert tree(work) == behind
    command(session, "printf more > more.txt")
    session.undo(to="q")
    assert tree(work) == before
    session.close()
    assert_whole(tmp_path)


@pytest.mark.parametrize("script", list(SCRIPTS.values())[2:], ids=list(SCRIPTS)[2:])
@pytest.mark.parametrize("call", ["link", "rename", "symlink", "rmdir", "fsync", "mkdir"])
def test_R10_a_fault_half_way_takes_places_back_too(
    session: Session, work: Path, monkeypatch: pytest.MonkeyPatch, script: str, call: str
) -> None:
    command(session, script)
    behind, head = tree(work), session.head
    for at in range(1, 40):
        count, real = 0, getattr(os, call)

        def failing(*words: Any, at: int = at, real: Any = real, **more: Any) -> Any:
            nonlocal count
            count += 1
            if count == at:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*words, **more)

        with monkeypatch.context() as patch:
            patch.setattr(os, call, failing)
            patch.setattr(os, "supports_dir_fd", {*os.supports_dir_fd, failing})
            try:
                session.undo()
            except (OSError, PathRefused):
                assert tree(work) == behind and session.head == head, f"{call} failed at call {at}"
                continue
        session.redo()
        assert tree(work) == behind and not undo_journals(session.folder)
        if count < at:
            return
    pytest.fail("it never went through")


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_R10_a_crash_half_way_takes_places_back_too(session: Session, work: Path, tmp_path: Path, script: str) -> None:
    before = tree(work)
    command(session, script)
    behind = tree(work)
    session.close()
    for at in range(1, 40):
        code = children.done(partial(_die_at, at, tmp_path))
        again = Store(tmp_path, system=Quick()).session("s")
        for finding in examine(tmp_path):
            if finding.problem.code == "undo-unfinished" and finding.mend is not None:
                finding.mend()
        if again.head == "q":
            assert tree(work) == before
            again.redo()
        assert tree(work) == behind, f"died at call {at}"
        again.close()
        if code == 0:
            return
    pytest.fail("it never went through")


def _die_at(at: int, place: Path) -> None:
    """An undo in a process that ends at one of its calls."""
    count = 0

    def deadly(real: Any) -> Any:
        def call(*words: Any, **more: Any) -> Any:
            nonlocal count
            count += 1
            if count == at:
                os._exit(9)
            return real(*words, **more)

        return call

    for name in ("rename", "unlink", "link", "symlink", "rmdir"):
        setattr(os, name, deadly(getattr(os, name)))
    Store(place).session("s").undo()


def test_readers_do_not_take_a_link_for_a_file(session: Session, work: Path) -> None:
    command(session, "rm link; printf x > link; rm way; ln -s b.txt new")
    record = lines(session.folder / "snapshots.jsonl")[-1]
    assert {name: file["state"] for name, file in record["snapshot"]["trackedFiles"].items()} == {"link": "created"}
    own = record["metadata"]["clew"]["files"]
    assert set(own) == {"link", "way", "new"} and own["way"]["linkBefore"] == "Zm9sZGVy"


def test_R04_a_link_that_somebody_made_is_not_replaced(session: Session, work: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"mine")
    command(session, "printf x > a.txt")
    (work / "a.txt").unlink()
    (work / "a.txt").symlink_to(secret)
    with pytest.raises(PathRefused, match="link that was not made by a tool; move it away first"):
        session.undo(force=True)
    command(session, "ln -sfn b.txt link")
    (work / "link").unlink()
    (work / "link").symlink_to(secret)
    with pytest.raises(PathRefused, match="not made by a tool"):
        session.undo(force=True)
    assert secret.read_bytes() == b"mine" and (work / "link").is_symlink()


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "folder/../../outside", ".git/config"])
def test_R13_a_link_that_leads_out_is_put_back_on_demand_only(session: Session, work: Path, target: str) -> None:
    (work / "out").symlink_to(target)
    command(session, "rm out; printf x > out")
    with pytest.raises(PathRefused, match="leads out of the workspace; use --allow-protected to restore it"):
        session.undo(force=True)
    session.undo(allow_protected=True)
    assert str((work / "out").readlink()) == target


def test_R12_a_link_with_bytes_that_are_no_text(session: Session, work: Path, tmp_path: Path) -> None:
    target = os.fsdecode(b"caf\xe9")
    (work / "odd").symlink_to(target)
    command(session, "rm odd; printf x > odd")
    session.undo()
    assert str((work / "odd").readlink()) == target
    session.close()
    assert_whole(tmp_path)


def test_a_link_that_was_named_is_put_back_but_not_what_is_behind_it(session: Session, work: Path) -> None:
    with session.watch(session.assistant("replaces it", uuid="r"), ["link"]):
        (work / "link").unlink()
        (work / "link").write_bytes(b"x")
    session.undo()
    assert str((work / "link").readlink()) == "a.txt"
    with session.watch(session.assistant("writes through it", uuid="r2"), ["link"]):
        (work / "link").write_bytes(b"through")
    with pytest.raises(Refused, match="cannot be restored"):
        session.undo()


def test_what_somebody_put_into_the_folder_stays(session: Session, work: Path) -> None:
    command(session, "rm a.txt; mkdir a.txt; printf x > a.txt/x")
    (work / "a.txt" / "mine").write_bytes(b"mine")
    behind = tree(work)
    with pytest.raises(PathRefused, match=r"folder now, with files not made by a tool, such as 'a\.txt/mine'"):
        session.undo(force=True)
    assert tree(work) == behind
    (work / "a.txt" / "mine").rename(work / "mine")
    session.undo()
    assert (work / "a.txt").read_bytes() == b"one\n" and (work / "mine").exists()


@pytest.mark.parametrize("script", ["mv a.txt A.TXT", "printf x > A.txt", "rm a.txt; mkdir A.TXT; printf x > A.TXT/x"])
def test_R07_names_that_differ_in_case_have_a_way_out(session: Session, work: Path, script: str) -> None:
    (work / "A").touch()
    if (work / "a").exists():
        pytest.skip("this file system does not tell them apart")
    before = tree(work)
    command(session, script)
    behind = tree(work)
    try:
        session.undo()
    except PathRefused as refused:
        assert "--force continues if this file system has both" in str(refused)
        assert tree(work) == behind
        session.undo(force=True)
    assert tree(work) == before
    session.redo(force=True)
    assert tree(work) == behind


def test_R07_where_the_file_system_holds_them_for_one_there_is_none(
    session: Session, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from clew.io import safe_write as within

    command(session, "mv a.txt A.TXT")
    behind = tree(work)
    monkeypatch.setattr(within, "_tells_apart", lambda _: False)
    with pytest.raises(PathRefused, match="same file on some systems"):
        session.undo(force=True)
    assert tree(work) == behind
