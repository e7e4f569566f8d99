"""A dry run lists every file that is written, and writes none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import WITH_AGENTS, clew
from tests.receivers import RECEIVERS


def files(home: Path) -> set[str]:
    return {str(path) for path in home.rglob("*") if path.is_file()}


@pytest.mark.parametrize("target", RECEIVERS)
def test_it_lists_what_is_written(demo: Path, tmp_path: Path, target: str) -> None:
    there, back = tmp_path / "there", tmp_path / "back"
    words = ("--home", demo, "convert", WITH_AGENTS, "--to", target, "--home", there)
    told = clew(*words, "--dry-run", "--json").json
    assert not there.exists()
    assert clew(*words, "--allow-loss", "--json").json == told
    assert {*told["files"]} == files(there)
    again = clew(*words, "--dry-run")
    assert again.code == 0 and "it was converted before" in again.err
    if target != "claude-code":
        way = ("convert", told["files"][0], "--to", "claude-code", "--home", back)
        told = clew(*way, "--dry-run", "--json").json
        assert not back.exists()
        assert clew(*way, "--json").json == told
        assert {*told["files"]} == files(back)


def test_what_is_there_already_is_listed_too(demo: Path, tmp_path: Path) -> None:
    """The list of projects is renewed: that it exists is no reason to refuse."""
    projects = tmp_path / ".gemini/projects.json"
    projects.parent.mkdir()
    projects.write_text('{"projects":{"/a":"a"}}')
    words = ("--home", demo, "convert", WITH_AGENTS, "--to", "gemini", "--home", tmp_path, "--allow-loss")
    told = clew(*words, "--dry-run", "--json").json
    assert str(projects) in told["files"]
    assert projects.read_text() == '{"projects":{"/a":"a"}}'
