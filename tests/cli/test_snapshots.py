"""What the commonest commands print on terminals of three widths, compared with stored screens.

`make docs`, or `python -m tests.cli.test_snapshots` alone, writes the screens again.
"""

from __future__ import annotations

import io
import os
import shlex
import sys
import tempfile
from pathlib import Path
from unittest import mock

import pytest

from clew.cli.main import main
from clew.render.tables import cell_width
from tests.docs.examples import Shell, demo_shell

WIDTHS = (60, 80, 200)
COMMANDS = (
    "--help",
    "",
    "list",
    "show f005",
    "tail -n 2 @last",
    "search tide -n 4",
    "search zebra --agent codex",
    "stats",
    "stats --by model",
    "stats --by session",
    "stats --blocks --since 2026-10-20",
    "graph f005",
    "files @last",
    "agents",
    "list --project nowhere",
)
TABLES = tuple(
    command for command in COMMANDS if command.split(" ")[0] in ("", "list", "stats", "graph", "files", "agents")
)
"""Commands of which no line may be wider than the terminal."""
SNAPSHOTS = Path(__file__).with_name("snapshots")


class Screen(io.TextIOWrapper):
    """A stream that says it is a terminal."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def isatty(self) -> bool:
        return True

    def text(self) -> str:
        """What was written."""
        self.flush()
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode()


def run(command: str, columns: int, shell: Shell) -> str:
    """What a command prints on a terminal, results and then messages."""
    screen, messages = Screen(), io.StringIO()
    with (
        mock.patch.dict(os.environ, {"COLUMNS": str(columns), "NO_COLOR": "1"}),
        mock.patch.object(sys, "stdout", screen),
        mock.patch.object(sys, "stderr", messages),
        pytest.raises(SystemExit),
    ):
        main(shlex.split(command), prog_name="clew")
    return shell.shown(screen.text() + messages.getvalue())


def screens(columns: int, shell: Shell) -> dict[str, str]:
    """What every command prints."""
    run("sync", columns, shell)
    return {command: run(command, columns, shell) for command in COMMANDS}


def as_text(found: dict[str, str]) -> str:
    """The screens as they are stored."""
    return "\n".join(f"$ clew {command}".rstrip() + f"\n{printed}" for command, printed in found.items())


@pytest.mark.parametrize("columns", WIDTHS)
def test_screens_are_as_stored_and_fit(columns: int, tmp_path: Path) -> None:
    with demo_shell(tmp_path) as shell:
        found = screens(columns, shell)
    assert as_text(found) == (SNAPSHOTS / f"{columns}.txt").read_text(encoding="utf-8")
    for command in TABLES:
        too_wide = [line for line in found[command].splitlines() if cell_width(line) > columns]
        # Messages on stderr are not fitted.
        assert [line for line in too_wide if not line.startswith("no price")] == [], command


def test_symbols_become_ascii_where_the_output_cannot_encode_them(tmp_path: Path) -> None:
    from tests.cli.running import run as run_process

    with demo_shell(tmp_path) as shell:
        run("sync", 80, shell)
        printed = run_process("graph", "f005", env={**os.environ, "PYTHONIOENCODING": "latin-1"}).raw
    assert b"|-   3 user" in printed and b"\\u" not in printed and printed.isascii()


if __name__ == "__main__":
    SNAPSHOTS.mkdir(exist_ok=True)
    for width in WIDTHS:
        with tempfile.TemporaryDirectory() as folder, demo_shell(Path(folder)) as demo:
            text = as_text(screens(width, demo))
        (SNAPSHOTS / f"{width}.txt").write_text(text, encoding="utf-8", newline="\n")
