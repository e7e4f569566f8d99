"""Write the reference pages that are generated from the code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from clew.cli import OPTIONS
from clew.cli.main import main

ROOT = Path(__file__).parent.parent


def commands() -> str:
    """docs/reference/commands.md: the help of every command."""
    pages = ["# Commands\n\nGenerated from the help of the commands by `make docs`.\n", _shared_options()]
    pages.append("## clew\n\n" + _help(main, "clew"))
    context = click.Context(main, info_name="clew")
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        pages.append(f"## clew {name}\n\n" + _help(command, f"clew {name}"))
        for below, part in command.commands.items() if isinstance(command, click.Group) else ():
            pages.append(f"### clew {name} {below}\n\n" + _help(part, f"clew {name} {below}"))
    return "\n".join(pages)


def _shared_options() -> str:
    """The table of options that mean the same in every command."""
    rows = "".join(f"| `{name}` | {text} |\n" for name, text in OPTIONS.items())
    about = "These options mean the same in every command that has them."
    return f"## Shared options\n\n{about}\n\n| Option | Meaning |\n|---|---|\n{rows}"


def _help(command: click.Command, name: str) -> str:
    context = click.Context(command, info_name=name, terminal_width=100, max_content_width=100)
    return f"```text\n{command.get_help(context)}\n```\n"


def write() -> None:
    """Write all pages, and the screens that snapshot tests compare with."""
    (ROOT / "docs" / "reference" / "commands.md").write_text(commands(), encoding="utf-8", newline="\n")
    for script in ("problems.py", "schema.py", "seeds.py"):
        subprocess.run([sys.executable, str(ROOT / "scripts" / script)], check=True)
    for module in ("tests.docs.examples", "tests.cli.test_snapshots"):
        subprocess.run([sys.executable, "-m", module], cwd=ROOT, check=True)


if __name__ == "__main__":
    write()
