"""Which message wrote each line of a file, and the recorded versions of the file that prove it."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from clew.agents.base import Agent
from clew.agents.file_evidence import RESTORATIONS, FileContent, How, KnownContent, absolute
from clew.agents.source import SourceFile, open_file
from clew.errors import SourceUnreadable
from clew.file_history.diffs import lines_of, without_line_end
from clew.file_history.fingerprint import Certainty
from clew.file_history.history import FileHistory
from clew.file_history.timeline import OBSERVATIONS, Evidence

_CHUNK_BYTES = 1 << 20
_PLAIN = re.compile(r"[A-Za-z0-9_.,+=@-]{2,}")
"""Characters that JSON never escapes."""


class Origin(NamedTuple):
    """The message that wrote a line."""

    session: str
    agent: str
    message: int
    time: str | None
    prompt: tuple[int, str] | None
    certainty: Certainty
    how: How | None = None
    """How that is known."""


class Version(NamedTuple):
    """What the file was before a message, and what the message made of it. None is unknown; no file has no lines."""

    origin: Origin | None
    """None if the message only read the file, or if an undo or redo restored it."""
    before: bytes | None
    after: bytes | None
    is_put_back: bool = False
    """True for an undo or redo. Its lines keep the origins they had when the file last had this content."""


class Line(NamedTuple):
    """A line of the file as it is now."""

    number: int
    text: str
    origin: Origin | None


def blame(now: bytes, versions: Iterable[Version]) -> list[Line]:
    """Return for each line the message that wrote it. Versions are in the order of time."""
    lines: list[str] = []
    origins: list[Origin | None] = []
    known: dict[bytes, list[Origin | None]] = {}
    for version in versions:
        if version.before is not None:
            lines, origins = _carried(lines, origins, _lines(version.before), None)
            known[_key(lines)] = origins
        if version.after is not None:
            lines, origins = _carried(lines, origins, _lines(version.after), version.origin)
            if version.is_put_back:
                origins = known.get(_key(lines), origins)
            known[_key(lines)] = origins
    current = lines_of(now)
    _, origins = _carried(lines, origins, [without_line_end(line) for line in current], None)
    return [Line(number, text, origin) for number, (text, origin) in enumerate(zip(current, origins, strict=True), 1)]


def _key(lines: list[str]) -> bytes:
    """Return the digest of a content."""
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).digest()


def _lines(body: bytes) -> list[str]:
    """Return the lines of a content. Other line ends do not count as a change."""
    return [without_line_end(line) for line in lines_of(body)]


def _carried(
    old: Sequence[str], origins: Sequence[Origin | None], new: list[str], origin: Origin | None
) -> tuple[list[str], list[Origin | None]]:
    """Return the new lines with their origins: kept for unchanged lines, the given one for all others."""
    result: list[Origin | None] = [origin] * len(new)
    for start, other, size in difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        result[other : other + size] = origins[start : start + size]
    return new, result


def mentions(source: SourceFile, path: str) -> bool:
    """Return whether a session may name the file: the longest plain part of its name occurs, or it is unreadable."""
    wanted = plain_part(path).encode()
    return not wanted or any(_holds(source, name, wanted) for name in ("", *source.parts))


def plain_part(path: str) -> str:
    """Return the longest part of a file's name that JSON spells as it is; "" if there is none."""
    return max(_PLAIN.findall(path.rpartition("/")[2]), key=len, default="")


def _holds(source: SourceFile, name: str, wanted: bytes) -> bool:
    try:
        with open_file(source, name) as stream:
            kept = b""
            while chunk := stream.read(_CHUNK_BYTES):
                kept = kept[-len(wanted) :] + chunk  # the name may begin in an earlier chunk
                if wanted in kept:
                    return True
    except (OSError, SourceUnreadable):
        return True  # the reader of the session reports the error
    return False


def versions(agent: Agent, source: SourceFile, session: str, paths: set[str]) -> Iterator[tuple[str, Version]]:
    """Yield what a session did to a file under any of its paths, each with its time."""
    history = FileHistory(agent, source, keep_contents_of=paths)
    all_evidence = [
        evidence for path in paths if path in history.timelines for evidence in history.timelines[path].all_evidence
    ]
    all_evidence.sort(key=lambda evidence: (evidence.done, evidence.number))
    contents = history.kept_contents
    for evidence in all_evidence:
        before, after = (_body(contents.get((evidence.number, is_after))) for is_after in (False, True))
        time = history.times.get(evidence.done) or history.times.get(evidence.call) or ""
        if evidence.how == "backup" and after is None:
            # Nothing shows when the tool ended, so its place among other changes is unknown.
            continue
        if evidence.action in OBSERVATIONS or (evidence.how == "backup" and before is None):
            # Without the content before the tool, its new lines cannot be separated from the existing ones.
            yield time, Version(None, after, None)
        elif evidence.action in RESTORATIONS:
            yield time, Version(None, before, after, is_put_back=True)
        else:
            yield time, Version(_origin(history, session, evidence), before, after)


def _body(state: KnownContent | None) -> bytes | None:
    return None if state is None else state.body if isinstance(state, FileContent) else b""


def _origin(history: FileHistory, session: str, evidence: Evidence) -> Origin:
    certainty = evidence.after.certainty if evidence.after is not None else "unknown"
    time = history.times.get(evidence.call)
    return Origin(
        session, history.agent.id, evidence.call, time, history.prompt(evidence.call), certainty, evidence.how
    )


def spellings(path: Path) -> set[str]:
    """Return the paths that records may have for the file: as given, and with links resolved."""
    return {absolute(str(path.absolute()), None), absolute(str(path.resolve()), None)}
