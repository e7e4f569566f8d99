"""Undo where files and folders stand in each other's way: all of it or nothing, and nobody is blocked for good."""

from __future__ import annotations

import os
import resource
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clew.agents.protected_paths import is_protected, leads_out
from clew.errors import ClewError, PathRefused, SourceUnreadable
from clew.io.safe_write import Change
from clew.store import Session, Store
from clew.store.apply_changes import apply_all
from clew.store.change_journal import undo_journals
from clew.store.snapshots import Snapshots
from tests import children
from tests.store.support import Quick

pytestmark = pytest.mark.skipif(os.name != "posix", reason="files are put back on POSIX alone")

Tree = dict[str, tuple[int, bytes | None]]


def tree(root: Path) -> Tree:
    """Everything with its mode, folders too; what a file holds, or where a link leads."""
    return {
        os.path.relpath(path, root): (stat.S_IMODE(path.lstat().st_mode), _held(path))
        for path in sorted(root.rglob("*"))
        if not path.name.startswith(".clew-")
    }


def _held(path: Path) -> bytes | None:
    if path.is_symlink():
        return os.fsencode(path.readlink())
    return path.read_bytes() if path.is_file() else None


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def session(tmp_path: Path, work: Path) -> Session:
    session = Store(tmp_path, system=Quick()).session("s")
    session.user("go")
    return session


def tool(session: Session, work: Callable[[], object], *paths: str) -> None:
    with session.watch(session.assistant("a tool"), list(paths) or None):
        work()


def put(path: str, content: bytes = b"x") -> Path:
    """Make a file, whatever is in its way."""
    for above in reversed(Path(path).parents):
        if above.is_file() or above.is_symlink():
            above.unlink()
        above.mkdir(exist_ok=True)
    if Path(path).is_dir():
        shutil.rmtree(path)
    Path(path).write_bytes(content)
    return Path(path)


def test_R10_what_lies_below_a_file_that_stays_is_refused_before_anything_is_changed(
    session: Session, work: Path
) -> None:
    put("a/c")
    put("d")
    tool(session, lambda: None, "a")  # of a folder that is named nothing is recorded

    def change_places() -> None:
        put("a")
        put("d/x")

    tool(session, change_places)
    before = tree(work)
    with pytest.raises(PathRefused, match=r"'a/c': 'a' is not a folder now, and stays; move it away first"):
        session.undo(to="#1", force=True)
    assert tree(work) == before and not undo_journals(session.folder)
    (work / "a").rename(work / "aside")
    session.undo(to="#1", force=True)
    assert {"a/c", "d", "aside"} < set(tree(work)) and session.roll_back_interrupted_undo() == []


def test_R10_a_plan_that_contradicts_itself_is_refused_and_goes_step_by_step(session: Session, work: Path) -> None:
    put("d", b"0")
    tool(session, lambda: put("d", b"1"), "d")
    put("d/x", b"mine")
    tool(session, lambda: put("d/x", b"2"), "d/x")
    before = tree(work)
    with pytest.raises(PathRefused, match=r"'d/x': 'd' was a file too, at another time; go back step by step"):
        session.undo(to="#1", force=True)
    assert tree(work) == before and not undo_journals(session.folder)
    session.undo()
    assert Path("d/x").read_bytes() == b"mine"
    Path("d").rename("aside")
    session.undo()
    assert Path("d").read_bytes() == b"0" and Path("aside/x").read_bytes() == b"mine"


