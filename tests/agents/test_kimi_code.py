"""Kimi Code: journals of all agents of a session, as events, counts and files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, ClassVar

import pytest

from clew.agents.base import Agent, Claim, SourceFile
from clew.agents.file_evidence import FileContent, KnownContent
from clew.agents.kimi_code import KimiCode
from clew.agents.kimi_code.encode import folder_name
from clew.analysis.facts import Facts
from clew.analysis.usage import Usage
from clew.export.verify import verify
from clew.file_history.history import FileHistory
from clew.host import Host
from clew.model.json import JSON
from clew.testing import AgentConformance
from tests.cli.running import clew
from tests.demo_home import write_small_demo

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "kimi-code"
ID = "session_5d1f0c52-7a7e-4c0b-9d39-1f3a6f0e2b11"
FOLDER = FIXTURES / "sessions" / "wd_lighthouse_33491ff5a841" / ID
AGENT = KimiCode()


class TestKimiCode(AgentConformance):
    agent: ClassVar[Agent] = AGENT
    fixtures: ClassVar[list[Path]] = [
        FOLDER / "state.json",
        FOLDER / "agents" / "agent-0" / "wire.jsonl",
        FIXTURES / "journal" / "wire.jsonl",
    ]


def read(path: Path) -> tuple[SourceFile, Facts, list[dict[str, JSON]]]:
    source = AGENT.locate(path)
    return source, AGENT.facts(source), [unit.value for unit in AGENT.units(source) if unit.is_message]


def journal(folder: Path, *records: dict[str, Any]) -> Path:
    path = folder / "wire.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def user(text: str, **origin: Any) -> dict[str, Any]:
    message = {"role": "user", "content": [{"type": "text", "text": text}], "origin": origin or {"kind": "user"}}
    return {"type": "context.append_message", "message": message, "time": 1794300000000}


def loop(kind: str, **event: Any) -> dict[str, Any]:
    return {"type": "context.append_loop_event", "event": {"type": kind, **event}, "time": 1794300001000}


def texts(messages: list[dict[str, JSON]]) -> list[str]:
    return [block["text"] for message in messages for block in message["content"] if block["type"] == "text"]


def test_a_session_is_its_state_and_the_journal_of_its_main_agent(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES, tmp_path / ".kimi-code")
    (root,) = AGENT.roots(Host.at(tmp_path))
    found = {AGENT.session_id(source): source for source in AGENT.discover(root)}
    assert list(found) == [f"agent-0.{ID}", ID]
    assert (found[ID].path.name, found[ID].parts) == ("state.json", ("agents/main/wire.jsonl",))
    assert AGENT.locate(found[ID].path.parent / "agents" / "main" / "wire.jsonl") == found[ID]


def test_the_home_can_be_set() -> None:
    host = Host.at(Path("/home/ada"))._replace(env={"KIMI_CODE_HOME": "/data/kimi"})
    assert list(AGENT.roots(host)) == [Path("/data/kimi/sessions")]


def test_the_header_comes_from_the_state() -> None:
    source, facts, _ = read(FOLDER / "state.json")
    session = AGENT.session(source, facts)
    assert session["id"] == ID
    assert session["title"] == "Slow the lamp"
    assert session["workspace"] == "/home/ada/lighthouse"
    assert (session["started_at"], session["ended_at"]) == ("2026-11-10T08:40:01.250Z", "2026-11-10T08:40:16.500Z")


def test_each_part_of_a_step_is_a_message_and_the_step_counts_once() -> None:
    _, facts, messages = read(FOLDER / "state.json")
    first = [one for one in messages if one.get("metadata", {}).get("message_id", "").startswith("0b9a0001")]
    assert [message["content"][0]["type"] for message in first] == ["thinking", "text", "tool_use"]
    # Seven steps, and one request that compacted the context.
    usage = Usage(8, 7 * 120 + 50, 7 * 30 + 60, 0, 7 * 800 + 900)
    assert facts.ledger.by_model() == {"tide-model-2": usage}


def test_what_the_client_says_twice_is_one_message() -> None:
    _, facts, messages = read(FOLDER / "state.json")
    assert texts(messages).count("The lamp turns too fast. Slow it down.") == 1
    assert facts.prompts == 4


def test_a_failed_command_is_an_error() -> None:
    _, facts, messages = read(FOLDER / "state.json")
    failed = [block for message in messages for block in message["content"] if block.get("is_error")]
    assert [block["tool_name"] for block in failed] == ["Bash"]
    assert (facts.tool_calls, facts.errors) == (5, 1)


def test_the_todo_list_stands_with_the_message_that_follows_it() -> None:
    _, _, messages = read(FOLDER / "state.json")
    lists = [message["metadata"]["todos"] for message in messages if "todos" in message.get("metadata", {})]
    assert lists == [
        [{"content": "Slow the lamp", "status": "completed"}, {"content": "Oil the gears", "status": "in_progress"}]
    ]


def test_a_sub_agent_is_linked_on_both_sides() -> None:
    source, facts, _ = read(FOLDER / "state.json")
    link = {"session_id": f"agent-0.{ID}", "agent_id": "agent-0", "tool_id": "call_agent"}
    assert AGENT.session(source, facts)["subagents"] == [link]
    source, facts, _ = read(FOLDER / "agents" / "agent-0" / "wire.jsonl")
    child = AGENT.session(source, facts)
    assert (child["id"], child["parent_session_id"], child["is_agent_session"]) == (f"agent-0.{ID}", ID, True)
    assert child["title"] == "Count the gears in gears.txt."
    assert facts.ledger.by_model() == {"tide-model-2": Usage(2, 90, 20, 5, 10)}


def test_a_sub_agent_of_a_sub_agent_names_it_as_its_parent(tmp_path: Path) -> None:
    folder = tmp_path / "deep"
    shutil.copytree(FOLDER, folder)
    state = json.loads((folder / "state.json").read_text())
    state["agents"]["agent-1"] = {"parentAgentId": "agent-0"}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "agents" / "agent-1").mkdir()
    source, facts, _ = read(journal(folder / "agents" / "agent-1", user("Look closer.")))
    assert AGENT.session(source, facts)["parent_session_id"] == "agent-0.deep"


def test_older_clients_name_a_sub_agent_in_the_result_alone(tmp_path: Path) -> None:
    call = loop("tool.call", uuid="Agent_0", stepUuid="s", toolCallId="Agent_0", name="Agent", args={})
    result = loop("tool.result", toolCallId="Agent_0", result={"output": "agent_id: agent-3\nstatus: completed"})
    _, facts, _ = read(journal(tmp_path, call, result))
    assert [(link.agent_id, link.tool_id) for link in facts.subagents] == [("agent-3", "Agent_0")]


def test_an_undone_turn_stays_as_a_branch() -> None:
    _, facts, messages = read(FOLDER / "state.json")
    (red,) = [message for message in messages if texts([message]) == ["Paint the tower red."]]
    (white,) = [message for message in messages if texts([message]) == ["Paint the tower like this."]]
    assert red["parent_uuid"] == white["parent_uuid"]
    graph = facts.tree.graph()
    (fork,) = graph.fork_points
    assert [branch.uuid for branch in fork.branches] == [red["uuid"], white["uuid"]]
    assert white["uuid"] in graph.active_path
    assert red["uuid"] not in graph.active_path


def test_the_conversation_stands_where_the_last_undo_left_it(tmp_path: Path) -> None:
    _, facts, messages = read(journal(tmp_path, user("a"), user("b"), {"type": "context.undo", "count": 1}))
    assert facts.tree.graph().active_path == [messages[0]["uuid"]]


def test_an_undo_takes_the_reminders_of_its_prompt_along_and_stops_at_a_compaction(tmp_path: Path) -> None:
    owned = user("<system-reminder>for b</system-reminder>", kind="injection", ownerPromptId="b")
    b = user("b")
    b["message"]["id"] = "b"
    records = [user("a"), owned, b, {"type": "context.undo", "count": 1}, user("c")]
    _, _, messages = read(journal(tmp_path, *records))
    assert messages[3]["parent_uuid"] == messages[0]["uuid"]
    compaction = {"type": "context.apply_compaction", "summary": "all", "compactedCount": 1}
    _, _, messages = read(journal(tmp_path, user("a"), compaction, {"type": "context.undo", "count": 1}, user("c")))
    assert messages[2]["parent_uuid"] == messages[1]["uuid"]
    assert messages[1]["metadata"]["is_compact_summary"] is True


def test_nothing_precedes_the_first_message_after_the_context_was_cleared(tmp_path: Path) -> None:
    _, _, messages = read(journal(tmp_path, user("a"), {"type": "context.clear"}, user("c")))
    assert "parent_uuid" not in messages[1]


def test_pictures_are_decoded() -> None:
    _, _, messages = read(FOLDER / "state.json")
    (image,) = [block for message in messages for block in message["content"] if block["type"] == "image"]
    assert image == {"type": "image", "media_type": "image/png", "encoding": "base64", "image": "iVBORw0KGgo="}


def test_a_picture_in_a_file_of_its_own_is_read(tmp_path: Path) -> None:
    digest = "ab" * 32
    shown = user("Look.")
    shown["message"]["content"] = [{"type": "image_url", "imageUrl": {"url": f"blobref:image/png;{digest}"}}]
    path = journal(tmp_path, shown)
    (block,) = read(path)[2][0]["content"]
    assert (block["encoding"], block["image"]) == ("url", f"blobref:image/png;{digest}")
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / digest).write_bytes(b"picture")
    (block,) = read(path)[2][0]["content"]
    assert block == {"type": "image", "media_type": "image/png", "encoding": "base64", "image": "cGljdHVyZQ=="}


def test_usage_behind_a_step_counts_once() -> None:
    _, facts, messages = read(FIXTURES / "journal" / "wire.jsonl")
    assert facts.ledger.by_model() == {"tide-model-1": Usage(2, 22, 16, 6, 10)}
    assert messages[2]["content"][0]["output"] == [{"type": "text", "text": "yes"}]


def test_a_fork_has_the_ids_of_what_it_copied(tmp_path: Path) -> None:
    fork = tmp_path / "session_fork"
    shutil.copytree(FOLDER, fork)
    _, facts, messages = read(FOLDER / "state.json")
    _, copied, copies = read(fork / "state.json")
    assert [message["uuid"] for message in copies] == [message["uuid"] for message in messages]
    # Only such ids are the same message in another session.
    assert {len(message["uuid"]) for message in messages} == {36}
    assert [call for call, *_ in copied.ledger.each()] == [call for call, *_ in facts.ledger.each()]


def test_a_journal_with_the_second_family_of_records_alone_is_read(tmp_path: Path) -> None:
    def repeated(message: dict[str, Any], **meta: Any) -> dict[str, Any]:
        time = 1794300000000
        return {
            "type": "agent.message.appended",
            "kind": "event",
            "message": {"message": message, "meta": meta},
            "time": time,
        }

    call = {"type": "function", "id": "c1", "name": "Bash", "arguments": '{"command": "ls"}'}
    usage = {"inputOther": 3, "output": 2, "inputCacheRead": 1, "inputCacheCreation": 0}
    path = journal(
        tmp_path,
        repeated({"role": "user", "content": [{"type": "text", "text": "List."}]}, origin={"kind": "user"}),
        repeated({"role": "assistant", "content": [], "toolCalls": [call]}, messageId="m1", usage=usage),
        repeated({"role": "tool", "content": [{"type": "text", "text": "a b"}], "toolCallId": "c1"}),
    )
    _, facts, messages = read(path)
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert messages[1]["content"][0]["input"] == {"command": "ls"}
    assert messages[2]["content"][0]["tool_name"] == "Bash"
    assert facts.ledger.by_model() == {"": Usage(1, 3, 2, 0, 1)}


def test_unknown_records_and_keys_are_named() -> None:
    proof = verify(AGENT, AGENT.locate(FOLDER / "state.json"))
    assert (proof.unknown_types, proof.unknown_keys) == ({"lamp.polished": 1}, {"shine": 1})


@pytest.mark.parametrize(
    ("name", "head", "claim"),
    [
        ("wire.jsonl", b'{"type":"metadata","protocol_version":"1.5","created_at":1}\n', Claim.YES),
        ("wire.jsonl", b'{"type":"metadata","protocol_version":"1.3"}\n{"timestamp":1.5,"message":{}}\n', Claim.NO),
        ("state.json", b'{"enabled":false}', Claim.NO),
        ("state.json", b'{"id":"x","agents":{"main":{"homedir":"/x"}}}', Claim.YES),
        ("agents/main/wire.jsonl", b"", Claim.MAYBE),
        ("other.jsonl", b"", Claim.NO),
    ],
)
def test_its_files_are_known_by_their_first_bytes(name: str, head: bytes, claim: Claim) -> None:
    assert AGENT.claims(Path("/home/ada") / name, head) == claim


@pytest.mark.slow
def test_recorded_sessions_are_read_exactly(shared: Path) -> None:
    root = shared / "corpus" / "recorded" / "kimi-code" / "sessions"
    main, child = sorted(AGENT.discover(root), key=lambda source: source.path.name)
    usage = {}
    for source, requests, messages, calls, errors in ((main, 7, 23, 7, 1), (child, 2, 6, 1, 0)):
        proof, facts = verify(AGENT, source), AGENT.facts(source)
        assert (proof.different, proof.unknown_types, proof.unknown_keys) == ([], {}, {})
        assert (facts.messages, facts.tool_calls, facts.errors) == (messages, calls, errors)
        usage = facts.ledger.by_model()
        assert usage == {"lab-model": Usage(requests, 300 * requests, 42 * requests, 0, 600 * requests)}
    assert AGENT.session(child, AGENT.facts(child))["parent_session_id"] == AGENT.session_id(main)


# Files


def at_home(tmp_path: Path) -> Path:
    """A home with the session of the fixtures, and with a copy of the file that it edits."""
    shutil.copytree(FIXTURES, tmp_path / ".kimi-code")
    folder = tmp_path / ".kimi-code" / FOLDER.relative_to(FIXTURES)
    history = folder / "agents" / "main" / "file-history"
    history.mkdir()
    (history / "aa@v1").write_bytes(b"PERIOD = 4\n")
    return folder


def test_an_edit_is_applied_to_the_copy_that_was_made_before_it(tmp_path: Path) -> None:
    source = AGENT.locate(at_home(tmp_path) / "state.json")
    history = FileHistory(AGENT, source)
    timeline = history.timelines["/home/ada/lighthouse/lamp.py"]
    (content,) = history.contents([timeline.at(8)])
    assert content == FileContent(b"PERIOD = 9\n", True)
    assert timeline.at(10).certainty != "exact"  # a command ran


def written(tmp_path: Path, before: bytes, name: str, **arguments: JSON) -> KnownContent | None:
    """What a call leaves of a file that the client copied before it."""
    folder = tmp_path / "agents" / "main"
    (folder / "file-history").mkdir(parents=True)
    (folder / "file-history" / "x@v1").write_bytes(before)
    source = AGENT.locate(
        journal(
            folder,
            {"type": "config.update", "cwd": "/home/ada/bell"},
            user("Change it."),
            {"type": "file_history.tracked", "path": "a.txt", "entry": {"key": "file-history/x@v1", "version": 1}},
            loop("tool.call", uuid="c", stepUuid="s", toolCallId="c", name=name, args={"path": "a.txt", **arguments}),
            loop("tool.result", parentUuid="c", toolCallId="c", result={"output": "done"}),
        )
    )
    history = FileHistory(AGENT, source)
    (content,) = history.contents([history.timelines["/home/ada/bell/a.txt"].at(3)])
    return content


def test_an_edit_drops_a_byte_order_mark(tmp_path: Path) -> None:
    content = written(tmp_path, b"\xef\xbb\xbfone\r\ntwo\r\n", "Edit", old_string="two", new_string="2")
    assert content == FileContent(b"one\r\n2\r\n", True)


def test_text_can_be_appended(tmp_path: Path) -> None:
    content = written(tmp_path, b"one\n", "Write", content="two\n", mode="append")
    assert content == FileContent(b"one\ntwo\n", True)


# Sessions for the client


def convert(session: str, source: Path, agent: str, target: Path) -> dict[str, Any]:
    done = clew("--home", source, "convert", session, "--to", agent, "--home", target, "--allow-loss", "--json")
    assert done.code == 0, done.err
    outcome: dict[str, Any] = done.json
    return outcome


@pytest.fixture(scope="module")
def claude_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    write_small_demo(home)
    return home


def test_a_converted_session_has_a_state_and_a_journal(claude_home: Path, tmp_path: Path) -> None:
    row = clew("list", "--agent", "claude-code", "--home", claude_home, "--json").json[0]
    outcome = convert(row["id"], claude_home, "kimi-code", tmp_path)
    (main,) = [Path(path) for path in outcome["files"] if path.endswith("/state.json")]
    assert main.parent.name == outcome["session_id"]
    assert main.parent.parent.name == folder_name(row["workspace"])
    lines = (main.parent / "agents" / "main" / "wire.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["type"] == "metadata"
    # The client finds what it shows by how lines begin.
    assert all(line.startswith('{"type":"') for line in lines)
    assert not any('"profile.bind"' in line for line in lines)
    assert outcome["resume"][:2] == ["kimi", "-r"]
    (found,) = [row for row in clew("list", "--home", tmp_path, "--json").json if row["id"] == outcome["session_id"]]
    assert found["title"] == row["title"]


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_a_session_comes_back_byte_for_byte(claude_home: Path, agent: str, tmp_path: Path) -> None:
    for row in clew("list", "--agent", agent, "--home", claude_home, "--json").json:
        there, back = tmp_path / row["id"] / "there", tmp_path / row["id"] / "back"
        outcome = convert(row["id"], claude_home, "kimi-code", there)
        returned = convert(outcome["session_id"], there, agent, back)
        assert returned["session_id"] == row["id"]
        main = Path(row["source"]["path"])
        assert (back / main.relative_to(claude_home)).read_bytes() == main.read_bytes()


def test_what_is_added_to_a_converted_session_is_not_lost(claude_home: Path, tmp_path: Path) -> None:
    there, back = tmp_path / "there", tmp_path / "back"
    row = clew("list", "--agent", "claude-code", "--home", claude_home, "--json").json[0]
    outcome = convert(row["id"], claude_home, "kimi-code", there)
    (wire,) = [Path(path) for path in outcome["files"] if path.endswith("agents/main/wire.jsonl")]
    with wire.open("a") as stream:
        stream.write(json.dumps(user("One more thing.")) + "\n")
    returned = convert(outcome["session_id"], there, "claude-code", back)
    assert returned["session_id"] != row["id"]
    assert "One more thing." in clew("show", returned["session_id"], "--home", back).out


def test_a_session_is_copied_under_another_id(tmp_path: Path) -> None:
    at_home(tmp_path / "old")
    outcome = convert(ID, tmp_path / "old", "kimi-code", tmp_path / "new")
    new = clew("export", outcome["session_id"], "--home", tmp_path / "new").json
    old = clew("export", ID, "--home", tmp_path / "old").json
    assert [message["content"] for message in new["messages"]] == [message["content"] for message in old["messages"]]
    assert new["graph"]["active_path"] == old["graph"]["active_path"]
    (link,) = new["session"]["subagents"]
    assert clew("show", link["session_id"], "--home", tmp_path / "new").code == 0


def test_messages_of_a_document_become_a_journal(tmp_path: Path) -> None:
    at_home(tmp_path / "old")
    document = tmp_path / "session.json"
    document.write_bytes(clew("export", ID, "--home", tmp_path / "old").raw)
    done = clew("import", document, "--from-messages", "-o", tmp_path / "new")
    assert done.code == 0, done.err
    new = clew("export", ID, "--home", tmp_path / "new").json
    old = json.loads(document.read_bytes())
    assert [message["content"] for message in new["messages"]] == [message["content"] for message in old["messages"]]
    assert [len(fork["branches"]) for fork in new["graph"]["fork_points"]] == [2]
    assert new["session"]["title"] == "Slow the lamp"
