"""clew graph: the tree of a conversation."""

from __future__ import annotations

import click
import msgspec

from clew.cli.options import choosing_project, common, open_library, wants_json
from clew.cli.output import print_json, say
from clew.cli.redaction import DATA, TEXT, redacting, redaction
from clew.model.json import JSON
from clew.render import trees
from clew.stored_session import StoredSession


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
@redacting
@choosing_project
@common
@click.pass_context
def command(
    context: click.Context, /, reference: str, form: str, tree: bool, homes: tuple[str, ...], as_json: bool
) -> None:
    """Draw a conversation: its forks, and the path that is active now (marked *)."""
    masking = redaction(context, DATA if wants_json(context, as_json) else TEXT)
    session = masking.session(open_library(context, homes).get(reference))
    graph = session.facts.tree.graph()
    if wants_json(context, as_json):
        print_json(_full_tree(session) if tree else msgspec.to_builtins(graph))
        return
    draw = {"text": trees.text, "mermaid": trees.mermaid, "dot": trees.dot}[form]
    # Chains can lead through records that are no messages.
    nodes = trees.nodes((unit.value for unit in session.units()), graph)
    if not nodes:
        say("clew: there is no conversation in this session", own=True)
    for line in draw(nodes):
        click.echo(line, nl=False)


def _full_tree(session: StoredSession) -> list[dict[str, JSON]]:
    from clew.analysis.views import tree

    units = list(session.units())
    messages = [unit.value for unit in units if unit.is_message]
    return [msgspec.to_builtins(node) for node in tree(messages, [u.value for u in units if not u.is_message])]
