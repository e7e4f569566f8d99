"""clew sql: questions to the catalog, in SQL."""

from __future__ import annotations

import csv
import re
import sqlite3
from collections.abc import Iterator
from typing import Any

import click

from clew.cli.options import common, open_library, wants_json
from clew.cli.output import CsvOutput, print_line, print_message, print_table
from clew.cli.redaction import Redaction, redacting_on_demand, redaction
from clew.errors import SourceUnreadable, UsageError

_KEY_BYTES = 32
"""Longest key or hash in the catalog."""
_SHOWN = 1000
"""Rows of a table; JSON and CSV give all."""


@click.command("sql")
@click.argument("query", metavar="QUERY")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@redacting_on_demand
@common
@click.pass_context
def command(context: click.Context, /, query: str, as_csv: bool, homes: tuple[str, ...], as_json: bool) -> int:
    """Query the catalog with SQL, read-only. With --json, one row per line.

    Tables: sessions, messages, blocks, tool_calls, usage, usage_days, file_changes, todos, sources. The catalog is not
    updated first: run `clew sync` before. Values are printed unmasked unless --redact is given; it masks each value by
    itself, so a secret that the query cut or encoded may not be recognized.
    """
    from clew.catalog import database
    from clew.catalog.change_detection import unread_messages_warning

    folder = open_library(context, homes).catalog_folder
    db = database.open_reader(folder)
    if db is None:
        raise SourceUnreadable("there is no catalog yet; run `clew sync`")
    if warning := unread_messages_warning(db):
        print_message(f"clew: {warning}", mask=False)
    db.set_authorizer(_only_reading)
    # SQLite calls back into Python regularly, so that Ctrl-C can stop a query.
    db.set_progress_handler(lambda: 0, _STEPS)
    try:
        cursor = db.execute(query)
        masking = redaction(context, for_programs=True)
        # A column without a name is named after its expression in the query.
        names = [masking.text(column[0]) for column in cursor.description or ()]
        return _print(names, iter(cursor), as_csv, wants_json(context, as_json), masking)
    except (sqlite3.Error, sqlite3.Warning) as error:
        if str(error) == "interrupted":
            raise KeyboardInterrupt from None
        raise UsageError(f"{error}{_suggestion(db, query, str(error))}") from error
    finally:
        db.close()


_STEPS = 100_000
_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
_PRAGMAS = ("table_info", "table_xinfo", "table_list", "index_list", "index_info")


def _suggestion(db: sqlite3.Connection, query: str, error: str) -> str:
    """Tables or columns that an unknown name may have meant, to be added to the error of SQLite."""
    from difflib import get_close_matches

    unknown = re.fullmatch(r"no such (table|column): (?:.*\.)?(.+)", error, re.DOTALL)
    if unknown is None:
        return ""
    kind, name = unknown.groups()
    tables = {
        table: [column for _, column, *_ in db.execute(f"PRAGMA table_info({table})")]
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'view' ORDER BY name")
    }
    words = set(re.findall(r"\w+", query.lower()))
    named = {table: columns for table, columns in tables.items() if table in words}
    if kind == "table" or not named:
        known, where = list(tables), "tables"
    else:
        known, where = [column for columns in named.values() for column in columns], f"columns of {', '.join(named)}"
    if similar := get_close_matches(name.lower(), dict.fromkeys(known), cutoff=0.5):
        return f"; did you mean {' or '.join(similar)}?"
    return f"; {where}: {', '.join(dict.fromkeys(known))}"


def _only_reading(action: int, first: str | None, second: str | None, *_: Any) -> int:
    """Refuse everything but questions: the file is opened for reading, and no other can be attached."""
    if action == sqlite3.SQLITE_FUNCTION and second == "load_extension":
        return sqlite3.SQLITE_DENY
    if action in _ALLOWED or (action == sqlite3.SQLITE_PRAGMA and first in _PRAGMAS):
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _print(names: list[str], rows: Iterator[tuple[Any, ...]], as_csv: bool, as_json: bool, masking: Redaction) -> int:
    if not (as_csv or as_json):
        return 0 if _print_table(names, rows, masking) else 1
    is_empty = True
    writer = csv.writer(CsvOutput())
    if as_csv:
        writer.writerow(names)
    for row in rows:
        is_empty = False
        cells = [_plain(cell, masking) for cell in row]
        if as_csv:
            writer.writerow(cells)
        else:
            print_line(dict(zip(names, cells, strict=True)))
    return int(is_empty)


def _print_table(names: list[str], rows: Iterator[tuple[Any, ...]], masking: Redaction) -> int:
    from itertools import islice

    from clew.render.tables import Column

    cells = list(islice(rows, _SHOWN))
    numbers = [all(isinstance(row[at], int | float) for row in cells) for at in range(len(names))]
    columns = [Column(name, right=right, flexible=not right) for name, right in zip(names, numbers, strict=True)]
    shown = [["" if cell is None else str(_plain(cell, masking)) for cell in row] for row in cells]
    print_table(columns, shown, None)
    if next(rows, None) is not None:
        print_message(f"clew: only {_SHOWN} rows are shown; --csv and --json print all")
    return len(cells)


def _plain(value: Any, masking: Redaction) -> Any:
    """A cell as it is printed. Bytes are printed in hex, unless they are a text in which something is masked.

    If masking is on, longer binary values, such as compressed texts, are masked because they cannot be searched.
    """
    if isinstance(value, str):
        return masking.value(value)
    if not isinstance(value, bytes):
        return value
    if not masking.is_on:
        return value.hex()
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return value.hex() if len(value) <= _KEY_BYTES else masking.redactor(counted=False).mask_unscanned()
    masked = masking.text(text)
    return value.hex() if masked == text else masked
