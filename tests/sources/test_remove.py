"""`clew sources remove` never deletes files that may exist nowhere else, unless it is told to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clew.host import data_dir
from clew.sources.mirror import Mirror, MirrorState
from tests.cli.running import FORKED, clew, state
from tests.sources.conftest import Box

SESSION = "/home/ada/.claude/projects/-p/aaaaaaaa-0000-4000-8000-000000000001.jsonl"


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    """The copy of a host that was fetched once, when it had all files; now nobody knows the host."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "own"))
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text("#!/bin/sh\necho 'ssh: cannot find box' >&2\nexit 255\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}{os.pathsep}{os.environ['PATH']}")
    assert clew("sources", "add", "box", "--no-fetch").code == 0
    found = Mirror(data_dir() / "remotes" / "box", "box")
    found.place(SESSION).parent.mkdir(parents=True)
    found.place(SESSION).write_bytes(b"{}\n")
    found.remember(MirrorState(home="/home/ada", env={}, fetched_at="2026-11-01T00:00:00Z"))
    return found


@pytest.fixture
def added(box: Box) -> Box:
    """Another machine that answers, already a source."""
    assert clew("sources", "add", "box").code == 0
    return box


def _folder() -> Path:
    return data_dir() / "remotes" / "box"


@pytest.mark.parametrize("damage", ["none", "truncated", "empty", "missing", "other type", "unreadable", "folder"])
def test_copies_stay_where_the_host_does_not_answer(mirror: Mirror, damage: str) -> None:
    """What the last visit noted does not matter, and neither does damage to the notes."""
    path = mirror.folder / "state.json"
    content = path.read_bytes()
    if damage in ("missing", "folder"):
        path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage == "unreadable":
        if os.geteuid() == 0:
            pytest.skip("root reads every file")
        path.chmod(0)
    elif damage not in ("none", "missing"):
        path.write_bytes({"truncated": content[:-5], "empty": b"", "other type": b"[]"}[damage])
    refused = clew("sources", "remove", "box")
    assert (refused.code, refused.out) == (6, "")
    assert refused.err == (
        "clew: box: ssh: cannot find box. box does not answer, so the only copy of 1 files may be here; "
        "use --allow-loss to remove them anyway\n"
    )
    assert mirror.place(SESSION).read_bytes() == b"{}\n"
    assert "box" in clew("sources").out
    assert clew("sources", "remove", "box", "--allow-loss").code == 0
    assert not mirror.folder.exists()


def test_a_host_without_copies_is_removed_without_a_visit(mirror: Mirror) -> None:
    mirror.place(SESSION).unlink()
    (mirror.folder / "state.json").unlink()
    assert clew("sources", "remove", "box").code == 0
    assert not mirror.folder.exists()


@pytest.mark.slow
def test_copies_of_files_that_the_host_still_has_need_no_permission(added: Box) -> None:
    assert clew("sources", "remove", "box").code == 0
    assert added.connections() == 2
    assert not _folder().exists()


@pytest.mark.slow
def test_a_lost_state_file_is_made_good_by_the_visit(added: Box) -> None:
    (_folder() / "state.json").unlink()
    assert clew("sources", "remove", "box").code == 0
    assert not _folder().exists()


@pytest.mark.slow
def test_files_that_went_since_the_last_visit_are_noticed(added: Box) -> None:
    next(added.home.rglob(f"{FORKED}.jsonl")).unlink()
    before = state(_folder() / "files")
    refused = clew("sources", "remove", "box")
    assert (refused.code, refused.out) == (6, "")
    assert refused.err == "clew: box: 1 files exist only here; use --allow-loss to remove them\n"
    assert state(_folder() / "files") == before
    assert "box" in clew("sources").out
    assert clew("sources", "remove", "box", "--allow-loss").code == 0
    assert added.connections() == 2
    assert not _folder().exists()
