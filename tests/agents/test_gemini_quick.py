"""Gemini CLI: the quick way gives what the general way gives, in one pass as in two."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.gemini.atonce import AtOnce
from clew.agents.gemini.quick import Quick
from clew.agents.gemini.scan import scan
from clew.agents.mapping import Context
from clew.export.document import write_document
from clew.export.reading import DocumentStream
from clew.export.verify import verify
from clew.io.codec import dumps
from clew.model.json import JSON
from clew.testing import unordered
from tests.agents.gemini_worlds import AGENT, Record, document, header, log, rewind, tokens, user

TIME = "2026-10-20T09:15:0{}.000Z"
TEXTS = st.text(max_size=5) | st.sampled_from(["/", "\\/", "\\u0041", "\u001b[1m", "é", "<session_context>", "{}"])
COUNTS = st.builds(tokens, st.integers(0, 9), st.integers(0, 9), st.integers(0, 12), st.integers(0, 3))


def called(id: str, text: str, display: JSON, swapped: bool, status: str) -> Record:
    result = [{"functionResponse": {"id": id, "name": "glob", "response": {"output": text}}}]
    told = {"description": "d", "displayName": "G"}
    if swapped:
        told = {"displayName": "G", "description": "d"}
    start = {"id": id, "name": "glob", "args": {"dir_path": "/x", "n": 1.5}, "result": result, "status": status}
    shown = {"timestamp": TIME.format(len(text) % 10), "resultDisplay": display}
    return {**start, **shown, **told, "renderOutputAsMarkdown": True}


CALLS = st.builds(
    called,
    st.sampled_from(["c1", "c2"]),
    TEXTS,
    TEXTS | st.sampled_from([{"a": 1}, {"todos": []}, None]),
    st.booleans(),
    st.sampled_from(["success", "success", "success", "error", "executing"]),
)
THOUGHTS = st.builds(lambda text: {"subject": "s", "description": text, "timestamp": TIME.format(1)}, TEXTS)


def reply(id: str, text: str, thoughts: list[JSON], counts: Record, calls: list[JSON]) -> Record:
    said = {"id": id, "timestamp": TIME.format(5), "type": "gemini", "content": text, "thoughts": thoughts}
    return {**said, "tokens": counts, "model": "m", **({"toolCalls": calls} if calls else {})}


IDS = st.sampled_from("abcdefgh")
REPLIES = st.builds(reply, IDS, TEXTS, st.lists(THOUGHTS, max_size=2), COUNTS, st.lists(CALLS, max_size=2))
PROMPTS = st.builds(user, IDS, TEXTS | st.lists(st.builds(lambda text: {"text": text}, TEXTS), max_size=2))
PATCHES = st.just({"$set": {"lastUpdated": "2026-10-20T09:16:00.000Z"}})
EVENTS = st.lists(REPLIES | PROMPTS | PATCHES | st.just({"strange": 1}) | st.builds(rewind, IDS), max_size=8)


def same(path: Path) -> None:
    """The document, which is written the quick way, against the units, which are read the general way."""
    source = AGENT.locate(path)
    text = io.BytesIO()
    write_document(AGENT, source, text, timestamp="2026-01-01T00:00:00Z")
    facts = scan(source)
    expected = [(unit.is_message, unordered(unit.value)) for unit in AGENT.read(source, facts)]
    found = [(is_message, unordered(value)) for is_message, value in DocumentStream(text).units()]
    assert found == expected
    quick = AGENT.scan(source)
    for name in ("messages", "prompts", "user_messages", "tool_calls", "tools", "models", "has_errors", "has_thinking"):
        assert getattr(quick, name) == getattr(facts, name), name
    for name in ("first_time", "last_time", "first_prompt", "records", "titles"):
        assert getattr(quick, name) == getattr(facts, name), name
    assert quick.ledger.by_model() == facts.ledger.by_model()
    assert quick.tree.graph() == facts.tree.graph()
    assert AGENT.session(source, quick) == AGENT.session(source, facts)
    assert verify(AGENT, source).different == []


@given(EVENTS)
def test_logs_give_the_same_either_way(tmp_path_factory: pytest.TempPathFactory, events: list[Record]) -> None:
    same(log(tmp_path_factory.mktemp("log"), header(), *events))


@given(st.lists(REPLIES | PROMPTS, max_size=6))
def test_documents_give_the_same_either_way(tmp_path_factory: pytest.TempPathFactory, events: list[Record]) -> None:
    same(document(tmp_path_factory.mktemp("document"), *events))


def test_usual_records_take_the_quick_way() -> None:
    quick = Quick(Context("gemini", {}))
    usual = reply("a", "Hi\n", [], tokens(5, 2), [called("c1", "x", "y", False, "success")])
    assert quick.decode(dumps(usual) + b"\n") is not None
    assert quick.decode(dumps(user("a", "Hi")) + b"\n") is not None
    assert quick.decode(dumps({**usual, "tide": 1}) + b"\n") is None
    assert quick.decode(json.dumps(usual).encode() + b"\n") is None
    assert quick.decode(b'{"id":"a","timestamp":"t","type":"user","content":"\\u00e9"}\n') is None
    assert quick.decode(b'{"id":"a","timestamp":"t","type":"user","content":"\xff"}\n') is None


def test_one_pass_says_when_it_is_not_enough(tmp_path: Path) -> None:
    path = log(tmp_path, header(), user("a"), user("b"))
    assert AtOnce(AGENT.locate(path)).scan() is not None
    path = log(tmp_path, header(), user("a"), user("b"), user("a", "Again."))
    assert AtOnce(AGENT.locate(path)).scan() is None
    path = log(tmp_path, header(), user("a"), rewind("a"))
    assert AtOnce(AGENT.locate(path)).scan() is None
