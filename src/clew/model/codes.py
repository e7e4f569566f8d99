"""Every problem code with severity, meaning and hint. Codes are stable; `make docs` writes a page from them."""

from __future__ import annotations

from typing import NamedTuple

from clew.model.problem import Problem, Severity


class Code(NamedTuple):
    severity: Severity
    meaning: str
    hint: str


CODES: dict[str, Code] = {
    # Bytes
    "malformed-json": Code("error", "The line is not JSON.", "The bytes are kept; inspect the line with a hex viewer."),
    "torn-tail": Code(
        "warning",
        "The last line ends in the middle of a record.",
        "The agent is still writing, or was killed.",
    ),
    "glued-records": Code(
        "warning", "Several records are on one line.", "All of them are read; the agent omitted a newline."
    ),
    "fragment": Code(
        "warning", "Part of a record was cut off.", "The fragment is kept; the records around it are read."
    ),
    "nul-run": Code(
        "warning",
        "There are NUL bytes between records.",
        "Typical after a crash of the machine; skipped and kept.",
    ),
    "byte-order-mark": Code("note", "There is a byte order mark before a record.", "Skipped and kept."),
    "blank-line": Code("note", "The line is blank.", "Skipped and kept."),
    "not-an-object": Code(
        "warning", "The line is JSON, but not an object.", "Kept; no agent writes such lines on purpose."
    ),
    "invalid-utf8": Code(
        "warning", "The line contains bytes that are not UTF-8.", "Shown with replacement characters."
    ),
    "lone-surrogate": Code(
        "note", "A string contains half of a surrogate pair.", "Shown with a replacement character."
    ),
    "duplicate-key": Code("warning", "A key occurs twice in one object.", "The last one counts; the raw line is kept."),
    "number-range": Code("note", "A number does not fit a machine number.", "Shown as text; the raw line is kept."),
    "too-deep": Code(
        "error", "The record is nested too deeply.", "Kept as a fragment; real records are never nested so deeply."
    ),
    "line-too-long": Code(
        "error",
        "The line, or the session that is one JSON document, is longer than the limit.",
        "Kept as it is and not read; raise CLEW_MAX_LINE (bytes) to read it.",
    ),
    "trailing-bytes": Code(
        "warning", "There is data after the end of the document.", "Kept as it is; the document before it is read."
    ),
    "damaged-archive": Code("error", "The compressed file is damaged or truncated.", "What could be unpacked is read."),
    # Records
    "unknown-type": Code(
        "note", "The type of a record is unknown to this version.", "Kept as it is; a newer clew may know it."
    ),
    "unknown-key": Code("note", "A key is unknown to this version.", "Kept as it is; a newer clew may know it."),
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
    "parent-cycle": Code("error", "Parents form a cycle.", "The cycle is cut at its first message."),
    "duplicate-uuid": Code(
        "warning", "Two messages have the same uuid.", "A repeated line, or a resumed or forked copy."
    ),
    "shared-uuid": Code("note", "A message is also in another file.", "A resumed or forked copy; counted once."),
    "wrong-role": Code("warning", "The role of a message does not match its type.", "The type decides."),
    "bad-role": Code("error", "The role is not user, assistant or system.", "Kept; see the agent's own schema."),
    "tool-role": Code("warning", "The role `tool` is outside the schema.", "Read as a tool result."),
    "bad-content": Code("error", "The content is missing, empty or not a string.", "Kept as it is."),
    "orphan-result": Code(
        "warning", "A tool result has no matching call in this session.", "The call was truncated or never written."
    ),
    "unanswered-call": Code(
        "warning", "A tool call has no result.", "The session was interrupted, or is still running."
    ),
    "duplicate-call": Code(
        "warning", "Two tool calls have the same id.", "Both are shown; their results cannot be distinguished."
    ),
    "unknown-rewind": Code(
        "warning",
        "The session rewinds to a message that does not exist.",
        "The agent then drops every message, and so does the active path.",
    ),
    "no-header": Code("warning", "No record contains the session id.", "The id is taken from the file name."),
    "unknown-thinking-level": Code(
        "note", "The thinking level is unknown to this version.", "Kept as it is; reported once for each level."
    ),
    "bad-thinking-level": Code("error", "The thinking level is not none, low, medium or high.", "Kept as it is."),
    "unknown-snapshot-message": Code(
        "warning", "A snapshot refers to a message that does not exist.", "Undo cannot go back to it."
    ),
    "bad-snapshot": Code("error", "A snapshot does not match the format of its type.", "Kept as it is."),
    "missing-base": Code(
        "warning", "The history that a session continues is missing.", "Only the session's own messages are read."
    ),
    "unknown-history-mode": Code(
        "error", "The history mode of the session is unknown to this version.", "A newer clew may know it."
    ),
    "bad-ordinal": Code("warning", "The line numbers are not consecutive.", "A line is missing or repeated."),
    "time-missing": Code("note", "A message has no timestamp (recommended).", "Order is that of the file."),
    # Neighbours
    "metadata-missing": Code("note", "The metadata file is missing.", "`clew migrate --metadata` rebuilds it."),
    "metadata-mismatch": Code("warning", "The metadata file differs from the log.", "The log is used."),
    "metadata-behind": Code(
        "note",
        "The metadata file is behind the log.",
        "Nothing is lost; the next write, or `clew doctor --fix`, updates it.",
    ),
    "metadata-damaged": Code("warning", "The metadata file cannot be read.", "The log is used."),
    "open-to-others": Code(
        "warning", "Other users of this machine can read it.", "`clew doctor --fix` restricts it to its owner."
    ),
    "leftover-file": Code("warning", "A temporary file was left behind.", "`clew doctor --fix` removes it."),
    "backup-damaged": Code("error", "A copy of a file cannot be read.", "Its content cannot be restored."),
    "backup-unused": Code("note", "No record uses this copy of a file.", "`clew doctor --fix` removes it."),
    "undo-unfinished": Code("warning", "An undo was interrupted.", "`clew doctor --fix` reverts it."),
    "restore-unfinished": Code("warning", "A restore was interrupted.", "`clew doctor --fix` reverts it."),
    "lock-held": Code("note", "A running process holds the lock.", "Try again when it has finished."),
    "newer-store": Code("warning", "A newer version of clew wrote this store.", "It is read-only for this version."),
    "quarantined": Code(
        "note", "Incomplete records were moved to this file.", "They were never acknowledged; the file can be removed."
    ),
    "unreadable": Code(
        "error", "The file or folder cannot be read.", "See the message: permissions, limits or damage."
    ),
    "damaged-annotations": Code(
        "error",
        "The file with your stars, labels and notes cannot be read.",
        "Restore it from a backup, or move it away and use `clew annotate import` with an export.",
    ),
    "damaged-settings": Code(
        "error",
        "A file with your settings or names of projects cannot be read, or has a value that cannot be used.",
        "Correct the file, or delete it. Until then, defaults count, and the web app may mask everything.",
    ),
    "damaged-database": Code(
        "error",
        "The database of an agent is damaged, or is no database.",
        "Restore it from a backup or with the agent; `.recover` of the sqlite3 program may save rows.",
    ),
    "unknown-database": Code(
        "error",
        "The database of an agent does not have the tables that this version of clew knows.",
        "Another version of the agent wrote it; a newer clew may know it.",
    ),
    "bad-settings": Code("error", "The store's settings cannot be read.", "Repair or remove the file."),
    "snapshots-missing": Code(
        "error", "The log of the snapshots is missing, but copies of files exist.", "No copy is removed."
    ),
    # Unified documents
    "bad-document": Code("error", "The document does not match its schema.", "See schemas/; the path names the field."),
    "bad-index": Code("error", "Message indexes are not 1, 2, 3 and so on.", "Number the messages in their order."),
    "bad-graph": Code(
        "error", "The graph refers to a message that does not exist.", "Leave out the graph, or rebuild it."
    ),
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
