"""What the commands of the time machine share: sessions by reference, and answers in words and in JSON."""

from __future__ import annotations

import re

import click

from clew.agents.file_evidence import FileContent, KnownContent
from clew.cli.options import open_library
from clew.cli.redaction import mask_by_session
from clew.errors import UsageError
from clew.file_history.fingerprint import Fingerprint
from clew.file_history.history import FileHistory
from clew.file_history.timeline import OBSERVATIONS, STILL_RUNNING, Answer
from clew.io.paths import escape_invalid_utf8
from clew.model.json import JSON
from clew.references import message_of
from clew.stored_session import StoredSession

_RANGE = re.compile(r"#(\d{1,18})\.\.(\d{1,18})$")
_HOW = {
    "backup": "from the agent's backup",
    "record": "complete in the record",
    "edit": "from recorded edits",
    "read": "as it was read",
    None: "",
}


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


def describe_certainty(answer: Answer) -> str:
    """How a file is known, in words."""
    if answer.certainty == "unknown":
        return f"unknown: {answer.reason}" if answer.reason else "unknown"
    known = f"{answer.certainty}, did not exist" if answer.is_absent else answer.certainty
    how = f", {_HOW[answer.how]}" if not answer.is_absent else ""
    seen = f" (message {answer.seen})" if answer.seen is not None else ""
    why = f": {answer.reason}" if answer.reason and answer.certainty == "unproved" else ""
    return f"{known}{how}{seen}{why}"


def describe_later_result(history: FileHistory, reference: str, path: str) -> str:
    """Which message has the file after the call of the message in `reference` changed it; empty where it does not."""
    message, timeline = message_in(reference), history.timelines.get(path)
    changes = (one for one in timeline.all_evidence if one.action not in OBSERVATIONS) if timeline else ()
    done = next((one.done for one in changes if one.call == message < one.done < STILL_RUNNING), None)
    if done is None:
        return ""
    after = f"{reference.rpartition('#')[0]}#{done}"
    return f"message {message} changes it, and {after} is its result: name that for the file after it"


def row(answer: Answer) -> dict[str, JSON]:
    """An answer as JSON."""
    return {
        "path": escape_invalid_utf8(answer.path),
        "certainty": answer.certainty,
        "how": answer.how,
        "message": answer.seen,
        "reason": answer.reason,
        **printed(answer.fingerprint),
    }


def printed(found: Fingerprint | None) -> dict[str, JSON]:
    """What is kept of a version, as JSON; nothing where it is not known."""
    if found is None:
        return {}
    if found.is_absent:
        return {"exists": False}
    # Of text that may be spelled otherwise in the file, neither holds.
    return {"exists": True, **({"size": found.size, "sha256": found.digest} if found.certainty == "exact" else {})}


def content(state: KnownContent | None) -> dict[str, JSON]:
    """Content as JSON: text where it is text."""
    if not isinstance(state, FileContent):
        return {}
    try:
        return {"content": state.body.decode()}
    except UnicodeDecodeError:
        import base64

        return {"content_base64": base64.b64encode(state.body).decode()}
