"""The server `clew mcp` as an entry in the configuration of an agent."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from typing import Any

from clew.agents.extension_points import McpConfig
from clew.config_file_edits import BYTE_ORDER_MARK, Addition, JsonAddition, UnusableContent, clew_arguments
from clew.errors import WouldLose

SERVER = "clew"
"""The name of the server in configurations."""
_KIND = "mcp"
_TITLE = f"server {SERVER!r}"
_FIRST_LINE = "# clew mcp: added by `clew mcp install`, removed by `clew mcp uninstall`"
_LAST_LINE = "# clew mcp: end"
_NEWLINE = r"(?:\r?\n)"
# From the nearest first line before a last line: the user may have removed the lines behind an older one.
_BLOCK = re.compile(
    rf"{_NEWLINE}?(?:^|(?<={BYTE_ORDER_MARK})){re.escape(_FIRST_LINE)}{_NEWLINE}"
    rf"(?:(?!^{re.escape(_FIRST_LINE)}).)*?^{re.escape(_LAST_LINE)}{_NEWLINE}?",
    re.MULTILINE | re.DOTALL,
)


def server_addition(config: McpConfig, command: Sequence[str] = ()) -> Addition:
    """The server with this command, for the file of the agent. A removal needs no command."""
    entry = {**config.entry, "command": command[0], "args": list(command[1:])} if command else {}
    return (_TomlServer if config.format == "toml" else _JsonServer)(config, entry)


def _is_own(entry: Any) -> bool:
    """True for a server whose command is as clew writes it. Its other keys, such as `env`, may be of the user."""
    if not isinstance(entry, dict) or not isinstance(entry.get("args"), list):
        return False
    words = [entry.get("command"), *entry["args"]]
    if not all(isinstance(word, str) for word in words):
        return False
    arguments = clew_arguments(words)
    return arguments == ["mcp"] or (arguments is not None and arguments[:-1] == ["mcp", "--redact"])


class _JsonServer(JsonAddition):
    kind = _KIND
    title = _TITLE

    def __init__(self, config: McpConfig, entry: dict[str, Any]) -> None:
        super().__init__(config.file)
        self._table, self._entry = config.table, entry
        self.container_keys = [config.table]

    def is_installed_in_values(self, values: dict[str, Any]) -> bool:
        return _is_own(self.member(values, self._table, dict).get(SERVER))

    def add_to(self, values: dict[str, Any]) -> dict[str, Any]:
        servers = self.member(values, self._table, dict)
        if SERVER in servers and not _is_own(servers[SERVER]):
            raise _not_own_error(self, "change")
        return {**values, self._table: {**servers, SERVER: {**servers.get(SERVER, {}), **self._entry}}}

    def remove(self, text: str, content_before_install: str | None) -> str:
        if SERVER in self.member(self.parse(text), self._table, dict) and not self.is_installed_in(text):
            raise _not_own_error(self, "remove")
        return super().remove(text, content_before_install)

    def remove_from(self, values: dict[str, Any]) -> dict[str, Any]:
        servers = {name: value for name, value in self.member(values, self._table, dict).items() if name != SERVER}
        return {**values, self._table: servers}


class _TomlServer(Addition):
    """A table at the end of the file, between two comments by which its lines are found again."""

    kind = _KIND
    title = _TITLE

    def __init__(self, config: McpConfig, entry: dict[str, Any]) -> None:
        super().__init__(config.file)
        self._table, self._entry = config.table, entry

    def is_installed_in(self, text: str | None) -> bool:
        return _is_own(self._servers(self._parse(text or "")).get(SERVER))

    def add(self, text: str | None) -> str:
        before = text or ""
        servers = self._servers(self._parse(before))
        kept = _BLOCK.sub("", before)
        if servers.get(SERVER) == self._entry:
            return before
        if SERVER in servers and (not _is_own(servers[SERVER]) or SERVER in self._servers(self._parse(kept))):
            raise _not_own_error(self, "change")
        gap = [] if not kept else [""] if kept.endswith("\n") else ["", ""]
        lines = [*gap, _FIRST_LINE, f"[{self._table}.{SERVER}]", *self._lines(), _LAST_LINE, ""]
        entry = {**servers.get(SERVER, {}), **self._entry}
        return self._checked(before, kept + ("\r\n" if "\r\n" in before else "\n").join(lines), entry)

    def remove(self, text: str, content_before_install: str | None) -> str:
        servers = self._servers(self._parse(text))
        if SERVER not in servers:
            raise self.not_installed_error()
        if not _is_own(servers[SERVER]) or not _BLOCK.search(text):
            raise _not_own_error(self, "remove")
        return self._checked(text, _BLOCK.sub("", text), None)

    def manual_instructions(self) -> str:
        return f"add the {self.title} by hand: [{self._table}.{SERVER}] with {' and '.join(self._lines())}"

    def _lines(self) -> list[str]:
        return [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in self._entry.items()]

    def _servers(self, values: dict[str, Any]) -> dict[str, Any]:
        servers = values.get(self._table, {})
        if not isinstance(servers, dict):
            raise UnusableContent(f"{self.file.path}: `{self._table}` is not an object")
        return servers

    def _parse(self, text: str) -> dict[str, Any]:
        try:
            return tomllib.loads(text.removeprefix(BYTE_ORDER_MARK))
        except tomllib.TOMLDecodeError as error:
            raise UnusableContent(f"{self.file.path} cannot be changed: {error}") from None

    def _checked(self, before: str, after: str, entry: dict[str, Any] | None) -> str:
        """The text after a change, if it has this entry and nothing else differs."""
        values = self._parse(before)
        servers = {name: value for name, value in self._servers(values).items() if name != SERVER}
        expected = {**values, self._table: servers | ({SERVER: entry} if entry is not None else {})}
        if {self._table: {}, **self._parse(after)} != expected:
            raise UnusableContent(f"{self.file.path}: `{self._table}` cannot be changed safely")
        return after


def _not_own_error(addition: Addition, verb: str) -> WouldLose:
    return WouldLose(f"{addition.file.path}: the {_TITLE} was not added by clew; {verb} it by hand")
