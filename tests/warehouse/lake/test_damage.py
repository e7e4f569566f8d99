"""Objects that are damaged, stores that tear what they are given, and engines that are cut off: told, in one line."""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clew.catalog.statements import Statement
from clew.errors import RemoteFailed, TargetRefused, UsageError
from clew.warehouse.lake.compact import compact
from clew.warehouse.lake.engine import DuckEngine
from clew.warehouse.lake.store import FolderStore, RemoteStore, open_store
from clew.warehouse.urls import mask_urls
from tests.cli.running import clew
from tests.warehouse.lake.worlds import NAMES, Machine, age, files, rows, say, write

LATER = datetime(2027, 1, 1, tzinfo=UTC)


def _lake(tmp_path: Path) -> tuple[Machine, FolderStore]:
    machine, store = Machine(tmp_path, "one"), FolderStore(tmp_path / "lake")
    for name in NAMES[:2]:
        say(machine, name, 10)
        write(machine, store)
    age(tmp_path / "lake")
    return machine, store


def _damage(lake: Path, table: str, how: str) -> None:
    path = sorted((lake / f"table={table}").rglob("*.parquet"))[0]
    content = bytearray(path.read_bytes())
    if how == "half":
        del content[len(content) // 2 :]
    elif how == "empty":
        content.clear()
    else:
        content[len(content) // 3] ^= 1
    path.write_bytes(content)
    age(lake)


@pytest.mark.parametrize("how", ["half", "empty", "bit"])
@pytest.mark.parametrize("table", ["batches", "messages"])
def test_a_damaged_object_is_named_and_nothing_is_merged_from_it(tmp_path: Path, table: str, how: str) -> None:
    _, store = _lake(tmp_path)
    _damage(tmp_path / "lake", table, how)
    before = files(tmp_path / "lake")
    with pytest.raises(TargetRefused, match=f"table={table}/.* is damaged") as refused:
        compact(store, LATER)
    assert refused.value.exit_code == 5
    assert {name for name in before if f"table={table}/" in name} <= set(files(tmp_path / "lake"))


def test_a_write_does_not_trust_damaged_batches(tmp_path: Path) -> None:
    machine, store = _lake(tmp_path)
    _damage(tmp_path / "lake", "batches", "half")
    with pytest.raises(TargetRefused, match="is damaged"):
        write(machine, store)


@pytest.mark.parametrize("how", ["half", "empty"])
@pytest.mark.parametrize("table", ["batches", "messages", "usage"])
def test_an_engine_over_damaged_objects_says_so(tmp_path: Path, table: str, how: str) -> None:
    _lake(tmp_path)
    _damage(tmp_path / "lake", table, how)
    done = clew("stats", "--by", "tool", "--engine", f"duckdb:{tmp_path}/lake", "--home", tmp_path)
    assert done.code == 5
    assert done.err.count("\n") == 1
    assert f"table={table}/" in done.err
    assert ".parquet is damaged" in done.err


def test_an_engine_that_is_cut_off_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, "one")
    say(machine, NAMES[0], 10)
    store = RemoteStore(f"local://{tmp_path}/lake")
    write(machine, store)
    engine = DuckEngine(store)

    def cut(*_: object, **__: object) -> object:
        raise ConnectionResetError("the line was cut")

    monkeypatch.setattr(type(store.fs), "_open", cut)
    with pytest.raises(RemoteFailed, match="the line was cut") as failed:
        engine.ask(Statement("SELECT COUNT(*) AS n FROM messages"))
    assert "\n" not in str(failed.value)
    engine.close()


def test_a_store_with_folders_never_holds_half_an_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, "one")
    say(machine, NAMES[0], 10)
    store = RemoteStore(f"local://{tmp_path}/lake")
    pipe, left = store.fs.pipe_file, [3]

    def torn(path: str, content: bytes, **more: object) -> None:
        left[0] -= 1
        pipe(path, content if left[0] >= 0 else content[:100], **more)
        if left[0] < 0:
            raise ConnectionResetError("the line was cut")

    monkeypatch.setattr(store.fs, "pipe_file", torn)
    with pytest.raises(RemoteFailed):
        write(machine, store)
    monkeypatch.setattr(store.fs, "pipe_file", pipe)
    say(machine, NAMES[1], 10)
    write(machine, store)
    assert len(rows(store)["messages"]) == 20


