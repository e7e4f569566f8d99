"""Files and folders that may not be read: everything else still works, and nothing that was read before is lost."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.agents import registry
from clew.catalog import database
from clew.catalog.sync import sync
from clew.host import Host
from tests.catalog.worlds import append, claude_lines, claude_path, spelled, write_claude
from tests.cli.running import Ran, clew

SESSION = "aaaaaaaa-0000-4000-8000-000000000000"
OTHER = "bbbbbbbb-0000-4000-8000-000000000000"
COMMANDS: list[list[str]] = [[], ["list"], ["sync"], ["stats"], ["agents"], ["doctor"]]
_DAC_OVERRIDE, _DAC_READ_SEARCH = 1 << 1, 1 << 2
"""The two capabilities with which root reads every file, as bits of a capability set."""


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Capabilities(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


@pytest.fixture(autouse=True)
def permissions_apply() -> Iterator[None]:
    """Take from root what lets it read every file, for the time of a test."""
    if os.name != "posix" or (os.geteuid() == 0 and sys.platform != "linux"):
        pytest.skip("permissions cannot be withheld here")
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = _Header(0x20080522, 0), (_Capabilities * 2)()
    assert libc.capget(ctypes.byref(header), sets) == 0
    before = sets[0].effective
    sets[0].effective = before & ~(_DAC_OVERRIDE | _DAC_READ_SEARCH)
    assert libc.capset(ctypes.byref(header), sets) == 0
    yield
    sets[0].effective = before
    assert libc.capset(ctypes.byref(header), sets) == 0


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    home = tmp_path / "home"
    write_claude(home, SESSION, 10)
    other = home / ".claude/projects/-other" / f"{OTHER}.jsonl"
    other.parent.mkdir()
    other.write_bytes(spelled(claude_lines(OTHER, 0, 10, seed=1)))
    yield home
    for folder, names, files in os.walk(home):
        for name in (*names, *files):
            Path(folder, name).chmod(0o700)


def listed(ran: Ran) -> set[str]:
    assert ran.code == 0, ran.err
    return {row["id"] for row in ran.json}


def reported(home: Path, words: list[str], path: Path) -> int:
    """How often a command says that a file or folder cannot be read."""
    ran = clew("--home", home, *words)
    said = ran.out + ran.err if words[:1] == ["doctor"] else ran.err
    return sum(
        line.startswith((f"clew: {path}: ", f"{path}: ")) and "ermission denied" in line for line in said.splitlines()
    )


def unreadable(home: Path) -> int:
    """The number of sources that a sync cannot read."""
    return sync([Host.at(home)], database.catalog_folder([home]), workers=1).unreadable


def test_an_unreadable_project_folder_stops_no_command_and_loses_no_session(home: Path) -> None:
    assert clew("--home", home, "search", "shuttle1x2", "--json").json["total"] == 1
    folder = home / ".claude/projects/-other"
    folder.chmod(0)
    assert clew("--home", home, "list").err == f"clew: {folder}: Permission denied\n"
    for _ in range(2):
        assert listed(clew("--home", home, "list", "--json")) == {SESSION, OTHER}
        assert unreadable(home) == 1
    assert clew("--home", home, "search", "shuttle1x2", "--json").json["total"] == 1
    folder.chmod(0o700)
    assert unreadable(home) == 0


def test_an_unreadable_project_folder_does_not_stop_the_first_sync(home: Path) -> None:
    folder = home / ".claude/projects/-other"
    folder.chmod(0)
    assert listed(clew("--home", home, "list", "--json")) == {SESSION}
    for command in COMMANDS:
        assert reported(home, command, folder) == 1, command
    folder.chmod(0o700)
    assert listed(clew("--home", home, "list", "--json")) == {SESSION, OTHER}
    for command in COMMANDS:
        assert reported(home, command, folder) == 0, command


@pytest.mark.parametrize("agent", registry.names())
@pytest.mark.parametrize("mode", [0, 0o444], ids=["unlisted", "not to be entered"])
def test_a_folder_of_an_agent_that_was_never_readable_is_reported(home: Path, agent: str, mode: int) -> None:
    shared = {root for name in registry.names() if name != agent for root in registry.get(name).roots(Host.at(home))}
    commands = COMMANDS
    for root in registry.get(agent).roots(Host.at(home)):
        if root in shared:
            continue
        root.mkdir(parents=True, exist_ok=True)
        blocked = root.parent
        blocked.chmod(mode)
        for command in commands:
            assert reported(home, command, blocked) == 1, command
        blocked.chmod(0o700)
        for command in commands:
            assert reported(home, command, blocked) == 0, command
        # Some agents have a folder in each of a dozen editors: one command shows that each of them is looked at.
        commands = COMMANDS[:1]


def test_an_unreadable_folder_deep_below_is_reported_and_all_else_is_listed(home: Path) -> None:
    day = home / ".codex/sessions/2026/11/03"
    day.mkdir(parents=True)
    day.chmod(0)
    for command in COMMANDS:
        assert reported(home, command, day) == 1, command
    assert listed(clew("--home", home, "list", "--json")) == {SESSION, OTHER}
    assert reported(home, ["list", "--agent", "claude-code"], day) == 0
    assert reported(home, ["list", "--agent", "codex"], day) == 1


def test_doctor_reports_an_unreadable_folder_before_the_first_sync(home: Path) -> None:
    folder = home / ".claude/projects/-other"
    folder.chmod(0)
    assert reported(home, ["doctor"], folder) == 1
    assert clew("--home", home, "doctor").code == 1


def test_agents_shows_all_agents_while_a_folder_cannot_be_read(home: Path) -> None:
    (home / ".gemini/tmp").mkdir(parents=True)
    (home / ".gemini").chmod(0)
    ran = clew("--home", home, "agents", "--json")
    assert ran.code == 0 and [row["id"] for row in ran.json] == registry.names()
    roots = {root["path"]: root for row in ran.json for root in row["roots"]}
    assert roots[str(home / ".gemini/tmp")]["error"] and roots[str(home / ".gemini/tmp")]["exists"] is None
    assert roots[str(home / ".claude/projects")] == {
        "path": str(home / ".claude/projects"),
        "exists": True,
        "error": None,
    }
    assert "ermission denied" in clew("--home", home, "agents").out


def test_a_folder_that_is_read_without_the_catalog_is_reported(home: Path) -> None:
    folder = home / ".claude/projects/-other"
    folder.chmod(0)
    for words in (["validate"], ["list", str(home / ".claude")], ["stats", str(home / ".claude")]):
        assert reported(home, words, folder) == 1, words


def test_stats_and_the_overview_report_a_file_that_was_never_readable(home: Path) -> None:
    path = claude_path(home, SESSION)
    path.chmod(0)
    for words in (["stats"], ["stats", "--by", "project", "--json"], [], ["list"], ["search", "shuttle1x2"]):
        assert reported(home, words, path) == 1, words


def test_a_session_that_cannot_be_read_for_a_while_keeps_its_rows_and_text(home: Path) -> None:
    assert listed(clew("--home", home, "list", "--json")) == {SESSION, OTHER}
    assert clew("--home", home, "search", "shuttle0x2", "--json").json["total"] == 1
    path = claude_path(home, SESSION)
    append(path, spelled(claude_lines(SESSION, 10, 5)))
    path.chmod(0)
    assert listed(clew("--home", home, "list", "--json")) == {SESSION, OTHER}
    assert reported(home, ["list"], path) == reported(home, ["stats"], path) == 1
    assert unreadable(home) == 1
    assert clew("--home", home, "search", "shuttle0x2", "--json").json["total"] == 1
    path.chmod(0o600)
    assert unreadable(home) == 0
    assert clew("--home", home, "search", "shuttle0x12", "--json").json["total"] == 1
    path.chmod(0)
    clew("--home", home, "sync")
    path.unlink()
    assert clew("--home", home, "search", "shuttle0x2", "--json").json["total"] == 1


def test_a_file_that_was_never_readable_is_named_with_the_reason(home: Path) -> None:
    path = claude_path(home, SESSION)
    path.chmod(0)
    ran = clew("--home", home, "list", "--json")
    assert listed(ran) == {OTHER}
    assert ran.err.count(str(path)) == 1 and "ermission denied" in ran.err
    assert "SourceUnreadable" not in ran.err and "PermissionError" not in ran.err


def test_a_catalog_that_may_not_be_opened_is_replaced_by_a_temporary_one(home: Path) -> None:
    assert listed(clew("--home", home, "list", "--json")) == {SESSION, OTHER}
    path = database.catalog_folder([home]) / database.DATABASE
    path.chmod(0)
    ran = clew("--home", home, "list", "--json")
    assert listed(ran) == {SESSION, OTHER}
    assert "temporary catalog" in ran.err and "Traceback" not in ran.err
    path.chmod(0o600)
    assert not list(path.parent.parent.glob("*.aside-*"))
