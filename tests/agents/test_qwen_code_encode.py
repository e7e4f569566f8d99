"""Sessions written for Qwen Code, and its own sessions written anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from clew.agents import registry
from clew.agents.base import SourceFile
from clew.agents.qwen_code import QwenCode
from clew.convert.prepare import prepare
from clew.export.verify import verify
from clew.host import Host
from tests.agents.qwen_sessions import FOLDER, SESSION, Transcript, project, write_session

AGENT = QwenCode()
CLAUDE = registry.get("claude-code")


def lines(path: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [record for record in found if record["type"] != "clew-origin"]


def claude_line(number: int, role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {
        "uuid": f"u{number}",
        "parentUuid": f"u{number - 1}" if number > 1 else None,
        "sessionId": "9d3c7c9e-51f7-4e0a-8f5c-0a9f6bd3a001",
        "type": role,
        "timestamp": f"2026-11-16T10:00:{number:02}.000Z",
        "cwd": FOLDER,
        "message": {"role": role, "content": list(blocks)},
    }


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(identity: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": "Bash", "input": {"command": "true"}}


def answer(identity: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identity, "content": "done"}


def converted_from_claude(home: Path, *records: dict[str, Any], **options: Any) -> Path:
    path = home / ".claude/projects/-home-ada-src-tidebell/9d3c7c9e-51f7-4e0a-8f5c-0a9f6bd3a001.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return convert(CLAUDE.locate(path), "qwen-code", home, **options)


def convert(source: SourceFile, target: str, home: Path, **options: Any) -> Path:
    made = prepare(registry.get(source.agent), source, target, **options).write(home, allow_loss=True)
    return Path(made.files[0])


def test_the_calls_of_a_reply_stand_in_one_record(tmp_path: Path) -> None:
    path = converted_from_claude(
        tmp_path,
        claude_line(1, "user", text("Ring.")),
        claude_line(2, "assistant", text("I ring."), use("call_1")),
        claude_line(3, "assistant", use("call_2")),
        claude_line(4, "user", answer("call_1"), answer("call_2"), text("Louder.")),
        claude_line(5, "assistant", text("Done.")),
    )
    records = lines(path)
    assert [record["type"] for record in records] == [
        "user",
        "assistant",
        "tool_result",
        "tool_result",
        "user",
        "assistant",
        "system",
    ]
    assert [next(iter(part)) for part in records[1]["message"]["parts"]] == ["text", "functionCall", "functionCall"]
    uuids = [record["uuid"] for record in records]
    assert [record["parentUuid"] for record in records] == [None, *uuids[:-1]]
    assert len(set(uuids)) == len(uuids)
    assert {record["sessionId"] for record in records} == {path.stem}
    assert {record["cwd"] for record in records} == {FOLDER}
    assert records[-1]["systemPayload"]["customTitle"] == "Ring."


def test_a_prompt_waits_for_the_results_before_it(tmp_path: Path) -> None:
    path = converted_from_claude(
        tmp_path,
        claude_line(1, "user", text("Ring.")),
        claude_line(2, "assistant", use("call_1")),
        claude_line(3, "user", text("And blow.")),
        claude_line(4, "user", answer("call_1")),
        claude_line(5, "assistant", text("Done.")),
    )
    kinds = [record["type"] for record in lines(path)]
    assert kinds == ["user", "assistant", "tool_result", "user", "assistant", "system"]


def test_a_call_without_a_result_holds_nothing_back(tmp_path: Path) -> None:
    path = converted_from_claude(
        tmp_path,
        claude_line(1, "user", text("Ring.")),
        claude_line(2, "assistant", use("call_1")),
        claude_line(3, "user", text("Stop.")),
        claude_line(4, "assistant", text("Stopped.")),
        claude_line(5, "user", text("Thanks.")),
    )
    texts = [record["message"]["parts"][0].get("text") for record in lines(path) if "message" in record]
    assert texts == ["Ring.", None, "Stop.", "Stopped.", "Thanks."]


def test_converting_back_gives_the_bytes(tmp_path: Path) -> None:
    path = write_session(tmp_path)
    for target in ("claude-code", "codex"):
        there, back = tmp_path / target, tmp_path / f"from-{target}"
        main = convert(AGENT.locate(path), target, there, find=find_subagent(tmp_path))
        returned = convert(registry.get(target).locate(main), "qwen-code", back)
        assert returned.relative_to(back) == path.relative_to(tmp_path)
        for file in project(tmp_path).rglob("*.json*"):
            assert (back / file.relative_to(tmp_path)).read_bytes() == file.read_bytes()


def find_subagent(home: Path) -> Any:
    def find(session: str) -> SourceFile | None:
        paths = list(project(home).rglob(f"{session}.jsonl"))
        return AGENT.locate(paths[0]) if paths else None

    return find


def test_a_converted_subagent_is_linked_to_its_call(tmp_path: Path) -> None:
    child = {**claude_line(1, "user", text("Count.")), "isSidechain": True, "agentId": "abc"}
    beside = tmp_path / ".claude/projects/-home-ada-src-tidebell/9d3c7c9e-51f7-4e0a-8f5c-0a9f6bd3a001/subagents"
    beside.mkdir(parents=True)
    (beside / "agent-abc.jsonl").write_text(json.dumps(child) + "\n")
    path = converted_from_claude(
        tmp_path,
        claude_line(1, "user", text("Ring.")),
        claude_line(2, "assistant", use("call_1")),
        {**claude_line(3, "user", answer("call_1")), "toolUseResult": {"agentId": "abc"}},
        find=lambda _session: CLAUDE.locate(beside / "agent-abc.jsonl"),
    )
    (written,) = project(tmp_path).rglob("agent-*.jsonl")
    source = AGENT.locate(path)
    (link,) = AGENT.session(source, AGENT.facts(source))["subagents"]
    assert (link["session_id"], link["tool_id"]) == (written.stem, "call_1")
    assert {record["sessionId"] for record in lines(written)} == {path.stem}


def test_the_answer_of_a_subagent_in_the_background_goes_along(tmp_path: Path) -> None:
    """It comes as a notification, and not as the result of the call."""
    log = Transcript()
    log.prompt("Count.")
    log.reply({"text": "A helper counts."})
    log.prompt("<task-notification><result>9 words</result></task-notification>", provenance="system")
    log.reply({"text": "9."})
    path = convert(AGENT.locate(log.write(tmp_path)), "claude-code", tmp_path)
    assert "9 words" in path.with_suffix(".jsonl").read_text()


def test_a_copy_has_a_new_id_in_every_record(tmp_path: Path) -> None:
    path = write_session(tmp_path)
    copy = convert(AGENT.locate(path), "qwen-code", tmp_path / "copy", find=find_subagent(tmp_path))
    assert copy.stem != SESSION
    changed = [{**record, "sessionId": copy.stem} for record in lines(path)]
    assert lines(copy) == changed
    (child,) = (copy.parents[1] / "subagents" / copy.stem).glob("*.jsonl")
    assert {record["sessionId"] for record in lines(child)} == {copy.stem}
    (link,) = AGENT.session(AGENT.locate(copy), AGENT.facts(AGENT.locate(copy)))["subagents"]
    assert (link["session_id"], link["tool_id"]) == (child.stem, "call_4")
    assert verify(AGENT, AGENT.locate(copy)).different == []


def test_a_copy_in_another_folder_names_it(tmp_path: Path) -> None:
    path = write_session(tmp_path)
    copy = convert(AGENT.locate(path), "qwen-code", tmp_path / "copy", workspace="/srv/bell.new")
    assert copy.parents[1].name == "-srv-bell-new"
    assert {record["cwd"] for record in lines(copy)} == {"/srv/bell.new"}


def test_a_branch_is_copied_as_a_chain(tmp_path: Path) -> None:
    log = Transcript()
    log.prompt("One.")
    kept = log.reply({"text": "First."})
    log.prompt("Two.")
    left = log.reply({"text": "Second."})
    log.telemetry(prompt_id=f"{SESSION}########1")
    log.last = kept
    log.system("rewind", truncatedCount=2)
    log.prompt("Three.")
    log.reply({"text": "Third."})
    log.telemetry(prompt_id=f"{SESSION}########2")
    source = AGENT.locate(log.write(tmp_path))
    for branch, words in ((left, ["One.", "First.", "Two.", "Second."]), ("6", ["One.", "First.", "Three.", "Third."])):
        records = lines(convert(source, "qwen-code", tmp_path / branch, branch=branch))
        chain = {record["uuid"]: record for record in records}
        found, uuid = [], records[-1]["uuid"]
        while uuid is not None:
            record = chain[uuid]
            found += [record["message"]["parts"][0]["text"]] if "message" in record else []
            uuid = record["parentUuid"]
        assert found[::-1] == words


def test_a_session_goes_where_the_environment_says(tmp_path: Path) -> None:
    profile = AGENT.target_profile()
    assert profile is not None
    place = ".qwen/projects/-x/chats/a.jsonl"
    host = Host(tmp_path, {"QWEN_HOME": "/srv/qwen"})
    assert profile.main_path(place, host) == Path("/srv/qwen/projects/-x/chats/a.jsonl")
    assert profile.main_path(place, Host.at(tmp_path)) == tmp_path / place
