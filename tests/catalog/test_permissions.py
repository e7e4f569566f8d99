"""Files and folders that may not be read: everything else still works, and nothing that was read before is lost."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.catalog import database
from clew.catalog.sync import sync
from clew.host import Host
from tests.catalog.worlds import append, claude_lines, claude_path, spelled, write_claude
from tests.cli.running import Ran, clew

SESSION = "aaaaaaaa-0000-4000-8000-000000000000"
OTHER = "bbbbbbbb-0000-4000-8000-000000000000"
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


def unreadable(home: Path) -> int:
    """The number of sources that a sync cannot read."""
    return sync([Host.at(home)], database.catalog_folder([home]), workers=1).unreadable


def test_an_unreadable_project_folder_stops_no_command_and_loses_no_session(home: Path) -> None:
    assert clew("--home", home, "search", "shuttle1x2", "--json").json["total"] == 1
    folder = home / ".claude/projects/-other"
    folder.chmod(0)
    for _ in range(2):
        assert listed(clew("--home", home, "list", "--json")) == {SESSION, OTHER}
        assert unreadable(home) == 1
    assert clew("--home", home, "search", "shuttle1x2", "--json").json["total"] == 1
    folder.chmod(0o700)
    assert unreadable(home) == 0


def test_an_unreadable_project_folder_does_not_stop_the_first_sync(home: Path) -> None:
    (home / ".claude/projects/-other").chmod(0)
    assert listed(clew("--home", home, "list", "--json")) == {SESSION}


def test_a_session_that_cannot_be_read_for_a_while_keeps_its_rows_and_text(home: Path) -> None:
    assert listed(clew("--home", home, "list", "--json")) == {SESSION, OTHER}
    assert clew("--home", home, "search", "shuttle0x2", "--json").json["total"] == 1
    path = claude_path(home, SESSION)
    append(path, spelled(claude_lines(SESSION, 10, 5)))
    path.chmod(0)
    assert listed(clew("--home", home, "list", "--json")) == {SESSION, OTHER}
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
