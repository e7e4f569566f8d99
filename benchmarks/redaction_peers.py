"""Scans texts with other tools, in their environment: reads JSON lines from stdin, writes one JSON object of spans.

detect-secrets scans each text as a file, with its default settings; credsweeper with its rules and filters, without the
model that judges candidates afterwards.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Scan = Callable[[str], list[tuple[int, int]]]


def detect_secrets() -> Scan:
    """The scanner of detect-secrets."""
    from detect_secrets import SecretsCollection
    from detect_secrets.settings import default_settings

    path = Path(tempfile.mkdtemp()) / "text.txt"

    def scan(text: str) -> list[tuple[int, int]]:
        path.write_text(text, encoding="utf-8", newline="")
        collection = SecretsCollection()
        with default_settings():
            collection.scan_file(str(path))
        starts = _line_starts(text)
        return [
            span
            for _, secret in collection
            for span in _value_spans(text, starts, secret.line_number, secret.secret_value)
        ]

    return scan


def credsweeper() -> Scan:
    """The scanner of credsweeper."""
    from credsweeper import CredSweeper
    from credsweeper.file_handler.string_content_provider import StringContentProvider

    sweeper = CredSweeper()

    def scan(text: str) -> list[tuple[int, int]]:
        starts = _line_starts(text)
        found = []
        for candidate in sweeper.file_scan(StringContentProvider(text.split("\n"))):
            for line in candidate.line_data_list:
                begin = starts[min(line.line_num, len(starts)) - 1]
                found.append((begin + line.value_start, begin + line.value_end))
        return found

    return scan


def _line_starts(text: str) -> list[int]:
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    return starts


def _value_spans(text: str, starts: list[int], number: int, value: str | None) -> list[tuple[int, int]]:
    begin = starts[min(number, len(starts)) - 1]
    place = text.find(value, begin) if value else -1
    return [(place, place + len(value))] if value and place >= 0 else []


def main() -> None:
    """Scan all texts with each tool that is installed."""
    texts = [json.loads(line) for line in sys.stdin]
    results: dict[str, Any] = {}
    for name, load in (("detect-secrets", detect_secrets), ("credsweeper", credsweeper)):
        try:
            scan = load()
        except ImportError as error:
            results[name] = {"missing": str(error)}
            continue
        begin = time.process_time()
        spans = [scan(text) for text in texts]
        results[name] = {"spans": spans, "cpu": time.process_time() - begin}
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
