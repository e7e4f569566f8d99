"""clew agents: which agents clew reads, and where."""

from __future__ import annotations

from pathlib import Path

import click

from clew.agents import registry
from clew.cli.options import common, open_library, wants_json
from clew.cli.output import print_json, print_message, print_table
from clew.io.paths import escape_invalid_utf8, folder_error
from clew.model.json import JSON
from clew.render.tables import Column
from clew.sources.local import is_folder, listed_roots, unreadable_folders


@click.command("agents")
@common
@click.pass_context
def command(context: click.Context, /, homes: tuple[str, ...], as_json: bool) -> None:
    """List the supported agents and the folders that are read."""
    hosts = open_library(context, homes).hosts
    for folder in unreadable_folders(hosts):
        print_message(f"clew: {folder}")
    if wants_json(context, as_json):
        print_json(
            [
                {
                    "id": agent.id,
                    "title": agent.title,
                    "homepage": agent.homepage,
                    "newest_tested_version": agent.newest_tested_version or None,
                    "roots": [_describe(root) for host in hosts for root in agent.roots(host)],
                }
                for agent in registry.load_all()
            ]
        )
        return
    lines = [
        [agent.id, agent.title, root["path"], root["error"] or ("" if root["exists"] else "not found")]
        for agent in registry.load_all()
        for root in map(_describe, listed_roots(agent, hosts))
    ]
    folder_column = Column("folder", is_path=True, flexible=True, least=30)
    print_table([Column("agent"), Column("name", drop_rank=1), folder_column, Column("")], lines, None)


def _describe(root: Path) -> dict[str, JSON]:
    """A folder that is read: whether it exists, which is unknown (null) where it cannot be read, and the reason."""
    error = folder_error(str(root))
    return {
        "path": escape_invalid_utf8(str(root)),
        "exists": None if error else is_folder(root),
        "error": error or None,
    }
