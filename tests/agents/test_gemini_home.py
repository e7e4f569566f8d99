"""Gemini CLI's store: what is found in it, which folder a project is, and that nothing counts twice."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from clew.agents.gemini.project_registry import folders_of_hashes, hash_of, registered, slug_of
from clew.errors import WouldLose
from clew.export.verify import Proof, verify
from clew.host import Host
from clew.library import Library
from clew.model.json import JSON
from clew.sources.local import at_path
from tests.agents.gemini_worlds import (
    AGENT,
    HASH,
    NAME,
    ROOT,
    SESSION,
    call,
    document,
    gemini,
    header,
    log,
    opened,
    tokens,
    user,
    write,
)

CHILD = "b8d90c17-55e2-4f0a-9c3d-61a7e4f28d05"


def found(home: Path, **env: str) -> list[str]:
    host = Host(home, env)
    return [source.path.name for root in AGENT.roots(host) for source in AGENT.discover(root)]


def store(home: Path) -> Path:
    return home / ".gemini"


def marked(home: Path, project: str, root: str = ROOT) -> None:
    path = store(home) / "tmp" / project / ".project_root"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(root)


def test_only_chats_saved_chats_and_logs_are_sessions(home: Path) -> None:
    log(home, header(), user("a"))
    for name in (f"{NAME}.jsonl.unreadable-1790000000000", f"{NAME}.jsonl.tmp-123", "notes.json", "x.txt"):
        write(home, b"{}", name)
    for name in ("settings.json", "oauth_creds.json", "antigravity/session-2026-10-20T09-14-aaaaaaaa.json"):
        path = store(home) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    (store(home) / "tmp" / "bell" / "shell_history").write_text("ls\n")
    assert found(home) == [f"{NAME}.jsonl"]


def test_the_home_of_the_client_can_be_elsewhere(home: Path, tmp_path: Path) -> None:
    log(tmp_path, header(), user("a"))
    assert found(home) == []
    assert found(home, GEMINI_CLI_HOME=str(tmp_path)) == [f"{NAME}.jsonl"]


def test_packed_chats_are_found(home: Path) -> None:
    path = log(home, header(), user("a"), gemini("b"), user("c"), gemini("b", "Again."))
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    assert found(home) == [packed.name]
    assert [message.uuid for message in opened(packed).messages] == ["a", "b", "c"]
    assert verify(AGENT, AGENT.locate(packed)).different == []


@pytest.mark.seed("S2-20", "S2-21")
def test_subagents_are_linked_both_ways(home: Path) -> None:
    parent = log(home, header(), gemini("b", toolCalls=[call("c", "checker", agentId=CHILD)]))
    child = log(home, {**header(), "sessionId": CHILD, "kind": "subagent"}, user("x"), name=f"{SESSION}/{CHILD}.jsonl")
    assert found(home) == [parent.name, child.name]
    assert opened(parent).session_object["subagents"] == [{"session_id": CHILD, "agent_id": CHILD, "tool_id": "c"}]
    session = opened(child).session_object
    assert (session["is_agent_session"], session["parent_session_id"], session["agent_id"]) == (True, SESSION, CHILD)
    assert verify(AGENT, AGENT.locate(child)).different == []


def test_a_subagent_without_its_parent_names_the_folder(home: Path) -> None:
    child = log(home, {**header(), "sessionId": "agent/1"}, user("x"), name="gone_id/agent_1.jsonl")
    session = opened(child).session_object
    assert (session["is_agent_session"], session["parent_session_id"], session["id"]) == (True, "gone_id", "agent/1")


def test_a_parent_with_an_odd_id_is_found_by_its_spelling(home: Path) -> None:
    log(home, {**header(), "sessionId": "a/b"}, user("a"), name="session-2026-10-20T09-14-a_b.jsonl")
    child = log(home, {**header(), "sessionId": CHILD}, user("x"), name=f"a_b/{CHILD}.jsonl")
    assert opened(child).session_object["parent_session_id"] == "a/b"


def test_subagents_among_the_chats_belong_to_who_names_them(home: Path) -> None:
    parent = log(home, header(), gemini("b", toolCalls=[call("c", "checker", agentId=CHILD)]))
    flat = {**header(), "sessionId": CHILD, "kind": "subagent"}
    child = log(home, flat, user("x"), name=f"session-2026-10-20T09-16-{CHILD[:8]}.jsonl")
    assert opened(child).session_object["parent_session_id"] == SESSION
    assert opened(parent).session_object["subagents"] == [{"session_id": CHILD, "agent_id": CHILD, "tool_id": "c"}]


def test_a_marker_names_the_folder(home: Path) -> None:
    path = log(home, header(), user("a"))
    marked(home, "bell")
    assert opened(path).session_object["workspace"] == ROOT


def test_the_registry_names_the_folder(home: Path) -> None:
    path = log(home, header(), user("a"))
    (store(home) / "projects.json").write_text(json.dumps({"projects": {ROOT: "bell"}}))
    assert opened(path).session_object["workspace"] == ROOT


@pytest.mark.parametrize("registry", [None, "{", "[]", '{"projects": 5}', '{"projects": {"/x": 5}}'])
def test_P09_without_a_registry_markers_and_hashes_tell(home: Path, registry: str | None) -> None:
    path = log(home, header(), user("a"), project=HASH)
    if registry is not None:
        (store(home) / "projects.json").write_text(registry)
    assert opened(path).session_object["workspace"] == HASH
    marked(home, "somewhere-else")
    assert opened(path).session_object["workspace"] == ROOT


@pytest.mark.parametrize(
    "record",
    [
        {"$set": {"directories": [ROOT + "/src"]}},
        user("c", [{"text": f"<session_context>\nWe are in {ROOT}\n</session_context>"}]),
        gemini("d", toolCalls=[{**call("e"), "args": {"file_path": ROOT + "/deep/bell.py"}}]),
    ],
    ids=["directories", "context", "arguments"],
)
def test_the_hash_proves_a_folder_that_the_session_names(home: Path, record: JSON) -> None:
    path = log(home, header(), user("a"), record, project=HASH)
    assert opened(path).session_object["workspace"] == ROOT


def test_no_path_is_invented(home: Path) -> None:
    path = log(home, {**header(), "projectHash": hash_of("/elsewhere")}, user("a", ROOT), project="x")
    assert opened(path).session_object["workspace"] == hash_of("/elsewhere")


def test_windows_paths_are_compared_as_they_were_typed() -> None:
    folder = "C:\\src\\bell"
    assert folders_of_hashes({hash_of(folder)}, ["c:\\src\\bell\\x.py"]) == {hash_of(folder): folder}
    assert slug_of("C:\\Src\\Bell Tower") == "bell-tower"


def test_copies_that_were_made_when_folders_got_names_are_listed_once(home: Path) -> None:
    old = document(home, user("a"), gemini("b", tokens=tokens(10, 1), model="m"), project=HASH)
    document(home, user("a"), gemini("b", tokens=tokens(10, 1), model="m"))
    marked(home, "bell")
    library = Library(Host.at(home), agents=["gemini"])
    assert [session.path.parent.parent.name for session in library.sources()] == ["bell"]
    old.write_bytes(old.read_bytes() + b"\n" * 10)
    assert len(list(library.sources())) == 2
    assert library.usage()["m"].input_tokens == 10


def test_ids_that_are_not_made_by_chance_count_for_each_session(home: Path) -> None:
    for name, session in (("aaaaaaaa", "aaaaaaaa-1"), ("bbbbbbbb", "bbbbbbbb-1")):
        record = gemini("1", tokens=tokens(10, 1), model="m")
        log(home, {**header(), "sessionId": session}, record, name=f"session-2026-10-20T09-14-{name}.jsonl")
    assert Library(Host.at(home), agents=["gemini"]).usage()["m"].input_tokens == 20


HISTORY = [
    {"role": "user", "parts": [{"text": "List."}]},
    {
        "role": "model",
        "parts": [{"functionCall": {"name": "ls", "args": {}}}, {"functionCall": {"name": "ls", "args": {}}}],
    },
    {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "ls", "response": {"output": "a"}}},
            {"functionResponse": {"name": "ls", "response": {"output": "b"}}},
        ],
    },
    {"role": "model", "parts": [{"text": "Done."}]},
]


@pytest.mark.parametrize("bare", [False, True])
def test_a_saved_chat_is_a_session_of_its_own(home: Path, bare: bool) -> None:
    path = store(home) / "tmp" / "bell" / "checkpoint-before%20the%zzstorm.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(HISTORY if bare else {"history": HISTORY, "authType": "x"}, indent=2))
    os.utime(path, (1790000000, 1790000000))
    assert found(home) == [path.name]
    session = opened(path)
    assert session.header.title == "before the%zzstorm"
    assert session.header.started_at == "2026-09-21T14:13:20Z"
    assert session.facts.prompts == 1
    messages = [unit.value for unit in session.units() if unit.is_message]
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant"]
    calls = [block["tool_id"] for block in messages[1]["content"]]
    assert calls == [block["tool_id"] for block in messages[2]["content"]]
    assert session.id == opened(path).id
    assert {problem.code for problem in session.problems()} == {"time-missing"}
    assert verify(AGENT, AGENT.locate(path)).different == []


def logged(session: str, text: str, number: int = 0) -> JSON:
    return {
        "sessionId": session,
        "messageId": number,
        "type": "user",
        "message": text,
        "timestamp": "2026-10-01T08:00:00.000Z",
    }


def test_the_log_of_prompts_speaks_for_chats_that_are_gone(home: Path) -> None:
    path = store(home) / "tmp" / "bell" / "logs.json"
    log(home, header(), user("a"))
    path.write_text(json.dumps([logged(SESSION, "Here.")], indent=2))
    assert found(home) == [f"{NAME}.jsonl"]
    path.write_text(
        json.dumps([logged("gone-session", "Lost."), logged("gone-session", "/quit", 1), logged(SESSION, "Here.")])
    )
    assert found(home) == [f"{NAME}.jsonl", "logs.json"]
    session = opened(path)
    assert session.facts.prompts == 1
    assert session.facts.messages == 2
    assert [(record.kind, record.text) for record in session.records][1:] == [("prompt", "Here.")]
    assert verify(AGENT, AGENT.locate(path)).different == []


def test_entries_of_the_log_are_spoken_by_whom_they_name(home: Path) -> None:
    path = store(home) / "tmp" / "bell" / "logs.json"
    path.parent.mkdir(parents=True)
    entries = [{**logged("gone", text), "type": kind} for kind, text in (("user", "a"), ("gemini", "b"), ("odd", "c"))]
    path.write_text(json.dumps(entries))
    assert [message.role for message in opened(path).messages] == ["user", "assistant", "system"]
    assert opened(path).facts.prompts == 1
    assert verify(AGENT, AGENT.locate(path)).different == []


def test_prompts_of_several_sessions_in_the_log_are_several_conversations(home: Path) -> None:
    path = store(home) / "tmp" / "bell" / "logs.json"
    path.parent.mkdir(parents=True)
    said = [("one", "a"), ("two", "b"), ("one", "c"), ("two", "d"), ("three", "e"), ("two", "f")]
    path.write_text(json.dumps([logged(session, text) for session, text in said]))
    messages = [unit.value for unit in opened(path).units() if unit.is_message]
    names = {message["uuid"]: message["content"][0]["text"] for message in messages}
    before = [names.get(message.get("parent_uuid")) for message in messages]
    assert before == [None, None, "a", "b", None, "d"]
    assert [names[uuid] for uuid in opened(path).facts.tree.graph().active_path] == ["b", "d", "f"]
    assert verify(AGENT, AGENT.locate(path)).different == []


def test_the_registry_gets_a_new_project() -> None:
    slug, text = registered(None, ROOT)
    assert (slug, json.loads(text)) == ("bell", {"projects": {ROOT: "bell"}})
    assert registered(text, ROOT) == ("bell", text)
    other, both = registered(text, "/srv/bell")
    assert (other, json.loads(both)["projects"]["/srv/bell"]) == ("bell-1", "bell-1")
    with pytest.raises(WouldLose, match="cannot be read"):
        registered(b"{broken", ROOT)
    assert json.loads(registered(b'{"version": 2}', "C:\\Bell")[1]) == {"version": 2, "projects": {"c:\\bell": "bell"}}


@pytest.mark.seed("S2-17", "S2-18", "S2-19")
def test_the_source_of_a_session_is_told(home: Path) -> None:
    path = log(home, header(), user("a"))
    assert opened(path).session_object["source"] == {"type": "local", "host": None, "path": str(path)}


def test_every_byte_of_the_corpus_comes_back(shared: Path) -> None:
    total = Proof()
    for agent, source in at_path(shared / "corpus" / "gemini"):
        assert agent.id == "gemini", source.path
        total.add(verify(agent, source))
    assert total.different == []
    assert total.files > 20
    assert total.document_bytes <= 2 * total.bytes


def test_tokens_of_a_made_home_are_exact(shared: Path, tmp_path: Path) -> None:
    truth = tmp_path / "truth.json"
    tool = [sys.executable, str(shared / "tools" / "make_corpus.py"), "--size", "30MB", "--seed", "7", "--jobs", "1"]
    subprocess.run([*tool, "--out", str(tmp_path / "home"), "--truth", str(truth)], check=True, capture_output=True)
    expected = json.loads(truth.read_text())["agents"]["gemini"]
    library = Library(Host.at(tmp_path / "home"), agents=["gemini"])
    usage = library.usage()
    assert usage.keys() == expected["tokens"].keys()
    for model, counts in expected["tokens"].items():
        found_usage = usage[model]
        assert found_usage.cache_read_tokens == counts["cache_read"]
        assert found_usage.reasoning_tokens == counts["reasoning"]
        assert (found_usage.input_tokens or 0) + counts["cache_read"] == counts["input"]
        assert (found_usage.output_tokens or 0) - counts["reasoning"] == counts["output"]
    facts = [session.facts for session in library.sources()]
    assert len(facts) == expected["sessions"]
    assert sum(each.prompts for each in facts) == expected["user_prompts"]
    assert sum(each.tool_calls for each in facts) == expected["tool_uses"]
