"""The names of all sessions in memory, to find some of them while a user types."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from clew.annotations import Annotation
from clew.catalog.queries import MAX_SUBAGENT_DEPTH


class IndexedSession(NamedTuple):
    """What a session is called, and where it belongs."""

    number: int
    key: str
    parent: str
    is_subagent: bool
    agent: str
    id: str
    title: str
    project: str
    words: str
    """Title, project, agent and branch, case-folded."""


class SessionIndex:
    """All visible sessions, the latest first."""

    def __init__(self, sessions: Sequence[IndexedSession]) -> None:
        self.sessions = sessions
        self._by_key = {session.key: session for session in sessions}

    @classmethod
    def load(cls, db: sqlite3.Connection) -> SessionIndex:
        """Read the names from the catalog."""
        query = """SELECT id, session_id, parent_session_id, is_agent_session, agent, native_id, title, project,
          git_branch FROM session WHERE is_visible = 1 ORDER BY ended_us DESC, id DESC"""
        return cls([_indexed(*row) for row in db.execute(query)])

    def find(self, text: str, marks: Mapping[tuple[str, str], Annotation]) -> list[IndexedSession]:
        """The sessions with every word of a text in their names or labels, or at the beginning of their id.

        Those with all words in the title come first, sub-agents last; of equals, the latest first. `marks` have the
        labels of sessions, by agent and id.
        """
        words = text.casefold().split()
        folded = {session: "\n".join(found.labels).casefold() for session, found in marks.items()}
        found = self.sessions
        for word in words:
            labelled = {session for session, names in folded.items() if word in names}
            found = [
                each
                for each in found
                if word in each.words or each.id.casefold().startswith(word) or (each.agent, each.id) in labelled
            ]
        return sorted(found, key=lambda session: (session.is_subagent, not _has_title(session, words)))

    def family(self, sessions: Iterable[IndexedSession]) -> list[IndexedSession]:
        """These sessions with the sessions that started them and the sub-agents below, the latest first."""
        found = list(sessions)
        wanted = {session.key for session in found}
        for session in found:
            wanted.update(parent.key for parent in self._ancestors(session))
        below = {session.key for session in found}
        for _ in range(MAX_SUBAGENT_DEPTH):
            below = {session.key for session in self.sessions if session.parent in below} - wanted
            if not below:
                break
            wanted |= below
        return [session for session in self.sessions if session.key in wanted]

    def top_level(self, session: IndexedSession) -> IndexedSession:
        """The session that started a sub-agent; any other session itself."""
        return [session, *self._ancestors(session)][-1]

    def get(self, key: str) -> IndexedSession | None:
        """The session with a key."""
        return self._by_key.get(key)

    def _ancestors(self, session: IndexedSession) -> list[IndexedSession]:
        found: list[IndexedSession] = []
        while (parent := self._by_key.get(session.parent)) and parent not in found and parent.key != session.key:
            found.append(parent)
            session = parent
        return found


def top_level(sessions: Sequence[IndexedSession]) -> list[IndexedSession]:
    """The sessions that none of the others started."""
    known = {session.key for session in sessions}
    return [session for session in sessions if session.parent not in known or session.parent == session.key]


def grouped(sessions: Sequence[IndexedSession], field: str) -> list[IndexedSession]:
    """The sessions with the same value of a field together; groups and sessions in the order of the list."""
    groups: dict[str, list[IndexedSession]] = {}
    for session in sessions:
        groups.setdefault(getattr(session, field), []).append(session)
    return [session for group in groups.values() for session in group]


def _indexed(
    number: int,
    key: str,
    parent: str,
    is_subagent: int,
    agent: str,
    identity: str,
    title: str,
    project: str,
    branch: str,
) -> IndexedSession:
    words = "\n".join((title, project, agent, branch)).casefold()
    return IndexedSession(number, key, parent, bool(is_subagent), agent, identity, title, project, words)


def _has_title(session: IndexedSession, words: Sequence[str]) -> bool:
    title = session.title.casefold()
    return all(word in title for word in words)
