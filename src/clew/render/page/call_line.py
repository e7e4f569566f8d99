"""The line that stands for a folded tool call: the tool, what it works on, how it ended, how long and how large."""

from __future__ import annotations

from clew.render.parts import Call, Code, Command, Diff, Fields, Output, Piece, Question, Result, Tasks
from clew.render.tables import duration
from clew.render.text_safety import escape_line

TARGET_CHARS = 200
"""Characters of a target that the line holds; the style sheet shows as many as there is room for."""
MIN_SECONDS = 1
"""Shorter calls have no duration in their line."""


def call_line(part: Call) -> str:
    """The content of a call's `<summary>`. The style sheet shows the note while the call is open, else the target."""
    target = _target(part) or ("" if part.note else _first_words(part))
    note = f' <span class="note">{escape_line(part.note)}</span>' if part.note else ""
    target_html = f' <code class="call-target">{escape_line(target[:TARGET_CHARS])}</code>' if target else ""
    facts = " · ".join(_facts(part))
    facts_html = f' <span class="call-facts">{facts}</span>' if facts else ""
    return f"<b>{escape_line(part.name)}</b>{note}{target_html}{facts_html}"


def count_lines(text: str) -> int:
    """The lines of a text; the last may have no end."""
    return text.count("\n") + (text[-1:] != "\n")


def output_lines(result: Result) -> int:
    """The lines that a call printed."""
    return sum(count_lines(piece.text) for piece in result.pieces if type(piece) is Output)


def _target(part: Call) -> str:
    """The command or the file of a call."""
    for piece in part.pieces:
        if isinstance(piece, Command):
            return piece.text.strip().partition("\n")[0]
        path = piece.path if isinstance(piece, Diff) else _written_file(piece)
        if isinstance(piece, Fields):
            path = dict(piece.pairs).get("file")
        if path:
            return path
    return ""


def _written_file(piece: Piece) -> str | None:
    """The file that a call writes; the title of an argument is its name, and no path."""
    title = piece.title if isinstance(piece, Code) else None
    return title if title and ("/" in title or "." in title) else None


def _first_words(part: Call) -> str:
    """The first words of a call without a command, a file or a note."""
    for piece in part.pieces:
        if isinstance(piece, Fields):
            return " ".join(value for _, value in piece.pairs[:2])
        if isinstance(piece, Tasks):
            return f"{piece.done} of {piece.total} done"
        if isinstance(piece, Question | Code):
            return piece.text.strip().partition("\n")[0]
    return ""


def _facts(part: Call) -> list[str]:
    """How the call ended, the lines that it changed, wrote or printed, and its duration."""
    facts = [] if part.has_result else ["no result"]
    if part.result is not None:
        exit_code, is_error = part.result.exit_code, part.result.is_error
        facts.append(f"exit {exit_code}" if exit_code else "error" if is_error else "ok")
    diffs = [line for piece in part.pieces if isinstance(piece, Diff) for line in piece.text.split("\n")]
    written = sum(count_lines(piece.text) for piece in part.pieces if isinstance(piece, Code) and _written_file(piece))
    lines = written or (output_lines(part.result) if part.result is not None else 0)
    if diffs:
        facts.append(f"+{sum(line[:1] == '+' for line in diffs)} −{sum(line[:1] == '-' for line in diffs)}")
    elif lines > 1:
        facts.append(f"{lines:,} lines")
    if part.seconds is not None and part.seconds >= MIN_SECONDS:
        facts.append(duration(part.seconds))
    return facts
