"""The tables on a server: copies as they were pushed, partitioned by month, and views with the names of the catalog's.

Each table of copies has a column `shown`, which `dedupe.py` maintains; the view has the rows where it is true. API
calls with several copies are hidden there, and stored merged in `usage_merged`. Sums by quarter of an hour
are stored per batch.
"""

from __future__ import annotations

from collections.abc import Iterable

from clew.errors import TargetRefused
from clew.warehouse.columns import COPIES, DATA_TABLES
from clew.warehouse.merge_sql import QUARTER_HOUR_SUMS
from clew.warehouse.postgres.connection import Connection
from clew.warehouse.postgres.migrations import MIGRATIONS
from clew.warehouse.postgres.rights import SESSIONS, check_schema
from clew.warehouse.urls import display_server

VERSION = len(MIGRATIONS)
"""Of the tables on the server."""
MIN_SERVER_VERSION = 150000
LOCK_SCHEMA, LOCK_MERGE, LOCK_TOTALS = 0x636C6577_0001, 0x636C6577_0002, 0x636C6577_0003
"""Advisory locks: of changes of tables, of changes of what is visible, and of the publication of totals."""
TABLES_OF_MESSAGES = ("blocks", "tool_calls", "file_changes", "todos")
"""Their rows are visible with their message."""
FIRST_YEAR, LAST_YEAR = 2020, 2035
"""Months of these years have partitions; rows of other times are in the default partition."""
_TEXT = 'text COLLATE "C" NOT NULL'


def partitioned() -> list[str]:
    """The tables that are partitioned by month."""
    sums = (f"{name}_sums" for name in QUARTER_HOUR_SUMS)
    return [*(f"{name}{COPIES}" for name in DATA_TABLES), "usage_merged", *sums]


def version_of(db: Connection) -> int:
    """The version of the tables on the server; 0 if there are none."""
    found = db.execute("SELECT to_regclass('clew.meta')").fetchone()
    if found is None or found[0] is None:
        return 0
    row = db.execute("SELECT value FROM clew.meta WHERE key = 'version'").fetchone()
    return int(row[0]) if row is not None else 0


def check_readable(db: Connection, url: str) -> None:
    """Raise TargetRefused if this clew cannot read the tables of the server."""
    version = _check_not_newer(db, url)
    if version == 0:
        raise TargetRefused(f"{display_server(url)}: nothing was pushed there yet; use `clew push`")
    if version < VERSION:
        raise TargetRefused(f"{display_server(url)}: its tables are older than this clew; `clew push` updates them")


def has_tables(db: Connection, url: str) -> bool:
    """True if the server has tables of this version; raises TargetRefused if they are newer, or not safe to use."""
    check_schema(db, url, SESSIONS)
    return _check_not_newer(db, url) == VERSION


def _check_not_newer(db: Connection, url: str) -> int:
    version = version_of(db)
    if version > VERSION:
        message = f"its tables have version {version}, this clew reads up to {VERSION}"
        raise TargetRefused(f"{display_server(url)}: {message}; a newer clew is needed")
    return version


def prepare(db: Connection, url: str) -> None:
    """Create the tables, or migrate them. Raises TargetRefused if the server is not suitable."""
    if db.info.server_version < MIN_SERVER_VERSION:
        raise TargetRefused(f"{display_server(url)}: PostgreSQL {MIN_SERVER_VERSION // 10000} or later is needed")
    if db.info.parameter_status("server_encoding") != "UTF8":
        raise TargetRefused(f"{display_server(url)}: the database must have the encoding UTF8")
    if has_tables(db, url):
        return
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK_SCHEMA,))
        # An administrator may have created the schema for a user who may not do so.
        if db.execute("SELECT to_regnamespace('clew')").fetchone() == (None,):
            db.execute("CREATE SCHEMA clew")
        # Another process may have created the schema or the tables meanwhile.
        check_schema(db, url, SESSIONS)
        version = _check_not_newer(db, url)
        if version == 0:
            db.execute(f"CREATE TABLE IF NOT EXISTS clew.meta (key {_TEXT} PRIMARY KEY, value {_TEXT})")
        for statements in MIGRATIONS[version:]:
            db.execute(statements.encode())
        query = "INSERT INTO meta VALUES ('version', %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        db.execute(query, (str(VERSION),))


def months_of(days: Iterable[str]) -> set[str]:
    """The months of these days that have partitions."""
    return {day[:7] for day in days if len(day) == 10 and FIRST_YEAR <= int(day[:4]) <= LAST_YEAR}


_PARTITION_COUNTS = """
SELECT right(c.relname, 7), count(*) FROM pg_class c JOIN pg_inherits i ON i.inhrelid = c.oid
  JOIN pg_class p ON p.oid = i.inhparent JOIN pg_namespace n ON n.oid = p.relnamespace
WHERE n.nspname = 'clew' AND p.relkind = 'p' GROUP BY 1
"""


def known_months(db: Connection) -> set[str]:
    """The months for which every table has a partition."""
    counts: dict[str, int] = dict(db.execute(_PARTITION_COUNTS).fetchall())
    return {
        name.replace("_", "-") for name, count in counts.items() if name != "default" and count == len(partitioned())
    }


def add_months(db: Connection, months: Iterable[str]) -> None:
    """Create the partitions of months, in a transaction of its own: it waits for all writers."""
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK_SCHEMA,))
        for month in sorted(months):
            for table in partitioned():
                _add_month(db, table, month)


def _add_month(db: Connection, table: str, month: str) -> None:
    year, number = int(month[:4]), int(month[5:])
    first, next_first = f"{month}-01", f"{year + number // 12:04}-{number % 12 + 1:02}-01"
    # Rows that were written after the partition was dropped are in the default partition, and would prevent a new one.
    query = f"DELETE FROM {table}_default WHERE day_utc >= '{first}' AND day_utc < '{next_first}' RETURNING *"
    rows = db.execute(query.encode()).fetchall()
    name = f"{table}_{month.replace('-', '_')}"
    limits = f"FROM ('{first}') TO ('{next_first}')"
    db.execute(f"CREATE TABLE IF NOT EXISTS {name} PARTITION OF {table} FOR VALUES {limits}".encode())
    if rows:
        placeholders = ", ".join(["%s"] * len(rows[0]))
        db.cursor().executemany(f"INSERT INTO {name} VALUES ({placeholders})".encode(), rows)
