"""Prompts that were delivered in mid-turn, and a history that the client wrote into the same file again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clew.agents.base import Header, Unit
from clew.agents.claude_code import ClaudeCode
from clew.agents.registry import get
from clew.analysis.usage import Usage
from clew.convert.conversion import Conversion
from clew.export.verify import verify
from tests.unit.samples import SESSION, Record, Transcript, claude_line, read_lines

AGENT = ClaudeCode()
CALL = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/w/a.go"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "package x"}


def queue(operation: str, content: Any = None, second: int = 3, **more: Any) -> Record:
    record = {
        "type": "queue-operation",
        "operation": operation,
        "timestamp": f"2026-01-01T10:00:{second:02}.000Z",
        "sessionId": SESSION,
    }
    return record | ({} if content is None else {"content": content}) | more


def at(second: int, line: Record) -> Record:
    return line | {"timestamp": f"2026-01-01T10:00:{second:02}.000Z"}


def reply(uuid: str, parent: str, message_id: str, *blocks: Record, output: int = 5) -> Record:
    line = claude_line("assistant", uuid, parent, list(blocks))
    usage = {"input_tokens": 3, "output_tokens": output}
    line["message"] |= {"id": message_id, "model": "claude-opus-4-6", "usage": usage}
    return line


def text(words: str) -> Record:
    return {"type": "text", "text": words}


def attached(uuid: str, parent: str, prompt: Any) -> Record:
    line = claude_line("attachment", uuid, parent)
    del line["message"]
    return line | {"attachment": {"type": "queued_command", "prompt": prompt, "commandMode": "prompt"}}


BEGUN = [at(1, claude_line("user", "u1", None, "Why does it fail?")), at(2, reply("a1", "u1", "msg_1", CALL))]
ANSWERED = at(4, claude_line("user", "r1", "a1", [RESULT]))
GOING_ON = at(6, reply("a2", "r1", "msg_2", text("Yes, locally too.")))


def texts(found: Transcript) -> list[tuple[str, str]]:
    return [
        (message["role"], block["text"])
        for message in found.messages
        for block in message["content"]
        if block["type"] == "text"
    ]


# Prompts that were delivered in mid-turn


def test_a_removed_prompt_was_delivered(tmp_path: Path) -> None:
    found = read_lines(
        tmp_path, *BEGUN, queue("enqueue", "Does it fail locally?"), ANSWERED, queue("remove", second=5), GOING_ON
    )
    assert [message["role"] for message in found.messages] == ["user", "assistant", "user", "user", "assistant"]
    prompt = found.messages[3]
    assert prompt["content"] == [text("Does it fail locally?")]
    assert prompt["timestamp"] == "2026-01-01T10:00:05.000Z"
    assert found.facts.prompts == 2
    graph = found.facts.tree.graph()
    assert graph.is_linear
    assert graph.active_path == ["u1", "a1", "r1", prompt["uuid"], "a2"]
    assert (prompt["parent_uuid"], found.messages[4]["parent_uuid"]) == ("r1", prompt["uuid"])
    assert [record["kind"] for record in found.records] == ["queue"]
    assert verify(AGENT, found.source).different == []


def test_a_prompt_that_ends_the_file_was_delivered(tmp_path: Path) -> None:
    found = read_lines(tmp_path, *BEGUN, queue("enqueue", "Stop."), ANSWERED, queue("remove", second=5))
    assert found.facts.tree.graph().active_path[:3] == ["u1", "a1", "r1"]
    assert texts(found)[-1] == ("user", "Stop.")
    assert found.facts.tree.graph().is_linear


def test_a_prompt_is_delivered_behind_the_results_that_are_written_late(tmp_path: Path) -> None:
    found = read_lines(tmp_path, *BEGUN, queue("enqueue", "/mcp"), queue("remove", second=5), ANSWERED, GOING_ON)
    assert [message.get("parent_uuid") for message in found.messages[2:4]] == ["a1", "r1"]
    assert texts(found)[1:] == [("user", "/mcp"), ("assistant", "Yes, locally too.")]
    assert found.facts.tree.graph().is_linear


def test_prompts_are_delivered_in_their_order(tmp_path: Path) -> None:
    found = read_lines(
        tmp_path,
        *BEGUN,
        queue("enqueue", "One."),
        queue("enqueue", [text("Two.")]),
        ANSWERED,
        queue("remove", second=5),
        queue("remove", second=5),
        GOING_ON,
    )
    assert texts(found)[1:3] == [("user", "One."), ("user", "Two.")]
    path = found.facts.tree.graph().active_path
    assert path == [message["uuid"] for message in found.messages]
    assert len(set(path)) == 6


def test_a_prompt_that_an_attachment_holds_is_shown_once(tmp_path: Path) -> None:
    """Clients from 2.1.72 on write an attachment, which may come behind the replies that were under way."""
    late = at(4, reply("a2", "r1", "msg_2", {**CALL, "id": "t2"}))
    found = read_lines(
        tmp_path,
        *BEGUN,
        ANSWERED,
        queue("enqueue", "And the linter?"),
        queue("remove", second=5),
        late,
        at(5, claude_line("user", "r2", "a2", [{**RESULT, "tool_use_id": "t2"}])),
        at(5, attached("q1", "r2", "And the linter?")),
        at(6, reply("a3", "q1", "msg_3", text("Checked."))),
    )
    assert texts(found)[1:] == [("user", "And the linter?"), ("assistant", "Checked.")]
    assert found.facts.tree.graph().active_path == ["u1", "a1", "r1", "a2", "r2", "q1", "a3"]
    assert [record["kind"] for record in found.records] == ["queue", "queue"]


@pytest.mark.parametrize("operation", ["dequeue", "popAll"])
def test_a_prompt_that_left_the_queue_otherwise_was_not_delivered(tmp_path: Path, operation: str) -> None:
    found = read_lines(
        tmp_path, *BEGUN, queue("enqueue", "Later."), ANSWERED, queue(operation, second=5), queue("remove"), GOING_ON
    )
    assert [message["uuid"] for message in found.messages] == ["u1", "a1", "r1", "a2"]


def test_a_prompt_that_was_sent_afterwards_is_shown_once(tmp_path: Path) -> None:
    found = read_lines(
        tmp_path,
        *BEGUN,
        ANSWERED,
        queue("enqueue", "Later."),
        queue("remove", second=5),
        at(6, claude_line("user", "u2", "r1", "Later.")),
    )
    assert [message["uuid"] for message in found.messages] == ["u1", "a1", "r1", "u2"]


@pytest.mark.parametrize("notice", ["<task-notification>\n<task-id>b1</task-id>", "<ci-monitor-event>red"])
def test_a_notification_is_no_prompt(tmp_path: Path, notice: str) -> None:
    found = read_lines(
        tmp_path,
        *BEGUN,
        queue("enqueue", notice),
        queue("enqueue", "Mine."),
        ANSWERED,
        queue("remove", second=5),
        queue("remove", second=5),
        GOING_ON,
    )
    assert texts(found)[1:] == [("user", "Mine."), ("assistant", "Yes, locally too.")]
    assert [record["kind"] for record in found.records] == ["queue", "queue", "queue"]


def test_what_a_ci_monitor_says_is_not_the_persons(tmp_path: Path) -> None:
    found = read_lines(tmp_path, claude_line("user", "u1", None, "<ci-monitor-event>\nchecks failed"))
    assert found.facts.prompts == 0


@pytest.mark.parametrize("target", ["codex", "gemini"])
def test_a_delivered_prompt_goes_over_to_other_agents(tmp_path: Path, target: str) -> None:
    found = read_lines(
        tmp_path, *BEGUN, queue("enqueue", "Does it fail locally?"), ANSWERED, queue("remove", second=5), GOING_ON
    )
    conversion = Conversion(AGENT, found.source, get(target), new_id="0" * 8)
    assert [loss.what for loss in conversion.losses] == []
    said = [block.get("text") for unit in conversion.units() for block in unit.value["content"]]
    assert said.count("Does it fail locally?") == 1


def test_a_delivered_prompt_is_written_for_its_own_agent_as_it_was(tmp_path: Path) -> None:
    lines = [*BEGUN, queue("enqueue", "Locally?"), ANSWERED, queue("remove", second=5), GOING_ON]
    found = read_lines(tmp_path, *lines)
    header = Header("1.2", "", AGENT.id, found.session, {})
    assert [json.loads(piece) for _, piece in AGENT.encode(header, found.units)] == lines
    composed = [Unit(unit.is_message, unit.value, 0, 0, 0, ()) for unit in found.units]
    written = [json.loads(piece) for _, piece in AGENT.encode(header, composed)]
    assert [line.get("parentUuid") for line in written[1:5]] == [line["uuid"] for line in written[:4]]
    assert written[3]["message"] == {"role": "user", "content": "Locally?"}


# A history that was written again


FIRST = claude_line("user", "u1", None, "What is in this picture?")
COPIED = [
    FIRST,
    reply("a1", "u1", "msg_1", text("A robot.")),
    {"type": "summary", "summary": "Robot", "leafUuid": "a1"},
    FIRST | {"uuid": "u1b"},
    reply("a1b", "u1b", "msg_1", text("A robot.")),
    claude_line("user", "u2", "a1b", "Thanks."),
    reply("a2", "u2", "msg_2", text("Welcome.")),
]


def test_a_history_that_was_written_again_is_shown_and_counted_once(tmp_path: Path) -> None:
    found = read_lines(tmp_path, *COPIED)
    assert [message["uuid"] for message in found.messages] == ["u1", "a1", "u2", "a2"]
    assert found.messages[2]["parent_uuid"] == "a1"
    graph = found.facts.tree.graph()
    assert (graph.is_linear, graph.active_path) == (True, ["u1", "a1", "u2", "a2"])
    assert found.facts.prompts == 2
    assert found.facts.ledger.total() == Usage(2, 6, 10)
    assert [(record["kind"], record["type"]) for record in found.records] == [
        ("summary", "summary"),
        ("copy", "user"),
        ("copy", "assistant"),
    ]
    assert verify(AGENT, found.source).different == []
    assert verify(AGENT, found.source).unknown_types == {}


def test_a_copied_turn_with_tools_is_shown_once(tmp_path: Path) -> None:
    found = read_lines(
        tmp_path,
        *BEGUN,
        ANSWERED,
        GOING_ON,
        BEGUN[0] | {"uuid": "u1b"},
        reply("a1b", "u1b", "msg_1", CALL),
        claude_line("user", "r1b", "a1b", [RESULT]),
        reply("a2b", "r1b", "msg_2", text("Yes, locally too.")),
        {"type": "last-prompt", "leafUuid": "a2b", "sessionId": SESSION},
    )
    assert [message["uuid"] for message in found.messages] == ["u1", "a1", "r1", "a2"]
    assert found.facts.tool_calls == 1
    assert found.records[-1]["message_uuid"] == "a2"
    assert found.facts.tree.graph().active_path == ["u1", "a1", "r1", "a2"]


def test_the_lines_of_a_reply_are_no_copies(tmp_path: Path) -> None:
    found = read_lines(
        tmp_path,
        FIRST,
        reply("a1", "u1", "msg_1", text("Look:")),
        reply("a2", "a1", "msg_1", text("Look:")),
        reply("a3", "a2", "msg_1", CALL),
    )
    assert len(found.messages) == 4


def test_the_same_prompt_asked_again_is_no_copy(tmp_path: Path) -> None:
    found = read_lines(
        tmp_path,
        FIRST,
        reply("a1", "u1", "msg_1", text("A robot.")),
        FIRST | {"uuid": "u2"},
        {"type": "mode", "mode": "normal", "sessionId": SESSION},
        reply("a2", "u2", "msg_2", text("A robot.")),
        claude_line("user", "u3", None, "What is in this picture?"),
    )
    assert [message["uuid"] for message in found.messages] == ["u1", "a1", "u2", "a2", "u3"]
    assert [record["after"] for record in found.records] == [3]


def test_only_one_of_the_copies_goes_over(tmp_path: Path) -> None:
    found = read_lines(tmp_path, *COPIED)
    conversion = Conversion(AGENT, found.source, AGENT, new_id="0" * 8)
    pieces = AGENT.encode(Header("1.2", "", AGENT.id, found.session, {}), conversion.units())
    written = [json.loads(piece) for _, piece in pieces]
    assert [(line.get("uuid"), line.get("parentUuid")) for line in written if line["type"] != "summary"] == [
        ("u1", None),
        ("a1", "u1"),
        ("u2", "a1"),
        ("a2", "u2"),
    ]
    assert [unit.value["uuid"] for unit in conversion.units() if unit.is_message] == ["u1", "a1", "u2", "a2"]


# What newer clients write


def test_fallback_blocks_and_refusals_are_known(tmp_path: Path) -> None:
    refusal: Record = {
        "type": "system",
        "subtype": "model_refusal_fallback",
        "uuid": "s1",
        "parentUuid": "u1",
        "sessionId": SESSION,
        "content": "Switched models.",
        "level": "warning",
        "trigger": "refusal",
        "direction": "retry",
        "originalModel": "claude-fable-5",
        "fallbackModel": "claude-opus-4-8",
        "apiRefusalCategory": "x",
        "apiRefusalExplanation": None,
        "refusedUserMessageUuid": "u1",
        "retractedMessageUuids": [],
        "source": "api",
    }
    progress = {"type": "progress", "uuid": "p1", "parentUuid": "u1", "data": {}, "teamName": "x", "sessionId": SESSION}
    found = read_lines(
        tmp_path,
        FIRST,
        refusal,
        progress,
        reply("a1", "s1", "msg_1", {"type": "fallback"}, {"type": "tool_reference", "tool_name": "X"}),
    )
    proof = verify(AGENT, found.source)
    assert (proof.unknown_types, proof.unknown_keys) == ({}, {})
