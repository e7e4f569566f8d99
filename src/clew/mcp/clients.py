"""Adds `clew mcp` to the configuration of an agent, and removes it again; everything else in the file stays.

Before the first change, the content of the file is kept in clew's data folder. If nothing else changed the file since,
a removal restores it byte for byte, unless it had an entry of clew already.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from clew.agents.mcp_config import McpConfig
from clew.errors import Busy, SourceUnreadable, UnknownReference, UsageError
from clew.host import data_dir
from clew.io import json_file
from clew.io.safe_write import Change, Within

SERVER = "clew"
"""The name of the server in configurations."""
BACKUPS = "mcp-clients.json"
"""The file in clew's data folder with the content of configurations before they were changed."""
_FIRST_LINE = "# clew mcp: added by `clew mcp install`, removed by `clew mcp uninstall`"
_LAST_LINE = "# clew mcp: end"
_BLOCK = re.compile(rf"\n?^{re.escape(_FIRST_LINE)}\n.*?^{re.escape(_LAST_LINE)}\n?", re.MULTILINE | re.DOTALL)
_INDENT = re.compile(r"^\{\r?\n([ \t]+)\"")
_NEW_FILE_MODE = 0o600


class Backup(msgspec.Struct):
    """What a configuration held before clew changed it, and the digest of what clew wrote."""

    before: str | None
    """None if there was no file."""
    digest: str


class Edit(NamedTuple):
    """A change of a configuration. None: there is no file."""

    config: McpConfig
    before: str | None
    after: str | None
    is_removal: bool = False

    @property
    def is_empty(self) -> bool:
        """True if nothing changes."""
        return self.before == self.after

    def diff(self) -> str:
        """The change as a unified diff."""
        old, new = ((text or "").splitlines() for text in (self.before, self.after))
        old_name, new_name = (
            str(self.config.path) if text is not None else "/dev/null" for text in (self.before, self.after)
        )
        return "\n".join(difflib.unified_diff(old, new, old_name, new_name, lineterm=""))


def plan_install(config: McpConfig, command: Sequence[str]) -> Edit:
    """The change that adds the server; an entry of clew with other settings is replaced."""
    before = _read(config)
    entry = {**config.entry, "command": command[0], "args": list(command[1:])}
    if config.format == "toml":
        return Edit(config, before, _with_toml_block(config, before or "", entry))
    values = _parse_json(config, before)
    servers = _servers(config, values)
    if servers.get(SERVER) == entry:
        return Edit(config, before, before)
    changed = {**values, config.table: {**servers, SERVER: entry}}
    return Edit(config, before, _format_json(changed, before))


def plan_uninstall(config: McpConfig) -> Edit:
    """The change that removes the server. Raises UnknownReference if it is not there."""
    before = _read(config)
    backup = json_file.load(data_dir() / BACKUPS, Backup).get(str(config.path))
    is_unchanged = before is not None and backup is not None and backup.digest == _digest(before)
    if backup is not None and is_unchanged and not _has_server(config, backup.before):
        return Edit(config, before, backup.before, is_removal=True)
    if config.format == "toml":
        text = before or ""
        if SERVER not in _servers(config, _parse_toml(config, text)):
            raise UnknownReference(f"{config.path} has no server {SERVER!r}")
        if not _BLOCK.search(text):
            raise UsageError(f"{config.path}: [{config.table}.{SERVER}] was not added by clew; remove it by hand")
        return Edit(config, before, _checked_toml(config, text, _BLOCK.sub("", text), None), is_removal=True)
    values = _parse_json(config, before)
    servers = dict(_servers(config, values))
    if servers.pop(SERVER, None) is None:
        raise UnknownReference(f"{config.path} has no server {SERVER!r}")
    return Edit(config, before, _format_json({**values, config.table: servers}, before), is_removal=True)


