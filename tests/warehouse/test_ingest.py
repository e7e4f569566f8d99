"""One source in, one batch out: what its rows are, what its name follows from, and what leaves at each level."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import clew.catalog.ingest as catalog_ingest
from clew.catalog.rows import RowBuilder, Rows
from clew.errors import PathRefused, SourceUnreadable, UsageError
from clew.model import Message
from clew.redact.masks import Marker
from clew.warehouse.build import SCHEMAS, TableBuilder
from clew.warehouse.columns import TABLES
from clew.warehouse.ingest import SourceMeta, batch_name, ingest_files, read_source
from clew.warehouse.privacy import Policy, check_policy
from clew.warehouse.publisher import ORIGIN_FILE, stat_source
from tests.catalog.worlds import append, claude_lines, claude_path, spelled, write_claude
from tests.demo_home import write_self_contained_demo
from tests.redact.planted import Planter
from tests.warehouse.machines import Machine, catalogued, engine, shown, texts

SESSION = "aaaaaaaa-7777-4777-8777-777777777777"
KEY = b"k" * 32


@pytest.mark.slow
def test_the_tables_are_those_of_the_catalog(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "one")
    write_self_contained_demo(machine.home)
    assert shown(engine(machine.batches())) == catalogued([machine.home], tmp_path / "catalog")


def test_every_table_has_its_columns_and_a_key_that_is_one(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "one")
    write_self_contained_demo(machine.home)
    for batch in machine.batches():
        assert list(batch.tables) == list(TABLES)
        for name, table in batch.tables.items():
            assert table.schema == SCHEMAS[name]
            keys = list(zip(*(table[column].to_pylist() for column in TABLES[name].key), strict=True))
            assert len(set(keys)) == len(keys)
            for column in TABLES[name].columns:
                assert column.may_be_null or not table[column.name].null_count


def test_bytes_give_what_the_file_gives(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "one")
    path = write_claude(machine.home, SESSION, 23)
    (source,) = machine.sources()
    meta = machine.publisher().meta(source)
    assert ingest_files([(str(path), path.read_bytes())], meta) == read_source(source, meta)


def test_a_source_that_leads_elsewhere_is_refused() -> None:
    meta = SourceMeta("claude-code", "../../etc/x.jsonl", "s", "o", policy=Policy("raw", KEY))
    with pytest.raises(PathRefused):
        ingest_files([(meta.path, b"")], meta)


def test_files_are_let_go_one_by_one(tmp_path: Path) -> None:
    """Whoever holds all of them at once needs a multiple of a large session's memory."""
    machine = Machine(tmp_path, "one")
    path = write_claude(machine.home, SESSION, 23)
    (source,) = machine.sources()

    def files() -> Iterator[tuple[str, bytes]]:
        for name in (str(path), "/elsewhere/one", "/elsewhere/two"):
            assert Content.held == 0
            yield name, Content(path.read_bytes())

    ingest_files(files(), machine.publisher().meta(source))


class Content(bytes):
    """Bytes that are counted as long as somebody has them."""

    held = 0

    def __init__(self, _: bytes) -> None:
        Content.held += 1

    def __del__(self) -> None:
        Content.held -= 1


def test_equal_sources_on_two_machines_are_one_batch(tmp_path: Path) -> None:
    names = set()
    for name in ("one", "two"):
        machine = Machine(tmp_path, name)
        write_claude(machine.home, SESSION, 23)
        (batch,) = machine.batches()
        names.add(batch.name)
    assert len(names) == 1


def test_the_name_follows_from_every_row(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "one")
    path = write_claude(machine.home, SESSION, 23)
    (before,) = machine.batches()
    path.write_bytes(path.read_bytes().replace(b"shuttle0x12", b"shuttle0x13"))
    (after,) = machine.batches()
    assert after.name != before.name


def test_the_name_does_not_depend_on_how_rows_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, "one")
    write_claude(machine.home, SESSION, 400)
    (whole,) = machine.batches()
    monkeypatch.setattr(catalog_ingest, "FLUSH_CHARS", 100)
    (parts,) = machine.batches()
    assert parts == whole
    cut = {name: pa.concat_tables([table[:3], table[3:]]) for name, table in whole.tables.items()}
    assert batch_name(cut) == whole.name


