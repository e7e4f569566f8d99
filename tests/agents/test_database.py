"""Sessions in SQLite databases: found, read as files, followed, archived, and reported where they cannot be read."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from clew.agents import database, database_agent
from clew.agents import source as source_module
from clew.agents.source import file_states, open_main, source_state, with_current_size
from clew.catalog.change_detection import MTIME_GRACE_NS
from clew.errors import SourceUnreadable
from clew.export.verify import verify
from clew.sources.mirror import Listed, Mirror
from tests.agents.opencode_database import (
    AGENT,
    CHILD,
    SESSION,
    Database,
    database_in,
    rows,
    source,
    write_conversation,
)
from tests.cli.running import clew

PROVIDER_KEY = "sk-ant-api03-" + "bell" * 24


@pytest.fixture
def written(own_home: Path) -> Iterator[Database]:
    """A database with a session and its sub-agent, that no program has open."""
    written = Database(database_in(own_home))
    write_conversation(written)
    written.close()
    written.db = sqlite3.connect(written.path, isolation_level=None)
    with closing(written):
        yield written


def settle(path: Path) -> None:
    """Let a file and its folder be older than the grace of change detection."""
    old = path.stat().st_mtime_ns - 2 * MTIME_GRACE_NS
    for place in (path, path.parent, path.parent.parent):
        os.utime(place, ns=(old, old))


def listed() -> set[str]:
    return {row["id"] for row in clew("list", "--json").json}


def counts() -> dict[str, int]:
    return {row["id"]: row["messages"] for row in clew("list", "--json").json}


def test_a_row_is_kept_as_it_is_stored(tmp_path: Path) -> None:
    with closing(Database(tmp_path / "opencode.db")) as written:
        written.session(title="x")
        written.db.execute("ALTER TABLE session ADD COLUMN odd")
        values = [2**63 - 1, 0.1, "\x00é\u2028", b"\xff\x00", None, float("inf")]
        found = []
        for value in values:
            written.db.execute("UPDATE session SET odd = ?", (value,))
            found.append(json.loads(rows(written.path, SESSION).splitlines()[1])["row"]["odd"])
        written.db.execute("UPDATE session SET odd = CAST(x'ff41' AS TEXT)")
        found.append(json.loads(rows(written.path, SESSION).splitlines()[1])["row"]["odd"])
    assert found == [2**63 - 1, 0.1, "\x00é\u2028", {"base64": "/wA="}, None, {"real": "inf"}, {"text_base64": "/0E="}]


def test_every_session_is_verified_against_the_database(written: Database) -> None:
    for name in (SESSION, CHILD):
        assert verify(AGENT, source(written.path, name)).holds
    assert clew("verify").code == 0


def test_a_large_session_is_read_piece_by_piece(written: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rows(written.path, SESSION)
    monkeypatch.setattr(database, "IN_MEMORY_BYTES", 100)
    assert rows(written.path, SESSION) == whole
    assert verify(AGENT, source(written.path)).holds


def test_reading_writes_nothing_beside_the_database(written: Database) -> None:
    written.close()
    before = {path.name: path.stat().st_mtime_ns for path in written.path.parent.iterdir()}
    clew("show", SESSION)
    assert (
        {path.name: path.stat().st_mtime_ns for path in written.path.parent.iterdir()}
        == before
        == {"opencode.db": written.path.stat().st_mtime_ns}
    )


def test_the_write_ahead_log_is_read_while_the_client_writes(own_home: Path) -> None:
    with closing(Database(database_in(own_home), log=True)) as live:
        write_conversation(live)
        assert (live.path.parent / "opencode.db-wal").stat().st_size
        assert listed() == {SESSION, CHILD}
        frozen = with_current_size(source(live.path))
        before = b"".join(open_main(frozen))
        live.prompt(SESSION, "One more.")
        assert b"".join(open_main(frozen)) == before
        assert b"One more." in rows(live.path, SESSION)
        assert verify(AGENT, source(live.path)).holds


def test_a_database_that_changes_while_it_is_read_without_a_log_is_reported(written: Database) -> None:
    frozen = with_current_size(source(written.path))
    written.prompt(SESSION, "One more.")
    with pytest.raises(SourceUnreadable, match="changed while it was read"):
        open_main(frozen)


def test_a_sync_finds_new_changed_and_deleted_sessions(written: Database) -> None:
    clew("sync")
    before = counts()
    written.prompt(SESSION, "One more.")
    written.session("ses_new")
    written.prompt("ses_new", "Hello.")
    written.db.execute("DELETE FROM session WHERE id = ?", (CHILD,))
    after = counts()
    assert after[SESSION] == before[SESSION] + 1
    assert after["ses_new"] == 1
    assert "Eleven." in clew("show", CHILD).out  # from the catalog


def test_a_row_that_changes_in_place_is_read_again(written: Database) -> None:
    assert clew("search", "Elf bells").code == 1
    with written.db:
        written.db.execute("UPDATE part SET data = replace(data, 'It rings.', 'Elf bells ring.'), time_updated = 9")
    assert clew("search", "Elf bells").code == 0


def test_nothing_is_opened_where_nothing_changed(written: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(written.path)
    clew("sync")

    def refuse(*_: object) -> None:
        raise AssertionError("the database was opened")

    monkeypatch.setattr(source_module, "Snapshot", refuse)
    monkeypatch.setattr(database_agent, "Snapshot", refuse)
    monkeypatch.setattr(database, "Snapshot", refuse)
    assert listed() == {SESSION, CHILD}


def test_only_changed_sessions_are_read_again(written: Database) -> None:
    clew("sync")
    written.prompt(SESSION, "One more.")
    assert clew("sync", "--json").json["files"] == 1


def test_states_change_with_the_rows(written: Database) -> None:
    found = source(written.path)
    before, state = file_states(found), source_state(found)
    assert file_states(found) == before
    written.prompt(SESSION, "One more.")
    assert file_states(found) != before
    assert source_state(found).change_token != state.change_token


def test_a_session_is_named_by_its_path_and_all_by_the_database(written: Database) -> None:
    path = source(written.path).path
    assert clew("show", path).out == clew("show", SESSION).out
    assert {row["id"] for row in clew("list", "--json", written.path).json} == {SESSION, CHILD}
    assert {row["id"] for row in clew("list", "--json", written.path.parent).json} == {SESSION, CHILD}
    assert clew("show", path.with_name("ses_other.jsonl")).code == 3


# What cannot be read


def test_a_locked_database_is_reported_and_its_sessions_stay(
    written: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "DATABASE_LOCK_WAIT_SECONDS", 0.05)
    assert listed() == {SESSION, CHILD}
    written.db.execute("BEGIN EXCLUSIVE")
    written.db.execute("UPDATE session SET title = 'x'")
    (written.path.parent / "opencode.db-journal").touch()
    found = clew("list", "--json")
    assert {row["id"] for row in found.json} == {SESSION, CHILD}
    assert "opencode.db: database is locked" in found.err
    written.db.execute("ROLLBACK")
    assert "locked" not in clew("list").err


def test_a_locked_database_is_waited_for_once(written: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "DATABASE_LOCK_WAIT_SECONDS", 0.5)
    for number in range(60):
        written.prompt(written.session(f"ses_{number:04}"), "Ring it.")
    assert len(listed()) == 62
    written.db.execute("BEGIN EXCLUSIVE")
    written.db.execute("UPDATE session SET title = 'x'")
    (written.path.parent / "opencode.db-journal").touch()
    started = time.monotonic()
    assert "opencode.db: database is locked" in clew("search", "Ring").err
    assert time.monotonic() - started < 15


def test_a_damaged_page_is_reported(written: Database) -> None:
    """Any page may be damaged, also one that is read when the first rows are there already."""
    for number in range(400):
        written.prompt(written.session(f"ses_{number:04}"), "Ring it.")
    written.close()
    listed()
    whole = written.path.read_bytes()
    page_bytes = int.from_bytes(whole[16:18])
    unreadable = 0
    for start in range(page_bytes, len(whole), page_bytes):
        written.path.write_bytes(whole[:start] + b"\xff" * page_bytes + whole[start + page_bytes :])
        if not list(AGENT.discover(written.path.parent)):
            unreadable += 1
            if unreadable == 2:
                assert "opencode.db: database disk image is malformed" in clew("list").err
    assert unreadable > 10


def test_links_to_databases_are_not_followed(written: Database, own_home: Path, tmp_path: Path) -> None:
    written.close()
    elsewhere = tmp_path / "elsewhere.db"
    written.path.rename(elsewhere)
    written.path.symlink_to(elsewhere)
    assert listed() == set()


def doctor_codes() -> set[str]:
    """The problems of databases that `clew doctor` reports."""
    return {row["code"] for row in clew("doctor", "--json").json if row["file"].endswith("opencode.db")}


def test_a_corrupt_database_is_reported(written: Database) -> None:
    written.close()
    written.path.write_bytes(b"no database" * 1000)
    found = clew("list")
    assert "opencode.db: file is not a database" in found.err
    assert "opencode.db: error: file is not a database" in clew("doctor").out
    assert doctor_codes() == {"damaged-database"}
    shutil.copyfile(__file__, written.path)
    assert "file is not a database" in clew("sync").err


def test_a_missing_table_is_reported(written: Database) -> None:
    written.db.execute("DROP TABLE part")
    assert "no such table: part" in clew("list").err
    assert "schema 20260622202450" in clew("list").err
    assert doctor_codes() == {"unknown-database"}
    written.db.execute("DROP TABLE session")
    assert "no table of sessions that this version of clew knows" in clew("list").err
    assert doctor_codes() == {"unknown-database"}


def test_unknown_tables_of_sessions_are_reported(written: Database) -> None:
    written.db.execute("CREATE TABLE session_v3 (id TEXT)")
    written.db.execute("CREATE TABLE weather (id TEXT)")
    found = clew("list", "--json")
    assert {row["id"] for row in found.json} == {SESSION, CHILD}
    assert "does not know: session_v3; their content is not shown" in found.err
    assert "weather" not in found.err
    assert doctor_codes() == {"unknown-database"}


def test_a_view_is_no_table(written: Database) -> None:
    written.db.execute("ALTER TABLE session RENAME TO hidden")
    written.db.execute("CREATE VIEW session AS SELECT * FROM hidden")
    assert "no table of sessions" in clew("list").err


def test_a_table_that_cannot_be_read_to_its_end_is_reported(written: Database) -> None:
    page_size = written.db.execute("PRAGMA page_size").fetchone()[0]
    (root,) = written.db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'part'").fetchone()
    written.close()
    content = bytearray(written.path.read_bytes())
    content[(root - 1) * page_size : root * page_size] = b"\xff" * page_size
    written.path.write_bytes(content)
    found = clew("list")
    assert "malformed" in found.err


# What leaves the machine, and what is kept


def test_the_archive_keeps_sessions_that_the_client_deletes(written: Database, tmp_path: Path) -> None:
    assert clew("archive").code == 0
    assert clew("archive", "--json").json["unchanged"] == 2
    whole = rows(written.path, SESSION)
    written.prompt(SESSION, "One more.")
    assert clew("archive", "--json").json["rewritten"] + clew("archive", "--json").json["grown"] == 0
    written.db.execute("DELETE FROM session")
    assert clew("archive", "verify").code == 0
    assert SESSION in clew("archive", "list", "--json").out
    restored = tmp_path / "restored"
    assert clew("archive", "restore", SESSION, "--into", restored).code == 0
    (copy,) = restored.rglob(f"{SESSION}.jsonl")
    assert b"One more." in copy.read_bytes()
    assert copy.read_bytes().startswith(whole[:200])
    assert {row["id"] for row in clew("list", "--json", "--home", restored).json} == {SESSION}


def test_databases_of_other_machines_are_not_copied(tmp_path: Path) -> None:
    root = "/home/ada/.local/share/opencode"
    names = [
        "opencode.db",
        "opencode.db-wal",
        "auth.json",
        "mcp-auth.json",
        "snapshot/x/y",
        "opencode.db.sessions/s.jsonl",
    ]
    listing = [Listed(f"{root}/{name}", 10, 1) for name in names]
    mirror = Mirror(tmp_path, "box")
    is_ignored = mirror.is_ignored(mirror.host("/home/ada", {}))
    allowed, problems = mirror.filter_allowed(listing, [root], is_ignored)
    assert [file.path for file in allowed] == [f"{root}/opencode.db.sessions/s.jsonl"]
    assert [problem for problem in problems if "a database of OpenCode is not copied" in problem] == problems != []


def test_a_secret_in_a_database_is_found_and_left(written: Database) -> None:
    written.prompt(SESSION, f"The key is {PROVIDER_KEY}")
    assert PROVIDER_KEY not in clew("show", SESSION, "--redact", "secrets").out
    found = clew("redact", "scrub", SESSION, "--yes")
    assert "which clew never changes" in found.out + found.err
    assert PROVIDER_KEY.encode() in rows(written.path, SESSION)


def test_a_masked_document_still_has_its_messages(written: Database) -> None:
    written.prompt(SESSION, f'The key is "{PROVIDER_KEY}"\nand a line')
    document = clew("export", SESSION, "--redact", "secrets", "-o", "-").json
    assert PROVIDER_KEY not in json.dumps(document)
    assert "and a line" in document["messages"][-1]["content"][0]["text"]
