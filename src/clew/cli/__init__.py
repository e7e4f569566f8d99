"""The command line: a face without logic. A command's module is imported when the command is run."""

from __future__ import annotations

import click

from clew.cli.lazy import LazyGroup

COMMANDS = {
    "list": "Sessions, newest first.",
    "show": "One session, readable.",
    "graph": "The tree of a conversation, with its forks.",
    "export": "Sessions as unified JSON, NDJSON or Markdown.",
    "import": "A unified document back to an agent's own files.",
    "verify": "Prove that nothing is lost, byte for byte.",
    "validate": "Find what is wrong with sessions.",
    "migrate": "Bring old Sage sessions to the current form.",
    "schema": "The JSON Schema of the unified document.",
    "agents": "The agents clew reads, and where they keep sessions.",
    "demo": "Write a small home folder to try everything on.",
}


@click.group(
    cls=LazyGroup,
    commands_help=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--home", "homes", multiple=True, metavar="DIR", help="Home folder to read agents from; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--version", is_flag=True, help="Print the version and leave.")
@click.pass_context
def main(context: click.Context, homes: tuple[str, ...], as_json: bool, version: bool) -> None:
    """The history of your AI coding agents: find it, read it, prove it, export it.

    Without a command: what is here.
    """
    context.obj = {"homes": homes, "json": as_json}
    if version:
        from clew import __version__

        click.echo(f"clew {__version__}")
    elif context.invoked_subcommand is None:
        from clew.cli.overview import overview

        overview(context)
