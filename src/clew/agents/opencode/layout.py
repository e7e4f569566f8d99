"""Where OpenCode and its relatives keep sessions, and which tables of their database hold them.

Version 1 has one row for each part of a message, version 2 one row for each message. Both write to one file. When
version 2 starts for the first time it copies the sessions of version 1, with their ids, and leaves the old rows
behind. So a session in `session_v2` is read there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from clew.agents.database import Layout, Schema, Table
from clew.host import Host

OTHER_TABLES = frozenset(
    # Credentials.
    "account account_state control_account credential session_share "
    # Settings, projects and the state of the program.
    "permission migration data_migration __drizzle_migrations project_directory workspace kv event_sequence "
    "session_context_epoch kilo_board kilo_board_message sqlite_sequence".split()
)


def data_folder(host: Host, name: str) -> Path:
    """The folder of the database, the same on every system."""
    data = host.env.get("XDG_DATA_HOME")
    return (Path(data) if data else host.home / ".local" / "share") / name


def roots(host: Host, name: str) -> Iterator[Path]:
    """The folders that may hold the database."""
    yield data_folder(host, name)
    database = host.env.get(f"{name.upper()}_DB")
    if database and Path(database).is_absolute():
        yield Path(database).parent


def make_layout(name: str) -> Layout:
    """The layout of a program that calls its database by this name; builds of other channels add theirs."""
    return Layout((f"{name}.db", f"{name}-*.db"), _sessions, _tables, OTHER_TABLES, _version)


def _version(schema: Schema) -> str:
    return "SELECT max(id) FROM migration" if "migration" in schema else "PRAGMA user_version"


def _sessions(schema: Schema) -> str:
    queries = []
    if "session_v2" in schema:
        rows = "FROM session_message m WHERE m.session_id = s.id"
        queries.append(
            f"SELECT s.id AS id, s.time_updated, (SELECT count(*) {rows}), (SELECT max(m.seq) {rows}),"
            f" (SELECT max(m.time_updated) {rows}), NULL, NULL FROM session_v2 s"
        )
    if "session" in schema:
        queries.append(_sessions_of_version_1(schema))
    return " UNION ALL ".join(queries)


def _sessions_of_version_1(schema: Schema) -> str:
    """Each change of a session has a number in the log of events; sessions that were imported have no log."""
    has_log = "event_sequence" in schema
    log = " LEFT JOIN event_sequence e ON e.aggregate_id = s.id" if has_log else ""
    seq = "e.seq" if has_log else "NULL"
    changed = [
        f"CASE WHEN {seq} IS NULL THEN (SELECT max(time_updated) FROM {table} WHERE session_id = s.id) END"
        for table in ("message", "part")
    ]
    counts = [f"(SELECT count(*) FROM {table} WHERE session_id = s.id)" for table in ("part", "message")]
    migrated = " WHERE s.id NOT IN (SELECT id FROM session_v2)" if "session_v2" in schema else ""
    return (
        f"SELECT s.id AS id, s.time_updated, {counts[0]}, {counts[1]}, {seq}, {', '.join(changed)}"
        f" FROM session s{log}{migrated}"
    )


def _tables(schema: Schema) -> Sequence[Table]:
    is_old = " AND :session NOT IN (SELECT id FROM session_v2)" if "session_v2" in schema else ""
    sessions = [name for name in ("session", "session_v2") if name in schema]
    projects = " UNION ".join(f"SELECT project_id FROM {name} WHERE id = :session" for name in sessions)
    parts = Table("part", "WHERE message_id = :parent ORDER BY id")
    # Early versions of the table have no numbers.
    order = "seq" if "seq" in schema.get("session_message", ()) else "time_created, id"
    return (
        Table("session_v2", "WHERE id = :session", is_optional=True),
        Table("session", f"WHERE id = :session{is_old}", is_optional=bool(is_old)),
        Table("project", f"WHERE id IN ({projects})", is_optional=True),
        Table("todo", "WHERE session_id = :session ORDER BY position", is_optional=True),
        Table("message", f"WHERE session_id = :session{is_old} ORDER BY time_created, id", bool(is_old), (parts,)),
        Table("session_message", f"WHERE session_id = :session ORDER BY {order}", is_optional=True),
        Table("session_input", "WHERE session_id = :session ORDER BY admitted_seq", is_optional=True),
        Table("event", f"{_REMOVED_MESSAGES}{is_old} ORDER BY seq", is_optional=True),
    )


def _key(path: str) -> str:
    return f"CASE WHEN json_valid(event.data) THEN json_extract(event.data, '{path}') END"


_REMOVED = (
    "SELECT CASE WHEN json_valid(r.data) THEN json_extract(r.data, '$.messageID') END FROM event r"
    " WHERE r.aggregate_id = :session AND r.type GLOB 'message.removed.*'"
)
_REMOVED_MESSAGES = (
    "WHERE aggregate_id = :session AND (type GLOB 'message.removed.*'"
    f" OR (type GLOB 'message.updated.*' AND {_key('$.info.id')} IN ({_REMOVED}))"
    f" OR (type GLOB 'message.part.updated.*' AND {_key('$.part.messageID')} IN ({_REMOVED})))"
)
"""Rows of the log with messages that were undone: they are nowhere else. The rest of the log is every state of every
part, and is not read."""
