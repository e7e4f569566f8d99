"""The command line: a face without logic. A command's module is imported when the command is run."""

from __future__ import annotations

import click

from clew.cli.lazy import LazyGroup
from clew.cli.sourcing import sourcing

COMMANDS = {
    "list": "Sessions, newest first.",
    "show": "One session, readable.",
    "graph": "The tree of a conversation, with its forks.",
    "files": "What each message did to which files.",
    "diff": "How files changed between two messages, or by one.",
    "restore": "Files put back as they were at a message.",
    "blame": "Which session, message and prompt wrote each line of a file.",
    "export": "Sessions as unified JSON, NDJSON or Markdown.",
    "convert": "A session written for another agent, which then goes on with it.",
    "resume": "Go on with a session, in its own agent or in another.",
    "import": "A unified document back to an agent's own files.",
    "verify": "Prove that nothing is lost, byte for byte.",
    "validate": "Find what is wrong with sessions.",
    "migrate": "Bring old Sage sessions to the current form.",
    "record": "Append messages from any program to a session of clew's own store.",
    "branches": "The branches of a session in clew's own store.",
    "branch": "Look at one branch, name it, go to it, or compare two.",
    "todos": "The task list of a session, as it changed.",
    "doctor": "Find and mend what is wrong with a store on disk.",
    "schema": "The JSON Schema of the unified document.",
    "agents": "The agents clew reads, and where they keep sessions.",
    "sources": "Where sessions come from: homes and other machines.",
    "demo": "Write a small home folder to try everything on.",
}


@click.group(
    cls=LazyGroup,
    commands_help=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--home", "homes", multiple=True, metavar="DIR", help="Home folder to read agents from; repeatable.")
@sourcing
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
