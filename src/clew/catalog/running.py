"""Which sessions an agent is working on, and which wait for the user."""

from __future__ import annotations

import sqlite3
from datetime import datetime, timedelta

from clew.catalog import queries

WRITTEN_WITHIN = timedelta(minutes=5)
MESSAGE_WITHIN = timedelta(hours=1)
"""The last message may be this old: some agents record when a turn began, and not when it ended."""
WAITING_AFTER = timedelta(seconds=15)
"""An agent that has written nothing for this long after an answer is done; earlier, a tool call may follow."""
MAX_RUNNING = 50
RUNNING, WAITING = "running", "waiting for you"


def running_sessions(db: sqlite3.Connection, now: datetime) -> dict[int, str]:
    """The numbers of the sessions that were just written to, the latest first, and whether they run or wait.

    A sub-agent that has answered does neither.
    """
    written_ns, message_us = _nanoseconds(now - WRITTEN_WITHIN), _nanoseconds(now - MESSAGE_WITHIN) // 1000
    found = {}
    for session in queries.written_since(db, written_ns, message_us, MAX_RUNNING):
        is_quiet = session.written_ns <= _nanoseconds(now - WAITING_AFTER)
        if not is_quiet or not queries.ends_with_answer(db, session.number):
            found[session.number] = RUNNING
        elif not session.is_subagent:
            found[session.number] = WAITING
    return found


def _nanoseconds(time: datetime) -> int:
    return int(time.timestamp() * 1e9)
