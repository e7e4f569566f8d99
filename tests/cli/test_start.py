"""The help of the whole command is printed without the group of all commands, and is the same."""

import sys
from importlib.metadata import distribution

import pytest
from click.testing import CliRunner

from clew.agents import registry
from clew.cli import main, start


@pytest.mark.parametrize("columns", ["80", "100", "200"])
def test_the_quick_help_is_the_help_of_the_group(columns: str) -> None:
    shown = CliRunner().invoke(main, ["--help"], prog_name="clew", env={"COLUMNS": columns})
    assert start.help_text("/usr/bin/clew") == shown.output


@pytest.mark.parametrize(("columns", "is_quick"), [("80", True), ("79", False)])
def test_a_narrow_terminal_gets_the_help_that_is_broken_into_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: str, is_quick: bool
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "argv", ["clew", "-h"])
    asked: list[bool] = []
    monkeypatch.setattr("clew.cli.group.main", lambda: asked.append(True))
    start.run()
    assert bool(asked) is not is_quick
    assert (capsys.readouterr().out == start.help_text("clew")) is is_quick


def test_any_other_word_goes_to_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(sys, "argv", ["clew", "--help", "list"])
    monkeypatch.setattr("clew.cli.group.main", lambda: asked.append(True))
    start.run()
    assert asked == [True]


def test_the_agents_that_come_with_clew_are_those_it_is_installed_with() -> None:
    entries = {entry.name: entry.value for entry in distribution("clew").entry_points if entry.group == registry.GROUP}
    assert entries == registry.OWN


def test_an_interrupt_before_anything_is_loaded_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["clew", "list"])
    monkeypatch.setattr("clew.cli.group.main", stopped)
    with pytest.raises(SystemExit) as ended:
        start.run()
    assert ended.value.code == 130
    assert capsys.readouterr().err == ""
