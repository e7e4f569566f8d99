"""Gemini CLI: the quick way gives what the general way gives, in one pass as in two."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.gemini import atonce
from clew.agents.gemini.atonce import AtOnce
from clew.agents.gemini.quick import Quick
from clew.agents.gemini.scan import scan
from clew.agents.mapping import Context
from clew.export.document import write_document
from clew.export.reading import DocumentStream
from clew.export.verify import verify
from clew.io.codec import dumps, loads
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


def usual_reply(id: str = "a", **more: JSON) -> Record:
    return {**reply(id, "Hi\n", [], tokens(5, 2), [called("c1", "x", "y", False, "success")]), **more}


def lines(*records: JSON) -> bytes:
    return b"".join(dumps(record) + b"\n" for record in records)


PATCH: Record = {"$set": {"lastUpdated": "2026-10-20T09:16:00.000Z"}}
OTHER_ORDER = called("c1", "x", "y", True, "success")


def test_usual_lines_take_the_quick_way_together() -> None:
    quick = Quick(Context("gemini", {}))
    found = quick.lines(lines(user("a", "Hi"), usual_reply("b"), PATCH, usual_reply("c")))
    assert found is not None and len(found) == 4
    assert quick.lines(lines(usual_reply(toolCalls=[OTHER_ORDER]))) is not None
    assert quick.lines(lines(usual_reply())) is not None


@pytest.mark.parametrize(
    "odd",
    [
        lines(usual_reply(tide=1)),
        lines(usual_reply("b"), usual_reply(toolCalls=[OTHER_ORDER])),
        lines(usual_reply(toolCalls=[called("c1", "x", "y", False, "error")])),
        lines(dict(reversed(user("a").items()))),
        json.dumps(usual_reply()).encode() + b"\n",
        lines(user("a"))[:-1],
        lines(user("a")) + b"\n",
        lines(user("a")).replace(b"\n", b"\r\n"),
        b'{"id":"a","timestamp":"t","type":"user","content":"\\u00e9"}\n',
        b'{"id":"a","timestamp":"t","type":"user","content":"\\/"}\n',
        b'{"id":"a","timestamp":"t","type":"user","content":"\xff"}\n',
        b'{"id":"a","timestamp":"t","type":"user","content":[1.50]}\n',
        b'{"id":"a","id":"a","timestamp":"t","type":"user","content":""}\n',
        b'{"id":"a","timestamp":"t","type":"user","content":' + b"[" * 5000 + b"]" * 5000 + b"}\n",
    ],
    ids=lambda text: text[-60:].decode("ascii", "replace"),
)
def test_lines_that_no_struct_gives_back_take_the_general_way(odd: bytes) -> None:
    assert Quick(Context("gemini", {})).lines(odd) is None


def elements(*records: JSON, indent: int = 2) -> bytes:
    """The elements as they stand in a document."""
    text = json.dumps({"messages": records}, indent=indent, ensure_ascii=False).encode()
    return text[text.index(b"{", 1) : text.rindex(b"}", 0, -1) + 1]


def test_elements_take_the_quick_way_in_the_usual_layout_only() -> None:
    quick = Quick(Context("gemini", {}))
    found = quick.elements(elements(user("a", [{"text": "Hi"}]), usual_reply("b", thoughts=[])))
    assert found is not None and [each.id for each in found] == ["a", "b"]
    assert quick.elements(elements(user("a"), indent=4)) is None
    assert quick.elements(elements(user("a")).replace(b'": "', b'":  "')) is None
    assert quick.elements(elements(user("a")) + b" ") is None
    assert quick.elements(elements(user("a"), {**user("b"), "tide": 1})) is None


def written(path: Path) -> bytes:
    text = io.BytesIO()
    write_document(AGENT, AGENT.locate(path), text, timestamp="2026-01-01T00:00:00Z")
    return text.getvalue()


@pytest.mark.parametrize("more", [{}, {"kind": "main"}])
def test_a_document_of_the_usual_layout_is_taken_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: Record
) -> None:
    path = document(tmp_path, user("a"), usual_reply("b"), {**user("c"), "tide": 1}, user("d"), **more)
    assert Quick(Context("gemini", {})).chat(path.read_bytes()) is None
    path = document(tmp_path, user("a"), usual_reply("b"), {**user("c"), "displayContent": "C"}, user("d"), **more)
    chat = Quick(Context("gemini", {})).chat(path.read_bytes())
    assert chat is not None and [each.id for each in chat[1]] == ["a", "b", "c", "d"]
    assert chat[0] == {**loads(path.read_bytes()), "messages": []}
    whole = written(path)
    monkeypatch.setattr(atonce, "_WHOLE", 0)
    assert written(path) == whole
    same(path)


def test_a_document_that_is_not_usual_is_not_taken_whole(tmp_path: Path) -> None:
    quick = Quick(Context("gemini", {}))
    usual = document(tmp_path, user("a")).read_bytes()
    assert quick.chat(usual) is not None
    value = loads(usual)
    for odd in (
        usual + b"\n",
        usual.replace(b'": "', b'":  "', 1),
        usual.replace(b'"sessionId": "', b'"sessionId": "\\/'),
        json.dumps(value, indent=4).encode(),
        json.dumps({**value, "tide": 1}, indent=2).encode(),
        json.dumps({"messages": value["messages"], **value}, indent=2).encode(),
        json.dumps({**value, "messages": []}, indent=2).encode(),
    ):
        assert quick.chat(odd) is None


def test_an_odd_line_spoils_none_of_its_neighbours(tmp_path: Path) -> None:
    records = [
        each for number in range(40) for each in (user(f"u{number}", "é" * 9000), usual_reply(f"g{number}"), PATCH)
    ]
    records[50] = {**records[50], "tide": 1}
    path = log(tmp_path, header(), *records[:77], {"strange": 1}, *records[77:])
    same(path)
    assert AtOnce(AGENT.locate(path)).scan() is not None
    same(document(tmp_path, *(each for each in records if "id" in each), project="other"))


def test_P04_a_torn_last_version_hides_no_message(tmp_path: Path) -> None:
    whole = lines(header(), usual_reply("b", thoughts=[]), PATCH, usual_reply("b"))
    path = log(tmp_path, header())
    for cut in range(len(whole) - 300, len(whole), 7):
        path.write_bytes(whole[:cut])
        same(path)
        facts = AGENT.scan(AGENT.locate(path))
        assert (facts.messages, facts.leaf_uuid) == (2, "b:results")


@pytest.mark.parametrize("depth", [50, 150, 500, 800, 850, 860, 870, 880, 890, 900, 950, 5000])
@pytest.mark.parametrize("key", ["args", "resultDisplay"])
def test_P04_deep_values_are_no_danger(tmp_path: Path, depth: int, key: str) -> None:
    nested = b'{"a":' * depth + b"1" + b"}" * depth
    call = {**called("c1", "x", "y", False, "success"), key: "@"}
    text = lines(header(), user("u"), usual_reply("b", toolCalls=[call]), user("v")).replace(b'"@"', nested)
    path = log(tmp_path, header())
    path.write_bytes(text)
    assert verify(AGENT, AGENT.locate(path)).different == []


def test_a_role_of_any_type_is_read(tmp_path: Path) -> None:
    same(document(tmp_path, {"role": [], "id": ""}, {"role": {}, "id": "b", "parts": []}))


def test_one_pass_says_when_it_is_not_enough(tmp_path: Path) -> None:
    path = log(tmp_path, header(), user("a"), user("b"))
    assert AtOnce(AGENT.locate(path)).scan() is not None
    path = log(tmp_path, header(), user("a"), user("b"), user("a", "Again."))
    assert AtOnce(AGENT.locate(path)).scan() is None
    path = log(tmp_path, header(), user("a"), rewind("a"))
    assert AtOnce(AGENT.locate(path)).scan() is None
