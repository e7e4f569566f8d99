"""The tree of a conversation drawn as text, as a Mermaid flowchart and as a Graphviz graph.

One node for each prompt and each reply; tool results and further lines of a reply belong to the node above
them. Only labels are kept in memory. No function recurses, so any depth works.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from clew.analysis.facts import FactsCollector, as_event
from clew.analysis.injected_text import strip_reminders
from clew.analysis.links import NONE, SIGNIFICANT, Links
from clew.model import Graph
from clew.model.json import JSON
from clew.render.tables import cell_width, truncate
from clew.render.text_safety import one_line

LABEL = 60
MIN_LABEL_CELLS = 8
MAX_DEPTH = 24
"""Branches of branches beyond this depth are no longer moved to the right."""

_TEXT, _CALLS, _OTHER = 2, 1, 0
_MERMAID = re.compile(r"[^\w .,:/…·()=+*'?-]", re.ASCII)


class Node(msgspec.Struct, frozen=True):
    """A prompt or a reply. `parent` is the index of the node it follows."""

    index: int
    uuid: str | None
    parent: int | None
    role: str
    label: str
    on_path: bool
    is_fork: bool


class _Seen(NamedTuple):
    role: str
    label: str
    rank: int
    reply: str | None


def nodes(messages: Iterable[dict[str, JSON]], graph: Graph) -> list[Node]:
    """The nodes in source order. Records between the messages may be passed too: a chain can lead through them."""
    links, seen = _collect(messages)
    owners = _owners(links)
    by_index = {links.messages[node]: node for node in seen}
    forks = {owners[by_index[fork.index]] for fork in graph.fork_points if fork.index in by_index}
    kept = [node for node in seen if links.flags[node] & SIGNIFICANT or (node in forks and owners[node] == node)]
    path, index = set(graph.active_path), {node: links.messages[node] for node in kept}
    result = []
    for node in kept:
        above = links.parents[node]
        uuid = links.uuid(node)
        parent = index.get(owners[above]) if above != NONE else None
        row = seen[node]
        result.append(Node(index[node], uuid, parent, row.role, row.label, uuid in path, node in forks))
    return result


def _collect(messages: Iterable[dict[str, JSON]]) -> tuple[Links, dict[int, _Seen]]:
    collector = FactsCollector()
    links = collector.facts.links
    seen: dict[int, _Seen] = {}
    reply: int | None = None
    for message in messages:
        collector.add(as_event("role" in message, message))
        if "role" not in message:
            continue
        node = len(links) - 1
        # A selection of messages keeps its own indexes.
        links.messages[node] = message["index"]
        row = _row(message)
        seen[node] = row
        if links.flags[node] & SIGNIFICANT:
            reply = node
        elif reply is not None and row.reply is not None and row.reply == seen[reply].reply:
            seen[reply] = max(seen[reply], row, key=lambda row: row.rank)
            seen[node] = row._replace(label="")
    links.resolve()
    return links, seen


def _row(message: dict[str, JSON]) -> _Seen:
    blocks = message["content"]
    reply = (message.get("metadata") or {}).get("message_id")
    for block in blocks:
        if block["type"] == "text" and (words := short(strip_reminders(block["text"][: LABEL * 40]))):
            return _Seen(message["role"], words, _TEXT, reply)
    calls = [block.get("tool_name") or "tool" for block in blocks if block["type"] == "tool_use"]
    if calls:
        return _Seen(message["role"], short(", ".join(calls)), _CALLS, reply)
    kinds = dict.fromkeys(block["type"] for block in blocks)
    return _Seen(message["role"], short(f"({', '.join(kinds) or 'empty'})"), _OTHER, reply)


def short(text: str) -> str:
    """The beginning of a text, on one line."""
    line = one_line(text[: LABEL * 40])
    return line[: LABEL - 1].rstrip() + "…" if len(line) > LABEL else line


def _owners(links: Links) -> list[int]:
    """For each record the prompt or reply it belongs to; a root is its own."""
    owners = [NONE] * len(links)
    for node in range(len(links)):
        trail, at = [], node
        while owners[at] == NONE:
            if links.flags[at] & SIGNIFICANT or links.parents[at] == NONE:
                owners[at] = at
                break
            trail.append(at)
            at = links.parents[at]
        for step in trail:
            owners[step] = owners[at]
    return owners


def text(tree: Sequence[Node], width_limit: int | None = None) -> Iterator[str]:
    """A line for each node, cut to the width. `*` marks the active path; an abandoned branch is indented."""
    children, roots = _children(tree)
    width = max((len(node.role) for node in tree), default=0)
    waiting = [(node, "", "") for node in reversed(roots)]
    while waiting:
        node, first, further = waiting.pop()
        mark = "*" if node.on_path else " "
        following = children.get(node.index, [])
        fork = f"  ({len(following)} branches)" if len(following) > 1 else ""
        start = f"{first}{mark} {node.index} {node.role:<{width}}  "
        label = node.label
        if width_limit is not None:
            label = truncate(label, max(MIN_LABEL_CELLS, width_limit - cell_width(start) - len(fork)))
        yield f"{start}{label}{fork}".rstrip() + "\n"
        if following:
            going_on = next((child for child in following if child.on_path), following[-1])
            waiting.append((going_on, further, further))
            deeper = further if len(further) >= MAX_DEPTH * 3 else further + "│  "
            left = [child for child in following if child is not going_on]
            waiting += [(child, deeper[:-3] + "├─ ", deeper) for child in reversed(left)]


def _children(tree: Sequence[Node]) -> tuple[dict[int, list[Node]], list[Node]]:
    children: dict[int, list[Node]] = {}
    roots = []
    for node in tree:
        if node.parent is None:
            roots.append(node)
        else:
            children.setdefault(node.parent, []).append(node)
    return children, roots


def mermaid(tree: Sequence[Node]) -> Iterator[str]:
    """A Mermaid flowchart; the active path is drawn bold, prompts are rounded."""
    yield "flowchart TD\n"
    for node in tree:
        label = _MERMAID.sub(lambda match: f"#{ord(match.group())};", _caption(node))
        opening, closing = ('("', '")') if node.role == "user" else ('["', '"]')
        yield f"  n{node.index}{opening}{label}{closing}{':::active' if node.on_path else ''}\n"
    for node in tree:
        if node.parent is not None:
            yield f"  n{node.parent} {'==>' if node.on_path else '-->'} n{node.index}\n"
    yield "  classDef active stroke-width:3px\n"


def dot(tree: Sequence[Node]) -> Iterator[str]:
    """A Graphviz graph; the active path is drawn bold."""
    yield "digraph conversation {\n  node [shape=box];\n"
    for node in tree:
        label = _caption(node).replace("\\", "\\\\").replace('"', '\\"')
        yield f'  n{node.index} [label="{label}"{", style=bold" if node.on_path else ""}];\n'
    for node in tree:
        if node.parent is not None:
            yield f"  n{node.parent} -> n{node.index}{' [style=bold]' if node.on_path else ''};\n"
    yield "}\n"


def _caption(node: Node) -> str:
    return f"{node.index} {node.role}: {node.label}"
