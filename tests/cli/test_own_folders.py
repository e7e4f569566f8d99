"""clew's own folders never depend on the folder that a command runs in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from clew.datadir import config_path, data_path
from clew.errors import UsageError
from clew.io.blobs import digest_of
from clew.store.change_journal import RESTORE_FOLDER, Journal
from clew.store.file_state import NO_FILE, FileState
from tests.cli.running import run

linux_only = pytest.mark.skipif(not Path("/proc").is_dir(), reason="the XDG variables are read on Linux")


def plant_journal(project: Path, victim: Path) -> None:
    """A project whose own `.local/share/clew` says that a restore into `victim` was cut off."""
    copies, journals = project / "copies", project / ".local/share/clew" / RESTORE_FOLDER
    copies.mkdir(parents=True)
    journals.mkdir(parents=True)
    (project / ".sage/sessions").mkdir(parents=True)
    victim.mkdir()
    (victim / "keep.txt").write_bytes(b"mine\n")
    (copies / ".bashrc").write_bytes(b"echo planted\n")
    files = {
        b".bashrc": (FileState(digest_of(b"echo planted\n"), 0o644), NO_FILE),
        b"keep.txt": (NO_FILE, FileState(digest_of(b"mine\n"))),
    }
    (journals / "x.pending").write_bytes(msgspec.msgpack.encode(Journal(str(copies), str(victim), files)))


@pytest.mark.slow
@linux_only
@pytest.mark.parametrize(
    ("variable", "value", "code"), [("XDG_DATA_HOME", ".local/share", 0), ("CLEW_DATA_DIR", ".local/share/clew", 2)]
)
def test_a_project_is_never_the_data_folder(tmp_path: Path, variable: str, value: str, code: int) -> None:
    project, victim = tmp_path / "project", tmp_path / "victim"
    plant_journal(project, victim)
    env = {name: text for name, text in os.environ.items() if name not in ("CLEW_DATA_DIR", "XDG_DATA_HOME")}
    ran = run("doctor", ".", "--fix", cwd=project, env={**env, variable: value})
    assert [path.name for path in victim.iterdir()] == ["keep.txt"]
    assert ran.code == code
    assert ("CLEW_DATA_DIR" in ran.err and "absolute" in ran.err) == (code == 2)


@linux_only
@pytest.mark.parametrize("value", [".local/share", "share", "./x", "~/x", " x", ""])
def test_a_relative_variable_of_the_desktop_is_ignored(
    own_home: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", value)
    monkeypatch.setenv("XDG_CONFIG_HOME", value)
    monkeypatch.delenv("CLEW_DATA_DIR")
    assert data_path() == f"{own_home}/.local/share/clew"
    assert config_path() == f"{own_home}/.config/clew"


@pytest.mark.parametrize("value", ["data", "./data", "~/data", ".", " /data"])
def test_a_relative_variable_of_clew_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("CLEW_DATA_DIR", value)
    monkeypatch.setenv("CLEW_CONFIG_DIR", value)
    with pytest.raises(UsageError, match=r"CLEW_DATA_DIR.* absolute"):
        data_path()
    with pytest.raises(UsageError, match=r"CLEW_CONFIG_DIR.* absolute"):
        config_path()


@linux_only
def test_a_relative_home_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "CLEW_DATA_DIR"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", ".")
    for path in (data_path, config_path):
        with pytest.raises(UsageError, match=r"HOME.* absolute"):
            path()


INSTALLED = (sys.executable, "-c", "from clew.cli.main import run; run()")
"""The installed command, with the answers that are given before click is loaded."""
WORDS = [
    ("list",),
    ("search", "tide"),
    ("archive",),
    ("sources",),
    ("sync",),
    ("sync", "--json"),
    ("stats", "--json"),
    ("export", "--site", "pages"),
]


def refused_in_one_line(folder: Path, words: tuple[str, ...], env: dict[str, str]) -> str:
    """The line on stderr of a command that refuses what the environment says, and writes nothing."""
    done = subprocess.run([*INSTALLED, *words], capture_output=True, text=True, cwd=folder, env=env, check=False)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done
    assert not list(folder.iterdir())
    return done.stderr.strip()


@pytest.mark.slow
@pytest.mark.parametrize("words", WORDS, ids=" ".join)
@pytest.mark.parametrize("variable", ["CLEW_DATA_DIR", "CLEW_CONFIG_DIR"])
def test_commands_say_so_in_one_line(tmp_path: Path, words: tuple[str, ...], variable: str) -> None:
    said = refused_in_one_line(tmp_path, words, {**os.environ, variable: "data"})
    assert said == f"clew: {variable}='data': not an absolute path"


@pytest.mark.slow
@linux_only
@pytest.mark.parametrize("words", [("list",), ("sync",), ("--home", "/tmp", "sync", "--json")], ids=" ".join)
def test_a_relative_home_is_named_as_it_is_set(tmp_path: Path, words: tuple[str, ...]) -> None:
    unset = ("CLEW_DATA_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME")
    env = {name: text for name, text in os.environ.items() if name not in unset}
    assert refused_in_one_line(tmp_path, words, {**env, "HOME": "rel"}) == "clew: HOME='rel': not an absolute path"


@pytest.mark.slow
@pytest.mark.parametrize("words", [("list",), ("sync",), ("archive",)], ids=" ".join)
def test_a_data_folder_that_is_a_file_is_called_one(tmp_path: Path, words: tuple[str, ...]) -> None:
    (file := tmp_path / "file").touch()
    (place := tmp_path / "place").mkdir()
    said = refused_in_one_line(place, words, {**os.environ, "CLEW_DATA_DIR": str(file)})
    assert said.startswith(f"clew: {file}: is a file, not a folder")


@pytest.mark.slow
@pytest.mark.parametrize("value", ["abc", "0", "-1", "64MB", "1.5"])
@pytest.mark.parametrize("words", [("list",), ("sync",)], ids=" ".join)
def test_a_limit_that_is_no_number_is_refused(tmp_path: Path, words: tuple[str, ...], value: str) -> None:
    said = refused_in_one_line(tmp_path, words, {**os.environ, "CLEW_MAX_LINE": value})
    assert said == f"clew: CLEW_MAX_LINE={value!r}: not a number of bytes above 0"
