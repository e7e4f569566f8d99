"""`clew lake` and `clew stats --engine` from the outside."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from clew.cli.main import main
from tests.demo_home import write_self_contained_demo
from tests.warehouse.lake.worlds import NAMES, age, say
from tests.warehouse.machines import Machine


def run(*words: object) -> Result:
    """A command."""
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The demo."""
    write_self_contained_demo(tmp_path / "home")
    return tmp_path / "home"


@pytest.mark.slow
def test_what_was_done_is_told_as_json(tmp_path: Path, home: Path) -> None:
    first, second = (json.loads(run("lake", "write", tmp_path / "lake", "--home", home, "--json").stdout) for _ in "12")
    assert first["level"] == "metrics"
    assert first["written"] == first["sources"] == second["unchanged"] > 20
    assert (second["written"], second["objects"]) == (0, 0)


def test_filters_choose_what_is_written(tmp_path: Path, home: Path) -> None:
    told = json.loads(run("lake", "write", tmp_path / "lake", "--home", home, "--agent", "codex", "--json").stdout)
    rows = json.loads(run("list", "--home", home, "--agent", "codex", "--json").stdout)
    assert told["written"] == len(rows) > 0


@pytest.mark.slow
@pytest.mark.parametrize("by", ["day", "week", "month", "agent", "model", "project", "branch", "session", "tool"])
def test_the_engines_agree(tmp_path: Path, home: Path, by: str) -> None:
    assert run("lake", "write", tmp_path / "lake", "--home", home, "--level", "raw").exit_code == 0
    asked = run("stats", "--by", by, "--engine", f"duckdb:{tmp_path / 'lake'}", "--json")
    assert asked.exit_code == 0, asked.output
    assert asked.stdout == run("stats", "--by", by, "--engine", "sqlite", "--home", home, "--json").stdout


@pytest.mark.slow
def test_filters_hold_for_an_engine_too(tmp_path: Path, home: Path) -> None:
    assert run("lake", "write", tmp_path / "lake", "--home", home, "--level", "raw").exit_code == 0
    limits = ("--agent", "claude-code", "--project", "src/tide", "--since", "2026-01-05T07:00:00Z", "--has", "edit")
    asked = run("stats", *limits, "--json", "--engine", f"duckdb:{tmp_path / 'lake'}")
    assert json.loads(asked.stdout)["rows"]
    assert asked.stdout == run("stats", *limits, "--json", "--engine", "sqlite", "--home", home).stdout


@pytest.mark.parametrize("zone", ["Asia/Kathmandu", "America/Los_Angeles"])
def test_days_of_any_zone(tmp_path: Path, home: Path, zone: str) -> None:
    lake = tmp_path / "lake"
    assert run("lake", "write", lake, "--home", home, "--level", "raw").exit_code == 0
    for words in (("--by", "day"), ("--since", "2026-01-05", "--until", "2026-11-04T12:07")):
        asked = ("--timezone", zone, "stats", *words, "--json", "--engine")
        found = run(*asked, f"duckdb:{lake}").stdout
        assert found == run(*asked, "sqlite", "--home", home).stdout
        assert found != run(*asked[2:], "sqlite", "--home", home).stdout


@pytest.mark.slow
def test_without_text_a_project_is_found_by_its_last_part(tmp_path: Path, home: Path) -> None:
    assert run("lake", "write", tmp_path / "lake", "--home", home).exit_code == 0
    asked = ("stats", "--engine", f"duckdb:{tmp_path / 'lake'}", "--by", "project", "--json", "--project")
    assert {row["project"] for row in json.loads(run(*asked, "TIDEP").stdout)["rows"]} == {"tidepool"}
    assert run(*asked, "src/tidepool").exit_code == 1
    named = {row["project"] for digit in "0123456789" for row in json.loads(run(*asked, digit).stdout)["rows"]}
    assert all(any(digit in name for digit in "0123456789") for name in named), "tags are not looked at"


@pytest.mark.slow
def test_objects_are_merged(tmp_path: Path) -> None:
    machine, lake = Machine(tmp_path, "one"), tmp_path / "lake"
    for name in NAMES:
        say(machine, name, 10)
        assert run("lake", "write", lake, "--home", machine.home).exit_code == 0
    before = run("stats", "--engine", f"duckdb:{lake}", "--json").stdout
    assert json.loads(run("lake", "compact", lake, "--json").stdout)["before"] == 0
    age(lake)
    told = json.loads(run("lake", "compact", lake, "--json").stdout)
    assert told["before"] > told["after"] > 0
    assert run("stats", "--engine", f"duckdb:{lake}", "--json").stdout == before


