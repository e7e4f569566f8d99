"""The versions of a file that sessions recorded, and a quick test whether a session mentions the file at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from clew.agents.base import SourceFile
from clew.agents.file_evidence import RESTORATIONS, FileContent, State, absolute
from clew.errors import SourceUnreadable
from clew.file_history.blame import Origin, Version
from clew.file_history.history import FileHistory
from clew.file_history.timeline import OBSERVATIONS, Evidence
from clew.io.compress import open_source

_CHUNK_BYTES = 1 << 20
_PLAIN = re.compile(r"[A-Za-z0-9_.,+=@-]{2,}")
"""What every spelling of JSON leaves as it is."""


def mentions(source: SourceFile, path: str) -> bool:
    """True where a session may speak of the file: the longest plain piece of its name occurs, or it is unreadable."""
    pieces = sorted(_PLAIN.findall(path.rpartition("/")[2]), key=len)
    if not pieces:
        return True
    wanted = pieces[-1].encode()
    return any(_holds(source.path.parent / name, wanted) for name in (source.path.name, *source.parts))


def _holds(path: Path, wanted: bytes) -> bool:
    try:
        with open_source(path) as stream:
            kept = b""
            while chunk := stream.read(_CHUNK_BYTES):
                if wanted in kept + chunk:
                    return True
                kept = chunk[-len(wanted) :]
    except (OSError, SourceUnreadable):
        return True  # whoever opens it reports the error
    return False


def versions(history: FileHistory, session: str, paths: set[str]) -> Iterator[tuple[str, Version]]:
    """What a session did to a file, under any of its spellings, with the time of each."""
    all_evidence = [
        evidence for path in paths if path in history.timelines for evidence in history.timelines[path].all_evidence
    ]
    all_evidence.sort(key=lambda evidence: (evidence.done, evidence.number))
    keys = [(evidence.number, is_after) for evidence in all_evidence for is_after in (False, True)]
    contents = history.contents_of(keys) if all_evidence else {}
    for evidence in all_evidence:
        before, after = (_body(contents.get((evidence.number, is_after))) for is_after in (False, True))
        time = history.times.get(evidence.done) or history.times.get(evidence.call) or ""
        if evidence.how == "backup" and after is None:
            # Nothing shows when the tool ended, so its place among other changes is unknown.
            continue
        if evidence.action in OBSERVATIONS or (evidence.how == "backup" and before is None):
            # Without the content before the tool, its own lines cannot be told from those that were there.
            yield time, Version(None, after, None)
        elif evidence.action in RESTORATIONS:
            yield time, Version(None, before, after, is_put_back=True)
        else:
            yield time, Version(_origin(history, session, evidence), before, after)


def _body(state: State | None) -> bytes | None:
    return None if state is None else state.body if isinstance(state, FileContent) else b""


def _origin(history: FileHistory, session: str, evidence: Evidence) -> Origin:
    certainty = evidence.after.certainty if evidence.after is not None else "unknown"
    time = history.times.get(evidence.call)
    return Origin(
        session, history.agent.id, evidence.call, time, history.prompt(evidence.call), certainty, evidence.how
    )


def spellings(path: Path) -> set[str]:
    """How records may spell the file: as it was named, and where links lead."""
    return {absolute(str(path.absolute()), None), absolute(str(path.resolve()), None)}
