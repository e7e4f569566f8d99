"""What agents wrote that this version of clew does not know, as the last sync found it."""

from __future__ import annotations

import json
import re
import sqlite3
from typing import TYPE_CHECKING, NamedTuple

from clew.io.paths import escape_controls, path_for_display

if TYPE_CHECKING:
    from clew.model.json import JSON

UNKNOWN_CODES = {"unknown-type": "unknown record type", "unknown-block": "unknown content block"}
_TYPE_NAME = re.compile(r"[A-Za-z][\w./:-]{0,59}", re.ASCII)
_SHOWN_UNKNOWN_TYPES = 5


class UnknownFormat(NamedTuple):
    """Types of records or blocks of an agent that this version of clew does not know."""

    agent: str
    sessions: int
    """The number of sessions that have them."""
    names: tuple[str, ...]
    newest_version: str
    """The newest version of the agent that wrote such a session; empty where none is known."""
    path: str
    """One of the files."""

    def __str__(self) -> str:
        number = "1 session has" if self.sessions == 1 else f"{self.sessions} sessions have"
        names = ", ".join(self.names[:_SHOWN_UNKNOWN_TYPES]) + (" …" if len(self.names) > _SHOWN_UNKNOWN_TYPES else "")
        wrote = f"{self.agent} {self.newest_version}".rstrip()
        return f"{wrote}: {number} records that this version of clew does not know ({names}), such as {self.path}"


def unknown_formats(db: sqlite3.Connection) -> list[UnknownFormat]:
    """What agents wrote that this version of clew does not know; one row for each agent."""
    query = """SELECT f.agent, f.path, f.problems, coalesce(s.agent_version, '') FROM source f
    LEFT JOIN session s ON s.id = f.id WHERE f.problems LIKE '%"unknown-%' AND f.state <> 'gone' ORDER BY f.path"""
    found: dict[str, list[tuple[str, list[str], str]]] = {}
    for agent, path, recorded, version in db.execute(query):
        names = [type_name(each) for each in json.loads(recorded) if each["code"] in UNKNOWN_CODES]
        if names:
            found.setdefault(agent, []).append((path, names, version))
    return [
        UnknownFormat(
            agent,
            len(sessions),
            tuple(sorted({name for _, names, _ in sessions for name in names})),
            max((version for _, _, version in sessions), key=version_numbers),
            escape_controls(path_for_display(sessions[-1][0])),
        )
        for agent, sessions in sorted(found.items())
    ]


def type_name(recorded: dict[str, JSON]) -> str:
    """The name of an unknown type; what does not look like one is not shown, because it may be anything."""
    name = str(recorded.get("message") or "")
    return name if _TYPE_NAME.fullmatch(name) else "unnamed"


def version_numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version, to sort by."""
    return tuple(int(number) for number in re.findall(r"\d{1,18}", version, re.ASCII))
