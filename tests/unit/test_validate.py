"""All problems of a session: named, placed, and never an exception."""

import gzip
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clew.agents.base import SourceFile
from clew.agents.checking import check_source
from clew.agents.claude_code import ClaudeCode
from clew.analysis.document_validation import check_document
from clew.analysis.facts import Facts
from clew.analysis.validation import Conversation, Place, validate
from clew.model import Problem
from clew.model.codes import problem
from clew.model.unit import Unit
from tests.redact.planted import Planter
from tests.unit.samples import (
    Record,
    call,
    chain,
    claude_line,
    demo_transcripts,
    read_lines,
    result,
    say,
    seed,
    write_lines,
)

AGENT = ClaudeCode()


def check(folder: Path, *lines: Record | bytes | str) -> list[Problem]:
    return list(check_source(AGENT, write_lines(folder, *lines)))


def found_in(*messages: Record) -> list[Problem]:
    """The problems of messages as they stand in a document."""
    conversation, place = Conversation(Facts()), Place("session.jsonl")
    for message in messages:
        list(conversation.see(Unit(True, message, 0, 0, 0, ()), place))
    return [found for found in conversation.end() if found.code != "empty-session"]


def codes(problems: list[Problem]) -> list[str]:
    return [found.code for found in problems]


def tool_use(name: str) -> list[Record]:
    return [{"type": "tool_use", "id": name, "name": "Bash", "input": {}}]


def tool_result(name: str) -> list[Record]:
    return [{"type": "tool_result", "tool_use_id": name, "content": "x"}]


def test_a_sound_session_has_no_problems(tmp_path: Path) -> None:
    lines = [
        claude_line("user", "u1", None),
        claude_line("assistant", "a1", "u1", tool_use("t1")),
        claude_line("user", "u2", "a1", tool_result("t1")),
    ]
    assert check(tmp_path, *lines) == []


@pytest.mark.seed("S4-35")
@pytest.mark.parametrize("lines", [[], [{"type": "summary", "summary": "x", "leafUuid": "y"}]])
def test_an_empty_session_is_an_error(tmp_path: Path, lines: list[Record]) -> None:
    (found,) = check(tmp_path, *lines)
    assert (found.code, found.severity, found.message) == ("empty-session", "error", "empty session")
    assert found.file is not None


@pytest.mark.seed("S4-36")
def test_a_message_of_another_session_is_an_error(tmp_path: Path) -> None:
    lines = [claude_line("user", "u1", None), claude_line("user", "u2", "u1", sessionId="other")]
    (found,) = check(tmp_path, *lines)
    assert (found.code, found.severity, found.index, found.line) == ("other-session", "error", 2, 2)
    assert "message 2" in found.message
    assert "other" in found.message


@pytest.mark.seed("S4-37")
@pytest.mark.parametrize(
    ("time", "code"),
    [
        (None, "no-timestamp"),
        ("yesterday", "bad-timestamp"),
        ("9999-99-99T99:99:99.999Z", "bad-timestamp"),
        (["2026"], "bad-timestamp"),
        ("x" * 500, "bad-timestamp"),
    ],
)
def test_P13_a_message_without_a_time_is_an_error(tmp_path: Path, time: Any, code: str) -> None:
    line = claude_line("user", "u2", "u1", timestamp=time)
    (found,) = check(tmp_path, claude_line("user", "u1", None), line)
    assert (found.code, found.severity, found.index) == (code, "error", 2)
    assert found.message.startswith("message 2 ")
    assert len(found.message) < 200
    del line["timestamp"]
    assert codes(check(tmp_path, claude_line("user", "u1", None), line)) == ["no-timestamp"]


@pytest.mark.seed("S4-33")
@pytest.mark.parametrize("time", [1767261600, "2026-01-01T12:00:00+02:00", "2026-01-01 10:00:00"])
def test_unusual_times_are_read_as_utc(tmp_path: Path, time: Any) -> None:
    read = read_lines(tmp_path, claude_line("user", "u1", None, timestamp=time))
    assert read.messages[0]["timestamp"] == "2026-01-01T10:00:00Z"
    assert list(check_source(AGENT, read.source)) == []


