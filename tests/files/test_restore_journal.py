"""A restore that is killed at any moment leaves all of it or nothing, once the next one has been there."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from clew.agents.file_evidence import ABSENT, FileContent, KnownContent
from clew.errors import Busy, SourceUnreadable
from clew.file_history.restore import RestoreStep, apply_plan
from clew.file_history.timeline import Answer
from clew.io.filesystem import SYSTEM
from clew.store import Store
from clew.store.change_journal import restore_journals, restore_lock, roll_back_interrupted_restores
from tests.cli.running import clew
from tests.files import test_within
from tests.killing import killed_at

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")

_CALLS = [
    *((os, name) for name in ("rename", "unlink", "link", "mkdir", "fsync", "fchmod")),
    *((SYSTEM, name) for name in ("open", "replace", "unlink", "sync", "mkdir")),
]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "sub").mkdir(parents=True)
    (folder / "changed").write_bytes(b"before\n")
    (folder / "changed").chmod(0o640)
    (folder / "sub" / "gone").write_bytes(b"will go\n")
    (folder / "same").write_bytes(b"same\n")
    return folder


def steps() -> list[RestoreStep]:
    """One file changed, one removed, two made, one of them in folders that are not there."""
    states: dict[str, KnownContent] = {
        "changed": FileContent(b"behind\n", True),
        "sub/gone": ABSENT,
        "new": FileContent(b"new\n", True),
        "a/b/deep": FileContent(b"deep\n", True),
        "same": FileContent(b"same\n", True),
    }
    answer = Answer("/home/ada/x", "exact", None)
    return [RestoreStep(answer, path, "same" if path == "same" else "write", state) for path, state in states.items()]


def restore(work: Path) -> list[str]:
    place = work.parent / "own"
    roll_back_interrupted_restores(place)
    with restore_lock(place):
        return apply_plan(steps(), work, work.parent / "rescue", place)


AFTER = {"a/b/deep": b"deep\n", "changed": b"behind\n", "new": b"new\n", "same": b"same\n"}


def tree(work: Path) -> dict[str, bytes]:
    return {name: body for name, body in test_within.tree(work).items() if isinstance(body, bytes)}


def folders(work: Path) -> set[str]:
    return {str(path.relative_to(work)) for path in work.rglob("*") if path.is_dir()}


def killed(work: Path, at: int) -> bool:
    """Restore in a process that is killed at its n-th call that matters; False if there is no such call."""
    return killed_at(at, lambda: restore(work), _CALLS)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["settle", "restore"])
def test_R10_killed_at_every_call(work: Path, tmp_path: Path, how: str) -> None:
    """What the next one finds is as before, or all of it is done; nobody else's file is touched."""
    before, inside = tree(work), folders(work)
    seen = set()
    at = 0
    while True:
        at += 1
        was_killed = killed(work, at)
        if how == "settle" or not was_killed:
            roll_back_interrupted_restores(tmp_path / "own")
        else:
            assert restore(work) == ["changed", "sub/gone"] or tree(work) == AFTER
        done = tree(work) == AFTER
        seen.add(done)
        if not done:
            assert (tree(work), folders(work)) == (before, inside), f"killed at call {at}"
            assert (work / "changed").stat().st_mode & 0o777 == 0o640
        assert not restore_journals(tmp_path / "own")
        if how == "restore" and was_killed:
            assert done
        if not was_killed:
            break
        _as_before(work, tmp_path)
    assert at > 25 and True in seen
    assert list(work.rglob(".clew-*")) == []


def _as_before(work: Path, tmp_path: Path) -> None:
    shutil.rmtree(work)
    shutil.rmtree(tmp_path / "rescue", ignore_errors=True)
    (work / "sub").mkdir(parents=True)
    for name, body in (("changed", b"before\n"), ("sub/gone", b"will go\n"), ("same", b"same\n")):
        (work / name).write_bytes(body)
    (work / "changed").chmod(0o640)


def _cut_off(work: Path) -> None:
    """Killed when some files are done and some are not."""
    for at in range(1, 200):
        assert killed(work, at)
        now = tree(work)
        if restore_journals(work.parent / "own") and now.get("changed") == b"behind\n" and "a/b/deep" not in now:
            return
        roll_back_interrupted_restores(work.parent / "own")
    raise AssertionError("no kill left it half done")


