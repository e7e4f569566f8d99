"""SQL that the catalog and every warehouse share: which copy is visible, and how cache creation is counted.

Understood by SQLite, DuckDB, PostgreSQL and Spark. Each engine adds a unique tie-break to the orders.
"""

from __future__ import annotations

DUPLICATE_ORDER = """
    CASE WHEN t.ts_us = 0 THEN 1 ELSE 0 END,  -- prefer rows with a timestamp
    t.ts_us,                                  -- earliest first
    s.is_agent_session,                       -- main session before sub-agent
    s.native_id,
    s.message_count DESC NULLS LAST,          -- longest copy of one session: it has the most tool results
    s.ended_us DESC NULLS LAST
"""
"""Copies of a message or API call `t` of a session `s`, best first. NULL: a server dropped the row of the session."""
SESSION_ORDER = "s.message_count DESC, s.ended_us DESC"
"""Copies of a session `s`, best first."""
CACHE_5M_TOKENS = (
    "CASE WHEN cache_creation_5m_tokens IS NULL THEN cache_creation_tokens - COALESCE(cache_creation_1h_tokens, 0)"
    " ELSE cache_creation_5m_tokens END"
)
"""Cache creation that is not recorded as living for an hour lives for five minutes."""
