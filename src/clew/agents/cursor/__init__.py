"""Cursor: the chats of the editor, in its database of keys and values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clew.agents.cursor.layout import FILE_NAME, LAYOUT
from clew.agents.database_agent import DatabaseAgent
from clew.host import Host

_DATABASE = Path("User", "globalStorage", FILE_NAME)
_APPLICATIONS = (".config", "Library/Application Support", "AppData/Roaming")
"""Where applications keep their files below a home, on each system."""


class Cursor(DatabaseAgent):
    """The agent `cursor`."""

    id = "cursor"
    title = "Cursor"
    homepage = "https://cursor.com"
    package = __name__
    layout = LAYOUT
    database = Path(".config", "Cursor") / _DATABASE

    def roots(self, host: Host) -> Iterator[Path]:
        folders = [f"{parent}/{name}" for parent in _APPLICATIONS for name in ("Cursor", "Cursor Nightly")]
        return (host.home / folder / _DATABASE.parent for folder in (*folders, ".cursor-server/data"))
