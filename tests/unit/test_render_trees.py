"""The conversation's tree as text, Mermaid and Graphviz."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clew.analysis.facts import as_event, collect_facts
from clew.model import Graph
from clew.render.trees import LABEL, Node, dot, mermaid, nodes, text

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "render"


def fixture_nodes() -> list[Node]:
    document = json.loads((FIXTURES / "session.json").read_text(encoding="utf-8"))
    return nodes(document["messages"], msgspec.convert(document["graph"], Graph))


def said(
    index: int, parent: int | None, words: str = "hello", role: str | None = None, **fields: Any
) -> dict[str, Any]:
    return {
        "index": index,
        "uuid": f"u{index}",
        "parent_uuid": None if parent is None else f"u{parent}",
        "role": role or ("user" if index % 2 else "assistant"),
        "content": [{"type": "text", "text": words}],
    } | fields


def grow(units: Iterable[dict[str, Any]]) -> list[Node]:
    units = list(units)
    return nodes(units, collect_facts(as_event("role" in unit, unit) for unit in units).tree.graph())


@pytest.mark.seed("S1-35")
@pytest.mark.parametrize(("name", "draw"), [("tree.txt", text), ("tree.mmd", mermaid), ("tree.dot", dot)])
def test_the_tree_is_drawn(name: str, draw: Any) -> None:
    assert "".join(draw(fixture_nodes())) == (FIXTURES / name).read_text(encoding="utf-8")


def test_forks_and_the_active_path_are_marked() -> None:
    tree = {node.index: node for node in fixture_nodes()}
    assert [index for index, node in tree.items() if node.is_fork] == [9]
    assert [index for index, node in tree.items() if not node.on_path] == [12, 13]
    assert (tree[12].parent, tree[14].parent) == (9, 9)


def test_parallel_tool_calls_are_no_fork() -> None:
    tree = fixture_nodes()
    assert [node.index for node in tree] == [1, 2, 7, 9, 12, 13, 14, 15]
    assert tree[1].label == "I will look at the file, then run the tests.", "of all lines of the reply"


def test_a_chain_may_lead_through_records() -> None:
    record = {"after": 2, "kind": "progress", "uuid": "p", "parent_uuid": "u2"}
    tree = grow([said(1, None), said(2, 1), record, said(3, 0, parent_uuid="p")])
    assert [node.parent for node in tree] == [None, 1, 2]


def test_a_fork_below_a_note_of_the_agent_shows_the_note() -> None:
    tree = grow([said(1, None, "hook", "system"), said(2, 1, role="user"), said(3, 1, role="user")])
    assert [(node.index, node.parent, node.is_fork) for node in tree] == [(1, None, True), (2, 1, False), (3, 1, False)]


def test_branches_of_branches_are_indented() -> None:
    parents = [None, 1, 2, 2, 4, 4, 2]
    lines = list(text(grow(said(index, parent, f"w{index}", "user") for index, parent in enumerate(parents, 1))))
    assert "".join(lines) == (
        "* 1 user  w1\n"
        "* 2 user  w2  (3 branches)\n"
        "├─   3 user  w3\n"
        "├─   4 user  w4  (2 branches)\n"
        "│  ├─   5 user  w5\n"
        "│    6 user  w6\n"
        "* 7 user  w7\n"
    )


def test_labels_are_short_and_harmless() -> None:
    tree = grow([said(1, None, "\x1b]0;x\x07 " + "long " * 1000), said(2, 1, "")])
    assert len(tree[0].label) <= LABEL and tree[0].label.startswith("␛]0;x␇ long")
    assert tree[1].label == "(text)"


HOSTILE = 'a"]; n9[evil] --> n1 %% <img src=x> `x` \\" } graph & #quot; {{x}} | (y) \n end\\'


def test_mermaid_labels_cannot_leave_their_quotes() -> None:
    lines = list(mermaid(grow([said(1, None, HOSTILE)])))
    label = re.fullmatch(r'  n1\("(.*)"\):::active\n', lines[1])
    assert label
    assert not set(label[1]) & set('"<>[]{}|`\\&%')
    assert set(re.findall(r"#(?!\d+;)", label[1])) == set()


def test_dot_labels_cannot_leave_their_quotes() -> None:
    lines = list(dot(grow([said(1, None, HOSTILE)])))
    assert re.fullmatch(r'  n1 \[label="(?:[^"\\]|\\.)*", style=bold\];\n', lines[1])


@pytest.mark.slow
def test_a_deep_and_a_wide_tree_are_drawn() -> None:
    size = 100_000
    deep = grow(said(index, index - 1 or None) for index in range(1, size + 1))
    assert len(list(text(deep))) == size
    wide = [Node(1, "u1", None, "user", "x", True, True)]
    wide += [Node(index, None, index - 2 - index % 2 or 1, "user", "x", False, False) for index in range(2, size)]
    lines = list(text(wide))
    assert len(lines) == size - 1
    assert max(map(len, lines)) < 200
