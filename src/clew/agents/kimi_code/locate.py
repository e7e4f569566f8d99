"""Which files belong to a session of Kimi Code.

A session is a folder with `state.json` and one folder for each agent, which holds the journal of that agent. The
session of the main agent is `state.json` with the journal of `agents/main`; every other journal is a session of its
own, that of a sub-agent. A journal without a `state.json` above it is a session by itself.
"""

from __future__ import annotations

from pathlib import Path

from clew.agents.backups import read_inside
from clew.agents.kimi_code.records import State
from clew.io.codec import NOT_JSON, loads
from clew.io.compress import plain_name
from clew.io.typed_records import decode_value

AGENT = "kimi-code"
STATE, WIRE, AGENTS, MAIN = "state.json", "wire.jsonl", "agents", "main"
STATE_TYPE = "state"
"""The type that `state.json` has as a record."""
MAIN_WIRE = f"{AGENTS}/{MAIN}/{WIRE}"
FILE_HISTORY, BLOBS = "file-history", "blobs"
_MAX_STATE_BYTES = 16 << 20


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


def agent_folder(path: Path) -> Path:
    """The folder of the agent that a file tells about."""
    return path.parent if path.name != STATE else path.parent / AGENTS / MAIN


def read_state(path: Path) -> State:
    """The `state.json` of the session that a sub-agent's journal belongs to; empty where it cannot be read."""
    try:
        value = loads(read_inside(session_folder(path), STATE, _MAX_STATE_BYTES) or b"{}")
    except NOT_JSON:
        value = None
    return decode_value(value, State) if isinstance(value, dict) else State()
