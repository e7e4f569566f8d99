"""Servers that are down, full, newer or lost on the way: one line, an exit code, and nothing half there."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from clew.errors import ClewError, RemoteFailed, TargetRefused
from clew.warehouse.columns import TABLES
from clew.warehouse.merge_sql import QUARTER_HOUR_SUMS
from clew.warehouse.postgres import connection, schema
from clew.warehouse.postgres import push as pushing
from clew.warehouse.postgres.connection import connect, translated
from clew.warehouse.urls import display_server
from tests.catalog.worlds import write_claude
from tests.cli.running import Ran, run
from tests.demo_home import write_self_contained_demo
from tests.warehouse.postgres.machines import Machine, ask, change, statistics, tables
from tests.warehouse.postgres.server import Server
from tests.warehouse.postgres.wires import wire

SESSIONS = [f"{digit * 8}-0000-4000-8000-000000000000" for digit in "abcde"]
WORD = "sesame" + "-4711"
"""A password; it must never be said."""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    found = Machine(tmp_path / "one")
    for number, session in enumerate(SESSIONS):
        write_claude(found.home, session, 40, seed=number)
    return found


def pushed(machine: Machine, url: str, *words: str) -> Ran:
    return run("push", url, "--home", machine.home, *words)


def closed_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def one_line(done: Ran, code: int, *secrets: str) -> str:
    assert done.code == code, done
    lines = done.err.strip().splitlines()
    assert len(lines) == 1, done.err
    assert lines[0].startswith("clew: ")
    for secret in secrets:
        assert secret not in done.err + done.out
    return lines[0]


@pytest.mark.parametrize("words", [[], ["--json"], ["--dry-run"]])
def test_a_server_that_is_down(machine: Machine, words: list[str]) -> None:
    url = f"postgresql://ada:{WORD}@127.0.0.1:{closed_port()}/loom"
    assert "refused" in one_line(pushed(machine, url, *words), 7, "sesame", "4711@")


def test_a_name_that_leads_nowhere(machine: Machine) -> None:
    one_line(pushed(machine, f"postgresql://ada:{WORD}@no-such-host.invalid/loom"), 7, "sesame")


def test_a_password_that_is_refused(machine: Machine, server: Server, database: str) -> None:
    said = one_line(pushed(machine, server.url(database, password=WORD[::-1])), 7, WORD[::-1])
    assert "password authentication failed" in said


def test_a_database_that_is_not_there(machine: Machine, server: Server) -> None:
    assert 'database "nowhere" does not exist' in one_line(pushed(machine, server.url("nowhere")), 7, server.password)


def test_nothing_was_pushed_yet(url: str) -> None:
    with pytest.raises(TargetRefused, match="nothing was pushed there yet"):
        statistics(url)
    assert run("search", "word", "--engine", url).code == 5


def test_tables_that_are_newer(machine: Machine, url: str, server: Server) -> None:
    machine.push(url)
    change(url, f"UPDATE meta SET value = '{schema.VERSION + 1}'")
    for words in (["push", url, "--home", str(machine.home)], ["search", "word", "--engine", url]):
        assert "newer clew is needed" in one_line(run(*words), 5, server.password)
    with pytest.raises(TargetRefused, match="newer"):
        statistics(url)


def test_tables_that_are_older(machine: Machine, url: str) -> None:
    machine.push(url)
    change(url, "UPDATE meta SET value = '0'")
    with pytest.raises(TargetRefused, match="nothing was pushed there yet"):
        statistics(url)


def test_tables_of_version_1_are_upgraded_in_place(server: Server, url: str, database: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    write_self_contained_demo(machine.home)
    machine.push(url)
    reader = server.url(database, f"reader_{database}", WORD)
    columns = ", ".join(name for name in TABLES["sessions"].names if name != "has_subagent_records")
    change(
        url,
        "DROP VIEW person_usage CASCADE",
        "DROP TABLE team_members",
        "DROP FUNCTION set_person CASCADE",
        "ALTER TABLE batches DROP COLUMN person",
        "DROP VIEW sessions",
        "ALTER TABLE sessions_copies DROP COLUMN has_subagent_records",
        f"CREATE VIEW sessions AS SELECT {columns} FROM sessions_copies WHERE shown",
        *(statement for name in QUARTER_HOUR_SUMS if name != "turn_days" for statement in _sums_of_version_1(name)),
        # The name of a batch was another one, as it had one column less.
        *(f"UPDATE {table} SET batch = reverse(batch)" for table in ("batches", "loaded", *schema.partitioned())),
        "DROP VIEW turn_days",
        "DROP TABLE turn_days_sums",
        "DROP VIEW turns",
        "UPDATE batches SET schema_version = 1",
        "UPDATE meta SET value = '1'",
        f"CREATE ROLE reader_{database} LOGIN PASSWORD '{WORD}'",
        f"GRANT USAGE ON SCHEMA clew TO reader_{database}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA clew TO reader_{database}",
    )
    with pytest.raises(TargetRefused, match="older than this clew; `clew push` updates them"):
        statistics(url)
    gone = next(path for path in machine.home.rglob("*.jsonl") if "codex" in str(path))
    gone.unlink()
    report = machine.push(url)
    assert (report.unchanged, report.pushed.sources) == (0, report.sources)
    sessions = ask(reader, "SELECT has_subagent_records, count(*) FROM sessions GROUP BY 1 ORDER BY 1")
    assert [value for value, _ in sessions] == [0, 1, None]
    assert sessions[-1] == (None, 1)
    assert machine.push(url).pushed.sources == 0
    assert ask(reader, "SELECT count(*) FROM usage_days WHERE quarter_hour_us > 0") != [(0,)]
    sums = "SELECT sum(calls), sum(cost_nano) FROM usage_days"
    assert ask(url, sums) == ask(url, "SELECT count(*), sum(cost_nano) FROM usage")


def _sums_of_version_1(name: str) -> Iterator[str]:
    """Sums without quarters of an hour. What they come to does not matter: all are computed again."""
    _, group, sums = QUARTER_HOUR_SUMS[name]
    yield f"DROP VIEW {name}"
    yield f"ALTER TABLE {name}_sums DROP COLUMN quarter_hour_us"
    yield f"CREATE VIEW {name} AS SELECT {', '.join((*group, *sums))} FROM {name}_sums"


def test_a_disk_that_is_full(machine: Machine, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server says so in the middle of a load; nothing of it is there afterwards."""
    machine.push(url)
    before = tables(url)
    change(
        url,
        "CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION"
        " 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$",
        "CREATE TRIGGER full_disk BEFORE INSERT ON usage_copies FOR EACH ROW EXECUTE FUNCTION fill()",
    )
    write_claude(machine.home, "ffffffff-0000-4000-8000-000000000000", 40, seed=9)
    said = one_line(pushed(machine, url), 5, "weave thread")
    assert "No space left on device" in said
    assert tables(url) == before
    change(url, "DROP TRIGGER full_disk ON usage_copies")
    machine.push(url)
    assert statistics(url) == machine.statistics()


