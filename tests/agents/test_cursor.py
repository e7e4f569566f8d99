"""Cursor: what each bubble becomes, in which order, and that nothing else of the editor's database is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from clew.export.verify import verify
from clew.library import Library
from clew.stored_session import StoredSession
from clew.testing import AgentConformance
from tests.agents.cursor_database import (
    AGENT,
    CHAT,
    CHILD,
    FOLDER,
    Database,
    database_in,
    prompt,
    reply,
    rows,
    source,
    write_conversation,
    write_fixtures,
)
from tests.cli.running import clew

FIXTURES = Path(__file__).parent.parent / "fixtures" / "cursor"


class TestConformance(AgentConformance):
    agent = AGENT
    fixtures = sorted(FIXTURES.glob("*.jsonl"))


@pytest.fixture
def database(own_home: Path) -> Iterator[Database]:
    with closing(Database(database_in(own_home))) as database:
        yield database


def stored(database: Database, chat: str = CHAT) -> StoredSession:
    return StoredSession(AGENT, source(database.path, chat))


def test_the_fixtures_are_what_the_database_gives(tmp_path: Path) -> None:
    (tmp_path / "written").mkdir()
    write_fixtures(tmp_path / "written", tmp_path)
    for path in FIXTURES.glob("*.jsonl"):
        assert (tmp_path / "written" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("is_blob", [False, True])
def test_every_bubble_is_shown_in_the_order_of_the_chat(database: Database, is_blob: bool) -> None:
    write_conversation(database, is_blob=is_blob)
    contents = [
        (unit.value["role"], [block.get("text") or block["type"] for block in unit.value["content"]])
        for unit in stored(database).units()
        if unit.is_message
    ]
    assert contents == [
        ("user", ["Ring the bell."]),
        ("assistant", ["thinking"]),
        ("assistant", ["I write the script."]),
        *[("assistant", ["tool_use"]), ("user", ["tool_result"])] * 4,
        ("assistant", ["It rings."]),
    ]
    session = stored(database)
    assert (session.facts.tool_calls, session.facts.errors, session.facts.prompts) == (4, 2, 1)
    assert (session.header.title, session.header.workspace) == ("Ring the bell", FOLDER)
    last = list(session.messages)[-1]
    assert last.metadata.todos[0].content == "Write bell.py"  # type: ignore[union-attr,index]


def test_counts_that_are_not_known_are_not_zero(database: Database) -> None:
    write_conversation(database)
    usage = stored(database).usage
    assert (usage.calls, usage.input_tokens) == (0, None)


def test_sub_agents_are_linked_on_both_sides(database: Database) -> None:
    write_conversation(database)
    assert [link.session_id for link in stored(database).facts.subagents] == [CHILD]
    child = stored(database, CHILD).header
    assert (child.is_agent_session, child.parent_session_id) == (True, CHAT)


def test_a_removed_bubble_is_kept_as_a_record(database: Database) -> None:
    write_conversation(database)
    kept = [unit.value for unit in stored(database).units() if not unit.is_message]
    assert ("removed bubble", "Ring it never.") in {(record.get("type"), record.get("text")) for record in kept}


def test_chats_of_2024_hold_their_messages(database: Database) -> None:
    database.put(
        f"composerData:{CHAT}",
        {"composerId": CHAT, "createdAt": 1_720_000_000_000, "conversation": [prompt("Ring."), reply("It rings.")]},
    )
    session = stored(database)
    assert [message.text for message in session.messages] == ["Ring.", "It rings."]
    assert verify(AGENT, session.source).holds


def test_keys_and_credentials_are_never_read(database: Database) -> None:
    write_conversation(database)
    assert b"secret-of" not in rows(database.path)
    assert b"agentKv" not in rows(database.path)


def test_empty_chats_are_not_listed(database: Database) -> None:
    write_conversation(database)
    assert {session.id: session.agent.id for session in Library().sources()} == {CHAT: "cursor", CHILD: "cursor"}


def test_files_that_a_chat_changed_are_known(database: Database) -> None:
    write_conversation(database)
    changes = clew("files", CHAT, "--json").json
    assert [(change["action"], change["path"]) for change in changes] == [("change", f"{FOLDER}/bell.py")] * 2


def test_damaged_rows_are_problems(database: Database) -> None:
    write_conversation(database)
    database.db.execute("UPDATE cursorDiskKV SET value = '{' WHERE key LIKE 'bubbleId:%:0003'")
    assert "malformed-json" in {problem.code for problem in stored(database).problems()}
    database.db.execute("UPDATE cursorDiskKV SET value = '{' WHERE key LIKE 'composerData:%'")
    assert verify(AGENT, source(database.path)).holds


@pytest.mark.slow
def test_a_real_chat(shared: Path, tmp_path: Path) -> None:
    content = (shared / "corpus" / "cursor" / "git-ai-project__git-ai" / "cursor_test.vscdb").read_bytes()
    (tmp_path / "state.vscdb").write_bytes(content)
    (found,) = AGENT.discover(tmp_path)
    assert verify(AGENT, found).holds
    session = StoredSession(AGENT, found)
    assert (session.facts.messages, session.facts.prompts, session.facts.tool_calls) == (61, 2, 19)
    assert session.usage.calls == 0
