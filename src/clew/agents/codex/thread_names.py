"""The names of threads, which Codex keeps in a database and in a list, apart from the rollouts."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from functools import lru_cache
from pathlib import Path

from clew.agents.backups import is_plain_file
from clew.agents.codex import locate
from clew.analysis.titles import short_title
from clew.errors import SourceUnreadable
from clew.io.codec import NOT_JSON, loads
from clew.io.compress import open_source

DATABASE = "state_5.sqlite"
_LIST_BYTES = 64 << 20
_MAX_COPY_BYTES = 1 << 30
"""Bytes of a database that is being written to; a larger one is not copied."""
_MAX_VALUE_BYTES = 1 << 20
"""Bytes of a value in a table."""
_STEPS, _STEPS_LIMIT = 10_000, 2_000
"""So many steps of the database engine are one count, and so many counts are enough for any table of names."""

Names = dict[str, str]
"""The names of threads by their ids; the last line of a list counts."""


def thread_title(path: Path, thread: str, in_rollout: str | None) -> str | None:
    """The name of a thread: from the table, the list, the rollout itself, else Codex's own title."""
    home = locate.home_of(path)
    named: Names = {}
    listed: Names = {}
    titled: Names = {}
    if home is not None:
        changed = [_changed(f"{home}/{name}") for name in (locate.THREAD_INDEX, DATABASE, f"{DATABASE}-wal")]
        named, listed, titled = _read_names(home, *changed)
    ranks = (named.get(thread), listed.get(thread), in_rollout, titled.get(thread))
    return short_title(next((name for name in ranks if name and name.strip()), None))


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime  # noqa: PTH116 - asked three times for each session
    except OSError:
        return 0.0


@lru_cache(16)
def _read_names(home: Path, *_changed: float) -> tuple[Names, Names, Names]:
    """Names that the person gave, those in the list, and titles by Codex; read anew when one of the files changes."""
    named, titled = _from_table(home / DATABASE)
    return named, _from_list(home / locate.THREAD_INDEX), titled


def _from_list(path: Path) -> Names:
    names: Names = {}
    if not is_plain_file(path):
        return names
    try:
        with open_source(path) as stream:
            for line in stream.read(_LIST_BYTES).splitlines():
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


def _from_table(path: Path) -> tuple[Names, Names]:
    """Names and titles; the database is only looked at, in a copy where it is being written to."""
    if not is_plain_file(path):
        return {}, {}
    try:
        log = path.with_name(f"{path.name}-wal")
        if is_plain_file(log) and log.stat().st_size:
            if path.stat().st_size + log.stat().st_size > _MAX_COPY_BYTES:
                return {}, {}
            with tempfile.TemporaryDirectory() as folder:
                for file in (path, log):
                    shutil.copy(file, Path(folder) / file.name)
                return _query(f"{(Path(folder) / path.name).as_uri()}")
        return _query(f"{path.absolute().as_uri()}?mode=ro&immutable=1")
    except (OSError, sqlite3.Error):
        return {}, {}


def _query(address: str) -> tuple[Names, Names]:
    with closing(sqlite3.connect(address, uri=True)) as database:
        # The file may come from anywhere: what its schema says is not to be run, nor to fill the memory.
        database.execute("PRAGMA trusted_schema = OFF")
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
        counts = iter(range(_STEPS_LIMIT))
        database.set_progress_handler(lambda: next(counts, None) is None, _STEPS)
        made = database.execute("SELECT type, sql FROM sqlite_master WHERE lower(name) = 'threads'").fetchone()
        if made is None or made[0] != "table" or str(made[1]).upper().split()[1:2] != ["TABLE"]:
            return {}, {}
        known = {row[1] for row in database.execute("PRAGMA table_info(threads)")}
        found: list[Names] = []
        for column in ("name", "title"):
            rows = database.execute(f"SELECT id, {column} FROM threads") if column in known else ()
            found.append({str(thread): name for thread, name in rows if isinstance(name, str) and name})
        return found[0], found[1]
