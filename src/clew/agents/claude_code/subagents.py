"""The sub-agents of a session: in its folder, next to it, or in its own file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from clew.agents.base import SourceFile
from clew.agents.claude_code.locate import agent_id, is_agent_file, is_transcript, stem
from clew.agents.folders import files_below
from clew.agents.native_records import first_value
from clew.analysis.facts import Facts
from clew.errors import SourceUnreadable
from clew.model.json import JSON


def find_subagents(source: SourceFile, facts: Facts, session: str) -> Iterator[dict[str, JSON]]:
    """Links to the sub-agents that a session started."""
    calls: dict[str, str] = facts.extra.get("calls", {})
    if not is_agent_file(source.path):
        for path in (*_files_in_own_folder(source.path), *_files_beside(source.path).get(session, ())):
            agent = agent_id(path)
            yield {"session_id": stem(path), "agent_id": agent, "tool_id": calls.get(agent)}
    for link in facts.subagents:
        yield {"session_id": None, "agent_id": None, "tool_id": link.tool_id, "root_uuid": link.root_uuid}


def _files_in_own_folder(path: Path) -> Iterator[Path]:
    folder = path.parent / stem(path) / "subagents"
    # Most sessions have none, and asking is cheaper than walking.
    found = files_below(folder, ("**/agent-*.jsonl",)) if folder.is_dir() else ()
    return (file for file in found if is_transcript(file))


def _files_beside(path: Path) -> dict[str, list[Path]]:
    """The transcripts of sub-agents that lie in the folder of a project, by the session they belong to."""
    try:
        return _read_files_beside(path.parent, path.parent.stat().st_mtime_ns)
    except OSError:
        return {}


@lru_cache(64)
def _read_files_beside(folder: Path, _changed: int) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for name in sorted(os.listdir(folder)):  # noqa: PTH208
        path = folder / name
        if is_agent_file(path) and is_transcript(path):
            # A file that cannot be read belongs to no session.
            with suppress(SourceUnreadable):
                parent = first_value(path, "sessionId")
                if parent is not None:
                    found.setdefault(parent, []).append(path)
    return found