@pytest.mark.slow
def test_R09_what_somebody_wrote_since_is_left_alone(work: Path, tmp_path: Path) -> None:
    _cut_off(work)
    (work / "changed").write_bytes(b"by hand\n")
    roll_back_interrupted_restores(tmp_path / "own")
    assert (work / "changed").read_bytes() == b"by hand\n"
    assert (work / "sub" / "gone").read_bytes() == b"will go\n" and not (work / "new").exists()


@pytest.mark.slow
@pytest.mark.parametrize("is_link", [True, False])
def test_another_folder_in_the_place_of_the_target_is_left_alone(work: Path, tmp_path: Path, is_link: bool) -> None:
    _cut_off(work)
    victim = tmp_path / "victim"
    shutil.copytree(work, victim)
    work.rename(tmp_path / "away")
    work.symlink_to(victim) if is_link else victim.rename(work)
    before = tree(work)
    with pytest.raises(SourceUnreadable, match=r"replaced by another folder; remove"):
        roll_back_interrupted_restores(tmp_path / "own")
    assert tree(work) == before
    work.unlink() if is_link else shutil.rmtree(work)
    (tmp_path / "away").rename(work)
    assert roll_back_interrupted_restores(tmp_path / "own")


@pytest.mark.slow
def test_a_target_that_was_named_by_a_link_is_put_back(work: Path, tmp_path: Path) -> None:
    real = tmp_path / "real"
    work.rename(real)
    work.symlink_to(real)
    before = tree(work)
    _cut_off(work)
    work.unlink()
    roll_back_interrupted_restores(tmp_path / "own")
    assert tree(real) == before


@pytest.mark.slow
def test_without_its_copies_it_says_so_and_how_to_go_on(work: Path, tmp_path: Path) -> None:
    _cut_off(work)
    (tmp_path / "rescue" / "changed").write_bytes(b"flipped\n")
    with pytest.raises(SourceUnreadable, match=r"cannot be rolled back.*remove") as caught:
        roll_back_interrupted_restores(tmp_path / "own")
    [told] = restore_journals(tmp_path / "own")
    assert str(told) in str(caught.value)
    told.unlink()
    assert roll_back_interrupted_restores(tmp_path / "own") == []


@pytest.mark.slow
def test_one_that_is_going_on_is_not_taken_back(work: Path, tmp_path: Path) -> None:
    _cut_off(work)
    half = tree(work)
    holds, ends = threading.Event(), threading.Event()

    def hold() -> None:
        with restore_lock(tmp_path / "own"):
            holds.set()
            ends.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    holds.wait()
    begun = time.monotonic()
    try:
        with pytest.raises(Busy), restore_lock(tmp_path / "own", wait=0.05):
            pass
    finally:
        ends.set()
        thread.join()
    assert tree(work) == half and time.monotonic() - begun < 5
    roll_back_interrupted_restores(tmp_path / "own")
    assert tree(work) != half


@pytest.mark.slow
def test_S01_it_is_told_where_nobody_else_looks(work: Path, tmp_path: Path) -> None:
    _cut_off(work)
    for path in ((tmp_path / "own"), *(tmp_path / "own").rglob("*"), tmp_path / "rescue"):
        assert path.stat().st_mode & 0o077 == 0


@pytest.mark.slow
@pytest.mark.parametrize("by", ["doctor", "undo", "restore"])
def test_R10_the_next_command_takes_it_back_and_says_so(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "own"))
    monkeypatch.chdir(work)
    with Store(tmp_path / "home").session("s") as session:
        session.user("go")
        with session.watch(session.assistant("I write."), ["other"], root=work):
            (work / "other").write_bytes(b"other\n")
    before = tree(work)
    _cut_off(work)
    half = tree(work)
    assert half != before
    looks = [["doctor"], ["undo", "s", "--dry-run"], ["restore", "s#2", "--into", str(work)]]
    for words in looks:
        clew(*words, "--home", tmp_path / "home")
        assert tree(work) == half
    done = {
        "doctor": ["doctor", "--fix"],
        "undo": ["undo", "s"],
        "restore": ["restore", "s#2", "--into", str(work), "--write"],
    }[by]
    told = clew(*done, "--home", tmp_path / "home")
    assert told.code == (6 if by == "restore" else 0), told.err  # the file that the tool wrote is there and differs
    assert "interrupted" in told.out + told.err
    assert not restore_journals(tmp_path / "own")
    now = tree(work)
    assert {name: now[name] for name in before if name != "other"} == {
        name: body for name, body in before.items() if name != "other"
    }
    assert ("other" in now) == (by != "undo")
