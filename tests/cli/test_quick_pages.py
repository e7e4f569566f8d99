"""A site that is written before click is loaded: nothing but the time it takes may tell it from the command's."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from clew.cli import quick_pages
from tests.cli.running import Ran, clew

_START = "import sys; sys.argv = ['clew', *sys.argv[1:]]; from clew.cli.start import run; run()"
_LOADED = (
    "import os, sys; leave = os._exit; here = os.getpid()\n"
    "def tell(code):\n"
    "    if os.getpid() == here: print(*sys.modules, flush=True)\n"
    "    leave(code)\n"
    "os._exit = tell\n"
)


def started(*words: str | Path, code: str = _START) -> Ran:
    """Run the installed command as a process."""
    done = subprocess.run([sys.executable, "-c", code, *map(str, words)], capture_output=True, check=False, timeout=60)
    return Ran(done.returncode, done.stdout, done.stderr.decode())


def pages(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.is_dir() else {}


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--redact", "none"),
        ("--redact", "all", "--to", "html", "--force"),
        ("--agent", "codex", "--agent", "sage-emacs"),
        ("--agent", "gemini", "--redact", "none"),
    ],
    ids=" ".join,
)
def test_the_pages_and_what_is_said_are_those_of_the_command(
    words: tuple[str, ...], demo: Path, tmp_path: Path
) -> None:
    quick, usual = tmp_path / "quick", tmp_path / "usual"
    ran = started("--home", demo, "export", *words, "--site", quick)
    told = clew("--home", demo, "export", *words, "--site", usual)
    assert (ran.code, ran.raw) == (told.code, told.raw) == (0, b"")
    assert ran.err == told.err.replace(str(usual), str(quick))
    assert len(pages(quick)) > 3 and pages(quick) == pages(usual)


def test_click_is_not_loaded(demo: Path, tmp_path: Path) -> None:
    words = ("export", "--home", demo, "--agent", "claude-code", "--redact", "none")
    ran = started(*words, "--site", tmp_path / "site", code=_LOADED + _START)
    assert ran.code == 0 and "clew.cli.pages" in ran.out.split()
    heavy = {"click", "clew.cli.group", "typing_extensions"}
    assert not heavy & set(ran.out.split())


def test_what_msgspec_does_without_is_there_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "typing_extensions", raising=False)
    quick_pages._load_msgspec()
    assert "typing_extensions" not in sys.modules
    assert import_module("typing_extensions").Protocol


@pytest.mark.slow
@pytest.mark.parametrize("name", ["site", "claude", "file"])
def test_what_is_refused_is_refused_in_the_same_words(name: str, demo: Path, tmp_path: Path) -> None:
    """A page is in the way; an agent keeps its sessions there; a file has the name of the folder."""
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "projects").symlink_to(demo / ".claude" / "projects")
    site = {"site": tmp_path / "site", "claude": demo / ".claude" / "projects" / "x", "file": tmp_path / "file"}[name]
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("mine")
    (tmp_path / "file").write_text("mine")
    ran, told = started("--home", home, "export", "--site", site), clew("--home", home, "export", "--site", site)
    assert ran == told and ran.code != 0 and "clew: " in ran.err
    assert (tmp_path / "site" / "index.html").read_text() == (tmp_path / "file").read_text() == "mine"
    assert not (demo / ".claude" / "projects" / "x").exists()


@pytest.mark.slow
def test_nothing_to_export_and_what_cannot_be_read_give_the_same_codes(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    site = tmp_path / "site"
    words: list[tuple[str | Path, ...]] = [
        ("--home", tmp_path / "empty", "export", "--site", site),
        ("--home", tmp_path / "missing", "export", "--site", site),
        ("--home", tmp_path / "empty", "export", "--agent", "nobody", "--site", site),
        ("--home", tmp_path / "empty", "export", "--redact", "nothing", "--site", site),
    ]
    for given in words:
        ran, told = started(*given), clew(*given)
        assert (ran.code, ran.raw) == (told.code, told.raw) and ran.code in (1, 2, 3)
        assert ran.err.splitlines()[-1] == told.err.splitlines()[-1]


@pytest.mark.slow
def test_a_session_that_cannot_be_read_is_said_and_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "aaaaaaaa-0000-0000-0000-000000000000.jsonl")
    (folder / "bbbbbbbb-0000-0000-0000-000000000000.jsonl").write_text('{"type":"summary","summary":"x"}\n')
    ran = started("--home", tmp_path, "export", "--site", tmp_path / "site")
    assert ran.code == 3 and "1 sessions in" in ran.err and "aaaaaaaa" in ran.err
    assert len(pages(tmp_path / "site")) == 2


@pytest.mark.parametrize(
    "words",
    [
        "export",
        "export --to html",
        "export --site",
        "export --site a --site b",
        "export --site --force",
        "export --site a --to json",
        "export --site a ref",
        "export --site a --since 3d",
        "export --site=a",
        "export --site a --json",
        "export export --site a",
        "--site a export",
        "--json export --site a",
        "--source x export --site a",
        "export --site a --redact none --redact all",
        "list --site a",
    ],
)
def test_what_is_not_plain_is_left_to_the_command(words: str) -> None:
    assert quick_pages.answered(words.split()) is None
