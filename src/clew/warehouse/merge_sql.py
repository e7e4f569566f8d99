"""How copies become the tables that every engine shows: portable SQL over `<table>_copies`.

The result follows from the set of batches alone: any order, any repetition, any machine. A source counts by its current
batch: of the newest schema, rules and prices, then of its latest state, then of the level that tells most. Rows of a
batch that is current for no source do not count. Of the copies of a message or call one is shown, by the catalog's
rule, but that of copies of one session the longest comes first and not the first path, which only a machine knows; a
call has the largest of each count, and costs what these cost. Blocks, calls, changes and todos are those of the
messages that are shown. Texts compare byte by byte: an engine that knows languages must be told so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from clew.warehouse.columns import COPIES, COUNTS, LEVELS, RATES, STATE, TABLES

_LEVEL = " ".join(f"WHEN '{level}' THEN {place}" for place, level in enumerate(LEVELS))
_CURRENT = f"""
SELECT DISTINCT s.batch, s.native_id, s.is_agent_session, s.message_count, s.ended_us FROM sessions_copies s JOIN (
  SELECT batch FROM (
    SELECT batch, ROW_NUMBER() OVER (PARTITION BY source_id ORDER BY {", ".join(f"{name} DESC" for name in STATE)},
      CASE level {_LEVEL} END DESC, batch DESC) AS place
    FROM batches_copies
  ) x WHERE place = 1 GROUP BY batch
) b ON b.batch = s.batch
"""
_RULE = (
    "CASE WHEN t.ts_us = 0 THEN 1 ELSE 0 END, t.ts_us, c.is_agent_session, c.native_id, c.message_count DESC, "
    "c.ended_us DESC, t.batch"
)
"""The earliest; the session's own rather than a sub-agent's; of copies of one session the longest, which knows most of
what became of calls; then what never changes."""
_SHOWN = f"""
SELECT batch, seq FROM (
  SELECT t.batch, t.seq, ROW_NUMBER() OVER (PARTITION BY t.event_id ORDER BY {_RULE}, t.seq) AS place
  FROM messages_copies t JOIN current_batches c ON c.batch = t.batch
) x WHERE place = 1
"""
_SESSION = (
    "session_id agent native_id parent_session_id is_agent_session title workspace project git_branch agent_version "
    "started_us ended_us day_utc message_count turn_count error_count active_us"
).split()
_SESSIONS = f"""
SELECT {", ".join(_SESSION)} FROM (
  SELECT t.*, ROW_NUMBER() OVER (PARTITION BY t.session_id
    ORDER BY t.message_count DESC, t.ended_us DESC, t.batch) AS place
  FROM sessions_copies t JOIN current_batches c ON c.batch = t.batch
) x WHERE place = 1
"""
SHORT_LIVED = (
    "CASE WHEN cache_creation_5m_tokens IS NULL THEN cache_creation_tokens - COALESCE(cache_creation_1h_tokens, 0)"
    " ELSE cache_creation_5m_tokens END"
)
"""What is not said to live for an hour lives for five minutes."""
_USED = ("usage_id", "session_id", "event_id", "agent", "model", "project", "git_branch", "ts_us", "day_utc")
_KINDS = {
    "input": "COALESCE(input_tokens, 0)",
    "output": "COALESCE(output_tokens, 0)",
    "cache_read": "COALESCE(cache_read_tokens, 0)",
    "5m": "CASE WHEN cache_creation_5m_tokens IS NOT NULL THEN cache_creation_5m_tokens "
    "WHEN cache_creation_tokens > COALESCE(cache_creation_1h_tokens, 0) "
    "THEN cache_creation_tokens - COALESCE(cache_creation_1h_tokens, 0) ELSE 0 END",
    "1h": "COALESCE(cache_creation_1h_tokens, 0)",
}
"""What is paid for, each kind at its own rate."""
_GIVEN = " + ".join(count for kind, count in _KINDS.items() if kind != "output")
_NANO = 1000
"""Trillionths of a dollar in a nano-dollar."""


def cost(divided_by: str) -> str:
    """What a call costs, from its merged counts: as `pricing` has it, in SQL. `divided_by` is how an engine spells the
    division of whole numbers."""
    sums = [
        " + ".join(f"({count}) * COALESCE({rate}_{kind}, 0)" for kind, count in _KINDS.items())
        for rate in ("above", "rate")
    ]
    exact = f"CASE WHEN {_GIVEN} > rate_limit THEN {sums[0]} ELSE {sums[1]} END"
    return f"(({exact}) + {_NANO // 2}) {divided_by} {_NANO}"


_OWN = (*_USED, "week_utc", "month_utc", "is_priced", *RATES)


def _usage(divided_by: str) -> str:
    return f"""