@pytest.mark.seed("S4-31", "S4-34", "S4-15")
def test_bad_lines_are_reported_with_their_place_and_the_rest_loads(tmp_path: Path) -> None:
    first = json.dumps(claude_line("user", "u1", None)).encode()
    invalid = json.dumps(claude_line("user", "u2", "u1", "caf?")).encode().replace(b"?", b"\xff")
    read = read_lines(tmp_path, first, b"{broken", invalid, json.dumps(claude_line("user", "u3", "u2")))
    assert [message["uuid"] for message in read.messages] == ["u1", "u2", "u3"]
    bad, odd = list(check_source(AGENT, read.source))
    assert (bad.code, bad.line, bad.start, bad.end) == ("malformed-json", 2, len(first) + 1, len(first) + 8)
    assert bad.file == str(read.source.path)
    assert (odd.code, odd.line, odd.index) == ("invalid-utf8", 3, 2)


@pytest.mark.seed("S4-18")
def test_P12_missing_parents_and_circles_are_reported_where_they_stand(tmp_path: Path) -> None:
    found = check(
        tmp_path,
        claude_line("user", "u1", "gone"),
        claude_line("user", "u2", "u3"),
        claude_line("user", "u3", "u2"),
        claude_line("user", "u4", "u4"),
        {"type": "progress", "uuid": "p1", "parentUuid": "lost", "data": {}},
    )
    assert [(each.code, each.line, each.index) for each in found] == [
        ("missing-parent", 1, 1),
        ("parent-cycle", 2, 2),
        ("parent-cycle", 4, 4),
        ("missing-parent", 5, None),
    ]


@pytest.mark.slow
@pytest.mark.seed("S3-30")
def test_a_uuid_that_stands_twice_is_reported_however_far_apart(tmp_path: Path) -> None:
    between = [claude_line("user", f"n{number}", None) for number in range(5000)]
    (found,) = check(tmp_path, claude_line("user", "u1", None), *between, claude_line("user", "u1", None, "else"))
    assert (found.code, found.index) == ("duplicate-uuid", 5002)
    assert "message 1" in found.message


@pytest.mark.seed("S3-7")
def test_another_role_than_the_type_is_a_warning(tmp_path: Path) -> None:
    line = claude_line("user", "u1", None, message={"role": "assistant", "content": "hi"})
    (found,) = check(tmp_path, line)
    assert (found.code, found.severity, found.index) == ("wrong-role", "warning", 1)


@pytest.mark.seed("S1-12")
def test_calls_and_results_must_meet(tmp_path: Path) -> None:
    found = check(
        tmp_path,
        claude_line("assistant", "a1", None, tool_use("open")),
        claude_line("user", "u1", "a1", tool_result("orphan")),
        claude_line("user", "u2", "u1", tool_result("early")),
        claude_line("assistant", "a2", "u2", tool_use("early")),
        claude_line("user", "u3", "a2", tool_result("early")),
    )
    assert [(each.code, each.severity, each.index) for each in found] == [
        ("orphan-result", "warning", 2),
        ("unanswered-call", "warning", 1),
    ]


@pytest.mark.seed("S1-22")
def test_a_snapshot_of_an_unknown_message_is_a_warning(tmp_path: Path) -> None:
    known = {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}, "isSnapshotUpdate": False}
    found = check(tmp_path, known, known | {"messageId": "nobody"}, claude_line("user", "u1", None))
    assert [(each.code, each.severity, each.line) for each in found] == [("unknown-snapshot-message", "warning", 2)]


@pytest.mark.seed("S1-20")
def test_an_unknown_thinking_level_is_one_note_for_the_session() -> None:
    extreme: dict[str, Any] = {"timestamp": "2026-01-01T10:00:00Z", "thinking": {"level": "extreme"}}
    (found,) = validate([say(1, **extreme), say(2, **extreme)])
    assert (found.code, found.severity, found.index) == ("unknown-thinking-level", "note", 1)
    assert validate([say(1, timestamp="2026-01-01T10:00:00Z", thinking={"level": "none"})]) == []


@pytest.mark.seed("SX-9")
def test_unknown_things_are_notes_with_their_first_place(tmp_path: Path) -> None:
    strange = {"type": "weather", "sessionId": claude_line("user", "", None)["sessionId"], "degrees": 3}
    block = claude_line("assistant", "a1", "u1", [{"type": "hologram"}])
    found = check(tmp_path, claude_line("user", "u1", None, mood="good"), strange, strange, block)
    assert {(each.code, each.severity, each.line, each.message) for each in found} == {
        ("unknown-key", "note", 1, "unknown key 'user.mood'"),
        ("unknown-key", "note", 2, "unknown key 'unknown.degrees', 2 times"),
        ("unknown-type", "note", 2, "unknown record type 'weather', 2 times"),
        ("unknown-block", "note", 4, "unknown content block 'hologram'"),
    }


