"""Codex CLI: lines that take the quick way, in one pass or two, give the same document as the tables give."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from clew.agents.base import SourceFile, freeze
from clew.agents.codex import known, made
from clew.agents.codex.atonce import CodexReadingAtOnce
from clew.agents.codex.regular import Regular
from clew.export import document
from clew.export.reading import DocumentStream, exact_units
from clew.io import records as io_records
from clew.io.codec import dumps, headroom
from tests.agents.rollouts import (
    AGENT,
    OTHER,
    THREAD,
    Value,
    answered,
    asked,
    context,
    event,
    item,
    line,
    meta,
    spelled,
    tokens,
    used,
    words,
    write,
)
from tests.json_values import values

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "codex"
TIME = "2026-01-01T00:00:00Z"
DAMAGED = rb'"\q"'
PASSED = {"internal_chat_message_metadata_passthrough": {"turn_id": "t1"}, "metadata": {"turn_id": "t1"}}


def _document(source: SourceFile, at_once: int, general: bool = False) -> tuple[bytes, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document, "AT_ONCE", at_once)
        if general:
            patch.setattr(Regular, "_fit", lambda *_: [])
            patch.setattr(Regular, "_state", lambda *_: False)
            patch.setattr(Regular, "_other", lambda *_: False)
        out = io.BytesIO()
        reading = document.write_document(AGENT, source, out, timestamp=TIME)
    return out.getvalue(), reading


def _counts(reading: Any) -> tuple[Any, ...]:
    return reading.unknown_types, reading.unknown_keys, reading.carried_raw, reading.damage


def agree(path: Path, *, damaged: bool = False) -> Any:
    """All ways give the same document; returns the reading of the shortest.

    Of damaged lines the first of two passes sees only how they begin, and what that says gets into the header.
    """
    source = freeze(AGENT.locate(path))
    once, reading = _document(source, document.AT_ONCE)
    twice, second = _document(source, -1)
    general, third = _document(source, -1, general=True)
    if damaged:
        once, twice, general = (text[text.index(b'"messages"') :] for text in (once, twice, general))
    assert once == twice == general
    assert _counts(reading) == _counts(second) == _counts(third)
    with headroom():
        units = list(AGENT.read(source, AGENT.scan(source)))
    for is_message in (True, False):
        texts = [dumps(unit.value) for unit in units if unit.is_message is is_message]
        assert b":[\n" + b",\n".join(texts) + b"\n]" in once
    return reading


def usual() -> list[Value]:
    """A session of the usual lines."""
    call = {"name": "shell", "call_id": "c1", "arguments": '{"command":["ls","-l"]}'}
    thought = [{"type": "summary_text", "text": "Hm\n\u001b[0m é"}]
    return [
        meta(git={"branch": "main"}),
        context(),
        *asked("List the files."),
        event("agent_reasoning", text="Hm\n\u001b[0m é"),
        item("reasoning", summary=thought, content=None, encrypted_content="gAAA"),
        item("function_call", **call),
        tokens(used(10, 4, 5, 1), used(10, 4, 5, 1)),
        item("function_call_output", call_id="c1", output="Exit code: 1\nWall time: 0.5 seconds\nOutput:\nno\n"),
        item("custom_tool_call", status="completed", call_id="c2", name="apply_patch", input="*** x\n"),
        item(
            "custom_tool_call_output",
            call_id="c2",
            output='{"output":"ok","metadata":{"exit_code":0,"duration_seconds":0.1}}',
        ),
        tokens(used(30, 8, 9, 1), used(20, 4, 4, 0)),
        *answered("Two files."),
        words("assistant", "Done.", phase="final_answer"),
        context("gpt-6", effort=None),
        *asked("And now?", 5),
        item("reasoning", summary=[], content=None, encrypted_content="gAAB"),
        item("function_call", name="f", arguments='{"a": 1}', call_id="c3"),
    ]


def test_the_usual_lines_take_the_quick_way_and_one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, *usual())
    general: list[bytes] = []
    generally = Regular._generally

    def watched(regular: Regular, text: bytes, line: int) -> None:
        general.append(text)
        generally(regular, text, line)

    monkeypatch.setattr(Regular, "_generally", watched)
    out = io.BytesIO()
    reading = document.write_document(AGENT, AGENT.locate(path), out, timestamp=TIME)
    assert isinstance(reading, CodexReadingAtOnce)
    # Calls come in two orders of keys; the second one is noted on the message.
    assert [json.loads(text)["payload"]["name"] for text in general] == ["f"]


def test_the_usual_lines_agree(tmp_path: Path) -> None:
    assert isinstance(agree(write(tmp_path, *usual())), CodexReadingAtOnce)


@pytest.mark.parametrize("more", [{"ordinal": 7}, {}])
@pytest.mark.parametrize("own", [{"id": "x_1"}, {}])
@pytest.mark.parametrize("kept", [PASSED, {"metadata": {"turn_id": "é"}}, {}])
def test_optional_keys_agree(tmp_path: Path, more: Value, own: Value, kept: Value) -> None:
    number = iter(range(100))

    def one(kind: str, **payload: Any) -> Value:
        names = {key: f"{value}{next(number)}" for key, value in own.items()}
        return line("response_item", {"type": kind, **names, **payload, **kept}, 1, **more)

    lines = [
        meta(),
        one("reasoning", summary=[{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]),
        one("reasoning", summary=[{"type": "summary_text", "text": "a"}], encrypted_content="g"),
        one("function_call", name="f", call_id="c", arguments="{}"),
        one("function_call_output", call_id="c", output="x"),
        one("custom_tool_call", call_id="d", name="g", input="y"),
        one("custom_tool_call_output", call_id="d", output="error: no"),
        one("message", role="assistant", content=[{"type": "output_text", "text": "z"}], phase="commentary"),
        one("message", role="user", content=[{"type": "input_text", "text": "z"}]),
        line("event_msg", {"type": "task_started", "turn_id": "t"}, 1, **more),
    ]
    agree(write(tmp_path, *lines))


@pytest.mark.parametrize(
    "text",
    [
        rb'"a\/b"',
        rb'"\u00e9"',
        rb'"\u001B"',
        rb'"\ud83c"',
        b'"\xff"',
        rb'"C:\\users\\u00e9"',
        b'"x","output":"y"',
        b'"x","y":"z"',
        b"null",
        b"1e999",
        b'{"b": 1}',
        b'{"a":1,"a":2}',
        b'[{"type":"input_text","text":"a"}]',
        b'"a"  ',
        b'  "a"',
        DAMAGED,
        b'"tab\there"',
    ],
)
def test_P04_spellings_that_are_not_ours_take_the_general_way(tmp_path: Path, text: bytes) -> None:
    begin = b'{"timestamp":"2026-03-02T10:00:01.000Z","type":"'
    lines = [
        begin + b'response_item","payload":{"type":"function_call_output","call_id":"c","output":' + text + b"}}",
        begin + b'response_item","payload":{"type":"custom_tool_call","call_id":"c","name":"n","input":' + text + b"}}",
        begin
        + b'response_item","payload":{"type":"function_call","name":"n","call_id":"c","arguments":'
        + text
        + b"}}",
        begin
        + b'response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":'
        + text
        + b"}]}}",
        begin + b'response_item","payload":{"type":"reasoning","summary":[],"encrypted_content":' + text + b"}}",
        begin + b'event_msg","payload":{"type":"agent_reasoning","text":' + text + b"}}",
        begin + b'event_msg","payload":{"type":"agent_message","message":' + text + b"}}",
        begin + b'event_msg","payload":{"type":"user_message","message":' + text + b"}}",
        begin + b'event_msg","payload":{"type":"token_count","info":null,"rate_limits":' + text + b"}}",
        begin + b'turn_context","payload":{"cwd":' + text + b"}}",
    ]
    agree(write(tmp_path, meta(), *lines), damaged=text == DAMAGED)


@pytest.mark.parametrize(
    "time", ["2026-03-02T10:00:00Z", "é" * 10 + "T" + "x" * 12 + "Z", 'a"b', "9999-99-99T99:99:99.999Z"]
)
def test_times_of_any_spelling_agree(tmp_path: Path, time: str) -> None:
    lines = [{**value, "timestamp": time} for value in usual()[2:]]
    agree(write(tmp_path, meta(), *lines))


@pytest.mark.parametrize(
    "payload",
    [
        b'{"type":"function_call_output","call_id":"c","output":"x"}',
        b'{"type":"function_call_output","call_id":"\xff","output":"x"}',
        b'{"type":"reasoning","summary":[],"content":null,"encrypted_content":"g"}',
    ],
)
def test_P04_bytes_that_are_no_text_in_a_time_or_a_name_agree(tmp_path: Path, payload: bytes) -> None:
    begin = b'{"timestamp":"2026-03-02T10:00:01.00\xffZ","type":"response_item","payload":'
    path = write(tmp_path, *usual(), begin + payload + b"}", begin.replace(b"\xff", b"0") + payload + b"}")
    AGENT.scan(AGENT.locate(path))
    agree(path, damaged=True)


# Usage


def test_usage_finds_its_message_in_one_pass(tmp_path: Path) -> None:
    lines = [
        meta(),
        *asked("a"),
        words("assistant", "b"),
        tokens(used(10, 0, 5), used(10, 0, 5)),
        tokens(used(30, 0, 9), used(20, 0, 4)),
        *asked("c"),
        tokens(used(60, 0, 19), used(30, 0, 10)),
        words("assistant", "d"),
        item("web_search_call", status="completed"),
    ]
    assert isinstance(agree(write(tmp_path, *lines)), CodexReadingAtOnce)
    found = AGENT.read(source := AGENT.locate(write(tmp_path, *lines)), AGENT.scan(source))
    usage = [unit.value.get("metadata", {}).get("token_usage") for unit in found if unit.is_message]
    assert [each and each["input_tokens"] for each in usage] == [None, 30, None, None, 30]


def test_a_message_that_is_held_back_may_be_far_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(io_records, "CHUNK", 300)
    results = [item("function_call_output", call_id="c", output="x" * 100) for _ in range(20)]
    end = [tokens(used(10, 0, 5), used(10, 0, 5)), words("user", "y")]
    agree(write(tmp_path, meta(), context(), *asked("a"), words("assistant", "b"), *results, *end))
    agree(write(tmp_path, meta(), *asked("a"), *results))


# What only the end tells


def test_a_wrong_guess_is_read_again(tmp_path: Path) -> None:
    lone = write(tmp_path, *usual(), event("agent_message", 9, message="Only here."))
    assert not isinstance(agree(lone), CodexReadingAtOnce)
    repeated = write(tmp_path, *usual(), words("assistant", "x", id="m"), words("assistant", "y", id="m"))
    assert not isinstance(agree(repeated), CodexReadingAtOnce)


def test_turns_that_were_taken_back_agree(tmp_path: Path) -> None:
    again = [event("thread_rolled_back", num_turns=1), *asked("Otherwise.", 8), *answered("Well.", 9)]
    assert isinstance(agree(write(tmp_path, *usual(), *again)), CodexReadingAtOnce)


def test_copies_of_a_parent_agree(tmp_path: Path) -> None:
    write(tmp_path, *usual())
    fork = [meta(OTHER, forked_from_id=THREAD), *usual(), *asked("Mine.", 30)]
    agree(write(tmp_path, *fork, thread=OTHER))
    unknown = [meta(OTHER), meta("019f0000-0000-7000-8000-00000000000e"), *usual()[1:], *asked("Mine.", 30)]
    agree(write(tmp_path, *unknown, thread=OTHER))


def test_agents_that_were_started_agree(tmp_path: Path) -> None:
    lines = [
        meta(),
        *asked("a"),
        item("function_call", name="spawn_agent", call_id="s", arguments="{}"),
        item("function_call_output", call_id="s", output=json.dumps({"agent_id": OTHER, "nickname": "Ada"})),
        event("collab_agent_spawn_end", call_id="s", new_thread_id=OTHER, new_agent_nickname="Ada"),
        event("thread_name_updated", thread_name="The bell"),
    ]
    assert isinstance(agree(write(tmp_path, *lines)), CodexReadingAtOnce)


# Anything


KEYS = ["id", "name", "call_id", "output", "arguments", "input", "summary", "role", "content", "phase", "text", "x"]
TEXTS = st.sampled_from(["", "a", "é\n\\", '"', "<skill>x", "\x1b[0m", "Exit code: 1\nWall time: 1 seconds\n", "{}"])
BLOCKS = st.lists(
    st.fixed_dictionaries({"type": st.sampled_from(["input_text", "output_text", "summary_text"]), "text": TEXTS}),
    max_size=2,
)
NAMES = "message reasoning function_call function_call_output custom_tool_call custom_tool_call_output token_count"
PAYLOADS = st.builds(
    lambda kind, more: {"type": kind, **more},
    st.sampled_from([*NAMES.split(), "agent_reasoning", "agent_message", "user_message", "task_started", "mystery"]),
    st.dictionaries(st.sampled_from(KEYS), TEXTS | BLOCKS | values(["type"], ["hi"]), max_size=5),
)
LINES = st.builds(
    lambda sort, payload, number: line(sort, payload, 1, **number),
    st.sampled_from(["response_item", "event_msg", "turn_context", "session_meta"]),
    PAYLOADS,
    st.sampled_from([{}, {}, {"ordinal": 3}]),
)
USUAL = st.sampled_from(usual())


@given(st.lists(LINES | USUAL, max_size=8), st.booleans())
def test_lines_of_any_kind_agree(lines: list[Value], ends: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), meta(), *lines)
        if not ends:
            path.write_bytes(spelled(meta(), *lines)[:-1])
        agree(path)


@given(st.lists(LINES | USUAL, max_size=8), st.sampled_from([1, 200, 700]))
def test_lines_agree_however_many_are_read_together(lines: list[Value], window: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(known, "WINDOW", window)
        agree(write(Path(folder), meta(), *lines))


def test_calls_of_either_order_take_the_quick_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = {
        "first": {"name": "f", "call_id": "c", "arguments": "{}"},
        "last": {"name": "f", "arguments": "{}", "call_id": "c"},
    }
    general: list[bytes] = []
    monkeypatch.setattr(Regular, "_generally", lambda _regular, text, _line: general.append(text))
    for name, call in orders.items():
        (tmp_path / name).mkdir()
        lines = [meta(), item("function_call", **call), item("function_call", **call)]
        source = AGENT.locate(write(tmp_path / name, *lines))
        document.write_document(AGENT, source, io.BytesIO(), timestamp=TIME)
    assert general == []


def test_a_line_that_is_not_usual_leaves_the_quick_way_to_its_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = [event("task_started", turn_id="t"), item("web_search_call", status="completed")]
    path = write(tmp_path, *usual()[:-1], *odd, *usual()[2:-1])
    assert isinstance(agree(path), CodexReadingAtOnce)
    general: list[str] = []
    generally = Regular._generally

    def watched(regular: Regular, text: bytes, line: int) -> None:
        general.append(json.loads(text)["payload"]["type"])
        generally(regular, text, line)

    monkeypatch.setattr(Regular, "_generally", watched)
    document.write_document(AGENT, AGENT.locate(path), io.BytesIO(), timestamp=TIME)
    assert general == ["web_search_call"]


@pytest.mark.parametrize("between", [b",", b",\n"])
def test_what_is_made_is_spelled_with_what_stands_between(between: bytes) -> None:
    out = bytearray(b"0" + between)
    made.spell([], out, between)
    made.spell([Raw(b"1"), "a\nb"], out, between)
    assert bytes(out) == b"0" + between + b"1" + between + b'"a\\nb"' + between


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the shared corpus is not here")
def test_the_corpus_agrees() -> None:
    paths = sorted(path for path in CORPUS.rglob("*.jsonl") if path.stat().st_size < 1 << 20)
    for path in paths:
        agree(path)


def test_a_document_that_was_spelled_anew_gives_the_bytes_back(tmp_path: Path) -> None:
    path = write(tmp_path, *usual())
    out = io.BytesIO()
    document.write_document(AGENT, AGENT.locate(path), out, timestamp=TIME)
    anew = io.BytesIO(json.dumps(json.loads(out.getvalue()), indent=2).encode())
    stream = DocumentStream(anew)
    assert not stream.is_original
    written = b"".join(piece for _, piece in AGENT.write(stream.header, exact_units(AGENT, stream)))
    assert written == path.read_bytes()
