"""From a row of the catalog to the session itself: from its source, or where that is gone, from what is kept of it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from clew.agents import registry
from clew.agents.base import Agent, SourceFile, Unit
from clew.analysis.facts import Facts, as_event, collect_facts
from clew.catalog.discovery import source_from_json
from clew.catalog.listed import Stored
from clew.catalog.remembered import messages_of, session_of
from clew.host import Host
from clew.library import StoredSession
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.redact.redactor import Redactor


class Remembered(StoredSession):
    """A session whose source is gone, from what the catalog keeps of it."""

    def __init__(self, agent: Agent, source: SourceFile, session: dict[str, JSON], messages: Iterable[JSON]) -> None:
        super().__init__(agent, source)
        self.__dict__["id"], self.__dict__["session_object"] = session["id"], session
        self._messages = list(messages)

    @cached_property
    def facts(self) -> Facts:
        return collect_facts(as_event(True, message) for message in self._messages)

    def redacted(self, redactor: Redactor) -> StoredSession:
        """The session as it may be seen."""
        redactor.learn(iter(self._messages))
        masked = [redactor.value(message) for message in self._messages]
        return Remembered(self.agent, self.source, redactor.value(self.session_object), masked)

    def forget(self) -> None:
        """There is nothing to read again."""

    def units(self) -> Iterator[Unit]:
        return (Unit(True, message, 0, 0, 0, ()) for message in self._messages)


def opened(db: sqlite3.Connection, number: int, host: Host | None = None) -> StoredSession:
    """The session of a row."""
    query = "SELECT f.agent, f.path, f.size, f.state, f.found, s.header FROM session s JOIN source f ON f.id = s.id"
    agent, path, size, state, notes, header = db.execute(f"{query} WHERE s.id = ?", (number,)).fetchone()
    source = source_from_json(agent, path, notes)
    if state != "gone":
        return StoredSession(registry.get(agent), source, host)
    kept = Stored(number, agent, path, size, json.loads(header))
    return Remembered(registry.get(agent), source, session_of(kept), messages_of(db, kept))
