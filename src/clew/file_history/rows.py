"""What is known about files, as JSON and in words: the evidence of a session, and a file at a message."""

from __future__ import annotations

from clew.agents.file_evidence import RESTORATIONS, FileContent, KnownContent
from clew.file_history.fingerprint import Fingerprint
from clew.file_history.history import FileHistory
from clew.file_history.timeline import OBSERVATIONS, STILL_RUNNING, Answer, Evidence
from clew.io.paths import escape_invalid_utf8
from clew.model.json import JSON

_HOW = {
    "backup": "from the agent's backup",
    "record": "complete in the record",
    "edit": "from recorded edits",
    "read": "as it was read",
    None: "",
}


def evidence_of(history: FileHistory, message: int | None = None) -> list[Evidence]:
    """What was done to files in the order of the session, or what one message did."""
    if message is None:
        return sorted(
            [*history.all_evidence(), *history.unexplained_changes()],
            key=lambda evidence: (evidence.call, evidence.number, evidence.action),
        )
    history.require(message)
    return [
        evidence
        for evidence in history.all_evidence()
        if message in (evidence.call, evidence.done) and evidence.action not in RESTORATIONS
    ]


def evidence_row(evidence: Evidence, history: FileHistory) -> dict[str, JSON]:
    """A piece of evidence as JSON."""
    states = {
        name: {"certainty": found.certainty, **fingerprint_row(found)} if found is not None else None
        for name, found in (("before", evidence.before), ("after", evidence.after))
    }
    return {
        "message": evidence.call,
        "result": evidence.done if evidence.done in history.all_messages else None,
        "time": history.times.get(evidence.call),
        "action": evidence.action,
        "path": escape_invalid_utf8(evidence.path),
        "how": evidence.how,
        **states,
        "note": evidence.note,
    }


def answer_row(answer: Answer) -> dict[str, JSON]:
    """A file at a message as JSON, without its content."""
    return {
        "path": escape_invalid_utf8(answer.path),
        "certainty": answer.certainty,
        "how": answer.how,
        "message": answer.seen,
        "reason": answer.reason,
        **fingerprint_row(answer.fingerprint),
    }


def fingerprint_row(found: Fingerprint | None) -> dict[str, JSON]:
    """What is kept of a version, as JSON; nothing where it is not known."""
    if found is None:
        return {}
    if found.is_absent:
        return {"exists": False}
    # Of text that may be spelled otherwise in the file, neither holds.
    return {"exists": True, **({"size": found.size, "sha256": found.digest} if found.certainty == "exact" else {})}


def content_row(state: KnownContent | None) -> dict[str, JSON]:
    """Content as JSON: text where it is text."""
    if not isinstance(state, FileContent):
        return {}
    try:
        return {"content": state.body.decode()}
    except UnicodeDecodeError:
        import base64

        return {"content_base64": base64.b64encode(state.body).decode()}


def describe_certainty(answer: Answer) -> str:
    """How a file is known, in words."""
    if answer.certainty == "unknown":
        return f"unknown: {answer.reason}" if answer.reason else "unknown"
    known = f"{answer.certainty}, did not exist" if answer.is_absent else answer.certainty
    how = f", {_HOW[answer.how]}" if not answer.is_absent else ""
    seen = f" (message {answer.seen})" if answer.seen is not None else ""
    why = f": {answer.reason}" if answer.reason and answer.certainty == "unproved" else ""
    return f"{known}{how}{seen}{why}"


def describe_later_result(history: FileHistory, session: str, message: int, path: str) -> str:
    """Which message has the file after the call of `message` changed it; empty where it does not.

    `session` is the reference of the session, without a message.
    """
    timeline = history.timelines.get(path)
    changes = (one for one in timeline.all_evidence if one.action not in OBSERVATIONS) if timeline else ()
    done = next((one.done for one in changes if one.call == message < one.done < STILL_RUNNING), None)
    if done is None:
        return ""
    return f"message {message} changes it, and {session}#{done} is its result: name that for the file after it"
