"""Choosing a session from a list, in a real terminal."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clew.cli.session_argument import is_interactive
from tests.cli.running import COMMAND, FORKED, clew

pytest.importorskip("prompt_toolkit")

from clew.cli.picker import Choice, matching

WAIT_SECONDS = 30


def test_a_filter_prefers_whole_words_to_letters_in_order() -> None:
    choices = [Choice("1", "Make it 30, drop the horn"), Choice("2", "New Moon in Python"), Choice("3", "moo-n")]
    assert [choice.id for choice in matching(choices, "moon")] == ["2", "3", "1"]
    assert [choice.id for choice in matching(choices, "python new")] == ["2"]
    assert matching(choices, "zebra") == []
    assert matching(choices, "") == choices


def test_a_script_gets_an_error_and_no_list(demo: Path) -> None:
    assert not is_interactive()
    ran = clew("--home", demo, "show")
    assert ran.code == 2 and "Missing argument 'REF'" in ran.err
    ran = clew("--home", demo, "pick")
    assert ran.code == 2 and "needs a terminal" in ran.err


class Terminal:
    """A terminal of tmux, with a server of its own."""

    def __init__(self, socket: Path, folder: Path) -> None:
        self._tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
        self._folder = folder

    def start(self, *words: str | Path, columns: int = 100) -> None:
        """Run clew in it, with a shell that stays after it."""
        command = shlex.join([*COMMAND, *map(str, words)])
        size = ["-x", str(columns), "-y", "30"]
        script = (
            f"cd '{self._folder}'; {command.replace('import main; main()', 'import run; run()')}; echo exit $?; cat"
        )
        subprocess.run([*self._tmux, "new-session", "-d", *size, script], check=True, env={**os.environ, "CI": ""})

    def type(self, *keys: str) -> None:
        """Press keys."""
        subprocess.run([*self._tmux, "send-keys", *keys], check=True)

    def screen(self) -> str:
        """What is to be seen."""
        return subprocess.run([*self._tmux, "capture-pane", "-p"], check=True, capture_output=True, text=True).stdout

    def wait(self, is_there: Callable[[str], bool]) -> str:
        """Wait until the screen shows something."""
        until = time.monotonic() + WAIT_SECONDS
        while not is_there(shown := self.screen()):
            assert time.monotonic() < until, shown
            time.sleep(0.1)
        return shown

    def stop(self) -> None:
        """End the server of this terminal."""
        subprocess.run([*self._tmux, "kill-server"], check=False, capture_output=True)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """A terminal, ended after the test."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    (tmp_path / "work").mkdir()
    terminal = Terminal(tmp_path / "tmux", tmp_path / "work")
    yield terminal
    terminal.stop()


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 160])
def test_pick_filters_previews_and_shows(demo: Path, terminal: Terminal, columns: int) -> None:
    terminal.start("--home", demo, "pick", columns=columns)
    terminal.wait(lambda shown: "d75994b4" in shown and "Enter show" in shown)
    terminal.type("new-moon")
    # The preview stands beside or below the list.
    terminal.wait(lambda shown: "first new moon after" in shown and "d75994b4" not in shown)
    terminal.type("Enter")
    shown = terminal.wait(lambda shown: "Enter show" not in shown and "first new moon after" in shown)
    assert "claude-code" in shown


@pytest.mark.slow
def test_pick_exports(demo: Path, terminal: Terminal, tmp_path: Path) -> None:
    terminal.start("--home", demo, "pick")
    terminal.wait(lambda shown: "Ctrl-E export" in shown)
    terminal.type("f005", "C-e")
    terminal.wait(lambda shown: "exit 0" in shown)
    assert "first new moon" in (tmp_path / "work" / f"{FORKED}.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_pick_resumes(demo: Path, terminal: Terminal) -> None:
    terminal.start("--home", demo, "resume", "--print")
    terminal.wait(lambda shown: "Enter choose" in shown)
    terminal.type("f005", "Enter")
    terminal.wait(lambda shown: f"--resume {FORKED}" in shown.replace("\n", ""))


@pytest.mark.slow
def test_a_missing_reference_opens_the_list_and_escape_leaves_it(demo: Path, terminal: Terminal) -> None:
    terminal.start("--home", demo, "graph")
    terminal.wait(lambda shown: "Enter choose" in shown)
    terminal.type("Down")
    terminal.type("Escape")
    shown = terminal.wait(lambda shown: "exit 130" in shown)
    assert "clew: interrupted" in shown
