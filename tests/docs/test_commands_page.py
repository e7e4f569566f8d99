"""The command pages say what the commands' own help says; the layout may differ from one click to the next."""

import re

import click
import pytest

from clew.cli.main import main
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
CONTEXT = click.Context(main)


def plain(text: str) -> str:
    # \b keeps the line ends of a paragraph, and is not printed.
    return re.sub(r"[\s\b]+", " ", text)


@pytest.mark.parametrize("name", main.list_commands(CONTEXT))
def test_every_option_is_explained_as_in_the_help(name: str) -> None:
    command = main.get_command(CONTEXT, name)
    assert command is not None
    section = plain(PAGE.partition(f"## clew {name}\n")[2].partition("\n## ")[0])
    options = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
    missing = [option.name for option in options if plain(option.help or "") not in section]
    missing += [word for option in options for word in option.opts if word not in section]
    assert not missing, "docs/reference/commands.md is stale: run `make docs`"
    assert plain(command.help or "") in section
