"""The tables on a server: copies as they were pushed, by month, and what is shown of them under the catalog's names.

Each table of copies has a column `shown`, which `dedupe.py` keeps: a view gives the rows that are. Calls that several
copies tell of are all hidden, and stand merged in `usage_merged`. Sums by day are kept for each batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from clew.errors import TargetRefused
from clew.warehouse.columns import COPIES, COUNTS, TABLES, Column, Table
from clew.warehouse.merge_sql import SHORT_LIVED
from clew.warehouse.postgres.connection import shown

if TYPE_CHECKING:
    from clew.warehouse.postgres.connection import Connection

VERSION = 1
"""Of the tables on the server."""
OLDEST_SERVER = 150000
LOCK_SCHEMA, LOCK_MERGE = 0x636C6577_0001, 0x636C6577_0002
"""Who holds one of these changes the tables, or settles what is shown."""
COPIED = tuple(name for name in TABLES if name != "batches")
"""The tables that are pushed, but for the list of batches."""
FOLLOWING = ("blocks", "tool_calls", "file_changes", "todos")
"""Whose rows are shown with their message."""
FIRST_YEAR, LAST_YEAR = 2020, 2035
"""Days of these years have a partition for their month; what says it is of another time stands in the default one."""
_MOST_LOOKED_FOR = {"messages": "event_id", "usage": "usage_id", "sessions": "session_id"}
_DAYS = ("day_utc", "week_utc", "month_utc")
SUMS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "usage_days": (
        ("session_id", "agent", "model", "project", "git_branch", *_DAYS),
        {
            "calls": "count(*)",
            "priced_calls": "sum(is_priced)",
            **{name: f"sum({name})" for name in COUNTS if name != "cache_creation_tokens"},
            "cost_nano": "sum(cost_nano)",
            "min_ts_us": "min(ts_us)",
            "max_ts_us": "max(ts_us)",
        },
    ),
    "tool_days": (
        ("session_id", "agent", "project", "name", "day_utc"),
        {
            "tool_calls": "count(*)",
            "tool_errors": "sum(is_error)",
            "tool_us": "sum(duration_us)",
            "longest_us": "max(duration_us)",
        },
    ),
    "change_days": (
        ("session_id", "agent", "project", "path", "day_utc"),
        {"lines_added": "sum(lines_added)", "lines_removed": "sum(lines_removed)"},
    ),
}
"""The sums by day: what they are told apart by, and how each is made."""
SUMMED = {"usage_days": "usage", "tool_days": "tool_calls", "change_days": "file_changes"}
_TEXT, _NUMBER = 'text COLLATE "C" NOT NULL', "bigint NOT NULL"


def _column(column: Column) -> str:
    kind = "bigint" if column.type == "int" else 'text COLLATE "C"'
    return f"{column.name} {kind}{'' if column.may_be_null else ' NOT NULL'}"


def partitioned() -> list[str]:
    """The tables that are kept by month."""
    return [*(f"{name}{COPIES}" for name in COPIED), "usage_merged", *(f"{name}_sums" for name in SUMS)]


def _m001_tables() -> Iterator[str]:
    """Everything."""
    batches = TABLES["batches"]
    columns = ", ".join(map(_column, batches.columns))
    key = ", ".join(batches.key)
    yield f"CREATE TABLE batches ({columns}, is_current boolean NOT NULL DEFAULT false, PRIMARY KEY ({key}))"
    yield "CREATE INDEX batches_current ON batches (batch) WHERE is_current"
    yield "CREATE INDEX batches_origin ON batches (origin)"
    yield f"CREATE TABLE loaded (batch {_TEXT} PRIMARY KEY)"
    for name in COPIED:
        yield from _copies(TABLES[name])
    usage = ", ".join(map(_column, TABLES["usage"].columns))
    yield f"CREATE TABLE usage_merged ({usage}, PRIMARY KEY (usage_id, day_utc)) PARTITION BY RANGE (day_utc)"
    yield "CREATE INDEX usage_merged_batch ON usage_merged (batch)"
    for name in SUMS:
        yield from _sums(name)
    for table in partitioned():
        yield f"CREATE TABLE {table}_default PARTITION OF {table} DEFAULT"
    yield from _views()


def _copies(table: Table) -> Iterator[str]:
    name, columns = f"{table.name}{COPIES}", ", ".join(map(_column, table.columns))
    words = ", words tsvector" if table.name == "blocks" else ""
    key = ", ".join((*table.key, table.day))
    yield (
        f"CREATE TABLE {name} ({columns}{words}, shown boolean NOT NULL DEFAULT true, PRIMARY KEY ({key}))"
        f" PARTITION BY RANGE ({table.day})"
    )
    if table.name in _MOST_LOOKED_FOR:
        column = _MOST_LOOKED_FOR[table.name]
        yield f"CREATE INDEX {table.name}_by_{column} ON {name} ({column})"
    if words:
        yield f"CREATE INDEX blocks_by_words ON {name} USING gin (words)"


def _sums(name: str) -> Iterator[str]:
    by, sums = SUMS[name]
    columns = [f"{column} {_TEXT}" for column in ("batch", *by)]
    columns += [f"{column} bigint" for column in sums]
    yield f"CREATE TABLE {name}_sums ({', '.join(columns)}) PARTITION BY RANGE (day_utc)"
    yield f"CREATE INDEX {name}_by_batch ON {name}_sums (batch)"


def _views() -> Iterator[str]:
    for name in COPIED:
        if name != "usage":
            inside = " AND seq > 0" if name == "blocks" else ""
            columns = ", ".join(TABLES[name].names)
            yield f"CREATE VIEW {name} AS SELECT {columns} FROM {name}{COPIES} WHERE shown{inside}"
    names = TABLES["usage"].names
    columns = ", ".join(f"{SHORT_LIVED} AS {name}" if name == "cache_creation_5m_tokens" else name for name in names)
    alone = f"SELECT {', '.join(names)} FROM usage{COPIES} WHERE shown"
    merged = f"SELECT {', '.join(names)} FROM usage_merged"
    yield f"CREATE VIEW usage AS SELECT {columns} FROM ({alone} UNION ALL {merged}) x"
    for name, (by, sums) in SUMS.items():
        yield f"CREATE VIEW {name} AS SELECT {', '.join((*by, *sums))} FROM {name}_sums"


MIGRATIONS: tuple[Callable[[], Iterator[str]], ...] = (_m001_tables,)
"""What leads from each version to the next; none is changed once it was released."""
assert len(MIGRATIONS) == VERSION


def version_of(db: Connection) -> int:
    """The version of the tables on the server; 0 where there are none."""
    found = db.execute("SELECT to_regclass('clew.meta')").fetchone()
    if found is None or found[0] is None:
        return 0
    row = db.execute("SELECT value FROM clew.meta WHERE key = 'version'").fetchone()
    return int(row[0]) if row is not None else 0


def check_readable(db: Connection, url: str) -> None:
    """Raise where this clew cannot read what is there."""
    version = version_of(db)
    _refuse_newer(version, url)
    if version == 0:
        raise TargetRefused(f"{shown(url)}: nothing was pushed there yet; `clew push` does")
    if version < VERSION:
        raise TargetRefused(f"{shown(url)}: its tables are older than this clew; the next `clew push` updates them")


def has_tables(db: Connection, url: str) -> bool:
    """True where there is something of this clew's own version; raises where it is newer."""
    version = version_of(db)
    _refuse_newer(version, url)
    return version == VERSION