def test_where_nothing_is_found_that_is_said_and_nobody_is_sent_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = run("lake", "write", tmp_path / "lake", "--home", tmp_path / "empty")
    assert (done.exit_code, done.stderr) == (0, "no sessions found, nothing written\n")
    told = run("stats", "--engine", f"duckdb:{tmp_path / 'lake'}")
    assert "there is no lake; `clew lake write` creates one if it finds sessions" in told.output


def test_a_data_folder_that_cannot_be_written_to_is_told_without_advice_that_does_not_help(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "taken"))
    done = run("lake", "write", tmp_path / "lake", "--home", home)
    assert done.exit_code not in (0, 1)
    assert "is a file, not a folder" in done.output
    assert "--redact-plain" not in done.output


@pytest.mark.slow
def test_any_reader_of_parquet_finds_the_months(tmp_path: Path, home: Path) -> None:
    assert run("lake", "write", tmp_path / "lake", "--home", home).exit_code == 0
    query = f"SELECT DISTINCT month, day_utc FROM read_parquet('{tmp_path}/lake/table=messages/*/*.parquet')"
    for month, day_utc in duckdb.connect().execute(query).fetchall():
        assert str(month) == (day_utc[:7] or "unknown")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("stats", "--engine", "oracle:x"), 2, "choose from sqlite"),
        (("stats", "--engine", "duckdb:"), 2, "choose from sqlite"),
        (("stats", "--engine", ""), 2, "choose from sqlite"),
        (("search", "x", "--engine", ""), 2, "search needs sqlite"),
        (("web", "--engine", ""), 2, "the app shows sqlite, or what was pushed to a server"),
        (("web", "--engine", "duckdb:lake"), 2, "the app shows sqlite, or what was pushed to a server"),
        (("stats", "--engine", "DuckDB:nowhere"), 1, "there is no lake"),
        (("stats", "--engine", "duckdb:nowhere"), 1, "there is no lake"),
        (("lake", "write", "gopher-and-worse://x"), 2, "gopher-and-worse"),
        (("lake", "write", "lake", "--level", "all"), 2, "metrics"),
    ],
)
def test_what_makes_no_sense_is_told(
    tmp_path: Path, words: tuple[str, ...], code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    result = run(*words, "--home", tmp_path / "home")
    assert result.exit_code == code, result.output
    assert said in result.output


def test_a_target_without_a_lake_is_not_compacted_in_silence(tmp_path: Path) -> None:
    result = run("lake", "compact", tmp_path / "mistyped")
    assert result.exit_code == 1
    assert "there is no lake" in result.output
    assert not (tmp_path / "mistyped").exists()


def test_a_password_is_not_told(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    word = "hunter2"
    for words in (
        ("stats", "--engine", f"oracle://mira:{word}@x"),
        ("lake", "write", f"smb://mira:{word}@127.0.0.1:1/x"),
    ):
        result = run(*words, "--home", tmp_path / "home")
        assert result.exit_code in (2, 7)
        assert word not in result.output


def test_a_missing_extra_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr("clew.extras.find_spec", lambda name: None if name == "duckdb" else real(name))
    (tmp_path / "home").mkdir()
    for words in (("lake", "write", "lake"), ("lake", "compact", "lake"), ("stats", "--engine", "duckdb:lake")):
        result = run(*words)
        assert result.exit_code == 2
        assert "pip install '.[lake]' in a clone of clew" in result.output


@pytest.mark.parametrize("words", [["--help"], ["lake", "--help"], ["stats", "--home", "."], ["list", "--home", "."]])
def test_nothing_of_it_is_loaded_where_it_is_not_asked_for(tmp_path: Path, words: list[str]) -> None:
    report = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
    code = f"{report}from clew.cli.main import main; main({words!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    loaded = set(done.stderr.split())
    assert "clew" in loaded, done.stderr
    assert not loaded & {"pyarrow", "duckdb", "fsspec", "s3fs", "psycopg", "pyspark", "pandas"}
