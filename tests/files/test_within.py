"""Files written below one folder: nothing lands elsewhere, and a change is made whole or not at all."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import threading
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from clew.errors import PathRefused
from clew.io import safe_write as within_module
from clew.io.safe_write import Change, Within, parts_of, refuse_twins
from tests.store.support import in_memory

SPELLINGS = (
    # R01: out of the folder
    "../x", "../../.bashrc", "a/../../x", "a/b/../../../x", "..", ".", "", "./x", "a/./b", "a/..", "a/../b", "../",
    "a//b", "/", "//", "a/", "...",
    # R02: a folder elsewhere
    "/etc/passwd", "/home/ada/.bashrc", "//etc/passwd", "~", "~/x", "~ada/x", "~root", "$HOME/x", "${HOME}/x", "$PWD",
    "%USERPROFILE%/x", "%HOME%\\x", "file:///etc/passwd", "file://host/share/x", "file:x", "FILE:///x",
    # R03: what Windows takes for something else
    "C:\\x", "C:/x", "C:x", "c:", "C:\\", "\\\\host\\share\\x", "\\\\?\\C:\\x", "\\\\.\\pipe\\x", "//x/y", "\\x",
    "a\\..\\..\\x", "a\\b", "..\\x", "a/..\\..\\x", "NUL", "nul", "CON", "con.txt", "a/CON.txt", "AUX", "PRN.log",
    "COM1", "com9.tar.gz", "LPT1", "CONIN$", "a:stream", "a.txt:hidden:$DATA", "x.", "x ", "a./b", "a /b", "x..",
    "dir/x. ", "COM¹",
    # R12: no name at all
    "a\0b", "\0", "a" * 256, "é" * 128,
)  # fmt: skip


def tree(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "outer" / "root"
    folder.mkdir(parents=True)
    (folder.parent / "outside").write_bytes(b"mine")
    return folder


def test_there_are_sixty_spellings() -> None:
    assert len(SPELLINGS) >= 60 and len(set(SPELLINGS)) == len(SPELLINGS)


@pytest.mark.parametrize("path", SPELLINGS, ids=repr)
def test_R01_R02_R03_names_that_lead_elsewhere_are_refused(root: Path, path: str) -> None:
    before = tree(root.parent.parent)
    with pytest.raises(PathRefused):
        parts_of(path)
    with Within(root) as within, pytest.raises(PathRefused):
        within.apply([Change("good.txt", b"good"), Change(path, b"bad")])
    assert tree(root.parent.parent) == before


@pytest.mark.parametrize("path", ["x", "a/b/c.txt", ".hidden", "a b", "console.txt", "a..b", "ünï", "x~", "a$b"])
def test_plain_names_are_written(root: Path, path: str) -> None:
    with Within(root) as within:
        within.apply([Change(path, b"new")])
        assert within.read(path) == b"new"
    assert (root / path).read_bytes() == b"new"


def test_R04_a_link_on_the_way_is_not_followed(root: Path) -> None:
    (root / "link").symlink_to(root.parent)
    with Within(root) as within, pytest.raises(PathRefused):
        within.apply([Change("link/outside", b"bad")])
    assert (root.parent / "outside").read_bytes() == b"mine"


def test_R04_a_link_in_the_place_is_not_written_through(root: Path) -> None:
    (root / "link").symlink_to(root.parent / "outside")
    with Within(root) as within:
        with pytest.raises(PathRefused):
            within.apply([Change("link", b"bad")])
        with pytest.raises(PathRefused):
            within.read("link")
    assert (root.parent / "outside").read_bytes() == b"mine"
    assert (root / "link").is_symlink()


@pytest.mark.slow
def test_R05_a_folder_that_is_swapped_for_a_link_while_writing() -> None:
    """The write lands inside the folder, or fails."""
    with in_memory() as folder:
        _flip_while_written(folder / "root", folder / "elsewhere")


def _flip_while_written(root: Path, outside: Path) -> None:
    inside, aside = root / "sub", root / "aside"
    for made in (outside, root, inside):
        made.mkdir()

    def flip() -> None:
        for _ in range(10_000):
            # The other side may make the folder anew while it is away.
            with suppress(OSError):
                inside.rename(aside)
                inside.symlink_to(outside)
            with suppress(OSError):
                inside.unlink()
            with suppress(OSError):
                aside.rename(inside)
            shutil.rmtree(aside, ignore_errors=True)

    thread = threading.Thread(target=flip)
    thread.start()
    written = 0
    while thread.is_alive():
        with suppress(OSError, PathRefused), Within(root) as within:
            within.apply([Change("sub/x", b"new")])
            written += 1
    thread.join()
    assert list(outside.iterdir()) == []
    assert written > 0


def test_R06_what_is_no_regular_file_is_refused(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))
        for name in ("pipe", "folder", "socket"):
            with Within(root) as within, pytest.raises(PathRefused):
                within.apply([Change(name, b"bad")])


def test_R06_a_second_name_of_a_file_keeps_its_content(root: Path) -> None:
    (root / "x").hardlink_to(root.parent / "outside")
    with Within(root) as within:
        within.apply([Change("x", b"new")])
    assert (root / "x").read_bytes() == b"new"
    assert (root.parent / "outside").read_bytes() == b"mine"


@pytest.mark.parametrize(
    "pair",
    [
        ("A", "a"),
        ("sub/x", "Sub/y"),
        ("stra\u00dfe", "STRASSE"),
        ("caf\u00e9", unicodedata.normalize("NFD", "caf\u00e9")),
        ("\u212b", "\u00e5"),
    ],
)
def test_R07_twins_are_refused(root: Path, pair: tuple[str, str]) -> None:
    with pytest.raises(PathRefused):
        refuse_twins(pair)
    first, second = pair
    with Within(root) as within:
        within.apply([Change(first, b"one")])
    with Within(root) as within, pytest.raises(PathRefused):
        within.apply([Change(second, b"two")])
    assert (root / first).read_bytes() == b"one"


class Full(OSError):
    """There is no room left."""


@pytest.mark.slow
@pytest.mark.parametrize("step", ["link", "rename", "fsync", "mkdir"])
def test_R10_a_failure_at_any_point_leaves_everything_as_it_was(
    root: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    count = 12
    for number in range(0, count, 2):
        (root / f"old{number}").write_bytes(b"old")
    (root / "gone").write_bytes(b"stays")
    before = tree(root)
    changes = [Change(f"old{number}" if number % 2 == 0 else f"new{number}/x", b"new") for number in range(count)]
    changes.insert(5, Change("gone", None))
    real: Callable[..., object] = getattr(os, step)
    failures = 0
    for fail_at in range(1, 40):
        calls = 0

        def failing(*words: object, fail_at: int = fail_at, **more: object) -> object:
            nonlocal calls
            calls += 1
            if calls == fail_at:
                raise Full("no room")
            return real(*words, **more)

        with monkeypatch.context() as patch:
            patch.setattr(os, step, failing)
            with Within(root) as within:
                try:
                    within.apply(changes)
                except Full:
                    failures += 1
                else:
                    break
        assert tree(root) == before, f"{step} failed at call {fail_at}"
    assert failures >= 6


@pytest.mark.slow
def test_R10_all_five_hundred_or_none(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(500):
        (root / f"f{number}").write_bytes(b"old")
    real, calls = os.rename, 0

    def failing(*words: object, **more: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 250:
            raise Full("no room")
        real(*words, **more)  # type: ignore[arg-type]

    with monkeypatch.context() as patch, Within(root) as within:
        patch.setattr(os, "rename", failing)
        with pytest.raises(Full):
            within.apply([Change(f"f{number}", b"new") for number in range(500)])
    assert set(tree(root).values()) == {b"old"} and len(tree(root)) == 500


@pytest.mark.parametrize("fail_at", [1, 12, 23])
def test_R10_more_folders_than_stay_open_are_all_changed_or_none(
    root: Path, monkeypatch: pytest.MonkeyPatch, fail_at: int
) -> None:
    """Half of the folders are new; every folder is opened again for each of the steps."""
    monkeypatch.setattr(within_module, "MAX_OPEN_FOLDERS", 4)
    for number in range(12):
        (root / f"d{number}/e").mkdir(parents=True)
        (root / f"d{number}/e/f").write_bytes(b"old")
    before = tree(root)
    changes = [Change(f"d{number}/e/f", b"new") for number in range(24)]
    real, calls = os.rename, 0

    def failing(*words: object, **more: object) -> None:
        nonlocal calls
        calls += 1
        if calls == fail_at:
            raise Full("no room")
        real(*words, **more)  # type: ignore[arg-type]

    open_before = len(list(Path("/dev/fd").iterdir()))
    with Within(root) as within:
        with monkeypatch.context() as patch:
            patch.setattr(os, "rename", failing)
            with pytest.raises(Full):
                within.apply(changes)
        assert tree(root) == before
        within.apply(changes)
        assert within.read("d23/e/f") == b"new"
        assert len(list(Path("/dev/fd").iterdir())) <= open_before + 4 + 1
    assert len(list(Path("/dev/fd").iterdir())) == open_before
    assert [value for value in tree(root).values() if value is not None] == [b"new"] * 24


@pytest.mark.parametrize("swap", ["folder", "link", "nothing"])
def test_R05_a_folder_that_was_closed_and_replaced_is_not_opened_again(root: Path, swap: str) -> None:
    """Also where the other folder is inside the root: what was checked was another one."""
    outside = root.parent / "elsewhere"
    outside.mkdir()
    for number in range(100):
        (root / f"d{number}").mkdir()
    with Within(root) as within:
        for number in range(100):
            assert within.read(f"d{number}/f") is None
        (root / "d0").rename(root / "moved")
        if swap == "folder":
            (root / "d0").mkdir()
        elif swap == "link":
            (root / "d0").symlink_to(outside)
        with pytest.raises(PathRefused, match="replaced"):
            within.apply([Change("d1/f", b"new"), Change("d0/f", b"new")])
    assert list(outside.iterdir()) == [] and not (root / "d1/f").exists()


@pytest.mark.slow
def test_a_path_of_many_parts_is_opened_again(root: Path) -> None:
    deep = "/".join("a" * 300)
    with Within(root) as within:
        within.apply([Change(f"{deep}/f", b"new")])
        for number in range(100):
            within.apply([Change(f"d{number}/f", b"new")])
        assert within.read(f"{deep}/f") == b"new"


@pytest.mark.parametrize(
    ("mode", "there", "expected"),
    [
        (None, None, 0o644),
        (0o600, None, 0o600),
        (0o4755, None, 0o755),
        (0o2777, None, 0o755),
        (0o777, 0o600, 0o755),
        (None, 0o600, 0o600),
        (None, 0o755, 0o755),
        (None, 0o4777, 0o755),
        (None, 0o666, 0o644),
    ],
)
def test_R11_modes_are_never_wider_than_they_may_be(
    root: Path, mode: int | None, there: int | None, expected: int
) -> None:
    if there is not None:
        (root / "x").write_bytes(b"old")
        (root / "x").chmod(there)
    with Within(root) as within:
        within.apply([Change("x", b"new", mode)])
    assert stat.S_IMODE((root / "x").stat().st_mode) == expected


@pytest.mark.parametrize("name", ["a\nb", "\x1b[2Jx", "\u202etxt.exe", "caf\udce9", "a" * 255, "tab\there", "\x7f"])
def test_R12_strange_names_are_kept_exactly(root: Path, name: str) -> None:
    with Within(root) as within:
        within.apply([Change(name, b"new")])
        assert within.read(name) == b"new"
    assert [path.name for path in root.iterdir()] == [name]


def test_R12_a_name_that_is_no_text_at_all_is_refused() -> None:
    with pytest.raises(PathRefused):
        parts_of("\ud800x")


def test_a_file_is_removed_and_one_that_is_not_there_is_no_problem(root: Path) -> None:
    (root / "x").write_bytes(b"old")
    with Within(root) as within:
        within.apply([Change("x", None), Change("y", None)])
    assert tree(root) == {}


def test_a_folder_that_was_chosen_may_be_a_link(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    with Within(link) as within:
        within.apply([Change("x", b"new")])
    assert (root / "x").read_bytes() == b"new"


@pytest.mark.parametrize("at", range(1, 7))
def test_S02_what_a_killed_process_left_is_cleared_away(root: Path, at: int) -> None:
    changes = [Change(name, b"new") for name in ("x", "d/y", "d/z")]
    with Within(root) as within:
        within.apply([change._replace(body=b"old") for change in changes])
    child = os.fork()
    if child == 0:
        calls = iter(range(1, 100))

        def deadly(real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*words: Any, **more: Any) -> Any:
                if next(calls) == at:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*words, **more)

            return call

        os.rename, os.unlink, os.link = deadly(os.rename), deadly(os.unlink), deadly(os.link)
        with Within(root) as within:
            within.apply(changes)
        os._exit(0)
    os.waitpid(child, 0)
    assert list(root.rglob(".clew-*"))
    with Within(root) as within:
        within.apply(changes)
    assert tree(root) == {"x": b"new", "d": None, "d/y": b"new", "d/z": b"new"}


def test_S02_what_a_live_process_needs_stays(root: Path) -> None:
    here, there = within_module._HERE, f"{int(within_module._HERE, 16) ^ 1:08x}"
    mine = f".clew-{here}-{os.getpid()}-0123abcd.tmp"
    elsewhere = f".clew-{there}-1-0123abcd.old"
    for name in (mine, elsewhere, ".clew-notes"):
        (root / name).write_bytes(b"")
    with Within(root) as within:
        within.apply([Change("x", b"1")])
    assert {path.name for path in root.iterdir()} == {mine, elsewhere, ".clew-notes", "x"}
