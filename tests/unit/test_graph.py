"""Links, forks and the active path."""

from pathlib import Path

import pytest

from clew.analysis.facts import as_event, collect_facts
from clew.analysis.links import MESSAGE, NONE, RESULT, SAID, SIDECHAIN, SIGNIFICANT, WINDOW, Links
from clew.analysis.tree import Tree
from clew.model import ForkBranch, ForkPoint
from tests.unit.samples import (
    Record,
    call,
    chain,
    claude_line,
    read_lines,
    result,
    say,
    seed,
)

PROMPT = REPLY = MESSAGE | SAID | SIGNIFICANT
LINE = MESSAGE | SAID
ANSWER = MESSAGE | SAID | RESULT


def tree_of(*messages: Record, leaf: str | None = None) -> Tree:
    return Tree(collect_facts(as_event(True, message) for message in messages).links, leaf)


def linked(*nodes: tuple[str | None, str | None], flags: int = PROMPT) -> Links:
    links = Links()
    for number, (uuid, parent) in enumerate(nodes, 1):
        links.add(uuid, parent, flags, number)
    links.resolve()
    return links


def path_of(tree: Tree) -> list[str]:
    return tree.graph().active_path


def forks_of(tree: Tree) -> list[tuple[str, list[str]]]:
    return [(point.uuid, [branch.uuid for branch in point.branches]) for point in tree.graph().fork_points]


@pytest.mark.seed("S2-41", "S2-38", "S2-40", "S3-21", "S3-22")
def test_a_linear_session() -> None:
    document = seed("seed-002/example-document")
    graph = tree_of(*document["messages"]).graph()
    assert graph.is_linear
    assert graph.fork_points == []
    assert graph.active_path == ["msg-001", "msg-002", "msg-003"] == document["graph"]["active_path"]


@pytest.mark.seed("S2-38", "S2-39", "S2-40")
def test_the_example_with_a_fork() -> None:
    document = seed("seed-002/graph")
    graph = tree_of(*document["messages"]).graph()
    stated = document["graph"]
    assert graph.is_linear is stated["is_linear"] is False
    branches = [ForkBranch(uuid="msg-uuid-6a", index=6), ForkBranch(uuid="msg-uuid-6b", index=7)]
    assert graph.fork_points == [ForkPoint(uuid="msg-uuid-5", index=5, branches=branches)]
    assert graph.active_path == stated["active_path"]


@pytest.mark.seed("S1-33", "S2-39")
def test_an_older_parent_makes_a_fork_and_both_branches_stay() -> None:
    tree = tree_of(
        *chain(
            say(1, "user", "a"), say(2, "assistant", "b"), say(3, "user", "c"), say(4, "user", "d", parent_uuid="m2")
        )
    )
    assert forks_of(tree) == [("m2", ["m3", "m4"])]
    assert path_of(tree) == ["m1", "m2", "m4"]


@pytest.mark.seed("SX-10")
def test_branches_are_ordered_by_time_then_by_place() -> None:
    times = {2: "2026-01-01T10:00:03Z", 3: "2026-01-01T10:00:01Z", 4: "2026-01-01T10:00:01Z"}
    branches = [say(at, "user", "x", parent_uuid="m1", timestamp=time) for at, time in times.items()]
    tree = tree_of(say(1, "assistant", "a", parent_uuid=None), *branches)
    assert forks_of(tree) == [("m1", ["m3", "m4", "m2"])]


@pytest.mark.seed("S2-41")
def test_parallel_tool_calls_are_no_fork_and_all_results_are_on_the_path() -> None:
    group = {"message_id": "msg_1"}
    tree = tree_of(
        say(1, "user", "go", parent_uuid=None),
        say(2, "assistant", call("t1"), parent_uuid="m1", **group),
        say(3, "assistant", call("t2"), parent_uuid="m2", **group),
        say(4, "assistant", call("t3"), parent_uuid="m3", **group),
        say(5, "user", result("t2"), parent_uuid="m3"),
        say(6, "user", result("t1"), parent_uuid="m2"),
        say(7, "user", result("t3"), parent_uuid="m4"),
        say(8, "assistant", "done", parent_uuid="m7", message_id="msg_2"),
    )
    assert tree.is_linear
    assert sorted(path_of(tree)) == [f"m{at}" for at in range(1, 9)]
    assert path_of(tree)[0] == "m1"
    assert path_of(tree)[-1] == "m8"


