"""Goose: sessions in a SQLite database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clew.agents.database_agent import DatabaseAgent
from clew.agents.goose.layout import AGENT, FILE_NAME, FOLDER, LAYOUT, roots
from clew.host import Host


class Goose(DatabaseAgent):
    """The agent `goose`."""

    id = AGENT
    title = "Goose"
    homepage = "https://goose-docs.ai"
    package = __name__
    newest_tested_version = "1.52.0"
    layout = LAYOUT
    database = FOLDER / FILE_NAME

    def roots(self, host: Host) -> Iterator[Path]:
        return roots(host)
