"""Sessions written for OpenCode: the file that it imports, the rows beside it, and the way back."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.agents.opencode_database import (
    FOLDER,
    SESSION,
    Database,
    database_in,
    rows,
    spell,
    tool,
    write_conversation,
)
from tests.cli.running import BELL, clew
from tests.demo_home import write_small_demo

COLUMNS = {
    "session": "id project_id slug directory title version time_created time_updated".split(),
    "message": "id session_id time_created time_updated data".split(),
    "part": "id message_id session_id time_created time_updated data".split(),
}


def import_into(database: Database, path: Path) -> None:
    """Do what `opencode import` does: insert the session, its messages and parts, with their ids."""
    bundle = json.loads(path.read_bytes())
    info, time = bundle["info"], bundle["info"]["time"]
    columns = {"time_created": time["created"], "time_updated": time["updated"], "parent_id": info.get("parentID")}
    database.session(info["id"], title=info["title"], slug=info["slug"], version=info["version"], **columns)
    for message in bundle["messages"]:
        own = message["info"]
        times = [own["time"]["created"]] * 2
        data = {key: value for key, value in own.items() if key not in ("id", "sessionID")}
        _insert(database, "message", [own["id"], own["sessionID"], *times, spell(data)])
        for part in message["parts"]:
            ids = [part["id"], part["messageID"], part["sessionID"]]
            data = {key: value for key, value in part.items() if key not in ("id", "messageID", "sessionID")}
            _insert(database, "part", [*ids, *times, spell(data)])


def _insert(database: Database, table: str, values: list[Any]) -> None:
    names = ", ".join(COLUMNS[table])
    database.db.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(values))})", values)


def converted(
    home: Path, session: str, target: str = "opencode", *more: str, source: Path | None = None
) -> dict[str, Any]:
    where = ["--home", str(source)] if source is not None else []
    done = clew(*where, "convert", session, "--to", target, "--home", home, "--allow-loss", "--json", *more)
    assert done.code == 0, done.err
    found: dict[str, Any] = done.json
    return found


def bundle_of(outcome: dict[str, Any]) -> dict[str, Any]:
    (command,) = outcome["imports"]
    found: dict[str, Any] = json.loads(Path(command[-1]).read_bytes())
    return found


@pytest.fixture
def demo_home(own_home: Path) -> Path:
    """A home with the sessions of the demo."""
    write_small_demo(own_home)
    return own_home


@pytest.fixture
def conversation(own_home: Path) -> Path:
    """A home with a session of OpenCode."""
    with closing(Database(database_in(own_home))) as database:
        write_conversation(database, is_compacted=False)
    return own_home


def texts(home: Path, session: str) -> list[Any]:
    lines = clew("--home", home, "show", session, "--json").lines
    return [(line["role"], line["content"]) for line in lines]


def test_the_import_file_has_what_the_client_demands(demo_home: Path, tmp_path: Path) -> None:
    outcome = converted(tmp_path, BELL)
    bundle = bundle_of(outcome)
    assert outcome["resume"] == ["opencode", "--session", outcome["session_id"]]
    assert outcome["imports"][0][:2] == ["opencode", "import"]
    assert bundle["info"]["id"] == outcome["session_id"] and outcome["session_id"].startswith("ses_")
    assert {"slug", "title", "version", "time", "directory", "projectID"} <= bundle["info"].keys()
    ids = []
    for message in bundle["messages"]:
        info = message["info"]
        ids.append(info["id"])
        needed = {"role", "time", "agent", "sessionID"}
        needed |= {"model"} if info["role"] == "user" else {"parentID", "modelID", "providerID", "mode", "path"}
        needed |= set() if info["role"] == "user" else {"cost", "tokens", "finish"}
        assert needed <= info.keys()
        for part in message["parts"]:
            assert part["messageID"] == info["id"] and part["id"].startswith("prt_")
            if part["type"] == "tool":
                wanted = {"input", "output", "title", "metadata", "time"}
                assert (wanted if part["state"]["status"] == "completed" else {"input", "error"}) <= part[
                    "state"
                ].keys()
    assert ids == sorted(ids) and all(name.startswith("msg_0") for name in ids)


def test_tokens_are_not_counted_again(demo_home: Path, tmp_path: Path) -> None:
    outcome = converted(tmp_path, BELL)
    (row,) = clew("--home", tmp_path, "list", "--json").json
    assert row["id"] == outcome["session_id"]
    assert row["tokens"]["output_tokens"] is None


def test_the_original_comes_back_before_and_after_the_import(demo_home: Path, tmp_path: Path) -> None:
    there, back = tmp_path / "there", tmp_path / "back"
    outcome = converted(there, BELL)
    before = texts(there, outcome["session_id"])
    row = next(row for row in clew("list", "--json").json if row["id"] == BELL)
    original, agent = row["source"]["path"], row["agent"]
    for number in range(2):
        home = back / str(number)
        returned = converted(home, outcome["session_id"], agent, source=there)
        assert Path(returned["files"][0]).read_bytes() == Path(original).read_bytes()
        if number == 0:
            with closing(Database(database_in(there))) as database:
                import_into(database, Path(outcome["imports"][0][-1]))
            assert texts(there, outcome["session_id"]) == before


def test_what_was_added_after_the_import_is_converted_too(demo_home: Path, tmp_path: Path) -> None:
    there, back = tmp_path / "there", tmp_path / "back"
    outcome = converted(there, BELL)
    with closing(Database(database_in(there))) as database:
        import_into(database, Path(outcome["imports"][0][-1]))
        database._count = 1 << 40
        database.prompt(outcome["session_id"], "And once more.")
        database.reply(outcome["session_id"], {"type": "text", "text": "It rang once more."})
    returned = converted(back, outcome["session_id"], "claude-code", source=there)
    assert returned["session_id"] != BELL
    assert "It rang once more." in clew("--home", back, "show", returned["session_id"]).out


def test_a_session_goes_to_another_agent_and_back(conversation: Path, tmp_path: Path) -> None:
    there, back = tmp_path / "there", tmp_path / "back"
    whole = rows(database_in(conversation), SESSION)
    outcome = converted(there, SESSION, "claude-code")
    done = clew("--home", there, "convert", outcome["session_id"], "--to", "opencode", "--home", back, "--json")
    assert done.code == 0, done.err
    assert done.json["session_id"] == SESSION
    assert Path(done.json["files"][0]).read_bytes() == whole
    assert [Path(command[-1]).is_file() for command in done.json["imports"]] == [True, True]
    again = clew("--home", there, "convert", outcome["session_id"], "--to", "opencode", "--home", conversation)
    assert again.code == 6 and "exists already" in again.err


def test_a_branch_of_its_own_session_is_written_anew(conversation: Path, tmp_path: Path) -> None:
    outcome = converted(tmp_path, SESSION, "opencode", "--branch", "4", "--full-history")
    assert outcome["session_id"] != SESSION
    shown = texts(tmp_path, outcome["session_id"])
    assert next(content[0]["text"] for role, content in shown if role == "user").startswith("Ring the bell")


def test_a_sub_agent_is_imported_too(conversation: Path, tmp_path: Path) -> None:
    outcome = converted(tmp_path, SESSION, "opencode", "--full-history")
    first, second = (json.loads(Path(command[-1]).read_bytes()) for command in outcome["imports"])
    assert second["info"]["parentID"] == first["info"]["id"] == outcome["session_id"]
    parts = [part for message in first["messages"] for part in message["parts"] if part.get("tool") == "task"]
    assert parts[0]["state"]["metadata"]["sessionId"] == second["info"]["id"]


def test_a_call_without_a_result_is_ended(own_home: Path, tmp_path: Path) -> None:
    with closing(Database(database_in(own_home))) as database:
        database.session()
        database.prompt(SESSION, "Ring the bell.")
        database.reply(SESSION, tool("bash", {"command": "ring"}, None))
        database.prompt(SESSION, "And?")
    bundle = bundle_of(converted(tmp_path, SESSION))
    state = bundle["messages"][1]["parts"][0]["state"]
    assert (state["status"], state["error"]) == ("error", "no result was recorded")


def test_resume_imports_first(demo_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dry = clew("resume", BELL, "--to", "opencode", "--dry-run", "--allow-loss", "--home", tmp_path / "to")
    commands = dry.out.splitlines()
    assert ["clew" in commands[0], " import " in commands[1], "--session" in commands[2]] == [True] * 3
    # Without a client, its place is taken by a program that notes how it was called.
    log, program = tmp_path / "log", tmp_path / "bin" / "opencode"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$1" >> {log}\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    folder = tmp_path / "project"
    folder.mkdir()
    with closing(Database(database_in(tmp_path / "from"))) as database:
        database.session(directory=str(folder))
        database.prompt(SESSION, "Ring the bell.")
        database.reply(SESSION, {"type": "text", "text": "It rings."})
    started: list[list[str]] = []
    monkeypatch.setattr(os, "execve", lambda _program, argv, _environ: started.append(argv))
    monkeypatch.chdir(tmp_path)
    done = clew("--home", tmp_path / "from", "resume", SESSION, "--to", "opencode", "--home", tmp_path / "new")
    assert done.code == 0, done.err
    assert [word for word in log.read_text().split() if not word.startswith("--")] == ["import"]
    assert started[0][1] == "--session"


def test_a_session_in_the_database_is_resumed_as_it_is(conversation: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = clew("resume", SESSION, "--json", "--dry-run").json
    assert (found["convert"], found["import"], found["argv"]) == (None, [], ["opencode", "--session", SESSION])


def test_file_changes(conversation: Path) -> None:
    assert [row["action"] for row in clew("files", SESSION, "--json").json] == ["create"]
    shown = clew("show", f"{SESSION}#6", "--file", f"{FOLDER}/bell.py")
    assert shown.out == "print('dong')\n"


def test_edits_are_applied(own_home: Path) -> None:
    bell = f"{FOLDER}/bell.py"
    old, new = "print('dong')\n", "print('ding')\n"
    diff = f"Index: {bell}\n===\n--- {bell}\n+++ {bell}\n@@ -1,1 +1,1 @@\n-{old}+{new}"
    with closing(Database(database_in(own_home))) as database:
        database.session()
        database.prompt(SESSION, "Ring the bell.")
        database.reply(
            SESSION,
            tool("write", {"filePath": bell, "content": old}, "ok", metadata={"exists": False}),
            tool("edit", {"filePath": bell, "oldString": "dong", "newString": "ding"}, "ok", metadata={"diff": diff}),
            tool("read", {"filePath": "README.md"}, "1: x", metadata={}),
        )
    assert clew("show", f"{SESSION}#5", "--file", bell).out == new


def test_the_database_of_a_converted_session_is_never_written(demo_home: Path, tmp_path: Path) -> None:
    with closing(Database(database_in(tmp_path))) as database:
        database.session()
    before = database.path.read_bytes()
    converted(tmp_path, BELL)
    assert database.path.read_bytes() == before
    with closing(sqlite3.connect(database.path)) as db:
        assert db.execute("SELECT count(*) FROM session").fetchone() == (1,)
    shutil.rmtree(tmp_path)
