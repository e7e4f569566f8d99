"""Names of objects in a lake, and the version of this layout. Needs no Arrow, so that engines start quickly.

    table=<table>/month=<YYYY-MM or unknown>/<hash>.parquet
    table=batches/month=<...>/<first two characters of the origin>-<hash>.parquet
    _clew/schema=<version>

The hash is that of the object's bytes: an object is written once and never changes. Rows count when a `batches` object
names their batch; it is written after all others.

Layout version 1 had a folder `day=<YYYY-MM-DD>` per day in place of the month. Its objects are read as they are, and
`clew lake compact` replaces them by objects of a month. Version 3 added `sessions.has_subagent_records`, which is NULL
in rows of older objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b

from clew.errors import TargetRefused, UnknownReference

LAYOUT_VERSION = 3
"""Raise it too where the columns of a table change: a clew that knows only smaller versions refuses the lake."""
NO_MONTH = "unknown"
"""The month of rows without a time."""
VERSION_DIR = "_clew"
"""Engines skip folders whose names begin with an underscore."""
QUARANTINE = "_damaged/"
"""The folder that damaged objects are moved to."""
_OBJECT = re.compile(
    r"table=([a-z_]+)/(?:month=([0-9]{4}-[0-9]{2}|unknown)|day=([0-9]{4}-[0-9]{2})-[0-9]{2}|day=(unknown))"
    r"/(?:([0-9a-f]{2})-)?[0-9a-f]{32}\.parquet"
)


def object_name(table: str, month: str, content: bytes | memoryview, shard: str = "") -> str:
    """The name of an object with this content."""
    digest = blake2b(content, digest_size=16).hexdigest()
    return f"table={table}/month={month or NO_MONTH}/{shard}{'-' if shard else ''}{digest}.parquet"


def hash_matches(name: str, content: bytes) -> bool:
    """True if the content of an object is the one that its name was made from."""
    digest = name.rpartition("/")[2].removesuffix(".parquet").rpartition("-")[2]
    return blake2b(content, digest_size=16).hexdigest() == digest


def table_folder(table: str) -> str:
    """The folder with the objects of a table."""
    return f"table={table}/"


def table_of(name: str) -> str:
    """The table that an object belongs to."""
    return name.partition("/")[0].removeprefix("table=")


def month_of(name: str) -> str | None:
    """The month of an object's rows, or `NO_MONTH`; None for a name that is not that of an object."""
    found = _OBJECT.fullmatch(name)
    return found[2] or found[3] or found[4] if found else None


def is_by_day(name: str) -> bool:
    """True for an object of layout version 1."""
    return "/day=" in name


def shard_of(origin: str) -> str:
    """The part of `batches` that holds an origin: a writer reads only its own part."""
    return origin[:2]


def is_in_shard(name: str, shard: str) -> bool:
    """True for a `batches` object of this shard."""
    found = _OBJECT.fullmatch(name)
    return found is not None and found[5] == shard


def version_name() -> str:
    """The object that says that this version of the layout was written."""
    return f"{VERSION_DIR}/schema={LAYOUT_VERSION}"


def check_version(names: Iterable[str], display_url: str) -> None:
    """Raise TargetRefused if one of these names is the mark of a newer version."""
    versions = [int(found[1]) for name in names if (found := re.fullmatch(rf"{VERSION_DIR}/schema=([0-9]+)", name))]
    if max(versions, default=0) > LAYOUT_VERSION:
        raise TargetRefused(f"{display_url}: written by a newer clew (version {max(versions)}); update clew first")


def no_lake(display_url: str) -> UnknownReference:
    """The error for a place without a lake."""
    return UnknownReference(f"{display_url}: there is no lake; `clew lake write` creates one if it finds sessions")


def damaged(display_url: str, name: str) -> TargetRefused:
    """The error for an object whose content does not match its name."""
    return TargetRefused(f"{display_url}: {name} is damaged; `clew lake verify --fix` repairs the lake")
