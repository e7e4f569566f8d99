"""Saved sessions of sage-emacs in every command: listed, searched, followed, exported, converted, and left alone."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from clew.agents import registry
from clew.agents.base import Header
from clew.convert.prepare import prepare
from clew.file_history.history import FileHistory
from clew.host import Host
from clew.library import Library
from clew.migrate.sage import plan
from tests.agents.saved_sessions import PLACES, message, pretty, saved, write
from tests.cli.running import COMMAND, clew, state
from tests.convert.said import calls_first, only, said
from tests.files.asking import known
from tests.receivers import RECEIVERS

AGENT = registry.get("sage-emacs")
OTHERS = [name for name in RECEIVERS if name != AGENT.id]
TALK = [
    message("user", "How does the xylophone sound?"),
    message("assistant", "Like a wooden bell."),
    message("user", "And the glockenspiel?", timestamp="2026-01-11T17:02:00-0500"),
    message("assistant", "Like a metal one.", timestamp="2026-01-11T17:02:05-0500"),
]


@pytest.fixture
def path(home: Path) -> Path:
    return write(home, saved(*TALK))


def only_id(home: Path) -> str:
    (row,) = clew("--home", home, "list", "--json").json
    identity: str = row["id"]
    return identity


def hits(home: Path, *asked: str) -> list[Any]:
    ran = clew("--home", home, "search", *asked, "--json")
    assert ran.code in (0, 1), ran.err
    found: list[Any] = ran.json["hits"]
    return found


# Found


def test_it_is_listed_and_shown(home: Path, path: Path) -> None:
    (row,) = clew("--home", home, "list", "--json").json
    assert (row["agent"], row["title"]) == ("sage-emacs", "the bell")
    assert [row["id"] for row in clew("--home", home, "list", "--project", "bell", "--json").json] == [row["id"]]
    assert clew("--home", home, "list", "--project", "horn", "--json").json == []
    for reference in (row["id"], str(path)):
        shown = clew("--home", home, "show", reference)
        assert shown.code == 0
        assert "How does the xylophone sound?" in shown.out and "Like a metal one." in shown.out


@pytest.mark.slow
def test_the_catalog_stays_fresh(home: Path, path: Path) -> None:
    assert clew("--home", home, "sync").code == 0
    first = only_id(home)
    assert hits(home, "glockenspiel") and not hits(home, "tambourine")
    # The program writes the whole file anew.
    path.write_bytes(pretty(saved(*TALK, message("user", "And the tambourine?"))))
    assert clew("--home", home, "sync").code == 0
    assert hits(home, "tambourine") and only_id(home) == first
    again = write(home, saved(message("user", "A gong.")), "gong.json", PLACES[1])
    assert clew("--home", home, "sync").code == 0
    assert hits(home, "gong")
    again.unlink()
    assert clew("--home", home, "sync").code == 0
    assert len(clew("--home", home, "list", "--json").json) == 1


def test_estimates_cost_nothing(home: Path, path: Path) -> None:
    clew("--home", home, "sync")
    (session,) = Library(Host.at(home)).sources()
    assert session.facts.ledger.total().calls == 0
    (row,) = clew("--home", home, "list", "--json").json
    assert row["tokens"]["input_tokens"] is None and row["tokens"]["output_tokens"] is None


def test_its_end_is_printed(home: Path, path: Path) -> None:
    lines = clew("--home", home, "tail", only_id(home), "-n", "1", "--json").lines
    assert [block["text"] for line in lines for block in line["content"]] == ["Like a metal one."]


def test_it_is_followed_though_it_is_written_anew(home: Path, path: Path) -> None:
    words = ["--home", home, "tail", path, "-f", "-n", "1", "--json", "--patience", "20"]
    with subprocess.Popen([*COMMAND, *map(str, words)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["index"] == 4
        path.write_bytes(pretty(saved(*TALK, message("user", "And the gong?"))))
        assert json.loads(process.stdout.readline())["index"] == 5
        process.terminate()


def test_what_is_wrong_is_said_with_its_place(home: Path, path: Path) -> None:
    assert clew("--home", home, "validate").code == 0
    path.write_bytes(pretty(saved(*TALK, message_count=9)))
    ran = clew("--home", home, "validate", "--json")
    (found,) = [each for each in ran.json if each["code"] == "metadata-mismatch"]
    assert (found["file"], found["path"]) == (str(path), "$.message_count")


# Written


@pytest.mark.seed("S2-5")
@pytest.mark.parametrize("place", PLACES)
def test_a_document_of_it_is_imported_to_the_same_place(home: Path, tmp_path: Path, place: str) -> None:
    path = write(home, pretty(saved(*TALK, mood="bright"))[:-9] + b"\xff", place=place)
    assert clew("--home", home, "verify").code == 0
    assert clew("--home", home, "export", str(path), "-o", tmp_path / "x.json").code == 0
    assert clew("import", tmp_path / "x.json", "-o", tmp_path / "there").code == 0
    copy = tmp_path / "there" / place / path.name
    assert copy.read_bytes() == path.read_bytes()
    assert AGENT.session_id(AGENT.locate(copy)) == AGENT.session_id(AGENT.locate(path))


@pytest.mark.parametrize("target", OTHERS)
@pytest.mark.parametrize("place", PLACES)
def test_it_goes_to_every_agent_and_comes_back(home: Path, tmp_path: Path, target: str, place: str) -> None:
    path = write(home, saved(*TALK), place=place)
    source = AGENT.locate(path)
    there = only(Path(prepare(AGENT, source, target).write(tmp_path, allow_loss=True).files[0]))
    assert there.agent.id == target
    assert calls_first(said(there.agent, there.source)) == calls_first(said(AGENT, source))
    back = prepare(there.agent, there.source, AGENT.id).write(tmp_path / "back")
    assert [Path(file).relative_to(tmp_path / "back").as_posix() for file in back.files] == [f"{place}/{path.name}"]
    assert Path(back.files[0]).read_bytes() == path.read_bytes()
    assert (back.session_id, back.losses) == (AGENT.session_id(source), [])


def test_a_packed_one_comes_back_packed(home: Path, tmp_path: Path) -> None:
    path = write(home, gzip.compress(pretty(saved(*TALK))), "the_bell.json.gz")
    written = prepare(AGENT, AGENT.locate(path), "sage-agent").write(tmp_path, allow_loss=True)
    there = only(Path(written.files[0]))
    back = prepare(there.agent, there.source, AGENT.id).write(tmp_path / "back")
    assert Path(back.files[0]) == tmp_path / "back" / PLACES[0] / path.name
    assert Path(back.files[0]).read_bytes() == path.read_bytes()


def test_a_damaged_one_is_converted_as_far_as_it_goes(home: Path, tmp_path: Path) -> None:
    path = write(home, pretty(saved(*TALK))[:-400])
    prepared = prepare(AGENT, AGENT.locate(path), "sage-agent")
    assert any("which may hold a message" in loss.what for loss in prepared.losses)
    there = only(Path(prepared.write(tmp_path, allow_loss=True).files[0]))
    assert said(there.agent, there.source)[0] == ("user", "How does the xylophone sound?")
    back = prepare(there.agent, there.source, AGENT.id).write(tmp_path / "back")
    assert Path(back.files[0]).read_bytes() == path.read_bytes()


def test_for_its_own_agent_it_becomes_a_conversation(home: Path, tmp_path: Path, path: Path) -> None:
    source = AGENT.locate(path)
    receiver = AGENT.target_profile()
    assert receiver is not None and receiver.resumes_file(path, ()) is False
    prepared = prepare(AGENT, source, AGENT.id)
    assert [loss.what for loss in prepared.losses] == ["the title"]
    written = prepared.write(tmp_path, allow_loss=True)
    place = Path(written.files[0])
    assert place == tmp_path / ".emacs.d/sage/projects/-home-ada-bell/conversation.jsonl"
    assert said(AGENT, AGENT.locate(place)) == said(AGENT, source)
    assert not (tmp_path / PLACES[0]).exists()
    brought = clew("convert", place, "--to", "sage-emacs", "--original", "--home", tmp_path / "back")
    assert brought.code == 0
    assert (tmp_path / "back" / PLACES[0] / path.name).read_bytes() == path.read_bytes()


def test_nothing_else_goes_to_this_store(home: Path) -> None:
    session = {"id": "s", "workspace": "/home/ada/bell", "workspace_encoded": "", "started_at": None, "ended_at": None}
    for name in registry.names():
        for encoded in ("", "sessions", "../sessions"):
            target = AGENT.target(Header("1.1", "", name, {**session, "workspace_encoded": encoded}, {}))
            assert target.startswith(".emacs.d/sage/projects/")


def test_who_goes_on_with_it_is_given_a_conversation(home: Path, path: Path) -> None:
    assert "clew --home" in clew("--home", home, "resume", only_id(home), "--print").out
    assert clew("--home", home, "resume", only_id(home), "--json").code == 0
    assert (home / ".emacs.d/sage/projects/-home-ada-bell/conversation.jsonl").exists()


# Left alone


def test_migrations_leave_it_alone(home: Path, path: Path) -> None:
    write(home, saved(message()), "metadata.json")
    before = state(home)
    for place in (home, path.parent):
        assert plan(place, names=True, ids=True, tokens=True, forms=True, metadata=True) == []
    assert state(home) == before


def test_what_lies_beside_it_tells_nothing_of_it(home: Path, path: Path) -> None:
    write(home, b'{"project_dir": "/elsewhere", "workspace": "/elsewhere"}', "metadata.json")
    source = AGENT.locate(path)
    assert source.sides == ()
    assert AGENT.session(source, AGENT.facts(source))["workspace"] == "/home/ada/bell"


def test_a_session_without_calls_proves_nothing_about_files(home: Path, path: Path) -> None:
    ran = clew("--home", home, "files", only_id(home), "--json")
    assert ran.code in (0, 1) and not ran.json


def test_calls_that_it_has_all_the_same_are_evidence(home: Path) -> None:
    call = {"name": "write_file", "args": {"path": "bell.py", "content": "one\n"}, "result": "ok", "success": True}
    path = write(home, saved(message(), message("assistant", "", tool_calls=[call])))
    assert known(FileHistory(AGENT, AGENT.locate(path)), 3, "/home/ada/bell/bell.py") == ("text", b"one\n")


def test_a_secret_in_it_is_masked_in_place(home: Path) -> None:
    secret = "sk-ant-api03-" + "Zq8" * 31
    path = write(home, saved(message(content=f"export ANTHROPIC_API_KEY={secret}"), *TALK))
    assert secret not in clew("--home", home, "show", str(path)).out
    assert clew("--home", home, "redact", "scrub", only_id(home), "--write").code == 0
    content = path.read_bytes()
    assert secret.encode() not in content and b"ANTHROPIC_API_KEY=[REDACTED" in content
    source = AGENT.locate(path)
    assert AGENT.facts(source).messages == 5
    assert list(AGENT.check(source, AGENT.facts(source))) == []
