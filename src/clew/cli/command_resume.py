"""clew resume: start the right agent in the right folder on a session."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

import click

from clew.agents import registry
from clew.agents.base import Receives
from clew.cli.options import common, library, wants_json
from clew.cli.output import print_json, say
from clew.convert.choosing import Prepared, prepare
from clew.errors import SourceUnreadable, UsageError, WouldLose
from clew.host import Host
from clew.library import StoredSession


@click.command("resume")
@click.argument("reference", metavar="PATH|REF")
@click.option("--in", "target", metavar="AGENT", help="Go on in this agent; without it, in the session's own.")
@click.option("--print", "only_print", is_flag=True, help="Print the command instead of running it.")
@click.option("--allow-loss", is_flag=True, help="Convert even if the agent cannot hold everything.")
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    reference: str,
    target: str | None,
    only_print: bool,
    allow_loss: bool,
    homes: tuple[str, ...],
    as_json: bool,
) -> int:
    """Go on with a session: its agent is started in its folder.

    With --in the session is first converted for that agent, below the home folder it is found in.
    """
    shelf = library(context, homes)
    session = shelf.get(reference)
    agent = registry.get(target or session.agent.id)
    if not isinstance(agent, Receives):
        raise UsageError(f"{agent.title} cannot be told to go on with a session")
    home = shelf.hosts[0].home
    folder = session.header.workspace
    if agent.id == session.agent.id and _is_at_home(session, shelf.hosts[0]):
        argv = agent.receiver().resume({"id": session.id})
    else:
        prepared = prepare(session.agent, session.source, agent.id, find=shelf.subagents(session))
        argv = _converted(prepared, home, allow_loss)
    # An agent looks below HOME, so one that is to look elsewhere is told so.
    environment = {} if home == Path.home() else {"HOME": str(home)}
    if wants_json(context, as_json):
        print_json({"argv": argv, "cwd": folder, "environment": environment})
    elif only_print:
        click.echo(_spelled(argv, folder, environment))
    else:
        _start(argv, folder, environment)
    return 0


def _is_at_home(session: StoredSession, host: Host) -> bool:
    """True when the agent itself finds the session."""
    return any(session.path.is_relative_to(root) for root in session.agent.roots(host))


def _converted(prepared: Prepared, home: Path, allow_loss: bool) -> list[str]:
    described = prepared.describe(home)
    if described.losses and not allow_loss:
        for loss in described.losses[:10]:
            say(f"  {loss.what}: {loss.why}")
        raise WouldLose(f"{len(described.losses)} things would be lost; --allow-loss goes on all the same")
    written = prepared.write(home, allow_loss=allow_loss)
    say(f"converted: {written.files[0]}")
    return written.resume


def _spelled(argv: list[str], folder: str, environment: dict[str, str]) -> str:
    settings = "".join(f"{name}={shlex.quote(value)} " for name, value in environment.items())
    return f"cd {shlex.quote(folder)} && {settings}{shlex.join(argv)}"


def _start(argv: list[str], folder: str, environment: dict[str, str]) -> None:
    """Become the agent; returns only by an error."""
    if shutil.which(argv[0]) is None:
        raise UsageError(f"{argv[0]} is not installed; --print shows the command")
    if not Path(folder).is_dir():
        raise SourceUnreadable(f"{folder}: the session's folder is gone; --print shows the command")
    os.chdir(folder)
    os.execvpe(argv[0], argv, {**os.environ, **environment})
