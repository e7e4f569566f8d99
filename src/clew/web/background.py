"""Background work of the web server: keeps the catalog up to date, and scans sessions for secrets.

Both run in a process of their own, so that pages need not wait for them.
"""

from __future__ import annotations

import logging
import math
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from clew.catalog.change_detection import Hosts, find_hosts
from clew.catalog.sync_process import Outcome, Progress, picklable, read_result, start_process
from clew.errors import Busy, ClewError, SourceUnreadable, UsageError
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

State = Literal["off", "working", "fresh", "failed"]


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

    The folders are found again after each update. Changes of `watched_files`, which may be absent, count too.
    """

    def __init__(
        self,
        update: Update | None = None,
        find_folders: Callable[[], Iterable[Path]] = tuple,
        watched_files: Sequence[Path] = (),
    ) -> None:
        self._update, self._find_folders, self._watched_files = update, find_folders, watched_files
        self._stop, self._requested = threading.Event(), threading.Event()
        self._serves_request = False
        """True while an update runs that was requested before it began."""
        self._thread: threading.Thread | None = None
        self.state: State = "off"
        self.succeeded_at: datetime | None = None
        """When the last update that did not fail ended."""
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

    def request(self) -> None:
        """Run an update within a second, and after one that is running. Raises UsageError if this app runs none."""
        if self._thread is None:
            raise UsageError("the catalog is not updated while this app runs; `clew sync` updates it")
        self._requested.set()

    @property
    def is_requested(self) -> bool:
        """True from a request until its update has ended."""
        return self._serves_request or self._requested.is_set()

    def stop(self) -> None:
        """Stop the thread and a running update. An update may be ended at any time."""
        self._stop.set()
        if self._update is not None:
            self._update.cancel()
        if self._thread is not None:
            self._thread.join(STOP_TIMEOUT_SECONDS)

    def _run(self, update: Update) -> None:
        watched = self._watched_state()
        self._run_once(update)
        while not self._stop.is_set():
            folders = self._folders()
            # An update comes at once: files may have changed before they were watched.
            next_update = -math.inf
            for has_changes in self._watch(folders):
                if self._stop.is_set():
                    return
                has_changes |= watched != (watched := self._watched_state())
                if has_changes or self.is_requested or time.monotonic() >= next_update:
                    is_done = self._run_once(update)
                    next_update = time.monotonic() + (MAX_SECONDS_BETWEEN_UPDATES if is_done else BUSY_RETRY_SECONDS)
                    if self._folders() != folders:
                        break

    def _run_once(self, update: Update) -> bool:
        """Run the update; False if another process is updating the catalog, so that it has to be run again."""
        previous, self.state = self.state, "working"
        self._serves_request = self.is_requested
        self._requested.clear()
        try:
            outcome = update.run()
        except Exception:
            _LOG.exception("The update of the catalog failed.")
            outcome = "failed"
        if outcome == "busy":
            self.state = previous
            if self._serves_request:
                self._requested.set()
        else:
            self.state = outcome
            self.has_finished = True
            if outcome == "fresh":
                self.succeeded_at = datetime.now(UTC)
        self._serves_request = False
        return outcome != "busy"

    def _folders(self) -> list[Path]:
        return [folder for folder in self._find_folders() if folder.is_dir()]

    def _watched_state(self) -> list[tuple[int, int] | None]:
        """Modification time and size of each watched file."""
        return [_file_state(path) for path in self._watched_files]

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
            self._process = start_process(find_secrets_in_homes, picklable(find_hosts(self._hosts)), plain, rules)
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


def find_secrets_in_homes(hosts: Sequence[Host], plain: bool, rules: Path | None) -> list[dict[str, Any]]:
    """Scan all sessions. Sessions that cannot be read are left out."""
    from clew.agents.secret_scan import find_secrets
    from clew.analysis.session import title_of
    from clew.library import Library
    from clew.redact.redactor import Redactor
    from clew.redact.settings import load_settings

    settings = load_settings("secrets", plain=plain, rules=rules, without_key=lambda _error: None)
    findings: list[dict[str, Any]] = []
    for session in Library(*hosts).sources():
        with suppress(SourceUnreadable):
            redactor = Redactor(settings)
            found = list(find_secrets(session.agent, session.source, redactor))
            # The id and the title of a session may hold a secret, and findings never show one.
            title = redactor.text(title_of(session.session_object, session.facts) or "")
            place = {"agent": session.agent.id, "session": redactor.text(session.id), "title": title}
            findings += [{**place, **finding.without_value(), "block": finding.block} for finding in found]
        session.forget()
    return findings
