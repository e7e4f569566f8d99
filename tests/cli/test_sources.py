"""clew sources on this machine alone: folders, homes of another system, and what is said of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clew.host import data_dir
from clew.sources import registry
from tests.cli.running import FORKED, Ran, clew
from tests.unit.test_sources_wsl import put_session, wsl


def names() -> dict[str, bool]:
    """The sources, and whether they are switched on."""
    return {row["name"]: row["enabled"] for row in clew("sources", "list", "--json").json}


@pytest.fixture
def on_wsl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The command runs in WSL; returns the home of a Windows user with a session."""
    machine = wsl(tmp_path / "machine")
    monkeypatch.setattr(registry, "WslDetector", lambda: machine)
    home = machine.root / "mnt" / "c" / "Users" / "ada"
    put_session(home)
    return home


def test_alone(home: Path) -> None:
    for words in (["sources"], ["sources", "list"]):
        ran = clew(*words)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.splitlines()[1].split() == ["local", "local", str(home)]
    (row,) = clew("--json", "sources").json
    assert clew("sources", "--json", "list").json == clew("sources", "--json").json == [row]
    assert (row["name"], row["kind"], row["type"], row["host"], row["enabled"]) == (
        "local",
        "local",
        "local",
        None,
        True,
    )
    assert not data_dir().exists()


def test_a_folder_is_a_source(demo: Path) -> None:
    ran = clew("sources", "add", demo, "--name", "attic")
    assert (ran.code, ran.out, ran.err) == (0, "", "attic: added\n")
    assert names() == {"local": True, "attic": True}
    assert clew("show", FORKED).code == 0
    assert {row["source"]["type"] for row in clew("list", "--json").json} == {"local"}
    assert "from" not in clew("list").out.splitlines()[0].split()
    assert clew("list", "--source", "local").code == 1
    assert clew("list", "--source", "attic").code == 0
    (row,) = clew("sources", "check", "attic", "--json").json
    assert (row["reached"], row["error"], row["waiting"], row["problems"]) == (True, None, None, [])
    assert row["sessions"] == sum(row["agents"].values()) == len(clew("list", "--json").json)
    checked = clew("sources", "check")
    assert checked.code == 0
    assert [line.split()[0] for line in checked.out.splitlines()] == ["name", "local", "attic"]
    assert clew("sources", "remove", "attic").code == 0
    assert names() == {"local": True}
    assert clew("list").code == 1


def test_json_of_what_changes(demo: Path) -> None:
    added = clew("sources", "add", demo, "--name", "attic", "--json").json
    assert (added["name"], added["kind"], added["where"], added["visit"]) == ("attic", "home", str(demo), None)
    assert clew("sources", "remove", "attic", "--json").json == {"name": "attic", "removed": True}


def test_a_relative_folder_is_meant_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "backup").mkdir()
    monkeypatch.chdir(tmp_path)
    assert clew("sources", "add", "./backup").code == 0
    assert clew("sources", "--json").json[1]["where"] == str(tmp_path / "backup")


def test_a_folder_that_vanished_is_said(tmp_path: Path, demo: Path) -> None:
    folder = tmp_path / "usb"
    folder.mkdir()
    assert clew("sources", "add", folder).code == 0
    folder.rmdir()
    ran = clew("sources", "check")
    assert ran.code == 3
    assert "cannot be read" in ran.out
    listed = clew("list")
    assert (listed.code, listed.err) == (1, "no sessions found; `clew agents` lists the folders that are read\n")
    (_, row) = clew("sources", "check", "--json").json
    assert (row["reached"], row["error"]) == (False, f"{folder}: cannot be read")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["add", "/no/such/folder"], 3, "clew: /no/such/folder: no such folder\n"),
        (["add", "-oProxyCommand=x"], 2, None),
        (["add", "--", "-oProxyCommand=x"], 2, "is not a host for ssh; try host, user@host or ssh://user@host:port\n"),
        (["add", "box;x"], 2, "is not a host for ssh; try host, user@host or ssh://user@host:port\n"),
        (["add", "box", "--name", "../x"], 2, "cannot be the name of a source: letters, digits and ._@- only\n"),
        (["add", "box", "--name", "local"], 2, "cannot be the name of a source: that name is reserved\n"),
        (["add", "box", "--name", "Archive"], 2, "cannot be the name of a source: that name is reserved\n"),
        (["remove", "nowhere"], 2, "clew: unknown source 'nowhere'; known: local\n"),
        (["remove", "local"], 2, "clew: your own home is always a source; --source NAME reads others only\n"),
        (["check", "nowhere"], 2, "clew: unknown source 'nowhere'; known: local\n"),
        (["fetch", "local"], 2, "only remote hosts are fetched; home folders on this machine are read directly\n"),
        (["add"], 2, None),
        (["nonsense"], 2, None),
    ],
)
def test_what_makes_no_sense(words: list[str], code: int, said: str | None) -> None:
    ran = clew("sources", *words)
    assert (ran.code, ran.out) == (code, "")
    assert said is None or (ran.err.endswith(said) and len(ran.err.splitlines()) == 1)
    assert not (data_dir() / "sources.jsonl").exists()


