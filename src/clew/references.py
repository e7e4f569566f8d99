"""Session references, spelled alike everywhere: an id or its beginning, `agent:id`, `@last`, `id#12`, `id@branch`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from clew.errors import AmbiguousReference, SourceUnreadable, UnknownReference, UsageError

_SHAPE = re.compile(
    r"(?:(?P<agent>[a-z0-9-]+):)?(?P<id>@last|[^#@\s]+)(?:@(?P<branch>[^#]+))?(?:#(?P<message>\d{1,18}))?"
)
_MESSAGE = re.compile(r"#(\d{1,18})$")
_SHOWN = 5
LAST = "@last"
"""The reference to the session that something was said in last."""


class HasPath(Protocol):
    """A session with a main file."""

    @property
    def path(self) -> Path: ...


S = TypeVar("S", bound=HasPath)


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
            raise UsageError(
                f"{text!r} is not a session reference; try an id, the beginning of one, agent:id, @last or id#12"
            )
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
            raise SourceUnreadable(f"{reference}: the link is broken")
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


def unknown(reference: Reference) -> UnknownReference:
    """The error that no session has the id, or that there is no session at all."""
    if reference.id == LAST:
        return UnknownReference("no sessions found")
    return UnknownReference(f"no session matches {reference.id!r}; `clew list` lists all")


def ambiguous(reference: Reference, found: Sequence[tuple[str, str, str]]) -> AmbiguousReference:
    """The error that several sessions have ids that begin so; `found` has the agent, id and path of each."""
    names = [f"{agent}:{id_}" for agent, id_, _ in found]
    if len(set(names)) < len(names):
        # The same session in several files: only their paths tell them apart.
        names = [f"{name} in {path}" for name, (_, _, path) in zip(names, found, strict=True)]
    return AmbiguousReference(f"{reference.id!r} is ambiguous: {_enumerated(names)}")


def the_one(reference: str, found: Sequence[S]) -> S:
    """The only session that was found; below a folder there may be many, which only their files tell apart for sure."""
    if not found:
        raise UnknownReference(f"{reference}: contains no session")
    if len(found) > 1:
        files = _enumerated([str(session.path) for session in found])
        raise AmbiguousReference(f"{reference}: holds {len(found)} sessions; name one by its file: {files}")
    return found[0]


def _enumerated(names: Sequence[str]) -> str:
    """The first of several, and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