def test_a_call_whose_result_came_before_anothers_is_on_the_path() -> None:
    group = {"message_id": "msg_1"}
    tree = tree_of(
        say(1, "user", "go", parent_uuid=None),
        say(2, "assistant", call("t1"), parent_uuid="m1", **group),
        say(3, "assistant", call("t2"), parent_uuid="m2", **group),
        say(4, "assistant", "and", parent_uuid="m3", **group),
        say(5, "assistant", call("t3"), parent_uuid="m4", **group),
        say(6, "user", result("t3"), parent_uuid="m5"),
        say(7, "user", result("t2"), parent_uuid="m3"),
        say(8, "user", result("t1"), parent_uuid="m2"),
        say(9, "assistant", "done", parent_uuid="m8", message_id="msg_2"),
    )
    assert tree.is_linear
    assert sorted(path_of(tree)) == [f"m{at}" for at in range(1, 10)]


def test_results_of_a_reply_that_was_taken_back_are_not_on_the_path() -> None:
    tree = tree_of(
        say(1, "user", "go", parent_uuid=None),
        say(2, "assistant", call("t1"), parent_uuid="m1", message_id="msg_1"),
        say(3, "user", result("t1"), parent_uuid="m2"),
        say(4, "user", "no, stay", parent_uuid=None),
        say(5, "user", "go home", parent_uuid="m1"),
    )
    assert path_of(tree) == ["m1", "m5"]


def test_a_second_reply_to_one_prompt_is_a_fork() -> None:
    tree = tree_of(
        say(1, "user", "go", parent_uuid=None),
        say(2, "assistant", "no", parent_uuid="m1", message_id="msg_1"),
        say(3, "assistant", "yes", parent_uuid="m1", message_id="msg_2"),
        say(4, "user", "injected", parent_uuid="m2", is_meta=True),
    )
    assert forks_of(tree) == [("m1", ["m2", "m3"])]


def test_notes_between_messages_carry_the_chain() -> None:
    links = Links()
    links.add("u1", None, PROMPT, 1)
    links.add("p1", "u1", 0)
    links.add("a1", "p1", REPLY, 2)
    links.add("a2", "p1", REPLY, 3)
    tree = Tree(links)
    assert forks_of(tree) == [("u1", ["a1", "a2"])]
    assert path_of(tree) == ["u1", "a2"]


@pytest.mark.parametrize("known", [True, False])
def test_a_compaction_continues_the_conversation(known: bool) -> None:
    boundary = say(3, "system", "compacted", parent_uuid=None, logical_parent_uuid="m2" if known else "never written")
    tree = tree_of(
        *chain(say(1, "user", "a"), say(2, "assistant", "b")),
        boundary,
        say(4, "user", "summary", parent_uuid="m3", is_compact_summary=True),
        say(5, "assistant", "on", parent_uuid="m4"),
    )
    assert path_of(tree) == ["m1", "m2", "m3", "m4", "m5"]
    assert tree.is_linear
    assert tree.links.missing == []


@pytest.mark.seed("S4-18", "S4-19")
def test_sidechains_stay_off_the_main_path() -> None:
    tree = tree_of(
        *chain(say(1, "user", "a"), say(2, "assistant", "b")),
        say(3, "user", "sub", parent_uuid=None, is_sidechain=True),
        say(4, "assistant", "sub", parent_uuid="m3", is_sidechain=True),
    )
    assert path_of(tree) == ["m1", "m2"]
    only = tree_of(
        say(1, "user", "sub", parent_uuid=None, is_sidechain=True),
        say(2, "assistant", "x", parent_uuid="m1", is_sidechain=True),
    )
    assert path_of(only) == ["m1", "m2"]


def test_a_named_leaf_decides_the_path() -> None:
    messages = chain(say(1, "user", "a"), say(2, "assistant", "b"), say(3, "assistant", "c", parent_uuid="m1"))
    assert path_of(tree_of(*messages, leaf="m2")) == ["m1", "m2"]
    assert path_of(tree_of(*messages, leaf="unknown")) == ["m1", "m3"]


