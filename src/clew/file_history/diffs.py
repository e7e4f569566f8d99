"""Unified diffs between two states of files."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from clew.agents.file_evidence import Absent, FileContent, KnownContent

_NO_NEWLINE = "\\ No newline at end of file\n"


_QUOTED = re.compile(r'[\x00-\x1f"\\\x7f]')
_ESCAPES = {"\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r", '"': '"', "\\": "\\"}


def unified_diff(path: str, before: KnownContent, after: KnownContent, modes: tuple[int, int] | None = None) -> str:
    """Return the diff of one file, empty if it is unchanged; names and modes are written as git does."""
    return _modes(path, modes) + _contents(path, before, after)


def _modes(path: str, modes: tuple[int, int] | None) -> str:
    if modes is None or modes[0] == modes[1]:
        return ""
    one, other = _quoted_name("a", path), _quoted_name("b", path)
    return f"diff --git {one} {other}\nold mode 100{modes[0]:03o}\nnew mode 100{modes[1]:03o}\n"


def _contents(path: str, before: KnownContent, after: KnownContent) -> str:
    if before == after or (
        isinstance(before, FileContent) and isinstance(after, FileContent) and before.body == after.body
    ):
        return ""
    one, other = _header_name("a", path, before), _header_name("b", path, after)
    if _is_binary(before) or _is_binary(after):
        return f"Binary files {one} and {other} differ\n"
    lines = difflib.unified_diff(_lines(before), _lines(after), one, other)
    # An empty file that was created or deleted has no lines.
    return "".join(_ended(lines)) or f"--- {one}\n+++ {other}\n"


def _header_name(side: str, path: str, state: KnownContent) -> str:
    return "/dev/null" if isinstance(state, Absent) else _quoted_name(side, path)


def _quoted_name(side: str, path: str) -> str:
    """Return a file name for a header, in quotes if it contains control characters, quotes or backslashes."""
    name = f"{side}/{path.lstrip('/')}"
    return name if _QUOTED.search(name) is None else f'"{_QUOTED.sub(_escaped, name)}"'


def _escaped(found: re.Match[str]) -> str:
    return "\\" + _ESCAPES.get(found[0], f"{ord(found[0]):03o}")


def _is_binary(state: KnownContent) -> bool:
    return isinstance(state, FileContent) and b"\0" in state.body[:8000]


def lines_of(body: bytes) -> list[str]:
    """Return the lines of a file with their line ends; bytes that are not valid UTF-8 are kept."""
    text = body.decode("utf-8", "surrogateescape")
    return [line + "\n" for line in text.split("\n")[:-1]] + ([last] if (last := text.rpartition("\n")[2]) else [])


def without_line_end(line: str) -> str:
    """Return a line without its line end."""
    return line.rstrip("\r\n")


def _lines(state: KnownContent) -> list[str]:
    return [] if isinstance(state, Absent) else lines_of(state.body)


def _ended(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line
        if not line.endswith("\n"):
            yield "\n" + _NO_NEWLINE
