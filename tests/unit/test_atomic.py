"""Files appear whole or not at all, readable by their owner alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from clew.io.atomic import replacing, write_atomic


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_with_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c.json"
    write_atomic(path, b"content")
    assert path.read_bytes() == b"content"
    assert names(path.parent) == ["c.json"]


def test_until_it_is_complete_the_old_content_stays(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with replacing(path) as handle:
        handle.write(b"new")
        handle.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, OSError])
def test_S02_a_failure_leaves_no_trace(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with pytest.raises(error), replacing(path) as handle:
        handle.write(b"half")
        raise error
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["x"]


def test_S05_a_full_disk_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["x"]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_S01_only_the_owner_may_read(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        path = tmp_path / "secret"
        with replacing(path) as handle:
            handle.write(b"x")
            (temporary,) = tmp_path.iterdir()
            assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_R06_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"untouched")
    link = tmp_path / "link"
    link.symlink_to(outside)
    write_atomic(link, b"new")
    assert outside.read_bytes() == b"untouched"
    assert not link.is_symlink()
    assert link.read_bytes() == b"new"


def test_long_names_leave_room_for_the_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250)
    write_atomic(path, b"x")
    assert names(tmp_path) == ["n" * 250]


def test_P04_a_link_with_the_name_of_the_temporary_file_is_not_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "x", tmp_path / "other"
    other.write_bytes(b"mine")
    draws = iter([b"first", b"first", b"second"])
    monkeypatch.setattr("clew.io.atomic.os.urandom", lambda _: next(draws))
    with replacing(path) as handle:
        link = next(entry for entry in tmp_path.iterdir() if entry.suffix == ".tmp")
        handle.write(b"1")
    link.symlink_to(other)
    with replacing(path) as handle:
        handle.write(b"2")
    assert (path.read_bytes(), other.read_bytes()) == (b"2", b"mine")
    assert link.is_symlink() and names(tmp_path) == sorted([link.name, "other", "x"])
