"""Sessions of other agents written as rollouts, and rollouts written back to where they were."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from clew.agents.base import Header
from clew.agents.claude_code import ClaudeCode
from clew.demo import write_demo
from clew.errors import UsageError
from clew.export.verify import verify
from tests.agents.rollouts import AGENT, THREAD, Value, asked, meta, read, write
from tests.roundtrip import document_of, header_of, round_trip
from tests.unit.samples import call, chain, result, say

SESSION = {
    "id": "5f0e7c1a-0d5b-4b6e-9d3a-6f1f0a2b3c4d",
    "workspace": "/home/ada/src/bell",
    "workspace_encoded": "-home-ada-src-bell",
    "started_at": "2026-10-01T08:00:00Z",
    "ended_at": "2026-10-01T08:00:03.5Z",
    "source": {"type": "local", "host": None, "path": "/x/y.jsonl"},
    "is_agent_session": False,
}
PICTURE = {"type": "image", "media_type": "image/png", "encoding": "base64", "image": "iVBO"}


def header(**session: Any) -> Header:
    return Header("1.1", "2026-11-15T00:00:00Z", "claude-code", SESSION | session, {})


def composed(*messages: Value, **session: Any) -> list[Value]:
    units = ((True, message) for message in chain(*messages))
    text = b"".join(piece for name, piece in AGENT.write(header(**session), units) if not name)
    return [json.loads(line) for line in text.splitlines()]


def payloads(lines: list[Value], kind: str) -> list[Value]:
    return [line["payload"] for line in lines if line["type"] == kind]


def test_a_session_of_another_agent_becomes_a_rollout() -> None:
    lines = composed(
        say(1, "user", "Ring it.", PICTURE, timestamp="2026-10-01T08:00:00.000Z"),
        say(
            2,
            "assistant",
            {"type": "thinking", "thinking": "Hm."},
            "I will.",
            call("t1", "Bash", command="ring"),
            model={"name": "claude-opus-4-8"},
        ),
        say(3, "user", result("t1", "ding")),
        say(4, "user", result("t1", [{"type": "text", "text": "seen"}, PICTURE])),
        say(5, "assistant", "Done.", model={"name": "claude-opus-4-8"}, timestamp="2026-10-01T08:00:03.5Z"),
    )
    assert lines[0]["payload"] == {
        "id": SESSION["id"],
        "timestamp": "2026-10-01T08:00:00.000Z",
        "cwd": "/home/ada/src/bell",
        "originator": "clew",
        "cli_version": "0.118.0",
        "source": "cli",
    }
    items = payloads(lines, "response_item")
    assert items == [
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Ring it."},
                {"type": "input_image", "image_url": "data:image/png;base64,iVBO"},
            ],
        },
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I will."}]},
        {"type": "function_call", "name": "Bash", "arguments": '{"command":"ring"}', "call_id": "t1"},
        {"type": "function_call_output", "call_id": "t1", "output": "ding"},
        {
            "type": "function_call_output",
            "call_id": "t1",
            "output": [
                {"type": "input_text", "text": "seen"},
                {"type": "input_image", "image_url": "data:image/png;base64,iVBO"},
            ],
        },
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
    ]
    events = [(event["type"], event.get("message")) for event in payloads(lines, "event_msg")]
    said = [("user_message", "Ring it."), ("agent_reasoning", None), ("agent_message", "I will.")]
    assert events == [*said, ("agent_message", "Done.")]
    assert [context["model"] for context in payloads(lines, "turn_context")] == ["claude-opus-4-8"]
    assert lines[-1]["timestamp"] == "2026-10-01T08:00:03.500Z"


def test_a_prompt_of_several_texts_stands_once_behind_one_that_begins_like_a_note(tmp_path: Path) -> None:
    note = "<environment_context> is what I see. Why?"
    found = read(write(tmp_path, *composed(say(1, "user", note), say(2, "user", "Ring it.", "Twice.", PICTURE))))
    prompts = [[block.get("text") for block in each["content"]] for each in found.messages if each["role"] == "user"]
    assert prompts == [[note], ["Ring it.", "Twice.", None]]


def test_a_reply_of_several_texts_is_told_text_by_text(tmp_path: Path) -> None:
    lines = composed(say(1, "user", "Ring it.", "Twice."), say(2, "assistant", "Ding.", "Dong."))
    told = [(event["type"], event["message"]) for event in payloads(lines, "event_msg")]
    assert told == [("user_message", "Ring it.\nTwice."), ("agent_message", "Ding."), ("agent_message", "Dong.")]
    found = read(write(tmp_path, *lines))
    assert found.texts == ["Ring it.", "Twice.", "Ding.", "Dong."]


def test_forks_become_rollbacks(tmp_path: Path) -> None:
    lines = composed(
        say(1, "user", "a"),
        say(2, "assistant", "b"),
        say(3, "user", "c"),
        say(4, "assistant", "d"),
        say(5, "user", "c again", parent_uuid="m2"),
        say(6, "assistant", "e"),
    )
    assert [event["num_turns"] for event in payloads(lines, "event_msg") if event["type"] == "thread_rolled_back"] == [
        1
    ]
    found = read(write(tmp_path, *lines, thread=str(SESSION["id"])))
    assert found.active == ["a", "b", "c again", "e"]


RAN = "<user_shell_command>\nls\n</user_shell_command>"
ACTED = "<user_action>\nreview\n</user_action>"


@pytest.mark.parametrize(
    "between",
    [
        [say(3, "user", "b"), say(4, "assistant", "s")],
        [say(3, "user", RAN), say(4, "assistant", "s")],
        [say(3, "user", ACTED), say(4, "assistant", "s")],
        [say(3, "user", "<environment_context> is what I see"), say(4, "assistant", "s")],
        [say(3, "user", "put in", is_meta=True), say(4, "assistant", "s")],
        [say(3, "assistant", call("t1")), say(4, "user", "first", result("t1"), "then")],
        [say(3, "user", PICTURE), say(4, "assistant", "s")],
    ],
    ids=["prompt", "command", "action", "context", "meta", "result", "picture"],
)
def test_going_back_takes_as_many_turns_as_are_read(tmp_path: Path, between: list[Value]) -> None:
    later = [say(5, "user", "a"), say(6, "assistant", "r")]
    again = [say(7, "user", "c", parent_uuid="m2"), say(8, "assistant", "e")]
    lines = composed(say(1, "user", "z"), say(2, "assistant", "y"), *copy.deepcopy(between), *later, *again)
    active = read(write(tmp_path, *lines, thread=str(SESSION["id"]))).active
    # What a person ran begins no turn, so that it stays with the one that it stands in.
    kept = [RAN, "s"] if between[0]["content"][0].get("text") == RAN else []
    assert active == ["z", "y", *kept, "c", "e"]


def test_going_back_begins_with_what_a_person_ran(tmp_path: Path) -> None:
    talk = [say(1, "user", "z"), say(2, "assistant", "y"), say(3, "user", "b"), say(4, "assistant", "s")]
    lines = composed(*talk, say(5, "user", RAN, parent_uuid="m2"), say(6, "user", "c"), say(7, "assistant", "e"))
    found = read(write(tmp_path, *lines, thread=str(SESSION["id"])))
    assert found.active == ["z", "y", RAN, "c", "e"]


def test_what_codex_has_no_place_for() -> None:
    lines = composed(
        say(1, "user", "side", is_sidechain=True),
        say(2, "system", "note"),
        say(3, "user", "injected", is_meta=True),
        say(4, "user", {"type": "document", "encoding": "base64", "title": "plan.pdf"}),
        say(5, "assistant", call("t", "mcp.tool name")),
    )
    items = payloads(lines, "response_item")
    texts = [(each["role"], each["content"][0]["text"]) for each in items if each["type"] == "message"]
    assert texts == [("developer", "note"), ("user", "injected"), ("user", "[document: plan.pdf]")]
    assert items[-1]["name"] == "mcp_tool_name"
    assert [event["type"] for event in payloads(lines, "event_msg")] == ["user_message"]


def test_ids_that_are_no_uuid_get_one() -> None:
    first, second = (composed(say(1, "user", "a"), id="agent-7")[0]["payload"]["id"] for _ in range(2))
    assert first == second != "agent-7"


@pytest.mark.seed("S3-32")
def test_every_session_of_the_demo_can_be_written_for_codex(tmp_path: Path) -> None:
    write_demo(tmp_path / "demo")
    for source in ClaudeCode().discover(tmp_path / "demo" / ".claude" / "projects"):
        document = document_of(ClaudeCode(), source.path)
        told = header_of(document)
        units = ((True, message) for message in document["messages"])
        target = tmp_path / "out" / AGENT.target(told)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(b"".join(piece for _, piece in AGENT.write(told, units)))
        found = AGENT.locate(target)
        assert verify(AGENT, found).different == []
        assert AGENT.session(found, AGENT.scan(found))["workspace"] == document["session"]["workspace"]


def test_targets() -> None:
    composed_target = (
        ".codex/sessions/2026/10/01/rollout-2026-10-01T08-00-00-5f0e7c1a-0d5b-4b6e-9d3a-6f1f0a2b3c4d.jsonl"
    )
    assert AGENT.target(header()) == composed_target
    own = header(workspace_encoded="archived_sessions", source={"path": f"/h/rollout-x-{THREAD}.jsonl.zst"})
    own = own._replace(extensions={"codex": {"orders": {}}})
    assert AGENT.target(own) == f".codex/archived_sessions/rollout-x-{THREAD}.jsonl"
    nowhere = header(workspace_encoded="sessions/../..", source={"path": "/h/rollout-x.jsonl"})
    with pytest.raises(UsageError, match="not a safe file name"):
        AGENT.target(nowhere._replace(extensions={"codex": {"orders": {}}}))


def test_a_document_that_lost_its_extensions_is_still_written(tmp_path: Path) -> None:
    path = write(tmp_path, meta(), *asked("hi"))
    document = document_of(AGENT, path)
    document["extensions"] = {}
    for message in document["messages"]:
        message.pop("extensions", None)
    units = ((True, message) for message in document["messages"])
    text = b"".join(piece for _, piece in AGENT.write(header_of(document), units))
    assert b'"text":"hi"' in text
    assert list(round_trip(AGENT, path).values()) == [path.read_bytes()]
