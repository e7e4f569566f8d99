"""Syncs the catalog for the MCP server: in the background, started by calls of tools.

A call of a tool checks whether files of agents have changed, at most every two seconds. If some have, a background
process syncs the whole catalog: sessions, messages and text. The call waits for it a second, or eight while there is no
catalog yet. If the sync takes longer, the call is answered from the catalog as it is, with a note that something may be
missing; later calls wait for the same sync. Nothing is synced between calls.
"""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

from clew.catalog.change_detection import Hosts
from clew.catalog.database import open_reader
from clew.catalog.sync import is_up_to_date
from clew.catalog.sync_process import Outcome, SyncUpdate
from clew.errors import Busy

_LOG = logging.getLogger(__name__)
SYNC_WAIT_SECONDS = 1.0
"""How long a call waits for a sync before it is answered from the catalog as it is."""
FIRST_SYNC_WAIT_SECONDS = 8.0
"""How long a call waits for a sync while there is no catalog. After that, it is answered with an error."""
SECONDS_BETWEEN_CHECKS = 2.0
"""How long the files of agents are not checked again after a check."""


class Freshness:
    """Decides at each call of a tool whether to start a sync, and how long to wait for it."""

    def __init__(self, hosts: Hosts, folder: Path, *, is_on: bool = True) -> None:
        """`folder` is that of the catalog. With `is_on=False`, nothing is ever synced (--no-sync)."""
        self._hosts, self._folder, self._is_on = hosts, folder, is_on
        self._update = SyncUpdate(hosts, folder)
        self._sync_thread: threading.Thread | None = None
        """Waits for the process of the running sync; None while no sync runs."""
        self._last_outcome: Outcome = "fresh"
        self._next_check = 0.0

    def notes(self, *, waits: bool = True) -> list[str]:
        """Start a sync if files have changed, wait for it for a short time, and return warnings for the answer.

        The warnings say that something may be missing in the catalog; there are none if it is up to date. With
        `waits=False`, a sync is started but not waited for. Raises Busy if there is no catalog after the wait.
        """
        if not self._is_on:
            return ["the catalog was not updated (--no-sync): new sessions and messages may be missing"]
        if self._sync_thread is None and time.monotonic() >= self._next_check:
            if not is_up_to_date(self._hosts, self._folder):
                self._start()
            self._next_check = time.monotonic() + SECONDS_BETWEEN_CHECKS
        if self._sync_thread is not None:
            wait_seconds = SYNC_WAIT_SECONDS if self._has_catalog() else FIRST_SYNC_WAIT_SECONDS
            self._sync_thread.join(wait_seconds if waits else 0)
            if self._sync_thread.is_alive():
                return [self._describe_running_sync()]
            self._sync_thread = None
        if self._last_outcome == "failed":
            return ["the last update of the catalog failed: new sessions and messages may be missing"]
        if self._last_outcome == "busy":
            return ["another process updates the catalog: new messages may be missing"]
        return []

    def stop(self) -> None:
        """End the process of a running sync. It can be ended at any time: the next sync reads what is missing."""
        self._update.cancel()

    def _start(self) -> None:
        self._sync_thread = threading.Thread(target=self._sync, name="clew-sync", daemon=True)
        self._sync_thread.start()

    def _sync(self) -> None:
        try:
            self._last_outcome = self._update.run()
        except Exception:
            _LOG.exception("The update of the catalog failed.")
            self._last_outcome = "failed"

    def _has_catalog(self) -> bool:
        db = open_reader(self._folder)
        if db is not None:
            db.close()
        return db is not None

    def _describe_running_sync(self) -> str:
        """The warning that a sync still runs. Raises Busy if there is no catalog to answer from."""
        step = self._update.progress
        how_far = f" ({step.task}, {step.percent} %)" if step is not None else ""
        if not self._has_catalog():
            raise Busy(f"the catalog is being built for the first time{how_far}; ask again in a minute")
        return f"the catalog is being updated{how_far}: new sessions and messages may be missing"
