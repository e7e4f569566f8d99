"""Publish the totals of a month on a server, in a schema of their own, for a role that may read nothing else.

The totals are tables of finished numbers, not views of the rows of sessions: a query, its plan and its errors can only
tell what is in them. A month is published once. Numbers that followed every push would tell who pushed.
"""

from __future__ import annotations

import re
from contextlib import closing
from datetime import datetime
from typing import NamedTuple

from clew.catalog.statements import TOKENS as STORED_TOKENS
from clew.catalog.stats import Amounts
from clew.errors import UsageError
from clew.warehouse.postgres.connection import Connection, connect, translate_errors
from clew.warehouse.postgres.rights import SESSIONS, TOTALS, add_reader, check_readers, check_schema
from clew.warehouse.postgres.schema import LOCK_TOTALS, check_readable
from clew.warehouse.totals import PersonUsage, TotalsRow, safe_totals

TABLES = {
    "by_day": ("day_utc",),
    "by_team": ("team",),
    "by_project": ("project",),
    "by_branch": ("project", "git_branch"),
    "by_model": ("model",),
}
"""The tables of totals, and the columns that name their groups. NULL in all of them: small groups together."""
_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")
"""Reasoning tokens are left out: few agents record them. Not all agents record tokens of caches either: a number of
them may be that of fewer people than the row, as the guide says."""
_GROUP_COLUMNS = ("day_utc", "team", "project", "git_branch", "model")
_SUMS = ("calls", "unknown_cost_calls", *STORED_TOKENS, "cost_nano")
_USAGE = f"""
SELECT person, {", ".join(_GROUP_COLUMNS)}, {", ".join(f"SUM({name})::bigint" for name in _SUMS)} FROM person_usage
WHERE month_utc = %s GROUP BY person, {", ".join(_GROUP_COLUMNS)}
"""
_MONTH = re.compile(r"[1-9][0-9]{3}-(0[1-9]|1[0-2])")
_PUBLISHED = ("people", "calls", "unknown_cost_calls", *_TOKENS, "cost_nano")
_MONTHS_TABLE = f"""
CREATE TABLE IF NOT EXISTS {TOTALS}.months (
  month_utc text COLLATE "C" PRIMARY KEY, published_at timestamptz NOT NULL DEFAULT now()
)
"""


class PublishReport(NamedTuple):
    """What was published of a month."""

    month: str
    is_new: bool
    """False if it was published before, or is about too few people: nothing was changed."""
    rows: dict[str, int]
    """The number of rows in each table; all 0 if nothing of the month is published."""

    def as_dict(self) -> dict[str, str | bool | dict[str, int]]:
        """The report for JSON output."""
        return {"month": self.month, "published": self.is_new, "rows": self.rows}


def last_month(now: datetime) -> str:
    """The last month that is over."""
    return f"{now.year - (now.month == 1):04}-{(now.month - 2) % 12 + 1:02}"


def check_month(month: str, now: datetime) -> str:
    """The month; raises UsageError if it is none, or not over."""
    if not _MONTH.fullmatch(month):
        raise UsageError(f"{month!r} is not a month; write it as 2026-10")
    if month > last_month(now):
        raise UsageError(f"{month} is not over; the last month that is over in UTC is {last_month(now)}")
    return month


def publish_totals(url: str, month: str, reader: str | None = None) -> PublishReport:
    """Publish a month, unless it was published before, and let a role read all totals."""
    with closing(connect(url)) as db, translate_errors(url):
        check_schema(db, url, SESSIONS)
        check_readable(db, url)
        with db.transaction():
            db.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK_TOTALS,))
            _create_tables(db)
            check_schema(db, url, TOTALS)
            if reader is not None:
                add_reader(db, url, reader)
            check_readers(db, url, reader)
            is_new = _add_month(db, month)
            return PublishReport(month, is_new, _count_rows(db, month))


def _create_tables(db: Connection) -> None:
    # An administrator may have created the schema for a user who may not do so.
    if db.execute("SELECT to_regnamespace(%s)", (TOTALS,)).fetchone() == (None,):
        db.execute(f"CREATE SCHEMA {TOTALS}".encode())
    db.execute(_MONTHS_TABLE.encode())
    amounts = ", ".join(f"{name} bigint" for name in _PUBLISHED)
    for table, names in TABLES.items():
        columns = ", ".join(f'{name} text COLLATE "C"' for name in ("month_utc", *names))
        db.execute(f"CREATE TABLE IF NOT EXISTS {TOTALS}.{table} ({columns}, {amounts})".encode())
    # Nobody adds a trigger to them from now on.
    tables = ", ".join(f"{TOTALS}.{table}" for table in ("months", *TABLES))
    db.execute(f"LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE".encode())


def _add_month(db: Connection, month: str) -> bool:
    """Write the rows of a month; False if it was published before, or is about too few people."""
    if db.execute(f"SELECT 1 FROM {TOTALS}.months WHERE month_utc = %s".encode(), (month,)).fetchone():
        return False
    tables = safe_totals(_read_usage(db, month))
    if not any(tables):
        return False
    db.execute(f"INSERT INTO {TOTALS}.months (month_utc) VALUES (%s)".encode(), (month,))
    for table, rows in zip(TABLES, tables, strict=True):
        columns = ("month_utc", *TABLES[table], *_PUBLISHED)
        query = f"INSERT INTO {TOTALS}.{table} VALUES ({', '.join(['%s'] * len(columns))})"
        db.cursor().executemany(query.encode(), [_table_row(month, TABLES[table], row) for row in rows])
    return True


def _read_usage(db: Connection, month: str) -> list[PersonUsage]:
    usage = []
    for person, *values in db.execute(_USAGE.encode(), (month,)):
        row = dict(zip((*_GROUP_COLUMNS, *_SUMS), values, strict=True))
        groups = tuple(tuple(row[column] for column in columns) for columns in TABLES.values())
        sums = {name: row[name] for name in ("calls", *STORED_TOKENS, "cost_nano")}
        sums["priced_calls"] = row["calls"] - row["unknown_cost_calls"]
        usage.append(PersonUsage(person, groups, Amounts.from_sums(sums)))
    return usage


def _table_row(month: str, columns: tuple[str, ...], row: TotalsRow) -> tuple[str | int | None, ...]:
    names = row.name if row.name is not None else (None,) * len(columns)
    amounts = row.amounts
    tokens = (getattr(amounts, name) for name in _TOKENS)
    cost = amounts.cost_nano if amounts.priced_calls else None
    return (month, *names, row.people, amounts.calls, amounts.calls - amounts.priced_calls, *tokens, cost)


def _count_rows(db: Connection, month: str) -> dict[str, int]:
    counts = {}
    for table in TABLES:
        row = db.execute(f"SELECT count(*) FROM {TOTALS}.{table} WHERE month_utc = %s".encode(), (month,)).fetchone()
        counts[table] = int(row[0]) if row is not None else 0
    return counts
