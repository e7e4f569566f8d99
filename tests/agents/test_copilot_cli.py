"""GitHub Copilot CLI: what its events become."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, ClassVar

import pytest

from clew import Host
from clew.agents import registry
from clew.agents.base import Agent, Claim, Header, Unit
from clew.agents.copilot_cli import CopilotCli
from clew.agents.file_evidence import FileChange, WriterFinished, WriterStarted
from clew.analysis.todos import progression
from clew.analysis.usage import Usage
from clew.convert.prepare import prepare
from clew.file_history.history import FileHistory
from clew.model.json import JSON
from clew.testing import AgentConformance, round_trip, units

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


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("'a' # c", "a"),
        ("'it''s a bell' ", "it's a bell"),
        ('"a \\"bell\\"" # c', 'a "bell"'),
        ("a bell # c", "a bell"),
        ("issue#7", "issue#7"),
        ("null", "hello"),
        ("~", "hello"),
        ("|", "hello"),
    ],
)
def test_the_title_is_the_name_of_the_workspace(tmp_path: Path, name: str, title: str) -> None:
    path = write(tmp_path, ("user.message", {"content": "hello"}))
    (path.parent / "workspace.yaml").write_text(f"id: made\nname: {name}\ncwd: /home/ada\n")
    assert session(path)["title"] == title


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


@pytest.mark.parametrize(
    ("data", "output"),
    [
        ({"result": {"content": ""}}, ""),
        ({"result": {"content": ""}, "error": {"message": "No such host."}}, "No such host."),
        ({"error": "No such host."}, "No such host."),
        ({}, None),
    ],
)
def test_an_empty_output_is_not_an_unknown_one(tmp_path: Path, data: dict[str, JSON], output: str | None) -> None:
    path = write(tmp_path, ("tool.execution_complete", {"toolCallId": "a", "success": True, **data}))
    assert block(path, "a", "tool_result").get("output") == output


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
        "CREATE TEMP TABLE big (a); INSERT INTO todos (id, title) VALUES ('a', 'b')",
        "CREATE TEMP VIEW some AS SELECT 1; INSERT INTO todos (id, title) VALUES ('a', 'b')",
        "CREATE TEMP TRIGGER t AFTER INSERT ON todos BEGIN SELECT 1; END; INSERT INTO todos (id, title) VALUES (1, 2)",
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
    assert (used.calls, used.input_tokens, used.cache_read_tokens, used.output_tokens) == (3, 1500, 2500, 25)


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


# Files


def test_files_are_known_from_calls_and_from_the_copies_for_a_rewind(tmp_path: Path) -> None:
    folder = tmp_path / ID
    shutil.copytree(SESSION.parent, folder)
    snapshots = folder / "rewind-file-snapshots"
    (snapshots / "backups").mkdir(parents=True)
    (snapshots / "backups" / "copy").write_bytes(b"HIGH = '06:12'\r\n")
    before = {"kind": "content", "backupFile": "copy"}
    files = {
        "a": {"path": "/home/ada/tide/tide.py", "preimage": before, "postimage": {"kind": "absent"}},
        "b": {"path": "/home/ada/tide/lost.py", "preimage": {"kind": "content", "backupFile": "../../events.jsonl"}},
    }
    prompt = messages(SESSION)[0]["uuid"]
    index = {"schema": 1, "snapshots": [{"eventId": prompt, "files": files}]}
    (snapshots / "index.json").write_text(json.dumps(index))
    history = FileHistory(AGENT, AGENT.locate(folder / "events.jsonl"))

    def content(path: str, message: int) -> tuple[str, JSON]:
        answer = history.timelines[f"/home/ada/tide/{path}"].at(message)
        (state,) = history.contents([answer])
        return answer.certainty, getattr(state, "body", None)

    assert content("tide.py", 1) == ("exact", b"HIGH = '06:12'\r\n")
    assert content("bell.py", 5) == ("exact", b"import tide\n\nprint('ding', tide.HIGH)\n")
    assert content("bell.py", 8) == ("exact", b"import tide\n\nprint('dong', tide.HIGH)\n")
    assert content("lost.py", 1)[1] is None


def test_a_shell_that_goes_on_can_change_files_until_a_result_says_that_it_ended(tmp_path: Path) -> None:
    def call(key: str, name: str, **arguments: JSON) -> tuple[str, dict[str, JSON]]:
        return "assistant.message", {"toolRequests": [{"toolCallId": key, "name": name, "arguments": arguments}]}

    def result(key: str, text: str) -> tuple[str, dict[str, JSON]]:
        return "tool.execution_complete", {"toolCallId": key, "success": True, "result": {"content": text}}

    path = write(
        tmp_path,
        call("a", "bash", command="make watch", mode="async"),
        result("a", "<command started in background with shellId: w1>"),
        call("b", "read_bash", shellId="w1"),
        result("b", "done\n<shellId: w1 completed with exit code 0>"),
    )
    source = AGENT.locate(path)
    events = list(AGENT.file_changes(source, AGENT.units(source)))
    started, finished = events
    assert isinstance(started, WriterStarted) and started.call == 1
    assert finished == WriterFinished("a", 4)


def test_an_edit_without_a_result_is_a_change_of_unknown_content(tmp_path: Path) -> None:
    call = {"toolCallId": "a", "name": "edit", "arguments": {"path": "/home/ada/bell.py", "old_str": "a"}}
    source = AGENT.locate(write(tmp_path, ("assistant.message", {"toolRequests": [call]})))
    (change,) = AGENT.file_changes(source, AGENT.units(source))
    assert isinstance(change, FileChange)
    assert (change.path, change.action, change.after) == ("/home/ada/bell.py", "change", None)


def test_a_patch_is_read_from_its_text(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: bell.py\n+print('ding')\n*** End Patch\n"
    call = {"toolCallId": "a", "name": "apply_patch", "arguments": patch, "type": "custom"}
    path = write(
        tmp_path,
        ("session.start", {"sessionId": "made", "context": {"cwd": "/home/ada/tide"}}),
        ("assistant.message", {"toolRequests": [call]}),
        ("tool.execution_complete", {"toolCallId": "a", "success": True, "result": {"content": "Added 1 file(s)"}}),
    )
    assert block(path, "a", "tool_use")["input"] == {"input": patch}
    answer = FileHistory(AGENT, AGENT.locate(path)).timelines["/home/ada/tide/bell.py"].at(2)
    assert answer.certainty == "exact"


# Writing


def converted(tmp_path: Path, source: Path, target: str) -> tuple[Agent, Path, list[str]]:
    written = prepare(AGENT, AGENT.locate(source), target).write(tmp_path / target, allow_loss=True)
    return registry.get(target), Path(written.files[0]), written.resume


def test_a_session_under_a_new_id_keeps_its_records(tmp_path: Path) -> None:
    _, path, resume = converted(tmp_path, SESSION, "copilot-cli")
    new_id = path.parent.name
    assert resume == ["copilot", f"--resume={new_id}"]
    old = [json.loads(line) for line in SESSION.read_text().splitlines()]
    new = [json.loads(line) for line in path.read_text().splitlines()]
    assert new[0]["data"]["sessionId"] == new_id
    assert [event["data"] for event in new[1:]] == [event["data"] for event in old[1:]]
    assert session(path)["title"] == "Bell: ring at high water"


def test_events_that_are_written_name_the_event_before(tmp_path: Path) -> None:
    _, claude, _ = converted(tmp_path, SESSION, "claude-code")
    agent = registry.get("claude-code")
    prepared = prepare(agent, agent.locate(claude), "copilot-cli", with_original=False)
    written = prepared.write(tmp_path / "back", allow_loss=True)
    events = [json.loads(line) for line in Path(written.files[0]).read_text().splitlines()]
    assert [event["parentId"] for event in events] == [None, *(event["id"] for event in events[:-1])]
    assert len({event["id"] for event in events}) == len(events)
    back = messages(Path(written.files[0]))
    assert [block["text"] for block in back[0]["content"]] == ["Ring the bell at high water."]
    assert block(Path(written.files[0]), "call-5", "tool_result")["is_error"] is True


def encoded(*contents: tuple[str, list[dict[str, JSON]], dict[str, JSON]]) -> tuple[list[dict[str, Any]], bytes]:
    """The events and the workspace file that are composed for messages of another agent."""
    units = [
        Unit(True, {"index": n, "uuid": f"u{n}", "role": role, "content": blocks, "metadata": metadata}, 0, 0, 0, ())
        for n, (role, blocks, metadata) in enumerate(contents, 1)
    ]
    made = {"id": "made", "workspace": "/home/ada/tide", "title": 'A "bell"'}
    files: dict[str, bytes] = {}
    for name, piece in AGENT.encode(Header("1.2", "", AGENT.id, made, {}), units):
        files[name] = files.get(name, b"") + piece
    return [json.loads(line) for line in files[""].splitlines()], files["workspace.yaml"]


def text_block(text: str) -> list[dict[str, JSON]]:
    return [{"type": "text", "text": text}]


def test_parallel_calls_of_several_replies_are_one_reply() -> None:
    calls = [{"type": "tool_use", "tool_id": name, "tool_name": "bash", "input": {"command": name}} for name in "ab"]
    events, workspace = encoded(
        ("user", text_block("Go"), {}),
        ("assistant", text_block("Two things."), {}),
        ("assistant", [calls[0]], {}),
        ("assistant", [calls[1]], {}),
    )
    (reply,) = [event["data"] for event in events if event["type"] == "assistant.message"]
    assert (reply["content"], [call["toolCallId"] for call in reply["toolRequests"]]) == ("Two things.", ["a", "b"])
    results = [event["data"] for event in events if event["type"] == "tool.execution_complete"]
    assert [(result["toolCallId"], result["success"]) for result in results] == [("a", False), ("b", False)]
    assert b'name: "A \\"bell\\""\n' in workspace


def test_an_image_by_address_is_written_as_its_address() -> None:
    image: dict[str, JSON] = {"type": "image", "encoding": "url", "image": "https://example.org/bell.png"}
    events, _ = encoded(
        ("user", [*text_block("Look"), image], {}),
        ("assistant", [{"type": "tool_use", "tool_id": "a", "tool_name": "view", "input": {}}], {}),
        ("user", [{"type": "tool_result", "tool_id": "a", "output": [image]}], {}),
    )
    data = {event["type"]: event["data"] for event in events}
    assert "session.binary_asset" not in data
    assert data["user.message"] == {"content": "Look\n\nhttps://example.org/bell.png"}
    assert data["tool.execution_complete"]["result"] == {"content": "https://example.org/bell.png"}


def test_copied_and_composed_events_keep_their_order() -> None:
    def composed(index: int, role: str, text: str) -> Unit:
        return Unit(True, {"index": index, "uuid": text, "role": role, "content": text_block(text)}, 0, 0, 0, ())

    def copied(kind: str, name: str) -> Unit:
        native: dict[str, JSON] = {
            "type": kind,
            "data": {},
            "id": name,
            "timestamp": "2026-11-10T09:00:00.000Z",
            "parentId": None,
        }
        return Unit(False, {"kind": "state"}, 1, 0, 1, (), native=native)

    units = [
        copied("session.start", "e1"),
        composed(1, "assistant", "Held"),
        copied("session.info", "e2"),
        composed(2, "assistant", "Also held"),
    ]
    made = {"id": "made", "workspace": "/home/ada/tide"}
    pieces = list(AGENT.encode(Header("1.2", "", AGENT.id, made, {}), units))
    events = [json.loads(piece) for name, piece in pieces if not name]
    assert [event["type"].partition(".")[2] for event in events] == (
        "start turn_start message turn_end info turn_start message turn_end".split()
    )
    assert [event["parentId"] for event in events] == [None, *(event["id"] for event in events[:-1])]


def test_a_summary_is_a_compaction_between_turns() -> None:
    summary = {"is_compact_summary": True}
    events, _ = encoded(
        ("user", text_block("Go"), {}),
        ("assistant", text_block("Gone."), {}),
        ("user", text_block("You were asked"), summary),
        ("user", text_block("to go."), summary),
        ("user", text_block("Come back"), {}),
        ("assistant", text_block("Back."), {}),
    )
    assert [event["type"].partition(".")[2] for event in events] == (
        "start message turn_start message turn_end compaction_complete message turn_start message turn_end".split()
    )
    assert events[5]["data"]["summaryContent"] == "You were asked\n\nto go."


@pytest.mark.slow
def test_a_real_session_is_counted_as_another_reader_counts_it(shared: Path) -> None:
    folder = shared / "corpus" / "copilot" / "Mai0313__VibeCodingTracker"
    expected = json.loads((folder / "copilot.expected.json").read_text())["records"][0]["conversationUsage"]
    (truth,) = expected.values()
    source = AGENT.locate(folder / "copilot.jsonl")
    assert round_trip(AGENT, source).different == []
    used = AGENT.facts(source).ledger.total()
    assert (used.input_tokens or 0) + (used.cache_read_tokens or 0) == truth["input_tokens"]
    assert used.cache_read_tokens == truth["cache_read_input_tokens"]
    assert used.reasoning_tokens == truth["reasoning_output_tokens"]
    assert used.output_tokens == truth["output_tokens"] + truth["reasoning_output_tokens"]
    assert used.calls == 6
