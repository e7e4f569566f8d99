"""The tables of the catalog, with small integers as keys, and the views that statistics and `clew sql` query.

The key of a row contains its source: `source * KEYS_PER_SOURCE + number`. So processes can assign keys independently,
and the rows of a source are one range, which can be deleted. A source holds one session, so a session has the key of
its source. A message that several files repeat has a row for each of them, of which one is visible.
"""

from __future__ import annotations

from clew.catalog.portable_sql import CACHE_5M_TOKENS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

VERSION = 20
"""Of the tables and what is written into them. A catalog of another version is rebuilt."""
KEYS_PER_SOURCE = 1 << 26
"""How many rows of a kind one source may have."""
SESSION_BLOCKS = KEYS_PER_SOURCE // 2
"""Blocks of the session as a whole (title, names of files) are numbered from here, so that appended messages do not
change the keys of others."""
DAY_US = 86_400_000_000
QUARTER_HOUR_US = 900_000_000
"""Sums are kept for each quarter of an hour: in every zone of today, a day begins with one."""
APPLICATION = 0x636C6577
"""The `application_id` of the database: "clew" in ASCII."""

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;

CREATE TABLE watched_folder (path TEXT PRIMARY KEY, mtime_ns INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE source (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, agent TEXT NOT NULL, state TEXT NOT NULL,
  size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
  fingerprint BLOB NOT NULL, host TEXT NOT NULL, source_json TEXT NOT NULL, problems TEXT NOT NULL
);

CREATE INDEX source_signature ON source (id, path, size, mtime_ns, ctime_ns, inode, state, problems);

CREATE TABLE side_file (
  path TEXT NOT NULL, owner INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, size INTEGER NOT NULL,
  PRIMARY KEY (path, owner)
) WITHOUT ROWID;

CREATE TABLE needs_dedupe (source INTEGER PRIMARY KEY);

CREATE TABLE unread_messages (source INTEGER PRIMARY KEY);

CREATE TABLE orphaned_key (key BLOB PRIMARY KEY) WITHOUT ROWID;

CREATE TABLE session (
  id INTEGER PRIMARY KEY, is_visible INTEGER NOT NULL, session_id TEXT NOT NULL, agent TEXT NOT NULL,
  native_id TEXT NOT NULL, parent_session_id TEXT NOT NULL, is_agent_session INTEGER NOT NULL, title TEXT NOT NULL,
  project TEXT NOT NULL, git_branch TEXT NOT NULL, agent_version TEXT NOT NULL, started_us INTEGER NOT NULL,
  ended_us INTEGER NOT NULL, message_count INTEGER NOT NULL, turn_count INTEGER NOT NULL,
  error_count INTEGER NOT NULL, active_us INTEGER NOT NULL, header TEXT NOT NULL,
  message_uuids BLOB NOT NULL DEFAULT x''
);
CREATE INDEX session_by_id ON session (session_id);
CREATE INDEX session_hidden ON session (session_id) WHERE is_visible = 0;

CREATE TABLE string (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);

CREATE TABLE day (id INTEGER PRIMARY KEY, day_utc TEXT NOT NULL, week_utc TEXT NOT NULL, month_utc TEXT NOT NULL);

CREATE TABLE message (
  id INTEGER PRIMARY KEY, is_visible INTEGER NOT NULL, event BLOB NOT NULL, uuid NOT NULL, parent BLOB NOT NULL,
  ts_us INTEGER NOT NULL, gap_us INTEGER NOT NULL, kind INTEGER NOT NULL, role INTEGER NOT NULL,
  model INTEGER NOT NULL, git_branch INTEGER NOT NULL, flags INTEGER NOT NULL, text_chars INTEGER NOT NULL
);

CREATE TABLE block (
  id INTEGER PRIMARY KEY, message INTEGER NOT NULL, idx INTEGER NOT NULL, type INTEGER NOT NULL,
  kind INTEGER NOT NULL, chars INTEGER NOT NULL, call_id TEXT NOT NULL
);

CREATE TABLE call (
  id INTEGER PRIMARY KEY, call_id TEXT NOT NULL, message INTEGER NOT NULL, result INTEGER NOT NULL,
  name INTEGER NOT NULL, is_error INTEGER NOT NULL, ts_us INTEGER NOT NULL, duration_us INTEGER NOT NULL
);

CREATE TABLE credential_call (id INTEGER PRIMARY KEY);

CREATE TABLE token_usage (
  id INTEGER PRIMARY KEY, is_visible INTEGER NOT NULL, usage_id BLOB NOT NULL, message INTEGER NOT NULL,
  model INTEGER NOT NULL, git_branch INTEGER NOT NULL, ts_us INTEGER NOT NULL, input_tokens INTEGER,
  output_tokens INTEGER, cache_creation_tokens INTEGER, cache_read_tokens INTEGER, cache_creation_5m_tokens INTEGER,
  cache_creation_1h_tokens INTEGER, reasoning_tokens INTEGER, cost_nano INTEGER NOT NULL, is_priced INTEGER NOT NULL
);

CREATE TABLE recorded_usage (
  id INTEGER PRIMARY KEY, input_tokens INTEGER, output_tokens INTEGER, cache_creation_tokens INTEGER,
  cache_read_tokens INTEGER, cache_creation_5m_tokens INTEGER, cache_creation_1h_tokens INTEGER,
  reasoning_tokens INTEGER
);

CREATE TABLE usage_by_quarter_hour (
  source INTEGER NOT NULL, quarter_hour INTEGER NOT NULL, model INTEGER NOT NULL, git_branch INTEGER NOT NULL,
  calls INTEGER NOT NULL, priced_calls INTEGER NOT NULL, input_tokens INTEGER, output_tokens INTEGER,
  cache_read_tokens INTEGER, cache_creation_5m_tokens INTEGER, cache_creation_1h_tokens INTEGER,
  reasoning_tokens INTEGER, cost_nano INTEGER NOT NULL, min_ts_us INTEGER NOT NULL, max_ts_us INTEGER NOT NULL,
  PRIMARY KEY (source, quarter_hour, model, git_branch)
) WITHOUT ROWID;

CREATE TABLE change (
  id INTEGER PRIMARY KEY, message INTEGER NOT NULL, path TEXT NOT NULL, op INTEGER NOT NULL,
  lines_added INTEGER, lines_removed INTEGER
);

CREATE TABLE tools_by_quarter_hour (
  source INTEGER NOT NULL, quarter_hour INTEGER NOT NULL, name INTEGER NOT NULL, tool_calls INTEGER NOT NULL,
  tool_errors INTEGER NOT NULL, tool_us INTEGER NOT NULL, longest_us INTEGER NOT NULL,
  PRIMARY KEY (source, quarter_hour, name)
) WITHOUT ROWID;

CREATE TABLE turns_by_quarter_hour (
  source INTEGER NOT NULL, quarter_hour INTEGER NOT NULL, turns INTEGER NOT NULL, PRIMARY KEY (source, quarter_hour)
) WITHOUT ROWID;

CREATE TABLE changes_by_quarter_hour (
  source INTEGER NOT NULL, quarter_hour INTEGER NOT NULL, path TEXT NOT NULL, lines_added INTEGER,
  lines_removed INTEGER, PRIMARY KEY (source, quarter_hour, path)
) WITHOUT ROWID;

CREATE TABLE todo (
  id INTEGER PRIMARY KEY, message INTEGER NOT NULL, idx INTEGER NOT NULL, content TEXT NOT NULL, status TEXT NOT NULL
);

CREATE TABLE commit_mention (
  id INTEGER PRIMARY KEY, message INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, subject TEXT NOT NULL,
  started_us INTEGER NOT NULL, ended_us INTEGER NOT NULL
);
"""

STRING_COLUMNS = {
    "message": ("kind", "role", "model", "git_branch"),
    "block": ("type", "kind"),
    "call": ("name",),
    "token_usage": ("model", "git_branch"),
    "change": ("op",),
    "usage_by_quarter_hour": ("model", "git_branch"),
    "tools_by_quarter_hour": ("name",),
}
"""The columns of each table that refer to the table `string`."""
_INDICES = {"message": ("message_by_event", "event"), "token_usage": ("usage_by_id", "usage_id")}
"""The index of each table that finds copies, and its column."""

TEXT_TABLES = """
CREATE TABLE text_chunk (
  first INTEGER PRIMARY KEY, last INTEGER NOT NULL, packed BLOB NOT NULL, fingerprint BLOB NOT NULL
);

CREATE TABLE unindexed_text (first INTEGER PRIMARY KEY);

CREATE TABLE removed_text (first INTEGER PRIMARY KEY, last INTEGER NOT NULL);
"""
"""The stored text in compressed chunks: of the blocks `first` to `last`, all of one source. The fingerprint is of all
that the text index holds of a chunk: texts, kinds and times. `unindexed_text` names chunks that are not in the text
index, or differently; `removed_text` names ranges of blocks that may be in it, and whose chunks are gone."""

_SOURCE = f"id / {KEYS_PER_SOURCE} AS source"
_QUARTER_HOUR = f"ts_us / {QUARTER_HOUR_US} AS quarter_hour"
SIDECHAIN_FLAG, META_FLAG = 1, 2
"""Bits of `message.flags`."""
_IS_TURN = f"m.is_visible = 1 AND k.text = 'user' AND m.flags & {SIDECHAIN_FLAG} = 0 AND s.is_agent_session = 0"
SUMS = {
    "usage_by_quarter_hour": f"""
INSERT INTO usage_by_quarter_hour
SELECT u.{_SOURCE}, u.{_QUARTER_HOUR}, u.model, u.git_branch, count(*),
  sum(u.is_priced), sum(u.input_tokens), sum(u.output_tokens), sum(u.cache_read_tokens), sum({CACHE_5M_TOKENS}),
  sum(u.cache_creation_1h_tokens), sum(u.reasoning_tokens), sum(u.cost_nano), min(u.ts_us), max(u.ts_us)
FROM token_usage u WHERE u.is_visible = 1 AND u.id BETWEEN ? AND ? GROUP BY source, quarter_hour, u.model, u.git_branch
""",
    "tools_by_quarter_hour": f"""
INSERT INTO tools_by_quarter_hour
SELECT c.{_SOURCE}, c.{_QUARTER_HOUR}, c.name, count(*), sum(c.is_error), sum(c.duration_us), max(c.duration_us)
FROM call c JOIN message m ON m.id = c.message WHERE m.is_visible = 1 AND c.id BETWEEN ? AND ?
GROUP BY source, quarter_hour, c.name
""",
    "turns_by_quarter_hour": f"""
INSERT INTO turns_by_quarter_hour
SELECT m.{_SOURCE}, m.{_QUARTER_HOUR}, count(*)
FROM message m JOIN session s ON s.id = m.id / {KEYS_PER_SOURCE} JOIN string k ON k.id = m.kind
WHERE {_IS_TURN} AND m.id BETWEEN ? AND ? GROUP BY source, quarter_hour
""",
    "changes_by_quarter_hour": f"""
INSERT INTO changes_by_quarter_hour
SELECT c.{_SOURCE}, m.{_QUARTER_HOUR}, c.path, sum(c.lines_added), sum(c.lines_removed)
FROM change c JOIN message m ON m.id = c.message WHERE m.is_visible = 1 AND c.id BETWEEN ? AND ?
GROUP BY source, quarter_hour, c.path
""",
}
"""The tables of sums, and the statement that computes each for a range of keys."""

VIEWS = f"""
CREATE VIEW sessions AS SELECT
  s.session_id, s.agent, s.native_id, s.parent_session_id, s.is_agent_session, s.title,
  coalesce(json_extract(s.header, '$.workspace'), '') AS workspace, s.project, s.git_branch, s.agent_version,
  s.started_us, s.ended_us, d.day_utc, s.message_count, s.turn_count, s.error_count, s.active_us,
  json_extract(s.header, '$.has_subagent_records') AS has_subagent_records,
  f.path AS source_path, f.host AS source_host, f.state
FROM session s LEFT JOIN source f ON f.id = s.id LEFT JOIN day d ON d.id = s.started_us / {DAY_US}
WHERE s.is_visible = 1;

CREATE VIEW messages AS SELECT
  lower(hex(m.event)) AS event_id, s.session_id,
  CASE typeof(m.uuid) WHEN 'blob' THEN lower(substr(hex(m.uuid), 1, 8) || '-' || substr(hex(m.uuid), 9, 4) || '-' ||
    substr(hex(m.uuid), 13, 4) || '-' || substr(hex(m.uuid), 17, 4) || '-' || substr(hex(m.uuid), 21))
    ELSE m.uuid END AS native_uuid,
  lower(hex(m.parent)) AS parent_event_id, m.id % {KEYS_PER_SOURCE} AS seq, m.ts_us, d.day_utc, m.gap_us,
  k.text AS kind, r.text AS role, o.text AS model, b.text AS git_branch,
  m.flags & {SIDECHAIN_FLAG} != 0 AS is_sidechain, m.flags & {META_FLAG} != 0 AS is_meta, m.text_chars
FROM message m JOIN session s ON s.id = m.id / {KEYS_PER_SOURCE} LEFT JOIN day d ON d.id = m.ts_us / {DAY_US}
  LEFT JOIN string k ON k.id = m.kind LEFT JOIN string r ON r.id = m.role LEFT JOIN string o ON o.id = m.model
  LEFT JOIN string b ON b.id = m.git_branch
WHERE m.is_visible = 1;

CREATE VIEW blocks AS SELECT
  lower(hex(m.event)) AS event_id, b.idx, t.text AS type, k.text AS kind, b.chars, b.call_id
FROM block b JOIN message m ON m.id = b.message LEFT JOIN string t ON t.id = b.type LEFT JOIN string k ON k.id = b.kind
WHERE m.is_visible = 1;

CREATE VIEW tool_calls AS SELECT
  c.call_id, s.session_id, lower(hex(m.event)) AS event_id, coalesce(lower(hex(a.event)), '') AS result_event_id,
  s.agent, s.project, n.text AS name, c.is_error, c.ts_us, d.day_utc, c.duration_us
FROM call c JOIN message m ON m.id = c.message JOIN session s ON s.id = c.id / {KEYS_PER_SOURCE}
  LEFT JOIN message a ON a.id = c.result LEFT JOIN string n ON n.id = c.name
  LEFT JOIN day d ON d.id = c.ts_us / {DAY_US}
WHERE m.is_visible = 1;

CREATE VIEW turns AS SELECT
  lower(hex(m.event)) AS event_id, s.session_id, s.agent, s.project, m.ts_us, d.day_utc
FROM message m JOIN session s ON s.id = m.id / {KEYS_PER_SOURCE} JOIN string k ON k.id = m.kind
  LEFT JOIN day d ON d.id = m.ts_us / {DAY_US}
WHERE {_IS_TURN};

CREATE VIEW usage AS SELECT
  lower(hex(u.usage_id)) AS usage_id, s.session_id, coalesce(lower(hex(m.event)), '') AS event_id, s.agent,
  o.text AS model, s.project, b.text AS git_branch, u.ts_us, d.day_utc, d.week_utc, d.month_utc, u.input_tokens,
  u.output_tokens, u.cache_read_tokens, {CACHE_5M_TOKENS} AS cache_creation_5m_tokens, u.cache_creation_1h_tokens,
  u.reasoning_tokens, u.cost_nano, u.is_priced
FROM token_usage u JOIN session s ON s.id = u.id / {KEYS_PER_SOURCE} LEFT JOIN message m ON m.id = u.message
  LEFT JOIN string o ON o.id = u.model LEFT JOIN string b ON b.id = u.git_branch LEFT JOIN day d
  ON d.id = u.ts_us / {DAY_US}
WHERE u.is_visible = 1;

CREATE VIEW usage_days AS SELECT
  s.session_id, s.agent, o.text AS model, s.project, b.text AS git_branch, d.day_utc, d.week_utc, d.month_utc, t.calls,
  t.priced_calls, t.input_tokens, t.output_tokens, t.cache_read_tokens, t.cache_creation_5m_tokens,
  t.cache_creation_1h_tokens, t.reasoning_tokens, t.cost_nano, t.min_ts_us, t.max_ts_us,
  t.quarter_hour * {QUARTER_HOUR_US} AS quarter_hour_us
FROM usage_by_quarter_hour t JOIN session s ON s.id = t.source LEFT JOIN string o ON o.id = t.model
  LEFT JOIN string b ON b.id = t.git_branch LEFT JOIN day d ON d.id = t.quarter_hour * {QUARTER_HOUR_US} / {DAY_US};

CREATE VIEW file_changes AS SELECT
  lower(hex(m.event)) AS event_id, s.session_id, s.agent, s.project, c.path, o.text AS op, c.lines_added,
  c.lines_removed, m.ts_us, d.day_utc
FROM change c JOIN message m ON m.id = c.message JOIN session s ON s.id = c.id / {KEYS_PER_SOURCE}
  LEFT JOIN string o ON o.id = c.op LEFT JOIN day d ON d.id = m.ts_us / {DAY_US}
WHERE m.is_visible = 1;

CREATE VIEW tool_days AS SELECT
  s.session_id, s.agent, s.project, n.text AS name, d.day_utc, t.tool_calls, t.tool_errors, t.tool_us, t.longest_us,
  t.quarter_hour * {QUARTER_HOUR_US} AS quarter_hour_us
FROM tools_by_quarter_hour t JOIN session s ON s.id = t.source LEFT JOIN string n ON n.id = t.name
  LEFT JOIN day d ON d.id = t.quarter_hour * {QUARTER_HOUR_US} / {DAY_US};

CREATE VIEW turn_days AS SELECT
  s.session_id, s.agent, s.project, d.day_utc, t.turns, t.quarter_hour * {QUARTER_HOUR_US} AS quarter_hour_us
FROM turns_by_quarter_hour t JOIN session s ON s.id = t.source
  LEFT JOIN day d ON d.id = t.quarter_hour * {QUARTER_HOUR_US} / {DAY_US};

CREATE VIEW change_days AS SELECT
  s.session_id, s.agent, s.project, t.path, d.day_utc, t.lines_added, t.lines_removed,
  t.quarter_hour * {QUARTER_HOUR_US} AS quarter_hour_us
FROM changes_by_quarter_hour t JOIN session s ON s.id = t.source
  LEFT JOIN day d ON d.id = t.quarter_hour * {QUARTER_HOUR_US} / {DAY_US};

CREATE VIEW todos AS SELECT
  lower(hex(m.event)) AS event_id, s.session_id, t.idx, t.content, t.status
FROM todo t JOIN message m ON m.id = t.message JOIN session s ON s.id = t.id / {KEYS_PER_SOURCE}
WHERE m.is_visible = 1;

CREATE VIEW sources AS SELECT path, agent, state, size, problems FROM source;
"""


VISIBLE_BLOCK = "coalesce(m.is_visible, s.is_visible) = 1"
"""A block is visible with its message `m`; titles and names of files, without a message, with their session `s`."""


def create(db: sqlite3.Connection) -> None:
    """Create all tables in an empty database."""
    db.executescript(f"BEGIN; {TABLES} {VIEWS} {TEXT_TABLES}")
    add_indices(db)
    db.execute("INSERT INTO string VALUES (0, '')")
    db.execute("INSERT INTO day VALUES (0, '', '', '')")
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {VERSION}")
    db.execute("COMMIT")


def add_indices(db: sqlite3.Connection, tables: Iterable[str] = tuple(_INDICES)) -> None:
    """Create the indices that are missing."""
    for table in tables:
        name, column = _INDICES[table]
        db.execute(f"CREATE INDEX IF NOT EXISTS {name} ON {table} ({column})")


def drop_indices_of_empty_tables(db: sqlite3.Connection) -> None:
    """Before a first sync: creating the indices after all rows are written takes a tenth of the time."""
    for table, (name, _) in _INDICES.items():
        if db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is None:
            db.execute(f"DROP INDEX IF EXISTS {name}")


def day_row(day: int) -> tuple[int, str, str, str]:
    """The names of a day, counted from 1970: itself, its week and its month. Day 0 means that the time is unknown."""
    if day == 0:
        return 0, "", "", ""
    # A search needs neither, and loads nothing that it does not need.
    from datetime import date, timedelta

    from clew.model.time import month_of, week_of

    name = (date(1970, 1, 1) + timedelta(days=day)).isoformat()
    return day, name, week_of(name), month_of(name)


def add_days(db: sqlite3.Connection, times: Iterable[int]) -> None:
    """Name the days of these times, in microseconds."""
    days = {time // DAY_US for time in times}
    db.executemany("INSERT OR IGNORE INTO day VALUES (?, ?, ?, ?)", map(day_row, days))
