"""The hook of clew as an entry in the configuration of an agent."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from clew.agents.base import Agent
from clew.agents.extension_points import ConfigFile, Hook
from clew.config_file_edits import JsonAddition, clew_arguments
from clew.errors import WouldLose
from clew.host import Host

_HOOKS = "hooks"
EVENT = "SessionEnd"
"""All agents with hooks have the same name for this event."""
# Words that may come before the program: of the shell, and of programs that run another one.
_LAUNCHERS = (
    *("if", "then", "else", "do", "!", "{", "exec", "command", "time", "env", "timeout", "nice", "ionice", "nohup"),
    *("setsid", "stdbuf", "sudo", "uv", "uvx", "pipx", "run", r"python[\d.]*", "py"),
)
_OPTION_VALUE = r"""(?:"[^"]*"|'[^']*'|[^\s;&|"'-][^\s;&|]*)"""
# clew has to be the program: neither `cd ~/src/clew && git hook run` nor `git -C ~/src/clew hook run` runs it.
_RUNS_CLEW = re.compile(
    rf"""
    (?: ^ | [;&|()`\n] | (?<=\s)["'] ) [\t\ ]*          # a command begins, perhaps a quoted one: sh -c '...'
    (?: (?:
        \w+=(?:"[^"]*"|'[^']*'|[^\s;&|"'])*             # a variable of the environment
        | -[\w-]*(?:=[^\s;&|"']*)?                      # an option of what comes before clew
        | \d[\w.]*                                      # its value, such as the seconds of `timeout`
        | (?:[^\s;&|"'=-][^\s;&|"'=]*/|/)?(?:{"|".join(_LAUNCHERS)})
    ) \s+ )*
    (?: "(?:[^"]*[\\/])?clew(?:\.exe)?" | '(?:[^']*[\\/])?clew(?:\.exe)?' | (?:[^\s;&|"'=]*[\\/])?clew(?:\.exe)? )
    (?: \s+ -[\w-]+ (?: (?:=|\s+){_OPTION_VALUE} )? )*
    \s+ hook \s+ run \b
    """,
    re.VERBOSE,
)


def hook_addition(agent: Agent, host: Host, program: Sequence[str] = ()) -> HookAddition | None:
    """The hook that runs clew with this program; None for an agent without hooks. A removal needs no program."""
    file = agent.config_file(host, agent.hook.file) if agent.hook is not None else None
    return HookAddition(agent, agent.hook, file, program) if agent.hook is not None and file is not None else None


class HookAddition(JsonAddition):
    """A command that the agent runs at the end of a session. Other hooks stay."""

    kind = "hook"
    title = "hook of clew"

    def __init__(self, agent: Agent, hook: Hook, file: ConfigFile, program: Sequence[str]) -> None:
        super().__init__(file)
        self.note = hook.note
        self.container_keys = [_HOOKS, EVENT]
        self._arguments = ["hook", "run", "--agent", agent.id]
        self._entry = {"type": "command", "command": _shell_command([*program, *self._arguments]), **hook.entry}

    def is_installed_in_values(self, values: dict[str, Any]) -> bool:
        return any(self._is_own(hook) for hook in self._hooks(values))

    def command_in(self, text: str | None) -> str | None:
        """The command in a content of the file that runs clew; None if it has none."""
        values = self.parse(text)
        return self._own_command(values) or self._user_command(values)

    def is_program_missing(self, text: str | None) -> bool:
        """True if the program of the hook that clew added is gone, as after an update of Python."""
        command = self._own_command(self.parse(text))
        if command is None or os.name == "nt":
            return False
        return shutil.which(os.path.expanduser(os.path.expandvars(_shell_words(command)[0]))) is None  # noqa: PTH111

    def add_to(self, values: dict[str, Any]) -> dict[str, Any]:
        if self.is_installed_in_values(values):
            return self._with_hooks(values, lambda hook: self._entry if self._is_own(hook) else hook)
        if self._user_command(values) is not None:
            return values
        events = self.member(values, _HOOKS, dict)
        groups = [*self.member(events, EVENT, list), {_HOOKS: [self._entry]}]
        return {**values, _HOOKS: {**events, EVENT: groups}}

    def remove(self, text: str, content_before_install: str | None) -> str:
        note = self.user_entry_note(text)
        if note and not self.is_installed_in(text):
            raise WouldLose(f"{note}; remove it by hand")
        return super().remove(text, content_before_install)

    def remove_from(self, values: dict[str, Any]) -> dict[str, Any]:
        return self._with_hooks(values, lambda hook: None if self._is_own(hook) else hook)

    def user_entry_note(self, text: str | None) -> str:
        command = self._user_command(self.parse(text))
        if command is None:
            return ""
        return f"{self.file.path}: the hook `{' '.join(command.split())}` runs clew, but clew did not add it"

    def _hooks(self, values: dict[str, Any]) -> list[Any]:
        groups = self.member(self.member(values, _HOOKS, dict), EVENT, list)
        return [hook for group in groups for hook in _hooks_of(group)]

    def _with_hooks(self, values: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
        """The values with changed hooks of the event; None removes one, and its group if no other hook is in it."""
        events = self.member(values, _HOOKS, dict)
        groups = []
        for group in self.member(events, EVENT, list):
            hooks = _hooks_of(group)
            changed = [one for one in map(change, hooks) if one is not None]
            if changed or not hooks:
                groups.append({**group, _HOOKS: changed} if changed != hooks else group)
        return {**values, _HOOKS: {**events, EVENT: groups}}

    def _own_command(self, values: dict[str, Any]) -> str | None:
        return next((_command(hook) for hook in self._hooks(values) if self._is_own(hook)), None)

    def _user_command(self, values: dict[str, Any]) -> str | None:
        """The command of a hook that runs clew but is not as clew writes it, such as `timeout 5 clew hook run`."""
        commands = (_command(hook) for hook in self._hooks(values) if not self._is_own(hook))
        return next((command for command in commands if _RUNS_CLEW.search(command.replace("\\\n", " "))), None)

    def _is_own(self, hook: Any) -> bool:
        """True for a hook that clew wrote, wherever its program was installed."""
        try:
            return clew_arguments(_shell_words(_command(hook))) == self._arguments
        except ValueError:
            return False


def _hooks_of(group: Any) -> list[Any]:
    hooks = group.get(_HOOKS) if isinstance(group, dict) else None
    return hooks if isinstance(hooks, list) else []


def _command(hook: Any) -> str:
    command = hook.get("command") if isinstance(hook, dict) else None
    return command if isinstance(command, str) else ""


def _shell_words(command: str) -> list[str]:
    """The reverse of `_shell_command`. Raises ValueError for a quotation mark without another."""
    if os.name == "nt":
        return [word.strip('"') for word in shlex.split(command, posix=False)]
    return shlex.split(command)


def _shell_command(words: Sequence[str]) -> str:
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)
