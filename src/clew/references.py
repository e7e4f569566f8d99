"""Session references: a path, an id, a title, the beginning of one, `agent:id`, `@last`, `@2`, `id#12`, `id@branch`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from clew.agents import registry
from clew.errors import AmbiguousReference, SourceUnreadable, UnknownReference, UsageError
from clew.io.database_paths import is_in_database

_SHAPE = re.compile(
    r"(?:(?P<agent>[a-z0-9-]+):)?(?P<id>@last|@[1-9]\d{0,8}|[^#@\s]+)(?:@(?P<branch>[^#]+))?(?:#(?P<message>\d{1,18}))?"
)
_TITLE = re.compile(r"(?P<title>\S.*?\s.*?\S)(?:#(?P<message>\d{1,18}))?", re.DOTALL)
"""A title has several words; a single word of one is parsed like an id."""
_MESSAGE = re.compile(r"#(\d{1,18})$")
_SHOWN = 5
LAST = "@last"
MIN_TITLE_CHARS = 3
"""Fewer characters are not looked for in titles."""


class HasPath(Protocol):
    """A session with a main file."""

    @property
    def path(self) -> Path: ...


S = TypeVar("S", bound=HasPath)


class Reference(NamedTuple):
    """A parsed reference."""

    id: str
    """An id, a title, the beginning of one, `@last` or `@2`."""
    agent: str | None = None
    message: int | None = None
    branch: str | None = None

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Parse a reference; a `#` must be followed by a message's index."""
        match = _SHAPE.fullmatch(text)
        if match is None:
            return cls._parse_title(text)
        message = match["message"]
        agent = registry.match(match["agent"]) if match["agent"] else None
        return cls(match["id"], agent, int(message) if message else None, match["branch"])

    @classmethod
    def _parse_title(cls, text: str) -> Reference:
        match = _TITLE.fullmatch(text.strip())
        if match is None:
            kinds = "an id or its beginning, a title, a path, agent:id, @last, @2 or id#12"
            raise UsageError(f"{text!r} is not a session reference; try {kinds}")
        return cls(match["title"].removesuffix("…"), message=int(match["message"]) if match["message"] else None)

    @property
    def position(self) -> int | None:
        """1 for the session with the latest message, 2 for the one before it, and so on; None for an id or a title."""
        if not self.id.startswith("@"):
            return None
        return 1 if self.id == LAST else int(self.id[1:])


def named_path(reference: str) -> Path | None:
    """The file or folder that a reference names, with or without a message behind it; None where it is an id."""
    for name in filter(None, (reference, _MESSAGE.sub("", reference))):
        path = Path(name)
        with suppress(RuntimeError):  # there is no such user
            path = path.expanduser()
        try:
            if path.exists() and ("/" in name or path.is_file()):
                return path
            if is_in_database(str(path)):
                return path
            if path.is_symlink():
                raise SourceUnreadable(f"{reference}: the link is broken")
        except OSError:  # too long for the name of a file
            continue
    if reference.startswith(("/", "./", "../", "~")):
        raise SourceUnreadable(f"{reference}: no such file or folder")
    return None


def message_of(reference: str) -> int | None:
    """The index of the message that a reference names, of a path or of an id."""
    found = None if "/" in reference and _exists(Path(reference)) else _MESSAGE.search(reference)
    return int(found[1]) if found else None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # too long for the name of a file
        return False


def branch_of(reference: str) -> str | None:
    """The branch that a reference to an id names."""
    return Reference.parse(reference).branch if named_path(reference) is None else None


def unknown(reference: Reference, count: int, *, is_filtered: bool = False) -> UnknownReference:
    """The error that none of so many sessions has the id or the title, or that there are not as many."""
    if reference.position is not None:
        none = "is no such session" if is_filtered else "is no session yet"
        are = {0: none, 1: "is only 1 session"}.get(count, f"are only {count} sessions")
        place = " in this project" if is_filtered else ""
        return UnknownReference(f"{reference.id}: there {are}{place}")
    hint = "@last is the newest" if reference.id in ("last", "latest", "newest") else "`clew list` lists all"
    return UnknownReference(f"no session matches {reference.id!r}; {hint}")


def ambiguous(reference: Reference, found: Sequence[tuple[str, str, str]]) -> AmbiguousReference:
    """The error that several sessions have an id or title that begins so; `found`: agent, id and path of each."""
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
