"""Every statistic is one SQL text that engines answer alike: run on SQLite and, unchanged, on DuckDB."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from clew.catalog.database import folder_of, open_reader
from clew.catalog.statements import Statement
from clew.catalog.sync import sync
from clew.host import Host
from tests.demo_home import write_small_demo
from tests.every_statement import every_statement

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'clew[dev]'")

STATEMENTS = dict(every_statement())
TABLES = (
    "sessions messages blocks turns turn_days tool_calls tool_days usage usage_days file_changes change_days todos "
    "sources"
).split()
WORDS = set(
    "SELECT FROM WHERE GROUP BY ORDER AND IN AS CASE WHEN THEN ELSE END COUNT SUM MIN MAX DISTINCT DESC".split()
)
BANNED = re.compile(r"\|\||/|::|[\"`;]|\bAVG\b|\bLIKE\b|\bCAST\b|\bNULL\b|\bLAG\b|\bLEAD\b|\bJOIN\b", re.IGNORECASE)
NAME = re.compile(r"\b[A-Za-z_]\w*\b")


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_keeps_to_the_words_every_engine_knows(name: str) -> None:
    text = re.sub(r"'[^']*'", "''", STATEMENTS[name].text)
    assert not BANNED.search(text), text
    capitals = {word for word in NAME.findall(text) if word.isupper()}
    assert capitals <= WORDS, capitals - WORDS
    called = set(re.findall(r"\b(\w+)\(", text)) - {"IN"}
    assert called <= {"COUNT", "SUM", "MIN", "MAX"}, called


@pytest.mark.parametrize("name", STATEMENTS)
def test_an_order_has_a_full_tie_break(name: str) -> None:
    """Rows are grouped by what they are ordered by, or the order ends in a key."""
    text = STATEMENTS[name].text
    order = re.search(r"ORDER BY ([^)]*)$", text)
    if order is None:
        assert "GROUP BY" not in text, "many rows need an order"
        return
    ordered = {column.strip().removesuffix(" DESC") for column in order[1].split(",")}
    grouped = re.search(r"GROUP BY (.*?) ORDER BY [^)]*$", text)
    keys = {column.strip() for column in grouped[1].split(",")} if grouped else None
    assert ordered & {"session_id", "usage_id"} if keys is None else keys <= ordered, text


def test_the_lint_finds_what_is_wrong() -> None:
    for text in ("SELECT a || b", "SELECT AVG(x)", "SELECT a / b", "SELECT a FROM t JOIN u"):
        assert BANNED.search(text)


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    folder = tmp_path_factory.mktemp("engines")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLEW_DATA_DIR", str(folder / "data"))
        write_small_demo(folder / "demo")
        hosts = (Host.at(folder / "demo"),)
        place = folder_of(hosts)
        sync(hosts, place)
        lite = open_reader(place)
    assert lite is not None
    duck = duckdb.connect()
    for table in TABLES:
        _copy(lite, duck, table)
    with closing(lite), closing(duck):
        yield lite, duck


def _copy(lite: Any, duck: Any, table: str) -> None:
    """The same rows in the other engine: integers and strings, nothing else."""
    found = lite.execute(f"SELECT * FROM {table}")
    names, rows = [column[0] for column in found.description], found.fetchall()
    kinds = []
    for at, name in enumerate(names):
        types = {type(row[at]) for row in rows} - {type(None)}
        assert types <= {int} or types <= {str}, (table, name, types)
        kinds.append("BIGINT" if types == {int} else "VARCHAR" if types == {str} else "BIGINT")
    duck.execute(f"CREATE TABLE {table} ({', '.join(f'{n} {k}' for n, k in zip(names, kinds, strict=True))})")
    if rows:
        duck.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(names))})", rows)


@pytest.mark.parametrize("name", STATEMENTS)
def test_sqlite_and_duckdb_answer_alike(name: str, engines: tuple[Any, Any]) -> None:
    lite, duck = engines
    statement: Statement = STATEMENTS[name]
    one = lite.execute(statement.text, statement.values).fetchall()
    other = duck.execute(statement.text, list(statement.values)).fetchall()
    assert one == other


def test_the_demo_has_rows_for_the_statements(engines: tuple[Any, Any], tmp_path: Path) -> None:
    lite, _ = engines
    empty = [name for name, each in STATEMENTS.items() if not lite.execute(each.text, each.values).fetchall()]
    assert set(empty) <= {"sessions with a file", "sessions with subagent", "sessions with thinking"}
