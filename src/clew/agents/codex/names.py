"""The names that people gave to threads: Codex keeps them beside the rollouts, in a table and in a list."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from clew.agents.backups import is_plain_file
from clew.agents.codex import locate
from clew.derive.titles import short_title
from clew.errors import SourceUnreadable
from clew.io.codec import NOT_JSON, loads
from clew.io.compress import open_source

INDEX = "session_index.jsonl"
DATABASE = "state_5.sqlite"
_LIMIT = 64 << 20
_COPY_LIMIT = 1 << 30
"""Bytes of a database that is being written to; a larger one is not copied."""
_VALUE_LIMIT = 1 << 20
"""Bytes of a value in a table."""
_STEPS, _STEPS_LIMIT = 10_000, 2_000
"""So many steps of the database engine are one count, and so many counts are enough for any table of names."""


class _Names(NamedTuple):
    named: dict[str, str]
    """By the person, in the table."""
    listed: dict[str, str]
    """In the list; the last line of a thread counts."""
    titled: dict[str, str]
    """By Codex, in the table."""


def title_of(path: Path, thread: str, told: str | None) -> str | None:
    """The name of a thread: from the table, the list, the rollout itself, else Codex's own title."""
    home = locate.home_of(path)
    names = _read(home, *_state(home)) if home is not None else _Names({}, {}, {})
    ranks = (names.named.get(thread), names.listed.get(thread), told, names.titled.get(thread))
    return short_title(next((name for name in ranks if name and name.strip()), None))


def _state(home: Path) -> tuple[float, ...]:
    """Changes when one of the files does, so that they are read once."""
    return tuple([_changed(f"{home}/{name}") for name in (INDEX, DATABASE, f"{DATABASE}-wal")])


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime  # noqa: PTH116 - asked three times for each session
    except OSError:
        return 0.0


@lru_cache(16)
def _read(home: Path, *_state: float) -> _Names:
    named, titled = _from_table(home / DATABASE)
    return _Names(named, _from_list(home / INDEX), titled)


def _from_list(path: Path) -> dict[str, str]:
    names: dict[str, str] = {}
    if not is_plain_file(path):
        return names
    try:
        with open_source(path) as stream:
            for line in stream.read(_LIMIT).splitlines():
                try:
                    entry = loads(line)
                except NOT_JSON:
                    continue
                if isinstance(entry, dict) and isinstance(entry.get("id"), str):
                    name = entry.get("thread_name")
                    names[entry["id"]] = name if isinstance(name, str) else ""
    except (OSError, SourceUnreadable):
        return names
    return names


def _from_table(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Names and titles; the database is only looked at, in a copy where it is being written to."""
    if not is_plain_file(path):
        return {}, {}
    try:
        log = path.with_name(f"{path.name}-wal")
        if is_plain_file(log) and log.stat().st_size:
            if path.stat().st_size + log.stat().st_size > _COPY_LIMIT:
                return {}, {}
            import shutil
            import tempfile

            with tempfile.TemporaryDirectory() as folder:
                for file in (path, log):
                    shutil.copy(file, Path(folder) / file.name)
                return _query(f"{(Path(folder) / path.name).as_uri()}")
        return _query(f"{path.absolute().as_uri()}?mode=ro&immutable=1")
    except (OSError, sqlite3.Error):
        return {}, {}


def _query(address: str) -> tuple[dict[str, str], dict[str, str]]:
    with closing(sqlite3.connect(address, uri=True)) as database:
        # The file may come from anywhere: what its schema says is not to be run, nor to fill the memory.
        database.execute("PRAGMA trusted_schema = OFF")
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_LIMIT)
        counts = iter(range(_STEPS_LIMIT))
        database.set_progress_handler(lambda: next(counts, None) is None, _STEPS)
        made = database.execute("SELECT type, sql FROM sqlite_master WHERE lower(name) = 'threads'").fetchone()
        if made is None or made[0] != "table" or str(made[1]).upper().split()[1:2] != ["TABLE"]:
            return {}, {}
        known = {row[1] for row in database.execute("PRAGMA table_info(threads)")}
        return _column(database, "name", known), _column(database, "title", known)


def _column(database: sqlite3.Connection, column: str, known: set[str]) -> dict[str, str]:
    if column not in known:
        return {}
    rows = database.execute(f"SELECT id, {column} FROM threads WHERE {column} IS NOT NULL")
    return {str(thread): name for thread, name in rows if isinstance(name, str) and name}
