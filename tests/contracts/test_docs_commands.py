"""Every command has help."""

import click
import pytest

from clew.cli.main import main


def command_names() -> list[str]:
    return main.list_commands(click.Context(main))


def command_named(name: str) -> click.Command:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return command


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