@pytest.mark.parametrize("call", ["link", "rename", "fsync", "mkdir", "rmdir", "unlink", "symlink"])
def test_R10_a_failure_at_any_call_takes_everything_back(
    work: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Files change places with folders, some of them empty, in more folders than are kept open."""
    monkeypatch.setattr("clew.io.safe_write.MAX_OPEN_FOLDERS", 2)
    for path in ("d/x", "f", "g/h/old", "s"):
        put(path, path.encode())
    Path("d/empty").mkdir()
    Path("l").symlink_to("f")
    for folder in ("d/empty", "d"):
        Path(folder).chmod(0o700)
    changes = [
        *(Change(path, None) for path in ("d/x", "f", "g/h/old")),
        *(Change(path, b"new") for path in ("d", "f/new/deep", "g/h/new", "n/m/x", "s")),
        Change("l", None, link=b"s", over=b"f"),
    ]
    before, failures = tree(work), 0
    for at in range(1, 200):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, _failing(getattr(os, call), at))
            try:
                apply_all(work, changes)
                break
            except (OSError, ClewError):
                failures += 1
        assert tree(work) == before, f"{call} failed at call {at}"
        for left in work.rglob(".clew-*"):
            left.unlink()
    assert call == "unlink" or failures > 0
    assert {name for name, (_, held) in tree(work).items() if held is not None} == {
        *("d", "f/new/deep", "g/h/new", "n/m/x", "s", "l"),
    }


def _failing(real: Callable[..., Any], at: int) -> Callable[..., Any]:
    calls = 0

    def call(*words: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at:
            raise OSError(28, "No space left on device")
        return real(*words, **more)

    return call


def cut_off(session: Session) -> None:
    """An undo whose process ends when its files are written, and nothing is recorded yet."""

    def work() -> None:
        Snapshots.append = lambda *_, **__: os._exit(9)  # type: ignore[method-assign]
        session.undo()

    assert children.done(work) == 9
    assert undo_journals(session.folder)


def test_R10_folders_that_an_undo_made_go_when_it_is_taken_back(session: Session, work: Path) -> None:
    put("n/m/x")
    Path("empty").mkdir()
    tool(session, lambda: shutil.rmtree("n"))
    before = tree(work)
    cut_off(session)
    assert "n/m/x" in tree(work)
    session.roll_back_interrupted_undo()
    assert tree(work) == before


def _link() -> None:
    Path("d").rename("moved")
    Path("d").symlink_to("moved")


def _file() -> None:
    Path("d").rename("moved")
    Path("d").write_bytes(b"mine")


def _pipe() -> None:
    Path("d/f").unlink()
    os.mkfifo("d/f")


@pytest.mark.parametrize("by", [_link, _file, _pipe])
def test_R09_what_somebody_put_into_the_way_of_what_is_taken_back_stays(
    session: Session, work: Path, by: Callable[[], None]
) -> None:
    put("d/f", b"0")
    put("g", b"0")
    tool(session, lambda: (put("d/f", b"1"), put("g", b"1")), "d/f", "g")
    cut_off(session)
    by()
    theirs = {name: found for name, found in tree(work).items() if name != "g"}
    assert session.roll_back_interrupted_undo() == ["g"] and Path("g").read_bytes() == b"1"
    assert {name: found for name, found in tree(work).items() if name != "g"} == theirs
    assert not undo_journals(session.folder)
    tool(session, lambda: put("g", b"2"), "g")


@pytest.mark.parametrize("theirs", ["d/y", "d/x/y"])
def test_R09_what_somebody_put_into_a_folder_that_was_to_be_a_file_again_stays(
    session: Session, work: Path, theirs: str
) -> None:
    put("d/x", b"0")
    put("g", b"0")
    tool(session, lambda: (put("d", b"1"), put("g", b"1")))
    cut_off(session)
    put(theirs, b"mine")
    session.roll_back_interrupted_undo()
    assert Path(theirs).read_bytes() == b"mine" and Path("g").read_bytes() == b"1"
    assert session.roll_back_interrupted_undo() == [] and not undo_journals(session.folder)


def test_R09_a_file_in_the_place_of_a_folder_that_was_to_come_back_stays(session: Session, work: Path) -> None:
    put("d", b"0")
    put("g", b"0")
    tool(session, lambda: (put("d/x", b"1"), put("g", b"1")))
    cut_off(session)
    put("d", b"mine")
    assert session.roll_back_interrupted_undo() == ["g"]
    assert Path("d").read_bytes() == b"mine" and not undo_journals(session.folder)


def conflict(session: Session, *paths: str) -> None:
    """Files that a tool wrote, and somebody behind it."""
    tool(session, lambda: [put(path, b"1") for path in paths])
    for path in paths:
        put(path, f"mine: {path}".encode())


def test_R09_copies_of_a_file_and_of_what_was_in_a_folder_of_its_name(session: Session, work: Path) -> None:
    put("a/b", b"0")
    tool(session, lambda: put("a/b", b"1"))
    put("a/b", b"mine, before")
    tool(session, lambda: put("a/b", b"2"))
    tool(session, lambda: put("a", b"3"))
    put("a", b"mine, now")
    done = session.undo(to="#1", force=True)
    assert done.rescue is not None and Path("a/b").read_bytes() == b"0"
    kept = {name: held for name, (_, held) in tree(done.rescue).items() if held is not None}
    assert kept == {"a": b"mine, now", "earlier/a/b": b"mine, before"}


@pytest.mark.slow
def test_R09_copies_in_more_folders_than_can_be_open(session: Session, work: Path) -> None:
    conflict(session, *(f"d{number}/f" for number in range(300)))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/dev/fd").iterdir())) + 250, hard))
    try:
        done = session.undo(force=True)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert done.rescue is not None and tree(work) == {}
    assert (done.rescue / "d299/f").read_bytes() == b"mine: d299/f" and len(list(done.rescue.iterdir())) == 300


def test_R09_copies_take_the_place_of_nothing(session: Session, work: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    (kept / "theirs").mkdir(parents=True)
    (kept / "theirs").chmod(0o755)
    (kept / "2").write_bytes(b"a file")
    (kept / "g").symlink_to(tmp_path)
    before = tree(kept)
    conflict(session, "f", "g/h")
    done = session.undo(force=True, rescue=kept)
    assert done.rescue == kept / "3"
    first = {"3": (0o700, None), "3/f": (0o600, b"mine: f"), "3/g": (0o700, None), "3/g/h": (0o600, b"mine: g/h")}
    assert tree(kept) == {**before, **first}
    put("f", b"mine too")
    put("g/h", b"and this")
    assert session.redo(force=True, rescue=kept).rescue == kept / "4"
    assert {name: found for name, found in tree(kept).items() if not name.startswith("4")} == {**before, **first}
    assert (kept / "4/f").read_bytes() == b"mine too"


def test_copies_go_into_the_folder_itself_where_there_is_room(session: Session, work: Path, tmp_path: Path) -> None:
    (tmp_path / "kept/theirs").mkdir(parents=True)
    (tmp_path / "kept/theirs").chmod(0o755)
    conflict(session, "theirs/f", "own/f")
    assert session.undo(force=True, rescue=tmp_path / "kept").rescue == tmp_path / "kept"
    modes = {name: mode for name, (mode, _) in tree(tmp_path / "kept").items()}
    assert modes == {"theirs": 0o755, "theirs/f": 0o600, "own": 0o700, "own/f": 0o600}


def test_R10_folders_that_are_made_are_synced_in_the_one_above(
    session: Session, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("n/m/x")
    tool(session, lambda: shutil.rmtree("n"))
    synced: set[tuple[int, int]] = set()
    real = os.fsync

    def noting(descriptor: int) -> None:
        found = os.fstat(descriptor)
        synced.add((found.st_dev, found.st_ino))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    session.undo()
    for path in (work, work / "n", work / "n/m", work / "n/m/x"):
        assert (path.stat().st_dev, path.stat().st_ino) in synced, path


@pytest.mark.parametrize("name", [".git", ".ssh", "sub/.git", ".GIT", ".claude", ".git/hooks"])
def test_R13_the_place_of_a_trusted_folder_is_trusted_too(name: str) -> None:
    assert is_protected(name)
    assert leads_out("link", name.encode()) and leads_out("sub/link", f"../{name}/".encode())


@pytest.mark.parametrize("target", ["x/../../victim", "x/..", "./x/../y", "../d2/../x", "x//../y"])
def test_R13_a_link_target_that_goes_up_behind_a_name_leads_out(target: str) -> None:
    """The name may be a link itself, and then what is above it lies elsewhere."""
    assert leads_out("d1/d2/y", target.encode())


@pytest.mark.parametrize("target", ["x", "./x", "../x", "../../x/y", "..", "...", "x..y/z"])
def test_R13_a_link_target_that_only_begins_with_the_folders_above_does_not(target: str) -> None:
    assert not leads_out("d1/d2/y", target.encode())


def test_R13_two_links_that_lead_out_together_are_put_back_on_demand_only(session: Session, work: Path) -> None:
    Path("d1/d2").mkdir(parents=True)
    Path("d1/d2/x").symlink_to("..")
    Path("d1/d2/y").symlink_to("x/../../victim")

    def remove() -> None:
        Path("d1/d2/x").unlink()
        Path("d1/d2/y").unlink()

    tool(session, remove)
    with pytest.raises(PathRefused, match="--allow-protected"):
        session.undo(force=True)
    assert not os.path.lexists("d1/d2/y")


def test_R13_a_link_to_a_trusted_folder_is_put_back_on_demand_only(session: Session, work: Path) -> None:
    Path("x").symlink_to(".git")
    tool(session, lambda: Path("x").unlink())
    with pytest.raises(PathRefused, match="--allow-protected"):
        session.undo(force=True)
    session.undo(allow_protected=True)
    assert str(Path("x").readlink()) == ".git"


@pytest.mark.parametrize("root", ["a" * 300, "/" + "a" * 300, "/" + "b/" * 3000, "a\0b"])
def test_R12_a_workspace_with_a_name_that_no_folder_can_have(session: Session, work: Path, root: str) -> None:
    put("f", b"0")
    tool(session, lambda: put("f", b"1"), "f")
    with session._snapshots.writing() as log:
        session._snapshots.append(log, "m", Path("/nowhere"), {}, is_open=True, index={})
    path = session.folder / "snapshots.jsonl"
    told = root.encode("unicode_escape").replace(b"\\x00", b"\\u0000")
    path.write_bytes(path.read_bytes().replace(b"/nowhere", told))
    session.undo()
    assert Path("f").read_bytes() == b"0"


@pytest.mark.parametrize("paths", [["f"], None])
def test_a_tool_that_removes_the_workspace(session: Session, work: Path, paths: list[str] | None) -> None:
    put("f", b"0")
    with pytest.raises(SourceUnreadable, match="No such file"), session.watch(session.assistant("rm"), paths):
        shutil.rmtree(work)
    work.mkdir()
    session.undo(root=work, force=True)
    assert (work / "f").read_bytes() == b"0"


ODD = ("a:b", "x.", "x ", "a\\b", "~x", "$HOME", "NUL", "%A%", "dir./12:30 ", "...")


def test_R03_names_that_only_other_systems_take_for_something_else(session: Session, work: Path) -> None:
    """A tool may give any name that this system knows; what another program tells is another matter."""
    for name in ODD[::2]:
        put(name, b"old")
    before = tree(work)

    def change() -> None:
        for name in ODD[::2]:
            Path(name).write_bytes(b"changed")
        for name in ODD[1::2]:
            put(name, b"made")
        Path(ODD[0]).unlink()

    tool(session, change)
    behind = tree(work)
    session.undo()
    assert tree(work) == before
    session.redo()
    assert tree(work) == behind
    Path("x.").write_bytes(b"mine")
    done = session.undo(force=True)
    assert done.rescue is not None and (done.rescue / "x.").read_bytes() == b"mine"
    assert tree(work) == before


def test_R10_an_undo_of_such_names_that_was_cut_off_is_taken_back(session: Session, work: Path) -> None:
    put("a:b", b"0")
    tool(session, lambda: put("a:b", b"1"))
    cut_off(session)
    assert Path("a:b").read_bytes() == b"0"
    assert session.roll_back_interrupted_undo() == ["a:b"] and Path("a:b").read_bytes() == b"1"


def test_R01_a_record_of_its_own_cannot_lead_out_either(session: Session, work: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"1")
    put("f", b"0")
    tool(session, lambda: put("f", b"1"), "f")
    path = session.folder / "snapshots.jsonl"
    for name in ("../outside", "./f", "a//f", str(tmp_path / "outside")):
        path.write_bytes(path.read_bytes().replace(b'"f":', f'"{name}":'.encode()))
        with pytest.raises(PathRefused, match="nothing was changed"):
            session.undo(force=True)
        path.write_bytes(path.read_bytes().replace(f'"{name}":'.encode(), b'"f":'))
    assert (tmp_path / "outside").read_bytes() == b"1" and Path("f").read_bytes() == b"1"
