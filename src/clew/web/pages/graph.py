"""The graph of a session's branches: runs of messages between forks, drawn as SVG and told as a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from clew.render.page.escape import attribute, line
from clew.render.trees import Node, nodes
from clew.web.asking import Asked, page
from clew.web.drawing import address

ROW, STEP, LEFT = 34, 22, 16
MOST = 1_000
"""Runs that are drawn."""
DEEPEST = 20
"""Branches of branches beyond this are no longer moved to the right."""


class Run(NamedTuple):
    """Messages that follow each other without a fork."""

    first: Node
    length: int
    above: int | None
    """The place of the run that it goes on from."""
    depth: int
    on_path: bool


def page_of(asked: Asked) -> Response:
    """The page."""
    entry = asked.shelf.entry(asked.part("agent"), asked.part("identity"))
    session = asked.shelf.session(entry, asked.profile)
    found = nodes((unit.value for unit in session.units()), session.facts.tree.graph())
    every, most = runs(found), asked.number("rows", MOST)
    return page(
        asked,
        "graph.html",
        entry=entry,
        runs=every[:most],
        left_out=max(0, len(every) - most),
        drawing=drawing(every[:most], address(entry)),
        forks=sum(node.is_fork for node in found),
        count=len(found),
    )


def runs(tree: Sequence[Node]) -> list[Run]:
    """The runs of a tree; the branch that was gone on with comes last, below those that were left."""
    children: dict[int | None, list[Node]] = {}
    for node in tree:
        children.setdefault(node.parent, []).append(node)
    found: list[Run] = []
    waiting: list[tuple[Node, int | None, int]] = [(node, None, 0) for node in reversed(children.get(None, []))]
    while waiting:
        node, above, depth = waiting.pop()
        first, count = node, 1
        while len(following := children.get(node.index, [])) == 1:
            node, count = following[0], count + 1
        found.append(Run(first, count, above, depth, first.on_path))
        at = len(found) - 1
        ways = sorted(following, key=lambda child: not child.on_path)
        waiting += [(way, at, depth if way is ways[0] else min(DEEPEST, depth + 1)) for way in ways]
    return found


def drawing(every: Sequence[Run], session: str) -> Markup:
    """The runs as rows with lines between them."""
    deepest = max((run.depth for run in every), default=0)
    pieces = []
    for at, run in enumerate(every):
        x, y = LEFT + run.depth * STEP, at * ROW + ROW // 2
        kind = "went" if run.on_path else "other"
        if run.above is not None:
            from_x, from_y = LEFT + every[run.above].depth * STEP, run.above * ROW + ROW // 2
            pieces.append(f'<path class="{kind}" d="M{from_x} {from_y}V{y - 10}Q{from_x} {y} {x} {y}"></path>')
    for at, run in enumerate(every):
        x, y = LEFT + run.depth * STEP, at * ROW + ROW // 2
        kind = "went" if run.on_path else "other"
        words = f"{run.first.index} · {run.first.label or run.first.role}"
        target = attribute(f"{session}#m{run.first.index}")
        pieces.append(
            f'<a href="{target}"><circle class="{kind}" cx="{x}" cy="{y}" r="6"></circle>'
            f'<text x="{LEFT * 2 + deepest * STEP}" y="{y + 4}">{line(words)} '
            f'<tspan class="soft">{run.length} {"message" if run.length == 1 else "messages"}</tspan></text></a>'
        )
    width, height = 760 + deepest * STEP, max(1, len(every)) * ROW
    about = f"Branches: {len(every)} runs of messages"
    return Markup(
        f'<svg class="chart graph" role="group" aria-label="{about}" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">{"".join(pieces)}</svg>'
    )
