"""The migrations of a server are frozen text; together they make the tables that the code describes."""

from __future__ import annotations

from contextlib import closing

import pytest

from clew.warehouse.columns import COPIES, TABLES
from clew.warehouse.merge_sql import QUARTER_HOUR_SUMS
from clew.warehouse.postgres import schema
from clew.warehouse.postgres.connection import connect
from clew.warehouse.postgres.migrations import MIGRATIONS
from tests.warehouse.postgres.machines import ask

COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, l.collname,
  pg_get_expr(d.adbin, d.adrelid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
  LEFT JOIN pg_collation l ON l.oid = a.attcollation LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE n.nspname = 'clew' AND c.relkind IN ('r', 'p', 'v') AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1, a.attnum
"""
VIEWS = "SELECT viewname, definition FROM pg_views WHERE schemaname = 'clew' ORDER BY 1"
INDICES = "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'clew' ORDER BY 1, 2"


def prepare(url: str) -> None:
    with closing(connect(url)) as db:
        schema.prepare(db, url)


def structure(url: str) -> list[tuple[object, ...]]:
    return [row for query in (COLUMNS, VIEWS, INDICES) for row in ask(url, query)]


@pytest.mark.parametrize("version", range(1, schema.VERSION))
def test_tables_of_every_version_become_those_of_a_new_server(
    url: str, server_url: str, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(schema, "VERSION", version)
        patched.setattr(schema, "MIGRATIONS", MIGRATIONS[:version])
        prepare(url)
    before = structure(url)
    prepare(url)
    prepare(server_url)
    assert before != structure(url) == structure(server_url)


def test_the_migrations_make_the_columns_that_the_code_writes(url: str) -> None:
    prepare(url)
    columns: dict[str, dict[str, tuple[object, ...]]] = {}
    for table, name, *definition in ask(url, COLUMNS):
        columns.setdefault(table, {})[name] = tuple(definition)
    for table in TABLES.values():
        found = columns[table.name if table.name == "batches" else f"{table.name}{COPIES}"]
        for column in table.columns:
            kind = ("bigint", None) if column.type == "int" else ("text", "C")
            is_required = not column.may_be_null
            assert found.pop(column.name) == (kind[0], is_required, kind[1], None), (table.name, column.name)
        assert found.keys() <= {"shown", "is_current", "words", "person"}
        if table.name != "batches":
            assert set(columns[table.name]) == set(table.names)
    assert set(columns["usage_merged"]) == set(TABLES["usage"].names)
    for name, (_, groups, sums) in QUARTER_HOUR_SUMS.items():
        expected = [*groups, *sums, "quarter_hour_us"]
        assert list(columns[name]) == expected
        assert list(columns[f"{name}_sums"]) == ["batch", *expected]
