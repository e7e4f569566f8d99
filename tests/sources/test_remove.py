"""`clew sources remove` never deletes files that may exist nowhere else, unless it is told to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clew.host import data_dir
from clew.sources.mirror import Mirror, State
from tests.cli.running import clew

SESSION = "/home/ada/.claude/projects/-p/aaaaaaaa-0000-4000-8000-000000000001.jsonl"


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    """The copy of a host that was fetched once; the host still has its only file."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "own"))
    assert clew("sources", "add", "box", "--no-fetch").code == 0
    found = Mirror(data_dir() / "remotes" / "box", "box")
    found.place(SESSION).parent.mkdir(parents=True)
    found.place(SESSION).write_bytes(b"{}\n")
    found.remember(State(home="/home/ada", env={}, fetched_at="2026-11-01T00:00:00Z"))
    return found


def _state_file(mirror: Mirror) -> Path:
    return mirror.folder / "state.json"


@pytest.mark.parametrize("damage", ["truncated", "empty", "missing", "other type", "unreadable", "folder"])
def test_copies_stay_where_the_state_file_cannot_be_read(mirror: Mirror, damage: str) -> None:
    path = _state_file(mirror)
    content = path.read_bytes()
    if damage in ("missing", "folder"):
        path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage == "unreadable":
        if os.geteuid() == 0:
            pytest.skip("root reads every file")
        path.chmod(0)
    elif damage != "missing":
        path.write_bytes({"truncated": content[:-5], "empty": b"", "other type": b"[]"}[damage])
    refused = clew("sources", "remove", "box")
    assert (refused.code, refused.out) == (6, "")
    assert refused.err == (
        "clew: box: its state file is missing or unreadable, so the 1 files here may be the only copies; "
        "--allow-loss deletes them\n"
    )
    assert mirror.place(SESSION).read_bytes() == b"{}\n"
    assert "box" in clew("sources").out
    assert clew("sources", "remove", "box", "--allow-loss").code == 0
    assert not mirror.folder.exists()


def test_copies_of_files_that_the_host_still_has_need_no_permission(mirror: Mirror) -> None:
    assert clew("sources", "remove", "box").code == 0
    assert not mirror.folder.exists()


def test_a_host_that_was_never_fetched_is_removed_without_a_question(mirror: Mirror) -> None:
    mirror.place(SESSION).unlink()
    _state_file(mirror).unlink()
    assert clew("sources", "remove", "box").code == 0
    assert not mirror.folder.exists()