def _refuse_newer(version: int, url: str) -> None:
    if version > VERSION:
        told = f"its tables are of version {version}, and this clew knows {VERSION}"
        raise TargetRefused(f"{shown(url)}: {told}; a newer clew is needed")


def prepare(db: Connection, url: str) -> None:
    """Make the tables, or bring them up to date. Raises where the server is not fit for them."""
    if db.info.server_version < OLDEST_SERVER:
        raise TargetRefused(f"{shown(url)}: PostgreSQL {OLDEST_SERVER // 10000} or later is needed")
    if db.info.parameter_status("server_encoding") != "UTF8":
        raise TargetRefused(f"{shown(url)}: the database must be encoded in UTF8")
    version = version_of(db)
    _refuse_newer(version, url)
    if version == VERSION:
        return
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK_SCHEMA,))
        # Another may have been quicker.
        version = version_of(db)
        _refuse_newer(version, url)
        if version == 0:
            if db.execute("SELECT to_regnamespace('clew')").fetchone() == (None,):
                # Where somebody has made it for us, the right to make one may be missing.
                db.execute("CREATE SCHEMA clew")
            db.execute(f"CREATE TABLE IF NOT EXISTS clew.meta (key {_TEXT} PRIMARY KEY, value {_TEXT})")
        for migrate in MIGRATIONS[version:]:
            for statement in migrate():
                db.execute(statement.encode())
        query = "INSERT INTO meta VALUES ('version', %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        db.execute(query, (str(VERSION),))


def months_of(days: Iterable[str]) -> set[str]:
    """The months that have a partition, of these days."""
    return {day[:7] for day in days if len(day) == 10 and FIRST_YEAR <= int(day[:4]) <= LAST_YEAR}


def known_months(db: Connection) -> set[str]:
    """The months for which every table has its partition."""
    query = "SELECT right(c.relname, 7), count(*) FROM pg_class c JOIN pg_inherits i ON i.inhrelid = c.oid"
    query += " JOIN pg_class p ON p.oid = i.inhparent JOIN pg_namespace n ON n.oid = p.relnamespace"
    query += " WHERE n.nspname = 'clew' AND p.relkind = 'p' GROUP BY 1"
    counts: dict[str, int] = dict(db.execute(query).fetchall())
    return {
        name.replace("_", "-") for name, count in counts.items() if name != "default" and count == len(partitioned())
    }


def add_months(db: Connection, months: Iterable[str]) -> None:
    """Make the partitions of some months. In a transaction of its own: it waits for whoever is writing."""
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK_SCHEMA,))
        for month in sorted(months):
            for table in partitioned():
                _add_month(db, table, month)


def _add_month(db: Connection, table: str, month: str) -> None:
    year, number = int(month[:4]), int(month[5:])
    first, behind = f"{month}-01", f"{year + number // 12:04}-{number % 12 + 1:02}-01"
    # Rows came while somebody dropped the partition; they must not stand in its way.
    query = f"DELETE FROM {table}_default WHERE day_utc >= '{first}' AND day_utc < '{behind}' RETURNING *"
    stray = db.execute(query.encode()).fetchall()
    name = f"{table}_{month.replace('-', '_')}"
    limits = f"FROM ('{first}') TO ('{behind}')"
    db.execute(f"CREATE TABLE IF NOT EXISTS {name} PARTITION OF {table} FOR VALUES {limits}".encode())
    if stray:
        marks = ", ".join(["%s"] * len(stray[0]))
        db.cursor().executemany(f"INSERT INTO {name} VALUES ({marks})".encode(), stray)
