"""Patches as the model writes them for apply_patch: lines to find and lines to put there, without line numbers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from clew.agents.edits import changing
from clew.agents.file_evidence import ABSENT, Edit, FileChange, absolute, as_bytes

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_ADD, _DELETE, _UPDATE, _MOVE = "*** Add File: ", "*** Delete File: ", "*** Update File: ", "*** Move to: "
_EOF = "*** End of File"
_HEREDOC = re.compile(
    r"\s*(?:cd\s+(?P<folder>[^\s;&|<>$`]+)\s*&&\s*)?(?:apply_patch|applypatch)\s+<<-?\s*(?P<quote>['\"]?)(?P<mark>\w+)(?P=quote)\n"
    r"(?P<patch>.*)\n(?P=mark)\s*",
    re.DOTALL,
)
_QUOTED = re.compile(r"\s*(?:apply_patch|applypatch)\s+(?P<patch>'.*'|\".*\")\s*", re.DOTALL)


class Chunk(NamedTuple):
    """One place of an update: the line it is looked for behind, what stands there, what will."""

    context: str | None
    old: tuple[str, ...]
    new: tuple[str, ...]
    at_end: bool


class Section(NamedTuple):
    """What a patch does to one file. A new file has its content, an update its chunks; otherwise it is deleted."""

    path: str
    content: str | None = None
    chunks: tuple[Chunk, ...] | None = None
    target: str | None = None
    """Where the file is moved."""


def in_command(command: str) -> tuple[str, str | None] | None:
    """The patch that a shell command applies, and the folder it goes to first; None where it is something else."""
    found = _HEREDOC.fullmatch(command)
    if found is not None:
        return found["patch"], found["folder"]
    found = _QUOTED.fullmatch(command)
    if found is None:
        return None
    try:
        words = shlex.split(found["patch"])
    except ValueError:
        return None
    return (words[0], None) if len(words) == 1 else None


def parse(patch: str) -> list[Section] | None:
    """The sections of a patch; None where it is none."""
    lines = patch.strip().split("\n")
    if len(lines) < 2 or lines[0].strip() != _BEGIN or lines[-1].strip() != _END:
        return None
    sections: list[Section] = []
    for head, body in _split(lines[1:-1]):
        section = _section(head, body)
        if section is None:
            return None
        sections.append(section)
    return sections or None


def patch_changes(patch: str, folder: str | None, call: int, done: int) -> Iterator[FileChange]:
    """What a patch did to files, by its own words; `folder` is where it was applied."""
    for section in parse(patch) or ():
        path = absolute(section.path, folder)
        if section.content is not None:
            yield FileChange(path, "create", call, done, "record", after=as_bytes(section.content))
        elif section.chunks is None:
            yield FileChange(path, "delete", call, done, "record", after=ABSENT)
        else:
            target = absolute(section.target, folder) if section.target else None
            yield from moved_file(path, target, changing(partial(updated, chunks=section.chunks)), call, done)


def moved_file(path: str, target: str | None, edit: Edit | None, call: int, done: int) -> Iterator[FileChange]:
    """An edit of a file, which may move it."""
    if target is None or target == path:
        yield FileChange(path, "change", call, done, "edit", edit=edit)
        return
    yield FileChange(target, "create", call, done, "edit", edit=edit, source=path)
    yield FileChange(path, "delete", call, done, "edit", after=ABSENT)


def _split(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    head: str | None = None
    body: list[str] = []
    for line in lines:
        if line.startswith((_ADD, _DELETE, _UPDATE)):
            if head is not None:
                yield head, body
            head, body = line, []
        elif head is not None:
            body.append(line)
        elif line.strip():
            yield line, []
    if head is not None:
        yield head, body


def _section(head: str, body: list[str]) -> Section | None:
    if head.startswith(_ADD):
        if not all(line.startswith("+") for line in body):
            return None
        return Section(head[len(_ADD) :].strip(), "".join(line[1:] + "\n" for line in body))
    if head.startswith(_DELETE):
        return Section(head[len(_DELETE) :].strip()) if not "".join(body).strip() else None
    if not head.startswith(_UPDATE):
        return None
    target = body.pop(0)[len(_MOVE) :].strip() if body and body[0].startswith(_MOVE) else None
    chunks = _chunks(body)
    return Section(head[len(_UPDATE) :].strip(), chunks=chunks, target=target) if chunks is not None else None


def _chunks(body: list[str]) -> tuple[Chunk, ...] | None:
    chunks: list[Chunk] = []
    context: str | None = None
    old: list[str] = []
    new: list[str] = []
    for line in [*body, "@@"]:
        if line == _EOF or line == "@@" or line.startswith("@@ "):
            if old or new:
                chunks.append(Chunk(context, tuple(old), tuple(new), line == _EOF))
                old, new = [], []
            context = line[3:] or None if line != _EOF else None
        elif line[:1] in (" ", "-", "+", ""):
            if line[:1] != "+":
                old.append(line[1:])
            if line[:1] != "-":
                new.append(line[1:])
        else:
            return None
    return tuple(chunks)


def updated(text: str, chunks: Sequence[Chunk]) -> str | None:
    """The text with an update made; it ends in a newline then. Lines are found only letter for letter."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    changes: list[tuple[int, int, tuple[str, ...]]] = []
    at = 0
    for chunk in chunks:
        if chunk.context is not None:
            found = _seek(lines, (chunk.context,), at, False)
            if found is None:
                return None
            at = found + 1
        if not chunk.old:
            changes.append((len(lines), 0, chunk.new))
            continue
        place = _seek(lines, chunk.old, at, chunk.at_end)
        if place is None:
            return None
        changes.append((place, len(chunk.old), chunk.new))
        at = place + len(chunk.old)
    for place, count, new in sorted(changes, reverse=True):
        lines[place : place + count] = new
    return "\n".join([*lines, ""])


def _seek(lines: Sequence[str], wanted: Sequence[str], start: int, at_end: bool) -> int | None:
    if at_end:
        start = max(start, len(lines) - len(wanted))
    for at in range(start, len(lines) - len(wanted) + 1):
        if tuple(lines[at : at + len(wanted)]) == tuple(wanted):
            return at
    return None
