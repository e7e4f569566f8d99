"""`make run`: the overview, and then the app where somebody sits at a terminal; it waits for nobody elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("make") is None, reason="there is no make, or no terminal to give it"
)
CLEW = """#!/bin/sh
echo "ran: $*"
case "$1" in demo) mkdir "$2";; "") exit "$STATUS";; esac
"""
"""A command that says how it was called; alone it ends as it is told."""


@pytest.fixture
def make(tmp_path: Path) -> list[str]:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "clew").write_text(CLEW)
    (tmp_path / "bin" / "clew").chmod(0o755)
    (tmp_path / "bin" / "python").touch()
    (tmp_path / ".run-installed").touch()
    return ["make", "--no-print-directory", "-C", str(ROOT), "run", f"VENV={tmp_path}", f"DEMO={tmp_path / 'demo'}"]


def environment(status: int, **more: str) -> dict[str, str]:
    names = ("CI", "DISPLAY", "WAYLAND_DISPLAY", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    kept = {name: value for name, value in os.environ.items() if name not in names}
    return {**kept, "STATUS": str(status), **more}


def at_a_terminal(command: list[str], env: dict[str, str]) -> str:
    """What a person sees."""
    import pty

    ours, theirs = pty.openpty()
    with subprocess.Popen(command, env=env, stdin=theirs, stdout=theirs, stderr=theirs) as running:
        os.close(theirs)
        said = b""
        while piece := _read(ours):
            said += piece
        assert running.wait(60) == 0, said
    os.close(ours)
    return said.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:
        # The other side is gone.
        return b""


@pytest.mark.parametrize("status", [0, 1])
def test_without_a_terminal_the_app_is_named_and_not_started(make: list[str], status: int) -> None:
    done = subprocess.run(
        make, env=environment(status), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "ran: web" not in done.stdout and "clew web" in done.stdout
    assert ("ran: demo" in done.stdout) == (status == 1)


@pytest.mark.parametrize(
    ("status", "more", "started"),
    [
        (0, {}, "ran: web\r"),
        (0, {"DISPLAY": ":0"}, "ran: web --open\r"),
        (1, {}, "ran: web --home DEMO\r"),
        (0, {"CI": "true"}, None),
    ],
)
def test_at_a_terminal_the_app_starts(make: list[str], status: int, more: dict[str, str], started: str | None) -> None:
    if sys.platform == "darwin" and started is not None:
        pytest.skip("there is always a browser to open")
    said = at_a_terminal(make, environment(status, **more)).replace(make[-1].removeprefix("DEMO="), "DEMO")
    assert "ran: \r" in said
    assert (started in said) if started is not None else ("ran: web" not in said)


def test_what_goes_wrong_is_the_end_of_it(make: list[str]) -> None:
    done = subprocess.run(
        make, env=environment(3), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0 and "clew web" not in done.stdout
