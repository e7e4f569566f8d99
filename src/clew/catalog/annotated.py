"""Joins stars, labels and notes with the catalog: titles of sessions, and where annotated messages are now."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from clew.annotations import Annotation, Target
from clew.catalog.database import key_range
from clew.catalog.filters import Condition
from clew.catalog.ids import packed_uuid, session_key, unpacked_uuid
from clew.catalog.schema import KEYS_PER_SOURCE


class AnnotatedItem(NamedTuple):
    """An annotation, and what the catalog knows of its session."""

    annotation: Annotation
    key: str
    """The key of the session."""
    number: int | None
    """The source of the session; None if the catalog does not have it."""
    title: str
    project: str
    ended_us: int
    message: int | None
    """The index that the message has now; if the catalog does not have it, the one it had when it was annotated."""

    @property
    def reference(self) -> str:
        """The session or message as commands name it."""
        return Target(self.annotation.agent, self.annotation.session, None, self.message).reference


def annotated_items(
    db: sqlite3.Connection, annotations: Sequence[Annotation], condition: Condition | None = None
) -> list[AnnotatedItem]:
    """The annotations with their sessions, the session with the latest message first; unknown sessions are last.

    With a condition, only those of sessions in the catalog that pass it.
    """
    keys = {(found.agent, found.session): session_key(found.agent, found.session) for found in annotations}
    known = _sessions(db, set(keys.values()), condition)
    by_session: dict[str, list[Annotation]] = {}
    for annotation in annotations:
        by_session.setdefault(keys[annotation.agent, annotation.session], []).append(annotation)
    items = []
    for key, found in by_session.items():
        number, title, project, ended_us = known.get(key, (None, "", "", 0))
        if number is None and condition is not None:
            continue
        indexes = current_indexes(db, number, found) if number is not None else {}
        items += [
            AnnotatedItem(one, key, number, title, project, ended_us, indexes.get(one.target.key, one.message))
            for one in found
        ]
    return sorted(items, key=lambda item: (-item.ended_us, item.key, item.message or 0))


def _sessions(
    db: sqlite3.Connection, keys: Iterable[str], condition: Condition | None
) -> dict[str, tuple[int, str, str, int]]:
    passing, values = (f" AND {condition.text}", condition.values) if condition is not None else ("", ())
    query = "SELECT session_id, id, title, project, ended_us FROM session WHERE is_visible = 1"
    query += f" AND session_id IN (SELECT value FROM json_each(?)){passing}"
    return {key: (number, *more) for key, number, *more in db.execute(query, (json.dumps(sorted(keys)), *values))}


def current_indexes(db: sqlite3.Connection, number: int, annotations: Iterable[Annotation]) -> dict[str, int]:
    """The index that each annotated message of a session has now, by `Target.key`; without those that are unknown."""
    ids = [found.message_id for found in annotations if found.message_id is not None]
    if not ids:
        return {}
    query = f"SELECT uuid, min(id) % {KEYS_PER_SOURCE} FROM message WHERE id BETWEEN ? AND ?"
    query += f" AND uuid IN ({', '.join('?' * len(ids))}) GROUP BY uuid"
    rows = db.execute(query, (*key_range(number), *map(packed_uuid, ids)))
    return {unpacked_uuid(uuid): index for uuid, index in rows}


def message_target(db: sqlite3.Connection, number: int, target: Target) -> Target | None:
    """The target with the id of its message; None if the catalog does not have that message yet."""
    assert target.message is not None
    first, _ = key_range(number)
    key = first + target.message
    row = db.execute("SELECT uuid FROM message WHERE id = ?", (key,)).fetchone()
    if row is None:
        return None
    is_repeated = "SELECT 1 FROM message WHERE id >= ? AND id < ? AND uuid = ?"
    if not row[0] or db.execute(is_repeated, (first, key, row[0])).fetchone() is not None:
        return target
    return target._replace(message_id=unpacked_uuid(row[0]))
