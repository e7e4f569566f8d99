"""Tools that several agents have under different names, with common names for them and their arguments.

An agent lists its tools. Where two agents have a tool of the same kind, a call of one is translated into a call of the
other. Arguments without a common name keep their own.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from clew.model.json import JSON

Arguments: TypeAlias = dict[str, JSON]

ToolKind = Literal["shell", "read", "write", "edit", "glob", "grep", "list", "fetch", "search", "todos"]
"""Kinds of tools that many agents have. The common names of their arguments:

shell: command, description, cwd; read: path, offset, limit; write: path, content; edit: path, old, new, all;
glob: pattern, path; grep: pattern, path, glob; list: path; fetch: url, prompt; search: query;
todos: todos, a list of {content, status, active_form?}.
"""

EDIT_ARGUMENTS = {"old": "old_string", "new": "new_string", "all": "replace_all"}
"""Arguments of `edit` as Claude Code names them, and agents that follow it."""

FILE_WRITE_TOOLS = frozenset("write write_file write_to_file create create_file".split())
"""Names of tools, of all agents, that write whole files. This and the sets below are in lower case."""
FILE_EDIT_TOOLS = frozenset(
    "edit edit_file editor multiedit notebookedit notebook_edit replace replace_in_file replace_string_in_file "
    "multi_replace_string_in_file str_replace search_replace search_and_replace apply_diff insert_content "
    "insert_edit_into_file".split()
)
FILE_DELETE_TOOLS = frozenset({"delete_file", "remove_file"})
_SHELL_TOOLS = frozenset(
    "bash shell powershell developer__shell exec_command shell_command local_shell container.exec run_shell "
    "run_shell_command run_command run_commands execute_command run_terminal_cmd run_in_terminal".split()
)
FILE_CHANGE_TOOLS = FILE_WRITE_TOOLS | FILE_EDIT_TOOLS | FILE_DELETE_TOOLS | {"apply_patch", "patch"}

MAX_NAMED_CALLS = 10_000
"""How many recent calls `RecentCalls` keeps."""
_SHELLS = ("bash", "sh", "zsh")


def is_shell_tool(name: str) -> bool:
    """True for the name of a tool, of any agent, that runs commands in a shell."""
    return name.lower() in _SHELL_TOOLS


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

    kind: ToolKind
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
        self._target_by_kind: dict[str, Tool] = {tool.kind: tool for tool in reversed(target)}

    def kind(self, name: str | None) -> ToolKind | None:
        """The kind of a tool of the source; None for a tool without a kind."""
        tool = self._known.get(name or "")
        return tool.kind if tool is not None else None

    def name(self, name: str | None) -> str | None:
        """The target's name for a tool of the source."""
        tool = self._target_by_kind.get(self.kind(name) or "")
        return tool.name if tool is not None else name

    def writes(self, kind: ToolKind) -> bool:
        """True where the target has a tool of this kind."""
        return kind in self._target_by_kind

    def arguments(self, name: str | None, arguments: JSON) -> JSON:
        """The target's arguments for a call of the source; where two would get one name, they stay as they are."""
        source, target = self._known.get(name or ""), self._target_by_kind.get(self.kind(name) or "")
        if source is None or target is None or type(arguments) is not dict:
            return arguments
        common = _rename_keys(arguments, {own: name for name, own in source.arguments.items()})
        if len(common) < len(arguments):
            return arguments
        common = source.read(common) if source.read is not None else common
        common = target.write(common) if target.write is not None else common
        translated = _rename_keys(common, target.arguments)
        return translated if len(translated) == len(common) else arguments


def _rename_keys(arguments: Arguments, names: Mapping[str, str]) -> Arguments:
    return {names.get(name, name): value for name, value in arguments.items()}


def command_text(arguments: Arguments) -> Arguments:
    """Convert a command that is a list of words into one text for a shell."""
    command = arguments.get("command")
    if type(command) is not list or not all(type(word) is str for word in command):
        return arguments
    is_script = len(command) == 3 and command[1] in ("-lc", "-c") and command[0].rpartition("/")[2] in _SHELLS
    return {**arguments, "command": command[2] if is_script else shlex.join(command)}


def without(arguments: Arguments, *names: str) -> Arguments:
    """The arguments that have none of these names."""
    return {name: value for name, value in arguments.items() if name not in names}


def todos_from(names: Mapping[str, str] = {}, states: Mapping[str, str] = {}) -> Callable[[Arguments], Arguments]:
    """Make a function that gives the entries of a todo list the common names: content, status, active_form.

    `names` and `states` give the common names by those of the agent. An active form that repeats the content is left
    out: Claude Code demands one.
    """

    def convert(entry: Arguments, _number: int) -> Arguments:
        common = _renamed_todo(entry, names, states)
        repeats = "active_form" in common and common["active_form"] == common.get("content")
        return without(common, "active_form") if repeats else common

    return _for_each_todo(convert)


def todos_into(
    names: Mapping[str, str] = {},
    states: Mapping[str, str] = {},
    defaults: Callable[[Arguments, int], Arguments] = lambda _entry, _number: {},
) -> Callable[[Arguments], Arguments]:
    """Make a function that gives the entries of a todo list the names of an agent.

    `names` and `states` give them by the common ones. `defaults` gives what the agent demands, for an entry and its
    number from 1.
    """

    def convert(entry: Arguments, number: int) -> Arguments:
        renamed = _renamed_todo(entry, names, states)
        return renamed | without(defaults(entry, number), *renamed)

    return _for_each_todo(convert)


def _renamed_todo(entry: Arguments, names: Mapping[str, str], states: Mapping[str, str]) -> Arguments:
    """An entry with other keys and another state; where two values would get one key, the keys stay as they are."""
    if (status := str(entry.get("status"))) in states:
        entry = {**entry, "status": states[status]}
    renamed = _rename_keys(entry, names)
    return renamed if len(renamed) == len(entry) else entry


def _for_each_todo(convert: Callable[[Arguments, int], Arguments]) -> Callable[[Arguments], Arguments]:
    """Make a function that converts each entry of a todo list; a list that is not one of objects stays as it is."""

    def convert_all(arguments: Arguments) -> Arguments:
        entries = arguments.get("todos")
        if type(entries) is not list or not all(type(entry) is dict for entry in entries):
            return arguments
        return {**arguments, "todos": [convert(entry, number) for number, entry in enumerate(entries, 1)]}

    return convert_all
