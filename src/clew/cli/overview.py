"""clew without a command: what is here, and what to try next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import click

from clew.cli.options import library, wants_json
from clew.cli.output import print_json, print_table, say
from clew.cli.redacting import TEXT, redaction
from clew.cli.rows import rows
from clew.model.json import JSON


def overview(context: click.Context) -> None:
    """Agents found, sessions, tokens, last activity."""
    shelf = library(context, ())
    listed, unreadable = rows(shelf.sessions())
    for problem in unreadable:
        say(f"clew: {problem}")
    by_agent: dict[str, list[dict[str, JSON]]] = defaultdict(list)
    for row in listed:
        by_agent[row["agent"]].append(row)
    if wants_json(context, False):
        print_json(_summary(shelf, by_agent, redaction(context, TEXT).text))
    elif by_agent:
        _print(by_agent, shelf.hosts[0].now())
    else:
        say("No sessions of any agent here. To see what clew can do:\n  clew demo\n  clew --home clew-demo list")
    context.exit(0 if by_agent else 1)


def _summary(shelf: JSON, by_agent: dict[str, list[dict[str, JSON]]], mask: Callable[[str], str]) -> dict[str, JSON]:
    import msgspec

    from clew.catalog.stats import told_apart

    used = shelf.usage()
    names = told_apart({model: mask(model) for model in sorted(used)})
    return {
        "agents": {agent: _agent_summary(listed) for agent, listed in sorted(by_agent.items())},
        # There is no --redact here, so names of models are masked whatever is printed.
        "tokens": {name: msgspec.to_builtins(used[model]) for model, name in names.items()},
    }


def _agent_summary(listed: list[dict[str, JSON]]) -> dict[str, JSON]:
    own = [row for row in listed if not row["is_agent_session"]]
    return {
        "sessions": len(own),
        "subagents": len(listed) - len(own),
        "messages": sum(row["messages"] for row in listed),
        "bytes": sum(row["bytes"] for row in listed),
        "last_activity": max((row["ended_at"] for row in listed if row["ended_at"]), default=None),
    }


def _print(by_agent: dict[str, list[dict[str, JSON]]], now: JSON) -> None:
    from clew.model.time import parse_time
    from clew.render.tables import Column, ago, count, size

    lines = []
    for agent, listed in sorted(by_agent.items()):
        facts = _agent_summary(listed)
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
    numbers = [Column(name, right=True) for name in ("sessions", "sub-agents", "messages", "size")]
    print_table([Column("agent"), *numbers, Column("last activity")], lines, None)
    click.echo("")
    click.echo("Try: clew list · clew show @last · clew graph @last · clew verify · clew export @last --to markdown")
