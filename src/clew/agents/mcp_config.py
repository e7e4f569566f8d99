"""Where an agent looks for servers of the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

from clew.model.json import JSON


class McpConfig(NamedTuple):
    """The file with an agent's servers."""

    folder: Path
    """The home, the project, or the agent's own folder; it must exist."""
    name: str
    """The file below that folder."""
    table: str
    """The key of the servers in it, which are objects by their names."""
    format: Literal["json", "toml"] = "json"
    entry: Mapping[str, JSON] = MappingProxyType({})
    """What the agent writes into the entry of every server, beside its command."""

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self.folder / self.name
