"""What the commands of the time machine share: the session and the messages that a reference names."""

from __future__ import annotations

import re

import click

from clew.cli.options import open_library
from clew.cli.redaction import mask_by_session
from clew.errors import UsageError
from clew.file_history.history import FileHistory
from clew.references import message_of
from clew.stored_session import StoredSession

_RANGE = re.compile(r"#(\d{1,18})\.\.(\d{1,18})$")


def open_file_history(
    context: click.Context, homes: tuple[str, ...], reference: str
) -> tuple[StoredSession, FileHistory]:
    """The session that a reference means, and its files."""
    session = open_library(context, homes).get(reference)
    mask_by_session(context, session)
    return session, FileHistory(session.agent, session.source)


def message_in(reference: str) -> int:
    """The message that a reference must name."""
    message = message_of(reference)
    session, mark, number = reference.rpartition("#")
    if message is None and mark and session:
        raise UsageError(f"{number!r} is not a message number; try {session}#12")
    if message is None:
        raise UsageError(f"{reference} does not name a message; add one, as in {reference}#12")
    return message


def range_in(reference: str) -> tuple[str, int, int | None]:
    """A reference to one message or to two, `REF#3..12`: the reference to the first, and both indexes."""
    found = _RANGE.search(reference)
    if found is None:
        return reference, message_in(reference), None
    first, last = int(found[1]), int(found[2])
    return f"{reference[: found.start()]}#{first}", first, last
