"""Where Goose keeps its sessions, and which tables of its database hold them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from clew.agents.database import Layout, Schema, Table
from clew.host import Host

AGENT = "goose"
FILE_NAME = "sessions.db"
FOLDER = Path(".local", "share", "goose", "sessions")
CONVERTED_KEY = "clew.v0"
"""The key in `extension_data` of a session that clew wrote and the client imported. It holds the id that the session
has in clew, since the client gives it another one."""
OTHER_TABLES = frozenset(
    "schema_version sqlite_sequence provider_inventory_entries provider_inventory_models "
    # Created by schema 10; the client of schema 13 neither reads nor writes them.
    "threads thread_messages".split()
)


def roots(host: Host) -> Iterator[Path]:
    """The folders that may hold the database. macOS has it in one of two places, depending on the version."""
    if configured := host.env.get("GOOSE_PATH_ROOT"):
        yield Path(configured) / "data" / "sessions"
    data = host.env.get("XDG_DATA_HOME")
    yield Path(data) / "goose" / "sessions" if data else host.home / FOLDER
    yield host.home / "Library" / "Application Support" / "Block" / "goose" / "sessions"
    yield host.home / "AppData" / "Roaming" / "Block" / "goose" / "data" / "sessions"


def _version(schema: Schema) -> str:
    return "SELECT max(version) FROM schema_version" if "schema_version" in schema else "PRAGMA user_version"


def _sessions(schema: Schema) -> str:
    """A message is changed in place only while it is the last one, or together with `updated_at`."""
    if not {"sessions", "messages"} <= schema.keys():
        return ""
    of_session = "WHERE session_id = s.id"
    columns = ["id", "length(content_json)"]
    if "metadata_json" in schema["messages"]:
        columns.append("length(metadata_json)")
    last = [f"(SELECT {column} FROM messages {of_session} ORDER BY id DESC LIMIT 1)" for column in columns]
    requests = f"(SELECT count(*) FROM usage_ledger {of_session})" if "usage_ledger" in schema else "0"
    return (
        f"SELECT {_identity('s')} AS id, CAST(strftime('%s', s.updated_at) AS INTEGER) * 1000,"
        f" (SELECT count(*) FROM messages {of_session}), {requests}, s.updated_at, {', '.join(last)} FROM sessions s"
    )


def _converted_id(table: str) -> str:
    """SQL for the id that a converted session has in clew; NULL for any other session."""
    path = f"""'$."{CONVERTED_KEY}".session'"""
    return f"CASE WHEN json_valid({table}.extension_data) THEN json_extract({table}.extension_data, {path}) END"


def _identity(table: str) -> str:
    """SQL for the id of a session in clew: that of the conversion, unless another session has it.

    The file may have been imported several times, the client may have copied the session, and a session that was
    restored may still be there.
    """
    own = _converted_id(table)
    earlier = f"(e.rowid < {table}.rowid AND {_converted_id('e')} = {own})"
    taken = f"EXISTS (SELECT 1 FROM sessions e WHERE e.id = {own} OR {earlier})"
    return f"CASE WHEN {own} IS NULL OR {taken} THEN {table}.id ELSE {own} END"


_NATIVE_ID = (
    "coalesce((SELECT id FROM sessions WHERE id = :session),"
    f" (SELECT s.id FROM sessions s WHERE {_identity('s')} = :session))"
)


def _tables(_schema: Schema) -> Sequence[Table]:
    return (
        Table("sessions", f"WHERE id = {_NATIVE_ID}"),
        Table("usage_ledger", f"WHERE session_id = {_NATIVE_ID} ORDER BY id", is_optional=True),
        Table("messages", f"WHERE session_id = {_NATIVE_ID} ORDER BY created_timestamp, id"),
    )


LAYOUT = Layout((FILE_NAME,), _sessions, _tables, OTHER_TABLES, _version)
