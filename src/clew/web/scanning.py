"""The look for secrets through all sessions."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import Any

from clew.web.masking import Manner, manner


class Scan:
    """One look through all sessions, by a process of its own: pages go on meanwhile."""

    def __init__(self, options: list[str]) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._running: subprocess.Popen[bytes] | None = None
        self.findings: list[dict[str, Any]] | None = None
        self.has_failed = False

    @property
    def is_running(self) -> bool:
        """True while it looks."""
        return self._running is not None

    def start(self, again: bool) -> None:
        """Look, unless that was done or is being done."""
        with self._lock:
            if self._running is not None or (self.findings is not None and not again):
                return
            self.has_failed = False
            command = [sys.executable, "-c", "from clew.cli.start import run; run()", *self._options]
            self._running = subprocess.Popen(
                [*command, "redact", "scan", "--json", *_options_of(manner())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            threading.Thread(target=self._await, args=(self._running,), daemon=True).start()

    def _await(self, running: subprocess.Popen[bytes]) -> None:
        found, _ = running.communicate()
        try:
            self.findings = json.loads(found)["findings"]
        except (ValueError, KeyError, TypeError):
            self.has_failed = True
        self._running = None

    def stop(self) -> None:
        """End a look that goes on."""
        running = self._running
        if running is not None:
            running.terminate()


def _options_of(manner: Manner) -> list[str]:
    rules = ["--rules", str(manner.rules)] if manner.rules is not None else []
    return [*rules, "--redact-plain"] if manner.plain else rules
