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


def record_of(world: World, *words: str) -> dict[str, Any]:
    ran = world.run("blame", world.bell, "--to", "agent-trace", *words)
    assert ran.code == 0, ran.err
    record: dict[str, Any] = ran.json
    return record


def git(folder: Path, *words: str, given: str = "") -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *words]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_record_has_the_ranges_of_each_conversation(world: World) -> None:
    record = record_of(world, "--redact", "none")
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


def ranges_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for file in record["files"] for one in file["conversations"] for each in one["ranges"]]


def test_a_hash_does_not_let_masked_text_be_guessed(world: World) -> None:
    """A range has none where masking changes one of its lines, or where it is short."""
    secret = "AKIA" + sha256(b"bell").hexdigest()[:16].upper().translate(str.maketrans("0189", "QRST"))
    bodies = {
        "long.py": "def ring():\n    bell = 1\n    return bell\n",
        "short.py": "def ring():\n    return 1\n",
        "secret.py": f"def ring():\n    key = '{secret}'\n    return key\n",
    }
    for name, body in bodies.items():
        world.said.create(str(world.project / name), body)
        (world.project / name).write_text(body)
    hashes = {}
    for name in bodies:
        words = ("blame", world.project / name, "--to", "agent-trace")
        masked, plain = world.run(*words).json, world.run(*words, "--redact", "none").json
        hashes[name] = "content_hash" in ranges_of(masked)[0]
        assert "content_hash" in ranges_of(plain)[0]
        assert [each["end_line"] for each in ranges_of(masked)] == [each["end_line"] for each in ranges_of(plain)]
    assert hashes == {"long.py": True, "short.py": False, "secret.py": False}


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_file_that_differs_from_the_commit_names_none(world: World) -> None:
    git(world.project, "init", "-q")
    git(world.project, "commit", "-q", "-m", "Begin", "--allow-empty")
    untracked = record_of(world)
    assert "vcs" not in untracked and untracked["files"][0]["path"] == "bell.py"
    git(world.project, "add", "bell.py")
    assert "vcs" not in record_of(world)
    git(world.project, "commit", "-q", "-m", "Add a bell")
    assert "vcs" in record_of(world)
    body = Path(world.bell).read_bytes()
    Path(world.bell).write_bytes(body.replace(b"\n", b"\r\n"))
    assert "vcs" in record_of(world)
    Path(world.bell).write_bytes(body + b"ring()\n")
    assert "vcs" not in record_of(world)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_no_filter_of_the_repository_is_run(world: World, tmp_path: Path) -> None:
    git(world.project, "init", "-q")
    git(world.project, "add", "bell.py")
    git(world.project, "commit", "-q", "-m", "Add a bell")
    (world.project / ".gitattributes").write_text("*.py filter=bell diff=bell\n")
    for name in ("filter.bell.clean", "filter.bell.smudge", "diff.bell.textconv", "core.fsmonitor"):
        git(world.project, "config", name, f"touch {tmp_path / 'ran'}; cat")
    assert "vcs" in record_of(world)
    assert not (tmp_path / "ran").exists()


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
