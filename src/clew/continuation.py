"""How a session is continued in an agent: the commands, and the conversion that comes first where one is needed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from clew.agents.base import Agent
from clew.agents.file_evidence import absolute
from clew.agents.source import SourceFile
from clew.agents.target_profile import TargetProfile
from clew.convert.losses import Converted, serious
from clew.convert.prepare import Prepared, is_converted, prepare
from clew.errors import UsageError
from clew.host import Host
from clew.io.paths import can_be_path
from clew.render.shell import shell_line, shell_word
from clew.sources import moved_projects
from clew.sources.fetch import variables
from clew.sources.moved_projects import current_path
from clew.stored_session import StoredSession


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
    if host.env is os.environ:
        return AgentCommand(argv, folder, {}, [])
    home = {} if host.home == Path.home() else {"HOME": str(host.home.absolute())}
    return AgentCommand(argv, folder, home, [name for name in variables([agent]) if name in os.environ])


def is_path(folder: str) -> bool:
    """True for text that can be the path of a folder; False for a bare name, such as the hash of a project folder."""
    return ("/" in folder or "\\" in folder) and can_be_path(folder)


class Continuation:
    """A session that is to be continued in an agent, by the program of a host. `write` alone writes; nothing is run."""

    def __init__(
        self,
        session: StoredSession,
        agent: Agent,
        host: Host,
        find_subagents: Callable[[str], SourceFile | None],
        *,
        branch: str | None = None,
        full_history: bool = False,
    ) -> None:
        """Raises UsageError if the agent cannot continue a given session, or not this one."""
        profile = agent.target_profile()
        if profile is None:
            raise UsageError(f"{agent.title} cannot continue a given session")
        _refuse_subagent(session, agent, profile)
        self.session, self.agent, self.host = session, agent, host
        self.profile: TargetProfile = profile
        self.folder, self._is_moved = _current_folder(session)
        """The folder of the session's project, where the agent is started."""
        self._branch, self._full_history = branch, full_history
        self.conversion: Prepared | None = None
        """What writes the session for the agent; None if the agent finds the session as it is."""
        self.converted: Converted | None = None
        """The session as the conversion writes it."""
        self.was_converted = False
        """True if the conversion was written before."""
        if branch is None and agent.id == session.agent.id and not self._is_moved and self._is_at_home():
            self.argv = profile.command(msgspec.to_builtins(session.header))
            return
        self.conversion = prepare(
            session.agent,
            session.source,
            agent.id,
            branch,
            find_subagents,
            home=host.home,
            workspace=self.folder if self._is_moved else None,
            full_history=full_history,
            now=host.now,
        )
        self.converted = self.conversion.describe(host.home)
        self.was_converted = is_converted(agent, self.converted)
        self.argv = self.converted.resume
        """The agent's command; empty for an id that is not safe on a command line."""

    def _is_at_home(self) -> bool:
        """True if the agent itself finds the session and continues it."""
        session, path = self.session, self.session.path.absolute()
        can_resume_file = self.profile.can_find_by_id(path, session.id)
        can_resume_file = can_resume_file and self.profile.resumes_file(path, session.source.parts)
        return can_resume_file and any(path.is_relative_to(root.absolute()) for root in session.agent.roots(self.host))

    def write(self, *, allow_loss: bool) -> Converted:
        """Write the conversion. Raises WouldLose if a file is in the way, or if a serious loss is not allowed."""
        assert self.conversion is not None
        written = self.conversion.write(self.host.home, allow_loss=allow_loss)
        self.argv = written.resume
        return written

    def convert_command(self, reference: str, sources: Sequence[str] = (), *, allow_loss: bool = False) -> list[str]:
        """The `clew convert` that writes the conversion. `sources` are options before the name of the command."""
        options = ["--to", self.agent.id, "--home", str(self.host.home.absolute())]
        options += ["--branch", self._branch] if self._branch is not None else []
        options += ["--cwd", self.folder] if self._is_moved else []
        options += ["--full-history"] if self._full_history else []
        is_serious = self.converted is not None and bool(serious(self.converted.losses))
        options += ["--allow-loss"] if allow_loss and is_serious else []
        return ["clew", *sources, "convert", reference, *options]

    def import_commands(self) -> list[AgentCommand]:
        """The commands by which the agent takes over a converted session, before it is started."""
        if self.converted is None or not self.converted.imports:
            return []
        if self.agent.locate(Path(self.converted.files[0])).change_token:
            return []
        return [self._command(argv) for argv in self.converted.imports]

    def start_command(self) -> AgentCommand:
        """The command that starts the agent on the session."""
        return self._command(self.argv)

    def _command(self, argv: list[str]) -> AgentCommand:
        return agent_command(argv, self.folder, self.host, self.agent)

    def shell_lines(self, mask: Callable[[str], str], conversion: Sequence[str] | None = None) -> list[str]:
        """All commands for a shell, after the `clew convert` if one is given; all but the last end in `&&`."""
        lines = [shell_line(map(mask, conversion))] if conversion is not None else []
        lines += [command.shell_line(mask) for command in (*self.import_commands(), self.start_command())]
        return [f"{line} &&" for line in lines[:-1]] + lines[-1:]


def _refuse_subagent(session: StoredSession, agent: Agent, profile: TargetProfile) -> None:
    """Refuse an agent that resumes only the parent session of a sub-agent. Another agent gets a new session."""
    if session.header.is_agent_session and agent.id == session.agent.id and profile.nests_subagents:
        parent = session.header.parent_session_id
        hint = f"; `clew resume {shell_word(parent)}` continues the session that started it" if parent else ""
        raise UsageError(
            f"{session.id} is the session of a sub-agent, which {agent.title} cannot continue by itself{hint}"
        )


def _current_folder(session: StoredSession) -> tuple[str, bool]:
    """The folder of a session's project, and whether it was moved since."""
    recorded = session.header.workspace
    if not is_path(recorded):
        return recorded, False
    current = current_path(recorded, moved_projects.load())
    return (current, True) if current != absolute(recorded, None) else (recorded, False)
