"""Codex CLI: what each line becomes, whose words they are, who follows whom, and how calls went."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clew.agents.base import Claim
from clew.analysis.todos import progression
from clew.export.verify import Proof, verify
from clew.sources.local import at_path
from tests.agents.rollouts import (
    AGENT,
    CWD,
    THREAD,
    Value,
    answered,
    asked,
    context,
    event,
    item,
    line,
    meta,
    place,
    read,
    rollout,
    spelled,
    tokens,
    words,
)

PICTURE = "data:image/png;base64,iVBORw0KGgo="


# Items and messages


@pytest.mark.seed("S2-44")
def test_every_item_of_the_conversation_is_one_message(tmp_path: Path) -> None:
    found = rollout(
        tmp_path,
        meta(),
        words("developer", "<permissions instructions>x</permissions instructions>"),
        words("user", "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>"),
        context(),
        *asked("List the files."),
        item("reasoning", summary=[{"type": "summary_text", "text": "Hm."}], content=None, encrypted_content="gAAA"),
        item("function_call", name="shell", arguments='{"command":["ls"]}', call_id="c1"),
        item("function_call_output", call_id="c1", output="Exit code: 0\nWall time: 0.1 seconds\nOutput:\na.txt\n"),
        *answered("One file."),
    )
    assert [message["role"] for message in found.messages] == [
        "system",
        "system",
        "user",
        "assistant",
        "assistant",
        "user",
        "assistant",
    ]
    thought, call, result = (found.messages[at]["content"][0] for at in (3, 4, 5))
    assert thought == {"type": "thinking", "thinking": "Hm.", "signature": "gAAA"}
    assert call == {"type": "tool_use", "tool_id": "c1", "tool_name": "shell", "input": {"command": ["ls"]}}
    assert (result["tool_id"], result["tool_name"], result["is_error"]) == ("c1", "shell", False)
    assert [message["metadata"].get("is_meta") for message in found.messages[:2]] == [True, True]
    assert found.texts[2:] == ["List the files.", "One file."]


@pytest.mark.seed("S2-44")
def test_id_session_content_and_role(tmp_path: Path) -> None:
    found = rollout(tmp_path, meta(), words("user", "hi", id="msg_1"), words("assistant", "ho"))
    first, second = found.messages
    assert found.session["id"] == THREAD
    assert (first["uuid"], first["role"], first["content"]) == ("msg_1", "user", [{"type": "text", "text": "hi"}])
    assert (second["uuid"], second["parent_uuid"]) == (f"{THREAD}:3", "msg_1")


def test_an_id_belongs_to_the_first_item_that_has_it(tmp_path: Path) -> None:
    found = rollout(tmp_path, meta(), *(words("user", text, id=name) for text, name in ("ax", "bx", "cy")))
    assert [message["uuid"] for message in found.messages] == ["x", f"{THREAD}:3", "y"]


def test_records_on_one_line_have_ids_of_their_own(tmp_path: Path) -> None:
    glued = spelled(words("user", "a"))[:-1] + spelled(words("user", "b"))[:-1]
    found = rollout(tmp_path, meta(), glued)
    assert [message["uuid"] for message in found.messages] == [f"{THREAD}:2", f"{THREAD}:2.2"]
    assert found.facts.messages == 2


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (
            {
                "type": "custom_tool_call",
                "status": "completed",
                "call_id": "c",
                "name": "apply_patch",
                "input": "*** x",
            },
            {"tool_id": "c", "tool_name": "apply_patch", "input": {"input": "*** x"}},
        ),
        (
            {"type": "local_shell_call", "call_id": "c", "status": "completed", "action": {"command": ["ls"]}},
            {"tool_id": "c", "tool_name": "local_shell", "input": {"command": ["ls"]}},
        ),
        (
            {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}},
            {"tool_id": None, "tool_name": "web_search", "input": {"type": "search", "query": "q"}},
        ),
        (
            {"type": "tool_search_call", "call_id": "c", "execution": "local", "arguments": {"query": "q"}},
            {"tool_id": "c", "tool_name": "tool_search", "input": {"query": "q"}},
        ),
        (
            {"type": "image_generation_call", "status": "completed", "revised_prompt": "a bell", "result": "iVBO"},
            {"tool_id": None, "tool_name": "image_generation", "input": {"prompt": "a bell"}},
        ),
        ({"type": "function_call", "call_id": "c"}, {"tool_id": "c", "tool_name": None, "input": {}}),
        ({"type": "web_search_call"}, {"tool_id": None, "tool_name": "web_search", "input": {}}),
    ],
    ids=lambda value: value.get("type") if isinstance(value, dict) else None,
)
def test_calls_of_every_kind(tmp_path: Path, payload: dict[str, Any], expected: dict[str, Any]) -> None:
    found = rollout(tmp_path, meta(), line("response_item", payload))
    (message,) = found.messages
    assert message["role"] == "assistant"
    assert message["content"][0] == {"type": "tool_use", **expected}
    assert found.facts.tool_calls == 1
    if "result" in payload:
        assert message["content"][1]["image"] == "iVBO"


@pytest.mark.parametrize(
    "arguments",
    [
        '{"cmd": "ls"}',
        '{"a":1.0,"b":1E5}',
        "not json",
        '"text"',
        "{'a': 1}",
        "",
        '{"a":1,"a":2}',
        "[" * 3000,
        None,
        {"a": 1},
    ],
)
def test_arguments_come_back_as_they_were_spelled(tmp_path: Path, arguments: object) -> None:
    found = rollout(tmp_path, meta(), item("function_call", name="f", arguments=arguments, call_id="c"))
    (message,) = found.messages
    if arguments == '{"cmd": "ls"}':
        assert message["content"][0]["input"] == {"cmd": "ls"}


def test_thoughts_are_blocks_of_their_own(tmp_path: Path) -> None:
    parts = [{"type": "summary_text", "text": text} for text in ("one", "two")]
    shown = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "all of it"}]}
    hidden = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    found = rollout(
        tmp_path, meta(), item("reasoning", summary=parts), *(line("response_item", p) for p in (shown, hidden))
    )
    blocks = [message["content"] for message in found.messages]
    assert [block["thinking"] for block in blocks[0]] == ["one", "two"]
    assert blocks[1] == [{"type": "thinking", "thinking": "all of it"}]
    assert blocks[2] == [{"type": "thinking", "thinking": "", "signature": "gAAA"}]
    assert found.facts.has_thinking


def test_pictures_and_other_blocks(tmp_path: Path) -> None:
    content = [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": PICTURE, "detail": "auto"},
        {"type": "input_image", "image_url": "https://example.org/a.png"},
        {"type": "input_image", "image_url": None},
        {"type": "input_audio", "audio_url": "data:audio/wav;base64,UklG"},
        {"type": "encrypted_content", "encrypted_content": "gAAA"},
        {"type": "from_the_future", "x": 1},
    ]
    found = rollout(tmp_path, meta(), item("message", role="user", content=content))
    blocks = found.messages[0]["content"]
    assert [block["type"] for block in blocks] == ["text", "image", "image", "image", "document", "unknown", "unknown"]
    assert (blocks[1]["media_type"], blocks[1]["image"]) == ("image/png", "iVBORw0KGgo=")
    assert (blocks[2]["encoding"], blocks[2]["image"]) == ("url", "https://example.org/a.png")
    assert verify(AGENT, found.source).unknown_types == {"content.from_the_future": 1}


def test_content_may_be_a_string_or_missing(tmp_path: Path) -> None:
    bodies: list[dict[str, Any]] = [
        {"role": "user", "content": "plain"},
        {"role": "assistant", "content": None},
        {"role": "assistant"},
    ]
    found = rollout(tmp_path, meta(), *(line("response_item", {"type": "message", **body}) for body in bodies))
    assert [message["content"] for message in found.messages] == [[{"type": "text", "text": "plain"}], [], []]


def test_a_payload_without_a_type_is_a_message(tmp_path: Path) -> None:
    found = rollout(tmp_path, meta(), line("response_item", {"role": "user", "content": "hello"}))
    assert found.texts == ["hello"]


# Whose words


@pytest.mark.parametrize(
    "text",
    [
        "# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>",
        "<user_instructions>\nx</user_instructions>",
        "<environment_context>\n</environment_context>",
        "<user_shell_command>\nls\n</user_shell_command>",
        "<turn_aborted>\n</turn_aborted>",
        "<subagent_notification>\n{}\n</subagent_notification>",
        "<goal_context>x</goal_context>",
        "<skill>x</skill>",
        '<hook_prompt id="1">x</hook_prompt>',
        "<external_linear>x</external_linear>",
        "<user_action>x</user_action>",
    ],
)
def test_P08_injected_context_is_not_the_users(tmp_path: Path, text: str) -> None:
    found = rollout(tmp_path, meta(), words("user", text), *asked("Mine."))
    assert [message["role"] for message in found.messages] == ["system", "user"]
    assert found.facts.prompts == 1
    assert found.session["title"] == "Mine."


def test_one_injected_block_makes_the_message_injected(tmp_path: Path) -> None:
    found = rollout(tmp_path, meta(), words("user", "preface", "<environment_context>\n</environment_context>"))
    assert found.messages[0]["metadata"]["is_meta"]
    assert found.facts.prompts == 0


@pytest.mark.parametrize(("kinds", "role"), [(["user.text"], "user"), (["environments.environment_context"], "system")])
def test_newer_versions_say_what_a_block_is(tmp_path: Path, kinds: list[str], role: str) -> None:
    passed = {"turn_id": "t", "content_item_kinds": kinds}
    text = "<environment_context> is what I typed"
    found = rollout(tmp_path, meta(), words("user", text, internal_chat_message_metadata_passthrough=passed))
    assert found.messages[0]["role"] == role


def test_what_an_editor_puts_before_a_prompt_is_not_in_the_title(tmp_path: Path) -> None:
    text = "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nMake it louder.\n"
    assert rollout(tmp_path, meta(), *asked(text)).session["title"] == "Make it louder."


def test_messages_between_agents(tmp_path: Path) -> None:
    sent = {"author": "/main", "recipient": "/main/worker", "content": [{"type": "input_text", "text": "Do it."}]}
    found = rollout(tmp_path, meta(), item("agent_message", **sent))
    assert found.messages[0]["role"] == "user"
    assert found.messages[0]["metadata"]["origin"] == "agent"
    assert found.facts.prompts == 0


# Events that say the same


def test_words_are_shown_once(tmp_path: Path) -> None:
    found = rollout(tmp_path, meta(), *asked("a"), event("agent_reasoning", text="t"), *answered("b"))
    assert found.texts == ["a", "b"]
    assert len(found.records) == 4


@pytest.mark.parametrize("beside", [meta(), context(), item("unheard_of"), tokens(None, None), event("task_started")])
@pytest.mark.parametrize("order", [1, -1])
def test_P09_what_is_glued_to_an_event_that_stands_alone_stays_what_it_is(
    tmp_path: Path, beside: Value, order: int
) -> None:
    lone = event("user_message", 2, message="one", images=[])
    glued = b"".join(spelled(each)[:-1] for each in (beside, lone)[::order])
    found = rollout(tmp_path, *([] if beside == meta() else [meta()]), glued, *answered("two", 3))
    assert found.texts == ["one", "two"]


def test_words_that_only_an_event_tells_are_shown(tmp_path: Path) -> None:
    found = rollout(
        tmp_path,
        meta(),
        event("user_message", message="Make it.", images=None),
        item("function_call", name="f", arguments="{}", call_id="c"),
        event("agent_message", message="Done."),
    )
    assert found.texts == ["Make it.", "Done."]
    assert [message["role"] for message in found.messages] == ["user", "assistant", "assistant"]
    assert (found.facts.prompts, found.session["title"]) == (1, "Make it.")


def test_a_prompt_that_only_an_event_tells_does_not_hide_the_next(tmp_path: Path) -> None:
    lone = event("user_message", 2, message="one", images=[])
    found = rollout(tmp_path, meta(), lone, *answered("two", 2), *asked("three", 4), *answered("four", 5))
    assert found.texts == ["one", "two", "three", "four"]


def test_an_event_of_other_words_belongs_to_the_item_nearby(tmp_path: Path) -> None:
    told = event("user_message", 2, message="one", images=["data:image/png;base64,aGk="])
    found = rollout(tmp_path, meta(), words("user", "<image>", "one, and more", second=2), told, *answered("two", 3))
    assert found.texts == ["<image>", "one, and more", "two"]


def test_an_event_may_stand_before_or_behind_its_item(tmp_path: Path) -> None:
    found = rollout(tmp_path, meta(), *reversed(asked("a")), *reversed(answered("b")), *answered("c"), *answered("c"))
    assert found.texts == ["a", "b", "c", "c"]


# How calls went


@pytest.mark.parametrize(
    ("output", "is_error", "noted"),
    [
        ('{"output":"~","metadata":{"exit_code":2,"duration_seconds":0.5}}', True, {"exit_code": 2, "duration": 0.5}),
        ("Exit code: 0\nWall time: 1.5 seconds\nOutput:\n~", False, {"exit_code": 0, "duration": 1.5}),
        (
            "Exit code: 1\nWall time: 2 seconds\nTotal output lines: 9\nOutput:\n~",
            True,
            {"exit_code": 1, "duration": 2.0},
        ),
        (
            "Chunk ID: ab\nWall time: 0.2 seconds\nProcess exited with code 127\nOutput:\n",
            True,
            {"exit_code": 127, "duration": 0.2},
        ),
        ("Chunk ID: ab\nWall time: 9.0 seconds\nProcess running with session ID 4\nOutput:\n", None, {"duration": 9.0}),
        ([{"type": "input_text", "text": "Script completed\nWall time 0.1 seconds"}], False, {}),
        ([{"type": "input_text", "text": "Script failed\n"}], True, {}),
        ([{"type": "input_text", "text": "Script running with cell ID 3"}], None, {}),
        ("failed in sandbox LinuxSeccomp with execution error: ~", True, {}),
        ("apply_patch verification failed: ~", True, {}),
        ("exec command rejected by user", True, {}),
        ("aborted by user after 2.0s", True, {}),
        ("error: no such file", True, {}),
        ("Plan updated", None, {}),
        ("Exit code: " + "9" * 5000 + "\nWall time: 1 seconds\n", None, {}),
        ('{"output":"","metadata":{"exit_code":0,"duration_seconds":1e999}}', False, {"exit_code": 0}),
        ('{"answer":42}', None, {}),
        ([], None, {}),
        ({"text": "an object"}, None, {}),
        (None, None, {}),
    ],
)
def test_the_text_of_a_result_tells_how_it_went(
    tmp_path: Path, output: Any, is_error: bool | None, noted: dict[str, Any]
) -> None:
    long = output.replace("~", "~" * 2000) if isinstance(output, str) else output
    for text in (output, long):
        found = rollout(tmp_path, meta(), item("function_call_output", call_id="c", output=text))
        block = found.messages[0]["content"][0]
        assert block.get("is_error") is is_error
        assert block.get("extensions", {}).get("codex", {}) == noted
        assert found.facts.has_errors is (is_error is True)


def test_plans_are_todos(tmp_path: Path) -> None:
    steps = [{"step": "Look", "status": "completed"}, {"step": "Mend", "status": "in_progress"}]
    found = rollout(
        tmp_path,
        meta(),
        item("function_call", name="update_plan", arguments=json.dumps({"plan": steps[:1]}), call_id="p1"),
        item("function_call_output", call_id="p1", output="Plan updated"),
        item("function_call", name="update_plan", arguments=json.dumps({"plan": steps}), call_id="p2"),
        item("function_call_output", call_id="p2", output="Plan updated"),
    )
    states = progression(found.messages)
    assert [[(todo.content, todo.status) for todo in state.todos] for state in states] == [
        [("Look", "completed")],
        [("Look", "completed"), ("Mend", "in_progress")],
    ]


# Surroundings


@pytest.mark.seed("S2-34", "S2-35")
def test_surroundings_are_stated_where_they_change(tmp_path: Path) -> None:
    found = rollout(
        tmp_path,
        meta(git={"branch": "main"}),
        words("user", "a"),
        context(cwd="/elsewhere", model="gpt-5.1"),
        words("user", "b"),
        words("assistant", "c", phase="final_answer"),
    )
    first, second, third = (message.get("metadata", {}) for message in found.messages)
    assert first == {
        "cwd": CWD,
        "git_branch": "main",
        "agent_version": "0.118.0",
        "user_type": "codex_cli_rs",
    }
    assert second == {"cwd": "/elsewhere"}
    assert third == {"model": {"name": "gpt-5.1", "stop_reason": "end_turn"}, "thinking": {"level": "high"}}


# Other lines


def test_unknown_lines_are_kept_and_counted(tmp_path: Path) -> None:
    found = rollout(
        tmp_path,
        meta(),
        line("from_the_future", {"a": 1}),
        event("mystery", x=[1]),
        item("mystery_item"),
        line("response_item", "no object"),
        {"type": "bare_mystery"},
    )
    assert [record["kind"] for record in found.records] == ["state", *["other"] * 5]
    assert list(verify(AGENT, found.source).unknown_types) == [
        "from_the_future",
        "event_msg.mystery",
        "response_item.mystery_item",
        "response_item",
        "bare_mystery",
    ]


def test_records_say_what_they_are(tmp_path: Path) -> None:
    found = rollout(
        tmp_path,
        meta(),
        line("compacted", {"message": "So far: nothing.", "replacement_history": [words("user", "old")["payload"]]}),
        event("thread_name_updated", thread_id=THREAD, thread_name="Bells"),
        event("token_count", info=None, rate_limits={}),
        item("ghost_snapshot", ghost_commit={"id": "abc", "parent": None}),
        line("world_state", {"full": True, "state": {}}),
        line("token_usage_record", {"response_id": "r", "usage": {}}),
    )
    kinds = [(record["kind"], record.get("text")) for record in found.records]
    assert kinds == [
        ("state", None),
        ("summary", "So far: nothing."),
        ("title", "Bells"),
        ("cost", None),
        ("snapshot", None),
        ("state", None),
        ("cost", None),
    ]
    assert found.messages == []
    assert found.session["title"] == "Bells"


# Claims


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("rollout-x.jsonl", spelled(meta()), Claim.YES),
        ("any.jsonl", spelled(line("turn_context", {})), Claim.YES),
        ("any.jsonl", spelled(meta())[:90], Claim.YES),
        ("any.jsonl", b'{"id":"x","timestamp":"2025","instructions":null}\n', Claim.YES),
        ("a.jsonl.zst", spelled(meta()), Claim.YES),
        ("rollout-2026-01-01T00-00-00-x.jsonl", b"", Claim.MAYBE),
        (
            "rollout-2025-04-20-x.json",
            b'{"session":{"timestamp":"t","id":"x","instructions":""},"items":[]}',
            Claim.YES,
        ),
        ("exec.jsonl", b'{"type":"thread.started","thread_id":"x"}\n{"type":"turn.completed"}\n', Claim.NO),
        ("history.jsonl", b'{"session_id":"x","ts":1,"text":"hi"}\n', Claim.NO),
        ("session_index.jsonl", b'{"id":"x","thread_name":"n","updated_at":"t"}\n', Claim.NO),
        ("auth.json", b'{"session":{"token":"x"}}', Claim.NO),
        ("x.jsonl", b'{"type":"user","payload":{}}\n', Claim.NO),
    ],
)
def test_claims(name: str, head: bytes, expected: Claim) -> None:
    assert AGENT.claims(Path(name), head) == expected


@pytest.mark.seed("S3-32")
def test_everything_in_the_corpus_comes_back(shared: Path) -> None:
    proof = Proof()
    for found in at_path(shared / "corpus" / "codex"):
        assert found.agent.id == "codex", found.source.path
        proof.add(verify(found.agent, found.source))
    assert proof.different == []
    assert proof.identical == proof.files > 80
    assert proof.carried_raw <= proof.records * 0.02
    assert proof.document_bytes <= proof.bytes * 2


def test_files_beside_the_rollouts_are_not_touched(tmp_path: Path) -> None:
    path = place(tmp_path)
    path.write_bytes(spelled(meta(), *asked("hi")))
    (tmp_path / ".codex" / "auth.json").mkdir()
    assert read(path).session["title"] == "hi"
