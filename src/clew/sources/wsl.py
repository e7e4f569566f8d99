"""Homes of the other system on the same machine: Windows users seen from WSL, WSL distributions seen from Windows."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path, PureWindowsPath
from typing import Any, NamedTuple

from clew.host import Host
from clew.sources.local import is_folder

_NOBODY = {"all users", "default", "default user", "defaultapppool", "public", "wdagutilityaccount"}
"""Folders beside the users' own that belong to no person."""
_MACHINERY = ("docker-desktop", "rancher-desktop", "podman-")
"""Distributions that programs keep for themselves."""
_MOUNT = re.compile(r"^\s*root\s*=\s*\"?([^\"#\s]+)", re.MULTILINE)
_DISTRIBUTIONS = r"Software\Microsoft\Windows\CurrentVersion\Lxss"
_SHARES = (r"\\wsl.localhost", r"\\wsl$")


def _registered() -> list[str]:
    """The distributions that Windows knows; asking for them starts none."""
    if os.name != "nt":
        return []
    # Only Windows has the module.
    winreg: Any = import_module("winreg")
    found = []
    try:
        with winreg.OpenKey(winreg.HKEY_CURRENT_USER, _DISTRIBUTIONS) as key:
            for at in range(winreg.QueryInfoKey(key)[0]):
                with winreg.OpenKey(key, winreg.EnumKey(key, at)) as entry:
                    found.append(str(winreg.QueryValueEx(entry, "DistributionName")[0]))
    except OSError:
        return found
    return found


class WslDetector(NamedTuple):
    """What tells which other homes there are; a test builds one of folders."""

    root: Path = Path("/")
    shares: tuple[Path, ...] = tuple(map(Path, _SHARES))
    distributions: Callable[[], list[str]] = _registered

    def homes(self) -> Iterator[tuple[str, Host]]:
        """Every home of another system, with a name for it."""
        yield from self._windows_users()
        yield from self._distributions()

    def _windows_users(self) -> Iterator[tuple[str, Host]]:
        if not self._is_wsl():
            return
        for drive in _folders(self._mounts()):
            if len(drive.name) == 1:
                for home in _folders(drive / "Users"):
                    if home.name.casefold() not in _NOBODY:
                        yield f"windows-{home.name}", Host(home, kind="windows")

    def _is_wsl(self) -> bool:
        return "microsoft" in _text(self.root / "proc" / "version").lower()

    def _mounts(self) -> Path:
        """The folder that Windows drives are mounted in; /etc/wsl.conf can name another than /mnt."""
        section = _text(self.root / "etc" / "wsl.conf").partition("[automount]")[2].partition("\n[")[0]
        named = _MOUNT.search(section)
        return self.root / (named[1].lstrip("/") if named else "mnt")

    def _distributions(self) -> Iterator[tuple[str, Host]]:
        for name in self.distributions():
            # A look into a distribution starts it.
            wanted = not name.lower().startswith(_MACHINERY)
            top = next((share / name for share in self.shares if wanted and is_folder(share / name)), None)
            if top is None:
                continue
            for home in (*_folders(top / "home"), *filter(is_folder, [top / "root"])):
                yield f"wsl-{name}-{home.name}", Host(home, kind="wsl", name=name)


def host_at(home: Path) -> Host:
    """A named home folder; its place tells whether another system on this machine owns it."""
    parts = home.absolute().parts
    share = PureWindowsPath(str(home)).drive.replace("/", "\\").split("\\")
    if len(share) == 4 and f"\\\\{share[2].lower()}" in _SHARES:
        return Host(home, kind="wsl", name=share[3])
    if len(parts) == 5 and parts[1] == "mnt" and len(parts[2]) == 1 and parts[3] == "Users":
        return Host(home, kind="windows")
    return Host.at(home)


def _folders(folder: Path) -> list[Path]:
    """The folders inside one that can be looked into; links (`All Users` is one) lead to what is found elsewhere."""
    try:
        entries = [entry for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(Path(entry.path) for entry in entries if os.access(entry.path, os.R_OK | os.X_OK))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
