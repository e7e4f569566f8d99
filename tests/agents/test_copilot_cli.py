"""GitHub Copilot CLI: what its events become."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from clew import Host
from clew.agents.base import Agent, Claim
from clew.agents.copilot_cli import CopilotCli
from clew.analysis.todos import progression
from clew.analysis.usage import Usage
from clew.model.json import JSON
from clew.testing import AgentConformance, units

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "copilot-cli"
ID = "3f1c9a52-7d04-4c1e-9a57-5f0d5c2b8e10"
SESSION = FIXTURES / ID / "events.jsonl"
FLAT = FIXTURES / "flat" / "old-8e2b.jsonl"
AGENT = CopilotCli()


class TestCopilotCli(AgentConformance):
    agent: ClassVar[Agent] = AGENT
    fixtures: ClassVar[list[Path]] = [SESSION, FLAT]


def messages(path: Path) -> list[dict[str, Any]]:
    return [unit.value for unit in units(AGENT, AGENT.locate(path)) if unit.is_message]


def session(path: Path) -> dict[str, Any]:
    source = AGENT.locate(path)
    return AGENT.session(source, AGENT.facts(source))


def block(path: Path, call: str, kind: str) -> dict[str, Any]:
    blocks = [block for message in messages(path) for block in message["content"] if block["type"] == kind]
    return next(block for block in blocks if block["tool_id"] == call)


def total(path: Path) -> Usage:
    return AGENT.facts(AGENT.locate(path)).ledger.total()


def write(folder: Path, *events: tuple[str, dict[str, JSON]], name: str = "made") -> Path:
    path = folder / "session-state" / name / "events.jsonl"
    path.parent.mkdir(parents=True)
    lines = [
        {"type": kind, "data": data, "id": f"e{number}", "timestamp": f"2026-11-10T09:00:{number:02}.000Z"}
        for number, (kind, data) in enumerate(events)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


# Finding


def test_sessions_are_folders_or_flat_files(tmp_path: Path) -> None:
    root = tmp_path / ".copilot" / "session-state"
    (root / ID / "files").mkdir(parents=True)
    (root / ID / "events.jsonl").write_bytes(SESSION.read_bytes())
    (root / ID / "files" / "events.jsonl").write_bytes(b"{}\n")
    (root / "flat.jsonl").write_bytes(FLAT.read_bytes())
    (root / ".session-operation-locks").mkdir()
    (root / ".session-operation-locks" / "events.jsonl").write_bytes(b"")
    assert list(AGENT.roots(Host.at(tmp_path))) == [root]
    assert [AGENT.session_id(source) for source in AGENT.discover(root)] == ["flat", ID]


def test_the_home_of_the_client_can_be_elsewhere(tmp_path: Path) -> None:
    host = Host(tmp_path, {"COPILOT_HOME": str(tmp_path / "there")})
    assert list(AGENT.roots(host)) == [tmp_path / "there" / "session-state"]


@pytest.mark.parametrize(
    ("head", "claim"),
    [
        (b'{"type":"session.start","data":{"sessionId":"a"},"id":"b","timestamp":"c","parentId":null}\n', Claim.YES),
        (b'{"type":"user.message","data":{"content":"cut off he', Claim.YES),
        (b'{"type":"user","message":{"content":"hello"},"uuid":"a"}\n', Claim.NO),
        (b'{"type":"session_meta","payload":{"id":"a"}}\n', Claim.NO),
    ],
)
def test_a_session_is_known_by_its_events(head: bytes, claim: Claim) -> None:
    assert AGENT.claims(Path("some.jsonl"), head) is claim


def test_id_place_times_and_title() -> None:
    found = session(SESSION)
    assert found["id"] == ID
    assert found["workspace"] == "/home/ada/tide"
    assert found["title"] == "Bell: ring at high water"
    assert found["started_at"] == "2026-11-10T09:00:02.000Z"
    assert session(FLAT)["title"] == "List the files"


# Messages


def test_prompts_replies_and_results_are_messages_in_order() -> None:
    roles = [message["role"] for message in messages(SESSION)]
    assert (
        roles
        == (
            "user assistant user assistant user user assistant user assistant user assistant "  # until the task
            "user assistant user assistant user "  # the sub-agent, and the result of the task
            "assistant user user user assistant user user user assistant"
        ).split()
    )
    assert messages(SESSION)[0]["content"] == [{"type": "text", "text": "Ring the bell at high water."}]
    assert messages(SESSION)[1]["content"][0] == {"type": "thinking", "thinking": "Where are the times?"}


def test_a_command_with_an_exit_code_has_failed() -> None:
    assert block(SESSION, "call-5", "tool_result")["is_error"] is True
    assert block(SESSION, "call-10", "tool_result")["output"] == "The host is not allowed."
    assert block(SESSION, "call-2", "tool_result")["is_error"] is False
    assert AGENT.facts(AGENT.locate(SESSION)).errors == 2


def test_a_picture_comes_from_the_asset_before_it() -> None:
    text, image = block(SESSION, "call-9", "tool_result")["output"]
    assert text["text"] == "Viewed image file successfully."
    assert (image["type"], image["media_type"], image["image"]) == ("image", "image/png", "iVBORw0KGgo=")


def test_attachments_are_pictures_or_what_the_client_calls_them() -> None:
    prompt = next(message for message in messages(SESSION) if message["content"][-1]["type"] == "image")
    assert [item["type"] for item in prompt["content"]] == ["text", "unknown", "image"]
    assert prompt["content"][1]["value"]["path"] == "/home/ada/tide/notes.md"


def test_summaries_and_notifications_are_not_prompts() -> None:
    facts = AGENT.facts(AGENT.locate(SESSION))
    assert facts.prompts == 2
    summaries = [one for one in messages(SESSION) if (one.get("metadata") or {}).get("is_compact_summary")]
    assert summaries[0]["content"][0]["text"] == "A bell was written. There are no tests."


def test_arguments_that_are_text_are_decoded() -> None:
    assert block(FLAT, "c1", "tool_use")["input"] == {"command": "ls"}


def test_a_call_of_the_person_is_shown_with_its_result() -> None:
    assert block(FLAT, "c2", "tool_use")["input"] == {"command": "git status"}
    assert block(FLAT, "c2", "tool_result")["output"] == "clean\n"
    assert AGENT.facts(AGENT.locate(FLAT)).tool_calls == 2


def test_unknown_events_and_keys_are_kept_and_named() -> None:
    records = [unit.value for unit in units(AGENT, AGENT.locate(SESSION)) if not unit.is_message]
    assert [record["type"] for record in records if record["kind"] == "other"] == ["session.mood"]
    native = {"type": "user.message", "data": {"content": "a", "weather": "fine"}, "colour": 1}
    assert list(AGENT.unknown_keys(native)) == ["event.colour", "user.message.weather"]


# Structure


def test_a_sub_agent_is_a_chain_of_its_own_linked_to_its_call() -> None:
    link = session(SESSION)["subagents"][0]
    own = [message for message in messages(SESSION) if (message.get("metadata") or {}).get("is_sidechain")]
    assert link["tool_id"] == "call-6"
    assert link["root_uuid"] == own[0]["uuid"]
    assert own[0].get("parent_uuid") is None
    assert [message["parent_uuid"] for message in own[1:]] == [message["uuid"] for message in own[:-1]]
    facts = AGENT.facts(AGENT.locate(SESSION))
    assert len(facts.tree.path) == len(messages(SESSION)) - len(own)
    assert facts.tree.is_linear


def test_the_todo_list_follows_the_statements_of_the_model() -> None:
    states = progression(messages(SESSION))
    assert [[(todo.content, todo.status) for todo in state.todos] for state in states] == [
        [("Ring the bell", "in_progress"), ("Test it", "pending")],
        [("Ring the bell", "completed"), ("Test it", "pending")],
    ]


@pytest.mark.parametrize(
    "query",
    [
        "ATTACH DATABASE 'clew-attached' AS todos",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) INSERT INTO todos SELECT i, i FROM n",
        "SELECT randomblob(1000000000) FROM todos, sqlite_master",
        "no SQL about todos",
    ],
)
def test_a_statement_can_neither_leave_the_database_nor_fill_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(
        tmp_path,
        ("user.message", {"content": "hello"}),
        ("assistant.message", {"toolRequests": [{"toolCallId": "a", "name": "sql", "arguments": {"query": query}}]}),
        ("tool.execution_complete", {"toolCallId": "a", "success": True, "result": {"content": "done"}}),
    )
    assert progression(messages(path)) == []
    assert not Path("clew-attached").exists()


# Tokens


def test_each_request_counts_once_over_resumes_and_sub_agents() -> None:
    used = total(SESSION)
    # Ten requests with a record, and the one that made the summary.
    assert used.calls == 11
    assert (used.input_tokens, used.cache_read_tokens, used.cache_creation_tokens) == (3300, 6600, 1100)
    assert (used.output_tokens, used.reasoning_tokens) == (440, 100)


def test_before_there_were_records_the_ends_of_runs_are_added() -> None:
    used = total(FLAT)
    assert (used.input_tokens, used.cache_read_tokens, used.output_tokens) == (1500, 2500, 25)


def test_a_request_without_a_reply_counts(tmp_path: Path) -> None:
    usage = {"model": "m", "apiCallId": "x", "inputTokens": 5, "outputTokens": 2, "cacheReadTokens": 0}
    path = write(tmp_path, ("user.message", {"content": "hello"}), ("session.usage_record", {"usage": usage}))
    assert total(path).input_tokens == 5


def test_usage_behind_its_reply_counts_once(tmp_path: Path) -> None:
    usage = {"model": "m", "apiCallId": "x", "inputTokens": 5, "outputTokens": 2}
    reply = {"content": "hello", "apiCallId": "x", "model": "m", "messageId": "y"}
    path = write(tmp_path, ("assistant.message", reply), ("session.usage_record", {"usage": usage}))
    used = total(path)
    assert (used.calls, used.input_tokens, used.output_tokens) == (1, 5, 2)
