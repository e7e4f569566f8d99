"""Cline: sessions with sub-agents, tasks of the extensions, what counts, and what they prove about files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, ClassVar

import pytest

from clew.agents.base import Agent, Claim, Header, Unit
from clew.agents.cline import Cline, KiloCode, RooCode
from clew.agents.file_evidence import ABSENT, FileChange, FileContent
from clew.analysis.usage import Usage
from clew.convert.prepare import prepare
from clew.export.verify import verify
from clew.host import Host
from clew.model.json import JSON
from clew.testing import AgentConformance

FIXTURES = Path(__file__).parents[1] / "fixtures" / "cline"
SUBAGENT, SESSION = sorted(FIXTURES.rglob("*.messages.json"), reverse=True)
TASK = next(FIXTURES.rglob("api_conversation_history.json"))
CLINE = Cline()


class TestCline(AgentConformance):
    agent: ClassVar[Agent] = CLINE
    fixtures: ClassVar[list[Path]] = [SESSION, SUBAGENT, TASK]


class TestRooCode(AgentConformance):
    agent: ClassVar[Agent] = RooCode()
    fixtures: ClassVar[list[Path]] = sorted(FIXTURES.parent.glob("roo-code/*/tasks/*/api_conversation_history.json"))


class TestKiloCode(AgentConformance):
    agent: ClassVar[Agent] = KiloCode()
    fixtures: ClassVar[list[Path]] = sorted(FIXTURES.parent.glob("kilo-code/*/tasks/*/api_conversation_history.json"))


def session(path: Path, agent: Agent = CLINE) -> dict[str, JSON]:
    source = agent.locate(path)
    return agent.session(source, agent.facts(source))


def messages(path: Path, agent: Agent = CLINE) -> list[dict[str, JSON]]:
    return [unit.value for unit in agent.units(agent.locate(path)) if unit.is_message]


def changes(path: Path) -> list[FileChange]:
    source = CLINE.locate(path)
    return [each for each in CLINE.file_changes(source, CLINE.units(source)) if isinstance(each, FileChange)]


def write_session(folder: Path, content: list[dict[str, JSON]], manifest: dict[str, JSON] | None = None) -> Path:
    """Write a session with these messages."""
    path = folder / "1_a" / "1_a.messages.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"version": 1, "updated_at": "2026-11-01T08:00:00Z", "agent": "lead", "sessionId": "1_a"}
    path.write_text(json.dumps({**document, "messages": content}), encoding="utf-8")
    if manifest is not None:
        path.with_name("1_a.json").write_text(json.dumps(manifest), encoding="utf-8")
    return path


def test_the_manifest_gives_folder_and_branch_but_no_title_that_repeats_the_last_prompt() -> None:
    found = session(SESSION)
    assert found["id"] == "1793520000000_b3ll5"
    assert found["workspace"] == "/home/ada/tidebell"
    assert found["title"] == "Make the bell ring three times."
    assert found["started_at"] == "2026-11-01T08:00:00.100Z"
    assert CLINE.facts(CLINE.locate(SESSION)).git_branch == "main"


def test_a_title_of_its_own_and_the_session_it_was_forked_from_are_kept(tmp_path: Path) -> None:
    metadata = {"title": "Bells (fork)", "fork": {"forkedFromSessionId": "0_z"}}
    prompt = {"id": "m1", "role": "user", "content": "Ring.", "ts": 1793520000000}
    found = session(write_session(tmp_path, [prompt], {"prompt": "Ring.", "metadata": metadata}))
    assert found["title"] == "Bells (fork)"
    assert found["extensions"] == {"cline": {"forked_from": "0_z"}}


def test_prompts_lose_the_tags_that_the_client_puts_around_them() -> None:
    texts = [block["text"] for message in messages(SESSION) for block in message["content"] if "text" in block]
    assert texts[0] == "Make the bell ring three times."
    assert texts[-2].endswith('<user_input mode="plan">What next?</user_input>')
    assert messages(TASK)[0]["content"][0]["text"] == "Make a horn."


def test_results_are_readable_and_a_failing_command_is_an_error() -> None:
    results = [block for message in messages(SESSION) for block in message["content"] if block["type"] == "tool_result"]
    assert results[0]["output"] == "File created successfully at: /home/ada/tidebell/bell.py"
    assert [block["type"] for block in results[2]["output"]] == ["text", "image"]
    assert [block.get("is_error") for block in results] == [False, False, None, False, False, True, None]
    assert results[5]["output"] == "[Command exited with code 3]"


def test_attached_files_and_sealed_thoughts_have_their_place() -> None:
    *_, prompt, reply = messages(SESSION)
    assert prompt["content"][1] == {
        "type": "document",
        "encoding": "text",
        "document": "# Tide bell\n",
        "title": "/home/ada/tidebell/README.md",
    }
    assert reply["content"][0] == {"type": "unknown", "value": {"type": "redacted_thinking", "data": "c2VhbGVk"}}


def test_cached_input_is_counted_apart() -> None:
    assert CLINE.facts(CLINE.locate(SESSION)).ledger.total() == Usage(7, 2100, 294, 600, 3600, None, None, None)
    assert CLINE.facts(CLINE.locate(SUBAGENT)).ledger.total() == Usage(2, 600, 84, 0, 1200, None, None, None)


def test_counts_that_exclude_the_cache_are_taken_as_they_are(tmp_path: Path) -> None:
    metrics = {"inputTokens": 5, "outputTokens": 2, "cacheReadTokens": 100}
    path = write_session(tmp_path, [{"id": "m1", "role": "assistant", "content": "Ding.", "metrics": metrics}])
    assert CLINE.facts(CLINE.locate(path)).ledger.total() == Usage(1, 5, 2, None, 100, None, None, None)


def test_counts_out_of_range_are_unknown(tmp_path: Path) -> None:
    metrics = {"inputTokens": 10**30, "outputTokens": 2, "cacheReadTokens": -1}
    path = write_session(tmp_path, [{"id": "m1", "role": "assistant", "content": "Ding.", "metrics": metrics}])
    assert messages(path)[0]["metadata"]["token_usage"] == {"output_tokens": 2}


def test_sub_agents_are_linked_on_both_sides() -> None:
    child = "1793520000000_b3ll5__agent_1793520001050_w0rds"
    assert session(SESSION)["subagents"] == [
        {"session_id": child, "agent_id": "agent_1793520001050_w0rds", "tool_id": "c7"}
    ]
    found = session(SUBAGENT)
    assert (found["id"], found["parent_session_id"], found["is_agent_session"]) == (child, "1793520000000_b3ll5", True)
    assert found["workspace"] == "/home/ada/tidebell"


def test_a_task_has_the_counts_of_what_the_editor_displayed() -> None:
    facts = CLINE.facts(CLINE.locate(TASK))
    assert facts.ledger.by_model() == {"claude-sonnet-4-5": Usage(2, 305, 60, 110, 400, None, None, None)}
    found = session(TASK)
    assert (found["id"], found["workspace"], found["title"]) == ("1767254400000", "/home/ada/tidebell", "Make a horn.")
    kinds = {unit.value["type"]: unit.value["kind"] for unit in CLINE.units(CLINE.locate(TASK)) if not unit.is_message}
    assert kinds == {
        "text": "progress",
        "api_req_started": "cost",
        "tool": "progress",
        "completion_result": "progress",
    }


def test_file_changes_follow_the_editor() -> None:
    created, *others = changes(SESSION)
    assert created.before is ABSENT
    assert isinstance(created.after, FileContent) and created.after.exact
    read, image_read = [each for each in others if each.action == "read"]
    assert (read.path, image_read.path) == ("/home/ada/tidebell/flag.png", "/home/ada/tidebell/README.md")
    content: Any = created.after
    for change in others:
        if change.edit is not None:
            content = change.edit(content)
    assert content.body.decode() == (
        "# The bell.\ndef ring(times):\n    return ('dong ' * times).strip()\n\n\nprint(ring(3))\n"
    )


def test_a_task_shows_a_file_as_the_editor_saved_it() -> None:
    (change,) = changes(TASK)
    assert change.path == "/home/ada/tidebell/horn.py"
    assert change.after == FileContent(b'def blow():\n    return "toot"\n', False)


def test_an_extension_claims_its_own_tasks(tmp_path: Path) -> None:
    folders = {
        agent.id: tmp_path / ".config/Code/User/globalStorage" / agent.extension / "tasks/1"
        for agent in (CLINE, RooCode(), KiloCode())
    }
    head = TASK.read_bytes()[:4096]
    for agent in (CLINE, RooCode(), KiloCode()):
        shutil.copytree(TASK.parent, folders[agent.id])
        claims = {name: agent.claims(folder / TASK.name, head) for name, folder in folders.items()}
        assert claims == {name: Claim.YES if name == agent.id else Claim.NO for name in folders}
        found = [source for root in agent.roots(Host.at(tmp_path)) for source in agent.discover(root)]
        assert [source.path for source in found] == [folders[agent.id] / TASK.name]
        header = Header("", "", agent.id, session(found[0].path, agent), {})
        assert tmp_path / agent.target(header) == found[0].path
    assert CLINE.claims(TASK, head) == Claim.MAYBE


def test_sessions_go_back_to_where_they_were() -> None:
    for path in (SESSION, SUBAGENT):
        place = CLINE.target(Header("", "", "cline", session(path), {}))
        assert place == f".cline/data/sessions/{path.parent.name}/{path.name}"


def test_only_new_keys_are_unknown() -> None:
    units = [unit for path in (SESSION, SUBAGENT, TASK) for unit in CLINE.units(CLINE.locate(path))]
    assert [key for unit in units for key in CLINE.unknown_keys(unit.native)] == []
    assert list(CLINE.unknown_keys({"role": "user", "mood": 1})) == ["message.mood"]
    assert list(CLINE.unknown_keys({"type": "say", "mood": 1})) == ["displayed.mood"]


@pytest.mark.slow
def test_the_recorded_session_is_read_whole(shared: Path) -> None:
    paths = sorted((shared / "corpus" / "recorded" / "cline").rglob("*.messages.json"))
    totals = []
    for path in paths:
        source = CLINE.locate(path)
        proof, facts = verify(CLINE, source), CLINE.facts(source)
        assert (proof.different, proof.unknown_keys, proof.unknown_types) == ([], {}, {})
        totals.append((facts.ledger.total(), facts.messages, facts.prompts, facts.tool_calls, facts.errors))
    # Every request reports 300 tokens of input, 600 cached, 42 of output.
    assert totals == [
        (Usage(6, 1800, 252, 0, 3600, None, None, None), 13, 1, 6, 1),
        (Usage(2, 600, 84, 0, 1200, None, None, None), 4, 1, 1, 0),
    ]
    assert [child["tool_id"] for child in session(paths[0])["subagents"]] == ["call_846e4a414a83403b942e"]


@pytest.mark.slow
def test_public_samples_are_read_whole(shared: Path) -> None:
    for path in sorted((shared / "corpus" / "cline").rglob("api_conversation_history.json")):
        assert verify(CLINE, CLINE.locate(path)).different == []


def converted(tmp_path: Path, messages: list[dict[str, JSON]]) -> tuple[dict[str, JSON], dict[str, JSON]]:
    """The two files that are written for messages of another agent."""
    session = {"id": "s1", "workspace": "/home/ada/bell", "title": "Bell", "started_at": "2026-11-01T08:00:00Z"}
    units = [Unit(True, {"index": at, **message}, 0, 0, 0, ()) for at, message in enumerate(messages, 1)]
    header = Header("", "", "cline", session, {}, main_file="/data/s1.messages.json")
    files: dict[str, bytes] = {}
    for name, piece in CLINE.encode(header, units):
        files[name] = files.get(name, b"") + piece
    return json.loads(files[""]), json.loads(files["s1.json"])


def test_written_sessions_are_found_by_their_manifest(tmp_path: Path) -> None:
    document, manifest = converted(tmp_path, [{"role": "user", "content": [{"type": "text", "text": "Ring."}]}])
    assert (document["sessionId"], manifest["session_id"]) == ("s1", "s1")
    assert manifest["messages_path"] == "/data/s1.messages.json"
    assert manifest["metadata"] == {"title": "Bell"}
    assert [message["content"] for message in document["messages"]] == [[{"type": "text", "text": "Ring."}]]


def test_written_results_follow_the_reply_that_called_for_them(tmp_path: Path) -> None:
    def call(name: str) -> dict[str, JSON]:
        return {"type": "tool_use", "tool_id": name, "tool_name": "ring", "input": {}}

    def result(name: str) -> dict[str, JSON]:
        return {"type": "tool_result", "tool_id": name, "output": "dong", "is_error": True}

    document, _ = converted(
        tmp_path,
        [
            {"role": "assistant", "content": [call("a")], "metadata": {"token_usage": {"input_tokens": 5}}},
            {"role": "assistant", "content": [call("b"), call("c")]},
            {"role": "user", "content": [{"type": "text", "text": "Wait."}]},
            {"role": "user", "content": [result("b")]},
            {"role": "user", "content": [result("a"), result("x")]},
            {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
        ],
    )
    first, *others = document["messages"]
    assert [block["id"] for block in first["content"]] == ["a", "b", "c"]
    assert first["metrics"]["inputTokens"] == 5
    blocks = [block for message in others for block in message["content"]]
    assert [block.get("tool_use_id", block.get("text")) for block in blocks] == [
        "b",
        "a",
        "c",
        "Wait.",
        "dong",
        "Done.",
    ]
    assert blocks[2]["content"] == "no result was recorded"


def test_a_task_is_continued_as_a_session_and_tasks_of_other_extensions_are_not() -> None:
    profile = CLINE.target_profile()
    assert profile is not None
    assert profile.command({"id": "1_a"}) == ["cline", "--id", "1_a"]
    assert [profile.resumes_file(path, ()) for path in (SESSION, TASK)] == [True, False]
    assert (RooCode().target_profile(), KiloCode().target_profile()) == (None, None)
    configured = Host(Path("/home/ada"), {"CLINE_DATA_DIR": "/data"})
    assert profile.main_path(".cline/data/sessions/a/a.messages.json", configured) == Path(
        "/data/sessions/a/a.messages.json"
    )


def test_a_copy_of_a_session_keeps_its_records() -> None:
    source = CLINE.locate(SESSION)
    new = {**session(SESSION), "id": "s2"}
    files: dict[str, bytes] = {}
    for name, piece in CLINE.encode(Header("", "", "cline", new, {}), CLINE.units(source)):
        files[name] = files.get(name, b"") + piece
    before, after = json.loads(SESSION.read_bytes()), json.loads(files[""])
    assert after["messages"] == before["messages"]
    assert after["system_prompt"] == before["system_prompt"]
    assert (after["sessionId"], after["origin"]["sessionId"], after["origin"]["version"]) == ("s2", "s2", "3.0.65")


@pytest.mark.parametrize("odd", [[1], {"a": 1}, 7, None])
def test_ids_and_contents_of_other_types_are_no_error(odd: JSON, tmp_path: Path) -> None:
    blocks = [{"type": "tool_use", "id": odd, "name": odd, "input": odd}, {"type": "tool_result", "content": odd}, odd]
    path = write_session(tmp_path, [{"id": odd, "role": "assistant", "content": blocks, "metrics": odd, "ts": odd}])
    assert len(messages(path)) == 1
    assert changes(path) == []


def test_a_task_is_converted_to_a_session_of_the_newest_form(tmp_path: Path) -> None:
    written = prepare(CLINE, CLINE.locate(TASK), "cline").write(tmp_path, allow_loss=True)
    path = Path(written.files[0])
    assert path.name == f"{written.session_id}.messages.json"
    assert texts(messages(path)) == texts(messages(TASK)) != []


def texts(spoken: list[dict[str, JSON]]) -> list[str]:
    return [block["text"] for message in spoken for block in message["content"] if block["type"] == "text"]