def test_somebody_without_the_right(machine: Machine, server: Server, url: str, database: str) -> None:
    machine.push(url)
    change(url, f"CREATE ROLE reader_{database} LOGIN PASSWORD '{WORD}'")
    theirs = server.url(database, f"reader_{database}", WORD)
    assert "permission denied" in one_line(pushed(machine, theirs), 5, WORD)
    change(url, f"GRANT USAGE ON SCHEMA clew TO reader_{database}")
    change(url, f"GRANT SELECT ON ALL TABLES IN SCHEMA clew TO reader_{database}")
    assert statistics(theirs) == machine.statistics(), "who may read can ask"


def test_a_database_in_another_encoding(machine: Machine, server: Server, url: str, database: str) -> None:
    name = f"{database}_latin"
    change(url, f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    assert "UTF8" in one_line(pushed(machine, server.url(name)), 5)


@pytest.mark.parametrize("count", [1, 3])
def test_a_line_that_is_cut_anywhere(
    machine: Machine, server: Server, database: str, url: str, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Whatever arrived before is whole: sessions are there or not, and the next push brings the rest."""
    monkeypatch.setattr("clew.warehouse.postgres.push.MAX_PORTION_SOURCES", 1)
    machine.push(url, dry_run=True)
    cuts = 0
    for size in (500, 3_000, 20_000, 60_000, 90_000, 120_000):
        with wire(server.port, size) as line:
            theirs = server.url(database).replace(f":{server.port}/", f":{line.port}/")
            with suppress(RemoteFailed):
                machine.push(theirs, workers=count)
            cuts += line.cuts
        whole(url)
    assert cuts >= 3
    machine.push(url)
    assert statistics(url) == machine.statistics()


def whole(url: str) -> None:
    """What is there is the whole of some sessions."""
    with closing(connect(url)) as db:
        if schema.version_of(db) == 0:
            return
    assert ask(url, "SELECT count(*) FROM sessions") == ask(url, "SELECT count(*) FROM loaded")
    counts = (
        "SELECT s.batch FROM sessions_copies s JOIN messages_copies m USING (batch) GROUP BY 1 HAVING count(*) <> 40"
    )
    assert ask(url, counts) == []
    assert statistics(url)["usage in total, one by one"] == statistics(url)["usage in total"]


def test_a_server_process_that_is_killed(
    machine: Machine, url: str, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    """In the middle of a load; the line says that the server ended it."""
    copy = pushing.copy_rows

    def interrupted(db: connection.Connection, batches: object) -> int:
        count = copy(db, batches)  # type: ignore[arg-type]
        ask(server.url(), f"SELECT pg_terminate_backend({db.info.backend_pid})")
        return count

    monkeypatch.setattr(pushing, "copy_rows", interrupted)
    with pytest.raises(RemoteFailed):
        machine.push(url)
    monkeypatch.setattr(pushing, "copy_rows", copy)
    whole(url)
    machine.push(url)
    assert statistics(url) == machine.statistics()


def test_somebody_who_holds_the_lock_is_waited_for(machine: Machine, url: str) -> None:
    machine.push(url)
    write_claude(machine.home, "ffffffff-0000-4000-8000-000000000000", 40, seed=9)
    done: list[object] = []
    with closing(connect(url)) as db, db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(%s)", (schema.LOCK_MERGE,))
        thread = threading.Thread(target=lambda: done.append(machine.push(url)))
        thread.start()
        time.sleep(0.5)
        assert not done
    thread.join()
    assert done
    assert statistics(url) == machine.statistics()


def test_errors_never_tell_what_was_sent(url: str) -> None:
    """An error of the server may quote a row: only words that cannot are passed on."""
    import psycopg

    with closing(connect(url)) as db:
        for query in ("SELECT 'sesame'::bigint", "SELECT sesame", "SELECT 1 / length('') -- sesame"):
            with pytest.raises(psycopg.Error) as failed:
                db.execute(query.encode())
            said = translated(failed.value, url)
            assert isinstance(said, ClewError)
            assert "sesame" not in str(said)
            assert (said.__cause__, said.__context__) == (None, None)


def test_credentials_are_in_no_word_of_ours(server: Server, url: str, machine: Machine) -> None:
    for words in (
        ["push", url, url, "--home", str(machine.home)],
        ["push", url + "?sslmode=nonsense", "--home", str(machine.home)],
        ["push", url.replace("127.0.0.1", "127.0.0.1]"), "--home", str(machine.home)],
        ["search", "word", "--engine", url.replace("postgresql", "mysql")],
        ["push", url, "--home", str(machine.home), "--json"],
        ["search", "word", "--engine", url],
    ):
        done = run(*words)
        assert server.password not in done.out + done.err, words
    assert server.password not in server.log


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://ada:pw@db.example:5433/loom", "db.example:5433/loom"),
        ("postgresql://ada@db.example/loom?password=pw", "db.example/loom"),
        ("postgresql:///loom?host=/run/x&password=pw", "local socket/loom"),
        ("postgresql://ada:pw@[::/x", "the server"),
    ],
)
def test_an_address_is_shown_without_its_secrets(url: str, expected: str) -> None:
    assert display_server(url) == expected
