"""The filters that every command shares, asked of the rows on a server."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from clew.filters import EDITING, Filters
from clew.io.paths import encode_claude

if TYPE_CHECKING:
    from clew.warehouse.postgres.connection import Connection

Holding = Callable[[str, frozenset[str] | None], set[str]]
"""The batches with a text of some kinds that holds a piece of text."""

_SESSIONS = """
SELECT batch, agent, workspace, git_branch, started_us, ended_us, error_count > 0,
  session_id IN (SELECT parent_session_id FROM sessions_copies WHERE parent_session_id <> '')
FROM sessions_copies
"""


def chosen(db: Connection, filters: Filters, holding: Holding) -> set[str]:
    """The batches whose sessions pass all filters."""
    found = {row[0] for row in db.execute(_SESSIONS).fetchall() if _passes(row, filters)}
    if filters.model is not None:
        found &= _with_name(db, "messages_copies", "model", lambda names: _matching(filters.model, names))
    if filters.tool is not None:
        found &= _with_name(db, "tool_calls_copies", "name", lambda names: _matching(filters.tool, names))
    if "edit" in filters.has:
        found &= _with_name(db, "tool_calls_copies", "name", lambda _: sorted(EDITING))
    if "thinking" in filters.has:
        found &= _with_name(db, "blocks_copies", "type", lambda _: ["thinking"])
    if filters.file is not None:
        found &= holding(filters.file, frozenset({"file"}))
    if filters.text is not None:
        found &= holding(filters.text, None)
    return found


def _passes(row: tuple[Any, ...], wanted: Filters) -> bool:
    _, agent, workspace, branch, started, ended, has_errors, has_agents = row
    has = {"error": has_errors, "subagent": has_agents}
    return (
        (not wanted.agent or agent in wanted.agent)
        # The name that the project's folder has in a home is a spelling of its path.
        and _in(wanted.project, workspace, encode_claude(workspace))
        and _in(wanted.branch, branch)
        and (wanted.since is None or (ended > 0 and ended >= int(wanted.since.timestamp() * 1_000_000)))
        and (wanted.until is None or (started > 0 and started <= int(wanted.until.timestamp() * 1_000_000)))
        and all(has.get(name, True) for name in wanted.has)
    )


def _in(wanted: str | None, *values: str) -> bool:
    return wanted is None or any(wanted.casefold() in value.casefold() for value in values if value)


def _matching(wanted: str | None, names: Iterable[str]) -> list[str]:
    return [name for name in names if name and _in(wanted, name)]


def _with_name(db: Connection, table: str, column: str, choose: Callable[[Iterable[str]], list[str]]) -> set[str]:
    """The batches that have one of the chosen names."""
    names = [name for (name,) in db.execute(f"SELECT DISTINCT {column} FROM {table}".encode()).fetchall()]
    query = f"SELECT DISTINCT batch FROM {table} WHERE {column} = ANY(%s)"
    return {batch for (batch,) in db.execute(query.encode(), (choose(names),)).fetchall()}
