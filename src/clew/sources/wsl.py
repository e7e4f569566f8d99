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

_SYSTEM_PROFILES = {"all users", "default", "default user", "defaultapppool", "public", "wdagutilityaccount"}
"""Folders in `Users` that belong to no person."""
_TOOL_DISTRIBUTIONS = ("docker-desktop", "rancher-desktop", "podman-")
"""Distributions that other programs install for their own use."""
_MOUNT = re.compile(r"^\s*root\s*=\s*\"?([^\"#\s]+)", re.MULTILINE)
_DISTRIBUTIONS = r"Software\Microsoft\Windows\CurrentVersion\Lxss"
_SHARES = (r"\\wsl.localhost", r"\\wsl$")


def _registered() -> list[str]:
    """Return the distributions in the Windows registry; reading it starts none of them."""
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
    """Finds homes of the other system. Tests pass folders of their own."""

    root: Path = Path("/")
    shares: tuple[Path, ...] = tuple(map(Path, _SHARES))
    distributions: Callable[[], list[str]] = _registered

    def homes(self) -> Iterator[tuple[str, Host]]:
        """Yield every home of the other system, with a name for it."""
        yield from self._windows_users()
        yield from self._distributions()

    def _windows_users(self) -> Iterator[tuple[str, Host]]:
        if not self._is_wsl():
            return
        for drive in _folders(self._mounts()):
            if len(drive.name) == 1:
                for home in _folders(drive / "Users"):
                    if home.name.casefold() not in _SYSTEM_PROFILES:
                        yield f"windows-{home.name}", Host(home, kind="windows")

    def _is_wsl(self) -> bool:
        return "microsoft" in _text(self.root / "proc" / "version").lower()

    def _mounts(self) -> Path:
        """Return the folder with the Windows drives; /etc/wsl.conf can name another one than /mnt."""
        section = _text(self.root / "etc" / "wsl.conf").partition("[automount]")[2].partition("\n[")[0]
        named = _MOUNT.search(section)
        return self.root / (named[1].lstrip("/") if named else "mnt")

    def _distributions(self) -> Iterator[tuple[str, Host]]:
        for name in self.distributions():
            # Opening the share of a distribution starts it.
            wanted = not name.lower().startswith(_TOOL_DISTRIBUTIONS)
            top = next((share / name for share in self.shares if wanted and is_folder(share / name)), None)
            if top is None:
                continue
            for home in (*_folders(top / "home"), *filter(is_folder, [top / "root"])):
                yield f"wsl-{name}-{home.name}", Host(home, kind="wsl", name=name)


def host_at(home: Path) -> Host:
    """Return the host for a home folder; its path shows whether it belongs to Windows or WSL."""
    parts = home.absolute().parts
    share = PureWindowsPath(str(home)).drive.replace("/", "\\").split("\\")
    if len(share) == 4 and f"\\\\{share[2].lower()}" in _SHARES:
        return Host(home, kind="wsl", name=share[3])
    if len(parts) == 5 and parts[1] == "mnt" and len(parts[2]) == 1 and parts[3] == "Users":
        return Host(home, kind="windows")
    return Host.at(home)


def _folders(folder: Path) -> list[Path]:
    """Return the readable folders in a folder; links such as `All Users` lead to folders that are found elsewhere."""
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
