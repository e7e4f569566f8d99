"""Gemini CLI's event log: each message once with its last version, and the path that the client itself would show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.export.verify import verify
from clew.model.json import JSON
from tests.agents.gemini_worlds import (
    AGENT,
    EVENTS,
    IDS,
    SESSION,
    Record,
    active,
    call,
    document,
    gemini,
    header,
    log,
    opened,
    plain_replay,
    replaced,
    rewind,
    tokens,
    user,
    write,
)


def proved(path: Path) -> None:
    proof = verify(AGENT, AGENT.locate(path))
    assert proof.different == []


def uuids(path: Path) -> list[JSON]:
    return [message.uuid for message in opened(path).messages]


def parents(path: Path) -> dict[JSON, JSON]:
    return {message.uuid: message.parent_uuid or None for message in opened(path).messages}


def codes(path: Path) -> set[str]:
    return {problem.code for problem in opened(path).problems()}


@pytest.mark.seed("S2-45")
def test_an_upsert_keeps_the_place_and_shows_the_last_version(tmp_path: Path) -> None:
    first = gemini("b", toolCalls=[call("c", status="executing")])
    last = gemini("b", "Done.", toolCalls=[call("c")])
    path = log(
        tmp_path, header(), user("a"), first, {"$set": {"lastUpdated": "2026-10-20T09:16:00.000Z"}}, last, user("d")
    )
    session = opened(path)
    messages = list(session.messages)
    assert [message.uuid for message in messages] == ["a", "b", "b:results", "d"]
    assert [block.type if hasattr(block, "type") else type(block).__name__ for block in messages[1].content] == [
        "Text",
        "ToolUse",
    ]
    assert messages[1].content[0].text == "Done."  # type: ignore[union-attr]
    assert [record.kind for record in session.records] == ["state", "progress", "state"]
    assert session.facts.tool_calls == 1
    proved(path)


def test_an_upsert_behind_other_messages_is_shown_at_its_first_place(tmp_path: Path) -> None:
    records = [
        header(),
        user("a"),
        gemini("b", "One."),
        user("c"),
        gemini("b", "Two."),
        user("d"),
        gemini("b", "Three."),
    ]
    path = log(tmp_path, *records)
    messages = list(opened(path).messages)
    assert [message.uuid for message in messages] == ["a", "b", "c", "d"]
    assert messages[1].content[0].text == "Three."  # type: ignore[union-attr]
    assert active(path) == plain_replay(records) == ["a", "b", "c", "d"]
    proved(path)


@pytest.mark.seed("S2-42")
def test_a_rewind_leaves_a_branch_behind(tmp_path: Path) -> None:
    records = [header(), user("a"), gemini("b"), user("c"), gemini("d"), rewind("c"), user("e"), gemini("f")]
    path = log(tmp_path, *records)
    session = opened(path)
    assert active(path) == ["a", "b", "e", "f"]
    assert parents(path) == {"a": None, "b": "a", "c": "b", "d": "c", "e": "b", "f": "e"}
    graph = session.facts.tree.graph()
    assert [(fork.uuid, [branch.uuid for branch in fork.branches]) for fork in graph.fork_points] == [("b", ["c", "e"])]
    proved(path)


@pytest.mark.parametrize("target", ["nobody", ""])
def test_a_rewind_to_nowhere_takes_everything_back(tmp_path: Path, target: str) -> None:
    path = log(tmp_path, header(), user("a"), gemini("b"), rewind(target))
    assert uuids(path) == ["a", "b"]
    assert active(path) == []
    assert "unknown-rewind" in codes(path)
    path = log(tmp_path, header(), user("a"), gemini("b"), rewind(target), user("c"))
    assert active(path) == ["c"]
    proved(path)


def test_two_rewinds_and_one_to_what_is_gone(tmp_path: Path) -> None:
    records = [header(), user("a"), gemini("b"), user("c"), rewind("c"), user("d"), rewind("b"), rewind("c"), user("e")]
    path = log(tmp_path, *records)
    assert active(path) == plain_replay(records) == ["e"]
    proved(path)


def test_a_rewound_message_that_is_written_again_comes_back_at_the_end(tmp_path: Path) -> None:
    records = [header(), user("a"), gemini("b"), rewind("b"), user("c"), gemini("b", "Again.")]
    path = log(tmp_path, *records)
    assert active(path) == plain_replay(records) == ["a", "c", "b"]
    assert uuids(path) == ["a", "b", "c"]
    proved(path)


def test_a_rewound_response_is_not_on_the_path(tmp_path: Path) -> None:
    response = user("r", [{"functionResponse": {"id": "c", "name": "read_file", "response": {"output": "x"}}}])
    records = [header(), user("a"), gemini("b", toolCalls=[call("c")]), response, rewind("r"), user("d")]
    path = log(tmp_path, *records)
    assert active(path) == plain_replay(records) == ["a", "b", "d"]


def test_compression_drops_keeps_masks_and_adds(tmp_path: Path) -> None:
    masked = gemini("d", "masked")
    records = [
        header(),
        user("a"),
        gemini("b"),
        user("c"),
        gemini("d", "Long."),
        replaced(user("s", "What was said so far."), user("c"), masked, {"note": "no id"}, 7),
        user("e"),
    ]
    path = log(tmp_path, *records)
    assert active(path) == plain_replay(records) == ["s", "c", "d", "e"]
    assert uuids(path) == ["a", "b", "c", "d", "s", "e"]
    found = {message.uuid: message for message in opened(path).messages}
    assert found["d"].content[0].text == "Long."  # type: ignore[union-attr]
    assert found["s"].metadata.is_compact_summary is True  # type: ignore[union-attr]
    assert opened(path).facts.prompts == 3
    proved(path)


def test_responses_that_a_new_list_repeats_are_not_shown_again(tmp_path: Path) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    told = [{"functionResponse": {"id": "c", "name": "read_file", "response": {"output": "x"}}}, picture]
    reply = gemini("b", toolCalls=[call("c")], tokens=tokens(5, 1))
    poorer = gemini("b", [{"functionCall": {"id": "c", "name": "read_file", "args": {}}}])
    snapshot = replaced(user("a"), poorer, user("b_responses", told), user("r", told))
    path = log(tmp_path, header(), user("a"), reply, user("r", told), snapshot, user("d"))
    assert uuids(path) == active(path) == ["a", "b", "r", "d"]
    assert opened(path).usage.input_tokens == 5
    assert opened(path).facts.prompts == 2
    proved(path)


def test_two_compressions_in_a_row_and_one_without_ids(tmp_path: Path) -> None:
    first, second = replaced(user("s", "So far.")), replaced(user("t", "Shorter."), user("s", "So far, anew."))
    records = [header(), user("a"), gemini("b"), first, second, user("c")]
    path = log(tmp_path, *records)
    assert active(path) == plain_replay(records) == ["t", "s", "c"]
    proved(path)
    records = [header(), user("a"), gemini("b"), replaced({"type": "user", "content": "x"}), user("c")]
    path = log(tmp_path, *records)
    assert active(path) == plain_replay(records) == ["c"]
    proved(path)


def test_an_oddly_spelled_compression_is_kept_whole(tmp_path: Path) -> None:
    odd = (
        b'{"$set": {"messages": ['
        + b'{"id":"s","type":"user","content":"So far."}, {"id":"a","type":"user","content":"A"}]}}\n'
    )
    path = log(tmp_path, header(), user("a"), gemini("b"))
    path.write_bytes(path.read_bytes() + odd)
    assert active(path) == ["s", "a"]
    assert uuids(path) == ["a", "b", "s"]
    proved(path)


def test_a_legacy_document_on_one_line_of_a_log(tmp_path: Path) -> None:
    records = [{**header(), "messages": [user("a"), gemini("b")]}, user("c")]
    path = log(tmp_path, *records)
    assert active(path) == plain_replay(records) == ["a", "b", "c"]
    assert opened(path).facts.prompts == 2
    proved(path)


def test_the_name_of_a_file_does_not_decide_its_form(tmp_path: Path) -> None:
    path = document(tmp_path, user("a"), gemini("b"), name="session-2026-10-20T09-14-0c5f8e21.jsonl")
    assert uuids(path) == ["a", "b"]
    proved(path)
    path = log(tmp_path / "other", header(), user("a"), name="session-2026-10-20T09-14-0c5f8e21.json")
    assert uuids(path) == ["a"]
    proved(path)


@pytest.mark.seed("S2-21")
def test_one_session_as_document_and_log_is_one(tmp_path: Path) -> None:
    document(tmp_path, user("a"), gemini("b", tokens=tokens(10, 5)))
    path = log(
        tmp_path, header(), user("a"), gemini("b", tokens=tokens(10, 5)), user("c"), gemini("d", tokens=tokens(20, 1))
    )
    source = AGENT.locate(path)
    assert (source.path.suffix, source.parts) == (".json", (path.name,))
    sources = list(AGENT.discover(tmp_path / ".gemini" / "tmp"))
    assert [each.path for each in sources] == [source.path]
    assert uuids(path) == active(path) == ["a", "b", "c", "d"]
    assert opened(path).usage.input_tokens == 30
    proved(path)


def test_a_resumed_session_goes_on_in_another_file(tmp_path: Path) -> None:
    log(tmp_path, header(), user("a"), gemini("b"))
    later = log(
        tmp_path, header(), user("c"), gemini("b", "Ding dong."), name="session-2026-10-21T08-00-0c5f8e21.jsonl"
    )
    assert AGENT.locate(later).parts == (later.name,)
    assert uuids(later) == ["a", "b", "c"]
    proved(later)


def test_names_that_only_look_alike_are_two_sessions(tmp_path: Path) -> None:
    log(tmp_path, header(), user("a"))
    other = log(
        tmp_path, {**header(), "sessionId": "0c5f8e21-other"}, user("b"), name="session-2026-10-20T09-15-0c5f8e21.jsonl"
    )
    assert sorted(AGENT.session_id(each) for each in AGENT.discover(tmp_path / ".gemini" / "tmp")) == sorted(
        [SESSION, "0c5f8e21-other"]
    )
    assert AGENT.locate(other).parts == ()


def test_short_and_odd_session_ids(tmp_path: Path) -> None:
    path = log(tmp_path, {**header(), "sessionId": "x1"}, user("a"), name="session-2026-10-20T09-14-x1.jsonl")
    assert AGENT.session_id(AGENT.locate(path)) == "x1"
    proved(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b'{"id":"a","type":"user","content":"Hi"}\n',
        b'{"$set":{"lastUpdated":"2026-10-20T09:14:00.000Z"}}\n',
        b'\xef\xbb\xbf{"sessionId":"s","projectHash":"h"}\r\n{"id":"a","type":"user","content":"Hi"}\r\n',
        '{"sessionId":"s","projectHash":"h"}\n{"id":"a","type":"user","content":"é"}\n'.encode()[:-5],
    ],
    ids=["empty", "blank", "headless", "only a patch", "CRLF and mark", "cut inside a character"],
)
def test_P04_unusual_files_are_read_and_come_back(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path, content, f"{NAME_LOG}")
    proved(path)
    list(opened(path).problems())


NAME_LOG = "session-2026-10-20T09-14-0c5f8e21.jsonl"


def test_a_session_without_header_is_told(tmp_path: Path) -> None:
    path = log(tmp_path, user("a"))
    assert "no-header" in codes(path)
    assert AGENT.session_id(AGENT.locate(path)) == NAME_LOG.removesuffix(".jsonl")


def test_header_only_sessions_are_empty(tmp_path: Path) -> None:
    path = log(tmp_path, header(), {"$set": {"summary": "Nothing yet"}})
    assert "empty-session" in codes(path)
    assert opened(path).header.title == "Nothing yet"
    proved(path)


@pytest.mark.slow
def test_P03_a_growing_message_stays_linear_in_the_document(tmp_path: Path) -> None:
    calls: list[JSON] = []
    records: list[Record] = [header(), user("a")]
    for number in range(300):
        calls = [*calls, call(f"c{number}", output="x" * 200)]
        records.append(gemini("b", toolCalls=calls))
    path = log(tmp_path, *records)
    proof = verify(AGENT, AGENT.locate(path))
    assert proof.different == []
    assert proof.document_bytes <= 1.5 * proof.bytes
    session = opened(path)
    assert session.facts.messages == 3
    assert session.facts.tool_calls == 300


def test_P03_every_message_written_again_in_the_end(tmp_path: Path) -> None:
    ids = [f"m{number}" for number in range(60)]
    records = [header(), *(user(each, "early") for each in ids), *(user(each, "late") for each in reversed(ids))]
    path = log(tmp_path, *records)
    assert uuids(path) == ids
    assert {message.content[0].text for message in opened(path).messages} == {"late"}  # type: ignore[union-attr]
    proved(path)


@given(st.lists(EVENTS, max_size=12))
def test_the_active_path_is_what_the_client_would_show(
    tmp_path_factory: pytest.TempPathFactory, events: list[Record]
) -> None:
    path = log(tmp_path_factory.mktemp("log"), header(), *events)
    assert active(path) == plain_replay(events)
    proof = verify(AGENT, AGENT.locate(path))
    assert proof.different == []
    shown = uuids(path)
    assert len(shown) == len(set(shown))


@given(st.lists(st.tuples(st.sampled_from([user, gemini]), IDS) | st.builds(rewind, IDS), max_size=14))
def test_a_message_says_what_the_last_line_that_wrote_it_says(
    tmp_path_factory: pytest.TempPathFactory, events: list[Record | tuple[Callable[[str, str], Record], str]]
) -> None:
    written = [each if isinstance(each, dict) else each[0](each[1], f"{at}") for at, each in enumerate(events)]
    path = log(tmp_path_factory.mktemp("log"), header(), *written)
    said = {message.uuid: message.content[0].text for message in opened(path).messages}  # type: ignore[union-attr]
    assert said == {record["id"]: record["content"] for record in written if "id" in record}


def test_what_a_new_list_has_masked_is_shown_as_it_was_given(tmp_path: Path) -> None:
    masked = call("c", output="<tool_output_masked>in a file</tool_output_masked>")
    reply = gemini("b", toolCalls=[call("c", output="every word")], tokens=tokens(5, 1))
    snapshot = replaced(user("a"), {**reply, "content": [{"text": "Ding."}], "toolCalls": [masked]})
    path = log(tmp_path, header(), user("a"), reply, snapshot, user("d"))
    messages = {message.uuid: message for message in opened(path).messages}
    assert messages["b:results"].content[0].output == "every word"  # type: ignore[union-attr]
    assert opened(path).usage.input_tokens == 5
    proved(path)


@pytest.mark.slow
@given(st.lists(EVENTS, max_size=8), st.integers(1, 7))
def test_of_several_files_the_last_one_is_shown(
    tmp_path_factory: pytest.TempPathFactory, events: list[Record], cut: int
) -> None:
    folder = tmp_path_factory.mktemp("log")
    path = log(folder, header(), *events[:cut])
    log(folder, header(), *events[cut:], name="session-2026-10-21T08-00-0c5f8e21.jsonl")
    assert active(path) == (plain_replay(events[cut:]) or plain_replay(events[:cut]))
    assert verify(AGENT, AGENT.locate(path)).different == []
