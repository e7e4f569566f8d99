"""Sessions of other agents written as rollouts, and copies of rollouts under other ids."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from clew.agents.base import Header, Unit
from clew.agents.claude_code import ClaudeCode
from clew.convert.prepare import prepare
from clew.errors import UsageError
from tests.agents.rollouts import (
    AGENT,
    OTHER,
    THREAD,
    Value,
    answered,
    asked,
    context,
    event,
    line,
    meta,
    read,
    write,
)
from tests.demo_home import write_small_demo
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
    return Header("1.2", "2026-11-15T00:00:00Z", "claude-code", SESSION | session, {})


def encoded(header: Header, units: Iterable[Unit]) -> list[Value]:
    pieces = list(AGENT.encode(header, units))
    assert {name for name, _ in pieces} == {""}
    return [json.loads(line) for line in b"".join(piece for _, piece in pieces).splitlines()]


def new_unit(message: Value) -> Unit:
    return Unit(True, message, 0, 0, 0, ())


def composed(*messages: Value, **session: Any) -> list[Value]:
    return encoded(header(**session), map(new_unit, chain(*messages)))


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
    write_small_demo(tmp_path / "demo")
    for source in ClaudeCode().discover(tmp_path / "demo" / ".claude" / "projects"):
        session = ClaudeCode().session(source, ClaudeCode().facts(source))
        target = tmp_path / "out" / AGENT.target(header(**session))
        target.parent.mkdir(parents=True, exist_ok=True)
        units = (new_unit(unit.value) for unit in ClaudeCode().units(source) if unit.is_message)
        target.write_bytes(b"".join(piece for _, piece in AGENT.encode(header(**session), units)))
        assert read(target).session["workspace"] == session["workspace"]


def test_targets() -> None:
    composed_target = (
        ".codex/sessions/2026/10/01/rollout-2026-10-01T08-00-00-5f0e7c1a-0d5b-4b6e-9d3a-6f1f0a2b3c4d.jsonl"
    )
    assert AGENT.target(header()) == composed_target
    own = header(workspace_encoded="archived_sessions", source={"path": f"/h/rollout-x-{THREAD}.jsonl.zst"})
    assert AGENT.target(own._replace(agent="codex")) == f".codex/archived_sessions/rollout-x-{THREAD}.jsonl"
    nowhere = header(workspace_encoded="sessions/../..", source={"path": "/h/rollout-x.jsonl"})
    with pytest.raises(UsageError, match="not a safe file name"):
        AGENT.target(nowhere._replace(agent="codex"))


def test_own_messages_are_composed_anew_without_their_records(tmp_path: Path) -> None:
    search = {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "bells"}}
    patch = {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "*** Begin Patch"}
    lines = [meta(), *asked("hi"), line("response_item", search), line("response_item", patch), *answered("ho")]
    found = read(write(tmp_path, *lines))
    again = read(write(tmp_path, *encoded(header(), map(new_unit, found.messages)), thread=str(SESSION["id"])))
    assert [message["content"] for message in again.messages] == [message["content"] for message in found.messages]


def copied(*lines: Value | bytes, home: Path, **session: Any) -> list[Value]:
    units = AGENT.units(AGENT.locate(write(home, *lines)))
    kept = (unit for unit in units if unit.is_message or unit.value["kind"] != "fragment")
    return encoded(header(**session)._replace(agent="codex"), kept)


def own_lines(path: Path) -> list[Value]:
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [each for each in found if each["type"] != "clew-origin"]


def test_a_copy_of_a_rollout_differs_in_its_id_alone(tmp_path: Path) -> None:
    lines = [
        meta(session_id=THREAD, forked_from_id=OTHER, from_the_future={"id": THREAD, "note": THREAD}),
        *asked(f"What is {THREAD}?"),
        line("from_the_future", {"ids": [{"threadId": THREAD}, THREAD]}, ordinal=7),
        *answered("A thread."),
    ]
    source = AGENT.locate(write(tmp_path, lines[0], b'{"torn', *lines[1:]))
    written = prepare(AGENT, source, AGENT.id).write(tmp_path / "copy", allow_loss=True)
    expected, new = copy.deepcopy(lines), written.session_id
    head = expected[0]["payload"]
    head["id"] = head["session_id"] = head["from_the_future"]["id"] = new
    expected[3]["payload"]["ids"][0]["threadId"] = new
    assert own_lines(Path(written.files[0])) == expected


@pytest.mark.parametrize(("messages", "expected"), [((1, 2, 3, 4), "abcd"), ((1, 2, 5, 6), "abef")])
def test_a_copy_of_one_branch_holds_nothing_of_the_others(
    tmp_path: Path, messages: tuple[int, ...], expected: str
) -> None:
    rolled_back = event("thread_rolled_back", num_turns=1)
    talk = [*asked("a"), *answered("b"), context(), *asked("c"), *answered("d")]
    path = write(tmp_path, meta(), *talk, rolled_back, context(), *asked("e"), *answered("f"))
    units = [unit for unit in AGENT.units(AGENT.locate(path)) if not unit.is_message or unit.value["index"] in messages]
    found = read(write(tmp_path, *encoded(header(), units), thread=str(SESSION["id"])))
    assert "".join(found.texts) == "".join(found.active) == expected


def test_a_whole_copy_keeps_its_rollbacks_in_their_place(tmp_path: Path) -> None:
    rolled_back = event("thread_rolled_back", num_turns=1)
    lines = [meta(), *asked("a"), *answered("b"), rolled_back, context(), *asked("c"), *answered("d"), rolled_back]
    assert [each["type"] for each in copied(*lines, home=tmp_path)] == [each["type"] for each in lines]


def test_the_copy_of_a_sub_agent_names_the_copy_of_its_parent(tmp_path: Path) -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": OTHER, "depth": 1}}}
    lines = [meta(source=source, session_id=OTHER), meta(OTHER), *asked("a"), event("thread_rolled_back", num_turns=1)]
    child = AGENT.locate(write(tmp_path, *lines))
    started = event("sub_agent_activity", agent_thread_id=THREAD, event_id="c", agent_path="/w/a", kind="started")
    parent = AGENT.locate(write(tmp_path, meta(OTHER), *asked("go"), started, thread=OTHER))
    written = prepare(AGENT, parent, AGENT.id, find={THREAD: child}.get).write(tmp_path / "copy", allow_loss=True)
    new_parent, (path,) = written.session_id, [Path(name) for name in written.files[1:] if "rollout-" in name]
    first, second, *others = own_lines(path)
    assert first["payload"]["source"]["subagent"]["thread_spawn"]["parent_thread_id"] == new_parent
    assert first["payload"]["session_id"] == second["payload"]["id"] == new_parent
    assert first["payload"]["id"] in path.name
    assert first["payload"]["id"] != THREAD
    assert others == lines[2:]


def test_sub_agents_of_a_copy_are_in_its_records_already(tmp_path: Path) -> None:
    started = event("sub_agent_activity", agent_thread_id=OTHER, event_id="c", agent_path="/w/a", kind="started")
    links = [{"session_id": OTHER, "agent_id": "a", "tool_id": "c"}]
    assert len(copied(meta(), *asked("a"), started, home=tmp_path, subagents=links)) == 4
