"""Where editors of the VS Code family keep settings and the files of extensions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clew.host import Host

_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf", "Positron")
_SERVERS = (".vscode-server/data", ".vscode-server-insiders/data", ".cursor-server/data", ".local/share/code-server")
_MACOS, _WINDOWS = "Library/Application Support", "AppData/Roaming"


def user_folders(host: Host) -> Iterator[Path]:
    """The folder `User` of each editor on each system, existing or not; that of VS Code on Linux comes first."""
    configuration = Path(host.env.get("XDG_CONFIG_HOME") or host.home / ".config")
    for parent in (configuration, host.home / _MACOS, host.home / _WINDOWS):
        yield from (parent / editor / "User" for editor in _EDITORS)
    yield from (host.home / server / "User" for server in _SERVERS)
