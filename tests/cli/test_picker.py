"""Choosing a session from a list, in a real terminal."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clew.catalog.sync import sync
from clew.cli.session_argument import is_interactive
from tests.cli.running import COMMAND, FORKED, clew

pytest.importorskip("prompt_toolkit")

from clew.cli.picker import Choice, matching

WAIT_SECONDS = 30


def test_a_filter_prefers_whole_words_to_letters_in_order() -> None:
    lines = ("Make it 30, drop the horn", "New Moon in Python", "moo-n")
    choices = [Choice("codex", str(number), line) for number, line in enumerate(lines, 1)]
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


@pytest.fixture
def lists(monkeypatch: pytest.MonkeyPatch) -> list[list[Choice]]:
    """The lists that commands open, each without a terminal: every session is previewed, and the first is chosen."""
    opened: list[list[Choice]] = []

    class FirstOfList:
        def __init__(
            self, choices: list[Choice], actions: dict[str, str], preview: Callable[[Choice], str], pool: object
        ) -> None:
            self.choices, self.actions, self.preview = choices, actions, preview

        def run(self) -> tuple[str, Choice]:
            opened.append(self.choices)
            assert all(map(self.preview, self.choices))
            return list(self.actions.values())[-1], self.choices[0]

    monkeypatch.setattr("clew.cli.picker.Picker", FirstOfList)
    for module in ("session_argument", "command_pick"):
        monkeypatch.setattr(f"clew.cli.{module}.is_interactive", lambda: True)
    return opened


def test_the_list_and_its_previews_need_one_sync(
    demo: Path, lists: list[list[Choice]], monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs = []

    def counted_sync(*words: Any, **options: Any) -> Any:
        syncs.append(words)
        return sync(*words, **options)

    monkeypatch.setattr("clew.catalog.access.sync", counted_sync)
    assert clew("--home", demo, "graph").code == 0
    assert len(lists[0]) > 5
    # One for the list, and one for the command itself.
    assert len(syncs) == 2


def test_the_list_is_limited_to_a_project(demo: Path, lists: list[list[Choice]]) -> None:
    assert clew("--home", demo, "show", "--project", "moon.phase").code == 0
    assert [choice.id for choice in lists[0]] == [FORKED]


def test_branches_are_chosen_from_sessions_of_the_store(demo: Path, lists: list[list[Choice]]) -> None:
    for command in ("branches", "branch"):
        assert clew("--home", demo, command).code == 0
    assert {choice.agent for choices in lists for choice in choices} == {"sage-agent"}


@pytest.mark.parametrize("command", ["undo", "redo"])
def test_a_command_that_writes_files_opens_no_list(demo: Path, lists: list[list[Choice]], command: str) -> None:
    ran = clew("--home", demo, command)
    assert ran.code == 2 and "Missing argument 'REF'" in ran.err and lists == []


def test_a_missing_option_is_reported_before_the_list(demo: Path, lists: list[list[Choice]]) -> None:
    ran = clew("--home", demo, "convert")
    assert ran.code == 2 and "Missing option '--to'" in ran.err and lists == []


@pytest.mark.parametrize("name", ["--allow-loss", "../../evil", "x\x1b[31m"], ids=repr)
def test_an_id_is_neither_an_option_nor_a_path(
    tmp_path: Path, lists: list[list[Choice]], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    home, work = tmp_path / "home", tmp_path / "a" / "b" / "work"
    path = home / ".codex" / "sessions" / "2026" / "11" / "01" / "rollout-2026-11-01T10-00-00-x.jsonl"
    path.parent.mkdir(parents=True)
    records = [
        {"type": "session_meta", "payload": {"id": name, "cwd": "/tide", "timestamp": "2026-11-01T10:00:00Z"}},
        {"type": "event_msg", "payload": {"type": "user_message", "message": "Hello"}},
    ]
    path.write_text("".join(json.dumps({"timestamp": "2026-11-01T10:00:00Z", **one}) + "\n" for one in records))
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    ran = clew("--home", home, "pick")
    assert ran.code == 0, ran.err
    assert [choice.id for choice in lists[0]] == [name] and "\x1b" not in lists[0][0].line
    (written,) = (found for found in (tmp_path / "a").rglob("*") if found.is_file())
    assert written.parent == work and written.name.startswith("codex-") and "Hello" in written.read_text()


def test_pick_passes_no_sync_on(demo: Path, lists: list[list[Choice]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.catalog.access.sync", lambda *_, **__: pytest.fail("a sync"))
    monkeypatch.chdir(demo)
    assert clew("--no-sync", "--home", demo, "pick").code == 0


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
    assert "first new moon" in (tmp_path / "work" / f"claude-code-{FORKED}.md").read_text(encoding="utf-8")


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
    assert "interrupted" not in shown
