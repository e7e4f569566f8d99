"""The command line, run inside this process or as a process of its own."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from clew.cli.main import main

COMMAND = (sys.executable, "-c", "from clew.cli.main import run; run()")
"""The installed command, whatever the path says."""

LATEST = "d75994b4-e8eb-4bb4-be37-ca1f27aa9485"
FORKED = "f005c7db-1dcc-4692-bc16-77f2521cfb4b"
WITH_AGENTS = "38ed9768-3187-478b-a81f-4c75a5724c22"
DAMAGED = "3c986c27-53f1-40e2-a98b-1094b4993bdb"
BELL = "65e3e58a-4436-41d2-b07c-28cc2b6f97b8"
"""Sessions of the demo."""


class Ran(NamedTuple):
    """What a command gave."""

    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def lines(self) -> list[Any]:
        """One JSON value a line."""
        return [json.loads(line) for line in self.raw.splitlines()]


def clew(*words: str | Path) -> Ran:
    """Run the command inside this process; what is no exit is raised."""
    done = CliRunner().invoke(main, [str(word) for word in words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Ran(done.exit_code, done.stdout_bytes, done.stderr)


def run(*words: str | Path, **options: Any) -> Ran:
    """Run the command as a process."""
    done = subprocess.run([*COMMAND, *map(str, words)], capture_output=True, timeout=60, check=False, **options)
    return Ran(done.returncode, done.stdout, done.stderr.decode())


def state(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Every file with its time, mode and content."""
    return {
        str(path): (path.stat().st_mtime_ns, path.stat().st_mode, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
