"""clew blame --format agent-trace: which session wrote which lines, as a record that Git notes can hold."""

from __future__ import annotations

import json
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_files import World
from tests.files.claude import SESSION

CONVERSATION = {"url", "contributor", "ranges"}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "data"))
    world = World(tmp_path)
    Path(world.bell).write_bytes(b"def ring():\n    return 'DONG'\n\nprint(ring())\n")
    return world


def record_of(world: World) -> dict[str, Any]:
    ran = world.run("blame", world.bell, "--to", "agent-trace")
    assert ran.code == 0, ran.err
    record: dict[str, Any] = ran.json
    return record


def git(folder: Path, *words: str, given: str = "") -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *words]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_record_has_the_ranges_of_each_conversation(world: World) -> None:
    record = record_of(world)
    assert record["version"] == "0.1.0" and record["tool"]["name"] == "clew" and record["timestamp"].endswith("Z")
    (file,) = record["files"]
    assert file["path"] == "bell.py"
    assert all(set(each) == CONVERSATION for each in file["conversations"])
    ranges = [each for conversation in file["conversations"] for each in conversation["ranges"]]
    assert [(each["start_line"], each["end_line"]) for each in ranges] == [(1, 2)]
    assert ranges[0]["content_hash"] == "sha256:" + sha256(b"def ring():\n    return 'DONG'").hexdigest()
    assert file["conversations"][0]["url"] == f"clew:claude-code:{SESSION}"
    assert file["conversations"][0]["contributor"]["type"] == "ai"
    assert record["metadata"] == {"dev.clew": {"unknown_lines": 2}}


def test_a_record_has_no_text_and_its_id_stays_the_same(world: World) -> None:
    first, second = record_of(world), record_of(world)
    assert first["id"] == second["id"]
    assert "ring" not in json.dumps(first) and "louder" not in json.dumps(first)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_record_names_the_commit_and_goes_to_a_note(world: World) -> None:
    git(world.project, "init", "-q")
    (world.project / "src").mkdir()
    git(world.project, "add", "bell.py")
    git(world.project, "commit", "-q", "-m", "Add a bell")
    record = record_of(world)
    assert record["vcs"] == {"type": "git", "revision": git(world.project, "rev-parse", "HEAD")}
    assert record["files"][0]["path"] == "bell.py"
    git(world.project, "notes", "--ref=agent-trace", "append", "-F", "-", "HEAD", given=json.dumps(record))
    assert json.loads(git(world.project, "notes", "--ref=agent-trace", "show", "HEAD")) == record
