"""clew agents: which agents clew reads, and where."""

from __future__ import annotations

import click

from clew.agents import registry
from clew.cli.options import common, open_library, wants_json
from clew.cli.output import print_json, print_table
from clew.model.json import JSON
from clew.render.tables import Column


@click.command("agents")
@common
@click.pass_context
def command(context: click.Context, /, homes: tuple[str, ...], as_json: bool) -> None:
    """List the supported agents and the folders that are read."""
    hosts = open_library(context, homes).hosts
    rows: list[dict[str, JSON]] = []
    for agent in registry.load_all():
        roots = [root for host in hosts for root in agent.roots(host)]
        rows.append(
            {
                "id": agent.id,
                "title": agent.title,
                "homepage": agent.homepage,
                "roots": [{"path": str(root), "exists": root.is_dir()} for root in roots],
            }
        )
    if wants_json(context, as_json):
        print_json(rows)
        return
    lines = [
        [row["id"], row["title"], root["path"], "" if root["exists"] else "not found"]
        for row in rows
        for root in row["roots"]
    ]
    print_table([Column("agent"), Column("name"), Column("folder", flexible=True, least=30), Column("")], lines, None)
