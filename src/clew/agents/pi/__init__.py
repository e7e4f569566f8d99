"""Pi: the sessions below ~/.pi/agent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from clew.agents.base import Agent, Claim, Header, SourceFile, file_stem, first_lines
from clew.agents.native_records import first_value
from clew.host import Host
from clew.io.compress import plain_name
from clew.io.paths import safe_relative
from clew.model.time import parse_time, spell_milliseconds

_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z_(.+)\.jsonl")
_HEADER = re.compile(rb'\{\s*"type"\s*:\s*"session"\s*,[^\n]*"(?:cwd|version)"\s*:')
_HEADER_SEARCH_RECORDS = 8
"""The header is the first line; blank or damaged lines may precede it."""
_SEPARATOR = re.compile(r"[/\\:]")


class Pi(Agent):
    """The agent `pi`."""

    id = "pi"
    title = "Pi"
    homepage = "https://github.com/earendil-works/pi"
    package = __name__
    is_shown_by_hugging_face = True
    newest_tested_version = "0.87.1"

    def roots(self, host: Host) -> Iterator[Path]:
        if sessions := host.env.get("PI_CODING_AGENT_SESSION_DIR"):
            yield host.expand(sessions)
        yield host.configured_folder("PI_CODING_AGENT_DIR", ".pi/agent") / "sessions"

    def claims(self, path: Path, head: bytes) -> Claim:
        name = plain_name(path.name)
        if not name.endswith(".jsonl"):
            return Claim.NO
        if any(map(_HEADER.match, first_lines(head, _HEADER_SEARCH_RECORDS))):
            return Claim.YES
        return Claim.MAYBE if not head.strip() and _NAME.fullmatch(name) else Claim.NO

    def session_id(self, source: SourceFile) -> str:
        return session_id(source.path)

    def target(self, header: Header) -> str:
        session = header.session
        folder = str(session.get("workspace_encoded") or "")
        if not folder.startswith("--"):
            folder = _project_folder(str(session["workspace"]))
        name = _own_name(header) or f"{_file_stamp(header)}_{session['id']}.jsonl"
        return f".pi/agent/sessions/{safe_relative(folder)}/{safe_relative(name)}"


def session_id(path: Path) -> str:
    """The id in the name of the file; else the one in its header, else the name itself."""
    named = _NAME.fullmatch(plain_name(path.name))
    if named:
        return named[1]
    return first_value(path, "id", kind="session", limit=_HEADER_SEARCH_RECORDS) or file_stem(path)


def _project_folder(workspace: str) -> str:
    """The name of the folder that holds the sessions of a workspace."""
    below_root = re.sub(r"^[/\\]|(?<=.)[/\\]$", "", workspace)
    return f"--{_SEPARATOR.sub('-', below_root)}--"


def _own_name(header: Header) -> str | None:
    """The name of the file that the session was read from, where it names this session."""
    name = plain_name(header.recorded_path.name)
    named = _NAME.fullmatch(name)
    return name if named and named[1] == header.session["id"] else None


def _file_stamp(header: Header) -> str:
    """The start time in the form used in file names."""
    started = parse_time(header.session.get("started_at")) or parse_time(header.export_timestamp)
    return spell_milliseconds(started).replace(":", "-").replace(".", "-")
