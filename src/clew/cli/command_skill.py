"""clew skill: a text that teaches agents to use clew for questions about earlier sessions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli import OPTIONS
from clew.cli.install_commands import (
    agent_option,
    choose_agents,
    configured_home_option,
    configured_host,
    plan_and_apply_all,
)
from clew.cli.options import dry_run_option, refuse_json

if TYPE_CHECKING:
    from clew.skill.install import SkillAddition

_force_option = click.option("--force", is_flag=True, help=f"{OPTIONS['--force']} Also one that was changed.")


@click.group("skill")
def command() -> None:
    """Teach agents to use clew for questions about earlier sessions.

    A skill is a text that an agent reads when a question fits its description. `clew skill install` adds the skill
    `clew` to Claude Code, Codex and Gemini CLI. It names the commands for what was decided before, which session
    touched a file and how an error was fixed, and tells the agent to cite its sources.
    """


@command.command("show")
@click.pass_context
def show(context: click.Context, /) -> None:
    """Print the skill."""
    from clew.skill.install import skill_text

    refuse_json(context)
    click.echo(skill_text(), nl=False)


@command.command("install")
@agent_option(required=False)
@_force_option
@dry_run_option()
@configured_home_option
@click.pass_context
def install(context: click.Context, /, name: str | None, force: bool, dry_run: bool, target_home: Path | None) -> int:
    """Add the skill to agents, after printing the change.

    A skill of the same name that was changed or that is not of clew is replaced only with --force, and comes back with
    `clew skill uninstall`.
    """
    from clew.config_file_edits import plan_install

    additions = _additions(context, name, force, target_home)
    return plan_and_apply_all(plan_install, additions, is_named=name is not None, dry_run=dry_run)


@command.command("uninstall")
@agent_option(required=False)
@_force_option
@dry_run_option()
@configured_home_option
@click.pass_context
def uninstall(context: click.Context, /, name: str | None, force: bool, dry_run: bool, target_home: Path | None) -> int:
    """Remove the skill from agents, after printing the change."""
    from clew.config_file_edits import plan_uninstall

    additions = _additions(context, name, force, target_home)
    return plan_and_apply_all(plan_uninstall, additions, is_named=name is not None, dry_run=dry_run)


def _additions(context: click.Context, name: str | None, force: bool, target_home: Path | None) -> list[SkillAddition]:
    from clew.skill.install import skill_addition

    host = configured_host(context, target_home)
    return choose_agents(host, name, lambda agent: skill_addition(agent, host, force=force), "skills")