@pytest.mark.seed("S4-18")
def test_P12_missing_parents_are_further_roots() -> None:
    links = linked(("a", None), ("b", "gone"), ("c", "b"))
    assert [links.parents[node] for node in range(3)] == [NONE, NONE, 1]
    assert links.missing == [1]


def test_P12_forward_parents_are_found() -> None:
    links = linked(("a", "c"), ("b", "a"), ("c", None))
    assert list(links.parents) == [2, 0, NONE]
    assert links.missing == links.cycles == []


@pytest.mark.seed("S4-18")
def test_P12_a_message_that_is_its_own_parent() -> None:
    links = linked(("a", None), ("b", "b"), ("c", "b"))
    assert list(links.parents) == [NONE, NONE, 1]
    assert links.cycles == [1]
    assert links.missing == []


@pytest.mark.seed("S4-18")
def test_P12_circles_are_cut_at_their_first_message() -> None:
    links = linked(("a", "c"), ("b", "a"), ("c", "b"), ("d", "c"), ("e", "f"), ("f", "e"))
    assert links.cycles == [0, 4]
    assert list(links.parents) == [NONE, 0, 1, 2, NONE, 4]
    links.resolve()
    assert links.cycles == [0, 4]


def test_P12_one_uuid_twice_is_two_messages() -> None:
    links = linked(("a", None), ("b", "a"), ("b", "a"), ("c", "b"))
    assert links.repeated == [2]
    assert links.parents[3] == 1
    assert links.messages.tolist() == [1, 2, 3, 4]


@pytest.mark.slow
def test_P12_a_long_chain() -> None:
    size = 100_000
    links = Links()
    for number in range(size):
        links.add(f"n{number}", f"n{number - 1}" if number else None, PROMPT, number + 1)
    tree = Tree(links)
    assert len(tree.path) == size
    assert tree.is_linear


def test_P12_a_long_chain_backwards() -> None:
    size = 20_000
    links = Links()
    for number in range(size):
        links.add(f"n{number}", f"n{number + 1}" if number < size - 1 else None, PROMPT, number + 1)
    links.resolve()
    assert len(list(links.ancestors(0))) == size
    assert links.cycles == []


@pytest.mark.slow
def test_P12_many_children() -> None:
    links = Links()
    links.add("root", None, PROMPT, 1)
    for number in range(100_000):
        links.add(f"n{number}", "root", PROMPT, number + 2)
    (fork,) = Tree(links).forks
    assert len(fork.branches) == 100_000


def test_a_parent_outside_the_window_is_found_in_the_end() -> None:
    links = Links()
    links.add("root", None, PROMPT, 1)
    for number in range(WINDOW + 10):
        links.add(f"n{number}", None, PROMPT, number + 2)
    node = links.add("late", "root", PROMPT, WINDOW + 20)
    links.resolve()
    assert links.parents[node] == 0
    assert links.missing == []


def test_messages_without_ids_have_no_links() -> None:
    tree = Tree(linked((None, None), (None, None)))
    assert path_of(tree) == []
    assert tree.is_linear
    assert Tree(Links()).graph().active_path == []


def test_odd_uuids_come_back_as_they_were() -> None:
    links = linked(("ü\ud800", None), ("", "ü\ud800"), ("x", ""))
    assert links.uuid(0) == "ü\ud800"
    assert links.parents[1] == 0


@pytest.mark.seed("S3-29")
def test_a_rewind_in_a_transcript_is_a_fork(tmp_path: Path) -> None:
    read = read_lines(
        tmp_path,
        claude_line("user", "u1", None),
        claude_line("assistant", "a1", "u1"),
        claude_line("user", "u2", "a1", timestamp="2026-01-01T10:00:05.000Z"),
        claude_line("user", "u3", "a1", timestamp="2026-01-01T10:00:04.000Z"),
    )
    assert forks_of(read.facts.tree) == [("a1", ["u3", "u2"])]


def test_flags_name_what_they_say() -> None:
    assert len({MESSAGE, SIGNIFICANT, RESULT, SIDECHAIN, SAID}) == 5
    assert LINE & ANSWER == LINE
