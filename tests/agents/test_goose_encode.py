"""Sessions written for Goose: what it imports, and what clew reads before and after the import."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from clew.library import Library
from tests.agents.goose_database import SESSION, Database, database_in, spell, write_conversation
from tests.agents.test_pi import TREE
from tests.cli.running import clew


@pytest.fixture
def database(own_home: Path) -> Iterator[Database]:
    with closing(Database(database_in(own_home))) as database:
        yield database


def import_session(database: Database, file: Path, own_id: str) -> dict[str, Any]:
    """Do what the client does when it imports a file: the session gets another id, and messages keep theirs."""
    session = json.loads(file.read_text(encoding="utf-8"))
    kept = ("name", "user_set_name", "session_type", "working_dir")
    data = spell({**session["extension_data"], "enabled_extensions.v0": {"extensions": []}})
    database.session(own_id, **{name: session[name] for name in kept}, extension_data=data, model_config_json=None)
    for message in session["conversation"]:
        database.db.execute(
            "INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, metadata_json)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (
                message["id"],
                own_id,
                message["role"],
                spell(message["content"]),
                message["created"],
                spell(message["metadata"]),
            ),
        )
    assert session["message_count"] == len(session["conversation"])
    return dict(session)


def convert(reference: str | Path, target: str, home: Path) -> dict[str, Any]:
    done = clew("convert", str(reference), "--to", target, "--home", home, "--allow-loss", "--json")
    assert done.code == 0, done.err
    return dict(done.json)


def test_an_imported_session_keeps_the_id_that_clew_gave_it(own_home: Path, database: Database) -> None:
    outcome = convert(TREE, "goose", own_home)
    texts = [message.text for message in next(Library().sources()).messages]
    ((*_, file),) = outcome["imports"]
    session = import_session(database, Path(file), "20261117_1")
    assert outcome["resume"] == ["goose", "session", "--resume", f"--name={session['name']}"]
    (found,) = Library().sources()
    assert found.id == outcome["session_id"]
    assert [message.text for message in found.messages] == texts
    resumed = clew("resume", found.id, "--dry-run", "--json").json
    assert (resumed["convert"], resumed["import"]) == (None, [])
    assert resumed["argv"] == ["goose", "session", "--resume", "--session-id", "20261117_1"]


def test_the_way_back_gives_the_same_bytes(own_home: Path, database: Database, tmp_path: Path) -> None:
    outcome = convert(TREE, "goose", own_home)
    import_session(database, Path(outcome["imports"][0][-1]), "20261117_1")
    back = convert(outcome["session_id"], "pi", tmp_path)
    assert Path(back["files"][0]).read_bytes() == TREE.read_bytes()


def test_a_second_import_is_a_session_of_its_own(own_home: Path, database: Database) -> None:
    outcome = convert(TREE, "goose", own_home)
    for own_id in ("20261117_1", "20261117_2"):
        import_session(database, Path(outcome["imports"][0][-1]), own_id)
    assert {found.id for found in Library().sources()} == {outcome["session_id"], "20261117_2"}


def test_sub_agents_are_imported_and_linked(own_home: Path, database: Database, tmp_path: Path) -> None:
    write_conversation(database)
    outcome = convert(SESSION, "goose", tmp_path)
    with closing(Database(database_in(tmp_path))) as target:
        for number, (*_, file) in enumerate(outcome["imports"], 1):
            import_session(target, Path(file), f"20261117_{number}")
        clew("--home", tmp_path, "sync")
        found = clew("--home", tmp_path, "list", "--subagents", "--json").json
    parents = {one["id"]: one["parent_session_id"] for one in found}
    child = next(name for name in parents if name != outcome["session_id"])
    assert parents == {outcome["session_id"]: None, child: outcome["session_id"]}
    shown = clew("--home", tmp_path, "export", outcome["session_id"], "-o", "-").json
    assert [link["session_id"] for link in shown["session"]["subagents"]] == [child]


def test_files_that_a_session_changed_are_known(database: Database) -> None:
    write_conversation(database)
    changes = clew("files", SESSION, "--json").json
    # A command ran in between, which may have changed the file.
    assert [(change["action"], change["after"]["certainty"]) for change in changes] == [
        ("create", "exact"),
        ("change", "unproved"),
    ]


def test_a_session_in_the_database_is_converted_for_others(database: Database, tmp_path: Path) -> None:
    write_conversation(database)
    for target in ("claude-code", "codex"):
        assert convert(SESSION, target, tmp_path)["session_id"]
