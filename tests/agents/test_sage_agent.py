"""Sage Agent: both forms of every record, and the older one, are read, checked, and come back byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import clew.model
from clew.agents.base import Agent, Claim
from clew.agents.sage_agent import SageAgent
from clew.agents.sage_agent.locate import find_backup
from clew.host import Host
from clew.model import Document, Problem, Todo
from clew.model.json import JSON
from clew.testing import AgentConformance
from tests.json_values import Line, records, spell, words
from tests.roundtrip import document_of, original, round_trip

ROOT = Path(__file__).resolve().parents[2]
SEED = ROOT / "tests" / "fixtures" / "seeds" / "seed-001"
DEMO = ROOT / "src" / "clew" / "demo" / "home" / "sage" / "sessions"
BELL = DEMO / "65e3e58a-4436-41d2-b07c-28cc2b6f97b8" / "messages.jsonl"
FOG = DEMO / "bea30fe7-a132-46e3-962b-6a4b6a002129" / "messages.jsonl"
AGENT = SageAgent()
BACKUP = {"backupPath": "x"}
EXAMPLES = ("user", "assistant", "tool_result", "file_history_snapshot")

KEYS = words("""
    type uuid parentUuid timestamp sessionId version context cwd platform message role content toolCalls toolResults
    toolCallId toolName success error id name arguments usage inputTokens thinkingMetadata level todos status
    isSidechain metadata messageId isSnapshotUpdate snapshot trackedFiles fileBackups originalContent size state
    backupPath originalHash tool_calls tool_results tool_call_id seq payload recordType text
""")
WORDS = words("""
    user assistant system tool tool_result error summary custom_title file_history_snapshot file-history-snapshot
    message text created
