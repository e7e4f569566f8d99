"""Commands that write many folders work where a process may have few files open (256, as on macOS)."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import pytest

from tests.cli.running import Ran, run
from tests.files.claude import SESSION, Transcript
from tests.files.test_within import tree
from tests.unit.samples import claude_line

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")

OPEN_FILES = 256
FOLDERS = 320


def limited(*words: str | Path, open_files: int = OPEN_FILES) -> Ran:
    """Run the command as a process that may have few files open."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return run(*words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, hard)))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def home(tmp_path: Path, project: Path) -> Path:
    """A home with a session that wrote a file in each of many folders."""
    said = Transcript(folder=str(project))
    said.prompt()
    for number in range(FOLDERS):
        said.create(f"{project}/d{number:03}/e/f.txt", f"{number}\n")
    said.write(tmp_path / "home")
    return tmp_path / "home"


@pytest.mark.slow
def test_archive_restore(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for number in range(FOLDERS):
        path = home / f".claude/projects/-p{number:03}/{number:08x}-0000-4000-8000-000000000000.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(claude_line("user", f"u{number}", None, "hello")) + "\n")
    archive, out = tmp_path / "archive", tmp_path / "out"
    assert limited("--home", home, "archive", "--archive", archive).code == 0
    done = limited("archive", "--archive", archive, "restore", "--to", out)
    assert (done.code, done.err) == (0, f"{FOLDERS} files written\n")
    assert tree(out) == tree(home)


@pytest.mark.slow
def test_restore_of_a_session(home: Path, project: Path) -> None:
    words = ("--home", home, "restore", f"{SESSION}#{1 + 2 * FOLDERS}", "--into", project, "--write")
    done = limited(*words)
    assert (done.code, done.err) == (0, f"{FOLDERS} files restored\n")
    assert len([path for path in project.rglob("f.txt") if path.is_file()]) == FOLDERS
    for path in project.rglob("f.txt"):
        path.write_text("changed since\n")
    done = limited(*words, "--force", open_files=64)
    assert done.code == 0 and f"{FOLDERS} replaced or removed files are kept in" in done.err
    assert (project / "d007/e/f.txt").read_text() == "7\n"
