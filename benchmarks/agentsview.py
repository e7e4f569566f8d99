"""Runs agentsview without telemetry, daemon and update checks, with its data in a folder of its own."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_SERVE = ("serve", "--no-browser", "--no-sync", "--no-update-check", "--port", "0")


class Server(NamedTuple):
    """A running server."""

    address: str
    pid: int


def link_home(home: Path, folder: Path) -> Path:
    """Make a folder with links to everything in a home, so that nothing is written into the home."""
    folder.mkdir(parents=True)
    for entry in home.iterdir():
        (folder / entry.name).symlink_to(entry.resolve())
    return folder


def environment(home: Path, data: Path) -> dict[str, str]:
    """The environment in which agentsview reads a home and writes to a data folder."""
    return {
        **os.environ,
        "HOME": str(home),
        "AGENTSVIEW_DATA_DIR": str(data),
        "AGENTSVIEW_NO_DAEMON": "1",
        "AGENTSVIEW_TELEMETRY_ENABLED": "0",
    }


@contextmanager
def serving(program: str, env: dict[str, str]) -> Iterator[Server]:
    """Serve what was synced on the loopback interface."""
    with subprocess.Popen([program, *_SERVE], env=env, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = next(found[0] for line in server.stdout if (found := re.search(r"http://\S+", line)))
            yield Server(address, server.pid)
        finally:
            server.terminate()
