"""Gemini CLI: what each key of a record becomes, in every generation of the format."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.base import Claim
from clew.agents.gemini import Gemini
from clew.analysis.todos import progression
from clew.export.verify import verify
from clew.model.json import JSON
from tests.agents.gemini_worlds import (
    AGENT,
    HASH,
    SESSION,
    Record,
    call,
    document,
    gemini,
    header,
    log,
    opened,
    tokens,
    user,
)
from tests.json_values import Line, records, spell, words

Block = dict[str, JSON]
KEYS = words("""
    id timestamp type content sessionId projectHash startTime lastUpdated messages $set $rewindTo summary kind text
    parts thoughts tokens model toolCalls name args result status functionCall functionResponse response output error
    role thought thoughtSignature inlineData mimeType data history message messageId description subject displayContent
""")
WORDS = ["user", "gemini", "info", "a", "b", "model", "success", "executing", ""]


def values(path: Path) -> list[Record]:
    return [unit.value for unit in opened(path).units() if unit.is_message]


def blocks(path: Path, index: int = 0) -> list[Block]:
    found: list[Block] = values(path)[index]["content"]
    return found


def proved(path: Path) -> None:
    assert verify(AGENT, AGENT.locate(path)).different == []


@pytest.mark.seed("S2-45")
def test_a_whole_message_in_the_words_of_the_model(tmp_path: Path) -> None:
    thought = {"subject": "Bells", "description": "They ring.", "timestamp": "2026-10-20T09:15:02.000Z"}
    told = call("c1", timestamp="2026-10-20T09:15:06.000Z", resultDisplay="done", displayName="ReadFile")
    record = gemini(
        "b", "Ding.", thoughts=[thought], tokens=tokens(100, 7, 40, 3), model="gemini-3-pro", toolCalls=[told]
    )
    path = log(tmp_path, header(), user("a"), record)
    _, message, results = values(path)
    assert message["role"] == "assistant"
    assert message["parent_uuid"] == "a"
    assert message["timestamp"] == "2026-10-20T09:15:05.000Z"
    assert blocks(path, 1) == [
        {"type": "thinking", "thinking": "Bells\nThey ring."},
        {"type": "text", "text": "Ding."},
        {"type": "tool_use", "tool_id": "c1", "tool_name": "read_file", "input": {"file_path": "bell.py"}},
    ]
    assert message["metadata"] == {
        "model": {"name": "gemini-3-pro"},
        "token_usage": {"input_tokens": 60, "output_tokens": 10, "cache_read_tokens": 40, "reasoning_tokens": 3},
        "message_id": f"{SESSION} b",
    }
    assert (results["uuid"], results["parent_uuid"], results["role"]) == ("b:results", "b", "user")
    assert results["timestamp"] == "2026-10-20T09:15:06.000Z"
    assert blocks(path, 2) == [
        {"type": "tool_result", "tool_id": "c1", "tool_name": "read_file", "output": "done", "is_error": False}
    ]
    proved(path)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Hi", [{"type": "text", "text": "Hi"}]),
        ("", []),
        ({"text": "Hi"}, [{"type": "text", "text": "Hi"}]),
        (["a", {"text": "b"}], [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        ([], []),
        (None, []),
        (5, [{"type": "unknown", "value": 5}]),
    ],
)
def test_content_in_every_shape(tmp_path: Path, content: JSON, expected: list[Block]) -> None:
    path = log(tmp_path, header(), user("a", content))
    assert blocks(path) == expected
    proved(path)


def test_content_and_lists_that_are_missing_or_null(tmp_path: Path) -> None:
    bare = {"id": "b", "type": "gemini", "timestamp": "2026-10-20T09:15:05.000Z"}
    path = log(tmp_path, header(), bare, gemini("c", tokens=None, thoughts=None, toolCalls=None))
    assert [message["content"] for message in values(path)] == [[], [{"type": "text", "text": "Ding."}]]
    assert not opened(path).facts.ledger.by_model()
    proved(path)


def test_parts_of_every_kind(tmp_path: Path) -> None:
    parts = [
        {"text": "Look:"},
        {"text": "Hm.", "thought": True, "thoughtSignature": "c2ln"},
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
        {"inlineData": {"mimeType": "application/pdf", "data": "aGk="}},
        {"fileData": {"mimeType": "image/png", "fileUri": "gs://bell.png"}},
        {"fileData": {"mimeType": "text/plain", "fileUri": "gs://bell.txt"}},
        {"executableCode": {"code": "1"}},
        {"moon": 1},
    ]
    path = log(tmp_path, header(), user("a", parts))
    assert [(block["type"], block.get("encoding")) for block in blocks(path)] == [
        ("text", None),
        ("thinking", None),
        ("image", "base64"),
        ("document", "base64"),
        ("image", "url"),
        ("document", "url"),
        ("unknown", None),
        ("unknown", None),
    ]
    assert blocks(path)[1]["signature"] == "c2ln"
    assert "unknown-block" in {problem.code for problem in opened(path).problems()}
    proved(path)


def test_calls_are_taken_from_one_place_only(tmp_path: Path) -> None:
    parts = [
        {"text": "Hm.", "thought": True},
        {"text": "I look."},
        {"functionCall": {"id": "c1", "name": "read_file", "args": {}}, "thoughtSignature": "c2ln"},
        {"functionCall": {"id": "c9", "name": "glob", "args": {"pattern": "*"}}},
        {"functionCall": {"name": "read_file", "args": {}}},
    ]
    thought = {"subject": "S", "description": "Hm.", "timestamp": "2026-10-20T09:15:02.000Z"}
    path = log(tmp_path, header(), gemini("b", parts, thoughts=[thought], toolCalls=[call("c1")]))
    assert [(block["type"], block.get("tool_id")) for block in blocks(path)] == [
        ("thinking", None),
        ("text", None),
        ("tool_use", "c9"),
        ("tool_use", "c1"),
    ]
    assert opened(path).facts.tool_calls == 2
    proved(path)


def test_a_recorded_response_is_the_result(tmp_path: Path) -> None:
    response = user("r", [{"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "done"}}}])
    records = [header(), user("a"), gemini("b", toolCalls=[call("c1"), call("c2")]), response, gemini("d")]
    path = log(tmp_path, *records)
    found = values(path)
    assert [message["uuid"] for message in found] == ["a", "b", "b:results", "r", "d"]
    assert [block["tool_id"] for message in found[2:4] for block in message["content"]] == ["c2", "c1"]
    assert found[3]["metadata"]["is_meta"] is True
    assert opened(path).facts.prompts == 1
    assert "unanswered-call" not in {problem.code for problem in opened(path).problems()}
    proved(path)


@pytest.mark.parametrize(("status", "is_error"), [("success", False), ("error", True), ("cancelled", True)])
def test_the_end_of_a_call(tmp_path: Path, status: str, is_error: bool) -> None:
    path = log(tmp_path, header(), gemini("b", toolCalls=[call("c1", status=status)]))
    (result,) = values(path)[1]["content"]
    assert result["is_error"] is is_error
    assert opened(path).facts.has_errors is is_error
    proved(path)


@pytest.mark.parametrize(
    ("tool", "output", "is_error"),
    [
        ("run_shell_command", "Output: no bell\nExit Code: 2\nProcess Group PGID: 7", True),
        ("run_shell_command", "<untrusted_context>\nOutput: x\nExit Code: 1\n</untrusted_context>", True),
        ("run_shell_command", "Output: (empty)\nSignal: 9\nBackground PIDs: 8, 9\nProcess Group PGID: 7", True),
        ("run_shell_command", "Stdout: x\nExit Code: 127\nSignal: (none)\nBackground PIDs: (none)", True),
        ("run_shell_command", "Stdout: x\nExit Code: 0\nSignal: (none)\nBackground PIDs: (none)", False),
        ("run_shell_command", "Output: Exit Code: 2\nding\nProcess Group PGID: 7", False),
        ("run_shell_command", "Output: ding\nProcess Group PGID: 7", False),
        ("read_file", "Output: no bell\nExit Code: 2", False),
    ],
)
def test_a_command_fails_by_its_exit_code(tmp_path: Path, tool: str, output: str, is_error: bool) -> None:
    ran = call("c1", name=tool, output=output)
    path = log(tmp_path, header(), gemini("b", toolCalls=[ran]))
    (result,) = values(path)[1]["content"]
    assert result["output"] == output
    assert result["is_error"] is is_error
    proved(path)
    own_message = user("c", ran["result"])
    path = log(tmp_path, header(), gemini("b", toolCalls=[ran]), own_message)
    (result,) = values(path)[1]["content"]
    assert (values(path)[1]["uuid"], result.get("is_error", False)) == ("c", is_error)


@pytest.mark.parametrize("status", ["validating", "scheduled", "executing", "awaiting_approval"])
def test_a_call_that_did_not_end_has_no_result(tmp_path: Path, status: str) -> None:
    unfinished = {key: item for key, item in call("c1", status=status).items() if key != "result"}
    path = log(tmp_path, header(), gemini("b", toolCalls=[unfinished, call("c2", status=status)]))
    (message,) = values(path)
    assert [block["type"] for block in message["content"][1:]] == ["tool_use", "tool_use"]
    assert not opened(path).facts.has_errors
    assert "unanswered-call" in {problem.code for problem in opened(path).problems()}
    proved(path)


def response(id: str, text: str, name: str = "read_file", key: str = "output") -> Block:
    return {"functionResponse": {"id": id, "name": name, "response": {key: text}}}


PICTURE = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
RESULTS: dict[str, tuple[JSON, JSON]] = {
    "siblings": ([response("c0", "no"), response("c1", "yes"), response("c2", "no")], "yes"),
    "by name": ([response("x", "no", "glob"), response("y", "yes")], "yes"),
    "by nothing": ([response("x", "one", "glob"), response("y", "two", "ls")], "one\ntwo"),
    "text": ("plain", "plain"),
    "one part": (response("c1", "yes"), "yes"),
    "error": ([response("c1", "no bell", key="error")], "no bell"),
    "odd response": ([{"functionResponse": {"id": "c1", "name": "read_file", "response": {"a": 1}}}], '{"a":1}'),
    "output and more": ([{"functionResponse": {"id": "c1", "response": {"output": "a", "b": 1}}}], 'a\n{"b":1}'),
    "output and error": ([{"functionResponse": {"id": "c1", "response": {"output": "a", "error": "b"}}}], "a\nb"),
    "another name": (
        [response("c1", "see", "glob"), {"inlineData": {"mimeType": "image/png", "data": "aGk="}}, {"text": "aside"}],
        [
            {"type": "text", "text": "see\naside"},
            {"type": "image", "media_type": "image/png", "image": "aGk=", "encoding": "base64"},
        ],
    ),
    "null": (None, None),
    "empty": ([], "[]"),
    "words": ([{"text": "said"}], "said"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_in_every_shape(tmp_path: Path, name: str) -> None:
    given_result, expected = RESULTS[name]
    path = log(tmp_path, header(), gemini("b", toolCalls=[{**call("c1"), "result": given_result}]))
    (result,) = values(path)[1]["content"]
    assert result.get("output") == expected
    proved(path)


@pytest.mark.parametrize("nested", [False, True])
def test_pictures_in_results(tmp_path: Path, nested: bool) -> None:
    said = response("c1", "see")
    if nested:
        said["functionResponse"]["parts"] = [PICTURE]
    result = [said] if nested else [said, PICTURE]
    path = log(tmp_path, header(), gemini("b", toolCalls=[{**call("c1"), "result": result}]))
    (block,) = values(path)[1]["content"]
    assert block["output"] == [
        {"type": "text", "text": "see"},
        {"type": "image", "media_type": "image/png", "image": "aGk=", "encoding": "base64"},
    ]
    proved(path)


def test_calls_without_ids_get_stable_ones(tmp_path: Path) -> None:
    nameless = {key: item for key, item in call("c1").items() if key != "id"}
    path = log(tmp_path, header(), gemini("b", toolCalls=[nameless, {"status": "success"}]))
    assert [block["tool_id"] for block in blocks(path)[1:]] == ["b:0", "b:1"]
    assert [block["tool_id"] for block in blocks(path, 1)] == ["b:0", "b:1"]
    proved(path)


def test_duplicate_call_ids_are_told(tmp_path: Path) -> None:
    path = log(tmp_path, header(), gemini("b", toolCalls=[call("c1"), call("c1")]), gemini("d", toolCalls=[call("c1")]))
    assert opened(path).facts.tool_calls == 3
    assert [problem.code for problem in opened(path).problems()].count("duplicate-call") == 2
    proved(path)


@pytest.mark.parametrize("kind", ["info", "warning", "error"])
def test_notices_are_of_the_system(tmp_path: Path, kind: str) -> None:
    path = log(tmp_path, header(), {**user("a", [PICTURE]), "type": kind})
    (message,) = values(path)
    assert (message["role"], message["metadata"]) == ("system", {"is_meta": True})
    assert message["content"][0]["type"] == "image"
    proved(path)


NOT_TYPED = [
    "",
    "  ",
    "/help",
    "?",
    "<session_context>x</session_context>",
    "<hook_context>x",
    "System: Please continue.",
]


FILES = ["\n--- Content from referenced files ---", "\nContent from @bell.py:\n", "ring()", "\n--- End of content ---"]


@pytest.mark.parametrize(
    "content", ["Ring @bell.py." + "".join(FILES), [{"text": text} for text in ("Ring @bell.py.", *FILES)]]
)
def test_files_that_a_prompt_names_are_no_part_of_the_title(tmp_path: Path, content: JSON) -> None:
    path = log(tmp_path, header(), user("a", content))
    assert opened(path).header.title == "Ring @bell.py." and opened(path).facts.prompts == 1
    proved(path)


@pytest.mark.parametrize("text", NOT_TYPED)
def test_what_nobody_typed_is_no_prompt(tmp_path: Path, text: str) -> None:
    path = log(tmp_path, header(), user("a", text), user("b", [{"text": text}]), user("c", "Ring the bell."))
    assert opened(path).facts.prompts == 1
    assert opened(path).header.title == "Ring the bell."
    proved(path)


def test_a_picture_alone_is_a_prompt(tmp_path: Path) -> None:
    assert opened(log(tmp_path, header(), user("a", [PICTURE]))).facts.prompts == 1


def test_todos_come_from_the_display_or_the_call(tmp_path: Path) -> None:
    todos = [{"description": "Oil the bell", "status": "pending"}]
    done = [{"description": "Oil the bell", "status": "completed"}]
    shown = call("c1", "write_todos", resultDisplay={"todos": todos})
    asked = {**call("c2", "write_todos"), "args": {"todos": done}}
    path = log(tmp_path, header(), gemini("b", toolCalls=[shown]), gemini("c", toolCalls=[asked]))
    states = progression(values(path))
    assert [[(todo.content, todo.status) for todo in state.todos] for state in states] == [
        [("Oil the bell", "pending")],
        [("Oil the bell", "completed")],
    ]
    proved(path)


def test_zero_tokens_are_unknown_and_absent_ones_stay_absent(tmp_path: Path) -> None:
    zero = gemini("b", tokens=tokens(0, 0), model="m")
    some = gemini("c", tokens={"input": 5, "output": 2}, model="m")
    odd = gemini("d", tokens={"input": "5", "cached": -1, "output": 3}, model="m")
    path = log(tmp_path, header(), zero, some, odd)
    assert [message["metadata"].get("token_usage") for message in values(path)] == [
        None,
        {"input_tokens": 5, "output_tokens": 2},
        {"output_tokens": 3},
    ]
    assert opened(path).usage.calls == 2
    proved(path)


def test_tokens_that_tools_put_into_the_prompt_are_input(tmp_path: Path) -> None:
    """The total is the sum of input, output, thoughts and tool: what tools put into the prompt is apart from input."""
    counted = {"input": 100, "output": 7, "cached": 40, "thoughts": 3, "tool": 78, "total": 188}
    path = log(tmp_path, header(), gemini("b", tokens=counted, model="m"), gemini("c", tokens={"tool": 4}, model="m"))
    first, second = (message["metadata"]["token_usage"] for message in values(path))
    assert first == {"input_tokens": 138, "output_tokens": 10, "cache_read_tokens": 40, "reasoning_tokens": 3}
    assert first["input_tokens"] + first["output_tokens"] + first["cache_read_tokens"] == counted["total"]
    assert second == {"input_tokens": 4}
    proved(path)


def test_the_header_of_a_session(tmp_path: Path) -> None:
    scratchpad = {
        "version": 1,
        "workflowSummary": "x",
        "toolSequence": [],
        "touchedPaths": [],
        "validationStatus": "ok",
    }
    late = {"$set": {"summary": "Bells", "memoryScratchpad": scratchpad, "lastUpdated": "2026-10-20T08:00:00.000Z"}}
    first = header(kind="main", directories=["/home/ada/src/bell"])
    path = log(
        tmp_path, first, user("a"), gemini("b", toolCalls=[call("c", timestamp="2026-10-20T10:00:00.000Z")]), late
    )
    session = opened(path).session_object
    assert session["id"] == SESSION
    assert session["title"] == "Bells"
    assert session["started_at"] == "2026-10-20T09:14:00.000Z"
    assert session["ended_at"] == "2026-10-20T10:00:00.000Z"
    assert session["workspace_encoded"] == "bell"
    assert session["source"] == {"type": "local", "host": None, "path": str(path)}
    assert (session["is_agent_session"], session["parent_session_id"], session["agent_id"]) == (False, None, None)
    assert session["extensions"]["gemini"] == {
        "project_hash": HASH,
        "directories": ["/home/ada/src/bell"],
        "summary": "Bells",
        "memory_scratchpad": scratchpad,
        "last_updated": "2026-10-20T08:00:00.000Z",
        "kind": "main",
    }


def test_the_minute_in_the_name_is_the_last_resort(tmp_path: Path) -> None:
    path = log(tmp_path, {"sessionId": SESSION, "projectHash": HASH})
    assert opened(path).session_object["started_at"] == "2026-10-20T09:14:00Z"


def test_a_torn_document_gives_all_whole_messages(tmp_path: Path) -> None:
    path = document(tmp_path, user("a"), gemini("b"), user("c"))
    path.write_bytes(path.read_bytes()[:-60])
    assert [message["uuid"] for message in values(path)] == ["a", "b"]
    assert "torn-tail" in {problem.code for problem in opened(path).problems()}
    proved(path)


def test_documents_keep_messages_without_ids(tmp_path: Path) -> None:
    path = document(tmp_path, {"type": "user", "content": "Hi"}, gemini("b"), kind="main")
    first, second = values(path)
    assert second["parent_uuid"] == first["uuid"] == values(path)[0]["uuid"]
    proved(path)


def test_unknown_records_and_types_are_kept_and_told(tmp_path: Path) -> None:
    path = log(tmp_path, header(), {**user("a"), "type": "future"}, {"type": "x", "n": 1}, user("b", tide=4))
    assert [message["role"] for message in values(path)] == ["system", "user"]
    found = {(problem.code, problem.message) for problem in opened(path).problems()}
    assert {("unknown-type", "unknown record type 'x'"), ("unknown-key", "unknown key 'user.tide'")} <= found
    proved(path)


def test_keys_are_unknown_wherever_they_stand() -> None:
    parts = [{"text": "a", "glow": 1}, {"functionCall": {"id": "c", "name": "n", "args": {}, "hue": 1}}, {"moon": 1}]
    thought = {"subject": "S", "description": "D", "timestamp": "t", "mood": 1}
    message = gemini("b", parts, thoughts=[thought], toolCalls=[call("c", displayName="x", toll=1)], tokens={"x": 1})
    found = ["gemini.tide", "part.glow", "functionCall.hue", "thought.mood", "call.toll"]
    assert list(AGENT.unknown_keys({**message, "tide": 1})) == found
    assert list(AGENT.unknown_keys({"$set": {"messages": [{**message, "tide": 1}], "wax": 1}})) == ["set.wax", *found]
    assert list(AGENT.unknown_keys(header(kind="main", wane=1))) == ["header.wane"]


@pytest.mark.parametrize(
    ("name", "head", "claim"),
    [
        ("a.json", b'{\n  "sessionId": "s",\n  "projectHash": "h",\n  "messages": [', Claim.YES),
        ("a.jsonl", b'{"sessionId":"s","projectHash":"h","startTime":"x"}\n', Claim.YES),
        ("a.jsonl", b'{"$set":{"lastUpdated":"x"}}\n', Claim.YES),
        ("logs.json", b'[\n {"sessionId": "s", "messageId": 0, "type": "user"', Claim.YES),
        ("checkpoint-x.json", b'{"history":[{"role":"user","parts":[]}]}', Claim.YES),
        ("share.json", b'[{"role":"model","parts":[]}]', Claim.MAYBE),
        ("a.jsonl", b'{"parentUuid":null,"sessionId":"s","type":"user"}\n', Claim.NO),
        ("a.json", b'{"schema_version":"1.1","agent":"gemini","session":{"sessionId":"x"}}', Claim.NO),
        ("a.jsonl.unreadable-1", b'{"sessionId":"s","projectHash":"h"}\n', Claim.NO),
        ("settings.json", b'{"security":{"auth":{}}}', Claim.NO),
        ("oauth_creds.json", b'{"access_token":"x"}', Claim.NO),
    ],
)
def test_claims(name: str, head: bytes, claim: Claim) -> None:
    assert Gemini().claims(Path(name), head) == claim


@pytest.mark.slow
@given(st.lists(st.tuples(records(KEYS, WORDS), st.integers(0, 15)), max_size=5))
def test_any_json_comes_back(tmp_path_factory: pytest.TempPathFactory, lines: list[Line]) -> None:
    path = tmp_path_factory.mktemp("any") / "session.jsonl"
    path.write_bytes(b"".join(spell(record, dialect) for record, dialect in lines))
    proof = verify(AGENT, AGENT.locate(path))
    assert proof.different == []
    list(opened(path).problems())


@pytest.mark.slow
@given(st.lists(records(KEYS, WORDS), max_size=4), st.sampled_from([None, 2, 4]))
def test_any_document_comes_back(
    tmp_path_factory: pytest.TempPathFactory, messages: list[Record], indent: int | None
) -> None:
    import json

    path = tmp_path_factory.mktemp("any") / "session.json"
    path.write_text(json.dumps({**header(), "messages": messages}, indent=indent), encoding="utf-8")
    proof = verify(AGENT, AGENT.locate(path))
    assert proof.different == []
    # The document without its messages is one record; each message is another, however many lines it has.
    assert proof.records <= 1 + len(messages)
