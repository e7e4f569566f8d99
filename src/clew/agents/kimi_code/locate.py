"""Where Kimi Code keeps its sessions, and whether a file belongs to one.

A session is a folder with `state.json` and one folder for each agent, which holds the journal of that agent. The
session of the main agent is `state.json` with the journal of `agents/main`; every other journal is a session of its
own, that of a sub-agent. A journal without a `state.json` above it is a session by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from clew.agents.backups import is_plain_file, read_inside
from clew.agents.base import Claim, SourceFile, source_at
from clew.agents.kimi_code.records import State
from clew.host import Host
from clew.io.codec import NOT_JSON, loads
from clew.io.compress import plain_name
from clew.io.paths import walk
from clew.io.typed_records import decode_value

AGENT = "kimi-code"
STATE, WIRE, AGENTS, MAIN = "state.json", "wire.jsonl", "agents", "main"
STATE_TYPE = "state"
"""The type that `state.json` has as a record."""
MAIN_WIRE = f"{AGENTS}/{MAIN}/{WIRE}"
FILE_HISTORY, BLOBS = "file-history", "blobs"
_JOURNAL = re.compile(
    rb'"type"\s*:\s*"(?:metadata"[^\n]*"created_at"'
    rb"|context\.append_|turn\.prompt|profile\.bind|config\.update|runtime\.set_binding)"
)
_STATE = re.compile(rb'"agents"\s*:\s*\{\s*"')
_MAX_STATE_BYTES = 16 << 20


def roots(host: Host) -> Iterator[Path]:
    """The folder of the sessions."""
    configured = host.env.get("KIMI_CODE_HOME")
    home = Path(configured).expanduser() if configured else host.home / ".kimi-code"
    yield home / "sessions"


def discover(root: Path) -> Iterator[SourceFile]:
    """Every journal below the root, that of a main agent as part of its session; follows no links."""
    for folder, names, files in walk(root):
        names.sort()
        for name in sorted(files):
            path = Path(folder, name)
            if plain_name(name) == WIRE and path.parent.parent.name == AGENTS and is_plain_file(path):
                yield source_file(path)


def source_file(path: Path) -> SourceFile:
    """The session that a journal or a `state.json` belongs to."""
    if path.name == WIRE and is_main(path) and is_plain_file(session_folder(path) / STATE):
        path = session_folder(path) / STATE
    source = source_at(AGENT, path)
    if path.name == STATE and is_plain_file(path.parent / MAIN_WIRE):
        return SourceFile(AGENT, path, (MAIN_WIRE,), (), source.size, source.mtime)
    return source


def is_main(journal: Path) -> bool:
    """True for the journal of a session's main agent."""
    return journal.parent.name == MAIN and journal.parent.parent.name == AGENTS


def session_folder(path: Path) -> Path:
    """The folder of the session that a file belongs to."""
    return path.parents[2] if path.parent.parent.name == AGENTS else path.parent


def agent_id(path: Path) -> str:
    """The agent that a file tells about: `main`, or the name that the client gave to a sub-agent."""
    return path.parent.name if path.parent.parent.name == AGENTS else MAIN


def session_id(path: Path) -> str:
    """The name of the session's folder; of a sub-agent with its own name before it, as that counts from 0."""
    name = plain_name(path.name)
    if name not in (STATE, WIRE):
        return name.removesuffix(".jsonl")
    return id_of_agent(agent_id(path), session_folder(path).name)


def id_of_agent(agent: str, session: str) -> str:
    """The id of the session of one of a session's agents."""
    return session if agent == MAIN else f"{agent}.{session}"


def project_folder(path: Path) -> str:
    """The name of the folder that the sessions of a project lie in."""
    return session_folder(path).parent.name


def agent_folder(path: Path) -> Path:
    """The folder of the agent that a file tells about."""
    return path.parent if path.name != STATE else path.parent / AGENTS / MAIN


def copies(path: Path) -> Iterator[Path]:
    """The folders with earlier contents of files, and with pictures."""
    for name in (FILE_HISTORY, BLOBS):
        yield agent_folder(path) / name


def read_state(path: Path) -> State:
    """The `state.json` of the session that a sub-agent's journal belongs to; empty where it cannot be read."""
    try:
        value = loads(read_inside(session_folder(path), STATE, _MAX_STATE_BYTES) or b"{}")
    except NOT_JSON:
        value = None
    return decode_value(value, State) if isinstance(value, dict) else State()


def claims(path: Path, head: bytes) -> Claim:
    """How sure it is that the file is the client's."""
    name = plain_name(path.name)
    if name == STATE:
        is_session = _STATE.search(head) is not None and (b'"homedir"' in head or (path.parent / MAIN_WIRE).exists())
        return Claim.YES if is_session else Claim.NO
    if not name.endswith(".jsonl"):
        return Claim.NO
    if _JOURNAL.search(head):
        return Claim.YES
    return Claim.MAYBE if not head.strip() and name == WIRE and path.parent.parent.name == AGENTS else Claim.NO
