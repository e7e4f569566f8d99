"""clew branches: the branches of a session in clew's own store."""

from __future__ import annotations

import click
import msgspec

from clew.agents.sage_agent.locate import AGENT
from clew.cli.options import choosing_project, common, wants_json
from clew.cli.output import print_json, print_table
from clew.cli.redaction import Redaction, redacting, redaction
from clew.cli.session_argument import session_argument
from clew.cli.sessions import own_session
from clew.store import Branch


@click.command("branches")
@session_argument(agent=AGENT)
@redacting
@choosing_project
@common
@click.pass_context
def command(context: click.Context, /, reference: str, homes: tuple[str, ...], as_json: bool) -> None:
    """List the branches of a session in the order they began; * marks the current one."""
    session = own_session(context, homes, reference)
    json = wants_json(context, as_json)
    print_branches(session.branches(), json, redaction(context, for_programs=json))


def print_branches(branches: list[Branch], json: bool, masking: Redaction) -> None:
    """Branches as a table, or as JSON."""
    if json:
        print_json(masking.value([msgspec.to_builtins(branch) for branch in branches]))
        return
    from clew.render.tables import Column

    columns = [
        Column(""),
        Column("branch"),
        Column("messages", right=True),
        Column("from"),
        Column("last"),
        Column("current message"),
    ]
    print_table(
        columns,
        [
            (
                "*" if one.active else "",
                one.name,
                str(one.messages),
                (one.parent or "-")[:8],
                one.head[:8],
                (one.position or "")[:8],
            )
            for one in branches
        ],
        masking,
    )
