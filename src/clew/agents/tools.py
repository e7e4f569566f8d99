"""Tools that several agents have under different names, with common names for them and their arguments.

An agent lists its tools. Where two agents have a tool of the same kind, a call of one is translated into a call of the
other. Arguments without a common name keep their own.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from clew.model.json import JSON

Arguments: TypeAlias = dict[str, JSON]

SHELL = "shell"  # command, description, cwd
READ = "read"  # path, offset, limit
WRITE = "write"  # path, content
EDIT = "edit"  # path, old, new, all
GLOB = "glob"  # pattern, path
GREP = "grep"  # pattern, path, glob
LIST = "list"  # path
FETCH = "fetch"  # url, prompt
SEARCH = "search"  # query
TODOS = "todos"  # todos: a list of {content, status, active_form?}

FILE_WRITE_TOOLS = frozenset({"write", "write_file", "create", "create_file"})
"""Names of tools, of all agents, that write whole files. This and the sets below are in lower case."""
FILE_EDIT_TOOLS = frozenset(
    {"edit", "edit_file", "editor", "replace", "replace_string_in_file", "str_replace", "multiedit", "notebookedit"}
)
FILE_DELETE_TOOLS = frozenset({"delete_file", "remove_file"})
FILE_CHANGE_TOOLS = FILE_WRITE_TOOLS | FILE_EDIT_TOOLS | FILE_DELETE_TOOLS | {"apply_patch"}

MAX_NAMED_CALLS = 10_000
"""How many recent calls `RecentCalls` keeps."""
_SHELLS = ("bash", "sh", "zsh")


class RecentCalls(dict[str | None, str | None]):
    """The names of tools by call id, to name results. Only recent calls are kept, as results follow them closely."""

    def __init__(self, limit: int = MAX_NAMED_CALLS) -> None:
        super().__init__()
        self._limit = limit

    def __setitem__(self, call: str | None, name: str | None) -> None:
        self.pop(call, None)
        super().__setitem__(call, name)
        if len(self) > self._limit:
            del self[next(iter(self))]


class Tool(NamedTuple):
    """A tool of an agent: its kind, its name, and the agent's names of arguments by their common name."""

    kind: str
    name: str
    arguments: Mapping[str, str] = {}
    read: Callable[[Arguments], Arguments] | None = None
    """Converts values from the agent's form, once the arguments have their common names."""
    write: Callable[[Arguments], Arguments] | None = None
    """Converts values into the agent's form, before the arguments get its names."""


class Translator:
    """Translates the calls of one agent into those of another."""

    def __init__(self, source: Sequence[Tool], target: Sequence[Tool]) -> None:
        self._known = {tool.name: tool for tool in reversed(source)}
        # Where an agent has several tools of a kind, its first one is used.
        self._target_by_kind = {tool.kind: tool for tool in reversed(target)}

    def kind(self, name: str | None) -> str | None:
        """The kind of a tool of the source; None for a tool without a kind."""
        tool = self._known.get(name or "")
        return tool.kind if tool is not None else None

    def name(self, name: str | None) -> str | None:
        """The target's name for a tool of the source."""
        tool = self._target_by_kind.get(self.kind(name) or "")
        return tool.name if tool is not None else name

    def writes(self, kind: str) -> bool:
        """True where the target has a tool of this kind."""
        return kind in self._target_by_kind

    def arguments(self, name: str | None, arguments: JSON) -> JSON:
        """The target's arguments for a call of the source; where two would get one name, they stay as they are."""
        source, target = self._known.get(name or ""), self._target_by_kind.get(self.kind(name) or "")
        if source is None or target is None or type(arguments) is not dict:
            return arguments
        common = _renamed(arguments, {own: name for name, own in source.arguments.items()})
        if len(common) < len(arguments):
            return arguments
        common = source.read(common) if source.read is not None else common
        common = target.write(common) if target.write is not None else common
        translated = _renamed(common, target.arguments)
        return translated if len(translated) == len(common) else arguments


def _renamed(arguments: Arguments, names: Mapping[str, str]) -> Arguments:
    return {names.get(name, name): value for name, value in arguments.items()}


def command_text(arguments: Arguments) -> Arguments:
    """Convert a command that is a list of words into one text for a shell."""
    command = arguments.get("command")
    if type(command) is not list or not all(type(word) is str for word in command):
        return arguments
    is_script = len(command) == 3 and command[1] in ("-lc", "-c") and command[0].rpartition("/")[2] in _SHELLS
    return {**arguments, "command": command[2] if is_script else shlex.join(command)}


def todos_from(common_names: Mapping[str, str]) -> Callable[[Arguments], Arguments]:
    """Make a function that gives the entries of a todo list the common names: content, status, active_form.

    Claude Code demands an active form; one that repeats the content is left out.
    """
    rename = todos_into(common_names)

    def convert(arguments: Arguments) -> Arguments:
        renamed = rename(arguments)
        if renamed is not arguments:
            for entry in renamed["todos"]:
                if "active_form" in entry and entry["active_form"] == entry.get("content"):
                    del entry["active_form"]
        return renamed

    return convert


def todos_into(names: Mapping[str, str]) -> Callable[[Arguments], Arguments]:
    """Make a function that renames the keys of the entries of a todo list; other keys keep their names.

    An entry of which two values would get one name stays as it is.
    """

    def convert(arguments: Arguments) -> Arguments:
        entries = arguments.get("todos")
        if type(entries) is not list or not all(type(entry) is dict for entry in entries):
            return arguments
        renamed = [(entry, _renamed(entry, names)) for entry in entries]
        return {**arguments, "todos": [new if len(new) == len(old) else dict(old) for old, new in renamed]}

    return convert
