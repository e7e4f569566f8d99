"""clew statusline: one line for the status line of Claude Code."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any

import click

from clew.cli.options import NO_SYNC, common, open_library, source_arguments, wanted_sources, wants_json
from clew.errors import ClewError

AGENT = "claude-code"
MAX_INPUT_CHARS = 1 << 20
MAX_MODEL_CHARS = 40
REFRESH_SECONDS = 30
"""The catalog is updated in the background, at most this often."""
REFRESHED = "statusline.refreshed"
"""A file beside the catalog; its time is that of the last refresh."""
FACTS = (
    *("model", "session_cost", "session_cost_is_at_least", "today_cost", "today_cost_is_at_least"),
    *("block_cost", "block_cost_is_at_least", "block_remaining_seconds", "problem"),
)
"""The keys of the JSON output; what is unknown is null."""
NO_DATA = "clew: nothing to show yet"


@click.command("statusline")
@common
@click.pass_context
def command(context: click.Context, /, homes: tuple[str, ...], as_json: bool) -> int:
    """Print one line for the status line of Claude Code.

    It has the model, the cost of the session, the cost of today over all agents, and the cost and the time left of
    the active block of five hours of Claude Code. Claude Code gives the model, the session and its cost as JSON on
    stdin. The rest comes from the catalog as it is; without --no-sync it is updated in the background. The exit code
    is always 0, and unknown values are left out. To have it in Claude Code, write to ~/.claude/settings.json:

    \b
    {"statusLine": {"type": "command", "command": "clew statusline"}}
    """
    given = _read_input()
    facts: dict[str, Any] = dict.fromkeys(FACTS) | {"model": _model(given), "session_cost": _session_cost(given)}
    try:
        folder = _catalog_folder(context, homes)
        facts |= _catalog_facts(folder, given)
        if not context.meta.get(NO_SYNC):
            _refresh_in_background(context, homes, folder)
    except Exception as error:
        facts["problem"] = f"clew: {error if isinstance(error, ClewError) else 'the catalog cannot be read'}"
    click.echo(json.dumps(facts) if wants_json(context, as_json) else _line(facts))
    return 0


def _catalog_folder(context: click.Context, homes: tuple[str, ...]) -> Path:
    from clew.catalog.database import catalog_folder

    if wanted_sources(context):
        return open_library(context, homes).catalog_folder
    # A library takes longer to load than all else that is done here.
    return catalog_folder((*context.find_root().obj["homes"], *homes))


def _read_input() -> dict[str, Any]:
    """What Claude Code writes to stdin; empty if it is anything else."""
    if sys.stdin is None or sys.stdin.isatty():
        return {}
    try:
        found = json.loads(sys.stdin.read(MAX_INPUT_CHARS))
    except (ValueError, OSError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _model(given: dict[str, Any]) -> str | None:
    model = given.get("model")
    name = (model.get("display_name") or model.get("id")) if isinstance(model, dict) else model
    return name if isinstance(name, str) and name else None


def _session_cost(given: dict[str, Any]) -> float | None:
    cost = given.get("cost")
    dollars = cost.get("total_cost_usd") if isinstance(cost, dict) else None
    return float(dollars) if isinstance(dollars, int | float) and not isinstance(dollars, bool) else None


def _catalog_facts(folder: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Costs from the catalog; the cost of the session only if Claude Code does not give it."""
    from clew.catalog.database import open_reader
    from clew.catalog.stats import catalog_stats
    from clew.filters import Filters
    from clew.host import current_time
    from clew.model.time import to_microseconds

    db = open_reader(folder)
    if db is None:
        return {"problem": "clew: no catalog yet, run `clew stats` once"}
    try:
        now = current_time()
        today = catalog_stats(db, Filters.of(since="today", now=now)).usage()
        block = catalog_stats(db, Filters(agent=(AGENT,))).active_block(to_microseconds(now))
        facts = _costs("today", today.as_row()) if today.calls else {"today_cost": 0.0}
        if block is not None:
            facts |= {**_costs("block", block), "block_remaining_seconds": block["remaining_seconds"]}
        session = given.get("session_id")
        if _session_cost(given) is None and isinstance(session, str):
            facts |= _costs("session", catalog_stats(db).session_usage(AGENT, session).as_row())
        return facts
    finally:
        db.close()


def _costs(name: str, row: dict[str, Any]) -> dict[str, Any]:
    return {f"{name}_cost": row["cost"], f"{name}_cost_is_at_least": row["cost_is_at_least"]}


def _line(facts: dict[str, Any]) -> str:
    from clew.render.tables import cost, time_left, truncate
    from clew.render.text_safety import one_line

    parts = []
    if facts["model"]:
        parts.append(truncate(one_line(facts["model"]), MAX_MODEL_CHARS))
    for name in ("session", "today", "block"):
        if (amount := facts[f"{name}_cost"]) is not None:
            is_at_least = bool(facts[f"{name}_cost_is_at_least"])
            parts.append(f"{cost({'cost': amount, 'cost_is_at_least': is_at_least})} {name}")
    if (remaining := facts["block_remaining_seconds"]) is not None:
        # Without a known cost, nothing before it says that the time is that of a block.
        parts.append(f"{'' if facts['block_cost'] is not None else 'block: '}{time_left(remaining)} left")
    if facts["problem"]:
        parts.append(one_line(facts["problem"]))
    return " · ".join(parts) or NO_DATA


def _refresh_in_background(context: click.Context, homes: tuple[str, ...], folder: Path) -> None:
    """Start a process that reads what changed, unless one was started a moment ago."""
    marker = folder / REFRESHED
    if not folder.is_dir() or (marker.exists() and time.time() - marker.stat().st_mtime < REFRESH_SECONDS):
        return
    marker.touch()
    Popen(
        # -P: no module is loaded from the current folder, which may hold untrusted code.
        [sys.executable, "-P", "-m", "clew", *source_arguments(context, homes), "stats", "--since", "today", "--json"],
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=DEVNULL,
        start_new_session=True,
    )
