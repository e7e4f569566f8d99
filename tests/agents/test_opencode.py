"""OpenCode 1 and 2, and Kilo: what each row becomes, and that everything is counted once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from clew.agents.opencode import Kilo, OpenCode
from clew.analysis.usage import Usage, UsageLedger
from clew.export.verify import verify
from clew.library import Library
from clew.model import Message
from clew.model.json import JSON
from clew.stored_session import StoredSession
from clew.testing import AgentConformance
from tests.agents.opencode_database import (
    AGENT,
    CHILD,
    SESSION,
    Database,
    database_in,
    rows,
    source,
    tool,
    undo,
    write_conversation,
    write_fixtures,
    write_version_2,
)

FIXTURES = Path(__file__).parent.parent / "fixtures" / "opencode"


class TestConformance(AgentConformance):
    agent = OpenCode()
    fixtures = sorted(FIXTURES.glob("*.jsonl"))


@pytest.fixture
def database(own_home: Path) -> Iterator[Database]:
    with closing(Database(database_in(own_home))) as database:
        yield database


@pytest.fixture
def database_2(own_home: Path) -> Iterator[Database]:
    with closing(Database(database_in(own_home), version_2=True)) as database:
        yield database


def stored(database: Database, session: str = SESSION) -> StoredSession:
    return StoredSession(AGENT, source(database.path, session))


def messages(database: Database, session: str = SESSION) -> list[Message]:
    return list(stored(database, session).messages)


def contents(database: Database, session: str = SESSION) -> list[tuple[str, JSON]]:
    return [
        (unit.value["role"], [block.get("text") or block["type"] for block in unit.value["content"]])
        for unit in stored(database, session).units()
        if unit.is_message
    ]


def test_the_fixtures_are_what_the_database_gives(tmp_path: Path) -> None:
    (tmp_path / "written").mkdir()
    write_fixtures(tmp_path / "written", tmp_path)
    for path in FIXTURES.glob("*.jsonl"):
        assert (tmp_path / "written" / path.name).read_bytes() == path.read_bytes()


def test_every_part_is_shown(database: Database) -> None:
    write_conversation(database)
    assert contents(database) == [
        ("user", ['Ring the bell,\n"three" times.', "image"]),
        ("user", ["Called the Read tool."]),
        ("assistant", ["thinking"]),
        ("assistant", ["I write the script."]),
        ("assistant", ["tool_use"]),
        ("user", ["tool_result"]),
        *[("assistant", ["tool_use"]), ("user", ["tool_result"])] * 4,
        ("assistant", ["It rings."]),
        ("assistant", ["The bell was rung."]),
    ]
    facts = stored(database).facts
    assert (facts.tool_calls, facts.errors, facts.prompts) == (5, 2, 1)
    found = messages(database)
    assert found[1].metadata.is_meta is True  # type: ignore[union-attr]
    assert found[-1].metadata.is_compact_summary is True  # type: ignore[union-attr]
    assert found[9].metadata.todos[0].content == "Write bell.py"  # type: ignore[union-attr,index]


def test_output_includes_reasoning_and_each_request_counts_once(database: Database) -> None:
    write_conversation(database)
    usage = stored(database).usage
    assert usage == Usage(4, 4 * 300, 4 * 42, 0, 4 * 600, reasoning_tokens=4 * 10)


def test_a_fork_repeats_requests_that_are_counted_once(database: Database) -> None:
    write_conversation(database)
    fork = database.session("ses_fork", title="Ring the bell (fork #1)")
    for name, data in database.db.execute("SELECT id, data FROM message WHERE session_id = ?", (SESSION,)).fetchall():
        copy = "INSERT INTO message SELECT ?, ?, time_created, time_updated, ? FROM message WHERE id = ?"
        database.db.execute(copy, (f"copy-{name}", fork, data, name))
        copy = (
            "INSERT INTO part SELECT 'copy-' || id, ?, ?, time_created, time_updated, data FROM part"
            " WHERE message_id = ?"
        )
        database.db.execute(copy, (f"copy-{name}", fork, name))
    total = UsageLedger()
    for session in (SESSION, fork):
        total.absorb(stored(database, session).facts.ledger, session)
    assert total.total().calls == 4
    assert stored(database, fork).header.subagents in ([], None) or not stored(database, fork).facts.subagents


def test_sub_agents_are_linked_on_both_sides(database: Database) -> None:
    write_conversation(database)
    (link,) = stored(database).facts.subagents
    assert (link.session_id, link.tool_id) == (CHILD, "call_task")
    child = stored(database, CHILD).header
    assert (child.is_agent_session, child.parent_session_id) == (True, SESSION)


def test_an_undone_exchange_is_a_branch_that_was_left(database: Database) -> None:
    database.session()
    database.prompt(SESSION, "Ring the bell.")
    database.reply(SESSION, {"type": "text", "text": "It rings."})
    undo(database)
    undo(database)
    database.prompt(SESSION, "Ring it once more.")
    database.reply(SESSION, {"type": "text", "text": "Again."})
    found = messages(database)
    texts = [message.text for message in found]
    assert texts[:4] == ["Ring the bell.", "It rings.", "Ring it once more.", "Again."]
    assert texts[4:] == ["Ring it again.", "It rang again."] * 2
    assert found[4].parent_uuid == found[6].parent_uuid == found[2].parent_uuid == found[1].uuid
    tree = stored(database).facts.tree
    assert tree.graph().active_path == [message.uuid for message in found[:4]]
    assert len(tree.graph().fork_points[0].branches) == 3
    assert stored(database).usage.calls == 4


def test_what_a_pending_undo_hides_is_not_on_the_active_path(database: Database) -> None:
    database.session()
    database.prompt(SESSION, "Ring the bell.")
    hidden = database.prompt(SESSION, "Ring it again.")
    database.db.execute("UPDATE session SET revert = ?", (f'{{"messageID":"{hidden}"}}',))
    found = messages(database)
    assert stored(database).facts.tree.graph().active_path == [found[0].uuid]


def test_a_failed_request_without_parts_is_a_message(database: Database) -> None:
    database.session()
    database.prompt(SESSION, "Ring the bell.")
    database.reply(SESSION, error={"name": "APIError", "data": {"message": "overloaded"}}, tokens=None)
    database.prompt(SESSION, "And now?")
    assert [message.text for message in messages(database)] == ["Ring the bell.", "APIError: overloaded", "And now?"]


def test_a_call_that_never_ended_has_no_result(database: Database) -> None:
    database.session()
    database.reply(SESSION, tool("bash", {"command": "ring"}, None))
    assert [problem.code for problem in stored(database).problems()] == ["unanswered-call"]


def test_version_2_is_read(database_2: Database) -> None:
    write_version_2(database_2)
    assert contents(database_2) == [
        ("user", ["Ring the bell.", "image"]),
        ("assistant", ["thinking", "I ring.", "tool_use", "tool_use"]),
        ("user", ["tool_result", "tool_result"]),
        ("user", ["The bell is old."]),
        ("assistant", ["tool_use"]),
        ("user", ["tool_result"]),
        ("user", ["The bell was rung."]),
    ]
    assert stored(database_2).usage == Usage(1, 300, 42, 0, 600, reasoning_tokens=10)
    assert stored(database_2).facts.errors == 1


def test_messages_without_numbers_are_in_the_order_of_their_times(database: Database) -> None:
    session = database.session()
    for text in ("Ring the bell.", "Ring it again."):
        database.row_of_version_2(session, "user", {"text": text})
    database.db.execute("ALTER TABLE session_message DROP COLUMN seq")
    assert contents(database) == [("user", ["Ring the bell."]), ("user", ["Ring it again."])]


def test_a_session_that_version_2_has_copied_is_read_once(database_2: Database) -> None:
    write_conversation(database_2)
    write_version_2(database_2)
    found = [AGENT.session_id(one) for one in AGENT.discover(database_2.path.parent)]
    assert sorted(found) == sorted([SESSION, CHILD])
    assert stored(database_2).facts.version == "2.0.23"
    assert stored(database_2).usage.calls == 1


def test_credentials_are_never_read(database: Database) -> None:
    write_conversation(database)
    assert b"secret-of" not in rows(database.path, SESSION)


def test_kilo_has_a_database_of_its_own(own_home: Path) -> None:
    with closing(Database(database_in(own_home, "kilo"))) as database:
        write_conversation(database)
    found = {session.id: session.agent.id for session in Library().sources()}
    assert found == {SESSION: "kilo", CHILD: "kilo"}


def test_recorded_sessions(shared: Path, tmp_path: Path) -> None:
    truth = {"opencode": (12, 504, 2, 3), "kilo": (8, 336, 1, 1)}
    for agent in (OpenCode(), Kilo()):
        folder = tmp_path / agent.id
        folder.mkdir()
        name = f"{agent.id}.db"
        (folder / name).write_bytes((shared / "corpus" / "recorded" / agent.id / name).read_bytes())
        total, errors, children = UsageLedger(), 0, 0
        for one in agent.discover(folder):
            assert verify(agent, one).holds
            session = StoredSession(agent, one)
            total.absorb(session.facts.ledger, session.id)
            if not session.header.title or "fork" not in session.header.title:
                errors += session.facts.errors
            children += len(session.facts.subagents)
        usage = total.by_model()["lab-model"]
        requests, output, *_ = truth[agent.id]
        assert (usage.calls, usage.output_tokens) == (requests, output)
        assert (usage.input_tokens, usage.cache_read_tokens) == (requests * 300, requests * 600)
        assert (errors, children) == (1, 1)


def test_rows_are_read_from_a_file_too(database: Database, tmp_path: Path) -> None:
    write_conversation(database)
    expected = [message.text for message in messages(database)]
    copy = tmp_path / "anything.jsonl"
    copy.write_bytes(rows(database.path, SESSION))
    (found,) = Library().sessions_at(copy)
    assert found.id == SESSION
    assert [message.text for message in found.messages] == expected
