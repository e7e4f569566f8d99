"""The lines of a file with the sessions that wrote them, as a record of Agent Trace.

The record holds ids, models, line numbers and hashes, and no text. Lines whose origin no session proves are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from uuid import NAMESPACE_URL, uuid5

from clew.agents.encoding import provider_of
from clew.errors import SourceUnreadable, UsageError
from clew.file_history.blame import Line
from clew.io.codec import dumps
from clew.io.git import run_git
from clew.model.json import JSON

AGENT_TRACE_VERSION = "0.1.0"


class Revision(NamedTuple):
    """The Git repository of a file."""

    folder: Path
    commit: str


ModelOf = Callable[[str, int], str | None]
"""Gives the model of a message, by the id of its session and its index."""


def trace_record(
    path: Path, lines: Sequence[Line], model_of: ModelOf, *, timestamp: str, clew_version: str
) -> dict[str, JSON]:
    """The record of a file. Its id follows from its content, so that it is the same until that changes."""
    revision = find_revision(path)
    name = path.resolve().relative_to(revision.folder).as_posix() if revision is not None else path.name
    record: dict[str, JSON] = {
        "vcs": {"type": "git", "revision": revision.commit} if revision is not None else None,
        "tool": {"name": "clew", "version": clew_version},
        "files": [{"path": name, "conversations": _conversations(lines, model_of)}],
        "metadata": {"dev.clew": {"unknown_lines": sum(line.origin is None for line in lines)}},
    }
    identity = str(uuid5(NAMESPACE_URL, dumps(record).decode()))
    head = {"version": AGENT_TRACE_VERSION, "id": identity, "timestamp": timestamp}
    return {**head, **{key: value for key, value in record.items() if value is not None}}


def find_revision(path: Path) -> Revision | None:
    """The repository of a file and its current commit; None outside of one, or without Git."""
    try:
        printed = run_git(path.resolve().parent, "rev-parse", "--show-toplevel", "HEAD").decode()
    except (SourceUnreadable, UsageError, UnicodeDecodeError):
        return None
    folder, _, commit = printed.strip().rpartition("\n")
    found = Path(folder).resolve()
    return Revision(found, commit) if path.resolve().is_relative_to(found) else None


def _conversations(lines: Iterable[Line], model_of: ModelOf) -> list[JSON]:
    """The conversations in the order of their first lines, each with the ranges that it wrote."""
    found: dict[tuple[str, str, str | None], list[list[Line]]] = {}
    last: tuple[str, str, str | None] | None = None
    for line in lines:
        origin = line.origin
        key = (origin.agent, origin.session, model_of(origin.session, origin.message)) if origin is not None else None
        if key is not None and key == last:
            found[key][-1].append(line)
        elif key is not None:
            found.setdefault(key, []).append([line])
        last = key
    return [
        {
            "url": f"clew:{agent}:{session}",
            "contributor": {"type": "ai", **({"model_id": _model_id(model)} if model else {})},
            "ranges": [_range(part) for part in ranges],
        }
        for (agent, session, model), ranges in found.items()
    ]


def _model_id(model: str) -> str:
    """A model as models.dev names it: after its provider."""
    return model if "/" in model else f"{provider_of(model)}/{model}"


def _range(lines: Sequence[Line]) -> dict[str, JSON]:
    text = "\n".join(line.text.rstrip("\r\n") for line in lines)
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    return {"start_line": lines[0].number, "end_line": lines[-1].number, "content_hash": f"sha256:{digest}"}
