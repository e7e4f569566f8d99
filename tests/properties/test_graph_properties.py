"""Laws of the graph that hold for any parents, in any order."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from clew.analysis.links import MESSAGE, NONE, RESULT, SAID, SIDECHAIN, SIGNIFICANT, Links
from clew.analysis.tree import Tree
from clew.analysis.views import tree as full_tree

NAMES = st.sampled_from([*"abcdefgh", None])
FLAGS = st.sampled_from(
    [
        MESSAGE | SAID | SIGNIFICANT,
        MESSAGE | SAID,
        MESSAGE | SAID | RESULT,
        MESSAGE,
        0,
        MESSAGE | SAID | SIGNIFICANT | SIDECHAIN,
    ]
)
Nodes = list[tuple[str | None, str | None, int, float]]
NODES = st.lists(st.tuples(NAMES, NAMES, FLAGS, st.sampled_from([0.0, 1.0, 2.0])), max_size=10)


def build(nodes: Nodes) -> Tree:
    links = Links()
    messages = 0
    for uuid, parent, flags, time in nodes:
        messages += bool(flags & MESSAGE)
        links.add(uuid, parent, flags, messages if flags & MESSAGE else 0, time)
    return Tree(links)


@given(NODES)
def test_P12_every_walk_ends_at_a_root(nodes: Nodes) -> None:
    links = build(nodes).links
    for node in range(len(links)):
        walk = list(links.ancestors(node))
        assert len(walk) == len(set(walk)) <= len(links)
        assert links.parents[walk[-1]] == NONE


@given(NODES)
def test_the_active_path_is_a_path_to_a_root_with_results_beside_it(nodes: Nodes) -> None:
    tree = build(nodes)
    links = tree.links
    path = list(tree.path)
    assert max(Counter(path).values(), default=0) <= 1
    assert all(links.flags[node] & MESSAGE for node in path)
    spine = list(links.ancestors(tree.leaf))
    assert [node for node in path if node in spine] == [node for node in reversed(spine) if links.flags[node] & MESSAGE]
    beside = [node for node in path if node not in spine]
    results = [node for node in beside if links.flags[node] & RESULT]
    # Beside the path stand results, and the lines of a reply that lead from it to them.
    leading = {step for result in results for step in links.ancestors(result)}
    assert set(beside) <= leading
    assert not any(links.flags[node] & SIGNIFICANT for node in beside if node not in results)


@given(NODES)
def test_every_message_begins_at_most_one_branch(nodes: Nodes) -> None:
    tree = build(nodes)
    branches = [node for fork in tree.forks for node in fork.branches]
    assert len(branches) == len(set(branches))
    assert all(len(fork.branches) > 1 for fork in tree.forks)
    assert all(tree.links.flags[node] & SIGNIFICANT for node in branches)
    assert tree.is_linear == (not tree.forks)


@given(NODES)
def test_branches_are_in_order_of_time_then_place(nodes: Nodes) -> None:
    tree = build(nodes)
    for fork in tree.forks:
        assert list(fork.branches) == sorted(fork.branches, key=lambda node: (tree.links.times[node], node))


@given(NODES, st.data())
def test_a_new_leaf_takes_no_fork_away(nodes: Nodes, data: st.DataObject) -> None:
    before = build(nodes)
    known: list[str | None] = [uuid for uuid, *_ in nodes]
    parent = data.draw(st.sampled_from([*known, None]))
    after = build([*nodes, ("a new one", parent, MESSAGE | SAID | SIGNIFICANT, 9.0)])
    forks = {frozenset(fork.branches) for fork in after.forks}
    for fork in before.forks:
        assert any(set(fork.branches) <= branches for branches in forks)


@given(st.permutations(range(7)))
def test_a_tree_without_ties_does_not_depend_on_the_order_of_the_file(order: list[int]) -> None:
    parents = [None, "n0", "n1", "n1", "n2", "n3", "n4"]
    links = Links()
    for number in order:
        links.add(f"n{number}", parents[number], MESSAGE | SAID | SIGNIFICANT, number + 1, float(number))
    tree = Tree(links, "n6")
    assert tree.graph().active_path == ["n0", "n1", "n2", "n4", "n6"]
    points = [(point.uuid, [branch.uuid for branch in point.branches]) for point in tree.graph().fork_points]
    assert points == [("n1", ["n2", "n3"])]
    assert links.missing == links.cycles == []


@given(NODES)
def test_resolving_twice_changes_nothing(nodes: Nodes) -> None:
    links = build(nodes).links
    before = (list(links.parents), list(links.missing), list(links.cycles))
    links.resolve()
    assert (list(links.parents), list(links.missing), list(links.cycles)) == before


@given(NODES)
def test_a_named_parent_is_linked_missing_or_cut(nodes: Nodes) -> None:
    links = build(nodes).links
    for node, (_, parent, _, _) in enumerate(nodes):
        if parent is None:
            assert links.parents[node] == NONE
        else:
            linked, missing, cut = links.parents[node] != NONE, node in links.missing, node in links.cycles
            assert linked + missing + cut == 1


@given(st.lists(st.tuples(NAMES, NAMES), max_size=10))
def test_the_full_tree_holds_every_message_once(pairs: list[tuple[str | None, str | None]]) -> None:
    messages: list[dict[str, Any]] = [
        {"index": at, "uuid": uuid, "parent_uuid": parent, "role": "user", "content": []}
        for at, (uuid, parent) in enumerate(pairs, 1)
    ]
    nodes = full_tree(messages)
    assert [node.index for node in nodes] == [message["index"] for message in messages]
    children = [child for node in nodes for child in node.children]
    roots = [node.index for node in nodes if node.parent is None]
    assert sorted([*children, *roots]) == [node.index for node in nodes]


ODD_NAMES = NAMES | st.sampled_from(["é", "a\nb", "\ud800", ""])


@given(st.lists(ODD_NAMES, max_size=12))
def test_uuids_are_kept_as_they_are(uuids: list[str | None]) -> None:
    links = Links()
    for uuid in uuids:
        links.add(uuid, None, 0)
    assert [links.uuid(node) for node in range(len(links))] == uuids
    chunks = links.chunks(list(range(len(links))))
    assert [uuid for chunk in chunks for uuid in chunk] == [uuid for uuid in uuids if uuid is not None]


@given(st.lists(FLAGS, max_size=10), st.integers(0, 10))
def test_the_path_of_a_chain_is_that_of_any_tree(flags: list[int], at: int) -> None:
    chain, other = Links(), Links()
    for node, flag in enumerate(flags):
        for links in (chain, other):
            links.add(f"n{node}", f"n{node - 1}" if node else None, flag, node + 1)
    # A lone record that is no message changes neither path nor forks, but makes the general way be taken.
    other.add(None, None, 0)
    leaf = f"n{at}"
    assert chain.is_chain
    assert len(flags) == 0 or not other.is_chain
    assert list(Tree(chain, leaf).path) == list(Tree(other, leaf).path)
    assert Tree(chain, leaf).forks == Tree(other, leaf).forks
