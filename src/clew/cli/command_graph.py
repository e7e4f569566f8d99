"""clew graph: the tree of a conversation."""

from __future__ import annotations

import click
import msgspec

from clew.cli.options import common, library, wants_json
from clew.cli.output import print_json
from clew.render import trees


@click.command("graph")
@click.argument("reference", metavar="REF")
@click.option(
    "--as",
    "form",
    type=click.Choice(["text", "mermaid", "dot"]),
    default="text",
    show_default=True,
    help="What to draw it for.",
)
@click.option("--tree", is_flag=True, help="With --json: the full tree, with the children of every message.")
@common
@click.pass_context
def command(
    context: click.Context, /, reference: str, form: str, tree: bool, homes: tuple[str, ...], as_json: bool
) -> None:
    """Draw a conversation: its forks, and the path that is active now (marked *)."""
    session = library(context, homes).get(reference)
    graph = session.facts.tree.graph()
    messages = (unit.value for unit in session.units() if unit.is_message)
    if wants_json(context, as_json):
        if tree:
            from clew.derive.views import tree as full_tree

            print_json([msgspec.to_builtins(node) for node in full_tree(list(messages))])
        else:
            print_json(
                {
                    "is_linear": graph.is_linear,
                    "active_path": graph.active_path,
                    "fork_points": [
                        {
                            "uuid": fork.uuid,
                            "index": fork.index,
                            "branches": [{"uuid": branch.uuid, "index": branch.index} for branch in fork.branches],
                        }
                        for fork in graph.fork_points
                    ],
                }
            )
        return
    draw = {"text": trees.text, "mermaid": trees.mermaid, "dot": trees.dot}[form]
    units = (unit.value for unit in session.units())
    for line in draw(trees.nodes(units, graph)):
        click.echo(line, nl=False)
