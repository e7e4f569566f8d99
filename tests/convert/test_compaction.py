"""A compacted session: the target's model gets the summary and what follows, as the source's own model would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clew.convert.losses import Converted, serious
from clew.convert.prepare import prepare
from tests.convert.said import Said, only, said
from tests.convert.transcripts import spoke, transcript

SUMMARY = "This session is being continued. We made a bell."


def compacted_claude(folder: Path, **details: Any) -> Path:
    """A transcript of two turns that is compacted between them."""
    call = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ring"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "dong"}
    boundary = {
        "type": "system",
        "subtype": "compact_boundary",
        "content": "Conversation compacted",
        "sessionId": "s",
        "cwd": "/home/ada",
        "uuid": "b1",
        "parentUuid": None,
        "logicalParentUuid": "u4",
        "compactMetadata": {"trigger": "auto", "preTokens": 9, **details},
    }
    return transcript(
        folder,
        spoke("user", "make a bell", uuid="u1", parentUuid=None),
        spoke("assistant", [call], uuid="u2", parentUuid="u1"),
        spoke("user", [result], uuid="u3", parentUuid="u2"),
        spoke("assistant", "it rings", uuid="u4", parentUuid="u3"),
        boundary,
        spoke("user", SUMMARY, uuid="u5", parentUuid="b1", isCompactSummary=True),
        spoke("user", "make a horn", uuid="u6", parentUuid="u5"),
        spoke("assistant", "it blows", uuid="u7", parentUuid="u6"),
    )


def compacted_codex(folder: Path, *history: dict[str, Any], message: str = SUMMARY) -> Path:
    """A rollout of two turns that is compacted between them."""

    def item(role: str, text: str) -> dict[str, Any]:
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    identity = "019f0000-0000-7000-8000-000000000005"
    records = [
        ("session_meta", {"id": identity, "cwd": "/home/ada", "timestamp": "2026-03-02T13:00:00.000Z"}),
        ("response_item", item("user", "make a bell")),
        ("response_item", item("assistant", "it rings")),
        ("compacted", {"message": message, "replacement_history": list(history)} if history else {"message": message}),
        ("response_item", item("user", "make a horn")),
        ("response_item", item("assistant", "it blows")),
    ]
    path = folder / f"rollout-2026-03-02T13-00-00-{identity}.jsonl"
    lines = [{"timestamp": "2026-03-02T13:00:00.000Z", "type": kind, "payload": payload} for kind, payload in records]
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    return path


def converted(path: Path, target: str, home: Path, **options: Any) -> Converted:
    found = only(path)
    return prepare(found.agent, found.source, target, **options).write(home)


def lines(written: Converted) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(written.files[0]).read_text().splitlines()]


def texts(written: Converted) -> list[Said]:
    found = only(Path(written.files[0]))
    return said(found.agent, found.source)


def sent_by_claude(written: Converted) -> list[Any]:
    """What Claude Code sends: its messages from the leaf up to the boundary, which has no parent."""
    records = {record["uuid"]: record for record in lines(written) if "uuid" in record}
    at = next(record for record in lines(written) if record["type"] == "last-prompt")["leafUuid"]
    sent: list[Any] = []
    while at is not None:
        record = records[at]
        sent.insert(0, record["message"]["content"] if "message" in record else record["subtype"])
        at = record["parentUuid"]
    return sent


def test_codex_gets_a_compacted_record(tmp_path: Path) -> None:
    written = converted(compacted_claude(tmp_path), "codex", tmp_path / "home")
    records = [record for record in lines(written) if record["type"] in ("response_item", "compacted")]
    kinds = [record["payload"].get("type", record["type"]) for record in records]
    assert kinds == ["message", "function_call", "function_call_output", "message", "compacted", "message", "message"]
    payload = records[4]["payload"]
    part = {"type": "input_text", "text": SUMMARY}
    assert payload == {
        "message": SUMMARY,
        "replacement_history": [{"type": "message", "role": "user", "content": [part]}],
    }
    assert [(loss.what, loss.is_note) for loss in written.losses] == [("4 messages before the compaction", True)]
    assert "kept in the file and not sent to the model" in written.losses[0].why


def test_claude_code_gets_a_boundary_and_a_summary(tmp_path: Path) -> None:
    prompt = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "make a bell"}]}
    context = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>"}]}
    rules = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "be kind"}]}
    summary = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": SUMMARY}]}
    path = compacted_codex(tmp_path, prompt, rules, context, summary)
    written = converted(path, "claude-code", tmp_path / "home")
    assert sent_by_claude(written) == ["compact_boundary", "make a bell", SUMMARY, "make a horn", "it blows"]
    boundary = next(record for record in lines(written) if record.get("subtype") == "compact_boundary")
    assert boundary["parentUuid"] is None and boundary["logicalParentUuid"] is not None
    assert ("user", "make a bell") in texts(written) and ("assistant", "it rings") in texts(written)
    assert [loss.what for loss in written.losses] == ["2 messages before the compaction"]


def test_an_old_record_of_codex_holds_the_summary_alone(tmp_path: Path) -> None:
    written = converted(compacted_codex(tmp_path), "claude-code", tmp_path / "home")
    assert sent_by_claude(written) == ["compact_boundary", SUMMARY, "make a horn", "it blows"]


def test_an_encrypted_summary_is_not_used(tmp_path: Path) -> None:
    path = compacted_codex(tmp_path, {"type": "compaction", "encrypted_content": "gAAA"}, message="")
    written = converted(path, "claude-code", tmp_path / "home")
    assert sent_by_claude(written) == ["make a bell", "it rings", "make a horn", "it blows"]
    assert [(loss.what, loss.is_note) for loss in written.losses] == [("the compaction of the session", True)]


@pytest.mark.parametrize("target", ["gemini", "sage-agent", "sage-emacs"])
def test_an_agent_without_compactions_gets_the_summary_as_a_message(target: str, tmp_path: Path) -> None:
    written = converted(compacted_claude(tmp_path), target, tmp_path / "home")
    assert texts(written) == [("user", SUMMARY), ("user", "make a horn"), ("assistant", "it blows")]
    assert not serious(written.losses)
    assert "4 messages before the compaction" in [loss.what for loss in written.losses]


@pytest.mark.parametrize("target", ["codex", "gemini", "sage-agent"])
def test_the_full_history_is_sent_if_asked(target: str, tmp_path: Path) -> None:
    written = converted(compacted_claude(tmp_path), target, tmp_path / "home", full_history=True)
    assert texts(written) == [
        ("user", "make a bell"),
        ("call", ""),
        ("result", "dong"),
        ("assistant", "it rings"),
        ("user", SUMMARY),
        ("user", "make a horn"),
        ("assistant", "it blows"),
    ]
    assert not any("compact" in loss.what for loss in written.losses)
    assert b'"compacted"' not in Path(written.files[0]).read_bytes()


def test_messages_that_the_source_keeps_are_sent_behind_the_summary(tmp_path: Path) -> None:
    segment = {"headUuid": "u4", "anchorUuid": "u5", "tailUuid": "u4"}
    written = converted(compacted_claude(tmp_path, preservedSegment=segment), "gemini", tmp_path / "home")
    expected = [("user", SUMMARY), ("assistant", "it rings"), ("user", "make a horn"), ("assistant", "it blows")]
    assert texts(written) == expected


def test_a_result_behind_the_compaction_of_its_call_is_text(tmp_path: Path) -> None:
    segment = {"headUuid": "u3", "anchorUuid": "u5", "tailUuid": "u4"}
    written = converted(compacted_claude(tmp_path, preservedSegment=segment), "codex", tmp_path / "home")
    kinds = [
        record["payload"].get("type", record["type"])
        for record in lines(written)
        if record["type"] in ("response_item", "compacted")
    ]
    assert kinds == ["message", "function_call", "compacted", "message", "message", "message", "message"]


def test_a_compacted_session_comes_back_byte_for_byte(tmp_path: Path) -> None:
    path = compacted_claude(tmp_path)
    there = converted(path, "codex", tmp_path / "there")
    back = converted(Path(there.files[0]), "claude-code", tmp_path / "back")
    assert Path(back.files[0]).read_bytes() == path.read_bytes()


def test_a_session_that_went_on_is_still_compacted_when_it_comes_back(tmp_path: Path) -> None:
    there = converted(compacted_claude(tmp_path), "codex", tmp_path / "there")
    prompt = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and a drum"}]}
    with Path(there.files[0]).open("a") as rollout:
        rollout.write(json.dumps({"timestamp": "2026-03-02T13:09:00Z", "type": "response_item", "payload": prompt}))
        rollout.write("\n")
    back = converted(Path(there.files[0]), "claude-code", tmp_path / "back")
    assert sent_by_claude(back) == ["compact_boundary", SUMMARY, "make a horn", "it blows", "and a drum"]
