"""Where editors of the VS Code family keep the files of extensions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clew.host import Host

_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_SERVERS = (".vscode-server/data", ".vscode-server-insiders/data", ".cursor-server/data", ".local/share/code-server")
_MACOS = "Library/Application Support"


def extension_folders(host: Host, extension: str) -> Iterator[Path]:
    """The folder of an extension in each editor on each system, existing or not."""
    configuration = Path(host.env.get("XDG_CONFIG_HOME") or host.home / ".config")
    roaming = Path(host.env.get("APPDATA") or host.home / "AppData" / "Roaming")
    for parent in (configuration, host.home / _MACOS, roaming):
        yield from (_extension_folder(parent / editor, extension) for editor in _EDITORS)
    yield from (_extension_folder(host.home / server, extension) for server in _SERVERS)


def _extension_folder(application: Path, extension: str) -> Path:
    return application / "User" / "globalStorage" / extension
