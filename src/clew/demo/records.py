"""Records of agents: timestamps and JSON as agents write them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

Record = dict[str, object]


def timestamp(time: datetime) -> str:
    """A time in UTC with milliseconds: 2026-11-15T11:57:30.250Z."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def milliseconds(time: datetime) -> int:
    """A time in milliseconds since 1970."""
    return int(time.timestamp() * 1000)


def json_text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def json_lines(records: Iterable[object]) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def indented_json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2)
