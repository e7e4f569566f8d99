"""The group of all commands."""

from __future__ import annotations

import click

from clew.cli import ABOUT, COMMANDS, OPTIONS
from clew.cli.lazy import LazyGroup
from clew.cli.sourcing import Folder, sourcing
from clew.datadir import environment_problem
from clew.errors import UsageError


@click.group(
    cls=LazyGroup,
    commands_help=COMMANDS,
    help="\n\n".join(ABOUT),
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--home", "homes", type=Folder(), multiple=True, metavar="DIR", help=OPTIONS["--home DIR"])
@sourcing
@click.option("--json", "as_json", is_flag=True, help=OPTIONS["--json"])
@click.option("--version", is_flag=True, help=OPTIONS["--version"])
@click.pass_context
def main(context: click.Context, homes: tuple[str, ...], as_json: bool, version: bool) -> None:
    context.obj = {"homes": homes, "json": as_json}
    if version:
        from clew import __version__

        click.echo(f"clew {__version__}")
        return
    problem = environment_problem()
    if problem is not None:
        raise UsageError(problem)
    if context.invoked_subcommand is None:
        from clew.cli.overview import overview

        overview(context)
