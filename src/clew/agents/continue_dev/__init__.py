"""Continue: the sessions below ~/.continue, of its command line and its editors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePath

from clew.agents.backups import read_inside
from clew.agents.base import Agent, Claim, Header, SourceFile, file_stem
from clew.analysis.facts import Facts
from clew.analysis.titles import short_title
from clew.host import Host
from clew.io.codec import NOT_JSON, loads
from clew.io.compress import plain_name
from clew.io.paths import safe_relative
from clew.model.json import JSON
from clew.model.time import canonical_time

INDEX = "sessions.json"
"""The list of all sessions, in their folder."""
_MAX_TIME_DIGITS = 17
"""A longer number is no time, and `int` refuses very long ones."""
_HEAD = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"sessionId"\s*:\s*"[^"]*"\s*,')
_HISTORY = re.compile(rb'"(?:history|workspaceDirectory)"\s*:')


class Continue(Agent):
    """The agent `continue`."""

    id = "continue"
    title = "Continue"
    homepage = "https://continue.dev"
    package = __name__
    has_message_times = False
    newest_tested_version = "1.5.47"
    session_files = ("**/*.json",)

    def roots(self, host: Host) -> Iterator[Path]:
        yield host.configured_folder("CONTINUE_GLOBAL_DIR", ".continue") / "sessions"

    def discover(self, root: Path) -> Iterator[SourceFile]:
        return (source for source in super().discover(root) if plain_name(source.path.name) != INDEX)

    def claims(self, path: Path, head: bytes) -> Claim:
        name = plain_name(path.name)
        if not name.endswith(".json") or name == INDEX:
            return Claim.NO
        return Claim.YES if _HEAD.match(head) and _HISTORY.search(head) else Claim.NO

    def beside(self, path: PurePath, content: bytes, known: Sequence[str]) -> Iterator[str]:
        # The list of sessions says when each began.
        index = str(path.with_name(INDEX))
        return (name for name in known if name == index)

    def document_keys(self, head: bytes, name: str) -> tuple[str, ...] | None:
        from clew.agents.continue_dev.records import HISTORY

        return HISTORY

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        """Messages have no times: a session ended when its file was written."""
        written, started = canonical_time(source.mtime) if source.mtime else None, facts.extra.get("started_at")
        times = {"started_at": started or written or None, "ended_at": written or started}
        return {**super().session(source, facts), **times}

    def session_title(self, source: SourceFile, facts: Facts) -> str | None:
        from clew.agents.continue_dev.records import UNTITLED

        named = facts.titles.get("title")
        return short_title(named if named and named != UNTITLED else facts.first_prompt)

    def target(self, header: Header) -> str:
        return f".continue/sessions/{safe_relative(str(header.session['id']))}.json"


def list_entry(path: Path) -> dict[str, JSON]:
    """The entry of a session in `sessions.json`; empty where there is none."""
    index = path.with_name(INDEX)
    try:
        stamp = index.stat().st_mtime_ns
    except OSError:
        return {}
    return _read_index(index, stamp).get(file_stem(path), {})


def created_at(path: Path) -> str | None:
    """When a session began, by its entry in `sessions.json`."""
    time = list_entry(path).get("dateCreated")
    # The client writes milliseconds since 1970 as text.
    if isinstance(time, str) and time.isdecimal() and len(time) <= _MAX_TIME_DIGITS:
        time = int(time)
    return canonical_time(time) or None


@lru_cache(16)
def _read_index(path: Path, _changed: int) -> Mapping[str, dict[str, JSON]]:
    """The entries of the list by session."""
    try:
        entries = loads(read_inside(path.parent, path.name) or b"[]")
    except NOT_JSON:
        return {}
    found = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return {str(entry.get("sessionId")): entry for entry in found}
