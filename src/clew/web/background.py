"""Background work of the web server: keeps the catalog up to date, and scans sessions for secrets.

Both run in a process of their own, so that pages need not wait for them. Run as a module, this file is that process: it
reads a pickled call of one of its own functions from standard input and writes to standard output, pickled, how far it
is and then the result.
"""

from __future__ import annotations

import logging
import math
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from clew.catalog.change_detection import Hosts, find_hosts
from clew.catalog.sync_level import SyncLevel
from clew.errors import Busy, ClewError, SourceUnreadable
from clew.host import Host

_LOG = logging.getLogger(__name__)
DEBOUNCE_MS = 400
"""Changes within this time lead to one update."""
POLL_MS = 1_000
MAX_SECONDS_BETWEEN_UPDATES = 60.0
"""An update runs at least this often, because some file systems report no changes."""
BUSY_RETRY_SECONDS = 5.0
"""Time to the next try while another process updates the catalog."""
STOP_TIMEOUT_SECONDS = 5.0
SECONDS_BETWEEN_PROGRESS = 0.25

State = Literal["off", "working", "fresh", "failed"]
Outcome = Literal["fresh", "busy", "failed"]
"""How an update ended. "busy": another process updates the catalog."""


class Progress(NamedTuple):
    """How far a running update is."""

    task: str
    percent: int


class Update(Protocol):
    """One way to bring the catalog up to date."""

    progress: Progress | None
    """How far a running update is, if that is known."""

    def run(self) -> Outcome:
        """Bring the catalog up to date."""

    def cancel(self) -> None:
        """End a run early, from another thread."""


class CatalogUpdater:
    """Updates the catalog in a thread: now, whenever files below the watched folders change, and every minute.

    The folders are found again after each update. `settings` are files that may be absent: changes of them count too.
    """

    def __init__(
        self,
        update: Update | None = None,
        find_folders: Callable[[], Iterable[Path]] = tuple,
        settings: Sequence[Path] = (),
    ) -> None:
        self._update, self._find_folders, self._settings = update, find_folders, settings
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.state: State = "off"
        self.has_finished = False
        """True after the first update. Before it, the catalog may hold a part of the sessions only."""

    @property
    def progress(self) -> Progress | None:
        """How far a running update is, if that is known."""
        return self._update.progress if self._update is not None else None

    def start(self) -> None:
        """Start the thread, if there is an update to run."""
        if self._update is not None:
            self.state = "working"
            self._thread = threading.Thread(target=self._run, args=(self._update,), name="clew-sync", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop the thread and a running update. An update may be ended at any time."""
        self._stop.set()
        if self._update is not None:
            self._update.cancel()
        if self._thread is not None:
            self._thread.join(STOP_TIMEOUT_SECONDS)

    def _run(self, update: Update) -> None:
        settings = self._settings_state()
        self._run_once(update)
        while not self._stop.is_set():
            folders = self._folders()
            # An update comes at once: files may have changed before they were watched.
            next_update = -math.inf
            for has_changes in self._watch(folders):
                if self._stop.is_set():
                    return
                has_changes |= settings != (settings := self._settings_state())
                if has_changes or time.monotonic() >= next_update:
                    is_done = self._run_once(update)
                    next_update = time.monotonic() + (MAX_SECONDS_BETWEEN_UPDATES if is_done else BUSY_RETRY_SECONDS)
                    if self._folders() != folders:
                        break

    def _run_once(self, update: Update) -> bool:
        """Run the update; False if another process is updating the catalog, so that it has to be run again."""
        previous, self.state = self.state, "working"
        try:
            outcome = update.run()
        except Exception:
            _LOG.exception("The update of the catalog failed.")
            outcome = "failed"
        if outcome == "busy":
            self.state = previous
            return False
        self.state = outcome
        self.has_finished = True
        return True

    def _folders(self) -> list[Path]:
        return [folder for folder in self._find_folders() if folder.is_dir()]

    def _settings_state(self) -> list[tuple[int, int] | None]:
        """Modification time and size of each file of settings."""
        return [_file_state(path) for path in self._settings]

    def _watch(self, folders: list[Path]) -> Iterator[bool]:
        """Every second, or earlier when files changed, whether they did. Changes between two steps are not lost."""
        if not folders:
            while not self._stop.wait(POLL_MS / 1000):
                yield False
            return
        from watchfiles import watch

        for changes in watch(
            *folders,
            stop_event=self._stop,
            debounce=DEBOUNCE_MS,
            rust_timeout=POLL_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
            ignore_permission_denied=True,
        ):
            yield bool(changes)


def _file_state(path: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        stat = path.stat()
        return stat.st_mtime_ns, stat.st_size
    return None


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
            hosts = _picklable(find_hosts(self._hosts))
        except ClewError:
            return "failed"
        self._process = start_process(sync_catalog, hosts, self._folder, self._levels)
        outcome: Outcome | None = read_result(self._process, self._set_progress)
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


class MirrorUpdate:
    """Copies new rows of a server into the local catalog."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url, self._folder = url, folder
        self.progress: Progress | None = None

    def run(self) -> Outcome:
        """Copy once. After a failure, pages show the rows that were copied before."""
        from clew.warehouse.postgres.mirror import mirror

        try:
            mirror(self._url, self._folder)
        except Busy:
            return "busy"
        except ClewError:
            return "failed"
        return "fresh"

    def cancel(self) -> None:
        """Let it finish: a copy is one transaction, and the thread is a daemon."""


def empty_home(folder: Path) -> Host:
    """A home without sessions, for pages whose rows all come from a server."""
    return Host.at(folder / "no-home")


class SecretScan:
    """One scan of all sessions for secrets, in a process of its own."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self.findings: list[dict[str, Any]] | None = None
        self.has_failed = False

    @property
    def is_running(self) -> bool:
        """True while the process runs."""
        return self._process is not None

    def start(self, *, plain: bool, rules: Path | None, again: bool) -> None:
        """Start the scan, unless it is running, or has finished and is not wanted again."""
        with self._lock:
            if self._process is not None or (self.findings is not None and not again):
                return
            self.has_failed = False
            self._process = start_process(find_secrets_in_homes, _picklable(find_hosts(self._hosts)), plain, rules)
            threading.Thread(target=self._wait, args=(self._process,), daemon=True).start()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        findings = read_result(process)
        if findings is None:
            self.has_failed = True
        else:
            self.findings = findings
        self._process = None

    def stop(self) -> None:
        """End a running scan."""
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


def find_secrets_in_homes(hosts: Sequence[Host], plain: bool, rules: Path | None) -> list[dict[str, Any]]:
    """Scan all sessions. Sessions that cannot be read are left out."""
    from clew.agents.secret_scan import find_secrets
    from clew.library import Library
    from clew.redact.redactor import Redactor
    from clew.redact.settings import load_settings

    settings = load_settings("secrets", plain=plain, rules=rules, without_key=lambda _error: None)
    findings: list[dict[str, Any]] = []
    for session in Library(*hosts).sources():
        with suppress(SourceUnreadable):
            redactor = Redactor(settings)
            found = list(find_secrets(session.agent, session.source, redactor))
            # The id of a session may itself be a secret, and findings never show one.
            place = {"agent": session.agent.id, "session": redactor.text(session.id)}
            findings += [{**place, **finding.without_value()} for finding in found]
        session.forget()
    return findings


def start_process(function: Callable[..., object], *arguments: object) -> subprocess.Popen[bytes]:
    """Call a function of this module in a new Python process."""
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


def _picklable(hosts: Sequence[Host]) -> list[Host]:
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
