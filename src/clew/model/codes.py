"""Every problem code with severity, meaning and hint. Codes are stable; docs/problems.md is made from here."""

from __future__ import annotations

from typing import NamedTuple

from clew.model.problem import Problem, Severity


class Code(NamedTuple):
    severity: Severity
    meaning: str
    hint: str


CODES: dict[str, Code] = {
    # Bytes
    "malformed-json": Code(
        "error", "The line is not JSON.", "The bytes are kept; look at the place with a hex viewer."
    ),
    "torn-tail": Code(
        "warning",
        "The last line stops in the middle of a record.",
        "The agent is still writing, or was killed.",
    ),
    "glued-records": Code(
        "warning", "Several records stand on one line.", "All of them are read; the agent lost a line end."
    ),
    "fragment": Code(
        "warning", "Part of a record was cut off.", "The fragment is kept; the records around it are read."
    ),
    "nul-run": Code(
        "warning",
        "NUL bytes stand between records.",
        "Typical after a crash of the machine; skipped and kept.",
    ),
    "byte-order-mark": Code("note", "A byte order mark stands before a record.", "Skipped and kept."),
    "blank-line": Code("note", "The line is blank.", "Skipped and kept."),
    "not-an-object": Code("warning", "The line is JSON but no object.", "Kept; no agent writes such lines on purpose."),
    "invalid-utf8": Code("warning", "The line holds bytes that are not UTF-8.", "Shown with replacement characters."),
    "lone-surrogate": Code("note", "A string holds half of a surrogate pair.", "Shown with a replacement character."),
    "duplicate-key": Code("warning", "A key stands twice in one object.", "The last one counts; the raw line is kept."),
    "number-range": Code("note", "A number does not fit a machine number.", "Shown as text; the raw line is kept."),
    "too-deep": Code("error", "The record is nested too deeply.", "Kept as a fragment; no real record is."),
    "line-too-long": Code(
        "error",
        "The line, or the session that is one JSON document, is longer than the limit.",
        "Kept as it is and not read; raise CLEW_MAX_LINE (bytes) to read it.",
    ),
    "trailing-bytes": Code(
        "warning", "Something stands behind the end of the document.", "Kept as it is; the document before it is read."
    ),
    "damaged-archive": Code("error", "The compressed file is damaged or cut off.", "What could be unpacked is read."),
    # Records
    "unknown-type": Code(
        "note", "A record of a type this version does not know.", "Kept as it is; a newer clew may know it."
    ),
    "unknown-key": Code("note", "A key this version does not know.", "Kept as it is; a newer clew may know it."),
    "unknown-block": Code("note", "A content block of an unknown kind.", "Kept as it is."),
    "wrong-type": Code(
        "warning", "A known key holds a value of an unexpected type.", "Kept as it is, outside the model."
    ),
    # Conversation
    "empty-session": Code("error", "empty session", "No message was ever written to this file."),
    "other-session": Code("error", "A message has a different session id.", "Often a resumed or merged file."),
    "no-timestamp": Code("error", "A message has no timestamp.", "Order falls back to the order in the file."),
    "bad-timestamp": Code("error", "A timestamp is not ISO 8601.", "Kept as it is; order falls back to the file."),
    "missing-parent": Code("warning", "The parent of a message is not in the session.", "Treated as a further root."),
    "parent-cycle": Code("error", "Parents form a circle.", "The circle is cut at its first message."),
    "duplicate-uuid": Code(
        "warning", "Two messages have the same uuid.", "A repeated line, or a resumed or forked copy."
    ),
    "shared-uuid": Code("note", "A message also stands in another file.", "A resumed or forked copy; counted once."),
    "wrong-role": Code("warning", "The role of a message does not fit its type.", "The type decides."),
    "bad-role": Code("error", "The role is none of user, assistant, system.", "Kept; see the agent's own schema."),
    "tool-role": Code("warning", "The role `tool` is outside the schema.", "Read as a tool result."),
    "bad-content": Code("error", "The content is missing, empty or not a string.", "Kept as it is."),
    "orphan-result": Code(
        "warning", "A tool result answers no call of this session.", "The call was cut off or never written."
    ),
    "unanswered-call": Code(
        "warning", "A tool call has no result.", "The session was interrupted, or is still running."
    ),
    "duplicate-call": Code(
        "warning", "Two tool calls have the same id.", "Both are shown; their results cannot be told apart."
    ),
    "unknown-rewind": Code(
        "warning",
        "The session goes back to a message that is not there.",
        "The agent then drops every message; so does the active path.",
    ),
    "no-header": Code("warning", "No record says whose session this is.", "The id is taken from the file's name."),
    "unknown-thinking-level": Code(
        "note", "A thinking level this version does not know.", "Kept as it is; reported once for each level."
    ),
    "bad-thinking-level": Code("error", "The thinking level is not none, low, medium or high.", "Kept as it is."),
    "unknown-snapshot-message": Code(
        "warning", "A snapshot names a message that is not there.", "It cannot be undone to."
    ),
    "bad-snapshot": Code("error", "A snapshot is not of the form its type promises.", "Kept as it is."),
    "missing-base": Code(
        "warning", "The history that a session builds upon is not there.", "What the session itself holds is read."
    ),
    "unknown-history-mode": Code(
        "error", "The session keeps its history in a way this version does not know.", "A newer clew may know it."
    ),
    "bad-ordinal": Code(
        "warning", "The numbers of the lines do not follow each other.", "A line is missing or doubled."
    ),
    "time-missing": Code("note", "A message has no timestamp (recommended).", "Order is that of the file."),
    # Neighbours
    "metadata-missing": Code("note", "The metadata file is missing.", "`clew migrate --metadata` writes it anew."),
    "metadata-mismatch": Code("warning", "The metadata file disagrees with the log.", "The log is the truth."),
    "metadata-behind": Code(
        "note", "The metadata file is behind the log.", "Nothing is lost: the next writer, or a fix, brings it up."
    ),
    "metadata-damaged": Code("warning", "The metadata file cannot be read.", "The log is the truth."),
    "open-to-others": Code(
        "warning", "Others on this machine may look into it.", "`clew doctor --fix` makes it its owner's alone."
    ),
    "leftover-file": Code("warning", "A temporary file was left behind.", "`clew doctor --fix` removes it."),
    "backup-damaged": Code("error", "A copy of a file cannot be read.", "What it held cannot be put back."),
    "backup-unused": Code("note", "No record names this copy of a file.", "`clew doctor --fix` removes it."),
    "undo-unfinished": Code("warning", "An undo was cut off half-way.", "`clew doctor --fix` takes it back."),
    "restore-unfinished": Code("warning", "A restore was cut off half-way.", "`clew doctor --fix` takes it back."),
    "lock-held": Code("note", "A running process holds the lock.", "It is waited for; look again when it is done."),
    "newer-store": Code("warning", "A newer version of clew wrote this store.", "It is read, and not written to."),
    "quarantined": Code(
        "note", "Torn pieces of records were set aside.", "They were never acknowledged; remove the file at will."
    ),
    "unreadable": Code("error", "The file cannot be read.", "What it says is why: permissions, or limits."),
    "bad-settings": Code("error", "The store's settings cannot be read.", "Mend or remove the file."),
    "snapshots-missing": Code(
        "error", "The log of the snapshots is gone, and copies of files are there.", "No copy is removed meanwhile."
    ),
    # Unified documents
    "bad-document": Code("error", "The document does not fit its schema.", "See schemas/; the path names the place."),
    "bad-index": Code(
        "error", "Message indexes are not 1, 2, 3 and so on.", "Number the messages in the order they stand in."
    ),
    "bad-graph": Code("error", "The graph names a message that is not there.", "Leave the graph out, or make it anew."),
}


def problem(
    code: str,
    detail: str = "",
    *,
    file: str | None = None,
    line: int | None = None,
    start: int | None = None,
    end: int | None = None,
    index: int | None = None,
    path: str | None = None,
) -> Problem:
    """A Problem of a known code; `detail` makes the general meaning concrete."""
    known = CODES[code]
    return Problem(
        code=code,
        severity=known.severity,
        message=detail or known.meaning,
        hint=known.hint,
        file=file,
        line=line,
        start=start,
        end=end,
        index=index,
        path=path,
    )
