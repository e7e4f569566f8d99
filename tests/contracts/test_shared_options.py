"""Options mean the same in every command: one name for each meaning, one meaning for each name."""

from collections.abc import Iterator

import click
import pytest

from clew.cli import OPTIONS
from clew.cli.main import main
from tests.cli.running import clew

OTHER_NAMES = {
    "--yes": {"--write", "--apply", "--confirm", "--really", "--go", "--execute"},
    "--dry-run": {"--print", "--preview", "--simulate", "--plan", "--check-only"},
    "--output": {"--out", "--dest", "--destination", "--outfile", "--target"},
    "--into": {"--restore-to", "--restore-into", "--directory"},
    "--to": {"--target-agent", "--for"},
    "--format": {"--form", "--output-format"},
    "--folder": {"--workspace", "--root"},
    "--cwd": {"--working-directory", "--project-folder"},
}
"""Names that must not be used instead of the one in the table."""


def commands(command: click.Command = main, name: str = "clew") -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        for below in command.list_commands(click.Context(command)):
            part = command.get_command(click.Context(command), below)
            assert part is not None
            yield from commands(part, f"{name} {below}")


def options() -> list[tuple[str, click.Option]]:
    return [(name, one) for name, command in commands() for one in command.params if isinstance(one, click.Option)]


@pytest.mark.parametrize("shared", [name for name in OPTIONS if " " in name])
def test_an_option_takes_the_same_kind_of_value_everywhere(shared: str) -> None:
    name, _, metavar = shared.split(", ")[-1].partition(" ")
    users = [(command, one) for command, one in options() if name in one.opts]
    assert users
    assert [command for command, one in users if one.metavar != metavar] == []


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_a_meaning_has_one_name(name: str) -> None:
    assert any(name in one.opts for _, one in options())
    others = [(command, one.opts) for command, one in options() if OTHER_NAMES[name] & {*one.opts}]
    assert not others, f"use {name}"


def test_what_needs_to_be_confirmed_is_confirmed_by_yes() -> None:
    asking = {one.opts[-1] for _, one in options() if "without this" in (one.help or "").lower()}
    assert asking == {"--yes", "--fix"}


def test_what_shows_and_changes_nothing_is_a_dry_run() -> None:
    showing = {one.opts[-1] for _, one in options() if "nothing" in (one.help or "").lower()}
    assert showing - {"--fix"} == {"--dry-run"}


@pytest.mark.parametrize(
    "words",
    [
        ("restore", "--write"),
        ("erase", "--write"),
        ("redact", "scrub", "--write"),
        ("archive", "prune", "--apply"),
        ("archive", "restore", "--to"),
        ("convert", "--folder"),
        ("resume", "--in"),
        ("resume", "--print"),
        ("undo", "--to"),
        ("undo", "--in"),
        ("redo", "--in"),
        ("export", "--to"),
        ("graph", "--as"),
        ("migrate", "-n"),
    ],
)
def test_a_name_of_an_earlier_version_is_still_accepted_but_not_shown(words: tuple[str, ...]) -> None:
    *command, old = words
    assert f" {old} " not in clew(*command, "--help").out
    refused = clew(*command, old, "--no-such").err.partition("No such option")[2].partition("\n")[0]
    assert old not in refused.replace("--no-such", "").split("Did you mean")[0]
