"""clew graph: the tree of a conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click
import msgspec

from clew.cli.options import OptionWithOldNames, choosing_project, common, open_library, wants_json
from clew.cli.output import print_json, print_message, terminal_width
from clew.cli.redaction import redacting, redaction
from clew.cli.session_argument import session_argument
from clew.model.json import JSON
from clew.render import trees
from clew.stored_session import StoredSession


@click.command("graph")
@session_argument()
@click.option(
    "--format",
    "form",
    cls=OptionWithOldNames,
    old_names=["--as"],
    type=click.Choice(["text", "mermaid", "dot"]),
    metavar="FORMAT",
    default="text",
    show_default=True,
    help="text, mermaid or dot.",
)
@click.option("--tree", is_flag=True, help="With --json: print the full tree, with the children of every message.")
@redacting
@choosing_project
@common
@click.pass_context
def command(
    context: click.Context, /, reference: str, form: str, tree: bool, homes: tuple[str, ...], as_json: bool
) -> None:
    """Draw a conversation as a tree with its forks; * marks the active path."""
    masking = redaction(context, for_programs=wants_json(context, as_json))
    session = masking.session(open_library(context, homes).get(reference))
    graph = session.facts.tree.graph()
    if wants_json(context, as_json):
        print_json(_full_tree(session) if tree else msgspec.to_builtins(graph))
        return
    # Chains can lead through records that are not messages.
    nodes = trees.nodes((unit.value for unit in session.units()), graph)
    if not nodes:
        print_message("clew: this session has no messages", mask=False)
    for line in _draw(nodes, form):
        click.echo(line, nl=False)


def _draw(nodes: Sequence[trees.Node], form: str) -> Iterator[str]:
    if form == "text":
        return trees.text(nodes, terminal_width())
    return trees.mermaid(nodes) if form == "mermaid" else trees.dot(nodes)


def _full_tree(session: StoredSession) -> list[dict[str, JSON]]:
    from clew.analysis.views import tree

    units = list(session.units())
    messages = [unit.value for unit in units if unit.is_message]
    return [msgspec.to_builtins(node) for node in tree(messages, [u.value for u in units if not u.is_message])]
