"""The traps of counting. Each is a home written by hand, with the one right answer; each way must find it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.counting.homes import (
    CODEX,
    HAIKU,
    OTHER,
    PRO,
    SESSION,
    SONNET,
    answer,
    claude,
    codex,
    counts,
    gemini,
    gemini_log,
    lines,
    meta,
    prompt,
    put,
    reply,
    said,
    spent,
    turn,
    used,
)
from tests.counting.ways import WAYS, Counts

TRAPS: dict[str, Callable[[Path], dict[str, Counts]]] = {}


def trap(build: Callable[[Path], dict[str, Counts]]) -> Callable[[Path], dict[str, Counts]]:
    """A function that writes a home and returns what is right for it."""
    TRAPS[build.__name__] = build
    return build


# Claude Code


@trap
def content_blocks_repeat_the_usage(home: Path) -> dict[str, Counts]:
    claude(home, prompt("hello"), *(reply("m1", 3, 200, read=1000, written=50, number=n) for n in (1, 2, 3)))
    return {SONNET: (1, 3, 200, 1000, 50, None)}


@trap
def streamed_lines_grow(home: Path) -> dict[str, Counts]:
    first, second = reply("m1", 3, 1, read=10), reply("m1", 3, 480, read=10, number=2)
    claude(home, first, second, reply("m2", 4, 9))
    return {SONNET: (2, 7, 489, 10, 0, None)}


@trap
def streamed_lines_shrink_and_mix(home: Path) -> dict[str, Counts]:
    claude(home, reply("m1", 3, 480), reply("m2", 1, 1, number=2), reply("m1", 3, 7, read=5, number=3))
    return {SONNET: (2, 4, 481, 5, 0, None)}


@trap
def a_resumed_session_copies_the_other(home: Path) -> dict[str, Counts]:
    claude(home, prompt("a"), reply("m1", 10, 20))
    claude(home, prompt("a"), reply("m1", 10, 20), reply("m2", 1, 2, number=2, sessionId=OTHER), session=OTHER)
    return {SONNET: (2, 11, 22, 0, 0, None)}


@trap
def a_copy_knows_more(home: Path) -> dict[str, Counts]:
    claude(home, reply("m1", 10, 20, read=7))
    claude(home, reply("m1", 10, 25, sessionId=OTHER), session=OTHER)
    return {SONNET: (1, 10, 25, 7, 0, None)}


@trap
def a_fork_keeps_ids_and_changes_sessions(home: Path) -> dict[str, Counts]:
    shared = [reply("m1", 1, 2), reply("m2", 3, 4, number=2)]
    claude(home, *shared, reply("left", 5, 6, number=3))
    moved = [{**record, "sessionId": OTHER} for record in shared]
    claude(home, *moved, reply("right", 7, 8, number=3, sessionId=OTHER), session=OTHER)
    return {SONNET: (4, 16, 20, 0, 0, None)}


@trap
def sub_agents_in_three_layouts(home: Path) -> dict[str, Counts]:
    inline = reply("inline", 1, 10, model=HAIKU, isSidechain=True, number=2)
    claude(home, prompt("go"), reply("m1", 2, 20), inline)
    agent: dict[str, Any] = {"isSidechain": True, "model": HAIKU}
    claude(home, reply("flat", 4, 40, agentId="aaaaaaaa", **agent), session="agent-aaaaaaaa")
    claude(home, reply("deep", 8, 80, agentId="b", **agent), session="agent-b", under=f"{SESSION}/subagents/")
    return {SONNET: (1, 2, 20, 0, 0, None), HAIKU: (3, 13, 130, 0, 0, None)}


@trap
def a_result_of_a_sub_agent_is_no_call(home: Path) -> dict[str, Counts]:
    result = {"status": "completed", "totalTokens": 999, "usage": {"input_tokens": 500, "output_tokens": 400}}
    claude(home, reply("m1", 1, 2), prompt("done", toolUseResult=result))
    return {SONNET: (1, 1, 2, 0, 0, None)}


@trap
def usage_in_an_input_is_no_usage(home: Path) -> dict[str, Counts]:
    record = reply("m1", 1, 2)
    call = {"type": "tool_use", "id": "t", "name": "X", "input": {"usage": {"input_tokens": 9, "output_tokens": 9}}}
    record["message"]["content"].append(call)
    claude(home, record)
    return {SONNET: (1, 1, 2, 0, 0, None)}


@trap
def a_synthetic_reply_costs_nothing(home: Path) -> dict[str, Counts]:
    claude(home, reply("m1", 1, 2), reply("s", 5, 5, model="<synthetic>", number=2))
    return {SONNET: (1, 1, 2, 0, 0, None)}


@trap
def rounds_inside_a_reply_are_not_added(home: Path) -> dict[str, Counts]:
    rounds = {"iterations": [{"input_tokens": 1, "output_tokens": 1}, {"input_tokens": 2, "output_tokens": 3}]}
    claude(home, reply("m1", 3, 4, usage=rounds))
    return {SONNET: (1, 3, 4, 0, 0, None)}


@trap
def the_cache_is_told_in_two_parts(home: Path) -> dict[str, Counts]:
    parts = {"cache_creation": {"ephemeral_5m_input_tokens": 60, "ephemeral_1h_input_tokens": 40}}
    claude(home, reply("m1", 1, 2, written=100, usage=parts))
    return {SONNET: (1, 1, 2, 0, 100, None)}


@trap
def thinking_is_part_of_the_output(home: Path) -> dict[str, Counts]:
    claude(home, reply("m1", 1, 50, usage={"output_tokens_details": {"thinking_tokens": 30}}))
    return {SONNET: (1, 1, 50, 0, 0, 30)}


@trap
def two_records_are_glued(home: Path) -> dict[str, Counts]:
    glued = lines(reply("m1", 1, 2)).rstrip("\n") + lines(reply("m2", 3, 4, number=2))
    claude(home, prompt("a"), glued, reply("m3", 5, 6, number=3))
    return {SONNET: (3, 9, 12, 0, 0, None)}


@trap
def only_the_parts_of_what_was_cached_are_told(home: Path) -> dict[str, Counts]:
    record = reply("m1", 1, 2)
    parts = {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 12}
    record["message"]["usage"] = {"input_tokens": 1, "output_tokens": 2, "cache_creation": parts}
    claude(home, record, reply("m2", 3, 4, written=5, number=2))
    return {SONNET: (2, 4, 6, 0, 47, None)}


@trap
def the_parts_say_more_than_the_whole(home: Path) -> dict[str, Counts]:
    parts = {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 12}
    claude(home, reply("m1", 1, 2, written=40, usage={"cache_creation": parts}))
    return {SONNET: (1, 1, 2, 0, 42, None)}


@trap
def replies_name_no_branch(home: Path) -> dict[str, Counts]:
    claude(home, prompt("a"), reply("m1", 1, 2, gitBranch=""), reply("m2", 3, 4, number=2, gitBranch=None))
    return {SONNET: (2, 4, 6, 0, 0, None)}


@trap
def nobody_names_a_branch(home: Path) -> dict[str, Counts]:
    claude(home, prompt("a", gitBranch=""), reply("m1", 1, 2, gitBranch=""), reply("m2", 3, 4, number=2, gitBranch=""))
    return {SONNET: (2, 4, 6, 0, 0, None)}


@trap
def a_sidechain_becomes_a_session(home: Path) -> dict[str, Counts]:
    aside: dict[str, Any] = {"isSidechain": True, "cwd": "/home/dev/other"}
    claude(home, prompt("a", **aside), reply("m1", 1, 2, **aside), prompt("b"), reply("m2", 3, 4, number=2))
    return {SONNET: (2, 4, 6, 0, 0, None)}


@trap
def a_reply_comes_back_after_another(home: Path) -> dict[str, Counts]:
    claude(home, reply("m1", 1, 2), reply("m2", 3, 4, number=2), reply("m1", 1, 9, number=3))
    return {SONNET: (2, 4, 13, 0, 0, None)}


@trap
def a_count_shrinks_again(home: Path) -> dict[str, Counts]:
    claude(home, reply("m1", 1, 20), reply("m1", 1, 2, number=2), reply("m1", 1, 5, read=7, number=3))
    return {SONNET: (1, 1, 20, 7, 0, None)}


@trap
def a_reply_is_glued_to_a_long_prompt(home: Path) -> dict[str, Counts]:
    glued = lines(prompt("x" * 20_000)).rstrip("\n") + lines(reply("m2", 3, 4, number=2))
    claude(home, reply("m1", 1, 2), glued)
    return {SONNET: (2, 4, 6, 0, 0, None)}


@trap
def a_reply_stands_between_long_prompts_on_one_line(home: Path) -> dict[str, Counts]:
    long = lines(prompt("x" * 20_000)).rstrip("\n")
    glued = long + lines(reply("m2", 3, 4, number=2)).rstrip("\n") + long + "\n"
    claude(home, reply("m1", 1, 2), glued)
    return {SONNET: (2, 4, 6, 0, 0, None)}


@trap
def a_reply_follows_a_cut_off_record(home: Path) -> dict[str, Counts]:
    cut = lines(prompt("y" * 9_000))[:-400]
    claude(home, reply("m1", 1, 2), cut + lines(reply("m2", 3, 4, number=2)))
    return {SONNET: (2, 4, 6, 0, 0, None)}


@trap
def the_last_line_is_torn(home: Path) -> dict[str, Counts]:
    claude(home, reply("m1", 1, 2), lines(reply("m2", 3, 4, number=2))[:-60])
    return {SONNET: (1, 1, 2, 0, 0, None)}


@trap
def json_has_spaces_and_another_order(home: Path) -> dict[str, Counts]:
    record = reply("m1", 1, 2, read=3)
    turned = dict(reversed([*record.items()]))
    claude(home, json.dumps(prompt("z" * 9000), indent=None) + "\n", json.dumps(turned) + "\n")
    return {SONNET: (1, 1, 2, 3, 0, None)}


@trap
def keys_are_spelled_with_escapes(home: Path) -> dict[str, Counts]:
    text = lines(reply("m1", 1, 2)).replace('"usage"', '"us\\u0061ge"').replace('"assistant"', '"\\u0061ssistant"')
    claude(home, prompt("a"), text)
    return {SONNET: (1, 1, 2, 0, 0, None)}


@trap
def type_stands_behind_a_long_message(home: Path) -> dict[str, Counts]:
    record = reply("m1", 1, 2)
    record["message"]["content"] = [{"type": "text", "text": 'say "type":"user" ' * 600}]
    kind = record.pop("type")
    claude(home, prompt("a"), {**record, "type": kind})
    return {SONNET: (1, 1, 2, 0, 0, None)}


@trap
def a_reply_has_no_id(home: Path) -> dict[str, Counts]:
    unnamed = [reply("x", 1, 2, number=1), reply("y", 3, 4, number=2)]
    for record in unnamed:
        del record["message"]["id"]
    claude(home, *unnamed)
    return {SONNET: (2, 4, 6, 0, 0, None)}


@trap
def counts_that_cannot_be_are_unknown(home: Path) -> dict[str, Counts]:
    claude(home, reply("m1", -5, 2), reply("m2", 3, 4, number=2))
    return {SONNET: (2, 3, 6, 0, 0, None)}


# Codex


@trap
def a_counter_is_repeated(home: Path) -> dict[str, Counts]:
    one, two = counts(100, 40, 10, 4), counts(300, 140, 30, 9)
    codex(
        home,
        SESSION,
        meta(SESSION),
        turn(1),
        said(2, "user", "do it"),
        spent(3, None, None),
        said(4, "assistant", "first"),
        spent(5, one, one),
        spent(6, one, one),
        said(7, "assistant", "second"),
        spent(8, two, counts(200, 100, 20, 5)),
        spent(9, two, counts(200, 100, 20, 5)),
    )
    return {CODEX: (2, 160, 30, 140, None, 9)}


@trap
def a_counter_begins_anew(home: Path) -> dict[str, Counts]:
    high, low = counts(1000, 0, 100), counts(50, 0, 5)
    codex(
        home,
        SESSION,
        meta(SESSION),
        turn(1),
        said(2, "user", "one"),
        said(3, "assistant", "first"),
        spent(4, high, high),
        said(10, "user", "two"),
        said(11, "assistant", "after a restart"),
        spent(12, low, low),
    )
    return {CODEX: (2, 1050, 105, 0, None, 0)}


@trap
def only_totals_are_told(home: Path) -> dict[str, Counts]:
    codex(
        home,
        SESSION,
        meta(SESSION),
        turn(1),
        said(2, "user", "one"),
        said(3, "assistant", "first"),
        spent(4, counts(100, 10, 20), None),
        said(5, "assistant", "second"),
        spent(6, counts(150, 30, 27), None),
    )
    return {CODEX: (2, 120, 27, 30, None, 0)}


@trap
def an_estimate_is_no_request(home: Path) -> dict[str, Counts]:
    one = counts(100, 0, 10)
    estimate = {**counts(0, 0, 0), "total_tokens": 5000}
    codex(
        home,
        SESSION,
        meta(SESSION),
        turn(1),
        said(2, "user", "one"),
        said(3, "assistant", "first"),
        spent(4, one, one),
        spent(5, {**one, "total_tokens": 5110}, estimate),
    )
    return {CODEX: (1, 100, 10, 0, None, 0)}


@trap
def a_fork_begins_with_its_parents_history(home: Path) -> dict[str, Counts]:
    one, two, three = counts(100, 0, 10), counts(300, 0, 30), counts(600, 0, 60)
    history = [turn(1), said(2, "user", "one"), said(3, "assistant", "first"), spent(4, one, one)]
    codex(home, SESSION, meta(SESSION), *history, said(5, "assistant", "on"), spent(6, two, counts(200, 0, 20)))
    own = [said(100, "user", "other way"), said(101, "assistant", "so"), spent(102, three, counts(500, 0, 50))]
    codex(home, OTHER, meta(OTHER, forked_from_id=SESSION), meta(SESSION), *history, *own)
    return {CODEX: (3, 800, 80, 0, None, 0)}


@trap
def a_token_event_is_glued(home: Path) -> dict[str, Counts]:
    one = counts(100, 0, 10)
    result = {"type": "function_call_output", "call_id": "c", "output": "o" * 6000}
    glued = lines({"timestamp": "2026-11-02T09:00:03.000Z", "type": "response_item", "payload": result}).rstrip("\n")
    codex(
        home,
        SESSION,
        meta(SESSION),
        turn(1),
        said(2, "user", "one"),
        said(3, "assistant", "first"),
        glued + lines(spent(4, one, one)),
    )
    return {CODEX: (1, 100, 10, 0, None, 0)}


@trap
def a_rollout_has_spaces(home: Path) -> dict[str, Counts]:
    one = counts(100, 60, 10)
    records = [meta(SESSION), turn(1), said(2, "user", "one"), said(3, "assistant", "a"), spent(4, one, one)]
    codex(home, SESSION, "".join(json.dumps(record) + "\n" for record in records))
    return {CODEX: (1, 40, 10, 60, None, 0)}


# Gemini

_A, _B = "aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002"


@trap
def cached_input_is_part_of_the_input(home: Path) -> dict[str, Counts]:
    gemini(home, [answer(_A, used(1000, 50, 800, 20)), answer(_B, used(500, 5, 0, 0))])
    return {PRO: (2, 700, 75, 800, None, 20)}


@trap
def a_document_is_compact(home: Path) -> dict[str, Counts]:
    gemini(home, [answer(_A, used(10, 5, 4, 1)), answer(_B, None)], indent=None)
    return {PRO: (1, 6, 6, 4, None, 1)}


@trap
def all_zero_is_unknown(home: Path) -> dict[str, Counts]:
    gemini(home, [answer(_A, used(0, 0, 0, 0)), answer(_B, used(3, 2, 1, 0))])
    return {PRO: (1, 2, 2, 1, None, 0)}


@trap
def a_message_is_written_anew(home: Path) -> dict[str, Counts]:
    gemini_log(home, answer(_A, None), answer(_A, used(10, 2, 0, 0)), answer(_A, used(10, 5, 0, 3)))
    return {PRO: (1, 10, 8, 0, None, 3)}


@trap
def what_was_taken_back_was_used_all_the_same(home: Path) -> dict[str, Counts]:
    gemini_log(home, answer(_A, used(10, 5, 0, 0)), {"$rewindTo": _A}, answer(_B, used(7, 3, 0, 0)))
    return {PRO: (2, 17, 8, 0, None, 0)}


@trap
def ids_that_are_not_by_chance_are_of_their_session(home: Path) -> dict[str, Counts]:
    gemini(home, [answer("1", used(10, 5, 0, 0))])
    gemini(home, [answer("1", used(20, 7, 0, 0))], session=OTHER)
    return {PRO: (2, 30, 12, 0, None, 0)}


# Everything at once


@trap
def a_model_without_a_name(home: Path) -> dict[str, Counts]:
    record = reply("m1", 1, 2)
    del record["message"]["model"]
    claude(home, record)
    return {"": (1, 1, 2, 0, 0, None)}


@trap
def a_file_that_is_no_session_is_no_harm(home: Path) -> dict[str, Counts]:
    put(home, ".claude/projects/-home-dev-app/notes.jsonl", "not json at all\n\x00\x00\n[1, 2]\n")
    claude(home, reply("m1", 1, 2))
    return {SONNET: (1, 1, 2, 0, 0, None)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", TRAPS)
def test_every_way_finds_the_right_numbers(name: str, way: str, tmp_path: Path) -> None:
    right = TRAPS[name](tmp_path)
    assert WAYS[way]([tmp_path]) == right


@pytest.mark.parametrize("way", WAYS)
def test_two_machines_that_share_sessions_count_once(way: str, tmp_path: Path) -> None:
    for machine in ("one", "two"):
        claude(tmp_path / machine, prompt("a"), reply("m1", 10, 20))
    claude(tmp_path / "two", reply("m9", 1, 2, sessionId=OTHER), session=OTHER)
    assert WAYS[way]([tmp_path / "one", tmp_path / "two"]) == {SONNET: (2, 11, 22, 0, 0, None)}
