"""What `clew hook`, `clew mcp` and `clew skill` share: options, choice of agents, and printing and making an edit."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from clew.cli.options import refuse_json, target_home_option, target_host
from clew.cli.output import print_message
from clew.cli.redaction import Redaction
from clew.errors import ClewError, UnknownReference, UsageError

if TYPE_CHECKING:
    from clew.agents.base import Agent
    from clew.config_file_edits import Addition, Edit
    from clew.host import Host

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

configured_home_option = target_home_option("with the configuration of agents")


def agent_option(*, required: bool) -> Callable[[F], F]:
    """--agent, for commands that change the configuration of one agent; if it is not required, of all by default."""
    help_text = "The agent to configure." if required else "The agent to configure; default: all that are found."
    return click.option("--agent", "name", required=required, metavar="ID", help=help_text)


def configured_host(context: click.Context, target_home: Path | None) -> Host:
    """The home whose configuration is changed: the one after the command, of its group, before it, or the user's."""
    refuse_json(context)
    parameters: dict[str, Any] = context.parent.params if context.parent is not None else {}
    homes = parameters.get("homes") or ()
    return target_host(context, target_home or (Path(homes[0]) if homes else None))


def choose_agents(host: Host, name: str | None, find: Callable[[Agent], T | None], what: str) -> list[T]:
    """What `find` returns for the agent of this name; without a name, for all agents that have a folder.

    Raises UsageError if `find` returns None for the named agent, or if no agent is found.
    """
    from clew.agents import registry
    from clew.sources.local import is_folder

    if name is not None:
        agent = registry.get(registry.match(name))
        config = find(agent)
        if config is None:
            known = ", ".join(one.id for one in registry.load_all() if find(one) is not None)
            raise UsageError(f"clew does not know {what} of {agent.title}; it knows those of {known}")
        return [config]
    configs = ((agent, find(agent)) for agent in registry.load_all())
    known_configs = [(agent, config) for agent, config in configs if config is not None]
    found = [config for agent, config in known_configs if any(is_folder(root.parent) for root in agent.roots(host))]
    if not found:
        ids = ", ".join(agent.id for agent, _ in known_configs)
        raise UsageError(f"{host.home} has no folder of {ids}; name one of them with --agent")
    return found


def clew_command(*, is_shared: bool = False) -> list[str]:
    """The command by which agents start clew. In a file that others share, only the name of the program is known."""
    if is_shared:
        return ["clew"]
    installed = shutil.which("clew")
    # -P: the current folder may be a repository with modules of anyone's making.
    return [str(Path(installed).absolute())] if installed else [sys.executable, "-P", "-m", "clew"]


def plan_and_apply_all(
    plan: Callable[[Addition], Edit], additions: Sequence[Addition], *, is_named: bool, dry_run: bool
) -> int:
    """Plan, print and make a change of the configuration of agents. Returns the exit code.

    Of agents that were not named, one whose file cannot be changed is reported, and the others are changed. Some may
    not have what is to be removed, but not all.
    """
    code, absent = 0, 0
    for addition in additions:
        try:
            print_and_apply(plan(addition), dry_run)
        except ClewError as error:
            if is_named:
                raise
            if isinstance(error, UnknownReference):
                absent += 1
                continue
            print_message(f"clew: {error}")
            code = code or error.exit_code
    if absent == len(additions):
        raise UnknownReference(f"no agent has a {additions[0].title}")
    return code


def print_and_apply(edit: Edit, dry_run: bool) -> None:
    """Print the change, and make it unless it is a dry run."""
    from clew.config_file_edits import apply_edit
    from clew.render.text_safety import visible

    if edit.is_empty:
        print_message(f"{edit.path}: nothing to change")
    else:
        # Other entries of the file may hold secrets.
        click.echo(visible(Redaction().text(edit.diff())), nl=False)
    user_entry_note = edit.addition.user_entry_note(edit.after)
    if user_entry_note:
        print_message(f"{user_entry_note}; it stays as it is")
    if edit.is_empty or dry_run:
        return
    apply_edit(edit)
    print_message(f"{edit.path}: {edit.outcome}")
    if edit.addition.note and not edit.is_removal:
        print_message(edit.addition.note)
