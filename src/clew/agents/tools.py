"""Tools that several agents have under names of their own, in words that belong to none of them.

An agent lists its tools; where two agents have a tool for the same work, a call of one can be translated into a call
of the other. Arguments without an equal keep their own names.
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

FILE_WRITE_TOOLS = frozenset({"write", "write_file", "create_file"})
"""Tools of all agents that write whole files. The names of tools are compared in lower case."""
FILE_EDIT_TOOLS = frozenset({"edit", "edit_file", "replace", "str_replace", "multiedit", "notebookedit"})
FILE_DELETE_TOOLS = frozenset({"delete_file", "remove_file"})
FILE_CHANGE_TOOLS = FILE_WRITE_TOOLS | FILE_EDIT_TOOLS | FILE_DELETE_TOOLS | {"apply_patch"}

MAX_NAMED_CALLS = 10_000
"""How many tool calls are remembered, so that their results can be named."""
_SHELLS = ("bash", "sh", "zsh")


class RecentCalls(dict[str | None, str | None]):
    """Names of tools by the id of the call; the oldest are forgotten, as results follow their calls closely."""

    def __init__(self, limit: int = MAX_NAMED_CALLS) -> None:
        super().__init__()
        self._limit = limit

    def __setitem__(self, call: str | None, name: str | None) -> None:
        self.pop(call, None)
        super().__setitem__(call, name)
        if len(self) > self._limit:
            del self[next(iter(self))]


class Tool(NamedTuple):
    """One tool of an agent: what it is for, its name, and the agent's own words for its arguments."""

    kind: str
    name: str
    arguments: Mapping[str, str] = {}
    read: Callable[[Arguments], Arguments] | None = None
    """Reshapes values once the arguments have their common names."""
    write: Callable[[Arguments], Arguments] | None = None
    """Reshapes them back."""


class Translator:
    """Translates the calls of one agent into those of another."""

    def __init__(self, source: Sequence[Tool], target: Sequence[Tool]) -> None:
        self._known = {tool.name: tool for tool in reversed(source)}
        # Where an agent has several tools of a kind, the first is the one to be written.
        self._equal = {tool.kind: tool for tool in reversed(target)}
        self._own = {tool.name for tool in target}

    def kind(self, name: str | None) -> str | None:
        """What a tool of the source is for; None where nobody else has the like."""
        tool = self._known.get(name or "")
        return tool.kind if tool is not None else None

    def name(self, name: str | None) -> str | None:
        """The target's name for a tool of the source."""
        equal = self._equal.get(self.kind(name) or "")
        return equal.name if equal is not None else name

    def writes(self, kind: str) -> bool:
        """True where the target has a tool for such work."""
        return kind in self._equal

    def common(self, name: str | None, arguments: JSON) -> JSON:
        """The arguments for a call of the source, in the words that belong to no agent."""
        tool = self._known.get(name or "")
        if tool is None or type(arguments) is not dict:
            return arguments
        common = _renamed(arguments, {own: word for word, own in tool.arguments.items()})
        return tool.read(common) if tool.read is not None else common

    def arguments(self, name: str | None, arguments: JSON) -> JSON:
        """The target's arguments for a call of the source; where two would get one name, they stay as they are."""
        equal = self._equal.get(self.kind(name) or "")
        if equal is None or type(arguments) is not dict:
            return arguments
        common: Arguments = self.common(name, arguments)
        if equal.write is not None:
            common = equal.write(common)
        translated = _renamed(common, equal.arguments)
        return translated if len(translated) >= len(arguments) else arguments


def _renamed(arguments: Arguments, names: Mapping[str, str]) -> Arguments:
    return {names.get(name, name): value for name, value in arguments.items()}


def command_text(arguments: Arguments) -> Arguments:
    """A command given as a list of words, as the one text a shell reads."""
    command = arguments.get("command")
    if type(command) is not list or not all(type(word) is str for word in command):
        return arguments
    is_script = len(command) == 3 and command[1] in ("-lc", "-c") and command[0].rpartition("/")[2] in _SHELLS
    return {**arguments, "command": command[2] if is_script else shlex.join(command)}


def todos_from(words: Mapping[str, str]) -> Callable[[Arguments], Arguments]:
    """Put the entries of an agent's todo list into the common words: content, status, active_form.

    One agent demands an active form; an entry whose active form repeats its content comes without.
    """
    rename = todos_into(words)

    def reshaped(arguments: Arguments) -> Arguments:
        renamed = rename(arguments)
        if renamed is not arguments:
            for entry in renamed["todos"]:
                if "active_form" in entry and entry["active_form"] == entry.get("content"):
                    del entry["active_form"]
        return renamed

    return reshaped


def todos_into(words: Mapping[str, str]) -> Callable[[Arguments], Arguments]:
    """Put the entries of a todo list into an agent's own words; what it has no word for keeps the common one.

    An entry of which two values would get one name stays as it is.
    """

    def reshaped(arguments: Arguments) -> Arguments:
        entries = arguments.get("todos")
        if type(entries) is not list or not all(type(entry) is dict for entry in entries):
            return arguments
        renamed = [(entry, _renamed(entry, words)) for entry in entries]
        return {**arguments, "todos": [new if len(new) == len(old) else dict(old) for old, new in renamed]}

    return reshaped
