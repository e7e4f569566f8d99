"""Where editors of the VS Code family keep the files of extensions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clew.host import Host

_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_SERVERS = (".vscode-server/data", ".vscode-server-insiders/data", ".cursor-server/data", ".local/share/code-server")
_MACOS, _WINDOWS = "Library/Application Support", "AppData/Roaming"


def extension_folders(host: Host, extension: str) -> Iterator[Path]:
    """The folder of an extension in each editor on each system, existing or not."""
    configuration = Path(host.env.get("XDG_CONFIG_HOME") or host.home / ".config")
    parents = (configuration, host.home / _MACOS, host.home / _WINDOWS)
    applications = [parent / editor for parent in parents for editor in _EDITORS]
    applications += [host.home / server for server in _SERVERS]
    yield from (application / "User" / "globalStorage" / extension for application in applications)
