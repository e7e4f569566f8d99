"""The quick way, and the reading that does with one pass: nothing shows which way a record went."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clew.agents.base import SourceFile
from clew.agents.claude_code import ClaudeCode
from clew.agents.jsonl import Form
from clew.agents.mapping import FLAG, TEXT, Blocks, Context, Kind, Leaf, Nest, Shared, Table, Time
from clew.agents.quick import WORTH, Quick, Shapes
from clew.demo import write_demo
from clew.export import document as documents
from clew.export.document import write_document
from clew.export.verify import verify

CLAUDE = ClaudeCode()
SESSION = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
TIME = "2026-01-11T22:00:00.000Z"


def said(number: int, content: Any, **more: Any) -> dict[str, Any]:
    head = {"parentUuid": f"u{number - 1}" if number else None, "isSidechain": False, "type": "user"}
    body = {"message": {"role": "user", "content": content}, "uuid": f"u{number}", "timestamp": TIME}
    return {**head, **body, "sessionId": SESSION, **more}


def transcript(folder: Path, *lines: dict[str, Any] | bytes) -> SourceFile:
    path = folder / f"{SESSION}.jsonl"
    texts = [line if isinstance(line, bytes) else json.dumps(line, separators=(",", ":")).encode() for line in lines]
    path.write_bytes(b"".join(text + b"\n" for text in texts))
    return CLAUDE.locate(path)


def document(source: SourceFile) -> bytes:
    text = io.BytesIO()
    write_document(CLAUDE, source, text, timestamp=TIME)
    return text.getvalue()


def in_two_passes(source: SourceFile, monkeypatch: pytest.MonkeyPatch) -> bytes:
    with monkeypatch.context() as patch:
        patch.setattr(documents, "AT_ONCE", -1)
        return document(source)


def result(text: bytes) -> bytes:
    line = said(1, [{"tool_use_id": "t", "type": "tool_result", "content": "@"}])
    return json.dumps(line, separators=(",", ":")).encode().replace(b'"@"', text)


@pytest.mark.parametrize("text", [b'"caf\\u00e9"', b'"a\\/b"', b'"\\u0041"', b'[{"type":"text","text":"\\u0041"}]'])
def test_output_that_is_oddly_spelled_comes_back(tmp_path: Path, text: bytes) -> None:
    lines = [said(number, [{"tool_use_id": "t", "type": "tool_result", "content": "x"}]) for number in range(WORTH)]
    source = transcript(tmp_path, *lines, result(text), result(text))
    assert verify(CLAUDE, source).holds


def test_a_document_does_not_tell_what_was_read_before(tmp_path: Path) -> None:
    snapshot = {"messageId": "u0", "trackedFileBackups": {}, "timestamp": TIME}
    tracked = {"a.py": {"backupFileName": None, "version": 1, "backupTime": TIME}}
    record = {"type": "file-history-snapshot", "messageId": "u0", "snapshot": snapshot, "isSnapshotUpdate": False}
    lines = [said(number, "word", slug="calm", todos=[]) for number in range(4)]
    lines += [record] * 4 + [{**record, "snapshot": {**snapshot, "trackedFileBackups": tracked}}] * 4
    lines += [said(number, [{"type": "text", "text": "a"}, {"type": "odd"}]) for number in range(4)]
    source = transcript(tmp_path, *lines)
    first = document(source)
    assert [document(source) for _ in range(3)] == [first] * 3
    assert verify(CLAUDE, source).holds


def test_one_pass_gives_what_two_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_demo(tmp_path / "home")
    for path in sorted((tmp_path / "home" / ".claude").rglob("*.jsonl")):
        source = CLAUDE.locate(path)
        assert document(source) == in_two_passes(source, monkeypatch)


LATE = {
    "a slug": [said(0, "a"), said(1, "b"), said(2, "c", slug="calm-sea"), said(3, "d", slug="calm-sea")],
    "an agent": [said(0, "a"), said(1, "b", agentId="a1"), said(2, "c", agentId="a1")],
    "another session": [said(0, "a"), *(said(number, "b", sessionId=OTHER) for number in range(1, 4))],
    "a claim": [{"type": "summary", "summary": "s", "leafUuid": "u0"}, said(0, "a"), said(1, "b")],
    "no session": [{"type": "summary", "summary": "s", "leafUuid": "u0"}],
    "nothing": [],
}


@pytest.mark.parametrize("name", LATE)
@pytest.mark.parametrize("before", [0, 20])
def test_what_is_guessed_wrong_is_put_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, before: int
) -> None:
    # A long beginning is handed over before the guess can turn out to be wrong.
    long = [said(number, "x" * 20_000) for number in range(before)]
    source = transcript(tmp_path, *long, *LATE[name])
    assert document(source) == in_two_passes(source, monkeypatch)
    assert verify(CLAUDE, source).holds


def test_a_source_that_unpacks_to_much_is_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"type": "mode", "mode": "plan", "sessionId": SESSION}
    source = transcript(tmp_path, *(said(number, "x" * 5_000) for number in range(100)), record)
    expected = document(source)
    monkeypatch.setattr("clew.agents.claude_code.reading.BATCH", 1000)
    monkeypatch.setattr(documents, "LIMIT", 10_000)
    assert document(source) == expected


BLOCKS: dict[str, Kind] = {
    "text": Kind("text", Table("text", Leaf("type", "type", TEXT), Leaf("text", "text", TEXT)), ("text",)),
}
BODY = Table("body", Shared("role", "role"), Blocks("content", BLOCKS), Leaf("ok", "metadata.ok", FLAG))
PLAIN = Form(
    Table("line", Time("time", "timestamp"), Nest("body", BODY), known=["more"]),
    "user",
    given=("uuid", "metadata.turn"),
)
NOTE = Form(Table("note", Leaf("type", "type", TEXT), Time("time", "timestamp"), known=["more"]), kind="state")
LINE = {"time": TIME, "body": {"role": "user", "content": "word", "ok": True}, "more": [1, {"a": 2}]}


def learned(form: Form, value: dict[str, Any], give: Any = None) -> Quick:
    quick = Quick(Shapes({}), Context("any", {"role": None}), {}, b"\n", give=give)
    for _ in range(WORTH):
        quick.learn(b"", form, value)
    return quick


def spell(value: Any) -> bytes:
    return msgspec.json.encode(value) + b"\n"


def test_an_agent_may_give_what_does_not_stand_in_the_record() -> None:
    quick = learned(PLAIN, LINE, lambda line, index: (f"{line.time}-{index}", index))
    messages, records = bytearray(), bytearray()
    assert quick.take(b"", spell(LINE), 4, messages, records) is True
    found = json.loads(messages)
    assert (found["index"], found["uuid"], found["metadata"]) == (5, f"{TIME}-5", {"ok": True, "turn": 5})
    assert found["extensions"] == {"any": {"plain": True, "rest": {"more": [1, {"a": 2}]}}}
    assert not records


def test_an_agent_may_refuse_a_record() -> None:
    quick = learned(PLAIN, LINE, lambda _line, _index: None)
    messages = bytearray()
    assert quick.take(b"", spell(LINE), 4, messages, bytearray()) is None
    assert not messages


def test_records_that_are_no_messages_go_the_quick_way() -> None:
    note = {"type": "x", "time": TIME, "more": 1}
    quick = learned(NOTE, note)
    records = bytearray()
    assert quick.take(b"", spell(note), 7, bytearray(), records) is False
    expected = {
        "after": 7,
        "kind": "state",
        "type": "x",
        "timestamp": TIME,
        "extensions": {"any": {"rest": {"more": 1}}},
    }
    assert json.loads(records) == expected


@pytest.mark.parametrize(
    "text",
    [
        spell({**LINE, "new": 1}),
        spell({**LINE, "time": 1}),
        spell({**LINE, "body": {"content": "word", "role": "user", "ok": True}}),
        spell(LINE)[:-1],
        spell(LINE)[:-1] + b"\r\n",
        b" " + spell(LINE),
        spell(LINE).replace(b"word", b"\\u0077ord"),
        spell(LINE).replace(b"word", b"\xff"),
        spell(LINE).replace(TIME.encode(), b"yesterday"),
        b"[" * 5000,
    ],
)
def test_every_other_line_needs_the_general_way(text: bytes) -> None:
    quick = learned(PLAIN, LINE, lambda _line, _index: ("", 0))
    messages, records = bytearray(), bytearray()
    assert quick.take(b"", text, 0, messages, records) is None
    assert not messages and not records


class Watching:
    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.texts: list[bytes] = []

    def see(self, told: tuple[Any, ...], /) -> None:
        line, *values = told
        self.told.append((line.lacking, *values))

    def see_text(self, text: bytes) -> None:
        self.texts.append(text)


def test_who_watches_sees_every_line_once() -> None:
    shapes = Shapes({}, defaults={"line": {"lacking": None}}, wanted=("", "time", "body.ok", "body.none", "none.at"))
    watch = Watching()
    quick = Quick(shapes, Context("any", {"role": None}), {}, b"", give=lambda _line, _index: ("", 0), watch=watch)
    lines = [spell(LINE), b"{}\n", spell(LINE)]
    for _ in range(WORTH):
        quick.learn(b"", PLAIN, LINE)
    for line in lines:
        quick.take(b"", line, 0, bytearray(), bytearray())
    assert watch.told == [(None, TIME, True, None, None)] * 2
    assert watch.texts == [b"{}\n"]
