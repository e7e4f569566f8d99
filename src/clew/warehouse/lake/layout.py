"""What objects of a lake are called.

    table=<table>/day=<YYYY-MM-DD or unknown>/<hash>.parquet
    table=batches/day=<...>/<two letters of the origin>-<hash>.parquet
    _clew/schema=<version>

A name follows from the content, so an object is written once and never changes. Rows count when a `batches` object
names their batch; it is written after all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b

from clew.errors import TargetRefused, UnknownReference
from clew.warehouse.columns import SCHEMA_VERSION, TABLES

UNKNOWN = "unknown"
"""The day of rows without a time."""
MARKS = "_clew"
"""Where the versions of tables that were written stand; engines pass over names that begin like this."""
DATA = tuple(name for name in TABLES if name != "batches")
"""The tables of rows; those count when `batches` says so."""
_OBJECT = re.compile(r"table=([a-z_]+)/day=([0-9-]{10}|unknown)/(?:([0-9a-f]{2})-)?[0-9a-f]{32}\.parquet")


def object_name(table: str, day: str, content: bytes | memoryview, shard: str = "") -> str:
    """The name of an object with this content."""
    mark = blake2b(content, digest_size=16).hexdigest()
    return f"table={table}/day={day or UNKNOWN}/{shard}{'-' if shard else ''}{mark}.parquet"


def is_sound(name: str, content: bytes) -> bool:
    """True where an object's content is what its name says."""
    mark = name.rpartition("/")[2].removesuffix(".parquet").rpartition("-")[2]
    return blake2b(content, digest_size=16).hexdigest() == mark


def folder_of(table: str) -> str:
    """Where the objects of a table stand."""
    return f"table={table}/"


def day_of(name: str) -> str | None:
    """The day that an object is for; None for what is no object of a lake."""
    found = _OBJECT.fullmatch(name)
    return found[2] if found else None


def shard_of(origin: str) -> str:
    """Which of the objects with batches an origin's stand in: whoever writes reads a small part of all."""
    return origin[:2]


def is_in(name: str, shard: str) -> bool:
    """True for an object with batches of these origins."""
    found = _OBJECT.fullmatch(name)
    return found is not None and found[3] == shard


def mark_name() -> str:
    """What says that tables of this version were written."""
    return f"{MARKS}/schema={SCHEMA_VERSION}"


def check_marks(names: Iterable[str], shown: str) -> None:
    """Raise TargetRefused where somebody wrote tables of a newer version."""
    versions = [int(found[1]) for name in names if (found := re.fullmatch(rf"{MARKS}/schema=([0-9]+)", name))]
    if max(versions, default=0) > SCHEMA_VERSION:
        raise TargetRefused(f"{shown}: written by a newer clew (tables of version {max(versions)}); update clew first")


def no_lake(shown: str) -> UnknownReference:
    """What to raise where nobody has written anything."""
    return UnknownReference(f"{shown}: there is no lake; `clew lake write` makes one where it finds sessions")
