"""The lines of a file with the sessions that wrote them, as a record of Agent Trace.

The record holds ids, models, line numbers and hashes, and no text. Lines whose origin no session proves are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from uuid import NAMESPACE_URL, uuid5

from clew.agents.encoding import provider_of
from clew.errors import SourceUnreadable, UsageError
from clew.file_history.blame import Line
from clew.file_history.diffs import lines_of, without_line_end
from clew.io.codec import dumps
from clew.io.git import MAX_FILES_BYTES, open_repository
from clew.model.json import JSON

AGENT_TRACE_VERSION = "0.1.0"
MIN_HASHED_LINES = 3
"""Where text is masked, a shorter range has no hash: with it, a reader could test guesses of the text."""
ModelOf = Callable[[str, int], str | None]
"""Gives the model of a message, by the id of its session and its index."""


class CommittedFile(NamedTuple):
    """A file in a Git repository."""

    path: str
    """Relative to the folder of the repository."""
    commit: str
    lines: list[str] | None
    """The lines of the file in this commit, the current one; None if it is not in it."""


def trace_record(
    path: Path,
    blamed: Sequence[Line],
    lines: Sequence[Line],
    model_of: ModelOf,
    *,
    masked_lines: Collection[int] | None = None,
    timestamp: str,
    clew_version: str,
) -> dict[str, JSON]:
    """The record of some lines of a file; `blamed` are all of its lines.

    Its id follows from its content, so that it is the same until that changes. The commit is named only if the lines of
    the file are the same in it. `masked_lines` are the numbers of the lines that masking changes, None if nothing is
    masked: ranges with such a line, and short ones, have no hash.
    """
    committed = _find_committed_file(path)
    is_committed = committed is not None and committed.lines == [without_line_end(line.text) for line in blamed]
    name = committed.path if committed is not None else path.name
    record: dict[str, JSON] = {
        "vcs": {"type": "git", "revision": committed.commit} if committed is not None and is_committed else None,
        "tool": {"name": "clew", "version": clew_version},
        "files": [{"path": name, "conversations": _conversations(lines, model_of, masked_lines)}],
        "metadata": {"dev.clew": {"unknown_lines": sum(line.origin is None for line in lines)}},
    }
    identity = str(uuid5(NAMESPACE_URL, dumps(record).decode()))
    head = {"version": AGENT_TRACE_VERSION, "id": identity, "timestamp": timestamp}
    return {**head, **{key: value for key, value in record.items() if value is not None}}


def _find_committed_file(path: Path) -> CommittedFile | None:
    """A file as it is in the current commit of its repository; None outside of one, or without Git."""
    path = path.resolve()
    try:
        repository = open_repository(path.parent)
        commit = repository.full_hashes(["HEAD"]).get("HEAD")
        if commit is None or not repository.worktrees:
            return None
        name = path.relative_to(repository.worktrees[0].resolve()).as_posix()
        blob = f"{commit}:{name}"
        content = repository.files([blob], MAX_FILES_BYTES).get(blob)
    except (SourceUnreadable, UsageError, ValueError):
        return None
    # Git may convert line ends, so they differ between a commit and a folder.
    lines = None if content is None else [without_line_end(line) for line in lines_of(content)]
    return CommittedFile(name, commit, lines)


def _conversations(lines: Iterable[Line], model_of: ModelOf, masked_lines: Collection[int] | None) -> list[JSON]:
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
            "ranges": [_range(part, masked_lines) for part in ranges],
        }
        for (agent, session, model), ranges in found.items()
    ]


def _model_id(model: str) -> str:
    """A model as models.dev names it: after its provider."""
    return model if "/" in model else f"{provider_of(model)}/{model}"


def _range(lines: Sequence[Line], masked_lines: Collection[int] | None) -> dict[str, JSON]:
    found: dict[str, JSON] = {"start_line": lines[0].number, "end_line": lines[-1].number}
    if masked_lines is not None:
        is_masked = any(line.number in masked_lines for line in lines)
        if is_masked or len(lines) < MIN_HASHED_LINES:
            return found
    text = "\n".join(without_line_end(line.text) for line in lines)
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    return {**found, "content_hash": f"sha256:{digest}"}