@pytest.mark.seed("S4-35", "S4-36", "S4-37", "S4-39")
def test_all_problems_are_reported(tmp_path: Path) -> None:
    lines = [
        claude_line("user", "u1", "gone"),
        claude_line("user", "u2", "u1", timestamp=None),
        claude_line("user", "u3", "u2", sessionId="other"),
    ]
    found = check(tmp_path, *lines)
    assert [(each.code, each.index) for each in found] == [
        ("missing-parent", 1),
        ("no-timestamp", 2),
        ("other-session", 3),
    ]
    assert codes(check(tmp_path)) == ["empty-session"]


@pytest.mark.seed("SX-9", "S4-14")
def test_a_call_that_another_session_made_is_answered_there() -> None:
    call = {"type": "tool_use", "tool_id": "t1", "tool_name": "spawn", "input": {}}
    message = {"index": 1, "role": "assistant", "timestamp": "2026-05-01T08:00:00.000Z", "content": [call]}
    assert codes(found_in(message)) == ["unanswered-call"]
    assert codes(found_in({**message, "extensions": {"codex": {"inherited": True}}})) == []


def test_the_examples_of_the_seeds_pass(tmp_path: Path) -> None:
    names = ("user", "assistant-thinking", "assistant-tool")
    found = check(tmp_path, *(seed(f"seed-004/{name}") for name in names))
    assert codes(found) == ["unanswered-call"]


def test_an_unreadable_source_is_a_problem(tmp_path: Path) -> None:
    (found,) = check_source(AGENT, AGENT.locate(tmp_path / "nothing.jsonl"))
    assert (found.code, found.severity) == ("unreadable", "error")


def test_a_damaged_archive_is_a_problem(tmp_path: Path) -> None:
    lines = b"".join(json.dumps(claude_line("user", f"u{at}", None)).encode() + b"\n" for at in range(500))
    path = tmp_path / "0b0e2d8c-5a0f-4a5e-9d53-0d5a4f3c2b11.jsonl.gz"
    path.write_bytes(gzip.compress(lines)[:-200])
    assert "damaged-archive" in codes(list(check_source(AGENT, AGENT.locate(path))))


class Strict(ClaudeCode):
    """An agent with rules of its own."""

    def check(self, source: SourceFile, facts: Facts) -> Iterator[Problem]:
        yield problem("time-missing", file=str(source.path), line=2)
        yield problem("metadata-missing", file="metadata.json")


def test_what_an_agent_says_itself_is_not_said_again(tmp_path: Path) -> None:
    lines = [claude_line("user", f"u{at}", None, timestamp=None) for at in range(3)]
    found = list(check_source(Strict(), write_lines(tmp_path, *lines)))
    assert [(each.code, each.line) for each in found] == [
        ("time-missing", 2),
        ("metadata-missing", None),
        ("no-timestamp", 1),
        ("no-timestamp", 3),
    ]


@pytest.mark.seed("S0-43", "S0-44", "S0-45")
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ({"role": "tool", "tool_call_id": "t", "content": "x"}, ["tool-role", "time-missing", "orphan-result"]),
        ({"role": "wizard", "content": "x", "timestamp": "2026-01-11T22:00:00Z"}, ["bad-role"]),
        ({"role": "user", "content": "", "timestamp": "2026-01-11T22:00:00Z"}, ["bad-content"]),
        ({"role": "user", "content": ["x"], "timestamp": "2026-01-11T22:00:00Z"}, ["bad-content"]),
        ({"role": "user", "content": "x"}, ["time-missing"]),
        ({"role": "user", "content": "x", "timestamp": "yesterday"}, ["bad-timestamp"]),
        ({"role": "system", "content": "x", "timestamp": "2026-01-11T22:00:00+0000"}, []),
    ],
)
def test_the_rules_of_sage_emacs_come_through(tmp_path: Path, line: Record, found: list[str]) -> None:
    from clew.agents.sage_emacs import SageEmacs

    path = tmp_path / "history" / "20260110-120000.jsonl"
    path.parent.mkdir()
    sound = {"role": "user", "content": "hi", "timestamp": "2026-01-11T22:00:00Z"}
    path.write_text(f"{json.dumps(sound)}\n{json.dumps(line)}\n", encoding="utf-8")
    agent = SageEmacs()
    problems = [each for each in check_source(agent, agent.locate(path)) if each.severity != "note"]
    notes = [each for each in check_source(agent, agent.locate(path)) if each.code == "time-missing"]
    assert sorted(codes(problems) + codes(notes)) == sorted(found)


@pytest.mark.seed("S4-38")
def test_problems_are_plain_values(tmp_path: Path) -> None:
    import msgspec

    (found,) = check(tmp_path)
    assert msgspec.json.decode(msgspec.json.encode(found))["code"] == "empty-session"


