"""Archives the session that an agent names at its end.

What the agent sends is untrusted. It only selects among the sessions that clew finds itself: nothing is opened because
the input names it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from clew.agents.derived_ids import is_uuid
from clew.archive.capture import capture, files_of
from clew.archive.records import archive_folder
from clew.archive.writer import open_writer
from clew.errors import Busy
from clew.hooks.log import ARCHIVED, UNCHANGED, HookRun
from clew.host import Host
from clew.io.paths import can_be_path
from clew.sources.local import Found, in_homes

MAX_INPUT_BYTES = 64 << 10
ARCHIVE_LOCK_WAIT_SECONDS = 60.0


def archive_ended_session(agent: str | None, hook_input: bytes, host: Host) -> HookRun:
    """Archive the session that the input of a hook names. Every refusal and every error is an outcome."""
    if agent is None:
        return HookRun(None, "no-agent")
    try:
        path = _transcript_path(hook_input)
        if not isinstance(path, Path):
            return HookRun(agent, path)
        sessions = list(in_homes([host], [agent]))
        found = _find_session(sessions, path)
        if found is None:
            return HookRun(agent, "not-a-session")
        session = found.agent.session_id(found.source)
        outcome = _archive([found, *_subagent_sessions(sessions, found, session)], host)
        return HookRun(agent, outcome, session if is_uuid(session) else None)
    except Busy:
        return HookRun(agent, "busy")
    except Exception as error:
        # Its text may quote a file.
        return HookRun(agent, "failed", error=type(error).__name__)


def _transcript_path(hook_input: bytes) -> Path | str:
    """The file that the input names, or the outcome if there is none."""
    if not hook_input.strip():
        return "no-input"
    if len(hook_input) > MAX_INPUT_BYTES:
        return "too-large"
    try:
        values = json.loads(hook_input)
    except (ValueError, RecursionError):
        return "not-json"
    if not isinstance(values, dict):
        return "not-json"
    path = values.get("transcript_path")
    if path is None or path == "":
        return "no-transcript"
    return Path(path) if isinstance(path, str) and can_be_path(path) else "not-a-session"


def _find_session(sessions: list[Found], path: Path) -> Found | None:
    """The session with this file."""
    wanted = _real_path(path)
    for found in sessions:
        folder, names = found.source.path.parent, (found.source.path.name, *found.source.parts)
        if path.name in names and _real_path(folder / path.name) == wanted:
            return found
    return None


def _real_path(path: Path) -> str:
    """The path without links among its folders. The last part stays: clew takes no link for a session."""
    return os.path.join(os.path.realpath(path.parent), path.name)  # noqa: PTH118


def _subagent_sessions(sessions: list[Found], found: Found, session: str) -> Iterator[Found]:
    """The sessions of sub-agents: Claude Code and Gemini CLI keep them in a folder that is called like the session."""
    folder = found.source.path.parent / session
    return (other for other in sessions if folder in other.source.path.parents)


def _archive(sessions: list[Found], host: Host) -> str:
    files = [file for found in sessions for file in files_of(host, found.agent, found.source)]
    with open_writer(archive_folder(None), wait=ARCHIVE_LOCK_WAIT_SECONDS) as writer:
        outcome = capture(writer, files, host.now)
    if outcome.problems:
        return "unreadable"
    return ARCHIVED if outcome.new or outcome.grown or outcome.rewritten else UNCHANGED
