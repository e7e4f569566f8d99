"""A sync in a process of its own, so that the process that wants it can go on.

Run as a module, this file is such a process: it reads a pickled call of a function from standard input and writes to
standard output, pickled, how far it is and then the result.
"""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from clew.catalog.change_detection import Hosts, find_hosts
from clew.catalog.sync_level import SyncLevel
from clew.errors import Busy, ClewError
from clew.host import Host

SECONDS_BETWEEN_PROGRESS = 0.25

Outcome = Literal["fresh", "busy", "failed"]
"""How an update ended. "busy": another process updates the catalog."""


class Progress(NamedTuple):
    """How far a running update is."""

    task: str
    percent: int


class SyncUpdate:
    """Syncs the catalog with the agents' files, in a process of its own."""

    def __init__(self, hosts: Hosts, folder: Path) -> None:
        self._hosts, self._folder = hosts, folder
        self._process: subprocess.Popen[bytes] | None = None
        self.progress: Progress | None = None
        self._levels = [SyncLevel.SESSIONS, SyncLevel.TEXT]
        """The first sync reads sessions before their messages, so that pages can list them soon."""

    def run(self) -> Outcome:
        """Sync once, with the hosts that there are now."""
        try:
            hosts = picklable(find_hosts(self._hosts))
        except ClewError:
            return "failed"
        try:
            self._process = start_process(sync_catalog, hosts, self._folder, self._levels)
            outcome: Outcome | None = read_result(self._process, self._set_progress)
        finally:
            self._process = self.progress = None
        if outcome == "fresh":
            self._levels = [SyncLevel.TEXT]
        return outcome or "failed"

    def _set_progress(self, progress: Progress) -> None:
        self.progress = progress

    def cancel(self) -> None:
        """End the process."""
        process = self._process
        if process is not None:
            process.terminate()


def sync_catalog(hosts: Sequence[Host], folder: Path, levels: Sequence[SyncLevel]) -> Outcome:
    """Sync the catalog as far as each level."""
    from clew.catalog.sync import sync

    try:
        for level in levels:
            sync(hosts, folder, level, on_progress=_progress_sender(level))
    except Busy:
        return "busy"
    return "fresh"


def _progress_sender(level: SyncLevel) -> Callable[[str, int, int], None]:
    """A function that reports the progress of a sync of this level to the parent process, not too often."""
    tasks = {"sessions": "sessions" if level == SyncLevel.SESSIONS else "messages", "text": "text for the search"}
    sent_at = -math.inf

    def send(stage: str, done: int, total: int) -> None:
        nonlocal sent_at
        now = time.monotonic()
        if total and now - sent_at >= SECONDS_BETWEEN_PROGRESS:
            sent_at = now
            _send(Progress(tasks[stage], min(100, 100 * done // total)))

    return send


def start_process(function: Callable[..., object], *arguments: object) -> subprocess.Popen[bytes]:
    """Call a function of any module of clew in a new Python process."""
    # -P: the current folder may be a repository with modules of anyone's making.
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as stdin:
        pickle.dump((function, arguments), stdin)
    return process


def read_result(process: subprocess.Popen[bytes], on_progress: Callable[[Progress], None] = lambda _: None) -> Any:
    """Wait for the process and return the result of its function; None if that failed."""
    assert process.stdout is not None
    result = None
    with process.stdout as stdout, suppress(EOFError, pickle.UnpicklingError):
        while True:
            message = pickle.load(stdout)
            if isinstance(message, Progress):
                on_progress(message)
            else:
                result = message
    return result if process.wait() == 0 else None


def picklable(hosts: Sequence[Host]) -> list[Host]:
    """The hosts with a copy of their environment: neither os.environ nor a mapping proxy can be pickled."""
    return [Host(host.home, dict(host.env), kind=host.kind, name=host.name, base=host.base) for host in hosts]


def _run_process() -> None:
    """Run the call that the parent process wrote."""
    function, arguments = pickle.load(sys.stdin.buffer)
    _send(function(*arguments))


def _send(message: object) -> None:
    """Write a message to the parent process."""
    pickle.dump(message, sys.stdout.buffer)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    _run_process()