def test_a_late_result_finds_its_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its call was handed on already: every record comes by itself."""
    machine = Machine(tmp_path, "one")
    write_claude(machine.home, SESSION, 10)
    (whole,) = machine.batches()
    handed: list[Rows] = []
    late: list[int] = []
    took, add = RowBuilder.add, TableBuilder.add

    def one_by_one(builder: RowBuilder, message: Message) -> None:
        took(builder, message)
        handed.append(builder.take_rows())

    def all_of_them(builder: TableBuilder, last: Rows) -> None:
        for rows in (*handed, last):
            late.append(len(rows.results))
            add(builder, rows)
        handed.clear()

    monkeypatch.setattr(RowBuilder, "add", one_by_one)
    monkeypatch.setattr(TableBuilder, "add", all_of_them)
    (batch,) = machine.batches()
    assert sum(late) == 2
    assert batch == whole


def test_half_a_character_does_not_stop_it(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "one")
    path = write_claude(machine.home, SESSION, 5)
    line = json.loads(path.read_bytes().splitlines()[0])
    line["message"]["content"] = "half"
    append(path, json.dumps(line).replace("half", "\\ud83d").encode() + b"\n")
    (batch,) = machine.batches()
    assert batch.tables["messages"].num_rows == 6


def test_metrics_hold_no_text_and_no_path(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "one")
    path = write_claude(machine.home, SESSION, 50)
    append(path, spelled([{"type": "custom-title", "customTitle": "Warp", "sessionId": SESSION}]))
    (batch,) = machine.batches("metrics")
    found = texts(batch.tables)
    for word in ("weave", "shuttle", "mull", "updated", "Warp", "part1.py", "mira", str(tmp_path), "toolu_"):
        assert word not in found
    for table in TABLES.values():
        for column in table.columns:
            assert not column.is_prose or set(batch.tables[table.name][column.name].to_pylist()) <= {""}
    changes = batch.tables["file_changes"]["path"].to_pylist()
    assert len(set(changes)) == 3
    assert all(len(tag) == 24 for tag in changes)


def test_the_tag_of_a_path_needs_the_key(tmp_path: Path) -> None:
    tags = []
    for name in ("one", "two"):
        machine = Machine(tmp_path, name)
        write_claude(machine.home, SESSION, 5)
        (batch,) = machine.batches("metrics")
        tags += batch.tables["file_changes"]["path"].to_pylist()
    assert len(set(tags)) == 2


@pytest.mark.slow
def test_metrics_count_what_the_catalog_counts(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "one")
    write_self_contained_demo(machine.home)
    found, wanted = shown(engine(machine.batches("metrics"))), catalogued([machine.home], tmp_path / "catalog")
    for table in ("usage", "usage_days", "turns", "turn_days", "tool_days"):
        assert found[table] == wanted[table]


def test_redacted_text_is_whole_but_for_secrets(tmp_path: Path) -> None:
    secret = Planter("tables").github()
    machine = Machine(tmp_path, "one")
    lines = claude_lines(SESSION, 0, 10, branch=f"fix/{secret}")
    lines[5]["message"]["content"] = f"use {secret} and go on"
    path = claude_path(machine.home, SESSION)
    path.parent.mkdir(parents=True)
    path.write_bytes(spelled(lines))
    (batch,) = machine.batches("redacted")
    found = texts(batch.tables)
    assert secret not in found
    assert "/mira/" not in found
    assert "shuttle0x2" in found
    assert "[REDACTED:" in found


def gertrudes(machine: Machine, folder: str, branch: str) -> None:
    """A session of somebody whose name stands in the path of their folder."""
    lines = [line | {"cwd": folder} for line in claude_lines(SESSION, 0, 10, branch=branch)]
    path = claude_path(machine.home, SESSION)
    path.parent.mkdir(parents=True)
    path.write_bytes(spelled(lines))


@pytest.mark.parametrize("level", ["metrics", "redacted"])
@pytest.mark.parametrize(
    ("folder", "branch"),
    [
        (r"C:\Users\gertrudemctest\proj", "gertrudemctest/fix"),
        ("/home/gertrudemctest/proj", "fix/GertrudeMcTest-2"),
        ("/Users/gertrudemctest", "main"),
    ],
)
def test_the_name_of_a_home_leaves_in_no_branch_and_no_project(
    tmp_path: Path, level: str, folder: str, branch: str
) -> None:
    machine = Machine(tmp_path, "one")
    gertrudes(machine, folder, branch)
    (batch,) = machine.batches(level)
    assert "gertrudemctest" not in texts(batch.tables).lower()
    tag = Marker(machine.publisher(level).policy.key)("gertrudemctest", "user_name")
    for table in ("sessions", "messages", "usage"):
        found = set(batch.tables[table]["git_branch"].to_pylist())
        assert found == {re.sub("(?i)gertrudemctest", lambda _: tag, branch)}
    if folder.endswith("gertrudemctest"):
        assert set(batch.tables["usage"]["project"].to_pylist()) == {tag}


@pytest.mark.parametrize("level", ["metrics", "redacted"])
def test_only_whole_words_of_a_branch_are_somebodys_name(tmp_path: Path, level: str) -> None:
    machine = Machine(tmp_path, "one")
    gertrudes(machine, "/home/mai/proj", "main")
    (batch,) = machine.batches(level)
    assert set(batch.tables["messages"]["git_branch"].to_pylist()) == {"main"}


def test_raw_keeps_the_name_in_a_branch(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "one")
    gertrudes(machine, "/home/gertrudemctest/proj", "gertrudemctest/fix")
    (batch,) = machine.batches()
    assert set(batch.tables["usage"]["git_branch"].to_pylist()) == {"gertrudemctest/fix"}


def test_a_secret_within_the_id_of_a_call_stays_and_calls_find_their_blocks(tmp_path: Path) -> None:
    secret = Planter("calls").github()
    machine = Machine(tmp_path, "one")
    lines = claude_lines(SESSION, 0, 10)
    lines[3]["message"]["content"][0]["id"] = lines[4]["message"]["content"][0]["tool_use_id"] = f"toolu_{secret}"
    path = claude_path(machine.home, SESSION)
    path.parent.mkdir(parents=True)
    path.write_bytes(spelled(lines))
    (batch,) = machine.batches("redacted")
    for table in ("tool_calls", "blocks"):
        assert secret not in texts({table: batch.tables[table]})
    db = engine([batch])
    joined = "SELECT b.type FROM tool_calls c JOIN blocks b ON b.call_id = c.call_id WHERE c.call_id <> '' ORDER BY 1"
    assert [kind for (kind,) in db.execute(joined).fetchall()] == ["tool_result"] * 2 + ["tool_use"] * 2


def test_the_ids_of_calls_are_equal_on_all_machines_and_are_no_ids(tmp_path: Path) -> None:
    found = []
    for name in ("one", "two"):
        machine = Machine(tmp_path, name)
        write_claude(machine.home, SESSION, 10)
        (batch,) = machine.batches("redacted")
        found.append(batch.tables["tool_calls"]["call_id"].to_pylist())
    assert found[0] == found[1]
    assert len(set(found[0])) == len(found[0]) == 2
    assert not any(call.startswith("toolu") for call in found[0])


@pytest.mark.slow
def test_levels_name_messages_alike(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "one")
    write_self_contained_demo(machine.home)
    names = [
        {event for batch in machine.batches(level) for event in batch.tables["messages"]["event_id"].to_pylist()}
        for level in ("metrics", "redacted", "raw")
    ]
    assert names[0] == names[1] == names[2]


@pytest.mark.parametrize("policy", [Policy("all"), Policy("redacted", KEY, "none"), Policy("metrics")])
def test_a_policy_that_would_let_things_out_is_refused(policy: Policy) -> None:
    with pytest.raises(UsageError):
        check_policy(policy)


def test_the_origin_is_random_and_stays(tmp_path: Path) -> None:
    one, two = Machine(tmp_path, "one"), Machine(tmp_path, "two")
    assert one.publisher().origin == one.publisher("metrics").origin != two.publisher().origin
    assert (one.data / ORIGIN_FILE).stat().st_mode & 0o077 == 0


def test_new_rules_come_after_old_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, "one")
    versions = [machine.publisher().redact_version]
    rules = tmp_path / "config"
    rules.mkdir()
    monkeypatch.setenv("CLEW_CONFIG_DIR", str(rules))
    for digits in (6, 7, 6):
        (rules / "redaction.toml").write_text(f"[[rule]]\nid = 'staff'\npattern = 'EMP-[0-9]{{{digits}}}'\n")
        versions.append(machine.publisher().redact_version)
    assert versions == sorted(set(versions))


def test_a_damaged_origin_is_told(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "one")
    (machine.data / ORIGIN_FILE).write_text("{")
    with pytest.raises(SourceUnreadable, match="damaged"):
        machine.publisher()


def test_the_state_of_a_source_is_that_of_all_its_files(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "one")
    write_self_contained_demo(machine.home)
    for source in machine.sources():
        mtime_ns, size = stat_source(source)
        assert size >= source.path.stat().st_size
        assert mtime_ns >= source.path.stat().st_mtime_ns
