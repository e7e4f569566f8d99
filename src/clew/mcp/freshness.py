"""Keeps the catalog up to date for answers, without making them wait for long."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

from clew.catalog.change_detection import Hosts
from clew.catalog.database import open_reader
from clew.catalog.sync import is_up_to_date
from clew.catalog.sync_process import SyncUpdate
from clew.errors import Busy

_LOG = logging.getLogger(__name__)
SYNC_WAIT_SECONDS = 1.0
"""How long an answer waits for a sync before it uses the catalog as it is."""
FIRST_SYNC_WAIT_SECONDS = 8.0
"""The same where there is no catalog yet."""
SECONDS_BETWEEN_CHECKS = 2.0


class Freshness:
    """Before an answer, detects changed files by their state; where there are some, a process of its own reads them."""

    def __init__(self, hosts: Hosts, folder: Path, *, is_on: bool = True) -> None:
        self._hosts, self._folder, self._is_on = hosts, folder, is_on
        self._update = SyncUpdate(hosts, folder)
        self._running: threading.Thread | None = None
        self._outcome = "fresh"
        self._next_check = 0.0

    def notes(self, *, waits: bool = True) -> list[str]:
        """Bring the catalog up to date as far as the time allows; says where an answer may lack something.

        Raises Busy while there is no catalog. With `waits=False` a sync is started, but not waited for.
        """
        if not self._is_on:
            return ["the catalog was not updated (--no-sync): new sessions and messages may be missing"]
        if self._running is None and time.monotonic() >= self._next_check:
            if not is_up_to_date(self._hosts, self._folder):
                self._start()
            self._next_check = time.monotonic() + SECONDS_BETWEEN_CHECKS
        if self._running is not None:
            longest = SYNC_WAIT_SECONDS if self._has_catalog() else FIRST_SYNC_WAIT_SECONDS
            self._running.join(longest if waits else 0)
            if self._running.is_alive():
                return [self._describe_running()]
            self._running = None
        if self._outcome == "failed":
            return ["the last update of the catalog failed: new sessions and messages may be missing"]
        return ["another process updates the catalog: new messages may be missing"] if self._outcome == "busy" else []

    def stop(self) -> None:
        """End a running sync; it can be ended at any time."""
        self._update.cancel()

    def _start(self) -> None:
        self._running = threading.Thread(target=self._run, name="clew-sync", daemon=True)
        self._running.start()

    def _run(self) -> None:
        try:
            self._outcome = self._update.run()
        except Exception:
            _LOG.exception("The update of the catalog failed.")
            self._outcome = "failed"

    def _has_catalog(self) -> bool:
        db = open_reader(self._folder)
        if db is not None:
            db.close()
        return db is not None

    def _describe_running(self) -> str:
        step = self._update.progress
        how_far = f" ({step.task}, {step.percent} %)" if step is not None else ""
        if not self._has_catalog():
            raise Busy(f"the catalog is being built for the first time{how_far}; ask again in a minute")
        return f"the catalog is being updated{how_far}: new sessions and messages may be missing"
