"""The tables on a server: copies as they were pushed, partitioned by month, and views with the names of the catalog's.

Each table of copies has a column `shown`, which `dedupe.py` maintains; the view has the rows where it is true. API
calls with several copies are hidden there, and stored merged in `usage_merged`. Sums by day are stored per batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from clew.catalog.portable_sql import CACHE_5M_TOKENS
from clew.errors import TargetRefused
from clew.warehouse.columns import COPIES, TABLES, Column, Table
from clew.warehouse.merge_sql import DAY_SUMS, QUARTER_HOUR_SQL
from clew.warehouse.postgres.connection import Connection
from clew.warehouse.urls import display_server

VERSION = 3
"""Of the tables on the server."""
MIN_SERVER_VERSION = 150000
LOCK_SCHEMA, LOCK_MERGE = 0x636C6577_0001, 0x636C6577_0002
"""Advisory locks: of changes of tables, and of changes of what is visible."""
PUSHED_TABLES = tuple(name for name in TABLES if name != "batches")
TABLES_OF_MESSAGES = ("blocks", "tool_calls", "file_changes", "todos")
"""Their rows are visible with their message."""
FIRST_YEAR, LAST_YEAR = 2020, 2035
"""Months of these years have partitions; rows of other times are in the default partition."""
_INDEXED_IDS = {"messages": "event_id", "usage": "usage_id", "sessions": "session_id"}
_TEXT = 'text COLLATE "C" NOT NULL'


def _column(column: Column) -> str:
    kind = "bigint" if column.type == "int" else 'text COLLATE "C"'
    return f"{column.name} {kind}{'' if column.may_be_null else ' NOT NULL'}"


def partitioned() -> list[str]:
    """The tables that are partitioned by month."""
    return [*(f"{name}{COPIES}" for name in PUSHED_TABLES), "usage_merged", *(f"{name}_sums" for name in DAY_SUMS)]


def _m001_tables() -> Iterator[str]:
    """All tables and views."""
    batches = TABLES["batches"]
    columns = ", ".join(map(_column, batches.columns))
    key = ", ".join(batches.key)
    yield f"CREATE TABLE batches ({columns}, is_current boolean NOT NULL DEFAULT false, PRIMARY KEY ({key}))"
    yield "CREATE INDEX batches_current ON batches (batch) WHERE is_current"
    yield "CREATE INDEX batches_origin ON batches (origin)"
    yield f"CREATE TABLE loaded (batch {_TEXT} PRIMARY KEY)"
    for name in PUSHED_TABLES:
        yield from _copies(_as_of(TABLES[name], 1))
    usage = ", ".join(map(_column, _as_of(TABLES["usage"], 1).columns))
    yield f"CREATE TABLE usage_merged ({usage}, PRIMARY KEY (usage_id, day_utc)) PARTITION BY RANGE (day_utc)"
    yield "CREATE INDEX usage_merged_batch ON usage_merged (batch)"
    for name in DAY_SUMS:
        yield from _day_sums(name)
    for table in partitioned():
        yield f"CREATE TABLE {table}_default PARTITION OF {table} DEFAULT"
    yield from _views(1)


def _m002_has_subagent_records() -> Iterator[str]:
    """The column `sessions.has_subagent_records`; NULL in rows that were pushed before."""
    yield f"ALTER TABLE sessions{COPIES} ADD COLUMN has_subagent_records bigint"
    # Replaced, not dropped: that would drop the rights of readers too. A new column can only be the last one.
    yield _view(_as_of(TABLES["sessions"], 2))


def _as_of(table: Table, version: int) -> Table:
    """The table with the columns that it had in a schema version."""
    return table._replace(columns=tuple(column for column in table.columns if column.added_in <= version))


def _copies(table: Table) -> Iterator[str]:
    name, columns = f"{table.name}{COPIES}", ", ".join(map(_column, table.columns))
    words = ", words tsvector" if table.name == "blocks" else ""
    key = ", ".join((*table.key, "day_utc"))
    yield (
        f"CREATE TABLE {name} ({columns}{words}, shown boolean NOT NULL DEFAULT true, PRIMARY KEY ({key}))"
        f" PARTITION BY RANGE (day_utc)"
    )
    if table.name in _INDEXED_IDS:
        column = _INDEXED_IDS[table.name]
        yield f"CREATE INDEX {table.name}_by_{column} ON {name} ({column})"
    if words:
        yield f"CREATE INDEX blocks_by_words ON {name} USING gin (words)"


def _day_sums(name: str) -> Iterator[str]:
    _, group, sums = DAY_SUMS[name]
    columns = [f"{column} {_TEXT}" for column in ("batch", *group)]
    columns += [f"{column} bigint" for column in sums]
    yield f"CREATE TABLE {name}_sums ({', '.join(columns)}) PARTITION BY RANGE (day_utc)"
    yield f"CREATE INDEX {name}_by_batch ON {name}_sums (batch)"


def _view(table: Table) -> str:
    """The visible rows of a table."""
    of_messages = " AND seq > 0" if table.name == "blocks" else ""
    rows = f"SELECT {', '.join(table.names)} FROM {table.name}{COPIES} WHERE shown{of_messages}"
    return f"CREATE OR REPLACE VIEW {table.name} AS {rows}"


def _views(version: int) -> Iterator[str]:
    for name in PUSHED_TABLES:
        if name != "usage":
            yield _view(_as_of(TABLES[name], version))
    names = _as_of(TABLES["usage"], version).names
    columns = ", ".join(
        f"{CACHE_5M_TOKENS} AS {name}" if name == "cache_creation_5m_tokens" else name for name in names
    )
    single = f"SELECT {', '.join(names)} FROM usage{COPIES} WHERE shown"
    merged = f"SELECT {', '.join(names)} FROM usage_merged"
    yield f"CREATE VIEW usage AS SELECT {columns} FROM ({single} UNION ALL {merged}) x"
    for name, (_, group, sums) in DAY_SUMS.items():
        yield f"CREATE VIEW {name} AS SELECT {', '.join((*group, *sums))} FROM {name}_sums"


def _m003_quarter_hours() -> Iterator[str]:
    """Sums for each quarter of an hour in place of each day in UTC, so that days of any zone can be summed."""
    for name, (_, group, sums) in DAY_SUMS.items():
        yield f"TRUNCATE {name}_sums"
        yield f"ALTER TABLE {name}_sums ADD COLUMN quarter_hour_us bigint NOT NULL"
        yield insert_sums(name)
        columns = ", ".join((*group, *sums, "quarter_hour_us"))
        yield f"CREATE OR REPLACE VIEW {name} AS SELECT {columns} FROM {name}_sums"


def insert_sums(name: str, where: str = "") -> str:
    """The statement that computes sums from the visible rows of batches."""
    table, group, sums = DAY_SUMS[name]
    columns = ", ".join(("batch", *group))
    return (
        f"INSERT INTO {name}_sums SELECT {columns}, {', '.join(sums.values())}, {QUARTER_HOUR_SQL} FROM {table} {where}"
        f" GROUP BY {columns}, {QUARTER_HOUR_SQL}"
    )


MIGRATIONS: tuple[Callable[[], Iterator[str]], ...] = (_m001_tables, _m002_has_subagent_records, _m003_quarter_hours)
"""The statements that lead from each version to the next; never changed after a release."""
assert len(MIGRATIONS) == VERSION


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
    """True if the server has tables of this version; raises TargetRefused if they are newer."""
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
    if _check_not_newer(db, url) == VERSION:
        return
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK_SCHEMA,))
        # Another process may have created them meanwhile.
        version = _check_not_newer(db, url)
        if version == 0:
            # An administrator may have created the schema for a user who may not do so.
            if db.execute("SELECT to_regnamespace('clew')").fetchone() == (None,):
                db.execute("CREATE SCHEMA clew")
            db.execute(f"CREATE TABLE IF NOT EXISTS clew.meta (key {_TEXT} PRIMARY KEY, value {_TEXT})")
        for migrate in MIGRATIONS[version:]:
            for statement in migrate():
                db.execute(statement.encode())
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
