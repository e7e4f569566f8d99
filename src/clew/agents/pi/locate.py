"""Where Pi keeps its sessions, how its folder names are made, and whether a file is a session."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from clew.agents.backups import is_link
from clew.agents.base import Claim, Header, SourceFile, source_at
from clew.host import Host
from clew.io.compress import open_source, plain_name
from clew.io.paths import safe_relative, walk
from clew.io.records import read_records
from clew.model.json import JSON
from clew.model.time import parse_time, spell_milliseconds

AGENT = "pi"
_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z_(.+)\.jsonl")
_HEADER = re.compile(rb'\{\s*"type"\s*:\s*"session"\s*,[^\n]*"(?:cwd|version)"\s*:')
_SEPARATOR = re.compile(r"[/\\:]")
_HEADER_SEARCH_RECORDS = 8
"""The header is the first line; blank or damaged lines may stand before it."""


def roots(host: Host) -> Iterator[Path]:
    """The configured folders, else the usual one."""
    if sessions := host.env.get("PI_CODING_AGENT_SESSION_DIR"):
        yield Path(sessions).expanduser()
    configured = host.env.get("PI_CODING_AGENT_DIR")
    home = Path(configured).expanduser() if configured else host.home / ".pi" / "agent"
    yield home / "sessions"


def discover(root: Path) -> Iterator[SourceFile]:
    """Every session below the root; follows no links."""
    for folder, names, files in walk(root):
        names.sort()
        for name in sorted(files):
            path = Path(folder) / name
            if plain_name(name).endswith(".jsonl") and not is_link(path):
                yield source_file(path)


def source_file(path: Path) -> SourceFile:
    """The session in a file."""
    return source_at(AGENT, path)


def claims(path: Path, head: bytes) -> Claim:
    """How sure it is that the file is a session."""
    name = plain_name(path.name)
    if not name.endswith(".jsonl"):
        return Claim.NO
    if any(_HEADER.match(line) for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n")[:_HEADER_SEARCH_RECORDS]):
        return Claim.YES
    return Claim.MAYBE if not head.strip() and _NAME.fullmatch(name) else Claim.NO


def session_id(path: Path) -> str:
    """The id in the name of the file; else the one in its header, else the name itself."""
    name = plain_name(path.name)
    named = _NAME.fullmatch(name)
    return named[1] if named else _id_in_header(path) or name.removesuffix(".jsonl")


def _id_in_header(path: Path) -> str | None:
    with open_source(path) as stream:
        for _, record in zip(range(_HEADER_SEARCH_RECORDS), read_records(stream), strict=False):
            if record.value and record.value.get("type") == "session" and isinstance(record.value.get("id"), str):
                return str(record.value["id"])
    return None


def project_folder(workspace: str) -> str:
    """The name of the folder that holds the sessions of a workspace."""
    below_root = re.sub(r"^[/\\]|(?<=.)[/\\]$", "", workspace)
    return f"--{_SEPARATOR.sub('-', below_root)}--"


def target(header: Header) -> str:
    """Where a session belongs below a home folder: one of Pi's own goes back to where it was."""
    session = header.session
    folder = str(session.get("workspace_encoded") or "")
    if not folder.startswith("--"):
        folder = project_folder(str(session["workspace"]))
    name = _own_name(session) or f"{_file_stamp(header)}_{session['id']}.jsonl"
    return f".pi/agent/sessions/{safe_relative(folder)}/{safe_relative(name)}"


def _own_name(session: Mapping[str, JSON]) -> str | None:
    """The name of the file that the session was read from, where it names this session."""
    name = plain_name(str((session.get("source") or {}).get("path", "")).replace("\\", "/").rpartition("/")[2])
    named = _NAME.fullmatch(name)
    return name if named and named[1] == session["id"] else None


def _file_stamp(header: Header) -> str:
    """The time at which the session began, as it stands in file names."""
    started = parse_time(header.session.get("started_at")) or parse_time(header.export_timestamp)
    return spell_milliseconds(started).replace(":", "-").replace(".", "-")
