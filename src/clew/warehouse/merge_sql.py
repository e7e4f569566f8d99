"""Which copies count: portable SQL that makes the merged tables from the tables `<table>_copies`.

The result follows from the set of batches alone: the order of writes, repetitions and the machine do not matter.

- A source counts with its current batch (`CURRENT_BATCH_ORDER`). Rows of other batches do not count.
- Of several copies of a message, a session or an API call one is visible (`DUPLICATE_ORDER`). Blocks, tool calls, file
  changes and todos are visible with their message.
- An API call has the maximum of each token count over its copies, and the cost of these maxima.

Strings are compared byte by byte: an engine with other collations must be configured so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from clew.analysis.usage import TOKEN_FIELDS
from clew.catalog.portable_sql import CACHE_5M_TOKENS, DUPLICATE_ORDER, SESSION_ORDER
from clew.catalog.schema import QUARTER_HOUR_US
from clew.warehouse.columns import COPIES, LEVELS, RATES, STATE, TABLES


def level_rank(level: str) -> str:
    """An expression that is greater for a level with more content."""
    return f"CASE {level} {' '.join(f'WHEN {name!r} THEN {rank}' for rank, name in enumerate(LEVELS))} END"


CURRENT_BATCH_ORDER = f"{', '.join(f'{name} DESC' for name in STATE)}, {level_rank('level')} DESC, batch DESC"
"""Batches of a source, the current one first: newest schema, rules and prices, latest state, highest level."""

_CURRENT_BATCHES = f"""
SELECT DISTINCT s.batch, s.native_id, s.is_agent_session, s.message_count, s.ended_us FROM sessions_copies s JOIN (
  SELECT batch FROM (
    SELECT batch, ROW_NUMBER() OVER (PARTITION BY source_id ORDER BY {CURRENT_BATCH_ORDER}) AS rank FROM batches_copies
  ) x WHERE rank = 1 GROUP BY batch
) b ON b.batch = s.batch
"""
_VISIBLE_MESSAGES = f"""
SELECT batch, seq FROM (
  SELECT t.batch, t.seq, ROW_NUMBER() OVER (PARTITION BY t.event_id ORDER BY {DUPLICATE_ORDER}, t.batch, t.seq) AS rank
  FROM messages_copies t JOIN current_batches s ON s.batch = t.batch
) x WHERE rank = 1
"""
_SESSIONS = f"""
SELECT {", ".join(TABLES["sessions"].names)} FROM (
  SELECT s.*, ROW_NUMBER() OVER (PARTITION BY s.session_id ORDER BY {SESSION_ORDER}, s.batch) AS rank
  FROM sessions_copies s JOIN current_batches c ON c.batch = s.batch
) x WHERE rank = 1
"""

_TURNS = f"""
SELECT event_id, session_id, agent, project, ts_us, day_utc FROM (
  SELECT DISTINCT t.batch, t.seq, t.event_id, t.session_id, t.agent, s.project, t.ts_us, t.day_utc
  FROM messages{COPIES} t JOIN visible_messages v ON v.batch = t.batch AND v.seq = t.seq
    JOIN sessions{COPIES} s ON s.batch = t.batch
  WHERE t.kind = 'user' AND t.is_sidechain = 0 AND s.is_agent_session = 0
) x
"""

_PRICED_TOKENS = {
    "input": "COALESCE(input_tokens, 0)",
    "output": "COALESCE(output_tokens, 0)",
    "cache_read": "COALESCE(cache_read_tokens, 0)",
    "5m": f"CASE WHEN {CACHE_5M_TOKENS} > 0 THEN {CACHE_5M_TOKENS} ELSE 0 END",
    "1h": "COALESCE(cache_creation_1h_tokens, 0)",
}
"""The tokens that are paid for, by the suffix of their rate."""
_INPUT_TOKENS = " + ".join(count for kind, count in _PRICED_TOKENS.items() if kind != "output")
_RATE_UNITS_PER_NANO = 1000
"""Rates are in 10^-12 dollars, costs in 10^-9."""


def cost_sql(int_div: str) -> str:
    """The cost of a call with merged counts, as `pricing.PriceTable.cost` computes it.

    `int_div`: the operator of integer division.
    """
    base, above = (
        " + ".join(f"({count}) * COALESCE({rate}_{kind}, 0)" for kind, count in _PRICED_TOKENS.items())
        for rate in ("rate", "above")
    )
    exact = f"CASE WHEN {_INPUT_TOKENS} > rate_limit THEN {above} ELSE {base} END"
    return f"(({exact}) + {_RATE_UNITS_PER_NANO // 2}) {int_div} {_RATE_UNITS_PER_NANO}"


_USAGE_NAMES = "usage_id, session_id, event_id, agent, model, project, git_branch, ts_us, day_utc, week_utc, month_utc"


def _usage(int_div: str) -> str:
    names = [*_USAGE_NAMES.split(", "), "is_priced", *RATES]
    return f"""
SELECT {_USAGE_NAMES}, input_tokens, output_tokens, cache_read_tokens, {CACHE_5M_TOKENS} AS cache_creation_5m_tokens,
  cache_creation_1h_tokens, reasoning_tokens,
  CASE WHEN is_priced = 1 THEN {cost_sql(int_div)} ELSE 0 END AS cost_nano, is_priced
