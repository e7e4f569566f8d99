"""Qwen Code: what its records become."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, ClassVar

import pytest

from clew.agents import registry
from clew.agents.base import Agent, Header, messages_of
from clew.agents.checking import check_source
from clew.agents.qwen_code import QwenCode
from clew.analysis.usage import Usage
from clew.export.verify import verify
from clew.host import Host
from clew.testing import AgentConformance
from tests.agents.qwen_sessions import FOLDER, SESSION, Transcript, call, project, write_session, write_subagent

AGENT = QwenCode()
FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "qwen-code"


class TestQwenCode(AgentConformance):
    agent: ClassVar[Agent] = AGENT
    fixtures: ClassVar[list[Path]] = sorted(FIXTURES.rglob("*.jsonl"))


def test_the_fixtures_are_what_the_builder_writes(tmp_path: Path) -> None:
    write_session(tmp_path)
    written = {file.relative_to(tmp_path / ".qwen"): file.read_bytes() for file in tmp_path.rglob("*.json*")}
    assert written == {file.relative_to(FIXTURES): file.read_bytes() for file in FIXTURES.rglob("*.json*")}


def messages(path: Path) -> list[dict[str, Any]]:
    return list(messages_of(AGENT.events(AGENT.locate(path))))


def session(path: Path) -> dict[str, Any]:
    source = AGENT.locate(path)
    return AGENT.session(source, AGENT.facts(source))


def records(path: Path) -> list[dict[str, Any]]:
    return [unit.value for unit in AGENT.units(AGENT.locate(path)) if not unit.is_message]


def used(path: Path) -> Usage:
    return AGENT.facts(AGENT.locate(path)).ledger.total()


# Places


def test_sessions_archived_sessions_and_subagents_are_found(tmp_path: Path) -> None:
    path = write_session(tmp_path)
    (path.parent / "archive").mkdir()
    archived = path.parent / "archive" / "5a1d0c52-7b0e-4c5e-9d59-3f0c7f6a1e12.jsonl"
    shutil.copy(path, archived)
    path.with_name(f"{SESSION}.ledger.jsonl").write_text("{}\n")
    path.with_name(f"{SESSION}.runtime.json").write_text("{}")
    (root,) = AGENT.roots(Host.at(tmp_path))
    found = [source.path.relative_to(project(tmp_path)).as_posix() for source in AGENT.discover(root)]
    agent = f"subagents/{SESSION}/agent-general-purpose-call_4.jsonl"
    assert found == [f"chats/{SESSION}.jsonl", f"chats/archive/{archived.name}", agent]


def test_the_folder_can_be_configured(tmp_path: Path) -> None:
    env = {"QWEN_HOME": str(tmp_path / "settings"), "QWEN_RUNTIME_DIR": str(tmp_path / "data")}
    roots = [tmp_path / "data" / "projects", tmp_path / "settings" / "projects"]
    assert list(AGENT.roots(Host(tmp_path, env))) == roots


def test_links_are_not_followed(tmp_path: Path) -> None:
    path = write_session(tmp_path / "elsewhere")
    chats = project(tmp_path) / "chats"
    chats.parent.mkdir(parents=True)
    chats.symlink_to(path.parent)
    (root,) = AGENT.roots(Host.at(tmp_path))
    assert list(AGENT.discover(root)) == []


@pytest.mark.parametrize("first", [0, 1, 3, 4])
def test_a_file_is_known_by_any_of_its_records(tmp_path: Path, first: int) -> None:
    lines = write_session(tmp_path).read_bytes().splitlines(keepends=True)
    path = tmp_path / "some.jsonl"
    path.write_bytes(b"".join(lines[first:]))
    claimant = registry.claimant(path)
    assert claimant is not None and claimant.id == "qwen-code"
    assert AGENT.session_id(AGENT.locate(path)) == SESSION


def test_a_session_goes_back_to_its_place(tmp_path: Path) -> None:
    path = write_session(tmp_path)
    for file in (path, *project(tmp_path).rglob("agent-*.jsonl")):
        assert tmp_path / AGENT.target(Header("1.2", "", AGENT.id, session(file), {})) == file


# Messages


def test_roles_blocks_and_errors(tmp_path: Path) -> None:
    found = messages(write_session(tmp_path))
    roles = [message["role"] for message in found]
    assert roles == ["user", "assistant", "user", "assistant", "user", "user", "assistant", "user", "user", "assistant"]
    assert [block["type"] for block in found[1]["content"]] == ["thinking", "text", "tool_use"]
    results = [block for message in found for block in message["content"] if block["type"] == "tool_result"]
    assert [(result["tool_name"], result["is_error"]) for result in results] == [
        ("write_file", False),
        ("run_shell_command", True),
        ("todo_write", False),
        ("agent", False),
    ]
    assert found[5]["metadata"]["todos"] == [{"content": "Add a test", "status": "pending", "id": "1"}]
    assert found[0]["metadata"]["origin"] == "human"
    assert found[8]["metadata"]["is_meta"] is True


def test_the_records_between_messages_are_links_of_the_chain(tmp_path: Path) -> None:
    path = write_session(tmp_path)
    facts = AGENT.facts(AGENT.locate(path))
    assert facts.tree.is_linear
    assert len(facts.tree.path) == 10
    assert facts.links.missing == []


def test_records_have_kinds(tmp_path: Path) -> None:
    kinds = [(record["kind"], record["type"]) for record in records(write_session(tmp_path))]
    assert kinds == [
        ("state", "attribution_snapshot"),
        ("progress", "ui_telemetry"),
        ("progress", "ui_telemetry"),
        ("progress", "ui_telemetry"),
        ("prompt", "slash_command"),
        ("title", "custom_title"),
    ]


def test_unknown_records_are_kept_and_named(tmp_path: Path) -> None:
    log = Transcript()
    log.prompt("Ring.")
    log.system("from_the_future", new=1)
    log.add("dream", colour="blue")
    found = records(log.write(tmp_path))
    assert [(record["kind"], record["type"]) for record in found] == [("other", "from_the_future"), ("other", "dream")]
    assert list(AGENT.unknown_keys(log.records[-1])) == ["dream.colour"]


def test_the_title_is_the_last_one_given(tmp_path: Path) -> None:
    assert session(write_session(tmp_path))["title"] == "A bell for high water"
    log = Transcript()
    log.prompt("Ring the bell.", "<qwen:user-prompt-submit-context>\nTide: low\n</qwen:user-prompt-submit-context>")
    assert session(log.write(tmp_path))["title"] == "Ring the bell."


def test_pictures_of_a_tool_are_part_of_its_output(tmp_path: Path) -> None:
    log = Transcript()
    log.reply(call("call_1", "read_file", file_path="/x.png"), call("call_2", "read_file", file_path="/y.png"))
    picture = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0="}}
    response = {"id": "call_1", "name": "read_file", "response": {"output": "A picture."}}
    log.add("tool_result", message={"role": "user", "parts": [{"functionResponse": response}, picture]})
    nested = {"functionResponse": {**response, "id": "call_2", "parts": [picture]}}
    log.add("tool_result", message={"role": "user", "parts": [nested]})
    for message in messages(log.write(tmp_path))[1:]:
        (result,) = message["content"]
        assert [block["type"] for block in result["output"]] == ["text", "image"]
        assert "is_error" not in result


def test_parts_may_be_a_text(tmp_path: Path) -> None:
    log = Transcript()
    log.add("user", message={"role": "user", "parts": "Ring."})
    (message,) = messages(log.write(tmp_path))
    assert message["content"] == [{"type": "text", "text": "Ring."}]


@pytest.mark.parametrize(
    ("subtype", "is_meta"), [(None, False), ("mid_turn_user_message", False), ("notification", True), ("cron", True)]
)
def test_older_records_without_a_provenance(tmp_path: Path, subtype: str | None, is_meta: bool) -> None:
    log = Transcript()
    log.prompt("Ring.", provenance=None, subtype=subtype)
    (message,) = messages(log.write(tmp_path))
    assert message["metadata"].get("is_meta", False) is is_meta


def test_nothing_is_wrong_with_a_session(tmp_path: Path) -> None:
    write_session(tmp_path)
    (root,) = AGENT.roots(Host.at(tmp_path))
    for source in AGENT.discover(root):
        assert list(check_source(AGENT, source)) == []


# Counts


def test_usage_is_counted_once(tmp_path: Path) -> None:
    path = write_session(tmp_path)
    # Four replies, and one request that the client made for itself; that of the sub-agent is in its own transcript.
    total = used(path)
    assert (total.calls, total.input_tokens, total.cache_read_tokens) == (5, 5 * 300, 5 * 600)
    assert (total.output_tokens, total.reasoning_tokens) == (5 * 42, 5 * 10)
    (child,) = project(tmp_path).rglob("agent-*.jsonl")
    assert used(child).calls == 1
    assert AGENT.facts(AGENT.locate(child)).models == {"small-model": 1}


@pytest.mark.parametrize(
    ("candidates", "thoughts", "total", "output"),
    [(42, 10, 942, 42), (42, 10, 952, 52), (42, None, 942, 42), (5, 10, None, 15), (42, 10, None, 42)],
)
def test_thoughts_are_output_once(
    tmp_path: Path, candidates: int, thoughts: int | None, total: int | None, output: int
) -> None:
    log = Transcript()
    counts = {"promptTokenCount": 900, "candidatesTokenCount": candidates}
    log.reply({"text": "Dong."}, usageMetadata={**counts, "thoughtsTokenCount": thoughts, "totalTokenCount": total})
    assert used(log.write(tmp_path)).output_tokens == output


def test_a_branched_session_repeats_usage_under_the_same_ids(tmp_path: Path) -> None:
    path = write_session(tmp_path)
    lines = path.read_text().splitlines()
    other = "5a1d0c52-7b0e-4c5e-9d59-3f0c7f6a1e13"
    fork = []
    for record in map(json.loads, lines):
        origin = {"sessionId": SESSION, "messageUuid": record["uuid"]}
        fork.append(json.dumps({**record, "sessionId": other, "forkedFrom": origin}))
    copy = path.with_name(f"{other}.jsonl")
    copy.write_text("\n".join(fork) + "\n")
    ledger = AGENT.facts(AGENT.locate(path)).ledger
    copied = AGENT.facts(AGENT.locate(copy)).ledger
    # The sub-agent's transcript lies with the original; its usage is counted there, and not from telemetry.
    assert [call for call, *_ in ledger.each()] == [call for call, *_ in copied.each()]
    assert session(copy)["extensions"] == {"qwen-code": {"forked_from": SESSION}}


# Structure


def test_a_subagent_is_linked_on_both_sides(tmp_path: Path) -> None:
    path = write_session(tmp_path)
    (child,) = project(tmp_path).rglob("agent-*.jsonl")
    name = "general-purpose-call_4"
    links = session(path)["subagents"]
    assert links == [{"session_id": f"agent-{name}", "agent_id": name, "tool_id": "call_4"}]
    below = session(child)
    assert (below["id"], below["parent_session_id"], below["agent_id"]) == (f"agent-{name}", SESSION, name)
    assert below["is_agent_session"] is True
    assert below["workspace"] == FOLDER


def test_a_subagent_of_a_subagent_belongs_to_it(tmp_path: Path) -> None:
    path = write_session(tmp_path)
    above = "general-purpose-call_4"
    child = write_subagent(tmp_path, "explore-call_9", "call_9", parent=above)
    (parent,) = project(tmp_path).rglob(f"agent-{above}.jsonl")
    assert [link["session_id"] for link in session(path)["subagents"]] == [f"agent-{above}"]
    links = session(parent)["subagents"]
    assert links == [{"session_id": "agent-explore-call_9", "agent_id": "explore-call_9", "tool_id": "call_9"}]
    assert session(child)["parent_session_id"] == f"agent-{above}"
    assert "subagents" not in session(child)


def test_a_note_that_cannot_be_read_loses_only_the_call(tmp_path: Path) -> None:
    path = write_session(tmp_path)
    (meta,) = project(tmp_path).rglob("*.meta.json")
    meta.write_bytes(b"\xff{")
    (link,) = session(path)["subagents"]
    assert (link["session_id"], link["tool_id"]) == ("agent-general-purpose-call_4", None)


def test_what_was_taken_back_is_a_branch(tmp_path: Path) -> None:
    log = Transcript()
    log.prompt("One.")
    kept = log.reply({"text": "First."})
    log.prompt("Two.")
    left = log.reply({"text": "Second."})
    log.last = log.telemetry(prompt_id=f"{SESSION}########1")
    log.last = kept
    log.system("rewind", truncatedCount=2)
    path = log.write(tmp_path)
    facts = AGENT.facts(AGENT.locate(path))
    assert facts.links.uuid(facts.tree.path[-1]) == kept
    log.prompt("Three.")
    last = log.reply({"text": "Third."})
    facts = AGENT.facts(AGENT.locate(log.write(tmp_path)))
    active = [facts.links.uuid(node) for node in facts.tree.path]
    assert last in active and left not in active
    (fork,) = facts.tree.graph().fork_points
    assert (fork.uuid, len(fork.branches)) == (kept, 2)


def test_all_may_be_taken_back(tmp_path: Path) -> None:
    log = Transcript()
    log.prompt("One.")
    log.reply({"text": "First."})
    log.last = None
    log.system("rewind", truncatedCount=1)
    log.system("session_model", modelId="lab-model", authType="openai")
    facts = AGENT.facts(AGENT.locate(log.write(tmp_path)))
    assert list(facts.tree.path) == []


def test_a_compression_shows_its_summary(tmp_path: Path) -> None:
    log = Transcript()
    log.prompt("One.")
    log.reply({"text": "First."})
    history = [{"role": "user", "parts": [{"text": "<state_snapshot>We rang.</state_snapshot>"}]}, {"role": "model"}]
    log.system("chat_compression", info={"originalTokenCount": 9, "newTokenCount": 3}, compressedHistory=history)
    log.prompt("Two.")
    path = log.write(tmp_path)
    found = messages(path)
    assert found[2]["metadata"]["is_compact_summary"] is True
    assert found[2]["content"] == [{"type": "text", "text": "<state_snapshot>We rang.</state_snapshot>"}]
    facts = AGENT.facts(AGENT.locate(path))
    assert (facts.prompts, len(facts.tree.path)) == (2, 4)


def test_a_session_started_by_another_names_it(tmp_path: Path) -> None:
    log = Transcript()
    log.system("parent_session", parentSessionId="5a1d0c52-7b0e-4c5e-9d59-3f0c7f6a1e14")
    log.prompt("Ring.")
    extensions = session(log.write(tmp_path))["extensions"]
    assert extensions == {"qwen-code": {"started_by": "5a1d0c52-7b0e-4c5e-9d59-3f0c7f6a1e14"}}


# Recordings of the real client


def test_recorded_sessions_are_read_whole(shared: Path) -> None:
    folder = shared / "corpus" / "recorded" / "qwen"
    usage = [json.loads(line) for line in (folder / "usage_record.jsonl").read_text().splitlines()][-1]
    sources = list(AGENT.discover(folder / "projects"))
    assert len(sources) == 2
    facts = [AGENT.facts(source) for source in sources]
    for source in sources:
        assert verify(AGENT, source).different == []
        natives = [unit.native for unit in AGENT.units(source)]
        assert [key for native in natives for key in AGENT.unknown_keys(native)] == []
    totals = [each.ledger.total() for each in facts]
    counted = sum(totals, Usage())
    (model,) = usage["models"].values()
    assert (counted.calls, counted.output_tokens) == (model["requests"], model["outputTokens"])
    assert counted.input_tokens == model["inputTokens"] - model["cachedTokens"]
    assert (counted.cache_read_tokens, counted.reasoning_tokens) == (model["cachedTokens"], model["thoughtsTokens"])
    main, child = facts
    assert (main.messages, main.prompts, main.tool_calls, main.errors) == (20, 2, 8, 2)
    assert (child.messages, child.tool_calls) == (2, 0)
    assert main.tree.is_linear
    (link,) = AGENT.session(sources[0], main)["subagents"]
    assert link["session_id"] == AGENT.session(sources[1], child)["id"]


def test_published_samples_are_read_whole(shared: Path) -> None:
    paths = sorted((shared / "corpus" / "qwen").rglob("*.jsonl"))
    paths += sorted((shared / "corpus" / "recorded" / "foreign-accepted" / "qwen").rglob("*.jsonl"))
    assert paths
    for path in paths:
        claimant = registry.claimant(path)
        assert claimant is not None and claimant.id == "qwen-code"
        source = AGENT.locate(path)
        assert verify(AGENT, source).different == []
        assert [record["type"] for record in records(path) if record["kind"] == "other"] == []
