"""The clew commands of docs/guides/coming-from.md exist, with the options that the page gives them."""

import re
import shlex

import click
import pytest

from clew.cli.main import main
from tests.docs.pages import DOCS

_ROW = re.compile(r"^\| `.+\| `clew (.+?)`", re.MULTILINE)
COMMANDS = _ROW.findall((DOCS / "guides" / "coming-from.md").read_text(encoding="utf-8"))


def test_the_page_has_commands() -> None:
    assert len(COMMANDS) > 20


@pytest.mark.parametrize("line", COMMANDS)
def test_the_command_is_valid(line: str) -> None:
    name, *arguments = shlex.split(line)
    command = main.get_command(click.Context(main), name)
    assert command is not None
    command.make_context(name, arguments, parent=click.Context(main), resilient_parsing=False)