def test_messages_already_read_are_checked_the_same_way(tmp_path: Path) -> None:
    for read in demo_transcripts(tmp_path / "demo"):
        general = [each for each in check_source(AGENT, read.source) if each.index is not None and not each.path]
        again = [each for each in validate(read.messages, read.records) if each.index is not None and not each.path]
        ours = {"orphan-result", "unanswered-call"}
        assert [(e.code, e.index) for e in general if e.code in ours] == [
            (e.code, e.index) for e in again if e.code in ours
        ]


@pytest.mark.seed("SX-9")
def test_real_files_never_stop_the_check(shared: Path) -> None:
    checked = 0
    for path in sorted((shared / "corpus" / "claude-code").rglob("*.jsonl")):
        for found in check_source(AGENT, AGENT.locate(path)):
            assert found.code not in ("unknown-type", "unknown-key", "unknown-block") or found.severity == "note"
        checked += 1
    assert checked


@pytest.mark.slow
@pytest.mark.seed("S4-30")
def test_content_is_never_held(tmp_path: Path) -> None:
    text = "x" * 20_000
    lines = [claude_line("user", f"u{at}", f"u{at - 1}" if at else None, text) for at in range(1000)]
    source = write_lines(tmp_path, *lines)
    del lines
    list(check_source(AGENT, source))
    tracemalloc.start()
    assert list(check_source(AGENT, source)) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 << 20, f"{peak} bytes for a file of {source.size}"


EXAMPLE = "seed-002/example-document"


@pytest.mark.seed("S2-23")
def test_indexes_of_a_document_are_dense() -> None:
    document = seed(EXAMPLE)
    document["messages"][1]["index"] = 3
    assert [(each.code, each.path) for each in check_document(document)] == [("bad-index", "$.messages[1].index")]
    late = seed(EXAMPLE) | {"records": [{"after": 9, "kind": "title"}]}
    assert [(each.code, each.path) for each in check_document(late)] == [("bad-index", "$.records[0].after")]


@pytest.mark.seed("S2-40", "S2-39")
def test_the_graph_of_a_document_names_its_messages() -> None:
    document = seed(EXAMPLE)
    document["graph"]["active_path"].append("msg-009")
    branch = {"uuid": "msg-002", "index": 3}
    document["graph"]["fork_points"] = [{"uuid": "msg-001", "index": 1, "branches": [branch]}]
    assert codes(check_document(document)) == ["bad-graph", "bad-graph"]


def test_every_wrong_message_of_a_document_is_reported() -> None:
    document = seed(EXAMPLE)
    document["messages"][0]["role"] = "tool"
    document["messages"][2]["content"] = None
    found = check_document(json.dumps(document).encode(), "a.json")
    assert [(each.code, each.index, each.path, each.file) for each in found] == [
        ("bad-document", 1, "$.messages[0].role", "a.json"),
        ("bad-document", 3, "$.messages[2].content", "a.json"),
    ]


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b'{"messages":3}', b'{"messages":[],"records":3}', b'{"messages":[]}']
)
def test_what_is_no_document_is_one_problem(text: bytes) -> None:
    assert codes(check_document(text)) == ["bad-document"]


@pytest.mark.seed("S2-10")
def test_the_time_of_a_document_is_a_time() -> None:
    (found,) = check_document(seed(EXAMPLE) | {"export_timestamp": "today"})
    assert (found.code, found.path) == ("bad-timestamp", "$.export_timestamp")


def test_conversations_in_documents_are_checked_too() -> None:
    messages = chain(say(1, "user", "hi"), say(2, "assistant", call("t1")), say(3, "user", result("t2")))
    document = seed(EXAMPLE) | {
        "messages": messages,
        "graph": {"is_linear": True, "fork_points": [], "active_path": []},
    }
    assert codes(check_document(document)) == ["no-timestamp"] * 3 + ["orphan-result", "unanswered-call"]


def test_RD06_no_half_of_a_token_is_told(tmp_path: Path) -> None:
    token = Planter("validate").github()
    times = [f"{'x' * length} {token}" for length in range(0, 60, 10)]
    lines = [
        claude_line("user", f"u{at}", f"u{at - 1}" if at else None, timestamp=each) for at, each in enumerate(times)
    ]
    found = check(tmp_path, *lines)
    told = [problem.message for problem in found if problem.code == "bad-timestamp"]
    assert len(told) == len(times)
    for text in told:
        assert token in text or not any(token[at : at + 8] in text for at in range(len(token) - 8)), text
