"""Claude Code: every kind of record, sub-agents in all their layouts, tokens counted once, and the way back."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.agents.base import Claim, Header, Unit
from clew.agents.checking import check_source
from clew.agents.claude_code import ClaudeCode
from clew.analysis.usage import Usage
from clew.catalog.queries import list_rows
from clew.convert.prepare import prepare
from clew.export.verify import Proof, verify
from clew.host import Host
from clew.library import Library
from clew.model.json import JSON
from clew.model.message import ModelUse
from clew.sources.local import at_path
from tests.demo_home import write_small_demo
from tests.unit.samples import SESSION, Record, Transcript, claude_line, read_lines, read_source, seed, write_lines

AGENT = ClaudeCode()
OTHER = "1c1f3e9d-6b10-4b6f-8e64-1e6b5f4d3c22"
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


def lines_of(*records: Record) -> bytes:
    return b"".join(
        json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n" for record in records
    )


def project(home: Path, name: str = "-home-ada-src-tide") -> Path:
    folder = home / ".claude" / "projects" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def library(home: Path) -> Library:
    return Library(Host.at(home), agents=["claude-code"])


def reply(uuid: str, message_id: str | None, output: int, parent: str | None = None, **more: Any) -> Record:
    """A line of an API reply that tells how many tokens it took."""
    line = claude_line("assistant", uuid, parent, [{"type": "text", "text": uuid}], **more)
    usage = {"input_tokens": 3, "output_tokens": output, "cache_read_input_tokens": 100}
    line["message"] = {"model": "claude-opus-4-6", "type": "message", **line["message"], "usage": usage}
    return line if message_id is None else line | {"message": {"id": message_id, **line["message"]}}


def proved(transcript: Transcript) -> Proof:
    proof = verify(AGENT, transcript.source)
    assert proof.different == []
    return proof


# Places


@pytest.mark.seed("S0-2", "S3-1")
def test_sessions_are_found_without_options(home: Path) -> None:
    path = project(home) / f"{SESSION}.jsonl"
    path.write_bytes(lines_of(claude_line("user", "u1", None, "Hello")))
    (session,) = clew.sessions()
    assert (session.agent.id, session.id, session.path) == ("claude-code", SESSION, path)
    assert [message.role for message in session.messages] == ["user"]


def test_a_configured_folder_is_looked_into_instead(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = home / "elsewhere"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(elsewhere))
    (elsewhere / "projects" / "-p").mkdir(parents=True)
    (elsewhere / "projects" / "-p" / f"{SESSION}.jsonl").write_bytes(lines_of(claude_line("user", "u1", None)))
    (project(home) / f"{OTHER}.jsonl").write_bytes(lines_of(claude_line("user", "u1", None)))
    assert [session.id for session in clew.sessions()] == [SESSION]
    assert [session.id for session in clew.sessions(home)] == [OTHER]


@pytest.mark.parametrize("value", ["{},", ",{}", " {} , "])
def test_an_empty_entry_is_not_the_current_folder(home: Path, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    configured = home / "configured"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", value.format(configured))
    assert list(AGENT.roots(Host.local())) == [configured / "projects"]


def test_without_any_entry_the_usual_folders_count(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = list(AGENT.roots(Host.local()))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", " ,")
    assert list(AGENT.roots(Host.local())) == usual


def test_side_files_are_no_sessions(home: Path) -> None:
    folder = project(home)
    line = lines_of(claude_line("user", "u1", None))
    for name in (
        f"{SESSION}.jsonl",
        f"{OTHER}.orphaned.jsonl",
        f"{SESSION}/tool-results/x.jsonl",
        f"{SESSION}/subagents/workflows/wf_1/journal.jsonl",
        "sessions-index.json",
        "memory/MEMORY.md",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(line)
    assert [session.path.name for session in library(home).sources()] == [f"{SESSION}.jsonl"]


def test_the_workspace_is_what_the_records_say(home: Path) -> None:
    path = project(home, "-home-ada-src-tide-pool") / f"{SESSION}.jsonl"
    path.write_bytes(lines_of(claude_line("user", "u1", None, cwd="/home/ada/src/tide.pool")))
    session = library(home).get(SESSION).header
    assert (session.workspace, session.workspace_encoded) == ("/home/ada/src/tide.pool", "-home-ada-src-tide-pool")


# The envelope


@pytest.mark.seed("S0-12", "S0-13", "S0-14", "S0-15")
def test_the_examples_of_seed_000(tmp_path: Path) -> None:
    user, assistant = seed("seed-000/claude-user"), seed("seed-000/claude-assistant")
    snapshot = {
        "type": "file-history-snapshot",
        "messageId": user["uuid"],
        "snapshot": {"messageId": user["uuid"], "trackedFileBackups": {}, "timestamp": "2026-01-11T22:00:00.000Z"},
        "isSnapshotUpdate": False,
    }
    todo = user | {"uuid": "t1", "todos": [{"content": "Fix it", "status": "pending", "activeForm": "Fixing it"}]}
    outside = {**assistant, "message": {**assistant["message"]}, "uuid": "a2"}
    outside["usage"] = outside["message"].pop("usage")
    found = read_lines(tmp_path, lines_of(user, assistant, snapshot, todo, outside).rstrip(b"\n"))
    first, second, third, fourth = found.messages
    assert (first["role"], first["uuid"], first["parent_uuid"]) == ("user", user["uuid"], None)
    assert first["timestamp"] == user["timestamp"]
    assert first["content"] == [{"type": "text", "text": "Hello, help me with this code"}]
    assert first["metadata"] == {
        "cwd": "/home/user/project",
        "git_branch": "main",
        "agent_version": "2.1.3",
        "user_type": "external",
        "is_sidechain": False,
        "thinking": {"level": "high", "disabled": False},
        "todos": [],
    }
    assert second["metadata"]["request_id"] == "req_011CWzMd5vc7cwkNhz5GovQM"
    assert second["metadata"]["model"] == {"name": "claude-opus-4-5-20251101"}
    expected = {"input_tokens": 1234, "output_tokens": 567, "cache_read_tokens": 15000}
    assert second["metadata"]["token_usage"] == expected
    assert third["metadata"]["todos"] == [{"content": "Fix it", "status": "pending", "active_form": "Fixing it"}]
    assert fourth["metadata"]["token_usage"] == expected
    assert [(record["kind"], record["type"]) for record in found.records] == [("snapshot", "file-history-snapshot")]
    assert found.session["id"] == SESSION
    assert proved(found).unknown_keys == {}


@pytest.mark.seed("S3-4", "S3-5", "S3-6", "S3-8", "S3-12", "S3-13", "S3-14")
def test_the_examples_of_seed_003(tmp_path: Path) -> None:
    user, assistant, summary = (seed(f"seed-003/{name}") for name in ("user", "assistant", "summary"))
    meta = user | {"uuid": "m2", "isMeta": True, "isSidechain": True}
    found = read_lines(tmp_path, user, assistant, summary, meta)
    said, replied, injected = found.messages
    assert (said["uuid"], said["parent_uuid"]) == ("message-uuid", "uuid-parent")
    assert said["timestamp"] == "2025-07-14T14:23:02.503Z"
    assert said["metadata"]["cwd"] == "C:\\chemin\\vers\\projet"
    assert (said["metadata"]["agent_version"], said["metadata"]["user_type"]) == ("1.0.51", "external")
    assert said["content"] == [{"type": "text", "text": "Contenu du message ou array d'objets"}]
    assert "is_meta" not in said["metadata"]
    assert "request_id" not in said["metadata"]
    assert (injected["metadata"]["is_meta"], injected["metadata"]["is_sidechain"]) == (True, True)
    metadata = replied["metadata"]
    assert (metadata["message_id"], metadata["request_id"]) == ("msg_xxx", "req_xxx")
    assert metadata["model"] == {"name": "claude-sonnet-4-20250514", "stop_reason": None, "stop_sequence": None}
    assert replied["content"] == [
        {"type": "text", "text": "Contenu du message texte"},
        {
            "type": "tool_use",
            "tool_id": "toolu_xxx",
            "tool_name": "Read",
            "input": {"file_path": "chemin/vers/fichier"},
        },
    ]
    assert [record["kind"] for record in found.records] == ["summary"]
    assert found.facts.sessions == {"session-uuid": 3}
    proved(found)


@pytest.mark.seed("S4-2", "S4-3", "S4-4", "S4-6", "S4-7", "S4-8", "S4-9", "S4-11")
def test_the_examples_of_seed_004(tmp_path: Path) -> None:
    names = ("user", "assistant-thinking", "assistant-tool")
    found = read_lines(tmp_path, *(seed(f"seed-004/{name}") for name in names))
    user, thinking, tool = found.messages
    assert [message["parent_uuid"] for message in found.messages] == [None, "a1b2c3d4-...", "e5f6g7h8-..."]
    assert "request_id" not in user["metadata"]
    assert thinking["metadata"]["request_id"] == "req_011CXL..."
    assert "model" not in user["metadata"]
    assert user["metadata"]["message_id"] == "msg_user_001"
    assert "is_sidechain" not in user["metadata"]
    assert found.session["slug"] == "async-roaming-allen"
    assert thinking["content"][0] == {
        "type": "thinking",
        "thinking": "Let me analyze the parser code. The issue seems to be in the tokenizer where...",
        "signature": "Eu0BCkYI...",
    }
    assert thinking["content"][1]["type"] == "text"
    assert thinking["metadata"]["model"] == {"name": "claude-opus-4-5-20251101", "stop_reason": "end_turn"}
    assert thinking["metadata"]["token_usage"] == {
        "input_tokens": 1500,
        "output_tokens": 300,
        "cache_creation_tokens": 0,
        "cache_read_tokens": 44061,
    }
    assert tool["content"] == [
        {
            "type": "tool_use",
            "tool_id": "tool_01ABC",
            "tool_name": "bash",
            "input": {"command": "cat parser.go | head -50"},
        }
    ]
    assert tool["metadata"] == {"cwd": "/home/user/project"}
    proved(found)


@pytest.mark.seed("S2-43")
def test_the_ten_mapped_fields(home: Path) -> None:
    agent_id = "a6d43f5595a763917"
    line = reply("child", "msg_1", 5, parent="root", agentId=agent_id, isSidechain=True, isMeta=True, cwd="/p")
    line["message"]["stopReason"] = "end_turn"
    folder = project(home) / SESSION / "subagents"
    folder.mkdir(parents=True)
    (folder / f"agent-{agent_id}.jsonl").write_bytes(lines_of(line))
    (session,) = library(home).sources()
    (message,) = session.messages
    metadata = message.metadata
    assert (message.uuid, message.parent_uuid) == ("child", "root")
    assert (session.header.parent_session_id, session.header.agent_id) == (SESSION, agent_id)
    assert session.header.is_agent_session
    assert isinstance(metadata, clew.Metadata)
    assert (metadata.is_sidechain, metadata.is_meta, metadata.cwd) == (True, True, "/p")
    assert isinstance(metadata.model, ModelUse)
    assert (metadata.model.name, metadata.model.stop_reason) == ("claude-opus-4-6", "end_turn")
    assert isinstance(metadata.token_usage, clew.TokenUsage)
    assert metadata.token_usage.output_tokens == 5


@pytest.mark.seed("SX-4")
@pytest.mark.parametrize("key", ["stop_reason", "stopReason"])
@pytest.mark.parametrize("reason", ["end_turn", "tool_use"])
def test_both_spellings_of_the_stop_reason(tmp_path: Path, key: str, reason: str) -> None:
    line = claude_line("assistant", "a1", None, [])
    line["message"][key] = reason
    found = read_lines(tmp_path, line)
    assert found.messages[0]["metadata"]["model"]["stop_reason"] == reason
    proved(found)


def test_of_both_spellings_the_usual_one_counts(tmp_path: Path) -> None:
    line = claude_line("assistant", "a1", None, [])
    line["message"] |= {"stop_reason": "end_turn", "stopReason": "other"}
    found = read_lines(tmp_path, line)
    assert found.messages[0]["metadata"]["model"]["stop_reason"] == "end_turn"
    proved(found)


def test_a_change_of_session_inside_a_file_is_kept(tmp_path: Path) -> None:
    found = read_lines(
        tmp_path,
        claude_line("user", "u1", None),
        claude_line("user", "u2", "u1"),
        claude_line("user", "u3", "u2", sessionId=OTHER),
    )
    assert found.facts.sessions == {SESSION: 2, OTHER: 1}
    assert [unit.claimed_session for unit in found.units] == [SESSION, SESSION, OTHER]
    proved(found)


@pytest.mark.parametrize(
    "wrong",
    [{"uuid": 7}, {"timestamp": None}, {"message": "text"}, {"isSidechain": "no"}, {"cwd": ["x"]}, {"message": None}],
)
def test_values_of_an_unexpected_type_are_kept(tmp_path: Path, wrong: Record) -> None:
    found = read_lines(tmp_path, claude_line("user", "u1", None) | wrong)
    assert len(found.messages) == 1
    proved(found)


# Content


def test_content_as_text_and_as_an_array(tmp_path: Path) -> None:
    found = read_lines(
        tmp_path,
        claude_line("user", "u1", None, "plain"),
        claude_line("user", "u2", "u1", [{"type": "text", "text": "in a list"}, IMAGE]),
        claude_line("assistant", "a1", "u2", "an old reply"),
        claude_line("assistant", "a2", "a1", None),
    )
    texts = [[block.get("text") for block in message["content"]] for message in found.messages]
    assert texts == [["plain"], ["in a list", None], ["an old reply"], []]
    assert found.messages[1]["content"][1] == {
        "type": "image",
        "encoding": "base64",
        "media_type": "image/png",
        "image": "iVBORw0KGgo=",
    }
    proved(found)


@pytest.mark.seed("S3-10", "S4-10")
def test_results_hold_text_or_blocks(tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/p/a.png"}}
    nested = [{"type": "text", "text": "a picture"}, IMAGE, {"type": "tool_reference", "tool_name": "X"}]
    found = read_lines(
        tmp_path,
        claude_line("assistant", "a1", None, [call]),
        claude_line("user", "r1", "a1", [{"tool_use_id": "t1", "type": "tool_result", "content": "done"}]),
        claude_line("user", "r2", "a1", [{"type": "tool_result", "tool_use_id": "t1", "content": nested}]),
        claude_line("user", "r3", "a1", [{"type": "tool_result", "tool_use_id": "t1", "is_error": True}]),
        claude_line("user", "r4", "a1", [{"type": "tool_result", "tool_use_id": "nobody", "content": []}]),
    )
    plain, rich, failed, orphan = (message["content"][0] for message in found.messages[1:])
    assert plain == {"type": "tool_result", "tool_id": "t1", "tool_name": "Read", "output": "done"}
    assert [block["type"] for block in rich["output"]] == ["text", "image", "unknown"]
    assert rich["output"][1]["media_type"] == "image/png"
    assert (failed["is_error"], failed.get("output")) == (True, None)
    assert (orphan["tool_name"], orphan["output"]) == (None, [])
    assert found.facts.has_errors
    proved(found)


@pytest.mark.seed("S3-11", "S3-19")
@pytest.mark.parametrize(
    "shape",
    [
        seed("seed-003/tool-result")["toolUseResult"],
        seed("seed-003/todos")["toolUseResult"],
        "Error: Exit code 1",
        [{"type": "text", "text": "from a server"}],
        {"filePath": "/p/x", "structuredPatch": [{"oldStart": 1, "lines": ["-a", "+b"]}], "userModified": False},
        {},
        None,
        42,
    ],
)
def test_every_shape_of_toolUseResult_is_kept(tmp_path: Path, shape: Any) -> None:
    line = seed("seed-003/tool-result") | {"toolUseResult": shape}
    found = read_lines(tmp_path, line)
    assert found.units[0].native["toolUseResult"] == shape
    assert found.messages[0]["content"][0]["output"] == "Résultat de l'outil..."
    proved(found)


@pytest.mark.seed("S4-8")
@pytest.mark.parametrize("signature", ["", "Eu0BCkYI+/=", "x" * 5000, "é\u2028\U0001f600\x7f"])
def test_thinking_and_its_signature_are_exact(tmp_path: Path, signature: str) -> None:
    block = {"type": "thinking", "thinking": "", "signature": signature}
    found = read_lines(tmp_path, claude_line("assistant", "a1", None, [block]))
    assert found.messages[0]["content"] == [block]
    assert found.facts.has_thinking
    (line, *_) = composed(found.session, found.messages).splitlines()
    assert json.loads(line)["message"]["content"] == [block]


@pytest.mark.seed("S4-9")
@pytest.mark.parametrize("value", [{}, {"a": {"b": [1, None, {"c": "é"}]}}, {"": ""}, {"n": 1e-7, "big": 2**63}])
def test_calls_take_any_input(tmp_path: Path, value: Any) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "mcp__tide__look", "input": value, "caller": {"type": "direct"}}
    found = read_lines(tmp_path, claude_line("assistant", "a1", None, [call]))
    assert found.messages[0]["content"][0]["input"] == value
    assert found.facts.tools == {"mcp__tide__look": 1}
    proved(found)


# Tokens


@pytest.mark.seed("S4-12", "S4-13")
def test_the_parts_of_usage(tmp_path: Path) -> None:
    usage = {
        "input_tokens": 2,
        "cache_creation_input_tokens": 30,
        "cache_read_input_tokens": 400,
        "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
        "output_tokens": 50,
        "output_tokens_details": {"thinking_tokens": 7},
        "service_tier": "standard",
        "iterations": [{"output_tokens": 50}],
    }
    line = reply("a1", "msg_1", 0)
    line["message"]["usage"] = usage
    found = read_lines(tmp_path, line)
    assert found.messages[0]["metadata"]["token_usage"] == {
        "input_tokens": 2,
        "cache_creation_tokens": 30,
        "cache_read_tokens": 400,
        "cache_creation_5m_tokens": 10,
        "cache_creation_1h_tokens": 20,
        "output_tokens": 50,
        "reasoning_tokens": 7,
        "service_tier": "standard",
    }
    # The split is part of the sum, and iterations repeat it: nothing is added.
    assert found.facts.ledger.total() == Usage(1, 2, 50, 30, 400, 10, 20, 7)
    proved(found)


@pytest.mark.seed("SX-5", "S0-15")
def test_usage_in_both_places_is_not_doubled(tmp_path: Path) -> None:
    both = reply("a1", "msg_1", 9)
    both["usage"] = both["message"]["usage"]
    outer = reply("a2", "msg_2", 5)
    outer["usage"] = outer["message"].pop("usage")
    found = read_lines(tmp_path, both, outer)
    assert [message["metadata"]["token_usage"]["output_tokens"] for message in found.messages] == [9, 5]
    assert found.facts.ledger.total() == Usage(2, 6, 14, None, 200)
    proved(found)


def listed_rows(home: Path) -> list[dict[str, JSON]]:
    """The rows that `clew list --json` prints."""
    with library(home).catalog() as catalog:
        return list_rows(catalog.db)


@pytest.mark.seed("S3-16")
def test_lines_of_one_reply_count_once_and_grow(home: Path) -> None:
    lines = [
        reply("a1", "msg_1", 1),
        reply("a2", "msg_1", 7, "a1"),
        reply("a3", "msg_1", 40, "a2"),
        reply("a4", "msg_2", 5, "a3"),
        reply("a5", "msg_2", 5, "a4"),
    ]
    (project(home) / f"{SESSION}.jsonl").write_bytes(lines_of(*lines))
    (session,) = library(home).sources()
    assert session.usage == Usage(2, 6, 45, None, 200)
    assert library(home).usage() == {"claude-opus-4-6": Usage(2, 6, 45, None, 200)}


def test_replies_without_an_id_count_each(tmp_path: Path) -> None:
    found = read_lines(tmp_path, reply("a1", None, 4), reply("a2", None, 4, "a1"))
    assert found.facts.ledger.total() == Usage(2, 6, 8, None, 200)


def test_what_no_model_said_is_not_counted(tmp_path: Path) -> None:
    line = reply("a1", "msg_1", 4)
    line["message"]["model"] = "<synthetic>"
    found = read_lines(tmp_path, line)
    assert found.facts.ledger.total() == Usage()
    assert found.facts.ledger.total().output_tokens is None
    assert found.messages[0]["metadata"]["model"]["name"] == "<synthetic>"


@pytest.mark.parametrize("count", [-1, -(2**63) - 1, 2**63, 2**70, True, "12", None, 1.5])
def test_what_is_no_count_counts_nothing(tmp_path: Path, count: Any) -> None:
    line = reply("a1", "msg_1", 4)
    line["message"]["usage"]["output_tokens"] = count
    found = read_lines(tmp_path, line)
    assert found.facts.ledger.total().output_tokens is None
    assert found.facts.ledger.total().input_tokens == 3
    proved(found)


def test_resumed_and_forked_copies_count_once(home: Path) -> None:
    folder = project(home)
    first = [claude_line("user", "u1", None, "Begin"), reply("a1", "msg_1", 10, "u1")]
    copied = [line | {"sessionId": OTHER} for line in first]
    forked = [line | {"sessionId": OTHER, "forkedFrom": {"sessionId": SESSION}} for line in first]
    (folder / f"{SESSION}.jsonl").write_bytes(lines_of(*first))
    (folder / f"{OTHER}.jsonl").write_bytes(lines_of(*copied, reply("a2", "msg_2", 30, "a1", sessionId=OTHER)))
    (folder / f"{OTHER.replace('1', '2')}.jsonl").write_bytes(lines_of(*forked))
    assert [session.usage.output_tokens for session in library(home).sources()] == [10, 40, 10]
    assert library(home).usage() == {"claude-opus-4-6": Usage(2, 6, 40, None, 200)}


# Sub-agents


@pytest.mark.seed("S2-21")
@pytest.mark.parametrize(
    "place",
    [
        "agent-8d06219d.jsonl",
        "2026-01-01-agent-8d06219d.jsonl",
        "{}/subagents/agent-8d06219d.jsonl",
        "{}/subagents/workflows/wf_1/agent-8d06219d.jsonl",
    ],
)
def test_sub_agents_are_linked_both_ways(home: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project(home)
    call = {"type": "tool_use", "id": "toolu_1", "name": "Task", "input": {"prompt": "Look"}}
    answer = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "Found it"}
    main = [
        claude_line("user", "u1", None, "Send someone"),
        claude_line("assistant", "a1", "u1", [call]),
        claude_line("user", "r1", "a1", [answer], toolUseResult={"agentId": "8d06219d", "totalTokens": 99}),
        reply("a2", "msg_main", 5, "r1"),
    ]
    # The prompt is long and the id of the session comes last, as later versions write it.
    prompt = claude_line("user", "s1", None, "Look " * 2000, isSidechain=True, agentId="8d06219d")
    prompt["sessionId"] = prompt.pop("sessionId")
    child = [prompt, reply("s2", "msg_child", 70, "s1", isSidechain=True, agentId="8d06219d")]
    (folder / f"{SESSION}.jsonl").write_bytes(lines_of(*main))
    (folder / f"{OTHER}.jsonl").write_bytes(lines_of(claude_line("user", "x1", None, sessionId=OTHER)))
    path = folder / place.format(SESSION)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lines_of(*child))

    parent, other = library(home).get(SESSION), library(home).get(OTHER)
    expected = {"session_id": "agent-8d06219d", "agent_id": "8d06219d", "tool_id": "toolu_1"}
    assert parent.session_object["subagents"] == [expected]
    # A file may be named as it is called in the folder one stands in.
    monkeypatch.chdir(folder)
    (named,) = at_path(Path(f"{SESSION}.jsonl"))
    assert AGENT.session(named.source, AGENT.facts(named.source))["subagents"] == [expected]
    assert "subagents" not in other.session_object
    session = library(home).get("agent-8d06219d").header
    assert (session.is_agent_session, session.parent_session_id, session.agent_id) == (True, SESSION, "8d06219d")
    assert parent.header.parent_session_id is None
    assert library(home).usage()["claude-opus-4-6"].output_tokens == 75
    listed = [row["id"] for row in listed_rows(home) if not row["is_agent_session"]]
    assert sorted(listed) == [SESSION, OTHER]


@pytest.mark.seed("S2-21")
def test_sub_agents_inside_the_file_of_their_parent(tmp_path: Path) -> None:
    found = read_lines(
        tmp_path,
        claude_line("user", "u1", None, "Send two"),
        claude_line("user", "s1", None, "First", isSidechain=True),
        claude_line("user", "s2", None, "Second", isSidechain=True),
        claude_line("assistant", "s3", "s1", isSidechain=True),
        claude_line("assistant", "a1", "u1"),
    )
    links = found.session["subagents"]
    assert [(link["session_id"], link["root_uuid"]) for link in links] == [(None, "s1"), (None, "s2")]
    assert found.facts.prompts == 1
    assert not found.session["is_agent_session"]


def test_progress_links_an_agent_that_is_still_running(home: Path) -> None:
    folder = project(home)
    progress = {
        "type": "progress",
        "uuid": "p1",
        "parentUuid": "a1",
        "data": {"type": "agent_progress", "agentId": "a1b2c3d"},
        "parentToolUseID": "toolu_7",
        "sessionId": SESSION,
    }
    (folder / f"{SESSION}.jsonl").write_bytes(lines_of(claude_line("assistant", "a1", None), progress))
    (folder / SESSION / "subagents").mkdir(parents=True)
    agent = folder / SESSION / "subagents" / "agent-a1b2c3d.jsonl"
    agent.write_bytes(lines_of(claude_line("user", "s1", None, isSidechain=True, agentId="a1b2c3d")))
    (folder / SESSION / "subagents" / "agent-a1b2c3d.meta.json").write_text('{"agentType":"Explore"}')
    assert library(home).get(SESSION).session_object["subagents"][0]["tool_id"] == "toolu_7"
    proof = verify(AGENT, AGENT.locate(agent))
    assert (proof.files, proof.identical) == (2, 2)


# The tree


def test_the_path_goes_on_across_a_compaction(tmp_path: Path) -> None:
    boundary = {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "c1",
        "parentUuid": None,
        "logicalParentUuid": "a1",
        "content": "Conversation compacted",
        "sessionId": SESSION,
        "timestamp": "2026-01-01T10:00:02.000Z",
        "compactMetadata": {"trigger": "auto", "preTokens": 150000},
    }
    found = read_lines(
        tmp_path,
        claude_line("user", "u1", None, "Begin"),
        claude_line("assistant", "a1", "u1"),
        boundary,
        claude_line("user", "u2", "c1", "So far: ...", isCompactSummary=True),
        claude_line("assistant", "a2", "u2"),
    )
    assert found.facts.tree.graph().active_path == ["u1", "a1", "c1", "u2", "a2"]
    assert found.messages[2]["metadata"]["logical_parent_uuid"] == "a1"
    assert found.messages[2]["content"] == [{"type": "text", "text": "Conversation compacted"}]
    assert found.messages[3]["metadata"]["is_compact_summary"] is True
    assert found.facts.prompts == 1
    proved(found)


def test_the_last_prompt_names_the_active_leaf(tmp_path: Path) -> None:
    found = read_lines(
        tmp_path,
        claude_line("user", "u1", None),
        claude_line("assistant", "a1", "u1"),
        claude_line("user", "u2", "a1", "left"),
        claude_line("user", "u3", "a1", "right"),
        {"type": "last-prompt", "lastPrompt": "left", "leafUuid": "u2", "sessionId": SESSION},
    )
    assert found.facts.tree.graph().active_path == ["u1", "a1", "u2"]
    assert [branch.uuid for branch in found.facts.tree.graph().fork_points[0].branches] == ["u2", "u3"]
    assert (found.records[0]["kind"], found.records[0]["message_uuid"]) == ("prompt", "u2")


def test_what_follows_the_last_prompt_goes_on_from_it(tmp_path: Path) -> None:
    """The record tells where the conversation stood when it was written; what was left before stays left."""
    found = read_lines(
        tmp_path,
        claude_line("user", "u1", None),
        claude_line("assistant", "a1", "u1"),
        claude_line("user", "u2", "a1", "left"),
        claude_line("assistant", "a2", "u2"),
        {"type": "last-prompt", "lastPrompt": "first", "leafUuid": "a1", "sessionId": SESSION},
        claude_line("user", "u3", "a1", "right"),
        claude_line("assistant", "a3", "u3"),
        claude_line("assistant", "x1", None, isSidechain=True),
    )
    assert found.facts.tree.graph().active_path == ["u1", "a1", "u3", "a3"]
    assert [branch.uuid for branch in found.facts.tree.graph().fork_points[0].branches] == ["u2", "u3"]


# Other records


def title_of(home: Path, session: str = SESSION) -> str | None:
    listed = listed_rows(home)
    title: str | None = next(row["title"] for row in listed if row["id"] == session)
    return title


@pytest.mark.seed("S3-17", "S3-23")
def test_a_summary_names_the_session_that_holds_its_leaf(home: Path) -> None:
    folder = project(home)
    said = [claude_line("user", "u1", None, "Why?"), claude_line("assistant", "a1", "u1")]
    path = folder / f"{SESSION}.jsonl"
    path.write_bytes(lines_of(*said))
    assert title_of(home) == "Why?"
    path.write_bytes(lines_of(*said, {"type": "summary", "summary": "At the end", "leafUuid": "a1"}))
    assert title_of(home) == "At the end"
    assert library(home).get(SESSION).header.title == "At the end"
    assert [p.code for p in check_source(AGENT, AGENT.locate(path)) if p.severity != "note"] == []

    # A later file of the project tells the titles of earlier ones, and has none of them itself.
    path.write_bytes(lines_of(*said))
    elsewhere = {"type": "summary", "summary": "From elsewhere", "leafUuid": "a1"}
    later = claude_line("user", "x1", None, "Something new", sessionId=OTHER)
    (folder / f"{OTHER}.jsonl").write_bytes(lines_of(elsewhere, later))
    assert title_of(home) == "From elsewhere"
    assert title_of(home, OTHER) == "Something new"


def test_titles_in_their_order(home: Path) -> None:
    folder = project(home)
    records = [
        claude_line("user", "u1", None, "First words"),
        {"type": "summary", "summary": "A summary", "leafUuid": "u1"},
        {"type": "ai-title", "aiTitle": "Made", "sessionId": SESSION},
        {"type": "ai-title", "aiTitle": "Made again", "sessionId": SESSION},
        {"type": "custom-title", "customTitle": "Chosen", "sessionId": SESSION},
    ]
    expected = ["First words", "A summary", "Made", "Made again", "Chosen"]
    for count, title in enumerate(expected, 1):
        (folder / f"{SESSION}.jsonl").write_bytes(lines_of(*records[:count]))
        assert title_of(home) == title
        assert library(home).get(SESSION).header.title == title


def test_prompts_that_waited_are_what_a_person_said(tmp_path: Path) -> None:
    def attached(uuid: str, attachment: Record) -> Record:
        line = claude_line("attachment", uuid, None)
        del line["message"]
        return line | {"attachment": attachment}

    found = read_lines(
        tmp_path,
        attached("q1", {"type": "queued_command", "prompt": "And the moon?", "commandMode": "prompt"}),
        attached("q2", {"type": "queued_command", "prompt": [{"type": "text", "text": "A list"}, IMAGE]}),
        attached("n1", {"type": "queued_command", "prompt": "<task-notification>done", "commandMode": "x"}),
        attached("f1", {"type": "file", "filename": "/p/a.py", "content": {"type": "text", "file": {"content": "x"}}}),
        {"type": "queue-operation", "operation": "enqueue", "content": "And the moon?", "sessionId": SESSION},
    )
    assert [message["role"] for message in found.messages] == ["user", "user", "user", "system"]
    assert found.messages[0]["content"] == [{"type": "text", "text": "And the moon?"}]
    assert [block["type"] for block in found.messages[1]["content"]] == ["text", "image"]
    assert found.facts.prompts == 2
    assert found.units[3].native["attachment"]["filename"] == "/p/a.py"
    assert [(record["kind"], record["text"]) for record in found.records] == [("queue", "And the moon?")]
    assert proved(found).unknown_types == {}


@pytest.mark.seed("S0-13")
def test_snapshots_and_their_changes(tmp_path: Path) -> None:
    backup = {"backupFileName": "8c3079aa8974281b@v1", "version": 1, "backupTime": "2026-01-01T10:00:00.000Z"}
    found = read_lines(
        tmp_path,
        claude_line("user", "u1", None),
        {
            "type": "file-history-snapshot",
            "messageId": "u1",
            "snapshot": {
                "messageId": "u1",
                "trackedFileBackups": {"a.py": backup, "new.py": backup | {"backupFileName": None}},
                "timestamp": "2026-01-01T10:00:00.000Z",
            },
            "isSnapshotUpdate": False,
        },
        {
            "type": "file-history-delta",
            "messageId": "u1",
            "snapshotMessageId": "u1",
            "trackingPath": "b.py",
            "backup": backup,
            "timestamp": "2026-01-01T10:00:01.000Z",
        },
    )
    full, delta = found.records
    assert (full["after"], full["kind"], full["message_uuid"]) == (1, "snapshot", "u1")
    assert full["snapshot"]["is_update"] is False
    assert full["snapshot"]["files"]["a.py"] == {
        "backup": "8c3079aa8974281b@v1",
        "version": 1,
        "time": "2026-01-01T10:00:00.000Z",
    }
    assert full["snapshot"]["files"]["new.py"]["backup"] is None
    assert (delta["kind"], delta["type"], delta["message_uuid"]) == ("snapshot", "file-history-delta", "u1")
    assert found.units[2].native["trackingPath"] == "b.py"
    assert proved(found).unknown_keys == {}


def test_unknown_types_keys_and_blocks_are_kept_and_reported(tmp_path: Path) -> None:
    hologram = {"type": "hologram", "depth": 3}
    line = claude_line("user", "u1", None, [hologram], brandNew={"a": 1})
    found = read_lines(tmp_path, line, {"type": "from-the-future", "payload": [1, {"b": None}]}, {"silly": True})
    assert found.messages[0]["content"] == [{"type": "unknown", "value": hologram}]
    assert [(record["kind"], record.get("type")) for record in found.records] == [
        ("other", "from-the-future"),
        ("other", None),
    ]
    proof = proved(found)
    assert proof.unknown_types == {"content.hologram": 1, "from-the-future": 1, "": 1}
    assert proof.carried_raw == 0
    codes = [problem.code for problem in check_source(AGENT, found.source) if problem.code.startswith("unknown")]
    assert sorted(codes) == [
        "unknown-block",
        "unknown-key",
        "unknown-key",
        "unknown-key",
        "unknown-type",
        "unknown-type",
    ]


# The way back


def header_of(session: Record) -> Header:
    return Header("1.2", "2026-01-01T00:00:00Z", "claude-code", session, {})


def composed(session: Record, messages: Iterable[Record]) -> bytes:
    """The transcript that messages become when there are no native records."""
    units = (Unit(True, message, 0, 0, 0, ()) for message in messages)
    return b"".join(piece for _, piece in AGENT.encode(header_of(session), units))


MADE_BY_HAND: list[Record] = [
    {
        "index": 1,
        "uuid": "m1",
        "parent_uuid": None,
        "role": "user",
        "timestamp": "2026-05-01T08:00:00Z",
        "content": [{"type": "text", "text": "When is high tide?"}],
        "metadata": {"cwd": "/home/ada/src/tide", "agent_version": "1.0"},
    },
    {
        "index": 2,
        "uuid": "m2",
        "parent_uuid": "m1",
        "role": "assistant",
        "timestamp": "2026-05-01T08:00:01Z",
        "content": [
            {"type": "thinking", "thinking": "Look it up.", "signature": "sig=="},
            {"type": "text", "text": "One moment."},
            {"type": "tool_use", "tool_id": "t1", "tool_name": "read_file", "input": {"path": "tides.csv"}},
        ],
        "metadata": {
            "model": {"name": "some-model", "stop_reason": "tool_use"},
            "token_usage": {"input_tokens": 5, "output_tokens": 6, "cache_read_tokens": 7},
        },
    },
    {
        "index": 3,
        "uuid": "m3",
        "parent_uuid": "m2",
        "role": "user",
        "timestamp": "2026-05-01T08:00:02Z",
        "content": [
            {
                "type": "tool_result",
                "tool_id": "t1",
                "tool_name": "read_file",
                "output": [{"type": "text", "text": "04:12"}],
                "is_error": False,
            }
        ],
    },
]


@pytest.mark.seed("S3-32")
def test_a_document_of_another_agent_becomes_valid_records(home: Path) -> None:
    session = {"id": SESSION, "workspace": "/home/ada/src/tide", "is_agent_session": False}
    raw = composed(session, MADE_BY_HAND)
    user, assistant, result, end = (json.loads(line) for line in raw.splitlines())
    assert (end["type"], end["leafUuid"]) == ("last-prompt", "m3")
    for line, role in ((user, "user"), (assistant, "assistant"), (result, "user")):
        assert (line["type"], line["message"]["role"], line["sessionId"]) == (role, role, SESSION)
    assert [line["parentUuid"] for line in (user, assistant, result)] == [None, "m1", "m2"]
    assert user["message"]["content"] == "When is high tide?"
    assert (user["cwd"], user["version"], user["timestamp"]) == ("/home/ada/src/tide", "1.0", "2026-05-01T08:00:00Z")
    assert assistant["message"]["type"] == "message"
    assert assistant["message"]["model"] == "some-model"
    assert assistant["message"]["usage"] == {"input_tokens": 5, "output_tokens": 6, "cache_read_input_tokens": 7}
    assert assistant["message"]["content"] == [
        {"type": "thinking", "thinking": "Look it up.", "signature": "sig=="},
        {"type": "text", "text": "One moment."},
        {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "tides.csv"}},
    ]
    assert result["message"]["content"] == [
        {
            "tool_use_id": "t1",
            "type": "tool_result",
            "content": [{"type": "text", "text": "04:12"}],
            "is_error": False,
        }
    ]

    path = home / AGENT.target(header_of(session))
    assert path == project(home) / f"{SESSION}.jsonl"
    path.write_bytes(raw)
    source = AGENT.locate(path)
    assert [problem.code for problem in check_source(AGENT, source) if problem.severity != "note"] == []
    again = read_source(source)
    assert [message["content"] for message in again.messages[:2]] == [m["content"] for m in MADE_BY_HAND[:2]]
    assert again.facts.ledger.total() == Usage(1, 5, 6, None, 7)
    assert again.facts.tree.graph().active_path == ["m1", "m2", "m3"]
    assert verify(AGENT, source).unknown_keys == {}


@pytest.mark.seed("S3-32")
def test_written_back_a_session_keeps_every_field(home: Path, tmp_path: Path) -> None:
    write_small_demo(tmp_path / "demo")
    for source in AGENT.discover(tmp_path / "demo" / ".claude" / "projects"):
        proof = verify(AGENT, source)
        assert proof.different == []
        assert proof.identical == proof.files


@pytest.mark.parametrize("name", [SESSION, "renamed"])
def test_own_records_are_written_with_the_id_of_the_new_session(tmp_path: Path, name: str) -> None:
    lines = [
        {"type": "mode", "mode": "normal", "sessionId": SESSION},
        claude_line("user", "u1", None, "Begin", brandNew=[1.5, {"sessionId": SESSION}]),
        claude_line("assistant", "a1", "lost", "Done", session_id=SESSION, forkedFrom={"sessionId": OTHER}),
    ]
    source = AGENT.locate(read_lines(tmp_path, *lines).source.path.rename(tmp_path / f"{name}.jsonl"))
    written = prepare(AGENT, source, AGENT.id).write(tmp_path / "home")
    new, records = written.session_id, [json.loads(line) for line in Path(written.files[0]).read_text().splitlines()]
    assert records[0] == lines[0] | {"sessionId": new}
    assert records[1] == lines[1] | {"sessionId": new, "brandNew": [1.5, {"sessionId": new}]}
    assert records[2] == lines[2] | {"sessionId": new, "session_id": new, "parentUuid": "u1"}


def test_the_place_of_a_session_is_made_of_safe_names() -> None:
    session = {"id": "agent-a1", "workspace": "/p", "is_agent_session": True, "parent_session_id": SESSION}
    assert AGENT.target(header_of(session)) == f".claude/projects/-p/{SESSION}/subagents/agent-a1.jsonl"
    for wrong in ({"id": "../x"}, {"workspace_encoded": "../../x"}, {"parent_session_id": "../x"}):
        with pytest.raises(clew.ClewError, match="not a safe file name"):
            AGENT.target(header_of(session | wrong))


# Reference material


def test_every_byte_of_the_corpus_comes_back(shared: Path) -> None:
    proof = Proof()
    for agent, source in at_path(shared / "corpus" / "claude-code"):
        proof.add(verify(agent, source))
    assert proof.different == []
    assert proof.identical == proof.files > 200
    assert proof.document_bytes <= 1.9 * proof.bytes
    assert proof.carried_raw <= 0.02 * proof.records


def test_tokens_of_a_made_home_are_exact(shared: Path, tmp_path: Path) -> None:
    truth = tmp_path / "truth.json"
    tool = [sys.executable, str(shared / "tools" / "make_corpus.py"), "--size", "12MB", "--seed", "5", "--jobs", "1"]
    subprocess.run([*tool, "--out", tmp_path / "home", "--truth", truth], check=True, capture_output=True)
    expected = json.loads(truth.read_text())["agents"]["claude"]
    assert expected["resumed_files"]
    assert expected["subagent_files"]
    found = library(tmp_path / "home")
    counted = {
        model: {
            "input": usage.input_tokens,
            "output": usage.output_tokens,
            "cache_creation": usage.cache_creation_tokens,
            "cache_read": usage.cache_read_tokens,
        }
        for model, usage in found.usage().items()
    }
    assert counted == expected["tokens"]
    headers = [session.header for session in found.sources()]
    assert len(headers) == expected["files"]
    assert sum(header.is_agent_session for header in headers) == expected["subagent_files"]
    linked = {link.session_id for header in headers for link in header.subagents or ()}
    assert linked == {header.id for header in headers if header.is_agent_session}
    assert sum(session.facts.tool_calls for session in found.sources()) >= expected["tool_uses"]
    shutil.rmtree(tmp_path / "home")


def test_a_sub_agent_alone_in_a_file_is_read(tmp_path: Path) -> None:
    line = claude_line("user", "s1", None, isSidechain=True, agentId="77")
    source = write_lines(tmp_path, line, name="agent-77")
    found = read_source(source)
    assert (found.session["id"], found.session["parent_session_id"]) == ("agent-77", SESSION)
    assert proved(found).files == 1


@pytest.mark.parametrize(
    ("name", "head", "claim"),
    [
        ("x.jsonl", b'{"type":"user","uuid":"u"}', Claim.YES),
        ("conversation.jsonl", b'{"type":"user","uuid":"u","message":{}}', Claim.YES),
        ("conversation.jsonl", b'{"role":"user","content":"hi"}', Claim.NO),
        ("journal.jsonl", b'{"type": "started", "key": "k", "agentId": "a"}', Claim.MAYBE),
        ("chat.jsonl", b'{"timestamp":"t","sessionId":"s","message":{"role":"assistant"}}', Claim.MAYBE),
        ("x.jsonl", b'{"type":"user","message":{"role":"user","content":"hi"}}', Claim.MAYBE),
        ("x.jsonl", b'{"type":"queue-operation","operation":"enqueue","sessionId":"s"}', Claim.YES),
        ("x.jsonl", b'{"type":"summary","summary":"Bells","leafUuid":"u"}', Claim.YES),
        ("x.jsonl", b'not JSON\n{"parentUuid":null,"isSidechain":false,"message":{"content":"cut o', Claim.YES),
        ("x.jsonl", b"", Claim.NO),
        ("5d1f0c52-7a7e-4c0b-9d39-1f3a6f0e2b11.jsonl", b"", Claim.MAYBE),
        (".claude/projects/-home-ada/x.jsonl", b"", Claim.MAYBE),
        ("messages.jsonl", b'{"type":"user","context": {"cwd":"/"}}', Claim.NO),
        ("history.jsonl", b'{"display":"hi","sessionId":"s"}', Claim.NO),
        ("rollout-1.jsonl", b'{"type":"user"}', Claim.NO),
        ("x.json", b'{"type":"user"}', Claim.NO),
    ],
)
def test_what_records_say_decides_whose_they_are(name: str, head: bytes, claim: Claim) -> None:
    assert AGENT.claims(Path(name), head) is claim


@pytest.mark.parametrize(
    "head",
    [
        # Factory Droid, its stream, Kimi CLI before Kimi Code, Mistral Vibe, sage-emacs, Windsurf, Cursor CLI, Pi.
        b'{"type":"session_start","id":"d","cwd":"/home/ada"}\n{"type":"message","id":"m","message":{"role":"user"}}',
        b'{"type":"message","session_id":"s","role":"user","text":"Ring."}',
        b'{"protocol_version":1,"type":"hello"}\n{"timestamp":1.5,"message":{"type":"TurnBegin"}}',
        b'{"recovery_journal_record_version":1,"type":"append","entry":{"type":"user","message":{"content":"Ring."}}}',
        b'{"role":"user","content":"Ring.","uuid":"u","parentUuid":null,"sessionId":"s"}',
        b'{"role":"user","uuid":"u","parentUuid":null,"content":"cut o',
        b'{"status":"done","type":"user_input","user_input":{"user_response":"Ring."}}',
        b'{"role":"user","message":{"content":[{"type":"text","text":"Ring."}]}}',
        b'{"type":"session","version":3,"id":"p","cwd":"/home/ada"}\n{"type":"message","message":{"role":"user"}}',
    ],
)
def test_logs_of_other_programs_are_not_claimed(head: bytes) -> None:
    assert AGENT.claims(Path("x.jsonl"), head) is Claim.NO