def test_a_store_with_folders_tells_of_one_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, "one")
    say(machine, NAMES[0], 10)
    store = RemoteStore(f"local://{tmp_path}/lake")
    write(machine, store)
    listed = type(store.fs).ls

    def broken(fs: object, path: str, *given: object, **more: object) -> object:
        if "month=" in path:
            raise OSError(errno.EIO, "Input/output error")
        return listed(fs, path, *given, **more)

    monkeypatch.setattr(type(store.fs), "ls", broken)
    with pytest.raises(RemoteFailed):
        store.list("table=batches/")


def test_a_lake_at_the_root_of_a_store(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "one")
    say(machine, NAMES[0], 10)
    store = RemoteStore("memory://")
    try:
        write(machine, store)
        assert write(machine, store).written == 0
        assert {one.name.partition("/")[0] for one in store.list("")} >= {"_clew", "table=batches", "table=messages"}
    finally:
        store.fs.store.clear()


@pytest.mark.parametrize("target", ["", "file://", "://x"])
def test_no_place_is_no_target(target: str) -> None:
    with pytest.raises(UsageError, match="name a folder"):
        open_store(target)


def test_a_password_with_a_mark_in_it_is_not_shown() -> None:
    word = "hun@ter2"
    assert mask_urls(f"sftp://mira:{word}@loom/lake") == "sftp://loom/lake"
    assert "ter2" not in mask_urls(f"cannot reach sftp://mira:{word}@loom/lake, nor smb://ada:{word}@x/y")


def test_what_another_has_put_is_made_to_last_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever put it may have been killed before it reached the disk; now somebody counts on it."""
    FolderStore(tmp_path).put("a/b", b"x")
    synced: list[Path] = []
    monkeypatch.setattr("clew.warehouse.lake.store._fsync_file", synced.append)
    store = FolderStore(tmp_path)
    assert store.put("a/b", b"x") is False
    store.fsync()
    assert synced == [tmp_path / "a/b"]


def test_what_does_not_fit_into_memory_goes_where_nobody_else_can_read_it(tmp_path: Path) -> None:
    _, store = _lake(tmp_path)
    engine = DuckEngine(store)
    ((room,),) = engine.ask(Statement("SELECT current_setting('temp_directory')"))
    assert Path(room).stat().st_mode & 0o077 == 0
    engine.close()
    assert not Path(room).exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("kind", ["link", "pipe", "device", "day"])
@pytest.mark.parametrize("by", ["stats", "verify", "compact", "write"])
def test_what_is_no_file_in_the_place_of_an_object_is_refused(tmp_path: Path, kind: str, by: str) -> None:
    machine, _ = _lake(tmp_path)
    path = sorted((tmp_path / "lake/table=sessions").rglob("*.parquet"))[0]
    if kind == "day":
        path.parent.rename(tmp_path / "private")
        path.parent.symlink_to(tmp_path / "private")
    else:
        path.rename(tmp_path / "private.parquet")
        os.mkfifo(path) if kind == "pipe" else path.symlink_to(
            "/dev/zero" if kind == "device" else tmp_path / "private.parquet"
        )
    lake = str(tmp_path / "lake")
    words = {
        "stats": ("stats", "--engine", f"duckdb:{lake}"),
        "verify": ("lake", "verify", lake),
        "compact": ("lake", "compact", lake),
        "write": ("lake", "write", lake),
    }[by]
    done = clew("--home", machine.home, *words)
    assert done.code == (TargetRefused.exit_code if by != "write" else done.code), done
    assert "internal error" not in done.err
    if by != "write":
        assert " is a " in done.err