SELECT {", ".join(_USED)}, week_utc, month_utc, input_tokens, output_tokens, cache_read_tokens,
  {SHORT_LIVED} AS cache_creation_5m_tokens, cache_creation_1h_tokens, reasoning_tokens,
  CASE WHEN is_priced = 1 THEN {cost(divided_by)} ELSE 0 END AS cost_nano, is_priced
FROM (
  SELECT {", ".join(f"t.{name}" for name in _OWN)},
    {", ".join(f"MAX(t.{name}) OVER (PARTITION BY t.usage_id) AS {name}" for name in COUNTS)},
    ROW_NUMBER() OVER (PARTITION BY t.usage_id ORDER BY {_RULE}, t.number) AS place
  FROM usage_copies t JOIN current_batches c ON c.batch = t.batch
) x WHERE place = 1
"""


_USED_SUMS = (
    "input_tokens output_tokens cache_read_tokens cache_creation_5m_tokens cache_creation_1h_tokens reasoning_tokens "
    "cost_nano"
).split()
_SAME = "session_id, agent, model, project, git_branch, day_utc, week_utc, month_utc"
_USAGE_DAYS = f"""
SELECT {_SAME}, COUNT(*) AS calls, CAST(SUM(is_priced) AS BIGINT) AS priced_calls,
  {", ".join(f"CAST(SUM({name}) AS BIGINT) AS {name}" for name in _USED_SUMS)},
  MIN(ts_us) AS min_ts_us, MAX(ts_us) AS max_ts_us
FROM usage GROUP BY {_SAME}
"""
_TOOL_DAYS = """
SELECT session_id, agent, project, name, day_utc, COUNT(*) AS tool_calls, CAST(SUM(is_error) AS BIGINT) AS tool_errors,
  CAST(SUM(duration_us) AS BIGINT) AS tool_us, MAX(duration_us) AS longest_us
FROM tool_calls GROUP BY session_id, agent, project, name, day_utc
"""
_CHANGE_DAYS = """
SELECT session_id, agent, project, path, day_utc, CAST(SUM(lines_added) AS BIGINT) AS lines_added,
  CAST(SUM(lines_removed) AS BIGINT) AS lines_removed
FROM file_changes GROUP BY session_id, agent, project, path, day_utc
"""
_OF_MESSAGES = {
    "messages": "event_id session_id native_uuid parent_event_id seq ts_us day_utc gap_us kind role model git_branch "
    "is_sidechain is_meta text_chars",
    "blocks": "event_id idx type kind chars call_id",
    "tool_calls": "call_id session_id event_id result_event_id agent project name is_error ts_us day_utc duration_us",
    "file_changes": "event_id session_id agent project path op lines_added lines_removed ts_us day_utc",
    "todos": "event_id session_id idx content status",
}


def _of_messages(table: str, unique: bool) -> str:
    names = _OF_MESSAGES[table].split()
    wanted = [*TABLES[table].key, *(name for name in names if name not in TABLES[table].key)]
    columns = ", ".join(f"t.{name}" for name in wanted)
    joined = f"{table}{COPIES} t JOIN shown_messages s ON s.batch = t.batch AND s.seq = t.seq"
    if unique:
        return f"SELECT {', '.join(f't.{name}' for name in names)} FROM {joined}"
    return f"SELECT {', '.join(names)} FROM (SELECT DISTINCT {columns} FROM {joined}) x"


def merged(*, unique: bool, divided_by: str) -> dict[str, str]:
    """The text of every merged table, each after those it is made from.

    `unique`: the copies hold each row once, because a key makes them. A lake may hold a row in several objects.
    `divided_by`: how the engine spells the division of whole numbers.
    """
    return {
        "current_batches": _CURRENT,
        "shown_messages": _SHOWN,
        "sessions": _SESSIONS,
        **{table: _of_messages(table, unique) for table in _OF_MESSAGES},
        "usage": _usage(divided_by),
        "usage_days": _USAGE_DAYS,
        "tool_days": _TOOL_DAYS,
        "change_days": _CHANGE_DAYS,
    }


PUBLIC = ("sessions", *_OF_MESSAGES, "usage", "usage_days", "tool_days", "change_days")
"""The tables that statements ask, by the names they have in the catalog."""


def needed(text: str, known: dict[str, str]) -> Iterator[str]:
    """The tables that a text is made from, directly or not, each after those it needs itself."""
    words = set(re.findall(r"[a-z_]+", text))
    for name, own in known.items():
        if name in words and own != text:
            yield from needed(own, known)
            yield name
