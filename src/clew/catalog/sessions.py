"""Opens sessions that the catalog lists: from their source, or from the stored text where the source is gone."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from clew.agents import registry
from clew.agents.base import Agent, SourceFile, Unit
from clew.analysis.facts import Facts, as_event, collect_facts
from clew.catalog.change_detection import has_unread_messages
from clew.catalog.database import key_range
from clew.catalog.discovery import source_from_json
from clew.catalog.filters import Condition, all_of
from clew.catalog.ids import unpacked_uuid
from clew.catalog.queries import list_rows
from clew.catalog.text_store import TextStore
from clew.errors import SourceUnreadable
from clew.host import Host
from clew.io.paths import path_for_display, path_from_text
from clew.model.json import JSON
from clew.model.time import spell_time
from clew.references import MIN_TITLE_CHARS, Reference, ambiguous, unknown
from clew.stored_session import StoredSession, own_message_id

if TYPE_CHECKING:
    from clew.redact.redactor import Redactor

_TEXT_FIELDS = {"text": "text", "thinking": "thinking", "tool_use": "input", "tool_result": "output"}
_KEPT_HEADER = (
    "id workspace workspace_encoded started_at ended_at source is_agent_session parent_session_id agent_id title slug"
).split()


class MessagesNotRead(SourceUnreadable):
    """The file of a session was deleted before its messages were read; the catalog has only its header and usage."""


class CatalogOnlySession(StoredSession):
    """A session whose source is gone, made of rows and stored text. Arguments of tools are plain text."""

    def __init__(
        self,
        agent: Agent,
        source: SourceFile,
        session: dict[str, JSON],
        messages: Iterable[JSON],
        *,
        message_ids: Sequence[str | None] = (),
        is_complete: bool = True,
    ) -> None:
        super().__init__(agent, source)
        self._message_ids = message_ids
        self.is_complete = is_complete
        """False where the file was deleted before all of its messages were read."""
        self.__dict__["id"], self.__dict__["session_object"] = session["id"], session
        self._messages = list(messages)

    @cached_property
    def facts(self) -> Facts:
        return collect_facts(as_event(True, message) for message in self._messages)

    def redacted(self, redactor: Redactor) -> StoredSession:
        """The session with masked values."""
        self.teach(redactor)
        masked = [redactor.value(message) for message in self._messages]
        header = redactor.value(self.session_object)
        return CatalogOnlySession(
            self.agent, self.source, header, masked, message_ids=self._message_ids, is_complete=self.is_complete
        )

    def teach(self, redactor: Redactor) -> None:
        """Let a redactor learn the secrets of what is stored of the session."""
        redactor.learn(iter(self._messages))

    def message_id(self, index: int) -> str | None:
        return own_message_id(self._message_ids, self.id, index)

    def forget(self) -> None:
        """Nothing is cached that could be read again."""

    def units(self) -> Iterator[Unit]:
        return (Unit(True, message, 0, 0, 0, ()) for message in self._messages)


def open_session(db: sqlite3.Connection, number: int, host: Host | None = None) -> StoredSession:
    """Open the session of a source by its id."""
    query = "SELECT f.agent, f.path, f.state, f.source_json, s.header FROM session s JOIN source f ON f.id = s.id"
    agent, path, state, notes, header = db.execute(f"{query} WHERE s.id = ?", (number,)).fetchone()
    source = source_from_json(agent, path, notes)
    if state != "gone":
        return StoredSession(registry.get(agent), source, host)
    messages = list(_messages(db, number))
    is_complete = not has_unread_messages(db, number)
    if not messages and not is_complete:
        raise MessagesNotRead(f"{path_for_display(path)}: the file is gone, and its messages were not read before")
    known = json.loads(path_from_text(header))
    session = {name: known[name] for name in _KEPT_HEADER if known.get(name) is not None}
    query = "SELECT uuid FROM message WHERE id BETWEEN ? AND ? ORDER BY id"
    ids = [unpacked_uuid(uuid) or None for (uuid,) in db.execute(query, key_range(number))]
    return CatalogOnlySession(registry.get(agent), source, session, messages, message_ids=ids, is_complete=is_complete)


def open_sessions(db: sqlite3.Connection, numbers: Collection[int], host: Host) -> list[StoredSession]:
    """The sessions of some sources whose files exist, ordered by agent and path."""
    query = (
        "SELECT agent, path, source_json FROM source WHERE id IN (SELECT value FROM json_each(?)) AND state <> 'gone'"
    )
    rows = db.execute(f"{query} ORDER BY agent, path", (json.dumps(list(numbers)),)).fetchall()
    return [
        StoredSession(registry.get(agent), source_from_json(agent, path, notes), host) for agent, path, notes in rows
    ]


def sources_by_id(db: sqlite3.Connection, agent: str) -> dict[str, SourceFile]:
    """The existing sources of an agent by session id; of several copies the visible one."""
    query = "SELECT s.native_id, f.path, f.source_json FROM session s JOIN source f ON f.id = s.id"
    rows = db.execute(f"{query} WHERE s.agent = ? AND f.state <> 'gone' ORDER BY s.is_visible, f.path DESC", (agent,))
    return {native_id: source_from_json(agent, path, notes) for native_id, path, notes in rows}


class _Candidate(NamedTuple):
    number: int
    agent: str
    id: str
    path: str


def find_session(
    db: sqlite3.Connection,
    reference: Reference,
    host: Host,
    *,
    missing: bool = False,
    condition: Condition | None = None,
    ids_only: bool = False,
) -> StoredSession:
    """The one session that a reference names; with `missing`, also one whose file is gone if no other has that id.

    `@last`, `@2` and titles are looked for among the sessions that pass the condition. With `ids_only`, a title is no
    reference. Raises UnknownReference or AmbiguousReference.
    """
    for state in ("f.state <> 'gone'", "f.state = 'gone'") if missing else ("f.state <> 'gone'",):
        candidates = _Candidates(db, reference.agent, state, condition or all_of([]))
        found = candidates.named(reference, ids_only)
        if len(found) > 1:
            raise ambiguous(reference, [(one.agent, one.id, one.path) for one in found])
        if found:
            return open_session(db, found[0].number, host)
        if reference.position is not None and candidates.count():
            break  # sessions whose files are gone are counted only where there are no others
    unreadable = _unreadable_session(db, reference, host)
    if unreadable is None:
        raise unknown(reference, candidates.count(), is_filtered=condition is not None)
    return unreadable


class _Candidates:
    """The sessions that a reference may name."""

    def __init__(self, db: sqlite3.Connection, agent: str | None, state: str, condition: Condition) -> None:
        self._db = db
        self._of_agent = all_of([Condition(state), *([Condition("s.agent = ?", (agent,))] if agent else [])])
        passing = Condition(f"s.id IN (SELECT id FROM session WHERE {condition.text})", condition.values)
        self._chosen = all_of([self._of_agent, passing])

    def named(self, reference: Reference, ids_only: bool) -> list[_Candidate]:
        """The sessions with the id, else with the id prefix, else with the title, else with the title prefix."""
        if reference.position is not None:
            return self._at_position(reference.position)
        for test in ("s.native_id = ?", "substr(s.native_id, 1, length(?)) = ?"):
            condition = all_of([self._of_agent, Condition(test, (reference.id,) * test.count("?"))])
            found = self._select(condition)
            if found:
                return found
        is_title = not ids_only and len(reference.id) >= MIN_TITLE_CHARS
        return self._with_title(reference.id) if is_title else []

    def _at_position(self, position: int) -> list[_Candidate]:
        """The session at a position, ordered by last message; no time is later than the mtime of its file."""
        last_us = "CASE WHEN f.mtime_ns > 0 THEN min(s.ended_us, f.mtime_ns / 1000) ELSE s.ended_us END"
        order = f"{last_us} DESC, s.native_id DESC LIMIT 1 OFFSET {position - 1}"
        return self._select(self._counted(), order)

    def _counted(self) -> Condition:
        """The sessions that positions count: visible ones, without sub-agents unless there are only sub-agents."""
        once = all_of([self._chosen, Condition("s.is_visible = 1")])
        main = all_of([once, Condition("s.is_agent_session = 0")])
        return main if self._count(main) else once

    def _with_title(self, title: str) -> list[_Candidate]:
        """The sessions with this title in a list; if there is none, those whose title begins with it. No sub-agents."""
        wanted = title.casefold()
        rows = [(row["agent"], row["id"], (row["title"] or "").casefold()) for row in self._listed()]
        exact = [(agent, id_) for agent, id_, shown in rows if shown == wanted]
        names = exact or [(agent, id_) for agent, id_, shown in rows if shown.startswith(wanted)]
        test = "s.is_visible = 1 AND s.agent = ? AND s.native_id = ?"
        conditions = [all_of([self._chosen, Condition(test, name)]) for name in sorted(set(names))]
        return [one for condition in conditions for one in self._select(condition)]

    def _listed(self) -> list[dict[str, JSON]]:
        passing = f"SELECT s.id FROM session s JOIN source f ON f.id = s.id WHERE {self._chosen.text}"
        return list_rows(self._db, Condition(f"id IN ({passing})", self._chosen.values), subagents=False)

    def _select(self, condition: Condition, order: str = "f.agent, f.path") -> list[_Candidate]:
        query = "SELECT s.id, s.agent, s.native_id, f.path FROM session s JOIN source f ON f.id = s.id"
        query += f" WHERE {condition.text} ORDER BY {order}"
        return [_Candidate(*row) for row in self._db.execute(query, condition.values)]

    def count(self) -> int:
        """How many sessions can be named by their position."""
        return self._count(self._counted())

    def _count(self, condition: Condition) -> int:
        query = f"SELECT count(*) FROM session s JOIN source f ON f.id = s.id WHERE {condition.text}"
        return int(self._db.execute(query, condition.values).fetchone()[0])


def _unreadable_session(db: sqlite3.Connection, reference: Reference, host: Host) -> StoredSession | None:
    """A session that could not be read, found by the id in its file name. Opening it raises the reason."""
    query = "SELECT f.agent, f.path, f.source_json FROM source f LEFT JOIN session s ON s.id = f.id WHERE s.id IS NULL"
    for agent, path, notes in db.execute(query):
        session = StoredSession(registry.get(agent), source_from_json(agent, path, notes), host)
        with suppress(SourceUnreadable):
            if reference.agent in (None, agent) and session.id.startswith(reference.id):
                return session
    return None


def _messages(db: sqlite3.Connection, number: int) -> Iterator[dict[str, JSON]]:
    content = _blocks_by_message(db, number)
    query = "SELECT m.id, r.text, m.ts_us, o.text FROM message m JOIN string r ON r.id = m.role"
    query += " JOIN string o ON o.id = m.model WHERE m.id BETWEEN ? AND ? ORDER BY m.id"
    for index, (key, role, time, model) in enumerate(db.execute(query, key_range(number)).fetchall(), 1):
        message: dict[str, JSON] = {"index": index, "role": role, "content": content.get(key, [])}
        if time:
            message["timestamp"] = spell_time(datetime.fromtimestamp(time / 1_000_000, UTC))
        if model:
            message["metadata"] = {"model": {"name": model}}
        yield message


def _blocks_by_message(db: sqlite3.Connection, number: int) -> dict[int, list[JSON]]:
    """The content blocks of a session, by the key of their message."""
    store = TextStore(db)
    query = "SELECT c.message, c.call_id, n.text FROM call c JOIN string n ON n.id = c.name"
    calls = db.execute(f"{query} WHERE c.id BETWEEN ? AND ?", key_range(number))
    names = {(message, call): name for message, call, name in calls}
    query = "SELECT b.message, b.id, t.text, b.call_id FROM block b JOIN string t ON t.id = b.type"
    found: dict[int, list[JSON]] = {}
    for message, doc, kind, call in db.execute(f"{query} WHERE b.id BETWEEN ? AND ? ORDER BY b.id", key_range(number)):
        if kind not in _TEXT_FIELDS:
            continue
        text = store.get(doc) or ""
        block: dict[str, JSON] = {"type": kind, _TEXT_FIELDS[kind]: {"text": text} if kind == "tool_use" else text}
        if kind in ("tool_use", "tool_result"):
            block |= {"tool_id": call or None, "tool_name": names.get((message, call)) or None}
        found.setdefault(message, []).append(block)
    return found


def calls_with_output(db: sqlite3.Connection, store: TextStore, number: int, calls: Iterable[str]) -> list[JSON]:
    """The `tool_use` and `tool_result` blocks of some calls of a session."""
    wanted = list(calls)
    query = "SELECT b.call_id, b.id, t.text FROM block b JOIN string t ON t.id = b.type WHERE b.id BETWEEN ? AND ?"
    query += " AND b.call_id IN (SELECT value FROM json_each(?)) ORDER BY b.id"
    blocks: dict[str, list[tuple[int, str]]] = {}
    for call, doc, kind in db.execute(query, (*key_range(number), json.dumps(wanted))).fetchall():
        blocks.setdefault(call, []).append((doc, kind))
    return [
        {"type": kind, "tool_id": call, _TEXT_FIELDS[kind]: {"text": text} if kind == "tool_use" else text}
        for call in wanted
        for doc, kind in blocks.get(call, ())
        if kind in _TEXT_FIELDS and (text := store.get(doc))
    ]
