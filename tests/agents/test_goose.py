"""Goose: what each row becomes, and that every request is counted once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from clew.analysis.usage import Usage, UsageLedger
from clew.convert.prepare import prepare
from clew.export.verify import verify
from clew.library import Library
from clew.model import Message
from clew.model.blocks import Image
from clew.model.json import JSON
from clew.stored_session import StoredSession
from clew.testing import AgentConformance
from tests.agents.goose_database import (
    AGENT,
    CHILD,
    SESSION,
    Database,
    database_in,
    rows,
    source,
    spell,
    tool,
    write_conversation,
    write_fixtures,
)

FIXTURES = Path(__file__).parent.parent / "fixtures" / "goose"


class TestConformance(AgentConformance):
    agent = AGENT
    fixtures = sorted(FIXTURES.glob("*.jsonl"))


@pytest.fixture
def database(own_home: Path) -> Iterator[Database]:
    with closing(Database(database_in(own_home))) as database:
        yield database


def stored(database: Database, session: str = SESSION) -> StoredSession:
    return StoredSession(AGENT, source(database.path, session))


def messages(database: Database, session: str = SESSION) -> list[Message]:
    return list(stored(database, session).messages)


def test_the_fixtures_are_what_the_database_gives(tmp_path: Path) -> None:
    (tmp_path / "written").mkdir()
    write_fixtures(tmp_path / "written", tmp_path)
    for path in FIXTURES.glob("*.jsonl"):
        assert (tmp_path / "written" / path.name).read_bytes() == path.read_bytes()


def test_every_item_is_shown(database: Database) -> None:
    write_conversation(database)
    contents = [
        (unit.value["role"], [block.get("text") or block["type"] for block in unit.value["content"]])
        for unit in stored(database).units()
        if unit.is_message
    ]
    call, result = ("assistant", ["tool_use"]), ("user", ["tool_result"])
    assert contents == [
        ("user", ['Ring the bell,\n"three" times.', "image"]),
        ("user", ["<turn-context>noon</turn-context>"]),
        ("assistant", ["thinking", "I write the script.", "tool_use"]),
        result,
        *[call, result] * 6,
        ("assistant", ["It rings.", "unknown"]),
    ]
    facts = stored(database).facts
    assert (facts.tool_calls, facts.errors, facts.prompts) == (7, 2, 1)
    found = messages(database)
    assert found[1].metadata.is_meta is True  # type: ignore[union-attr]
    todos = found[12].metadata.todos  # type: ignore[union-attr]
    assert [(todo.content, todo.status) for todo in todos] == [  # type: ignore[union-attr]
        ("Write bell.py", "completed"),
        ("Tune it", "pending"),
    ]


def test_the_calls_of_one_reply_share_its_id(database: Database) -> None:
    write_conversation(database)
    replies = [message.metadata.message_id for message in messages(database) if message.role == "assistant"]  # type: ignore[union-attr]
    assert len(replies) == 8
    assert replies[1] == replies[2]
    assert len(set(replies)) == 7


def test_cached_input_is_counted_once(database: Database) -> None:
    write_conversation(database)
    assert stored(database).usage == Usage(7, 7 * 300, 7 * 42, None, 7 * 600)


def test_a_request_without_a_message_counts(database: Database) -> None:
    database.session()
    database.reply(SESSION, {"type": "text", "text": "It rings."})
    database.request(SESSION, input_tokens=100, output_tokens=7, cache_read_tokens=0, is_compaction=1)
    assert stored(database).usage == Usage(2, 400, 49, None, 600)


def test_sums_count_for_requests_from_before_the_ledger(database: Database) -> None:
    database.session(accumulated_input_tokens=2000, accumulated_output_tokens=100)
    database.reply(SESSION, {"type": "text", "text": "It rings."})
    usage = stored(database).usage
    assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (300 + 1100, 600, 100)


def test_a_copied_session_repeats_requests_that_are_counted_once(database: Database) -> None:
    write_conversation(database)
    copy = database.session("20261116_3")
    database.db.execute(
        "INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, metadata_json)"
        " SELECT message_id, ?, role, content_json, created_timestamp, metadata_json FROM messages"
        " WHERE session_id = ?",
        (copy, SESSION),
    )
    total = UsageLedger()
    for session in (SESSION, copy):
        total.absorb(stored(database, session).facts.ledger, session)
    assert total.total().calls == 7


def test_repeated_message_ids_do_not_hide_messages(database: Database) -> None:
    database.session()
    for text in ("one", "two"):
        database.reply(SESSION, {"type": "text", "text": text}, message_id="chatcmpl-7")
    first, second = messages(database)
    assert (first.uuid, second.uuid, second.parent_uuid) == ("chatcmpl-7", "chatcmpl-7#2", "chatcmpl-7")
    assert stored(database).usage.calls == 2


def test_sub_agents_are_linked_on_both_sides(database: Database) -> None:
    write_conversation(database)
    (link,) = stored(database).facts.subagents
    assert (link.session_id, link.tool_id) == (CHILD, "call_5")
    child = stored(database, CHILD).header
    assert (child.is_agent_session, child.parent_session_id, child.title) == (True, SESSION, "Count the words.")


def test_a_compaction_hides_the_messages_before_it_from_the_model_alone(database: Database) -> None:
    database.session()
    database.prompt(SESSION, "Ring the bell.", agentVisible=False)
    database.prompt(SESSION, "The bell was rung.", userVisible=False)
    database.prompt(SESSION, "Ring it again.")
    found = messages(database)
    assert [message.text for message in found] == ["Ring the bell.", "The bell was rung.", "Ring it again."]
    assert found[1].metadata.is_compact_summary is True  # type: ignore[union-attr]
    assert stored(database).facts.prompts == 2


def test_rows_of_older_clients_are_read(database: Database) -> None:
    database.session(name="", description="Ring the bell")
    call = {"type": "toolRequest", "id": "c", "toolCall": {"name": "developer__shell", "arguments": {"command": "ls"}}}
    for_both = [
        {"type": "text", "text": "bell.py", "annotations": {"audience": ["assistant"]}},
        {"type": "text", "text": "bell.py, for you", "annotations": {"audience": ["user"], "priority": 0.0}},
    ]
    result = {"type": "toolResponse", "id": "c", "toolResult": {"status": "success", "value": for_both}}
    database.message(SESSION, "assistant", call)
    database.message(SESSION, "user", result)
    asked, answered = (message.content[0] for message in messages(database))
    assert asked.input == {"command": "ls"}  # type: ignore[union-attr]
    assert answered.output == "bell.py"  # type: ignore[union-attr]
    assert stored(database).header.title == "Ring the bell"


def test_damaged_content_is_a_problem(database: Database) -> None:
    database.session()
    database.prompt(SESSION, "Ring the bell.")
    database.db.execute("UPDATE messages SET content_json = '[{'")
    assert "malformed-json" in {problem.code for problem in stored(database).problems()}


def test_a_change_in_place_is_noticed(database: Database) -> None:
    database.session()
    database.reply(SESSION, {"type": "text", "text": "It"})
    before = source(database.path).change_token
    content = spell([{"type": "text", "text": "It rings."}])
    database.db.execute("UPDATE messages SET content_json = ?", (content,))
    assert source(database.path).change_token != before


def test_a_call_that_never_ended_has_no_result(database: Database) -> None:
    database.session()
    database.reply(SESSION, tool("call_1", "shell", {"command": "ring"}))
    assert [problem.code for problem in stored(database).problems()] == ["unanswered-call"]


@pytest.mark.parametrize(
    ("error", "kept"), [([{"type": "text"}, {"type": "text", "text": "no bell"}], "no bell"), (["broken"], "broken")]
)
@pytest.mark.parametrize("target", ["claude-code", "goose", "pi"])
def test_an_error_of_any_shape_is_converted(
    database: Database, tmp_path: Path, target: str, error: JSON, kept: str
) -> None:
    database.session()
    database.prompt(SESSION, "Ring.")
    database.reply(SESSION, tool("call_1", "shell", {"command": "ring"}))
    failure = {"status": "error", "error": error}
    database.message(SESSION, "user", {"type": "toolResponse", "id": "call_1", "toolResult": failure})
    written = prepare(AGENT, source(database.path), target).write(tmp_path / "new", allow_loss=True)
    assert kept in Path(written.files[0]).read_text()


def test_counts_out_of_range_are_unknown(database: Database) -> None:
    database.session()
    usage = {"inputTokens": 10**30, "outputTokens": 42, "cacheReadTokens": -5}
    database.reply(SESSION, {"type": "text", "text": "Dong."}, in_ledger=False, usage=usage)
    database.request(SESSION, input_tokens=-5, cache_read_tokens=2**60)
    assert stored(database).facts.ledger.total() == Usage(1, None, 42, None, None, None, None, None)


def test_an_image_without_a_type_has_none(database: Database) -> None:
    database.session()
    database.prompt(SESSION, "Look.", {"type": "image", "data": "iVBORw0KGgo="})
    assert messages(database)[0].content[1] == Image(encoding="base64", image="iVBORw0KGgo=")


def test_sessions_are_found(database: Database) -> None:
    write_conversation(database)
    assert {session.id: session.agent.id for session in Library().sources()} == {SESSION: "goose", CHILD: "goose"}
    assert b"provider_inventory" not in rows(database.path)


@pytest.mark.slow
def test_recorded_sessions(shared: Path, tmp_path: Path) -> None:
    content = (shared / "corpus" / "recorded" / "goose" / "sessions" / "sessions.db").read_bytes()
    (tmp_path / "sessions.db").write_bytes(content)
    found = {}
    for one in AGENT.discover(tmp_path):
        assert verify(AGENT, one).holds
        found[AGENT.session_id(one)] = session = StoredSession(AGENT, one)
        assert not list(session.problems())
    main, child = found["20261116_1"], found["20261116_2"]
    assert main.usage == Usage(6, 6 * 300, 6 * 42, None, 6 * 600)
    assert child.usage == Usage(2, 2 * 300, 2 * 42, None, 2 * 600)
    assert (main.facts.messages, main.facts.tool_calls, main.facts.errors, main.facts.prompts) == (15, 6, 1, 1)
    assert [link.session_id for link in main.facts.subagents] == ["20261116_2"]
    assert child.header.parent_session_id == "20261116_1"
