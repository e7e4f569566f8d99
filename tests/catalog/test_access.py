"""A command opens the catalog: up to date, as it is, or a temporary one."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

import pytest

from clew.catalog.access import OpenCatalog, open_synced
from clew.catalog.change_detection import MTIME_GRACE_NS
from clew.catalog.database import CatalogNotWritable
from clew.catalog.lock import locked
from clew.catalog.row_writer import RowWriter
from clew.catalog.rows import Row
from clew.catalog.search import Request, Searcher, unmasked
from clew.catalog.sync import sync
from clew.catalog.sync_level import SyncLevel
from clew.catalog.text_index import IndexNotWritable, TextWriter
from clew.errors import UsageError
from clew.host import Host
from tests.catalog.worlds import append, claude_lines, claude_path, spelled, write_claude

SESSION = "0a0a0a0a-1111-4111-8111-111111111111"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_claude(tmp_path / "home", SESSION, 10)
    return tmp_path / "home"


def sessions(catalog: OpenCatalog) -> int:
    (count,) = catalog.db.execute("SELECT count(*) FROM sessions").fetchone()
    return int(count)


def hits(catalog: OpenCatalog, words: str) -> int:
    searcher = Searcher(catalog.folder, unmasked)
    try:
        return searcher.search(Request(words)).total
    finally:
        searcher.close()


def test_a_catalog_is_synced_before_it_is_opened(home: Path, tmp_path: Path) -> None:
    with open_synced([Host.at(home)], tmp_path / "catalog", SyncLevel.TEXT) as catalog:
        assert sessions(catalog) == 1 and hits(catalog, "shuttle0x2") == 1
        assert not catalog.is_temporary
    append(claude_path(home, SESSION), spelled(claude_lines(SESSION, 10, 5)))
    with open_synced(lambda: [Host.at(home)], tmp_path / "catalog", SyncLevel.TEXT) as catalog:
        assert hits(catalog, "shuttle0x12") == 1


def test_without_a_sync_the_catalog_is_used_as_it_is(home: Path, tmp_path: Path) -> None:
    def unused() -> list[Host]:
        raise AssertionError

    with pytest.raises(UsageError), open_synced(unused, tmp_path / "catalog", SyncLevel.TEXT, sync=False):
        pass
    with open_synced([Host.at(home)], tmp_path / "catalog", SyncLevel.TEXT):
        pass
    append(claude_path(home, SESSION), spelled(claude_lines(SESSION, 10, 5)))
    with open_synced(unused, tmp_path / "catalog", SyncLevel.TEXT, sync=False) as catalog:
        assert hits(catalog, "shuttle0x12") == 0


def test_while_another_sync_runs_the_catalog_is_used_as_it_is(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, warnings = tmp_path / "catalog", list[str]()
    with open_synced([Host.at(home)], folder, SyncLevel.TEXT):
        pass
    append(claude_path(home, SESSION), spelled(claude_lines(SESSION, 10, 5)))
    monkeypatch.setattr("clew.catalog.sync.locked", lambda folder, _wait: locked(folder, 0.01))
    with locked(folder), open_synced([Host.at(home)], folder, SyncLevel.TEXT, warn=warnings.append) as catalog:
        assert sessions(catalog) == 1
    assert warnings == ["another sync is running; the catalog is used as it is"]


def test_a_folder_that_cannot_be_written_gives_a_temporary_catalog(home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder can be made below a file")
    warnings = list[str]()
    with open_synced([Host.at(home)], tmp_path / "file" / "catalog", SyncLevel.TEXT, warn=warnings.append) as catalog:
        assert catalog.is_temporary and sessions(catalog) == 1 and hits(catalog, "shuttle0x2") == 1
        used = catalog.folder
    assert not used.exists()
    (warning,) = warnings
    assert "sessions are read into a temporary catalog" in warning


@pytest.mark.parametrize("message", ["attempt to write a readonly database", "database or disk is full"])
def test_a_catalog_that_cannot_be_written_gives_way_to_a_temporary_one(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str
) -> None:
    folder, warnings = tmp_path / "catalog", list[str]()
    with open_synced([Host.at(home)], folder, SyncLevel.TEXT):
        pass
    write_claude(home, "0b0b0b0b-2222-4222-8222-222222222222", 5, seed=1)
    write = RowWriter.write_session

    def refused(writer: RowWriter, source: int, row: Row, message_uuids: bytes) -> None:
        (path,) = [path for _, name, path in writer._db.execute("PRAGMA database_list") if name == "main"]
        if Path(path).is_relative_to(folder):
            raise sqlite3.OperationalError(message)
        write(writer, source, row, message_uuids)

    monkeypatch.setattr(RowWriter, "write_session", refused)
    with open_synced([Host.at(home)], folder, SyncLevel.TEXT, warn=warnings.append) as catalog:
        assert catalog.is_temporary and sessions(catalog) == 2 and hits(catalog, "shuttle1x2") == 1
    (warning,) = warnings
    assert message in warning
    monkeypatch.undo()
    with open_synced([Host.at(home)], folder, SyncLevel.TEXT) as catalog:
        assert not catalog.is_temporary and sessions(catalog) == 2


def test_a_full_disk_while_text_is_indexed_leaves_the_sessions(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "catalog"

    def refused(_writer: TextWriter) -> None:
        raise IndexNotWritable("No space left on device")

    monkeypatch.setattr(TextWriter, "commit", refused)
    with pytest.raises(CatalogNotWritable, match="No space left on device"):
        sync([Host.at(home)], folder)
    with open_synced([Host.at(home)], folder, SyncLevel.SESSIONS) as catalog:
        assert sessions(catalog) == 1 and catalog.unindexed_text().blocks > 0
    monkeypatch.undo()
    with open_synced([Host.at(home)], folder, SyncLevel.TEXT) as catalog:
        assert catalog.unindexed_text() == (0, 0) and hits(catalog, "shuttle0x2") == 1


def test_a_catalog_in_a_read_only_folder_is_read(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "catalog"
    for _ in range(2):
        time.sleep(2 * MTIME_GRACE_NS / 1e9)
        sync([Host.at(home)], folder)
    monkeypatch.setattr(os, "access", lambda path, _mode: not Path(path).is_relative_to(folder))
    with open_synced([Host.at(home)], folder, SyncLevel.SESSIONS) as catalog:
        assert not catalog.is_temporary and sessions(catalog) == 1


def test_a_search_in_a_read_only_folder_uses_a_temporary_catalog(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, warnings = tmp_path / "catalog", list[str]()
    sync([Host.at(home)], folder)
    monkeypatch.setattr(os, "access", lambda path, _mode: not Path(path).is_relative_to(folder))
    with open_synced([Host.at(home)], folder, SyncLevel.TEXT, warn=warnings.append) as catalog:
        assert catalog.is_temporary and hits(catalog, "shuttle0x2") == 1
    assert len(warnings) == 1 and "read-only" in warnings[0]
