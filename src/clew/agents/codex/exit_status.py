"""How a tool call went, from the text of its result: Codex keeps no flag for it."""

from __future__ import annotations

import re
from math import isfinite
from typing import NamedTuple

from clew.model.json import JSON

HEAD_CHARS, TAIL_CHARS = 200, 160
"""The status stands within so many characters at the beginning or the end of a result."""

_EXIT = re.compile(r"Exit code: (-?\d{1,9})\nWall time: ([\d.]{1,20}) seconds?\n")
_PROCESS = re.compile(
    r"(?:Chunk ID: \S+\n)?Wall time: ([\d.]{1,20}) seconds?\n"
    r"(?:Process exited with code (-?\d{1,9})|(Process running with))"
)
_STRUCTURED = re.compile(r'"metadata":\{"exit_code":(-?\d{1,9}),"duration_seconds":([\d.eE+-]{1,24})\}\}$')
_SCRIPT = re.compile(r"Script (completed|failed|running)")
_FAILED = (
    "failed in sandbox",
    "execution error",
    "exec_command failed",
    "write_stdin failed",
    "apply_patch verification failed",
    "error: ",
    "exec command rejected by user",
    "aborted by user after ",
)


class ExitStatus(NamedTuple):
    """What is known of how a call went; None is unknown."""

    is_error: bool | None = None
    exit_code: int | None = None
    duration: float | None = None
    """In seconds."""


UNKNOWN = ExitStatus()


def exit_status(output: JSON) -> ExitStatus:
    """The status that a result tells, whether it is a text or a list of blocks."""
    if type(output) is str:
        return _of_text(output[:HEAD_CHARS], output[-TAIL_CHARS:])
    if type(output) is list:
        first = output[0] if output else None
        text = first.get("text") if type(first) is dict else None
        return _of_script(text[:HEAD_CHARS]) if type(text) is str else UNKNOWN
    return UNKNOWN


def _of_text(head: str, tail: str) -> ExitStatus:
    if head.startswith("{"):
        found = _STRUCTURED.search(tail)
        return _exited(found[1], found[2]) if found and head.startswith('{"output":') else UNKNOWN
    if found := _EXIT.match(head):
        return _exited(found[1], found[2])
    if found := _PROCESS.match(head):
        return ExitStatus(None, None, _seconds(found[1])) if found[3] else _exited(found[2], found[1])
    return ExitStatus(True) if head.startswith(_FAILED) else UNKNOWN


def _of_script(head: str) -> ExitStatus:
    """The status of a script in code mode, which stands in the first block of its result."""
    found = _SCRIPT.match(head)
    if found is None:
        return _of_text(head, head)
    return ExitStatus({"completed": False, "failed": True}.get(found[1]))


def _exited(code: str, seconds: str) -> ExitStatus:
    return ExitStatus(int(code) != 0, int(code), _seconds(seconds))


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    # Adding zero makes 0.0 of -0.0.
    return seconds + 0.0 if isfinite(seconds) else None
