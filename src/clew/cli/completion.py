"""Values for shell completion: session ids with titles, agents, models and projects, from the catalog as it is.

Completion must be fast and silent: nothing is synced, and any error means that there is nothing to complete.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

MAX_SESSIONS = 100
"""More session ids would only fill the screen."""

ShellComplete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def complete_session(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Session ids that begin with the text, newest first, with titles where the shell shows descriptions."""
    if incomplete.startswith("@"):
        return [CompletionItem("@last", help="the newest session")]
    if any(char in incomplete for char in "/.~#"):
        return [CompletionItem(incomplete, type="file")]
    return _from_catalog(context, lambda db: _session_items(db, incomplete))


def _session_items(db: sqlite3.Connection, incomplete: str) -> list[CompletionItem]:
    from clew.catalog.queries import list_ids
    from clew.cli.command_list import short_ids

    found = db.execute(
        "SELECT s.native_id, s.title, s.project FROM session s JOIN source f ON f.id = s.id"
        " WHERE f.state = 'live' AND s.is_agent_session = 0 AND substr(s.native_id, 1, length(?1)) = ?1"
        " ORDER BY s.ended_us DESC LIMIT ?2",
        (incomplete, MAX_SESSIONS),
    ).fetchall()
    short = short_ids([name for name, _, _ in found], list_ids(db))
    ids = [short[name] if short[name].startswith(incomplete) else name for name, _, _ in found]
    if os.environ.get("_CLEW_COMPLETE") == "bash_complete":
        return [CompletionItem(name) for name in ids]
    from clew.cli.redaction import TEXT, Redaction
    from clew.render.text_safety import one_line

    texts = [one_line(" · ".join(filter(None, (title, project)))) for _, title, project in found]
    return [CompletionItem(name, help=text) for name, text in zip(ids, Redaction(TEXT).names(texts), strict=True)]


def complete_filter(name: str) -> ShellComplete:
    """Completion of the values of --agent, --project or --model."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from clew.catalog.queries import names

        return _from_catalog(context, lambda db: _beginning_with(incomplete, names(db)[name]))

    return complete


def complete_has(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completion of the values of --has."""
    from clew.filters import HAS

    return _beginning_with(incomplete, HAS)


def _beginning_with(incomplete: str, values: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(value) for value in values if value.startswith(incomplete)]


def _from_catalog(
    context: click.Context, items: Callable[[sqlite3.Connection], list[CompletionItem]]
) -> list[CompletionItem]:
    """Items from the catalog over the homes that were named; none if there is no catalog, or it cannot be read."""
    from clew.catalog import database

    named = (*context.find_root().params.get("homes", ()), *context.params.get("homes", ()))
    try:
        db = database.open_reader(database.catalog_folder(dict.fromkeys(named)))
        return items(db) if db is not None else []
    except Exception:
        # A message in the middle of the command line would only disturb.
        return []
