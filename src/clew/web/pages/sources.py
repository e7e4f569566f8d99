"""Where sessions come from, and what is wrong with the files."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from clew.agents import registry
from clew.catalog import queries
from clew.catalog.ids import session_key
from clew.web.asking import Asked, page
from clew.web.drawing import session_address

MOST = 200
"""Problems, unless all are asked for."""


def page_of(asked: Asked) -> Response:
    """The page."""
    shelf = asked.shelf
    counts = queries.source_counts(shelf.db)
    most = asked.number("rows", MOST)
    problems = queries.source_problems(shelf.db, most + 1)
    roots = [
        (agent.title, [(str(root), root.is_dir()) for host in shelf.hosts for root in agent.roots(host)])
        for agent in registry.load_all()
    ]
    return page(
        asked,
        "sources.html",
        homes=[(str(host.base or host.home), host.kind, host.name) for host in shelf.hosts],
        counts=counts,
        roots=shelf.masking(asked.profile).value(roots),
        problems=[_problem(row) for row in problems[:most]],
        left_out=len(problems) > most,
        syncing=shelf.syncing.state,
    )


def _problem(row: tuple[str, str, str, str]) -> dict[str, Any]:
    agent, session, path, problems = row
    words = [f"{one['code']} in line {one['line']}" if one.get("line") else one["code"] for one in json.loads(problems)]
    address = session_address(agent, session, session_key(agent, session)) if session else None
    return {"agent": agent, "path": path, "words": ", ".join(words), "address": address}
