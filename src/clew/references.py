"""Session references, spelled alike everywhere: an id or its beginning, `agent:id`, `@last`, `id#12`, `id@branch`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from clew.agents.base import Agent, SourceFile
from clew.errors import AmbiguousReference, SourceUnreadable, UnknownReference, UsageError

_SHAPE = re.compile(
    r"(?:(?P<agent>[a-z0-9-]+):)?(?P<id>@last|[^#@\s]+)(?:@(?P<branch>[^#]+))?(?:#(?P<message>\d{1,18}))?"
)
_MESSAGE = re.compile(r"#(\d{1,18})$")
_SHOWN = 5
_COARSE = 2.0
"""Seconds: some file systems write times no finer."""


class Named(Protocol):
    """Something with an id that an agent wrote."""

    agent: Agent
    source: SourceFile

    @property
    def id(self) -> str: ...

    @property
    def is_subagent(self) -> bool: ...


S = TypeVar("S", bound=Named)


class Reference(NamedTuple):
    """A parsed reference."""

    id: str
    agent: str | None = None
    message: int | None = None
    branch: str | None = None

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Take a reference apart; a `#` must be followed by a message's index."""
        match = _SHAPE.fullmatch(text)
        if match is None:
            raise UsageError(f"{text!r} is no session reference; try an id, a prefix of one, agent:id, @last or id#12")
        message = match["message"]
        return cls(match["id"], match["agent"], int(message) if message else None, match["branch"])


def named_path(reference: str) -> Path | None:
    """The file or folder that a reference names, with or without a message behind it; None where it is an id."""
    for name in filter(None, (reference, _MESSAGE.sub("", reference))):
        path = Path(name)
        with suppress(RuntimeError):  # there is no such user
            path = path.expanduser()
        if path.exists() and ("/" in name or path.is_file()):
            return path
        if path.is_symlink():
            raise SourceUnreadable(f"{reference}: leads nowhere")
    if reference.startswith(("/", "./", "../", "~")):
        raise SourceUnreadable(f"{reference}: no such file or folder")
    return None


def message_of(reference: str) -> int | None:
    """The index of the message that a reference names, of a path or of an id."""
    path = Path(reference)
    found = None if "/" in reference and path.exists() else _MESSAGE.search(reference)
    return int(found[1]) if found else None


def branch_of(reference: str) -> str | None:
    """The branch that a reference to an id names."""
    return Reference.parse(reference).branch if named_path(reference) is None else None


def resolve(reference: Reference, sessions: Sequence[S]) -> S:
    """The one session that answers to the reference; one that cannot be read answers to none."""
    candidates = [s for s in sessions if (reference.agent is None or s.agent.id == reference.agent) and _has_id(s)]
    if reference.id == "@last":
        return _last(candidates)
    exact = [session for session in candidates if session.id == reference.id]
    found = exact or [session for session in candidates if session.id.startswith(reference.id)]
    if not found:
        raise UnknownReference(f"no session answers to {reference.id!r}; `clew list` shows those there are")
    if len(found) > 1:
        names = [f"{session.agent.id}:{session.id}" for session in found]
        if len(set(names)) < len(names):
            # The same session in several places: only the place tells them apart.
            names = [f"{name} in {session.source.path}" for name, session in zip(names, found, strict=True)]
        raise AmbiguousReference(f"{reference.id!r} is ambiguous: {_enumerated(names)}")
    return found[0]


def the_one(reference: str, found: Sequence[S]) -> S:
    """The only session that was found; below a folder there may be many, which only their files tell apart for sure."""
    if not found:
        raise UnknownReference(f"{reference}: holds no session")
    if len(found) > 1:
        files = _enumerated([str(session.source.path) for session in found])
        raise AmbiguousReference(f"{reference}: holds {len(found)} sessions; name one by its file: {files}")
    return found[0]


def _enumerated(names: Sequence[str]) -> str:
    """The first of several, and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _has_id(session: Named) -> bool:
    try:
        return bool(session.id)
    except SourceUnreadable:
        return False


def _last(sessions: Sequence[S]) -> S:
    """The session that something was said in last, as in a list; sub-agents do not count."""
    if not sessions:
        raise UnknownReference("there is no session yet")
    latest = sorted(sessions, key=lambda session: (session.source.mtime, session.id), reverse=True)
    best: tuple[float, str, S] | None = None
    for session in latest:
        if best is not None and best[0] > session.source.mtime + _COARSE:
            # Nothing is said in a file after it was written, so that most need not be opened.
            break
        if not _is_subagent(session):
            said = _ended(session), session.id, session
            best = max(best or said, said, key=lambda one: one[:2])
    return best[2] if best is not None else latest[0]


def _ended(session: Named) -> float:
    try:
        ended = session.agent.facts(session.source).ended
    except SourceUnreadable:
        return session.source.mtime
    return ended.timestamp() if ended is not None else float("-inf")


def _is_subagent(session: Named) -> bool:
    try:
        return session.is_subagent
    except SourceUnreadable:
        return False