def test_nothing_to_fetch() -> None:
    ran = clew("sources", "fetch")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "no remote hosts are configured; add one with `clew sources add HOST`\n"
    assert clew("sources", "fetch", "--json").json == []


def hosts(ran: Ran) -> set[tuple[str, str | None]]:
    return {(row["source"]["type"], row["source"]["host"]) for row in ran.json}


@pytest.mark.seed("S2-17", "S2-22")
def test_windows_homes_are_found_and_can_be_switched_off(on_wsl: Path) -> None:
    assert names() == {"local": True, "windows-Grace-Hopper": True, "windows-ada": True}
    assert hosts(clew("list", "--json")) == {("windows", None)}
    listed = clew("list").out.splitlines()
    assert listed[0].split()[-1] == "from"
    assert listed[1].split()[-1] == "windows"
    assert clew("sources", "remove", "windows-ada").code == 0
    assert clew("sources", "remove", "windows-ada").code == 0
    assert names() == {"local": True, "windows-Grace-Hopper": True, "windows-ada": False}
    assert "disabled" in clew("sources").out
    assert clew("list").code == 1
    assert clew("list", "--source", "windows-ada").code == 0
    assert clew("sources", "add", "windows-ada").code == 0
    assert names()["windows-ada"] is True
    assert clew("list").code == 0
    assert (data_dir() / "sources.jsonl").read_bytes() == b""


def test_a_named_home_is_the_only_one(on_wsl: Path, demo: Path) -> None:
    assert hosts(clew("--home", demo, "list", "--json")) == {("local", None)}


def test_a_path_in_a_windows_home_is_of_windows(on_wsl: Path) -> None:
    path = next(on_wsl.rglob("*.jsonl"))
    source = clew("export", path).json["session"]["source"]
    assert source == {"type": "windows", "host": None, "path": str(path)}


def test_the_variables_of_an_agent_hold_at_home_only(on_wsl: Path, demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(demo / ".claude"))
    rows = clew("list", "--json", "--agent", "claude-code").json
    assert FORKED in {row["id"] for row in rows}
    assert {row["source"]["type"] for row in rows} == {"local", "windows"}


def test_a_damaged_file_of_sources_stops_nothing(demo: Path) -> None:
    assert clew("sources", "add", demo, "--name", "attic").code == 0
    path = data_dir() / "sources.jsonl"
    path.write_bytes(b"{broken\n" + path.read_bytes())
    ran = clew("list")
    assert ran.code == 0
    assert ran.err.startswith(f"clew: {path}:1: ")
    assert len(ran.err.splitlines()) == 1
    assert clew("sources", "remove", "attic").code == 0
    assert path.read_bytes() == b"{broken\n"


def test_a_folder_with_a_closed_door_is_passed_over(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert clew("sources", "add", demo, "--name", "attic").code == 0
    real = os.stat

    def closed(path: str | os.PathLike[str], *rest: object, **more: object) -> os.stat_result:
        if str(path).startswith(str(demo / ".claude")):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", closed)
    ran = clew("list", "--json")
    assert ran.code == 0
    assert "claude-code" not in {row["agent"] for row in ran.json}


def test_a_mirror_whose_state_is_damaged_is_named(demo: Path) -> None:
    assert clew("sources", "add", "box.example", "--name", "box", "--no-fetch").code == 0
    mirror = data_dir() / "remotes" / "box"
    (mirror / "files").mkdir(parents=True)
    (mirror / "state.json").write_text("{broken")
    assert "box: the record of its fetched files is damaged" in clew("list").err