FROM (
  SELECT {", ".join(f"t.{name}" for name in names)},
    {", ".join(f"MAX(t.{name}) OVER (PARTITION BY t.usage_id) AS {name}" for name in TOKEN_FIELDS)},
    ROW_NUMBER() OVER (PARTITION BY t.usage_id ORDER BY {DUPLICATE_ORDER}, t.batch, t.number) AS rank
  FROM usage_copies t JOIN current_batches s ON s.batch = t.batch
) x WHERE rank = 1
"""


class SumsTable(NamedTuple):
    """A table with sums of the rows of another one, for each session and quarter of an hour.

    The quarter is in the column `quarter_hour_us`: in every zone of today, a day begins with one.
    """

    rows: str
    """The table that is summed."""
    groups: tuple[str, ...]
    sums: dict[str, str]


QUARTER_HOUR_SUMS = {
    "usage_days": SumsTable(
        "usage",
        ("session_id", "agent", "model", "project", "git_branch", "day_utc", "week_utc", "month_utc"),
        {
            "calls": "COUNT(*)",
            "priced_calls": "SUM(is_priced)",
            **{name: f"SUM({name})" for name in TOKEN_FIELDS if name != "cache_creation_tokens"},
            "cost_nano": "SUM(cost_nano)",
            "min_ts_us": "MIN(ts_us)",
            "max_ts_us": "MAX(ts_us)",
        },
    ),
    "turn_days": SumsTable("turns", ("session_id", "agent", "project", "day_utc"), {"turns": "COUNT(*)"}),
    "tool_days": SumsTable(
        "tool_calls",
        ("session_id", "agent", "project", "name", "day_utc"),
        {
            "tool_calls": "COUNT(*)",
            "tool_errors": "SUM(is_error)",
            "tool_us": "SUM(duration_us)",
            "longest_us": "MAX(duration_us)",
        },
    ),
    "change_days": SumsTable(
        "file_changes",
        ("session_id", "agent", "project", "path", "day_utc"),
        {"lines_added": "SUM(lines_added)", "lines_removed": "SUM(lines_removed)"},
    ),
}
QUARTER_HOUR_SQL = f"ts_us - ts_us % {QUARTER_HOUR_US}"


def _quarter_hour_sums(table: SumsTable) -> str:
    rows, groups, sums = table
    columns = ", ".join(f"CAST({expression} AS BIGINT) AS {column}" for column, expression in sums.items())
    names = ", ".join(groups)
    return (
        f"SELECT {names}, {columns}, {QUARTER_HOUR_SQL} AS quarter_hour_us FROM {rows}"
        f" GROUP BY {names}, {QUARTER_HOUR_SQL}"
    )


_OF_MESSAGES = {
    "messages": "event_id session_id native_uuid parent_event_id seq ts_us day_utc gap_us kind role model git_branch "
    "is_sidechain is_meta text_chars",
    "blocks": "event_id idx type kind chars call_id",
    "tool_calls": "call_id session_id event_id result_event_id agent project name is_error ts_us day_utc duration_us",
    "file_changes": "event_id session_id agent project path op lines_added lines_removed ts_us day_utc",
    "todos": "event_id session_id idx content status",
}
"""Tables whose rows are visible with their message, and the columns of the catalog's views."""


def _of_visible_messages(table: str, rows_are_unique: bool) -> str:
    names = _OF_MESSAGES[table].split()
    joined = f"{table}{COPIES} t JOIN visible_messages v ON v.batch = t.batch AND v.seq = t.seq"
    if rows_are_unique:
        return f"SELECT {', '.join(f't.{name}' for name in names)} FROM {joined}"
    with_key = dict.fromkeys((*TABLES[table].key, *names))
    columns = ", ".join(f"t.{name}" for name in with_key)
    return f"SELECT {', '.join(names)} FROM (SELECT DISTINCT {columns} FROM {joined}) x"


def merged_tables(*, rows_are_unique: bool, int_div: str) -> dict[str, str]:
    """The query of every merged table, each after the tables that it is made from.

    `rows_are_unique`: a key makes sure that copies hold each row once. A lake may hold a row in several objects.
    `int_div`: the operator of integer division.
    """
    return {
        "current_batches": _CURRENT_BATCHES,
        "visible_messages": _VISIBLE_MESSAGES,
        "sessions": _SESSIONS,
        **{table: _of_visible_messages(table, rows_are_unique) for table in _OF_MESSAGES},
        "turns": _TURNS,
        "usage": _usage(int_div),
        **{name: _quarter_hour_sums(table) for name, table in QUARTER_HOUR_SUMS.items()},
    }


PUBLIC = ("sessions", *_OF_MESSAGES, "turns", "usage", *QUARTER_HOUR_SUMS)
"""The tables that statements ask, with the names of the catalog's views."""


def tables_read(query: str) -> set[str]:
    """The names of the tables that a query reads."""
    return set(re.findall(r"\b(?:FROM|JOIN)\s+([a-z_]+)", query))


def required_tables(query: str, tables: dict[str, str]) -> Iterator[str]:
    """The merged tables that a query needs, directly or not, each after those that it needs itself."""
    for name in tables_read(query):
        if name in tables:
            yield from required_tables(tables[name], tables)
            yield name
