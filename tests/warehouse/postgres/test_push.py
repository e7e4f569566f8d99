"""A push: what arrives is what the catalog says; it is sent once, and in portions that are whole."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from clew.errors import UsageError
from clew.warehouse.postgres import schema
from clew.warehouse.postgres.connection import connect
from tests.catalog.worlds import append, claude_lines, spelled, write_claude
from tests.cli.running import clew, run
from tests.demo_home import write_self_contained_demo
from tests.warehouse.postgres.machines import SAME_WITHOUT_TEXT, Machine, ask, change, statistics, tables

ONE, TWO = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "one")


@pytest.fixture
def demo(tmp_path: Path) -> Machine:
    found = Machine(tmp_path / "demo")
    write_self_contained_demo(found.home)
    return found


def test_every_statistic_is_that_of_the_catalog(url: str, demo: Machine) -> None:
    demo.push(url)
    there, here = statistics(url), demo.statistics()
    assert {name: there[name] for name in here if there[name] != here[name]} == {}
    assert sum(map(len, here.values())) > 500
    assert {type(value) for rows in there.values() for row in rows for value in row} <= {int, str, type(None)}


def test_metrics_are_enough_for_statistics(url: str, demo: Machine) -> None:
    demo.push(url, "metrics")
    there, here = statistics(url), demo.statistics()
    named = {name for name in SAME_WITHOUT_TEXT if not name.startswith("sessions") and "project" not in name}
    assert {name for name in named if there[name] != here[name]} <= {"sessions with a file"}
    for name in ("changes by day", "changes in total"):
        assert there[name] == here[name], "a file that is a tag is still one file"


def test_what_did_not_change_is_not_read_again(url: str, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    write_claude(machine.home, ONE, 20)
    path = write_claude(machine.home, TWO, 20, seed=1)
    first = machine.push(url)
    assert (first.pushed.sources, first.unchanged) == (2, 0)
    append(path, spelled(claude_lines(TWO, 20, 5, seed=1)))
    grown = machine.push(url)
    assert (grown.pushed.sources, grown.unchanged) == (1, 1)
    assert statistics(url) == machine.statistics()

    def nothing(*_: object) -> None:
        raise AssertionError("nothing is to be read")

    monkeypatch.setattr("clew.warehouse.ingest.read_source", nothing)
    again = machine.push(url)
    assert (again.pushed.sources, again.pushed.rows, again.unchanged) == (0, 0, 2)


def test_the_server_decides_what_it_has(url: str, server_url: str, machine: Machine) -> None:
    """Nothing is remembered here that another server, or a new one in its place, would not know."""
    write_claude(machine.home, ONE, 20)
    machine.push(url)
    assert machine.push(server_url).pushed.sources == 1
    change(url, "DROP SCHEMA clew CASCADE")
    assert machine.push(url).pushed.sources == 1
    assert tables(url) == tables(server_url)


def test_a_state_that_went_leaves_nothing(url: str, machine: Machine) -> None:
    path = write_claude(machine.home, ONE, 40)
    machine.push(url)
    path.write_bytes(spelled(claude_lines(ONE, 0, 7, seed=3)))
    machine.push(url)
    assert statistics(url) == machine.statistics()
    assert ask(url, "SELECT count(*), count(DISTINCT batch) FROM messages_copies") == [(7, 1)]
    assert ask(url, "SELECT count(*) FROM batches") == [(2,)]


def test_a_state_that_comes_back_counts_again(url: str, machine: Machine) -> None:
    path = write_claude(machine.home, ONE, 40)
    machine.push(url)
    before, text = tables(url), path.read_bytes()
    path.write_bytes(spelled(claude_lines(ONE, 0, 7, seed=3)))
    machine.push(url)
    path.write_bytes(text)
    os.utime(path, ns=(time.time_ns() + 10**9,) * 2)
    machine.push(url)
    assert tables(url) == before


def test_a_file_with_another_time_sends_no_rows(url: str, machine: Machine) -> None:
    path = write_claude(machine.home, ONE, 40)
    machine.push(url)
    os.utime(path, ns=(1, 1))
    assert machine.push(url).pushed.rows == 0
    os.utime(path, ns=(time.time_ns() + 10**9,) * 2)
    report = machine.push(url)
    assert (report.pushed.sources, report.pushed.rows) == (1, 0)


def test_copies_on_two_machines_are_one_batch(url: str, tmp_path: Path, machine: Machine) -> None:
    other = Machine(tmp_path / "other")
    for one in (machine, other):
        write_claude(one.home, ONE, 40)
    machine.push(url)
    before = tables(url)
    assert other.push(url).pushed.rows == 0
    assert tables(url) == before
    assert ask(url, "SELECT count(*), count(DISTINCT batch), count(DISTINCT origin) FROM batches") == [(2, 1, 2)]


def test_new_rules_push_again_and_replace(url: str, machine: Machine, home: Path) -> None:
    path = write_claude(machine.home, ONE, 5)
    append(path, spelled(claude_lines(ONE, 5, 1)).replace(b"weave", b"tapestry-4711 weave"))
    machine.push(url, "redacted")
    assert ask(url, "SELECT count(*) FROM blocks_copies WHERE text LIKE '%tapestry-4711%'") == [(1,)]
    rules = home / ".config" / "clew" / "redaction.toml"
    rules.parent.mkdir(parents=True)
    rules.write_text('[[rule]]\nid = "looms"\npattern = "tapestry-[0-9]+"\n')
    assert machine.push(url, "redacted").pushed.sources == 1
    assert ask(url, "SELECT count(*) FROM blocks_copies WHERE text LIKE '%tapestry-4711%'") == [(0,)]
    assert ask(url, "SELECT count(*) FROM blocks_copies WHERE text LIKE '%REDACTED:looms%'") == [(1,)]


def test_a_higher_level_adds_text_and_a_lower_one_takes_none(url: str, machine: Machine) -> None:
    write_claude(machine.home, ONE, 10)
    machine.push(url, "metrics")
    assert ask(url, "SELECT count(*) FROM blocks_copies WHERE text <> ''") == [(0,)]
    machine.push(url, "redacted")
    texts = ask(url, "SELECT count(*) FROM blocks_copies WHERE text <> ''")
    assert texts[0][0] > 5
    assert machine.push(url, "metrics").pushed.sources == 0
    assert ask(url, "SELECT count(*) FROM blocks_copies WHERE text <> ''") == texts


def test_a_dry_run_leaves_the_server_alone(url: str, machine: Machine) -> None:
    write_claude(machine.home, ONE, 10)
    report = machine.push(url, dry_run=True)
    assert (report.sources, report.pushed.sources, report.pushed.rows) == (1, 1, 0)
    assert ask(url, "SELECT count(*) FROM pg_namespace WHERE nspname = 'clew'") == [(0,)]
    machine.push(url)
    assert machine.push(url, dry_run=True).pushed.sources == 0


def test_one_bad_source_stops_no_other(url: str, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    from clew.warehouse import ingest

    write_claude(machine.home, ONE, 10)
    write_claude(machine.home, TWO, 10)
    read = ingest.read_source

    def picky(source: object, meta: ingest.SourceMeta) -> ingest.Batch:
        if ONE in meta.path:
            raise ValueError("no")
        return read(source, meta)  # type: ignore[arg-type]

    monkeypatch.setattr(ingest, "read_source", picky)
    report = machine.push(url)
    assert report.pushed.sources == 1
    assert [line.rpartition("/")[2] for line in report.pushed.unreadable] == [f"{ONE}.jsonl: cannot be read (no)"]


@pytest.mark.parametrize("count", [1, 3])
def test_several_processes_do_what_one_does(url: str, server_url: str, demo: Machine, count: int) -> None:
    demo.push(url)
    demo.push(server_url, workers=count)
    assert tables(url) == tables(server_url)


def test_rows_stand_in_their_month(url: str, machine: Machine) -> None:
    write_claude(machine.home, ONE, 10)
    machine.push(url)
    found = ask(url, "SELECT DISTINCT tableoid::regclass::text, left(day_utc, 7) FROM messages_copies")
    assert found == [("messages_copies_2026_10", "2026-10")]
    with connect(url, read_only=True) as db:
        assert schema.known_months(db) == {"2026-10"}


def test_what_has_no_day_or_an_odd_one_has_a_place_too(url: str, machine: Machine) -> None:
    path = write_claude(machine.home, ONE, 5)
    text = path.read_bytes().replace(b'"timestamp":"2026-10', b'"timestamp":"1994-10', 2)
    path.write_bytes(text.replace(b'"timestamp":"2026-10-01', b'"timestamp":"eventually', 1))
    machine.push(url)
    found = ask(url, "SELECT DISTINCT tableoid::regclass::text FROM messages_copies ORDER BY 1")
    assert found == [("messages_copies_2026_10",), ("messages_copies_default",)]
    assert statistics(url) == machine.statistics()


def test_a_dropped_month_is_gone_and_a_push_goes_on(url: str, machine: Machine) -> None:
    path = write_claude(machine.home, ONE, 10)
    machine.push(url)
    for table in schema.partitioned():
        change(url, f"DROP TABLE {table}_2026_10")
    assert statistics(url)["calls"] == []
    append(path, spelled(claude_lines(ONE, 10, 5)))
    machine.push(url)
    assert statistics(url) == machine.statistics()


def test_rows_that_came_while_a_month_was_dropped_are_put_right(url: str, machine: Machine) -> None:
    from clew.agents.base import SourceFile
    from clew.warehouse import ingest, publisher
    from clew.warehouse.postgres.push import BatchWriter

    path = write_claude(machine.home, ONE, 10)
    machine.push(url)
    putter = BatchWriter(url)
    for table in schema.partitioned():
        change(url, f"DROP TABLE {table}_2026_10")
    other = SourceFile("claude-code", write_claude(machine.home, TWO, 10, seed=2))
    # It knows of the month, but not that it went.
    putter.write([ingest.read_source(other, publisher.load_publisher("raw", folder=machine.data).meta(other))])
    putter.close()
    append(path, spelled(claude_lines(ONE, 10, 5)))
    machine.push(url)
    assert statistics(url) == machine.statistics()
    assert ask(url, "SELECT count(*) FROM ONLY messages_copies_default") == [(0,)]


def test_an_address_that_is_none_is_refused(machine: Machine) -> None:
    for address in ("mysql://a@b/c", "postgresql://u:sesame@[::/x", "loom"):
        with pytest.raises(UsageError) as refused:
            machine.push(address)
        assert "sesame" not in str(refused.value)


@pytest.mark.parametrize(
    "words", [(), ("--by", "tool"), ("--by", "session"), ("--project", "src/Tide", "--by", "week")]
)
def test_the_command_counts_there_as_here(url: str, demo: Machine, words: tuple[str, ...]) -> None:
    assert run("push", url, "--home", demo.home, "--level", "raw").code == 0
    assert run("sync", "--home", demo.home).code == 0
    here, there = (run("stats", *where, *words, "--json") for where in (("--home", demo.home), ("--engine", url)))
    assert (there.code, there.err) == (0, "")
    assert there.json == here.json


def test_a_source_that_cannot_be_read_is_named_and_told_by_the_exit_code(
    url: str, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from clew.warehouse import ingest

    write_claude(machine.home, ONE, 10)
    write_claude(machine.home, TWO, 10)
    read = ingest.read_source

    def picky(source: object, meta: ingest.SourceMeta) -> ingest.Batch:
        if ONE in meta.path:
            raise OverflowError("no")
        return read(source, meta)  # type: ignore[arg-type]

    monkeypatch.setattr(ingest, "read_source", picky)
    done = clew("push", url, "--home", machine.home, "--json")
    assert done.code == 3
    assert ONE in done.err
    assert (done.json["pushed"], done.json["unreadable"]) == (1, 1)
    done = clew("push", url, "--home", machine.home)
    assert done.code == 3
    assert "the server has 1 of 2 sources" in done.err
    assert "all 2" not in done.err
