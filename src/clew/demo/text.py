"""Times and JSON as agents write them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime


def timestamp(time: datetime) -> str:
    """A time in UTC with milliseconds: 2026-11-15T11:57:30.250Z."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def json_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def json_lines(records: Iterable[object]) -> bytes:
    return "".join(f"{json_text(record)}\n" for record in records).encode()
