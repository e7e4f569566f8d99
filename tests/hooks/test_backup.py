"""What a file of an agent held is stored before clew changes it, and a command that is interrupted loses nothing."""

import errno
import os
from pathlib import Path

import pytest

from clew.config_file_edits import BACKUPS_FILE, Backup
from clew.host import data_dir
from clew.io.json_file import load
from clew.io.safe_write import Within
from clew.skill.install import skill_text
from tests.cli.running import clew

INSTALLS = {
    "hook": (("hook", "install", "--agent", "gemini"), ".gemini/settings.json"),
    "server": (("mcp", "install", "--agent", "codex"), ".codex/config.toml"),
    "skill": (("skill", "install", "--agent", "claude-code", "--force"), ".claude/skills/clew/SKILL.md"),
}
CONTENT = {".json": '{"theme":  "dark"}\n', ".toml": '# Mine.\nmodel = "x"\n', ".md": "mine\n"}
every_install = pytest.mark.parametrize(("words", "name"), INSTALLS.values(), ids=INSTALLS)


def disk_full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "x")


def write(home: Path, name: str) -> Path:
    path = home / name
    path.parent.mkdir(parents=True)
    path.write_text(CONTENT[path.suffix])
    return path


def uninstall(words: tuple[str, ...]) -> int:
    return clew(words[0], "uninstall", *words[2:4]).code


def interrupt(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the command, and leave what there is if its process dies when it is about to change the file."""
    stored: list[bytes] = []

    def die(*_: object) -> None:
        stored.append((data_dir() / BACKUPS_FILE).read_bytes())
        raise OSError(errno.EIO, "died")

    with monkeypatch.context() as patch:
        patch.setattr(Within, "apply", die)
        assert clew(*words).code == 3
    (data_dir() / BACKUPS_FILE).write_bytes(stored[0])


@every_install
def test_nothing_is_changed_if_the_backup_cannot_be_stored(
    words: tuple[str, ...], name: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(home, name)
    with monkeypatch.context() as patch:
        patch.setattr("clew.io.json_file.write_atomic", disk_full)
        refused = clew(*words)
    assert refused.code == 3
    assert BACKUPS_FILE in refused.err
    assert path.read_text() == CONTENT[path.suffix]
    assert clew(*words).code == 0
    assert uninstall(words) == 0
    assert path.read_text() == CONTENT[path.suffix]


@every_install
def test_no_backup_is_left_if_the_file_cannot_be_changed(
    words: tuple[str, ...], name: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(home, name)
    with monkeypatch.context() as patch:
        patch.setattr("clew.io.safe_write._write", disk_full)
        assert clew(*words).code == 3
    assert path.read_text() == CONTENT[path.suffix]
    assert load(data_dir() / BACKUPS_FILE, Backup) == {}


@every_install
@pytest.mark.parametrize("is_new", [False, True])
def test_after_an_interrupted_install_both_commands_work(
    words: tuple[str, ...], name: str, is_new: bool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home / name if is_new else write(home, name)
    before = None if is_new else path.read_text()
    interrupt(words, monkeypatch)
    assert uninstall(words) == 1
    assert (path.read_text() if path.exists() else None) == before
    assert clew(*words).code == 0
    assert uninstall(words) == 0
    assert (path.read_text() if path.exists() else None) == before


def test_after_an_interrupted_update_the_oldest_content_still_comes_back(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, name = INSTALLS["skill"]
    path = write(home, name)
    with monkeypatch.context() as patch:
        patch.setattr("clew.skill.install.skill_text", lambda: "old")
        clew(*words)
    interrupt(words[:-1], monkeypatch)
    assert path.read_text() == "old"
    assert clew(*words[:-1]).code == 0
    assert path.read_text() == skill_text()
    assert uninstall(words) == 0
    assert path.read_text() == CONTENT[".md"]


@every_install
def test_a_backup_is_kept_until_the_file_is_restored(
    words: tuple[str, ...], name: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(home, name)
    clew(*words)
    interrupt((words[0], "uninstall", *words[2:4]), monkeypatch)
    assert path.read_text() != CONTENT[path.suffix]
    with monkeypatch.context() as patch:
        patch.setattr("clew.io.json_file.write_atomic", disk_full)
        assert uninstall(words) == 3
    assert path.read_text() == CONTENT[path.suffix]
    assert uninstall(words) == 1
    assert clew(*words).code == 0
    assert uninstall(words) == 0
    assert path.read_text() == CONTENT[path.suffix]
