"""The filters that every command shares, asked of the catalog's rows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from clew.catalog.schema import KEYS_PER_SOURCE

if TYPE_CHECKING:
    from clew.filters import Filters

Holding = Callable[[str, frozenset[str] | None], set[int]]
"""The blocks of some kinds that hold a piece of text."""

_QUERY = """
SELECT s.id, s.agent, s.git_branch, s.started_us, s.ended_us, json_extract(s.header, '$.workspace',
  '$.workspace_encoded', '$.models', '$.tools', '$.has_errors', '$.has_thinking'),
  s.session_id IN (SELECT parent_session_id FROM session)
FROM session s
"""


def chosen(db: sqlite3.Connection, filters: Filters, holding: Holding) -> frozenset[int]:
    """The sources whose sessions pass all filters."""
    found = {row[0] for row in db.execute(_QUERY) if _passes(row, filters)}
    if filters.file is not None:
        found &= {doc // KEYS_PER_SOURCE for doc in holding(filters.file, frozenset({"file"}))}
    if filters.text is not None:
        found &= {doc // KEYS_PER_SOURCE for doc in holding(filters.text, None)}
    return frozenset(found)


def _passes(row: tuple[Any, ...], wanted: Filters) -> bool:
    _, agent, branch, started, ended, header, has_agents = row
    workspace, encoded, models, tools, has_errors, has_thinking = json.loads(header)
    has = {"error": has_errors, "thinking": has_thinking, "subagent": has_agents, "edit": _edits(tools)}
    return (
        (not wanted.agent or agent in wanted.agent)
        and _in(wanted.project, workspace, encoded)
        and _in(wanted.branch, branch)
        and _in(wanted.model, *map(str, models or ()))
        and _in(wanted.tool, *map(str, tools or ()))
        and (wanted.since is None or (ended > 0 and ended >= _microseconds(wanted.since)))
        and (wanted.until is None or (started > 0 and started <= _microseconds(wanted.until)))
        and all(has[name] for name in wanted.has)
    )


def _edits(tools: list[str] | None) -> bool:
    from clew.filters import EDITING

    return not EDITING.isdisjoint(tools or ())


def _in(wanted: str | None, *values: str | None) -> bool:
    return wanted is None or any(wanted.casefold() in value.casefold() for value in values if value)


def _microseconds(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000)
