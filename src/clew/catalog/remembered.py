"""A session whose source is gone, from what the catalog keeps of it: who said what, and when."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from clew.catalog.database import key_range
from clew.catalog.listed import Stored
from clew.catalog.text_store import TextStore
from clew.model.json import JSON
from clew.model.time import spell_time

_TEXTS = {"text": "text", "thinking": "thinking", "tool_use": "input", "tool_result": "output"}


def session_of(stored: Stored) -> dict[str, JSON]:
    """The `session` object, as far as it is known."""
    header = stored.header
    names = "id workspace workspace_encoded started_at ended_at source is_agent_session parent_session_id agent_id"
    return {name: header[name] for name in [*names.split(), "title", "slug"] if header.get(name) is not None}


def messages_of(db: sqlite3.Connection, stored: Stored) -> Iterator[dict[str, JSON]]:
    """The messages with their texts; arguments of tools are known as text alone."""
    store = TextStore(db)
    query = "SELECT m.id, r.text, m.ts_us, o.text FROM message m JOIN string r ON r.id = m.role"
    query += " JOIN string o ON o.id = m.model WHERE m.id BETWEEN ? AND ? ORDER BY m.id"
    for index, (key, role, time, model) in enumerate(db.execute(query, key_range(stored.number)).fetchall(), 1):
        message: dict[str, JSON] = {"index": index, "role": role, "content": list(_blocks(db, store, key, stored))}
        if time:
            message["timestamp"] = spell_time(datetime.fromtimestamp(time / 1_000_000, UTC))
        if model:
            message["metadata"] = {"model": {"name": model}}
        yield message


def calls_with_output(db: sqlite3.Connection, store: TextStore, number: int, calls: Iterable[str]) -> list[JSON]:
    """Return the blocks of some calls of a session and of their results, as `messages_of` has them."""
    query = "SELECT b.id, t.text FROM block b JOIN string t ON t.id = b.type WHERE b.id BETWEEN ? AND ?"
    query += " AND b.call_id = ?"
    return [
        {"type": kind, "tool_id": call, _TEXTS[kind]: {"text": text} if kind == "tool_use" else text}
        for call in calls
        for doc, kind in db.execute(query, (*key_range(number), call))
        if kind in _TEXTS and (text := store.get(doc))
    ]


def _blocks(db: sqlite3.Connection, store: TextStore, message: int, stored: Stored) -> Iterator[dict[str, JSON]]:
    query = "SELECT b.id, t.text, b.call_id, coalesce(n.text, '') FROM block b JOIN string t ON t.id = b.type"
    query += " LEFT JOIN call c ON c.message = b.message AND c.call_id = b.call_id LEFT JOIN string n ON n.id = c.name"
    query += " WHERE b.message = ? AND b.id BETWEEN ? AND ? ORDER BY b.id"
    for doc, kind, call, name in db.execute(query, (message, *key_range(stored.number))):
        if kind not in _TEXTS:
            continue
        text = store.get(doc) or ""
        block: dict[str, JSON] = {"type": kind, _TEXTS[kind]: {"text": text} if kind == "tool_use" else text}
        if kind in ("tool_use", "tool_result"):
            block |= {"tool_id": call or None, "tool_name": name or None}
        yield block
