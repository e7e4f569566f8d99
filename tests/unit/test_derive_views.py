"""Orders and groupings of messages: none is changed, none is lost."""

from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.analysis.group_tool_results import group_tools, ungroup_tools
from clew.analysis.views import by_session, chronological, tree
from tests.unit.samples import Record, call, chain, claude_line, demo_transcripts, read_lines, result, say


def indexes(messages: list[Record]) -> list[int]:
    return [message["index"] for message in messages]


@pytest.mark.seed("S3-28", "S4-17")
def test_order_is_by_time_and_ties_keep_their_order() -> None:
    times = [
        "2026-01-01T10:00:02Z",
        None,
        "2026-01-01T10:00:01Z",
        "2026-01-01T10:00:01.000Z",
        "2026-01-01T12:00:00+02:00",
    ]
    messages = [say(at, timestamp=time) for at, time in enumerate(times, 1)]
    assert indexes(chronological(messages)) == [5, 3, 4, 1, 2]
    assert indexes(chronological([say(1), say(2)])) == [1, 2]


@given(st.lists(st.sampled_from(["2026-01-01T10:00:00Z", "2026-01-01T10:00:00.5Z", None, "never"]), max_size=8))
def test_order_by_time_is_a_stable_permutation(times: list[str | None]) -> None:
    messages = [say(at, timestamp=time) for at, time in enumerate(times, 1)]
    once = chronological(messages)
    assert sorted(indexes(once)) == indexes(messages)
    timed = [message for message in once if message["timestamp"] not in (None, "never")]
    assert indexes(timed) == [at for _, at in sorted((m["timestamp"][19:] != "Z", m["index"]) for m in timed)]


@pytest.mark.seed("S4-16")
def test_messages_group_by_the_session_they_claim(tmp_path: Path) -> None:
    other = claude_line("user", "u2", "u1", sessionId="another")
    read = read_lines(tmp_path, claude_line("user", "u1", None), other, claude_line("assistant", "a1", "u2"))
    groups = by_session(read.units, read.session["id"])
    assert {name: indexes(group) for name, group in groups.items()} == {read.session["id"]: [1, 3], "another": [2]}


@pytest.mark.seed("S2-50", "S3-29", "SX-10")
def test_the_full_tree_has_all_children_by_time_then_place() -> None:
    messages = [
        say(1, parent_uuid=None, timestamp="2026-01-01T10:00:00Z"),
        say(2, parent_uuid="m1", timestamp="2026-01-01T10:00:09Z"),
        say(3, parent_uuid="r1", timestamp="2026-01-01T10:00:05Z"),
        say(4, parent_uuid="m1", timestamp="2026-01-01T10:00:05Z"),
        say(5, parent_uuid="gone"),
    ]
    records = [{"after": 1, "kind": "progress", "uuid": "r1", "parent_uuid": "m1"}]
    nodes = {node.index: node for node in tree(messages, records)}
    assert nodes[1].children == [3, 4, 2]
    assert [node.parent for node in nodes.values()] == [None, 1, 1, 1, None]
    assert [node.uuid for node in nodes.values()] == ["m1", "m2", "m3", "m4", "m5"]


def test_the_tree_of_a_selection_keeps_its_indexes() -> None:
    messages = chain(say(4), say(7), say(9))
    assert [(node.index, node.parent) for node in tree(messages)] == [(4, None), (7, 4), (9, 7)]


def test_P12_the_tree_has_every_message_once_whatever_the_parents() -> None:
    messages = [say(1, parent_uuid="m3"), say(2, parent_uuid="m2"), say(3, parent_uuid="m1"), say(4, uuid="m3")]
    nodes = tree(messages)
    assert [node.index for node in nodes] == [1, 2, 3, 4]
    assert sorted(child for node in nodes for child in node.children) == [3]


MIXED = [
    say(1, "user", "go"),
    say(2, "assistant", "I look", call("t1"), call("t2")),
    say(3, "user", result("t2")),
    say(4, "user", result("t1"), "and by the way", result("t9")),
    say(5, "assistant", call("t3")),
    say(6, "user", result("t3"), result("t2", "again"), cwd="/a", extensions={"x": 1}),
    say(7, "user"),
    say(8, "user", result("t4")),
    say(9, "assistant", call("t4")),
]


@pytest.mark.seed("S2-49", "S2-31")
def test_results_stand_with_their_calls_and_go_back() -> None:
    before = deepcopy(MIXED)
    grouped = group_tools(MIXED)
    assert indexes(grouped) == [1, 2, 4, 5, 7, 9]
    first, second = grouped[1]["content"][1:]
    assert [entry["block"]["tool_id"] for entry in first["results"]] == ["t1"]
    assert [entry["block"]["output"] for entry in second["results"]] == ["done", "again"]
    assert [block["type"] for block in grouped[2]["content"]] == ["text", "tool_result"]
    assert ungroup_tools(grouped) == before
    assert before == MIXED
    assert group_tools(ungroup_tools(grouped)) == grouped


BLOCKS: st.SearchStrategy[Record] = st.one_of(
    st.sampled_from(["t1", "t2", "t3"]).map(call),
    st.sampled_from(["t1", "t2", "t3", "t4"]).map(result),
    st.just({"type": "text", "text": "words"}),
    st.just({"type": "tool_use", "tool_id": None, "tool_name": None, "input": {}}),
)


@pytest.mark.seed("S2-49")
@given(st.lists(st.lists(BLOCKS, max_size=4), max_size=6))
def test_grouping_is_exact_for_any_blocks(contents: list[list[Record]]) -> None:
    messages = [say(at, "user", *blocks) for at, blocks in enumerate(contents, 1)]
    assert ungroup_tools(group_tools(messages)) == messages


@pytest.mark.seed("S2-49", "S2-50")
def test_views_hold_on_the_demo(tmp_path: Path) -> None:
    for read in demo_transcripts(tmp_path / "demo"):
        assert ungroup_tools(group_tools(read.messages)) == read.messages
        nodes = tree(read.messages, read.records)
        assert [node.index for node in nodes] == indexes(read.messages)
        for node in nodes:
            assert all(nodes[child - 1].parent == node.index for child in node.children)
