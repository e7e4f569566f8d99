"""Copy a server into a local catalog (rows, text and index), for interfaces that read the catalog.

Each batch is stored as a source whose file is missing, with the name of the batch as its path. So the catalog's own
rule chooses among copies, and it chooses as the server does.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.analysis.usage import TOKEN_FIELDS
from clew.catalog import database, text_index
from clew.catalog.database import transaction
from clew.catalog.dedupe import update_visible_copies
from clew.catalog.ids import packed_uuid
from clew.catalog.lock import locked
from clew.catalog.project_name_rows import update_project_names
from clew.catalog.row_writer import RowWriter
from clew.catalog.rows import Rows
from clew.catalog.schema import KEYS_PER_SOURCE, add_indices
from clew.catalog.text_store import ChunkPacker, SourceTextWriter
from clew.catalog.titles import update_titles
from clew.datadir import data_path
from clew.model.time import spell_time
from clew.warehouse.columns import COPIES, DATA_TABLES, TABLES
from clew.warehouse.postgres.connection import Connection, connect, database_identity, translate_errors
from clew.warehouse.postgres.schema import check_readable
from clew.warehouse.urls import display_server

if TYPE_CHECKING:
    import sqlite3

BATCHES_PER_TRANSACTION = 20
_BATCHES = """
SELECT batch FROM loaded l WHERE EXISTS (SELECT 1 FROM sessions_copies s WHERE s.batch = l.batch) ORDER BY batch
"""
"""Without the rest of sessions whose row was dropped with its month."""
Row = dict[str, Any]


def mirror_folder(url: str) -> Path:
    """The folder of the copy of a server."""
    digest = blake2b(database_identity(url).encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()
    return Path(f"{data_path()}/mirror-{digest}")


def mirror(url: str, folder: Path) -> int:
    """Update the copy of a server. Returns the number of batches that were added or removed."""
    with locked(folder), closing(connect(url, read_only=True)) as server, translate_errors(url):
        check_readable(server, url)
        _remove_unusable(folder)
        db = database.open_writer(folder)
        with closing(db), server.transaction():
            server.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            return _mirror(server, db, folder, display_server(url))


def _remove_unusable(folder: Path) -> None:
    """Remove a copy that is damaged or of another version: it holds nothing that the server does not have."""
    reader = database.open_reader(folder)
    if reader is not None:
        reader.close()
        return
    for path in folder.glob(f"{database.DATABASE}*"):
        path.unlink()
    shutil.rmtree(folder / database.TEXT, ignore_errors=True)


def _mirror(server: Connection, db: sqlite3.Connection, folder: Path, host: str) -> int:
    known = dict(db.execute("SELECT path, id FROM source").fetchall())
    there = [batch for (batch,) in server.execute(_BATCHES).fetchall()]
    new = iter([batch for batch in there if batch not in known])
    gone = [number for batch, number in known.items() if batch not in set(there)]
    count = len(gone)
    with transaction(db):
        for number in gone:
            RowWriter(db).delete_source(number)
    while portion := list(islice(new, BATCHES_PER_TRANSACTION)):
        with transaction(db):
            _add(server, db, portion, host)
        count += len(portion)
    with transaction(db):
        update_titles(db)
    if count:
        with transaction(db):
            add_indices(db)
            update_visible_copies(db)
    with transaction(db):
        update_project_names(db)
    text_index.update(db, folder)
    return count


def _add(server: Connection, db: sqlite3.Connection, batches: list[str], host: str) -> None:
    found = {name: _grouped(server, name, batches) for name in DATA_TABLES}
    writer = RowWriter(db)
    for batch in batches:
        tables = {name: groups.get(batch, []) for name, groups in found.items()}
        for session in tables["sessions"]:
            query = "INSERT INTO source VALUES (NULL, ?, ?, 'gone', ?, 0, 0, 0, x'', ?, ?, '[]')"
            size = sum(len(block["text"]) for block in tables["blocks"])
            notes = json.dumps({"parts": [], "sides": [], "origin": None})
            number = db.execute(query, (batch, session["agent"], size, host, notes)).lastrowid
            assert number is not None
            rows = _rows(tables, number * KEYS_PER_SOURCE)
            writer.write(rows)
            writer.write_session(number, _session(session, tables))
            _write_text(db, number, rows)


def _write_text(db: sqlite3.Connection, source: int, rows: Rows) -> None:
    writer = SourceTextWriter(db, source)
    packer = ChunkPacker(lambda chunk: writer.write([chunk]))
    for text in rows.texts:
        packer.add(*text)
    packer.flush()


def _grouped(server: Connection, name: str, batches: list[str]) -> dict[str, list[Row]]:
    table = TABLES[name]
    query = f"SELECT {', '.join(table.names)} FROM {name}{COPIES} WHERE batch = ANY(%s) ORDER BY {', '.join(table.key)}"
    groups: dict[str, list[Row]] = {}
    for values in server.execute(query.encode(), (batches,)).fetchall():
        row = dict(zip(table.names, values, strict=True))
        groups.setdefault(row["batch"], []).append(row)
    return groups


def _rows(tables: dict[str, list[Row]], base: int) -> Rows:
    """The rows of the catalog. Strings are not yet interned."""
    rows = Rows()
    places = {message["event_id"]: base + message["seq"] for message in reversed(tables["messages"])}

    def at(seq: int) -> int:
        return base + seq if seq else 0

    rows.messages = [
        (
            *(base + one["seq"], 1, bytes.fromhex(one["event_id"]), packed_uuid(one["native_uuid"])),
            *(bytes.fromhex(one["parent_event_id"]), one["ts_us"], one["gap_us"], one["kind"], one["role"]),
            *(one["model"], one["git_branch"], one["is_sidechain"] | one["is_meta"] << 1, one["text_chars"]),
        )
        for one in tables["messages"]
    ]
    rows.blocks = [
        (base + one["number"], at(one["seq"]), one["idx"], one["type"], one["kind"], len(one["text"]), one["call_id"])
        for one in tables["blocks"]
    ]
    rows.texts = [
        (base + one["number"], one["kind"], one["ts_us"], one["text"]) for one in tables["blocks"] if one["text"]
    ]
    rows.calls = [
        [
            *(base + one["number"], one["call_id"], at(one["seq"]), places.get(one["result_event_id"], 0)),
            *(one["name"], one["is_error"], one["ts_us"], one["duration_us"]),
        ]
        for one in tables["tool_calls"]
    ]
    rows.uses = list(_uses(tables["usage"], base))
    rows.changes = [
        (base + one["number"], at(one["seq"]), one["path"], one["op"], one["lines_added"], one["lines_removed"])
        for one in tables["file_changes"]
    ]
    rows.todos = [
        (base + one["number"], at(one["seq"]), one["idx"], one["content"], one["status"]) for one in tables["todos"]
    ]
    return rows


def _uses(uses: Iterable[Row], base: int) -> Iterator[tuple[Any, ...]]:
    for one in uses:
        message = base + one["seq"] if one["seq"] else 0
        name = bytes.fromhex(one["usage_id"])
        counts = (one[count] for count in TOKEN_FIELDS)
        yield (base + one["number"], 1, name, message, one["model"], one["git_branch"], one["ts_us"], *counts)


_SESSION = (
    "session_id agent native_id parent_session_id is_agent_session title project git_branch agent_version started_us "
    "ended_us message_count turn_count error_count active_us"
).split()


def _session(session: Row, tables: dict[str, list[Row]]) -> tuple[Any, ...]:
    """The row of a session, with the fields of its header that the server has."""
    header = {
        "id": session["native_id"],
        "title": session["title"] or None,
        "workspace": session["workspace"] or None,
        "workspace_encoded": None,
        "project": session["project"] or None,
        "git_branch": session["git_branch"] or None,
        "models": list(dict.fromkeys(one["model"] for one in tables["messages"] if one["model"])),
        "tools": list(dict.fromkeys(one["name"] for one in tables["tool_calls"] if one["name"])),
        "started_at": _time(session["started_us"]),
        "ended_at": _time(session["ended_us"]),
        "messages": session["message_count"],
        "has_errors": session["error_count"] > 0,
        "has_thinking": any(one["type"] == "thinking" for one in tables["blocks"]),
        "starts_subagents": bool(session["has_subagent_records"]),
        "is_agent_session": bool(session["is_agent_session"]),
    }
    return 1, *(session[name] for name in _SESSION), json.dumps(header, ensure_ascii=False)


def _time(microseconds: int) -> str | None:
    return spell_time(datetime.fromtimestamp(microseconds / 1_000_000, UTC)) if microseconds else None
