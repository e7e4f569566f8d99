"""Folders nested more deeply than a recursive walk can go stop no command and leave nothing half done."""

from __future__ import annotations

import os
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.errors import UsageError
from clew.io.paths import MAX_FOLDER_DEPTH
from clew.sources.mirror import Mirror
from tests.cli.running import clew

pytestmark = pytest.mark.skipif(os.name == "nt", reason="paths are short there")
LEVELS = 1200


@pytest.fixture
def deep_home(demo: Path, tmp_path: Path) -> Iterator[Path]:
    """The demo, with very deep folders beside its sessions."""
    home = tmp_path / "home"
    subprocess.run(["cp", "-r", str(demo), str(home)], check=True)
    session = next((home / ".sage" / "sessions").iterdir())
    before = Path.cwd()
    for start in (next((home / ".claude" / "projects").iterdir()), session):
        os.chdir(start)
        for _ in range(LEVELS):
            os.mkdir("a")  # noqa: PTH102 - the whole path is too long
            os.chdir("a")
    os.chdir(before)
    yield home
    subprocess.run(["rm", "-rf", str(home)], check=True)


@pytest.mark.slow
def test_commands_go_on(deep_home: Path, demo: Path) -> None:
    sessions = clew("--home", demo, "list", "--json").json
    assert len(clew("--home", deep_home, "list", "--json").json) == len(sessions)
    for words in (["sync"], ["doctor"], ["archive", "--archive", str(deep_home.parent / "archive")]):
        ran = clew("--home", deep_home, *words)
        assert ran.code in (0, 1), (words, ran.err)
        assert "Recursion" not in ran.err


def test_an_archive_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    packed = tmp_path / "deep.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a/" * LEVELS + "x", "hi")
    ran = clew("import", packed, "-o", tmp_path / "out")
    assert ran.code != 0 and "nested too deeply" in ran.err
    assert sorted(tmp_path.iterdir()) == [packed]


def test_a_mirror_takes_no_deep_path(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "m", "box")
    mirror.place("/a" * MAX_FOLDER_DEPTH)
    with pytest.raises(UsageError):
        mirror.place("/a" * (MAX_FOLDER_DEPTH + 1))
