"""The session of any agent as records of the two Sage programs: valid, linked, and with every key they demand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clew.agents.base import Agent
from clew.agents.sage_agent import SageAgent
from clew.agents.sage_emacs import SageEmacs
from clew.model.json import JSON
from tests.json_values import spell
from tests.roundtrip import composed_files, document_of, header_of

DEMO = Path(__file__).resolve().parents[2] / "src" / "clew" / "demo" / "home"
TABLES = DEMO / "emacs.d" / "sage" / "projects" / "-home-ada-src-tide-tables" / "conversation.jsonl"
BELL = DEMO / "sage" / "sessions" / "65e3e58a-4436-41d2-b07c-28cc2b6f97b8" / "messages.jsonl"
EMACS, AGENT = SageEmacs(), SageAgent()


def problems(agent: Agent, path: Path) -> list[str]:
    source = agent.locate(path)
    return [problem.code for problem in agent.check(source, agent.facts(source))]


def store(agent: Agent, document: dict[str, JSON], home: Path) -> Path:
    path = home / agent.target(header_of(document))
    path.parent.mkdir(parents=True)
    for name, content in composed_files(agent, document).items():
        (path.parent / (name or path.name)).write_bytes(content)
    return path


@pytest.mark.seed("S0-46", "S0-16")
def test_a_session_of_sage_agent_in_sage_emacs(tmp_path: Path) -> None:
    document = document_of(AGENT, BELL)
    files = composed_files(EMACS, document)
    lines = [json.loads(line) for line in files[""].splitlines()]
    assert files[""] == b"".join(spell(line, 0) for line in lines)
    assert all(line["role"] in ("user", "assistant", "system") and line["content"] for line in lines)
    assert {line["session_id"] for line in lines} == {"65e3e58a-4436-41d2-b07c-28cc2b6f97b8"}
    assert [call["name"] for line in lines for call in line.get("tool_calls", ())] == ["read_file", "write_file"]
    assert all(call["success"] for line in lines for call in line.get("tool_calls", ()))
    parents = {line["uuid"] for line in lines} | {None}
    assert all(line["parentUuid"] in parents for line in lines)
    path = store(EMACS, document, tmp_path)
    assert problems(EMACS, path) == []
    again = document_of(EMACS, path)
    assert again["session"]["id"] == document["session"]["id"]
    assert again["session"]["workspace"] == "/home/ada/src/harbour-bell"


def foreign(*messages: dict[str, JSON]) -> dict[str, JSON]:
    session = {"id": "s", "workspace": "/home/ada/x", "started_at": None, "ended_at": None, "is_agent_session": False}
    numbered = [{"index": index, **item} for index, item in enumerate(messages, 1)]
    usual = {"schema_version": "1.1", "export_timestamp": "", "agent": "other", "extensions": {}, "records": []}
    return {**usual, "session": session, "messages": numbered}


def use(tool_id: str) -> dict[str, JSON]:
    return {"type": "tool_use", "tool_id": tool_id, "tool_name": "bash", "input": {}}


def result(tool_id: str, output: JSON = "ok", **more: JSON) -> dict[str, JSON]:
    return {"type": "tool_result", "tool_id": tool_id, "output": output, **more}


def native(*messages: dict[str, JSON]) -> list[dict[str, JSON]]:
    return [json.loads(line) for line in composed_files(EMACS, foreign(*messages))[""].splitlines()]


def test_parallel_results_go_to_their_calls() -> None:
    first = {"role": "assistant", "uuid": "1", "content": [{"type": "text", "text": "Both."}, use("a")]}
    second = {"role": "assistant", "uuid": "2", "parent_uuid": "1", "content": [use("b")]}
    answers = [
        {"role": "user", "uuid": "3", "parent_uuid": "1", "content": [result("a", [{"type": "text", "text": "A"}])]},
        {"role": "user", "uuid": "4", "parent_uuid": "3", "content": [result("b", {"n": 1}, is_error=True)]},
    ]
    last = {"role": "assistant", "uuid": "5", "parent_uuid": "4", "content": [{"type": "text", "text": "Done."}]}
    lines = native(first, second, *answers, last)
    assert [line["uuid"] for line in lines] == ["1", "2", "5"]
    assert lines[0]["tool_calls"] == [{"id": "a", "name": "bash", "args": {}, "result": "A", "success": True}]
    assert lines[1]["tool_calls"] == [{"id": "b", "name": "bash", "args": {}, "result": '{"n":1}', "success": False}]
    assert lines[2]["parentUuid"] == "2"


def test_a_result_without_its_call_is_a_record_of_its_own() -> None:
    thought = {"role": "assistant", "uuid": "1", "content": [{"type": "thinking", "thinking": "Hm."}]}
    stray = {"role": "user", "uuid": "2", "parent_uuid": "1", "content": [result("z", tool_name="bash")]}
    (line,) = native(thought, stray)
    assert line == {
        "role": "tool",
        "tool_call_id": "z",
        "name": "bash",
        "content": "ok",
        "success": True,
        "uuid": "2:r0",
        "parentUuid": None,
        "session_id": "s",
    }


def test_many_open_calls_do_not_pile_up() -> None:
    lines = native(*({"role": "assistant", "uuid": str(n), "content": [use(str(n))]} for n in range(100)))
    assert [line["uuid"] for line in lines] == [str(n) for n in range(100)]


KEYS = ["type", "uuid", "parentUuid", "timestamp", "sessionId", "version", "context", "message", "todos", "isSidechain"]


@pytest.mark.seed("SX-2", "SX-13", "S0-46")
def test_a_session_of_sage_emacs_in_sage_agent(tmp_path: Path) -> None:
    document = document_of(EMACS, TABLES)
    files = composed_files(AGENT, document)
    lines = [json.loads(line) for line in files[""].splitlines()]
    assert all(line.keys() >= set(KEYS) for line in lines)
    assert list(lines[0]) == KEYS
    assert [line["type"] for line in lines] == ["user", "assistant", "tool_result", "assistant", "user", "assistant"]
    assert lines[2]["message"]["role"] == "tool"
    assert [item["success"] for item in lines[2]["message"]["toolResults"]] == [True, False, False]
    assert lines[0]["context"] == {"cwd": "/home/ada/src/tide.tables", "platform": "linux"}
    path = store(AGENT, document, tmp_path)
    assert problems(AGENT, path) == []
    again = document_of(AGENT, path)
    assert [item["content"] for item in again["messages"]] == [item["content"] for item in document["messages"]]


def test_words_beside_results_become_two_records() -> None:
    times = {"started_at": "2026-01-01T00:00:00Z", "ended_at": None}
    session = {"id": "s", "workspace": "C:\\x", "is_agent_session": False, **times}
    output = [{"type": "text", "text": "A"}]
    content = [{"type": "tool_result", "tool_id": "a", "output": output}, {"type": "text", "text": "Go."}]
    snapshot = {"files": {"a.py": {"state": "created", "size": 3}}, "message_uuid": "1"}
    document = {
        "schema_version": "1.1",
        "export_timestamp": "",
        "agent": "other",
        "extensions": {},
        "session": session,
        "messages": [{"index": 1, "role": "user", "uuid": "1", "parent_uuid": "0", "content": content}],
        "records": [{"after": 1, "kind": "state"}, {"after": 1, "kind": "snapshot", "snapshot": snapshot}],
    }
    files = composed_files(AGENT, document)
    result, words = (json.loads(line) for line in files[""].splitlines())
    assert (result["uuid"], result["parentUuid"]) == ("1:r", "0")
    assert (words["uuid"], words["parentUuid"], words["message"]["content"]) == ("1", "1:r", "Go.")
    (answer,) = result["message"]["toolResults"]
    assert answer == {"toolCallId": "a", "toolName": "unknown", "content": "A", "success": True}
    assert words["context"]["platform"] == "windows"
    written = json.loads(files["snapshots.jsonl"])
    assert written["snapshot"]["trackedFiles"] == {"a.py": {"size": 3, "state": "created"}}
    assert json.loads(files["metadata.json"])["messageCount"] == 2