def apply_edit(edit: Edit) -> None:
    """Write the change, at once or not at all; links are refused. Raises Busy if the file changed since it was read."""
    key = str(edit.config.path)
    with json_file.update(data_dir() / BACKUPS, Backup) as backups, Within(edit.config.folder) as within:
        if _decoded(edit.config, within.read(edit.config.name)) != edit.before:
            raise Busy(f"{edit.config.path} was changed by another program; try again")
        body = edit.after.encode() if edit.after is not None else None
        mode = _NEW_FILE_MODE if edit.before is None else None
        within.apply([Change(edit.config.name, body, mode)])
        if edit.is_removal or edit.after is None:
            backups.pop(key, None)
        else:
            known = backups.get(key)
            # The oldest content is kept as long as only clew changed the file.
            is_own = known is not None and edit.before is not None and known.digest == _digest(edit.before)
            before = known.before if known is not None and is_own else edit.before
            backups[key] = Backup(before, _digest(edit.after))


def _read(config: McpConfig) -> str | None:
    if not config.folder.is_dir():
        raise SourceUnreadable(f"{config.folder}: no such folder")
    with Within(config.folder) as within:
        return _decoded(config, within.read(config.name))


def _decoded(config: McpConfig, body: bytes | None) -> str | None:
    try:
        return body.decode() if body is not None else None
    except UnicodeDecodeError:
        raise SourceUnreadable(f"{config.path} is not UTF-8") from None


def _has_server(config: McpConfig, text: str | None) -> bool:
    parse = _parse_toml if config.format == "toml" else _parse_json
    return SERVER in _servers(config, parse(config, text or ""))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _servers(config: McpConfig, values: dict[str, Any]) -> dict[str, Any]:
    servers = values.get(config.table, {})
    if not isinstance(servers, dict):
        raise SourceUnreadable(f"{config.path}: `{config.table}` is not an object")
    return servers


def _parse_json(config: McpConfig, text: str | None) -> dict[str, Any]:
    if text is None or not text.strip():
        return {}
    try:
        values = json.loads(text, object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        hint = f"it may have comments; add the server {SERVER!r} to `{config.table}` by hand"
        raise SourceUnreadable(f"{config.path} cannot be changed: {error}; {hint}") from None
    if not isinstance(values, dict):
        raise SourceUnreadable(f"{config.path} is not a JSON object")
    return values


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a key occurs twice")
    return values


def _format_json(values: dict[str, Any], before: str | None) -> str:
    """The values in the layout of the file: its indentation, and a line end at its end or none."""
    indent = _INDENT.match(before or "")
    text = json.dumps(values, ensure_ascii=False, indent=indent[1] if indent else 2)
    return text if before is not None and before.strip() and not before.endswith("\n") else f"{text}\n"


def _with_toml_block(config: McpConfig, before: str, entry: dict[str, Any]) -> str:
    """The text with a table at its end, between two comments by which it is found again."""
    known = _servers(config, _parse_toml(config, before)).get(SERVER)
    if known == entry:
        return before
    kept = _BLOCK.sub("", before)
    if SERVER in _servers(config, _parse_toml(config, kept)):
        raise UsageError(f"{config.path}: [{config.table}.{SERVER}] was not added by clew; change it by hand")
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in entry.items()]
    block = "\n".join([_FIRST_LINE, f"[{config.table}.{SERVER}]", *lines, _LAST_LINE])
    gap = "" if not kept else "\n" if kept.endswith("\n") else "\n\n"
    return _checked_toml(config, kept, f"{kept}{gap}{block}\n", entry)


def _parse_toml(config: McpConfig, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SourceUnreadable(f"{config.path}: {error}") from None


def _checked_toml(config: McpConfig, before: str, after: str, entry: dict[str, Any] | None) -> str:
    """The text after a change, if it has this entry and nothing else differs."""
    values = _parse_toml(config, before)
    servers = {name: value for name, value in _servers(config, values).items() if name != SERVER}
    expected = {**values, config.table: servers | ({SERVER: entry} if entry is not None else {})}
    found = _parse_toml(config, after)
    if {config.table: {}, **found} != expected:
        raise SourceUnreadable(f"{config.path} cannot be changed safely; change `{config.table}` by hand")
    return after


def server_command(options: Sequence[str], *, installed: str | None, python: str, is_shared: bool) -> list[str]:
    """The command that starts the server. In a file that others share, only the name of the program is known."""
    if is_shared:
        program = ["clew"]
    else:
        # -P: the current folder may be a repository with modules of anyone's making.
        program = [str(Path(installed).absolute())] if installed else [python, "-P", "-m", "clew"]
    return [*program, "mcp", *options]
