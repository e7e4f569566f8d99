"""The installed command starts, with the agents it is installed with."""

import sys
from importlib.metadata import distribution

import pytest

from clew.agents import registry
from clew.cli import start


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
