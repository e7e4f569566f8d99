"""Progress bars appear on a terminal alone, and only for work that takes longer than a moment."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clew.cli import progress
from clew.cli.progress import OnProgress, progress_bar, progress_bars
from tests.cli.running import clew
from tests.demo_home import write_small_demo


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_a_terminal_there_is_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_bars() as on_progress:
        assert on_progress is None
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_bar("reading", is_quiet=True) as update:
        assert update is None


def test_short_work_shows_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bars() as on_progress:
        assert on_progress is not None
        on_progress("sessions", 1, 2)
    assert terminal.getvalue() == ""


def test_each_stage_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "DELAY_SECONDS", -1.0)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bars() as on_progress:
        assert on_progress is not None
        on_progress("sessions", 1_000_000, 2_000_000)
        on_progress("text", 500_000, 3_000_000)
    assert "sessions" in terminal.getvalue() and "text" in terminal.getvalue()
    assert "1.0/2.0 MB" in terminal.getvalue()


def test_the_bar_of_long_work_is_shown_at_once_and_without_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    before = threading.active_count()
    with progress_bars() as on_progress:
        assert on_progress is not None
        on_progress("sessions", 0, progress.LONG_WORK_BYTES)
        assert "sessions" in terminal.getvalue()
        assert threading.active_count() == before


def test_commands_show_the_progress_of_their_sync(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, int]] = []

    @contextmanager
    def record_progress() -> Iterator[OnProgress]:
        yield lambda stage, done, _total: shown.append((stage, done))

    monkeypatch.setattr(progress, "progress_bars", record_progress)
    write_small_demo(home)
    assert clew("--home", home, "list").code == 0
    assert shown[0] == ("sessions", 0) and shown[-1][1] > 0
