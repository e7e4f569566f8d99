"""Whatever clew creates is readable by its user alone, with every umask. A folder that was there keeps its mode."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.sources.mirror import Listed, Mirror, MirrorState, Wanted
from tests.cli.running import FORKED, LATEST, clew
from tests.demo_home import write_small_demo
from tests.files.claude import SESSION, Transcript

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs modes of files")


@pytest.fixture(params=[0o022, 0o000], ids=["umask 022", "umask 000"], autouse=True)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """A folder of the user's that others may look into."""
    folder = tmp_path / "there"
    folder.mkdir()
    folder.chmod(0o755)
    return folder


def ran(*words: str | Path, code: int = 0) -> None:
    done = clew(*words)
    assert done.code == code, (words, done.err)


def open_to_others(*folders: Path) -> list[str]:
    """What others may read, below and with these folders. There must be something."""
    found = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    assert any(path.is_file() for path in found), folders
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in found if not path.is_symlink()}
    return [f"{path} {mode:o}" for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)]


def below(folder: Path) -> list[Path]:
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755, "a folder that was there keeps its mode"
    return list(folder.iterdir())


@pytest.mark.slow
def test_clews_own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "own" / "data"))
    demo = tmp_path / "home"
    write_small_demo(demo)
    ran("--home", demo, "sync")
    ran("--home", demo, "search", "tide")
    ran("--home", demo, "archive")
    ran("archive", "verify")
    next(demo.rglob(f"{FORKED}.jsonl")).unlink()
    ran("list", "--source", "archive")
    ran("sources", "add", "box", "--no-fetch")
    ran("--home", demo, "export", LATEST, "--redact", "all", "-o", tmp_path / "x.md")
    ran("--home", demo, "lake", "write", tmp_path / "lake")
    assert open_to_others(tmp_path / "own", tmp_path / "x.md", tmp_path / "lake") == []


def test_the_copy_of_another_machine(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "remotes" / "box", "box")
    path = "/home/ada/.codex/sessions/2026/a.jsonl"
    (tmp_path / "remotes" / "box").mkdir(mode=0o700, parents=True)
    (tmp_path / "remotes").chmod(0o700)
    mirror.store(Wanted(Listed(path, 3, 1), 0, "-"), 0, [b"{}\n"], is_stable=True)
    mirror.remember(MirrorState(home="/home/ada", env={}, fetched_at=""))
    assert open_to_others(tmp_path / "remotes") == []


@pytest.mark.slow
@pytest.mark.parametrize("spelled", ["{}", "file://{}", "local://{}"])
def test_a_lake(demo: Path, tmp_path: Path, there: Path, spelled: str) -> None:
    pytest.importorskip("pyarrow")
    for folder in (tmp_path / "new" / "lake", there):
        target = spelled.format(folder)
        ran("--home", demo, "lake", "write", target, "--agent", "codex")
        ran("--home", demo, "lake", "write", target)
        ran("lake", "compact", target, "--grace", "0")
        ran("lake", "verify", target)
    assert open_to_others(tmp_path / "new", *below(there)) == []


@pytest.mark.parametrize("name", ["a.json", "a.ndjson", "a.md", "a.html", "a.json.gz", "a.json.zst"])
def test_an_export_of_one_session(demo: Path, tmp_path: Path, there: Path, name: str) -> None:
    for folder in (tmp_path / "new" / "exports", there):
        ran("--home", demo, "export", FORKED, "-o", folder / name)
    assert open_to_others(tmp_path / "new", *below(there)) == []


def test_an_export_that_replaces_a_file(demo: Path, there: Path) -> None:
    (there / "a.md").write_text("old")
    (there / "a.md").chmod(0o644)
    ran("--home", demo, "export", FORKED, "-o", there / "a.md", "--force")
    assert open_to_others(*below(there)) == []


@pytest.mark.parametrize("words", ["--to markdown -o", "--to json -o", "--to html -o", "--site"])
def test_an_export_of_many_sessions(demo: Path, tmp_path: Path, there: Path, words: str) -> None:
    for folder in (tmp_path / "new" / "exports", there):
        assert clew("--home", demo, "export", "--agent", "codex", *words.split(), folder).code in (0, 3)
    assert open_to_others(tmp_path / "new", *below(there)) == []


def test_an_import_and_a_conversion(demo: Path, tmp_path: Path, there: Path) -> None:
    ran("--home", demo, "export", LATEST, "-o", tmp_path / "a.json")
    for name, folder in (("new", tmp_path / "new" / "home"), ("there", there)):
        ran("import", tmp_path / "a.json", "-o", folder)
        ran("--home", demo, "convert", FORKED, "--to", "codex", "--home", folder / f"converted-{name}", "--allow-loss")
    assert open_to_others(tmp_path / "new", *below(there)) == []


def test_sessions_that_are_restored_from_the_archive(demo: Path, tmp_path: Path, there: Path) -> None:
    archive = tmp_path / "archive"
    ran("--home", demo, "archive", "--archive", archive, "--agent", "claude-code")
    for folder in (tmp_path / "new" / "found", there):
        ran("archive", "--archive", archive, "restore", "--to", folder)
    assert open_to_others(archive, tmp_path / "new", *below(there)) == []


def test_copies_of_files_that_a_restore_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    project = tmp_path / "project"
    (project / "a").mkdir(parents=True)
    (project / "a/b.txt").write_text("mine\n")
    said = Transcript(folder=str(project))
    said.prompt()
    last = said.create(f"{project}/a/b.txt", "theirs\n")
    said.write(tmp_path / "home")
    ran("--home", tmp_path / "home", "restore", f"{SESSION}#{last}", "--in-place", "--write", "--force")
    assert open_to_others(tmp_path / "own") == []


def test_a_store(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from clew.cli.main import main

    words = ["record", "--store", str(tmp_path / "new"), "--session", "s"]
    for _ in range(2):
        assert CliRunner().invoke(main, words, input=json.dumps({"role": "user", "content": "hi"})).exit_code == 0
    assert open_to_others(tmp_path / "new") == []


def test_the_demo(tmp_path: Path) -> None:
    ran("demo", tmp_path / "new" / "demo")
    assert open_to_others(tmp_path / "new") == []
