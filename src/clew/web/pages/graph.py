"""The graph of a session's branches as SVG: one row for each run of messages without a fork."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from clew.render.page.session import Contents
from clew.render.text_safety import escape, escape_line
from clew.render.trees import Node, nodes
from clew.web.pages.compare_links import branch_comparisons
from clew.web.request import PageRequest, respond
from clew.web.templates import session_url

ROW_HEIGHT, INDENT, LEFT_MARGIN = 34, 22, 16
MAX_RUNS = 1_000
MAX_INDENTS = 20
"""Deeper branches are not indented further."""


class Run(NamedTuple):
    """Messages that follow each other without a fork."""

    first: Node
    length: int
    parent: int | None
    """The number of the run that it continues."""
    depth: int
    on_path: bool
    """Whether the conversation continued here."""


def view(request: PageRequest) -> Response:
    """The page."""
    entry = request.entry()
    session = request.context.session(entry, request.profile)
    tree = nodes((unit.value for unit in session.units()), session.facts.tree.graph())
    runs, limit = find_runs(tree), request.number("rows", MAX_RUNS)
    is_forked = any(node.is_fork for node in tree)
    contents = request.context.transcript(entry, request.profile).contents() if is_forked else Contents()
    return respond(
        request,
        "graph.html",
        entry=entry,
        runs=runs[:limit],
        left_out=max(0, len(runs) - limit),
        drawing=draw_runs(runs[:limit], session_url(entry)),
        comparisons=branch_comparisons(entry, contents, request.profile),
        forks=sum(node.is_fork for node in tree),
        count=len(tree),
    )


def find_runs(tree: Sequence[Node]) -> list[Run]:
    """The runs of a tree. Abandoned branches stand above the branch that the conversation continued with."""
    children: dict[int | None, list[Node]] = {}
    for node in tree:
        children.setdefault(node.parent, []).append(node)
    runs: list[Run] = []
    waiting: list[tuple[Node, int | None, int]] = [(node, None, 0) for node in reversed(children.get(None, []))]
    while waiting:
        node, parent, depth = waiting.pop()
        first, length = node, 1
        while len(following := children.get(node.index, [])) == 1:
            node, length = following[0], length + 1
        runs.append(Run(first, length, parent, depth, first.on_path))
        number = len(runs) - 1
        branches = sorted(following, key=lambda child: not child.on_path)
        waiting += [
            (branch, number, depth if branch is branches[0] else min(MAX_INDENTS, depth + 1)) for branch in branches
        ]
    return runs


def draw_runs(runs: Sequence[Run], session: str) -> Markup:
    """Draw each run as a row with a circle, and a line to the run that it continues."""
    deepest = max((run.depth for run in runs), default=0)
    lines, circles = list[str](), list[str]()
    for number, run in enumerate(runs):
        x, y = _position(number, run)
        kind = "went" if run.on_path else "other"
        if run.parent is not None:
            from_x, from_y = _position(run.parent, runs[run.parent])
            lines.append(f'<path class="{kind}" d="M{from_x} {from_y}V{y - 10}Q{from_x} {y} {x} {y}"></path>')
        url = escape(f"{session}#m{run.first.index}")
        label = f"{run.first.index} · {run.first.label or run.first.role}"
        circles.append(
            f'<a href="{url}"><circle class="{kind}" cx="{x}" cy="{y}" r="6"></circle>'
            f'<text x="{LEFT_MARGIN * 2 + deepest * INDENT}" y="{y + 4}">{escape_line(label)} '
            f'<tspan class="soft">{run.length} {"message" if run.length == 1 else "messages"}</tspan></text></a>'
        )
    width, height = 760 + deepest * INDENT, max(1, len(runs)) * ROW_HEIGHT
    return Markup(
        f'<svg class="chart graph" role="group" aria-label="Branches: {len(runs)} runs of messages" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}">{"".join((*lines, *circles))}</svg>'
    )


def _position(number: int, run: Run) -> tuple[int, int]:
    return LEFT_MARGIN + run.depth * INDENT, number * ROW_HEIGHT + ROW_HEIGHT // 2
