"""The hook of clew as an entry in the configuration of an agent."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

from clew.agents.base import Agent
from clew.agents.extension_points import ConfigFile, Hook
from clew.config_file_edits import JsonAddition
from clew.host import Host

_HOOKS = "hooks"


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
        self._event, self._arguments = hook.event, ["hook", "run", "--agent", agent.id]
        self._entry = {"type": "command", "command": _shell_command([*program, *self._arguments]), **hook.entry}

    def is_among(self, values: dict[str, Any]) -> bool:
        return any(map(self._is_own, self._hooks(values)))

    def command_in(self, text: str | None) -> str | None:
        """The command of clew in a content of the file; None if it has none."""
        return next((hook["command"] for hook in self._hooks(self.parse(text)) if self._is_own(hook)), None)

    def add_to(self, values: dict[str, Any]) -> dict[str, Any]:
        if self.is_among(values):
            return self._with_hooks(values, lambda hook: self._entry if self._is_own(hook) else hook)
        events = self.member(values, _HOOKS, dict)
        groups = [*self.member(events, self._event, list), {_HOOKS: [self._entry]}]
        return {**values, _HOOKS: {**events, self._event: groups}}

    def remove_from(self, values: dict[str, Any]) -> dict[str, Any]:
        return self._with_hooks(values, lambda hook: None if self._is_own(hook) else hook)

    def _hooks(self, values: dict[str, Any]) -> list[Any]:
        groups = self.member(self.member(values, _HOOKS, dict), self._event, list)
        return [hook for group in groups for hook in _hooks_of(group)]

    def _with_hooks(self, values: dict[str, Any], change: Any) -> dict[str, Any]:
        """The values with changed hooks of the event. What is empty without a removed hook is removed too."""
        events = self.member(values, _HOOKS, dict)
        groups = []
        for group in self.member(events, self._event, list):
            hooks = _hooks_of(group)
            changed = [one for one in map(change, hooks) if one is not None]
            if changed or not hooks:
                groups.append({**group, _HOOKS: changed} if changed != hooks else group)
        events = {name: value if name != self._event else groups for name, value in events.items()}
        if not groups:
            events.pop(self._event)
        values = {name: value if name != _HOOKS else events for name, value in values.items()}
        if not events:
            values.pop(_HOOKS)
        return values

    def _is_own(self, hook: Any) -> bool:
        """True for a hook of clew, wherever its program was installed."""
        command = hook.get("command") if isinstance(hook, dict) else None
        return isinstance(command, str) and "clew" in command and command.endswith(_shell_command(self._arguments))


def program_exists(command: str) -> bool:
    """False if the program of an installed hook is gone, as after an update of Python."""
    return os.name == "nt" or shutil.which(shlex.split(command)[0]) is not None


def _hooks_of(group: Any) -> list[Any]:
    hooks = group.get(_HOOKS) if isinstance(group, dict) else None
    return hooks if isinstance(hooks, list) else []


def _shell_command(words: Sequence[str]) -> str:
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)
