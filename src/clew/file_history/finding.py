"""Which sessions speak of a file at all, by a look at their bytes that costs next to nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from clew.agents.base import SourceFile
from clew.agents.file_evidence import FileContent, State, absolute
from clew.errors import SourceUnreadable
from clew.file_history.blame import Origin, Version
from clew.file_history.history import FileHistory
from clew.file_history.timeline import LOOKS, PUT_BACK, Mark
from clew.io.compress import open_source

_CHUNK = 1 << 20
_PLAIN = re.compile(r"[A-Za-z0-9_.,+=@-]{2,}")
"""What every spelling of JSON leaves as it is."""


def mentions(source: SourceFile, path: str) -> bool:
    """True where a session may speak of the file: the longest plain piece of its name occurs."""
    pieces = sorted(_PLAIN.findall(path.rpartition("/")[2]), key=len)
    if not pieces:
        return True
    wanted = pieces[-1].encode()
    return any(_holds(source.path.parent / name, wanted) for name in (source.path.name, *source.parts))


def _holds(path: Path, wanted: bytes) -> bool:
    try:
        with open_source(path) as stream:
            kept = b""
            while chunk := stream.read(_CHUNK):
                if wanted in kept + chunk:
                    return True
                kept = chunk[-len(wanted) :]
    except (OSError, SourceUnreadable):
        return False
    return False


def versions(history: FileHistory, session: str, paths: set[str]) -> Iterator[tuple[str, Version]]:
    """What a session did to a file, under any of its spellings, with the time of each."""
    marks = [mark for path in paths if path in history.timelines for mark in history.timelines[path].marks]
    marks.sort(key=lambda mark: (mark.done, mark.number))
    keys = [(mark.number, is_after) for mark in marks for is_after in (False, True)]
    contents = history.contents_of(keys) if marks else {}
    for mark in marks:
        before, after = (_body(contents.get((mark.number, is_after))) for is_after in (False, True))
        time = history.times.get(mark.done) or history.times.get(mark.call) or ""
        if mark.how == "backup" and after is None:
            continue  # when it ended is not known either, so others may have come before
        if mark.action in LOOKS or (mark.how == "backup" and before is None):
            # What was seen behind a tool is not all of its writing, where nobody knows what it found.
            yield time, Version(None, after, None)
        elif mark.action in PUT_BACK:
            yield time, Version(None, before, after, is_put_back=True)
        else:
            yield time, Version(_origin(history, session, mark), before, after)


def _body(state: State | None) -> bytes | None:
    return None if state is None else state.body if isinstance(state, FileContent) else b""


def _origin(history: FileHistory, session: str, mark: Mark) -> Origin:
    certainty = mark.after.certainty if mark.after is not None else "unknown"
    time = history.times.get(mark.call)
    return Origin(session, history.agent.id, mark.call, time, history.prompt(mark.call), certainty, mark.how)


def spellings(path: Path) -> set[str]:
    """How records may spell the file: as it was named, and where links lead."""
    return {absolute(str(path.absolute()), None), absolute(str(path.resolve()), None)}
