"""The row of a session, from what holds for it as a whole."""

from __future__ import annotations

import json

from clew.catalog.ids import session_key
from clew.catalog.rows import microseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from clew.catalog.rows import RowMaker


def names(header: dict[str, Any]) -> str:
    """The words a session is found by as a whole: its title and its short name."""
    return "\n".join(filter(None, (header["title"], header.get("slug"))))


def session_row(agent: str, header: dict[str, Any], maker: RowMaker) -> tuple[Any, ...]:
    """The row of a session, but for its key."""
    parent = header["parent_session_id"]
    return (
        1,
        session_key(agent, header["id"]),
        agent,
        header["id"],
        session_key(agent, parent) if parent else "",
        int(header["is_agent_session"]),
        header["title"] or "",
        header["project"] or "",
        header["git_branch"] or "",
        header["agent_version"] or "",
        microseconds(header["started_at"]),
        microseconds(header["ended_at"]),
        header["messages"],
        header["prompt_count"],
        maker.errors,
        maker.active_us,
        json.dumps(header, ensure_ascii=False),
    )
