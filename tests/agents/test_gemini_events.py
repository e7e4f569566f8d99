"""Gemini CLI's sessions as events."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.base import SourceFile
from clew.agents.gemini import records as gemini_records
from clew.agents.tools import RecentCalls
from clew.analysis.facts import collect_facts
from clew.export.verify import verify
from clew.io.codec import dumps
from clew.model import Message, Problem, Record
from clew.model.blocks import Image, Text, Thinking, ToolResult, ToolUse, Unknown
from clew.model.events import Event, SessionInfo, SubagentStarted
from clew.model.json import JSON
from clew.model.message import SourceRef
from tests.agents.gemini_worlds import (
    AGENT,
    NAME,
    SESSION,
    call,
    document,
    gemini,
    header,
    log,
    replaced,
    rewind,
    tokens,
    user,
    write,
)
from tests.json_values import values as json_values


def events(path: Path) -> list[Event]:
    return list(AGENT.events(AGENT.locate(path)))


def messages(path: Path) -> list[Message]:
    return [event for event in events(path) if isinstance(event, Message)]


def problems(path: Path) -> list[tuple[str, int | None]]:
    return [(event.code, event.line) for event in events(path) if isinstance(event, Problem)]


def summary(path: Path) -> list[tuple[str, JSON, SourceRef]]:
    """Role and id of messages, kind and message id of records, each with its place."""
    found: list[tuple[str, JSON, SourceRef]] = []
    for event in events(path):
        if isinstance(event, Message):
            assert isinstance(event.source, SourceRef)
            found.append((event.role, event.uuid, event.source))
        elif isinstance(event, Record):
            assert isinstance(event.source, SourceRef)
            found.append((event.kind, event.message_uuid or None, event.source))
    return found


def test_a_call_and_its_result_are_two_messages_of_one_record(tmp_path: Path) -> None:
    reply = gemini(
        "b",
        thoughts=[{"subject": "Bell", "description": "Look first.", "timestamp": "2026-10-20T09:15:01.000Z"}],
        tokens=tokens(100, 10, cached=60, thoughts=5),
        model="gemini-3-pro",
        toolCalls=[call("c", timestamp="2026-10-20T09:15:09.000Z", agentId="agent-1")],
    )
    path = log(tmp_path, header(), user("a"), reply)
    _, asked, replied, started, answered, _ = (event for event in events(path) if not isinstance(event, Record))
    assert isinstance(asked, Message) and asked.content == [Text(text="Ring the bell.")]
    assert isinstance(replied, Message) and isinstance(answered, Message)
    assert replied.content == [
        Thinking(thinking="Bell\nLook first."),
        Text(text="Ding."),
        ToolUse(tool_id="c", tool_name="read_file", input={"file_path": "bell.py"}),
    ]
    assert msgspec.to_builtins(replied.metadata) == {
        "model": {"name": "gemini-3-pro"},
        "token_usage": {
            "input_tokens": 40,
            "output_tokens": 15,
            "cache_read_tokens": 60,
            "reasoning_tokens": 5,
        },
        "message_id": f"{SESSION} b",
    }
    assert started == SubagentStarted(agent_id="agent-1", tool_id="c")
    assert (answered.uuid, answered.parent_uuid, answered.role) == ("b:results", "b", "user")
    assert answered.timestamp == "2026-10-20T09:15:09.000Z"
    assert answered.content == [ToolResult(tool_id="c", tool_name="read_file", output="done", is_error=False)]
    assert answered.source == replied.source == SourceRef(0, 2)


def test_a_message_stands_at_its_first_place_with_its_last_version(tmp_path: Path) -> None:
    path = log(tmp_path, header(), gemini("a", "One."), gemini("a", "Two."), user("b"), gemini("a", "Three."))
    assert summary(path) == [
        ("state", None, SourceRef(0, 0)),
        ("assistant", "a", SourceRef(0, 4)),
        ("progress", "a", SourceRef(0, 1)),
        ("progress", "a", SourceRef(0, 2)),
        ("user", "b", SourceRef(0, 3)),
        ("link", "a", SourceRef(0, 4)),
    ]
    assert messages(path)[0].content == [Text(text="Three.")]


def test_a_rewind_moves_the_leaf_and_the_next_parent(tmp_path: Path) -> None:
    records = [header(), user("a"), gemini("b", toolCalls=[call("c")]), user("d"), rewind("d"), user("e")]
    found = {message.uuid: message.parent_uuid or None for message in messages(log(tmp_path, *records))}
    assert found == {"a": None, "b": "a", "b:results": "b", "d": "b:results", "e": "b:results"}
    assert next(event for event in events(log(tmp_path, *records))) == SessionInfo(
        session_id=SESSION, leaf_uuid="e", has_derived_parents=True
    )
    assert collect_facts(events(log(tmp_path, *records, rewind("a")))).leaf_uuid == ""


def test_a_message_that_comes_back_follows_the_results_of_one_that_stands_behind_it(tmp_path: Path) -> None:
    records = [header(), user("a"), user("b"), rewind("a"), gemini("c", toolCalls=[call("d")]), user("b")]
    found = events(log(tmp_path, *records))
    facts = collect_facts(found)
    assert [event.parent_uuid for event in found if isinstance(event, Message) and event.uuid == "b"] == ["c:results"]
    assert facts.tree.graph().active_path == ["c", "c:results", "b"]


def test_elements_of_a_document_are_numbered(tmp_path: Path) -> None:
    path = document(tmp_path, user("a"), {"strange": 1}, gemini("b"), 7)
    assert summary(path) == [
        ("state", None, SourceRef(0, 0)),
        ("user", "a", SourceRef(0, 1)),
        ("other", None, SourceRef(0, 2)),
        ("assistant", "b", SourceRef(0, 3)),
        ("fragment", None, SourceRef(0, 4)),
    ]
    assert problems(path) == [("not-an-object", None)]


def test_messages_of_several_files_are_one_session(tmp_path: Path) -> None:
    document(tmp_path, user("a"), gemini("b"))
    path = log(tmp_path, header(lastUpdated="2026-10-21T00:00:00.000Z"), user("a"), gemini("b"), user("c"))
    found = messages(path)
    assert [(message.uuid, message.source) for message in found] == [
        ("a", SourceRef(1, 1)),
        ("b", SourceRef(1, 2)),
        ("c", SourceRef(1, 3)),
    ]


@pytest.mark.parametrize("cut", [20, 200, 420])
def test_a_torn_document_gives_its_whole_messages(tmp_path: Path, cut: int) -> None:
    whole = document(tmp_path, user("a"), gemini("b"), user("c")).read_bytes()
    path = write(tmp_path, whole[:-cut], f"{NAME}.json", "torn")
    kept = [message.uuid for message in messages(path)]
    assert kept == ["a", "b", "c"][: len(kept)] and len(kept) < 3 + (cut == 20)
    assert [code for code, _ in problems(path)] == ["torn-tail"]


def test_a_damaged_line_is_a_problem_with_its_place(tmp_path: Path) -> None:
    path = log(tmp_path, header(), user("a"))
    path.write_bytes(path.read_bytes() + b'{"id":"b","toolCalls":[{"id":"x","na\n' + b'{"id":"c","type":"user"}\n')
    assert problems(path) == [("malformed-json", 3)]
    assert [message.uuid for message in messages(path)] == ["a", "c"]


def test_a_damaged_archive_is_a_problem(tmp_path: Path) -> None:
    plain = log(tmp_path, header(), *(user(f"u{number}", str(number) * 90) for number in range(900))).read_bytes()
    path = write(tmp_path, gzip.compress(plain)[:-2000], f"{NAME}.jsonl.gz", "packed")
    assert "damaged-archive" in [code for code, _ in problems(path)]
    assert messages(path)


def test_a_file_too_large_to_hold_gives_the_same_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [header(), gemini("a", "One."), user("b"), gemini("a", "Two.", toolCalls=[call("c")]), rewind("b")]
    paths = [log(tmp_path, *records, replaced(user("s"), user("b"))), document(tmp_path, *records[1:4], project="x")]
    held = [events(path) for path in paths]
    monkeypatch.setattr(gemini_records, "HELD_BYTES", 10)
    assert [events(path) for path in paths] == held


class _Upper:
    """Masks every `bell`."""

    def open(self, opened: Callable[[], BinaryIO]) -> BinaryIO:
        with opened() as stream:
            return BytesIO(stream.read().replace(b"bell", b"****"))

    def value(self, value: JSON) -> JSON:
        return value


def test_a_masked_session_is_decoded_from_masked_bytes(tmp_path: Path) -> None:
    document(tmp_path, user("a"))
    source: SourceFile = AGENT.locate(log(tmp_path, header(), user("a"), user("b")))
    masked = msgspec.structs.replace(source, mask=_Upper())
    texts = [event.content for event in AGENT.events(masked) if isinstance(event, Message)]
    assert texts == [[Text(text="Ring the ****.")]] * 2


@pytest.mark.parametrize("where", ["toolCalls", "content"])
def test_a_result_without_a_name_has_that_of_its_call(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(number: int) -> JSON:
        if where == "toolCalls":
            return gemini(f"g{number}", toolCalls=[call(f"c{number}", "glob", "executing")])
        return gemini(f"g{number}", [{"functionCall": {"id": f"c{number}", "name": "glob", "args": {}}}])

    monkeypatch.setattr("clew.agents.decoding.RecentCalls", lambda: RecentCalls(2))
    answers = [{"functionResponse": {"id": f"c{number}", "response": {"output": "x"}}} for number in range(3)]
    path = log(tmp_path, header(), user("u"), *(asked(number) for number in range(3)), user("r", answers))
    results = [block for block in messages(path)[-1].content if isinstance(block, ToolResult)]
    assert [result.tool_name for result in results] == [None, "glob", "glob"]


def test_outputs_with_attachments_are_blocks(tmp_path: Path) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    answered = call("c")
    answered["result"].append(picture)
    (_, answer) = messages(log(tmp_path, header(), gemini("b", toolCalls=[answered])))
    assert isinstance(answer.content[0], ToolResult)
    assert answer.content[0].output == [
        {"type": "text", "text": "done"},
        {"type": "image", "media_type": "image/png", "encoding": "base64", "image": "aGk="},
    ]
    (prompt,) = messages(log(tmp_path, header(), user("a", ["See:", picture, {"odd": 1}])))
    assert [type(block) for block in prompt.content] == [Text, Image, Unknown]


@pytest.mark.parametrize("depth", [50, 150, 500, 800, 850, 900, 950, 5000])
@pytest.mark.parametrize("key", ["args", "resultDisplay", "result"])
def test_P04_deep_values_are_no_danger(tmp_path: Path, depth: int, key: str) -> None:
    nested = b'{"a":' * depth + b"1" + b"}" * depth
    path = log(tmp_path, header(), user("u"), gemini("b", toolCalls=[{**call("c"), key: "@"}]), user("v"))
    path.write_bytes(path.read_bytes().replace(b'"@"', nested))
    assert messages(path)[0].uuid == "u"
    assert verify(AGENT, AGENT.locate(path)).different == []


KEYS = ["text", "thought", "functionCall", "functionResponse", "response", "output", "inlineData", "id", "todos"]
VALUES = json_values(KEYS, ["a", "image/png", "<session_context>"])
LINES = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["a", "b", "c"]) | VALUES,
        "type": st.sampled_from(["user", "gemini", "info"]) | VALUES,
        "content": VALUES,
        "thoughts": VALUES,
        "toolCalls": st.lists(st.fixed_dictionaries({}, optional={"id": VALUES, "result": VALUES})),
        "tokens": VALUES,
        "timestamp": VALUES,
        "$set": VALUES | st.fixed_dictionaries({"messages": VALUES}),
        "$rewindTo": st.sampled_from(["a", "b"]),
        "messages": VALUES,
        "sessionId": st.just(SESSION),
        "startTime": VALUES,
        "role": VALUES,
        "parts": VALUES,
        "messageId": VALUES,
        "message": VALUES,
    },
)


@pytest.mark.slow
@given(st.lists(LINES, max_size=6), st.booleans())
def test_whatever_a_record_holds_it_is_decoded(
    tmp_path_factory: pytest.TempPathFactory, values: list[JSON], is_document: bool
) -> None:
    folder = tmp_path_factory.mktemp("any")
    path = document(folder, *values) if is_document else log(folder, header(), *values)
    found = events(path)
    facts = collect_facts(found)
    spoken = [event for event in found if isinstance(event, Message)]
    assert [message.index for message in spoken] == list(range(1, facts.messages + 1))
    assert json.loads(msgspec.json.encode(spoken)) == msgspec.to_builtins(spoken)


def test_P09_each_of_two_records_on_a_line_stands_behind_its_own_messages(tmp_path: Path) -> None:
    glued = [gemini("a", toolCalls=[call("t")]), replaced(user("s"), user("b")), gemini("c", toolCalls=[call("u")])]
    path = write(tmp_path, dumps(header()) + b"\n" + b"".join(map(dumps, glued)) + b"\n", f"{NAME}.jsonl")
    found = [(unit.value.get("uuid"), unit.native, unit.start < unit.stop) for unit in AGENT.units(AGENT.locate(path))]
    assert found[1:] == [
        ("a", glued[0], True),
        ("a:results", glued[0], False),
        (None, glued[1], True),
        ("s", glued[1], False),
        ("b", glued[1], False),
        ("c", glued[2], True),
        ("c:results", glued[2], False),
    ]