""")


def example(name: str) -> dict[str, JSON]:
    loaded: dict[str, JSON] = json.loads((SEED / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def log(tmp_path: Path, *lines: JSON, session: str = "session-123") -> Path:
    path = tmp_path / ".sage" / "sessions" / session / "messages.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(spell(line, 0) for line in lines))
    return path


def problems(path: Path) -> list[Problem]:
    source = AGENT.locate(path)
    return list(AGENT.check(source, AGENT.facts(source)))


def codes(found: Iterable[Problem]) -> list[str]:
    return [problem.code for problem in found if not problem.code.startswith("metadata")]


def old(role: str, content: str, **more: JSON) -> dict[str, JSON]:
    return {"role": role, "content": content, "timestamp": "2025-12-20T01:30:00Z", **more}


def sessions(root: Path) -> list[Path]:
    return [source.path for source in AGENT.discover(root)]


# Places


@pytest.mark.seed("S1-24", "S1-29")
def test_all_sessions_are_found_side_by_side(home: Path) -> None:
    for name in ("session-123", "session-456", "any name"):
        log(home, example("user"), session=name)
    (home / ".sage" / "sessions" / "empty").mkdir()
    (root,) = AGENT.roots(Host.at(home))
    found = list(AGENT.discover(root))
    assert [AGENT.session_id(source) for source in found] == ["any name", "session-123", "session-456"]
    assert all(source.mtime > 0 and source.size > 0 for source in found)


@pytest.mark.seed("S1-25", "S1-26")
def test_neighbours_belong_to_the_session(tmp_path: Path) -> None:
    path = log(tmp_path, example("assistant"))
    assert AGENT.locate(path).parts == AGENT.locate(path).sides == ()
    (path.parent / "snapshots.jsonl").write_bytes(spell(example("file_history_snapshot"), 0))
    (path.parent / "metadata.json").write_text("{}")
    source = AGENT.locate(path.parent / "snapshots.jsonl")
    assert (source.path, source.parts, source.sides) == (path, ("snapshots.jsonl",), ("metadata.json",))
    assert round_trip(AGENT, path) == original(AGENT, path)


@pytest.mark.parametrize(
    ("name", "head", "claim"),
    [
        ("s/messages.jsonl", b'{"type":"user","context": {"cwd":"/"}}', Claim.YES),
        ("s/messages.jsonl", b'{"role":"user","content":"x"}', Claim.YES),
        ("s/messages.jsonl", b"", Claim.MAYBE),
        ("s/messages.jsonl", b'{"id":1}', Claim.NO),
        (".sage/sessions/s/messages.jsonl", b'{"id":1}', Claim.MAYBE),
        ("s/snapshots.jsonl", b'{"type":"file_history_snapshot"}', Claim.YES),
        ("s/other.jsonl", b'{"type":"user"}', Claim.NO),
    ],
)
def test_claims(name: str, head: bytes, claim: Claim) -> None:
    assert AGENT.claims(Path(name), head) is claim


@pytest.mark.seed("S1-27")
def test_every_form_of_a_backup_path_is_found(tmp_path: Path) -> None:
    session, cwd = tmp_path / "session", tmp_path / "work"
    places = [tmp_path / "away" / "a.backup", cwd / ".sage" / "backups" / "b.backup", session / "backups" / "c.backup"]
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("before")
    assert find_backup(session, str(places[0]), None) == places[0]
    assert find_backup(session, ".sage/backups/b.backup", str(cwd)) == places[1]
    assert find_backup(session, "backups/c.backup", str(cwd)) == places[2]
    assert find_backup(session, "/gone/c.backup", None) == places[2]
    assert find_backup(session, "D:\\gone\\c.backup", None) == places[2]
    assert find_backup(session, "d.backup", str(cwd)) is None
    assert find_backup(session, "", str(cwd)) is None


# The design's own examples


@pytest.mark.seed("S1-30", "S1-6", "S1-7", "S1-11", "S1-13")
@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_comes_back(tmp_path: Path, name: str) -> None:
    path = log(tmp_path, example(name))
    (line,) = round_trip(AGENT, path)[""].splitlines()
    assert json.dumps(json.loads(line), sort_keys=True) == json.dumps(example(name), sort_keys=True)
    assert line + b"\n" == path.read_bytes()


@pytest.mark.seed("S1-1", "S1-30", "S1-32", "S1-55")
def test_the_examples_are_one_conversation(tmp_path: Path) -> None:
    path = log(tmp_path, *map(example, EXAMPLES))
    document = document_of(AGENT, path)
    typed = msgspec.convert(document, Document)
    assert [message.role for message in typed.messages] == ["user", "assistant", "user"]
    graph = AGENT.facts(AGENT.locate(path)).tree.graph()
    assert graph.active_path == [message.uuid for message in typed.messages]
    assert round_trip(AGENT, path)[""] == path.read_bytes()
    assert problems(path)[0].code == "metadata-missing"


@pytest.mark.seed("S1-2", "S1-6", "S1-5", "S1-18", "S1-37")
def test_the_user_example(tmp_path: Path) -> None:
    document = document_of(AGENT, log(tmp_path, example("user")))
    (only,) = document["messages"]
    assert (only["uuid"], only["parent_uuid"]) == ("550e8400-e29b-41d4-a716-446655440000", None)
    assert only["timestamp"] == "2025-12-21T01:30:00.000Z"
    assert only["content"] == [{"type": "text", "text": "Create a weather website"}]
    assert only["metadata"] == {
        "agent_version": "0.1.0",
        "cwd": "/Users/lifcc/Desktop/code/AI/agent/sage",
        "git_branch": "main",
        "platform": "macos",
        "user_type": "external",
        "thinking": {"level": "high", "disabled": False, "triggers": []},
        "todos": [],
        "is_branch": False,
    }
    assert document["session"]["id"] == "session-123"
    assert document["session"]["workspace"] == "/Users/lifcc/Desktop/code/AI/agent/sage"


@pytest.mark.seed("S1-7", "S1-8", "S1-9", "S1-10", "S1-4", "SX-6", "SX-7", "SX-8")
def test_the_assistant_example(tmp_path: Path) -> None:
    (only,) = document_of(AGENT, log(tmp_path, example("assistant")))["messages"]
    arguments = {"command": "mkdir -p weather_app"}
    call = {"type": "tool_use", "tool_id": "call_001", "tool_name": "bash", "input": arguments}
    assert only["content"] == [{"type": "text", "text": "I'll create a weather website for you."}, call]
    assert only["metadata"]["token_usage"] == {
        "input_tokens": 1500,
        "output_tokens": 200,
        "cache_read_tokens": 500,
        "cache_creation_tokens": 0,
    }
    assert "user_type" not in only["metadata"]
    todos = msgspec.convert(only["metadata"]["todos"], list[Todo])
    assert [(todo.status, todo.active_form) for todo in todos] == [
        ("completed", "Creating weather app directory"),
        ("in_progress", "Creating HTML file"),
    ]


@pytest.mark.seed("S1-11", "SX-13")
def test_results_at_the_top_and_inside_the_message(tmp_path: Path) -> None:
    results = example("tool_result")["toolResults"]
    inner = {"role": "tool", "content": "", "toolResults": results}
    inside = {**example("user"), "type": "tool_result", "message": inner}
    path = log(tmp_path, example("assistant"), example("tool_result"), inside)
    document = document_of(AGENT, path)
    _, outer, nested = document["messages"]
    assert outer["role"] == nested["role"] == "user"
    assert outer["content"] == nested["content"]
    (block,) = outer["content"]
    assert (block["tool_id"], block["tool_name"], block["is_error"]) == ("call_001", "bash", False)
    assert block["output"] == "Directory created successfully"
    assert "agent_version" not in outer["metadata"]
    assert round_trip(AGENT, path)[""] == path.read_bytes()


def test_a_failed_tool_shows_its_error(tmp_path: Path) -> None:
    failed = {"toolCallId": "call_001", "toolName": "bash", "content": "", "success": False, "error": "no such file"}
    path = log(tmp_path, example("assistant"), {**example("tool_result"), "toolResults": [failed]})
    document = document_of(AGENT, path)
    (block,) = document["messages"][1]["content"]
    assert (block["output"], block["is_error"]) == ("no such file", True)
    assert round_trip(AGENT, path)[""] == path.read_bytes()


@pytest.mark.seed("S1-13", "S1-14", "S1-16", "SX-1")
@pytest.mark.parametrize("spelled", ["file_history_snapshot", "file-history-snapshot"])
def test_the_snapshot_example(tmp_path: Path, spelled: str) -> None:
    path = log(tmp_path, {**example("file_history_snapshot"), "type": spelled})
    document = document_of(AGENT, path)
    (record,) = document["records"]
    assert (record["kind"], record["type"], record.get("uuid")) == ("snapshot", spelled, None)
    assert record["snapshot"] == {
        "message_uuid": "550e8400-e29b-41d4-a716-446655440001",
        "timestamp": "2025-12-21T01:30:05.500Z",
        "is_update": False,
        "files": {
            "weather_app/index.html": {
                "original_content": None,
                "content_hash": "abc123",
                "size": 0,
                "state": "created",
            },
            "weather_app/style.css": {"backup": ".sage/backups/style.css.backup", "original_hash": "def456"},
        },
    }
    assert record["message_uuid"] == "550e8400-e29b-41d4-a716-446655440001"
    assert round_trip(AGENT, path)[""] == path.read_bytes()


# Variants


@pytest.mark.seed("S1-15")
@pytest.mark.parametrize("state", ["created", "modified", "deleted", "unchanged"])
def test_states_of_files(tmp_path: Path, state: str) -> None:
    files = {"a": {"size": 1, "state": state}}
    snapshot = {**example("file_history_snapshot"), "snapshot": {"trackedFiles": files, "fileBackups": {}}}
    path = log(tmp_path, example("assistant"), snapshot)
    assert document_of(AGENT, path)["records"][0]["snapshot"]["files"]["a"]["state"] == state
    assert codes(problems(path)) == []
    assert round_trip(AGENT, path)[""] == path.read_bytes()


@pytest.mark.seed("S1-23")
@pytest.mark.parametrize(
    "maps",
    [
        {},
        {"trackedFiles": {}},
        {"fileBackups": {}},
        {"fileBackups": {}, "trackedFiles": {}},
        {"trackedFiles": {"a": {}}, "fileBackups": {"a": {}}},
        {"trackedFiles": {"a": {"size": 1}, "b": {"size": 2}}, "fileBackups": {"b": BACKUP, "a": BACKUP}},
        {"trackedFiles": {"a": {"size": "big"}}, "fileBackups": {"a": BACKUP}},
        {"trackedFiles": [], "fileBackups": None},
    ],
)
def test_both_maps_may_be_empty_missing_or_odd(tmp_path: Path, maps: dict[str, JSON]) -> None:
    path = log(tmp_path, {**example("file_history_snapshot"), "snapshot": maps})
    document = document_of(AGENT, path)
    msgspec.convert(document, Document)
    assert round_trip(AGENT, path)[""] == path.read_bytes()


@pytest.mark.seed("S1-17", "S1-21")
def test_optional_keys_stay_absent(tmp_path: Path) -> None:
    said = {"role": "user", "content": "x"}
    bare = {"type": "user", "uuid": "u", "timestamp": "2025-12-21T01:30:00Z", "message": said}
    path = log(tmp_path, bare, {**bare, "uuid": "v", "thinkingMetadata": {"level": "low", "disabled": False}})
    document = document_of(AGENT, path)
    first, second = document["messages"]
    assert "metadata" not in first
    assert second["metadata"]["thinking"] == {"level": "low", "disabled": False}
    assert round_trip(AGENT, path)[""] == path.read_bytes()


@pytest.mark.seed("S1-19", "S1-39")
def test_the_context_may_change_and_hold_anything(tmp_path: Path) -> None:
    contexts = [
        {"cwd": "/a", "platform": "linux"},
        {"cwd": "/b", "gitBranch": "fix", "platform": "plan9", "userType": "internal"},
    ]
    path = log(tmp_path, *({**example("user"), "uuid": str(n), "context": item} for n, item in enumerate(contexts)))
    document = document_of(AGENT, path)
    seen = [(item["metadata"]["cwd"], item["metadata"]["platform"]) for item in document["messages"]]
    assert seen == [("/a", "linux"), ("/b", "plan9")]
    assert document["messages"][1]["metadata"]["git_branch"] == "fix"
    assert round_trip(AGENT, path)[""] == path.read_bytes()


@pytest.mark.seed("S1-49")
def test_thinking_is_kept_per_message() -> None:
    thinking = [item["metadata"].get("thinking") for item in document_of(AGENT, FOG)["messages"] if "metadata" in item]
    assert {"level": "none", "disabled": True, "triggers": []} in thinking
    first = document_of(AGENT, BELL)["messages"][0]["metadata"]["thinking"]
    assert first == {"level": "high", "disabled": False, "triggers": ["why"]}


@pytest.mark.seed("S1-46")
def test_the_progress_of_todos_is_in_the_messages() -> None:
    states = [
        todo["status"] for item in document_of(AGENT, BELL)["messages"] for todo in item["metadata"].get("todos", ())
    ]
    assert list(dict.fromkeys(states)) == ["pending", "in_progress", "completed"]


@pytest.mark.seed("S1-50", "S1-52", "S1-51")
def test_the_older_form_is_read_beside_the_new_one(tmp_path: Path) -> None:
    call = {"id": "c", "name": "bash", "arguments": {"n": 1}, "timestamp": "2025-12-20T01:30:00Z"}
    answer = {"tool_call_id": "c", "tool_name": "bash", "content": "", "success": False, "error": "no"}
    new = {**example("user"), "fromTheFuture": {"a": 1}}
    del new["parentUuid"]
    path = log(
        tmp_path,
        old("system", "Be brief."),
        old("user", "Go.", tool_calls=None, metadata={}),
        old("assistant", "", tool_calls=[call]),
        old("tool", "", tool_results=[answer]),
        new,
    )
    document = document_of(AGENT, path)
    assert [item["role"] for item in document["messages"]] == ["system", "user", "assistant", "user", "user"]
    assert document["messages"][2]["content"][0]["tool_name"] == "bash"
    assert document["messages"][3]["content"][0]["output"] == "no"
    uuids = [item["uuid"] for item in document["messages"]]
    assert [item.get("parent_uuid") for item in document["messages"]] == [None, *uuids[:4]]
    assert uuids == [item["uuid"] for item in document_of(AGENT, path)["messages"]]
    assert round_trip(AGENT, path)[""] == path.read_bytes()


def test_wrapped_records_are_read(tmp_path: Path) -> None:
    wrapper = {"seq": 7, "timestamp": "2025-12-21T01:30:01Z", "sessionId": "session-123"}
    message = {**wrapper, "payload": {"recordType": "message", **example("assistant")}}
    patch = {**wrapper, "seq": 8, "payload": {"recordType": "metadata_patch", "messageCount": 2}}
    path = log(tmp_path, example("user"), message, patch)
    document = document_of(AGENT, path)
    assert [item["role"] for item in document["messages"]] == ["user", "assistant"]
    assert document["messages"][1]["metadata"]["token_usage"]["input_tokens"] == 1500
    assert [record["kind"] for record in document["records"]] == ["other"]
    assert round_trip(AGENT, path)[""] == path.read_bytes()


# Sessions


@pytest.mark.seed("S1-1", "S1-32", "SX-3", "SX-10")
def test_branches_and_errors() -> None:
    document = document_of(AGENT, BELL)
    graph = AGENT.facts(AGENT.locate(BELL)).tree.graph()
    assert [(point.index, [branch.index for branch in point.branches]) for point in graph.fork_points] == [(7, [8, 10])]
    error = document["messages"][5]
    assert (error["role"], error["content"][0]["text"][:9]) == ("system", "[network]")
    assert error["uuid"] not in graph.active_path
    assert graph.active_path[-1] == document["messages"][10]["uuid"]
    assert document["messages"][10]["metadata"]["is_branch"] is True
    assert document["session"]["is_agent_session"] is False


@pytest.mark.seed("SX-3")
def test_only_metadata_make_a_sub_session(tmp_path: Path) -> None:
    path = log(tmp_path, {**example("user"), "isSidechain": True})
    assert document_of(AGENT, path)["session"]["is_agent_session"] is False
    (path.parent / "metadata.json").write_text('{"isSidechain": true, "parentSessionId": "session-1"}')
    session = document_of(AGENT, path)["session"]
    assert (session["is_agent_session"], session["parent_session_id"]) == (True, "session-1")


@pytest.mark.seed("S1-26")
def test_titles_in_their_order(tmp_path: Path) -> None:
    said = {"role": "system", "content": "From the log"}
    title = {**example("user"), "type": "custom_title", "uuid": "t", "message": said}
    path = log(tmp_path, example("user"), title)
    place = path.parent / "metadata.json"

    def shown(metadata: dict[str, str]) -> JSON:
        place.write_text(json.dumps(metadata))
        return document_of(AGENT, path)["session"]["title"]

    assert shown({"customTitle": "C", "summary": "S", "firstPrompt": "F", "name": "N"}) == "C"
    assert shown({"summary": "S", "firstPrompt": "F", "name": "N"}) == "From the log"
    log(tmp_path, example("user"))
    assert shown({"summary": "S", "firstPrompt": "F", "name": "N"}) == "S"
    assert shown({"firstPrompt": "F", "name": "N"}) == "F"
    assert shown({"name": "N"}) == "Create a weather website"
    log(tmp_path, {**example("user"), "type": "system", "message": {"role": "system", "content": "x"}})
    assert shown({"name": "N"}) == "N"
    assert shown({}) == "session-123"


@pytest.mark.seed("S1-26")
def test_metadata_fill_what_the_log_does_not_say(tmp_path: Path) -> None:
    path = log(tmp_path, {"type": "user", "uuid": "u"}, example("assistant"))
    metadata = {"createdAt": "2025-01-01T00:00:00Z", "workingDirectory": "/w", "model": "claude-x"}
    (path.parent / "metadata.json").write_text(json.dumps(metadata))
    facts = AGENT.facts(AGENT.locate(path))
    assert list(facts.ledger.by_model()) == ["claude-x"]
    log(tmp_path, {"type": "user", "uuid": "u"})
    session = document_of(AGENT, path)["session"]
    assert (session["workspace"], session["started_at"]) == ("/w", "2025-01-01T00:00:00Z")


# Checks


@pytest.mark.seed("S1-12")
def test_an_orphan_result_is_reported(tmp_path: Path) -> None:
    path = log(tmp_path, example("user"), example("tool_result"))
    (found,) = [problem for problem in problems(path) if problem.code == "orphan-result"]
    assert (found.line, found.index, found.severity) == (2, 2, "warning")
    assert codes(problems(log(tmp_path, example("assistant"), example("tool_result")))) == []


@pytest.mark.seed("S1-20")
@pytest.mark.parametrize(
    ("level", "known"),
    [("none", True), ("low", True), ("medium", True), ("high", True), ("High", False), (3, False)],
)
def test_thinking_levels_are_checked_and_kept(tmp_path: Path, level: JSON, known: bool) -> None:
    path = log(tmp_path, {**example("user"), "thinkingMetadata": {"level": level, "disabled": False, "triggers": []}})
    assert codes(problems(path)) == ([] if known else ["bad-thinking-level"])
    assert json.loads(round_trip(AGENT, path)[""])["thinkingMetadata"]["level"] == level


@pytest.mark.seed("S1-22")
def test_snapshots_are_checked(tmp_path: Path) -> None:
    good = example("file_history_snapshot")
    assert codes(problems(log(tmp_path, good, example("assistant")))) == []
    assert codes(problems(log(tmp_path, example("user"), good))) == ["unknown-snapshot-message"]
    odd = [{"trackedFiles": {"a": {"state": "melted"}}}, {"fileBackups": []}, "gone"]
    for snapshot in odd:
        assert codes(problems(log(tmp_path, example("assistant"), {**good, "snapshot": snapshot}))) == ["bad-snapshot"]
    nameless = {name: item for name, item in good.items() if name != "messageId"}
    assert codes(problems(log(tmp_path, nameless))) == ["bad-snapshot"]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (None, ["metadata-missing"]),
        ("{", ["metadata-damaged"]),
        ('{"id": "session-123", "messageCount": 1}', []),
        ('{"id": "other", "messageCount": 2}', ["metadata-mismatch", "metadata-mismatch"]),
        ('{"id": "session-123", "messageCount": 0}', ["metadata-behind"]),
    ],
)
def test_metadata_are_checked(tmp_path: Path, metadata: str | None, expected: list[str]) -> None:
    path = log(tmp_path, example("assistant"), example("file_history_snapshot"))
    if metadata is not None:
        (path.parent / "metadata.json").write_text(metadata)
    assert [problem.code for problem in problems(path)] == expected


# Bytes


class TestConformance(AgentConformance):
    agent: ClassVar[Agent] = AGENT
    fixtures: ClassVar[list[Path]] = sessions(DEMO)


@pytest.mark.parametrize("path", sessions(DEMO), ids=lambda path: path.parent.name[:8])
def test_the_demo_comes_back(path: Path) -> None:
    document = document_of(AGENT, path)
    msgspec.convert(document, Document)
    assert round_trip(AGENT, path) == original(AGENT, path)
    assert problems(path) == []


@pytest.mark.slow
@given(st.lists(st.tuples(records(KEYS, WORDS), st.integers(0, 15)), max_size=5))
def test_any_json_comes_back(tmp_path_factory: pytest.TempPathFactory, lines: list[Line]) -> None:
    path = tmp_path_factory.mktemp("any") / "messages.jsonl"
    path.write_bytes(b"".join(spell(record, dialect) for record, dialect in lines))
    document = document_of(AGENT, path)
    msgspec.convert(document, Document)
    assert round_trip(AGENT, path) == original(AGENT, path)
    assert problems(path) is not None


@given(st.integers(0, len(BELL.read_bytes())))
def test_a_cut_loses_at_most_the_last_record(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    whole = BELL.read_bytes()
    path = tmp_path_factory.mktemp("cut") / "messages.jsonl"
    path.write_bytes(whole[:cut])
    document = document_of(AGENT, path)
    assert round_trip(AGENT, path) == original(AGENT, path)
    assert len(document["messages"]) + len(document["records"]) >= whole[:cut].count(b"\n")


@pytest.mark.seed("S1-55", "SX-2")
def test_every_message_kind_has_a_public_type() -> None:
    blocks = {"Text", "ToolUse", "ToolResult"}
    names = {*blocks, "Message", "Metadata", "Snapshot", "TrackedFile", "Todo", "ThinkingSettings"}
    assert names <= set(clew.model.__all__)
    for name in names:
        for field in msgspec.structs.fields(getattr(clew.model, name)):
            assert re.fullmatch(r"[a-z][a-z0-9_]*", field.name)
