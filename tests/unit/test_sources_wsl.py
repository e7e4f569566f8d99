"""Homes of the other system on the same machine, in folder trees laid out as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clew.host import Host
from clew.library import Library
from clew.sources import registry
from clew.sources.wsl import WslDetector, host_at
from tests.unit.samples import SESSION, claude_line

WSL2 = "Linux version 5.15.167.4-microsoft-standard-WSL2 (root@f9c826d3017f) (gcc) #1 SMP\n"
WSL1 = "Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com) (gcc version 5.4.0) #1237\n"
PLAIN = "Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org) (gcc-12) #1 SMP\n"


def put_session(home: Path, cwd: str = "C:\\Users\\ada\\src\\tide", project: str = "C--Users-ada-src-tide") -> Path:
    """A session of Claude Code below a home."""
    path = home / ".claude" / "projects" / project / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(claude_line("user", "u1", None, cwd=cwd)) + "\n")
    return path


def wsl(root: Path, version: str = WSL2) -> WslDetector:
    """A WSL system below a folder, with the folders that Windows has beside its users."""
    (root / "proc").mkdir(parents=True)
    (root / "proc" / "version").write_text(version)
    users = root / "mnt" / "c" / "Users"
    for name in ("ada", "Grace Hopper", "Public", "Default", "All Users", "defaultAppPool"):
        (users / name).mkdir(parents=True)
    (users / "Default User").symlink_to(users / "Default")
    (users / "desktop.ini").write_text("[.ShellClassInfo]\n")
    (root / "mnt" / "wslg").mkdir()
    (root / "mnt" / "d").mkdir()
    return WslDetector(root, distributions=list)


@pytest.mark.seed("S2-17", "S2-18", "S2-22", "S3-2")
@pytest.mark.parametrize("version", [WSL1, WSL2])
def test_windows_users_seen_from_wsl(tmp_path: Path, version: str) -> None:
    machine = wsl(tmp_path, version)
    home = tmp_path / "mnt" / "c" / "Users" / "ada"
    path = put_session(home)
    found = dict(machine.homes())
    assert list(found) == ["windows-Grace Hopper", "windows-ada"]
    assert found["windows-ada"] == Host(home, kind="windows")
    (session,) = Library(*found.values()).sessions()
    source = session.header.source
    assert (source.type, source.host, source.path) == ("windows", None, str(path))
    assert session.document().session.source == source
    assert (session.header.workspace, session.header.workspace_encoded) == (
        "C:\\Users\\ada\\src\\tide",
        "C--Users-ada-src-tide",
    )


def test_a_linux_that_is_no_wsl_has_no_windows_users(tmp_path: Path) -> None:
    machine = wsl(tmp_path, PLAIN)
    assert list(machine.homes()) == []
    assert list(WslDetector(tmp_path / "nothing").homes()) == []


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("[automount]\nroot = /windows/\n", "windows"),
        ('[boot]\nsystemd=true\n[automount]\nenabled = true\nroot="/"\n[user]\nroot = /no\n', ""),
        ("[network]\nroot = /no\n", "mnt"),
    ],
)
def test_drives_may_be_mounted_elsewhere(tmp_path: Path, text: str, folder: str) -> None:
    machine = wsl(tmp_path)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "wsl.conf").write_text(text)
    home = tmp_path / folder / "e" / "Users" / "lin"
    home.mkdir(parents=True)
    assert ("windows-lin", Host(home, kind="windows")) in list(machine.homes())


def test_users_that_cannot_be_looked_at_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = wsl(tmp_path)
    closed = str(tmp_path / "mnt" / "c" / "Users" / "ada")
    monkeypatch.setattr("clew.sources.wsl.os.access", lambda path, _: str(path) != closed)
    assert [name for name, _ in machine.homes()] == ["windows-Grace Hopper"]


def windows(root: Path, *distributions: str) -> WslDetector:
    """The shares that Windows shows WSL distributions on, below a folder."""
    for share in ("wsl.localhost", "wsl$"):
        for name in distributions:
            for user in ("ada", "grace"):
                (root / share / name / "home" / user).mkdir(parents=True)
            (root / share / name / "root").mkdir()
    return WslDetector(root, (root / "wsl.localhost", root / "wsl$"), lambda: list(distributions))


@pytest.mark.seed("S2-17", "S2-18", "S2-22")
def test_distributions_seen_from_windows(tmp_path: Path) -> None:
    machine = windows(tmp_path, "Ubuntu-24.04", "docker-desktop", "rancher-desktop-data")
    home = tmp_path / "wsl.localhost" / "Ubuntu-24.04" / "home" / "ada"
    path = put_session(home, "/home/ada/src/tide", "-home-ada-src-tide")
    found = dict(machine.homes())
    assert list(found) == ["wsl-Ubuntu-24.04-ada", "wsl-Ubuntu-24.04-grace", "wsl-Ubuntu-24.04-root"]
    (session,) = Library(*found.values()).sessions()
    source = session.header.source
    assert (source.type, source.host, source.path) == ("wsl", "Ubuntu-24.04", str(path))


def test_an_older_windows_has_the_other_share(tmp_path: Path) -> None:
    machine = windows(tmp_path, "Debian")
    (tmp_path / "wsl.localhost").rename(tmp_path / "gone")
    (first, *_) = machine.homes()
    assert first[1].home == tmp_path / "wsl$" / "Debian" / "home" / "ada"


def test_a_distribution_that_does_not_answer_is_left_out(tmp_path: Path) -> None:
    machine = windows(tmp_path, "Debian")
    silent = WslDetector(machine.root, machine.shares, lambda: ["Gone", "Debian"])
    assert {host.name for _, host in silent.homes()} == {"Debian"}


@pytest.mark.parametrize(
    ("home", "kind", "name"),
    [
        ("/mnt/c/Users/ada", "windows", None),
        ("/mnt/c/Users", "local", None),
        ("/mnt/backup/Users/ada", "local", None),
        ("/home/ada", "local", None),
        ("//wsl.localhost/Ubuntu/home/ada", "wsl", "Ubuntu"),
        ("\\\\wsl.localhost\\Ubuntu\\home\\ada", "wsl", "Ubuntu"),
        ("\\\\WSL$\\Debian\\root", "wsl", "Debian"),
        ("\\\\server\\share\\ada", "local", None),
    ],
)
def test_the_place_of_a_named_home_tells_whose_it_is(home: str, kind: str, name: str | None) -> None:
    host = host_at(Path(home))
    assert (host.kind, host.name) == (kind, name)


def test_found_homes_are_sources_with_names_of_their_own(tmp_path: Path) -> None:
    machine = wsl(tmp_path)
    (tmp_path / "mnt" / "d" / "Users" / "ada").mkdir(parents=True)
    every = registry.sources(machine)
    assert [source.name for source in every] == ["local", "windows-Grace-Hopper", "windows-ada", "windows-ada-2"]
    assert all(source.enabled for source in every)
