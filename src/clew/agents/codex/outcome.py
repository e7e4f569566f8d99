"""How a tool call went, from the text of its result: Codex keeps no flag for it."""

from __future__ import annotations

import re
from functools import lru_cache
from math import isfinite
from typing import NamedTuple

from msgspec import Raw

from clew.io.codec import NOT_JSON, loads, loads_text
from clew.model.json import JSON

HEAD, TAIL = 200, 160
"""So many characters at the beginning and the end tell all there is to tell."""

_AGENT = "codex"
_QUOTE, _BRACKET = b'"['
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


_BEGINS = (
    rb"Exit code: (-?\d{1,9})\\nWall time: ([\d.]{1,20}) seconds?\\n"
    rb"|(?:Chunk ID: [^\s\\]+\\n)?Wall time: ([\d.]{1,20}) seconds?\\n"
    rb"(?:Process exited with code (-?\d{1,9})|(Process running with))|(\{)|(" + "|".join(_FAILED).encode() + rb")"
)
_SPELLED = re.compile(_BEGINS).match
_QUOTED = re.compile(rb'"(?:' + _BEGINS + rb")?").match
_SPELLED_METADATA = re.compile(rb'\\"exit_code\\":(-?\d{1,9}),\\"duration_seconds\\":([\d.eE+-]{1,24})\}\}"').search


class Outcome(NamedTuple):
    """What is known: None is unknown."""

    is_error: bool | None = None
    exit_code: int | None = None
    duration: float | None = None


UNKNOWN = Outcome()


def outcome(output: JSON) -> Outcome:
    """The outcome that a result tells, whether text or blocks."""
    if type(output) is str:
        return _of_text(output[:HEAD], output[-TAIL:])
    if type(output) is list:
        first = output[0] if output else None
        text = first.get("text") if type(first) is dict else None
        return _of_script(text[:HEAD]) if type(text) is str else UNKNOWN
    return UNKNOWN


def outcome_of_raw(output: Raw) -> Outcome:
    """The same for a result that was not looked into."""
    view = memoryview(output)
    first = view[0]
    if first == _QUOTE:
        head = _cut_string(bytes(view[: 2 * HEAD])) if len(view) > 2 * HEAD else loads_text(output)
        return _of_text(head[:HEAD], bytes(view[-2 * TAIL : -1]).replace(b'\\"', b'"').decode(errors="replace"))
    return outcome(loads_text(output)) if first == _BRACKET else UNKNOWN


def _cut_string(head: bytes) -> str:
    """A JSON string that was cut off; the cut may have gone through a character or an escape."""
    for end in range(len(head), len(head) - 12, -1):
        try:
            text: str = loads(head[:end] + b'"')
            return text
        except NOT_JSON:
            continue
    return ""


def _of_text(head: str, tail: str) -> Outcome:
    if head.startswith("{"):
        found = _STRUCTURED.search(tail)
        return _exited(found[1], found[2]) if found and head.startswith('{"output":') else UNKNOWN
    if found := _EXIT.match(head):
        return _exited(found[1], found[2])
    if found := _PROCESS.match(head):
        return Outcome(None, None, _seconds(found[1])) if found[3] else _exited(found[2], found[1])
    return Outcome(True) if head.startswith(_FAILED) else UNKNOWN


def _of_script(head: str) -> Outcome:
    found = _SCRIPT.match(head)
    if found is None:
        return _of_text(head, head)
    return Outcome({"completed": False, "failed": True}.get(found[1]))


def _exited(code: str, seconds: str) -> Outcome:
    return Outcome(int(code) != 0, int(code), _seconds(seconds))


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    # Adding nothing makes one zero of two.
    return seconds + 0.0 if isfinite(seconds) else None


def outcome_of_spelled(output: Raw) -> Outcome | None:
    """The same for a result as it is spelled, which must be valid JSON; None where it is no string."""
    found = _QUOTED(output)
    if found is None or found.end() > HEAD:
        return None
    if found.end() == 1:
        return UNKNOWN
    return _told_inside(bytes(output), 1) if found[6] else _told_spelled(found.groups())


def outcome_of_line(text: bytes, at: int) -> Outcome:
    """The same for a line, from the first letter of its result on; the result must be a string."""
    found = _SPELLED(text, at)
    if found is None:
        return UNKNOWN
    return _told_inside(text, at) if found[6] else _told_spelled(found.groups())


def _told_inside(text: bytes, at: int) -> Outcome:
    """A result that is JSON tells at its end."""
    if not text.startswith(b'{\\"output\\":', at):
        return UNKNOWN
    told = _SPELLED_METADATA(text, max(at, len(text) - 2 * TAIL))
    return _exited_spelled(told[1], told[2]) if told else UNKNOWN


@lru_cache(1024)
def _exited_spelled(code: bytes, seconds: bytes) -> Outcome:
    return _exited(code.decode(), seconds.decode())


@lru_cache(1024)
def _told_spelled(groups: tuple[bytes | None, ...]) -> Outcome:
    code, seconds, passed, exited, running, _, failed = [group and group.decode() for group in groups]
    if failed:
        return Outcome(True)
    if running:
        return Outcome(None, None, _seconds(passed or ""))
    return _exited(code or exited or "", seconds or passed or "")


def note_outcome(block: dict[str, JSON], found: Outcome) -> None:
    """Add what is known of how the call went."""
    if found.is_error is not None:
        block["is_error"] = found.is_error
    facts: dict[str, JSON] = {} if found.exit_code is None else {"exit_code": found.exit_code}
    if found.duration is not None:
        facts["duration"] = found.duration
    if facts:
        block["extensions"] = {_AGENT: facts}
