"""Where an agent can be extended: the files in which it looks for MCP servers, hooks and skills."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

from clew.host import Host
from clew.model.json import JSON


class ConfigFile(NamedTuple):
    """A file that the agent reads, existing or not."""

    folder: Path
    """The home, the project, or the agent's own folder; it must exist."""
    name: str
    """The file below that folder."""

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self.folder / self.name


class McpConfig(NamedTuple):
    """The file with an agent's servers of the Model Context Protocol."""

    file: ConfigFile
    table: str
    """The key of the servers in it, which are objects by their names."""
    format: Literal["json", "toml"] = "json"
    entry: Mapping[str, JSON] = MappingProxyType({})
    """What the agent writes into the entry of every server, beside its command."""


class Hook(NamedTuple):
    """How an agent runs a command at the end of a session, with a JSON object on standard input.

    All agents known here have the layout of Claude Code: `{"hooks": {EVENT: [{"hooks": [{"type": "command", ...}]}]}}`,
    and the object has the key `transcript_path`.
    """

    file: str
    """The JSON file with the user's hooks, in the folder of `Agent.config_file`."""
    entry: Mapping[str, JSON] = MappingProxyType({})
    """What the entry of a hook has beside its type and its command."""
    note: str = ""
    """What the user has to do before the agent runs a new hook."""


def file_in_folder(host: Host, variable: str, usual: str, name: str) -> ConfigFile:
    """A file in the folder that a variable of the environment names, of several the first; else in the usual folder."""
    configured = host.env.get(variable, "").split(",")[0].strip()
    if configured:
        return ConfigFile(host.expand(configured), name)
    return ConfigFile(host.home, f"{usual}/{name}" if usual else name)
