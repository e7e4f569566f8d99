"""clew without a command: the agents found, and what to try next."""

from __future__ import annotations

import sqlite3
from datetime import datetime

import click
import msgspec

from clew.cli.options import open_library, wants_json
from clew.cli.output import print_json, print_message, print_table, terminal_width
from clew.model.json import JSON


def overview(context: click.Context) -> None:
    """Print the agents, their sessions and the last activity; as JSON also tokens by model."""
    from clew.catalog.queries import agent_summaries
    from clew.cli.sessions import print_unknown_formats, print_unreadable

    library, as_json = open_library(context, ()), wants_json(context, False)
    with library.catalog() as catalog:
        agents = agent_summaries(catalog.db)
        print_unreadable(catalog.db)
        print_unknown_formats(catalog.db)
        tokens = _tokens(context, catalog.db) if as_json else {}
    if as_json:
        print_json({"agents": agents, "tokens": tokens})
    elif agents:
        _print(agents, library.now())
    else:
        print_message(
            "No sessions found. To try clew on example sessions:\n  clew demo\n  clew --home clew-demo list", mask=False
        )
    context.exit(0 if agents else 1)


def _tokens(context: click.Context, db: sqlite3.Connection) -> dict[str, JSON]:
    """Tokens by model. There is no --redact here, so names of models are masked whatever is printed."""
    from clew.catalog.stats import catalog_stats, number_duplicates
    from clew.cli.redaction import redaction

    mask, used = redaction(context, for_programs=False).text, catalog_stats(db).tokens_by_model()
    names = number_duplicates({model: mask(model) for model in sorted(used)})
    return {name: msgspec.to_builtins(used[model]) for model, name in names.items()}


def _print(agents: dict[str, dict[str, JSON]], now: datetime) -> None:
    from clew.model.time import parse_time
    from clew.render.tables import Column, ago, count, size

    lines = []
    for agent, facts in agents.items():
        last = ago(parse_time(facts["last_activity"]), now)
        cells = [
            agent,
            count(facts["sessions"]),
            count(facts["subagents"]),
            count(facts["messages"]),
            size(facts["bytes"]),
            last,
        ]
        lines.append(cells)
    ranks = {"sessions": 0, "sub-agents": 2, "messages": 0, "size": 1}
    numbers = [Column(name, right=True, drop_rank=rank) for name, rank in ranks.items()]
    print_table([Column("agent"), *numbers, Column("last activity")], lines, None)
    click.echo("")
    commands = ("list", "show @last", "search WORDS", "stats", "pick", "--help")
    # Lines break between commands, not inside of one: `wrap_text` does not break at a no-break space.
    hint = "Try: " + ", ".join(f"clew {command}".replace(" ", "\xa0") for command in commands)
    click.echo(click.wrap_text(hint, terminal_width() or 100, "", "     ").replace("\xa0", " "))
