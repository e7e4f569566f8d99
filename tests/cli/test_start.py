"""How the installed command starts."""

import sys
from importlib.metadata import distribution

import pytest

from clew.agents import registry
from clew.cli import main as start


def test_the_agents_that_come_with_clew_are_those_it_is_installed_with() -> None:
    entries = {entry.name: entry.value for entry in distribution("clew").entry_points if entry.group == registry.GROUP}
    assert entries == registry.OWN


def test_an_interrupt_before_anything_is_loaded_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(**_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["clew", "list"])
    monkeypatch.setattr(start, "main", stopped)
    with pytest.raises(SystemExit) as ended:
        start.run()
    assert ended.value.code == 130
    assert capsys.readouterr().err == ""
