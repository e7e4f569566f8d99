"""The session object of a rollout: identity, folder, title, lineage, and links to sub-agents.

People name threads; Codex keeps the names beside the rollouts, in a database and in a list.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from functools import lru_cache
from pathlib import Path

from clew.agents.backups import is_plain_file
from clew.agents.base import SourceFile
from clew.agents.codex import locate
from clew.agents.codex.events import session_id
from clew.agents.codex.items import request_of
from clew.agents.codex.records import EVENT_LINE
from clew.analysis.facts import Facts
from clew.analysis.titles import short_title
from clew.errors import SourceUnreadable
from clew.io.codec import NOT_JSON, loads
from clew.io.compress import open_source
from clew.model.json import JSON
from clew.model.time import parse_time, spell_time

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


def session_object(source: SourceFile, facts: Facts) -> dict[str, JSON]:
    """The `session` of the unified document."""
    extra = facts.extra
    thread, started_at = extra.get("claimed"), _shortest(extra.get("started_at"))
    session: dict[str, JSON] = {
        "id": session_id(source, thread),
        "workspace": facts.cwd or "",
        "workspace_encoded": locate.filed_under(source.path),
        "started_at": facts.first_time or started_at,
        "ended_at": facts.last_time or _shortest(extra.get("last_record_time")) or started_at,
        "source": {"type": "local", "host": None, "path": str(source.path)},
        "is_agent_session": extra.get("is_subagent", False),
        "parent_session_id": extra.get("parent_session_id"),
        "agent_id": extra.get("agent_id"),
    }
    named = _thread_title(source.path, thread or session_id(source, None), facts.titles.get(EVENT_LINE))
    title = named or short_title(request_of(facts.first_prompt))
    if title is not None:
        session["title"] = title
    if facts.subagents:
        session["subagents"] = [
            {"session_id": link.session_id, "agent_id": link.agent_id, "tool_id": link.tool_id}
            for link in facts.subagents
        ]
    if "extensions" in extra:
        session["extensions"] = extra["extensions"]
    return session


def _shortest(time: JSON) -> str | None:
    """A time without zeros behind its seconds."""
    stamp = parse_time(time)
    return spell_time(stamp) if stamp is not None else None


def _thread_title(path: Path, thread: str, in_rollout: str | None) -> str | None:
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
