"""The events of Codex: what `agent.events` makes of a rollout."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clew.agents.base import SourceFile
from clew.agents.checking import check_source
from clew.analysis.facts import collect_facts
from clew.model import Message, Problem, Record
from clew.model.events import Event, SessionInfo, SubagentStarted, UsageReport
from clew.model.message import SourceRef
from tests.agents.rollouts import (
    AGENT,
    CWD,
    OTHER,
    THREAD,
    Value,
    answered,
    asked,
    context,
    event,
    item,
    line,
    meta,
    spelled,
    tokens,
    used,
    words,
    write,
)


def events(home: Path, *lines: Value | bytes) -> list[Event]:
    return list(AGENT.events(AGENT.locate(write(home, *lines))))


def messages(found: list[Event]) -> list[Message]:
    return [event for event in found if isinstance(event, Message)]


def values(found: list[Event]) -> list[Value]:
    """The messages as the document has them."""
    return [msgspec.to_builtins(message) for message in messages(found)]


def reports(found: list[Event]) -> list[UsageReport]:
    return [event for event in found if isinstance(event, UsageReport)]


def usage(found: list[Event]) -> list[tuple[int, dict[str, int]]]:
    """Index and token usage of each message that has some."""
    found_usage = [(each["index"], each.get("metadata", {}).get("token_usage")) for each in values(found)]
    return [(index, counts) for index, counts in found_usage if counts is not None]


def test_each_record_gives_one_message_or_record_in_file_order(tmp_path: Path) -> None:
    found = events(tmp_path, meta(), context(), *asked("Ring."), *answered("Done."), item("ghost_snapshot"))
    placed = [each for each in found if isinstance(each, Message | Record)]
    assert [each.source for each in placed] == [SourceRef(0, number) for number in range(7)]
    assert [each.kind if isinstance(each, Record) else each.role for each in placed] == [
        "state",
        "state",
        "user",
        "progress",
        "progress",
        "assistant",
        "snapshot",
    ]


def test_a_message_says_who_follows_whom_and_where_it_was_said(tmp_path: Path) -> None:
    question, answer = values(events(tmp_path, meta(), context(), *asked("Ring."), *answered("Done.")))
    assert (question["uuid"], question["parent_uuid"]) == (f"{THREAD}:3", None)
    assert question["timestamp"] == "2026-03-02T10:00:01.000Z"
    assert question["metadata"] == {"cwd": CWD, "agent_version": "0.118.0", "user_type": "codex_cli_rs"}
    assert (answer["uuid"], answer["parent_uuid"]) == (f"{THREAD}:6", question["uuid"])
    assert answer["metadata"] == {"model": {"name": "gpt-5.3-codex"}, "thinking": {"level": "high"}}


def test_the_session_is_known_from_its_head_and_its_end(tmp_path: Path) -> None:
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": OTHER, "agent_nickname": "Ada"}}}
    found = events(tmp_path, meta(source=spawn), *asked("a"), *answered("b"))
    first, last = (each for each in found if isinstance(each, SessionInfo))
    assert (first.session_id, first.parent_session_id) == (THREAD, OTHER)
    assert (first.agent_id, first.is_subagent) == ("Ada", True)
    assert (last.leaf_uuid, last.has_derived_parents, last.cwd) == (f"{THREAD}:5", True, CWD)
    assert last.extra == {"extension": {"source": spawn}}


def test_after_a_rollback_the_conversation_stands_before_it(tmp_path: Path) -> None:
    back = event("thread_rolled_back", num_turns=1)
    found = events(tmp_path, meta(), *asked("a"), *answered("b"), *asked("c"), *answered("d"), back)
    assert [each.leaf_uuid for each in found if isinstance(each, SessionInfo)] == [None, f"{THREAD}:5"]


def test_a_sub_agent_is_told_by_the_result_of_its_call(tmp_path: Path) -> None:
    found = events(
        tmp_path,
        meta(),
        item("function_call", name="spawn_agent", call_id="s", arguments="{}"),
        item("function_call_output", call_id="s", output=f'{{"agent_id":"{OTHER}","nickname":"Ada"}}'),
        event("sub_agent_activity", agent_thread_id=OTHER, agent_path="/main/ada", event_id="s", kind="started"),
    )
    assert [each for each in found if isinstance(each, SubagentStarted)] == [
        SubagentStarted(session_id=OTHER, agent_id="Ada", tool_id="s")
    ]


# Usage


def test_usage_stands_before_its_message_and_on_it(tmp_path: Path) -> None:
    found = events(tmp_path, meta(), context(), *asked("a"), *answered("b"), tokens(used(10, 4, 5), used(10, 4, 5)))
    (report,) = reports(found)
    (answer,) = [each for each in messages(found) if each.role == "assistant"]
    assert found.index(report) == found.index(answer) - 1
    assert (report.message_index, report.model, report.timestamp) == (2, "gpt-5.3-codex", answer.timestamp)
    assert usage(found) == [(2, {"input_tokens": 6, "output_tokens": 5, "cache_read_tokens": 4, "reasoning_tokens": 0})]
    assert [row[2][:2] for row in collect_facts(found).ledger.each()] == [(6, 5)]


def test_two_requests_of_one_message_are_two_reports_and_one_sum(tmp_path: Path) -> None:
    second = tokens(used(30, 0, 9), used(20, 0, 4))
    found = events(tmp_path, meta(), *asked("a"), *answered("b"), tokens(used(10, 0, 5), used(10, 0, 5)), second)
    assert [(each.message_index, each.usage.input_tokens) for each in reports(found)] == [(2, 10), (2, 20)]
    assert [(index, counts["input_tokens"]) for index, counts in usage(found)] == [(2, 30)]
    assert collect_facts(found).ledger.total().input_tokens == 30


def test_usage_may_come_long_after_the_reply(tmp_path: Path) -> None:
    results = [item("function_call_output", call_id="c", output="x") for _ in range(5000)]
    late = tokens(used(10, 0, 5), used(10, 0, 5))
    found = events(tmp_path, meta(), *asked("a"), *answered("b"), *results, late)
    (report,) = reports(found)
    assert (report.message_index, report.usage.output_tokens) == (2, 5)
    assert report.timestamp == messages(found)[1].timestamp
    assert collect_facts(found).ledger.total().output_tokens == 5


def test_what_an_aborted_turn_used_is_in_the_growth_of_the_total(tmp_path: Path) -> None:
    lines = [
        *(meta(), context(), *asked("One."), *answered("Done one.")),
        tokens(used(1000, 0, 10), used(1000, 0, 10)),
        event("turn_aborted", reason="interrupted"),
        *asked("Two."),
        *answered("Done two."),
        tokens(used(3000, 500, 30), used(1000, 500, 10)),
    ]
    found = events(tmp_path, *lines)
    assert [(index, counts["input_tokens"], counts["output_tokens"]) for index, counts in usage(found)] == [
        (2, 1000, 10),
        (4, 1500, 20),
    ]
    total = collect_facts(found).ledger.total()
    assert (total.calls, total.input_tokens, total.cache_read_tokens, total.output_tokens) == (2, 2500, 500, 30)


@pytest.mark.parametrize(
    ("total", "last", "expected"),
    [
        (used(300, 0, 3), used(300, 0, 3), 300),  # a counter that began anew
        (used(5000, 0, 50), used(200, 0, 2), 4000),  # the rest of the growth was never reported
        (used(1200, 0, 12), used(200, 0, 2), 200),
    ],
)
def test_growth_counts_only_where_the_total_goes_on(tmp_path: Path, total: Value, last: Value, expected: int) -> None:
    first = [meta(), context(), *asked("a"), *answered("b"), tokens(used(1000, 0, 10), used(1000, 0, 10))]
    found = events(tmp_path, *first, *asked("c"), *answered("d"), tokens(total, last))
    assert [counts["input_tokens"] for _, counts in usage(found)] == [1000, expected]


def test_the_first_total_of_a_resumed_thread_is_not_its_own(tmp_path: Path) -> None:
    found = events(tmp_path, meta(), *asked("a"), *answered("b"), tokens(used(9000, 0, 90), used(100, 0, 1)))
    assert [counts["input_tokens"] for _, counts in usage(found)] == [100]


# Levels, copies, damage


@pytest.mark.parametrize("level", ["ultra", "beyond"])
def test_an_unknown_reasoning_effort_is_kept_and_noted_once(tmp_path: Path, level: str) -> None:
    replies = [words("assistant", f"Step {number}.", second=number) for number in range(2, 6)]
    path = write(tmp_path, meta(), context(effort=level), *asked("One."), *replies)
    source = AGENT.locate(path)
    replied = [each for each in values(list(AGENT.events(source))) if each["role"] == "assistant"]
    assert [each["metadata"]["thinking"] for each in replied] == [{"level": level}] * 4
    found = list(check_source(AGENT, source))
    assert [(each.code, each.severity) for each in found] == [("unknown-thinking-level", "note")]


def test_copied_history_is_marked_and_not_counted(tmp_path: Path) -> None:
    own = [meta(), *asked("a"), *answered("b"), tokens(used(10, 0, 5), used(10, 0, 5))]
    write(tmp_path, *own)
    fork = [meta(OTHER, forked_from_id=THREAD), *own, *asked("c", 30), *answered("d", 31)]
    path = write(tmp_path, *fork, tokens(used(30, 0, 9), used(20, 0, 4), 32), thread=OTHER)
    found = list(AGENT.events(AGENT.locate(path)))
    marks = [each.extensions is not msgspec.UNSET for each in messages(found)]
    assert marks == [True, True, False, False]
    assert [(each.message_index, each.usage.input_tokens) for each in reports(found)] == [(4, 20)]


class Masking:
    """A mask that hides one word."""

    def open(self, opened: Any) -> Any:
        with opened() as stream:
            return io.BytesIO(stream.read().replace(b"secret", b"******"))

    def value(self, value: Any) -> Any:
        return value


def test_a_masked_session_is_masked_and_counted_alike(tmp_path: Path) -> None:
    own = [meta(), *asked("secret"), *answered("secret"), tokens(used(10, 0, 5), used(10, 0, 5))]
    write(tmp_path, *own)
    fork = [meta(OTHER), *own, *asked("mine", 30), *answered("b", 31), tokens(used(30, 0, 9), used(20, 0, 4), 32)]
    source: SourceFile = AGENT.locate(write(tmp_path, *fork, thread=OTHER))
    masked = list(AGENT.events(msgspec.structs.replace(source, mask=Masking())))
    assert "secret" not in repr(masked)
    assert reports(masked) == reports(list(AGENT.events(source)))
    assert len(reports(masked)) == 1


def test_damage_is_a_problem_and_keeps_the_line_numbers(tmp_path: Path) -> None:
    glued = spelled(words("user", "a"))[:-1] + spelled(words("user", "b"))[:-1]
    found = events(tmp_path, meta(), b"", glued, b'{"timestamp":"2026', words("assistant", "c"))
    assert [(each.code, each.line) for each in found if isinstance(each, Problem)] == [
        ("blank-line", 2),
        ("malformed-json", 4),
    ]
    assert [each.source for each in messages(found)] == [SourceRef(0, 2), SourceRef(0, 2), SourceRef(0, 4)]


@pytest.mark.parametrize("odd", [None, 5, True, [], ["x"], "x"], ids=repr)
@pytest.mark.parametrize("key", ["type", "payload", "timestamp"])
def test_a_line_of_an_odd_shape_costs_no_other(tmp_path: Path, key: str, odd: Any) -> None:
    strange = {**words("user", "a"), key: odd}
    found = values(events(tmp_path, meta(), strange, line("turn_context", odd), *asked("b"), *answered("c")))
    assert [each["content"][0]["text"] for each in found][-2:] == ["b", "c"]
