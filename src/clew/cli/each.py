"""Many sessions, one after the other: one that cannot be read is said and passed over."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from clew.cli.output import say
from clew.errors import SourceUnreadable, UsageError
from clew.filters import Filters
from clew.library import Library, StoredSession
from clew.references import message_of

UNREADABLE = 3
"""Exit code where a session could not be read."""


def chosen(shelf: Library, references: tuple[str, ...]) -> Iterable[StoredSession]:
    """The sessions that were named, or all of them."""
    for reference in references:
        if message_of(reference) is not None:
            raise UsageError(f"{reference} names a message; only `clew show` takes one")
    return [session for name in references for session in shelf.find(name)] if references else shelf.sources()


def each(sessions: Iterable[StoredSession], filters: Filters, work: Callable[[StoredSession], object]) -> int:
    """Do the work for every session that passes the filters; returns how many could not be read."""
    unreadable = 0
    for session in sessions:
        try:
            if filters.admits(session):
                work(session)
        except SourceUnreadable as error:
            say(f"clew: {error}")
            unreadable += 1
        session.forget()
    return unreadable


def say_unscanned(sessions: int) -> None:
    """Say how many sessions nobody has looked into for secrets."""
    if sessions:
        say(f"clew: {sessions} session{'s' if sessions > 1 else ''} could not be scanned", own=True)
