"""The command that continues a session in its agent: printed for a shell, or started."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from clew.agents.base import Agent
from clew.errors import UsageError
from clew.host import Host
from clew.render.shell import shell_line, shell_word


class AgentCommand(NamedTuple):
    """A command, the folder to run it in, and the changes of the environment that it needs."""

    argv: list[str]
    folder: str
    environment: dict[str, str]
    unset: list[str]

    def shell_line(self, mask: Callable[[str], str]) -> str:
        """The command for a shell. Each word is masked by itself and then quoted: a marker is a pattern for a shell."""
        place = f"cd -- {shell_word(mask(self.folder))} && " if is_path(self.folder) else ""
        unset = "".join(f"-u {name} " for name in self.unset)
        settings = "".join(f"{name}={shell_word(mask(value))} " for name, value in self.environment.items())
        return f"{place}{'env ' if unset else ''}{unset}{settings}{shell_line(map(mask, self.argv))}"

    def start(self, program: str) -> None:
        """Replace this process by the agent; returns only by an error."""
        os.chdir(self.folder)
        os.execve(program, self.argv, self._environ())

    def run(self, program: str) -> None:
        """Run the command to its end. Raises UsageError where it fails; its own messages say why."""
        done = subprocess.run(self.argv, executable=program, cwd=self.folder, env=self._environ(), check=False)
        if done.returncode:
            raise UsageError(f"`{shell_line(self.argv)}` failed with exit code {done.returncode}")

    def _environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in self.unset}
        return kept | self.environment


def agent_command(argv: list[str], folder: str, host: Host, agent: Agent) -> AgentCommand:
    """The command for the sessions of a home. The agent finds its folder by HOME and by variables of its own.

    The user's variables do not apply to a home that was named.
    """
    from clew.sources.fetch import variables

    if host.env is os.environ:
        return AgentCommand(argv, folder, {}, [])
    home = {} if host.home == Path.home() else {"HOME": str(host.home.absolute())}
    return AgentCommand(argv, folder, home, [name for name in variables([agent]) if name in os.environ])


def is_path(folder: str) -> bool:
    """True for text that can be the path of a folder; False for a bare name, such as the hash of a project folder."""
    return ("/" in folder or "\\" in folder) and _is_file_name(folder)


def _is_file_name(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return "\0" not in text
