"""The folders that sessions come from, and problems in their files."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from starlette.responses import Response

from clew.agents import registry
from clew.catalog import queries
from clew.catalog.ids import session_key
from clew.catalog.unknown_formats import unknown_formats
from clew.model.json import JSON
from clew.sources.local import listed_roots
from clew.timezone import local_time
from clew.web.request import PageRequest, respond
from clew.web.templates import session_url_of

MAX_PROBLEMS = 200


def view(request: PageRequest) -> Response:
    """The page."""
    context = request.context
    updated_at = context.updater.succeeded_at
    limit = request.number("rows", MAX_PROBLEMS)
    problems = queries.source_problems(context.db, limit + 1)
    roots = [
        (agent.title, [(str(root), root.is_dir()) for root in listed_roots(agent, context.hosts)])
        for agent in registry.load_all()
    ]
    return respond(
        request,
        "sources.html",
        homes=[(str(host.base or host.home), host.kind, host.name) for host in context.hosts],
        counts=queries.source_counts(context.db),
        roots=request.masking.value(roots),
        problems=[_problem_row(row) for row in problems[:limit]],
        left_out=len(problems) > limit,
        unknown_formats=request.masking.value([str(each) for each in unknown_formats(context.db)]),
        sync_progress=context.sync_progress(),
        updated_at=local_time(updated_at).strftime("%H:%M:%S") if updated_at is not None else "",
    )


class SyncRequest(msgspec.Struct, forbid_unknown_fields=True):
    """What the script posts to read what has changed; nothing has to be said."""


def sync_now(request: PageRequest, _body: SyncRequest) -> JSON:
    """Start a sync, or one after that which is running. The page shows how far it is."""
    request.context.updater.request()
    return {}


def _problem_row(row: tuple[str, str, str, str]) -> dict[str, Any]:
    agent, session, path, problems = row
    found = [
        f"{problem['code']} in line {problem['line']}" if problem.get("line") else problem["code"]
        for problem in json.loads(problems)
    ]
    url = session_url_of(agent, session, session_key(agent, session)) if session else None
    return {"agent": agent, "path": path, "text": ", ".join(found), "url": url}
