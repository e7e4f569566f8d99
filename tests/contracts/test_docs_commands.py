"""Every command has help and a row in the README's table."""

import re
from pathlib import Path

import click
import pytest

from clew.cli.main import main

ROOT = Path(__file__).resolve().parents[2]


def command_names() -> list[str]:
    return main.list_commands(click.Context(main))


def command_named(name: str) -> click.Command:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return command


def mentions(line: str, name: str) -> bool:
    """Whether the line names the command, as `clew name` or as `name` between backticks."""
    return re.search(rf"\bclew {re.escape(name)}(?![\w-])|`{re.escape(name)}`", line) is not None


def lines_starting(page: Path, start: str) -> list[str]:
    return [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith(start)]


def test_there_are_commands() -> None:
    assert command_names()


@pytest.mark.parametrize("name", command_names())
def test_command_has_help(name: str) -> None:
    command = command_named(name)
    assert command.help
    assert command.get_short_help_str()
    undocumented = [
        parameter.name
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.hidden and not parameter.help
    ]
    assert not undocumented


@pytest.mark.parametrize("name", command_names())
def test_command_is_in_the_readme(name: str) -> None:
    rows = lines_starting(ROOT / "README.md", "|")
    assert any(mentions(line, name) for line in rows), f"no table of the README names `clew {name}`"
