"""clew undo and clew redo: a session of clew's own store goes back and on, with its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.store import Session, Store
from tests.cli.running import LATEST, clew
from tests.store.support import assert_whole


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "data"))
    (work / "tide.txt").write_bytes(b"4 m\n")
    with Store(tmp_path).session("tides") as session:
        session.user("make it 5", uuid="q1")
        with session.watch(session.assistant("I write.", uuid="a1"), ["tide.txt", "new.txt"]):
            (work / "tide.txt").write_bytes(b"5 m\n")
            (work / "new.txt").write_bytes(b"new\n")
    return tmp_path


@pytest.mark.seed("S1-59")
def test_back_and_on(place: Path) -> None:
    tide = place / "work" / "tide.txt"
    done = clew("undo", "tides", "--home", place)
    assert (done.code, done.err) == (0, "")
    assert [line.split() for line in done.out.splitlines()[1:]] == [
        ["write", "tide.txt"],
        ["remove", "new.txt"],
        ["back", "to", "q1"],
    ]
    assert tide.read_bytes() == b"4 m\n" and not (place / "work" / "new.txt").exists()
    told = clew("redo", "tides", "--home", place, "--json").json
    assert (told["action"], told["done"], told["from"], told["head"], told["rescue"]) == (
        "redo",
        True,
        "q1",
        "a1",
        None,
    )
    assert [row["verdict"] for row in told["files"]] == ["write", "write"]
    assert tide.read_bytes() == b"5 m\n"
    assert clew("redo", "tides", "--home", place).code == 1
    assert_whole(place)


def test_only_a_look(place: Path) -> None:
    done = clew("undo", "tides", "--home", place, "--dry-run")
    assert done.code == 0 and "nothing was changed" in done.err
    assert done.out.endswith("would go back to q1\n")
    assert (place / "work" / "tide.txt").read_bytes() == b"5 m\n"
    assert clew("undo", "tides", "--home", place, "--dry-run", "--json").json["done"] is False


def test_R09_a_conflict_is_a_diff_and_exit_code_6(place: Path) -> None:
    tide = place / "work" / "tide.txt"
    tide.write_bytes(b"mine\n")
    done = clew("undo", "tides", "--home", place)
    assert done.code == 6 and "'tide.txt' was changed since" in done.err
    assert "-5 m\n+mine\nwould go back to q1\n" in done.out
    assert tide.read_bytes() == b"mine\n" and (place / "work" / "new.txt").exists()
    told = clew("undo", "tides", "--home", place, "--json")
    assert told.code == 6 and told.json["files"][0]["diff"].endswith("-5 m\n+mine\n")
    forced = clew("undo", "tides", "--home", place, "--force")
    assert forced.code == 0 and tide.read_bytes() == b"4 m\n"
    [copy] = (place / "data" / "rescue").glob("*/tide.txt")
    assert copy.read_bytes() == b"mine\n" and str(copy.parent) in forced.err


def test_one_file_to_a_message(place: Path) -> None:
    done = clew("undo", "tides", "--home", place, "--to", "#1", "--file", "tide.txt")
    assert done.code == 0 and (place / "work" / "new.txt").exists()
    assert (place / "work" / "tide.txt").read_bytes() == b"4 m\n"
    assert clew("undo", "tides", "--home", place, "--file", "other.txt").code == 1


def test_the_workspace_must_be_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place / ".sage")
    refused = clew("undo", "tides", "--home", place)
    assert refused.code == 4 and "not below" in refused.err
    assert clew("undo", "tides", "--home", place, "--in", place / "work").code == 0
    assert clew("redo", "tides", "--home", place, "--in", place / "nowhere").code == 2


def test_R13_what_programs_trust_needs_an_extra_word(place: Path) -> None:
    hook = place / "work" / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(parents=True)
    session = Session(place / ".sage" / "sessions" / "tides")
    with session, session.watch(session.assistant("a hook"), [".git/hooks/pre-commit"]):
        hook.write_bytes(b"#!/bin/sh\n")
    refused = clew("undo", "tides", "--home", place, "--force")
    assert refused.code == 4 and "--allow-protected" in refused.err and hook.exists()
    assert clew("undo", "tides", "--home", place, "--allow-protected").code == 0 and not hook.exists()


@pytest.mark.parametrize("folder", ["repo/.git/hooks", "home/.config"])
@pytest.mark.parametrize("named", [True, False], ids=["--in", "current folder"])
def test_R13_a_workspace_in_a_protected_folder_needs_an_extra_word(
    place: Path, monkeypatch: pytest.MonkeyPatch, folder: str, named: bool
) -> None:
    workspace = place / folder
    name = "git/config" if folder.endswith(".config") else "pre-commit"
    path = workspace / name
    path.parent.mkdir(parents=True)
    monkeypatch.chdir(workspace)
    session = Session(place / ".sage" / "sessions" / "tides")
    with session, session.watch(session.assistant("a trusted file"), [name]):
        path.write_bytes(b"as the tool left it\n")
    where = ["--in", str(workspace)] if named else []
    if named:
        monkeypatch.chdir(place)
    refused = clew("undo", "tides", "--home", place, "--force", *where)
    assert refused.code == 4 and "--allow-protected" in refused.err and path.exists()
    assert clew("undo", "tides", "--home", place, "--allow-protected", *where).code == 0 and not path.exists()
    refused = clew("redo", "tides", "--home", place, "--force", *where)
    assert refused.code == 4 and "--allow-protected" in refused.err and not path.exists()
    assert clew("redo", "tides", "--home", place, "--allow-protected", *where).code == 0 and path.exists()


def test_R13_a_link_to_a_file_that_is_protected_by_the_workspace(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = place / "home" / ".config"
    workspace.mkdir(parents=True)
    monkeypatch.chdir(workspace)
    (workspace / "link").symlink_to("git/config")
    session = Session(place / ".sage" / "sessions" / "tides")
    with session, session.watch(session.assistant("remove a link"), ["link"]):
        (workspace / "link").unlink()
    refused = clew("undo", "tides", "--home", place, "--force")
    assert refused.code == 4 and "--allow-protected" in refused.err
    assert clew("undo", "tides", "--home", place, "--allow-protected").code == 0 and (workspace / "link").is_symlink()


def test_names_and_bytes_are_shown_safely(place: Path) -> None:
    session = Session(place / ".sage" / "sessions" / "tides")
    name = "\x1b[31m\n\udce9"
    with session, session.watch(session.assistant("odd"), [name]):
        (place / "work" / name).write_bytes(b"\x1b]0;x\x07")
    (place / "work" / name).write_bytes(b"\xff\x1b[2J")
    for words in (("undo", "tides", "--home", place), ("undo", "tides", "--home", place, "--json")):
        done = clew(*words)
        assert done.code == 6 and b"\x1b" not in done.raw and "\x1b" not in done.err


@pytest.mark.seed("S1-41")
def test_the_time_machine_puts_one_file_back(place: Path) -> None:
    target = place / "elsewhere"
    target.mkdir()
    done = clew("restore", "tides#1", "--home", place, "tide.txt", "--into", target, "--write")
    assert done.code == 0, done.err
    assert (target / "tide.txt").read_bytes() == b"4 m\n"


def test_restore_creates_its_folder_but_not_the_folders_above(place: Path) -> None:
    target = place / "new"
    shown = clew("restore", "tides#1", "--home", place, "tide.txt", "--into", target)
    assert shown.code == 0 and "write" in shown.out and not target.exists()
    done = clew("restore", "tides#1", "--home", place, "tide.txt", "--into", target, "--yes")
    assert done.code == 0 and f"created {target}" in done.err
    assert (target / "tide.txt").read_bytes() == b"4 m\n"
    deep = clew("restore", "tides#1", "--home", place, "tide.txt", "--into", place / "a" / "b", "--yes")
    assert (deep.code, deep.err) == (3, f"clew: {place / 'a'}: no such folder\n")
    file = clew("restore", "tides#1", "--home", place, "tide.txt", "--into", target / "tide.txt", "--yes")
    assert (file.code, file.err) == (3, f"clew: {target / 'tide.txt'} is not a folder\n")


def test_other_agents_sessions_are_refused(demo: Path) -> None:
    assert clew("undo", LATEST, "--home", demo).code == 2


def test_a_dry_run_says_what_would_be_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".bashrc").write_text("old")
    with Store(tmp_path).session("s") as session:
        session.user("change it")
        with session.watch(session.assistant("done", uuid="m2"), [".bashrc"]):
            Path(".bashrc").write_text("new")
    done = clew("--home", tmp_path, "undo", "s", "--dry-run")
    assert done.code == 0 and "would be refused: '.bashrc'" in done.err and "--allow-protected" in done.err
    assert ".bashrc" in clew("--home", tmp_path, "undo", "s", "--dry-run", "--json").json["refusal"]
    allowed = clew("--home", tmp_path, "undo", "s", "--dry-run", "--allow-protected", "--json").json
    assert allowed["refusal"] is None and Path(".bashrc").read_text() == "new"


def test_a_session_without_recorded_changes_says_how_they_are_recorded(tmp_path: Path) -> None:
    with Store(tmp_path).session("words") as session:
        session.user("hello")
    ran = clew("undo", "words", "--home", tmp_path)
    assert ran.code == 1
    assert "no message has recorded a change of files (an agent records it with Session.watch)" in ran.err
