"""Where Continue keeps its sessions, and its list of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from clew.agents.backups import is_link, read_inside
from clew.agents.base import Claim, Header, SourceFile, source_at
from clew.host import Host
from clew.io.codec import NOT_JSON, loads
from clew.io.compress import plain_name
from clew.io.paths import safe_relative, walk
from clew.model.json import JSON
from clew.model.time import canonical_time

AGENT = "continue"
INDEX = "sessions.json"
"""The list of all sessions, in their folder."""
_HEAD = re.compile(rb'\s*\{\s*"sessionId"\s*:\s*"[^"]*"\s*,')
_HISTORY = re.compile(rb'"(?:history|workspaceDirectory)"\s*:')


def roots(host: Host) -> Iterator[Path]:
    """The configured folder, else the usual one."""
    configured = host.env.get("CONTINUE_GLOBAL_DIR")
    yield (Path(configured).expanduser() if configured else host.home / ".continue") / "sessions"


def discover(root: Path) -> Iterator[SourceFile]:
    """Every session below the root; follows no links."""
    for folder, names, files in walk(root):
        names.sort()
        for name in sorted(files):
            path = Path(folder) / name
            if plain_name(name).endswith(".json") and plain_name(name) != INDEX and not is_link(path):
                yield source_file(path)


def source_file(path: Path) -> SourceFile:
    """The session in a file."""
    return source_at(AGENT, path)


def claims(path: Path, head: bytes) -> Claim:
    """How sure it is that the file is a session."""
    name = plain_name(path.name)
    if not name.endswith(".json") or name == INDEX:
        return Claim.NO
    head = head.removeprefix(b"\xef\xbb\xbf")
    return Claim.YES if _HEAD.match(head) and _HISTORY.search(head) else Claim.NO


def session_id(path: Path) -> str:
    """The name of the file: the client finds a session by it."""
    return plain_name(path.name).removesuffix(".json")


def target(header: Header) -> str:
    """Where a session belongs below a home folder."""
    return f".continue/sessions/{safe_relative(str(header.session['id']))}.json"


def created_at(path: Path) -> str | None:
    """When a session began, by the list beside it."""
    index = path.with_name(INDEX)
    try:
        stamp = index.stat().st_mtime_ns
    except OSError:
        return None
    time = canonical_time(_milliseconds(_read_index(index, stamp).get(session_id(path))))
    return time or None


@lru_cache(16)
def _read_index(path: Path, _changed: int) -> Mapping[str, JSON]:
    """The times of creation by session."""
    try:
        entries = loads(read_inside(path.parent, path.name) or b"[]")
    except NOT_JSON:
        return {}
    found = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return {str(entry.get("sessionId")): entry.get("dateCreated") for entry in found}


def _milliseconds(value: JSON) -> JSON:
    """A time in milliseconds since 1970, which the client writes as text."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value
