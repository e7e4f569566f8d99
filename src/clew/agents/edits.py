"""Edits as functions of content: replacements, whole texts, hunks of a unified diff. What does not fit gives None."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from clew.agents.file_evidence import Absent, Edit, FileContent, KnownContent, as_text

_HEAD = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_NO_NEWLINE = "\\"
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
"""Byte order marks of UTF-8 and UTF-16."""


class Replacement(NamedTuple):
    """One text for another, once or wherever it stands."""

    old: str
    new: str
    every: bool = False


class Hunk(NamedTuple):
    """Lines of one place: the first old line (from 1), the lines that were there, the lines that are now."""

    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]


def replacing(replacements: Sequence[Replacement]) -> Edit:
    """The edit that makes replacements in turn, in text whose lines end as the file's do."""

    def edit(base: KnownContent | None) -> KnownContent | None:
        text = plain(base)
        if text is None:
            return None
        for one in replacements:
            old, new = one.old.replace("\r\n", "\n"), one.new.replace("\r\n", "\n")
            count = text.count(old) if old else int(not text)
            if count == 0 or (count > 1 and not one.every):
                return None
            text = text.replace(old, new) if old else new
        return with_line_endings_of(text, base)

    return edit


def plain(base: KnownContent | None) -> str | None:
    """Content as an editing tool sees it: characters, lines that end in "\\n", no byte order mark."""
    if not isinstance(base, FileContent):
        return None
    wide = base.body.startswith(_MARKS[1:])
    try:
        text = base.body.decode("utf-16" if wide else "utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError:
        return None
    return text.replace("\r\n", "\n") if "\r" in text else text


def with_line_endings_of(text: str, base: KnownContent | None) -> FileContent | None:
    """New text in a file that ends its lines as the base does; exact only where that is known and the same for all."""
    if not isinstance(base, FileContent) or not base.exact or b"\0" in base.body:
        return as_text(text)
    returns, feeds = base.body.count(b"\r\n"), base.body.count(b"\n")
    if "\r" in text or base.body.count(b"\r") != returns or returns not in (0, feeds):
        return as_text(text)
    mark = "\ufeff" if base.body.startswith(b"\xef\xbb\xbf") else ""
    body = (text.replace("\n", "\r\n") if returns else text).encode("utf-8", "surrogatepass")
    return FileContent(mark.encode() + body, True)


def parse_hunks(diff: str) -> list[Hunk] | None:
    """The hunks of a unified diff; None where it is none."""
    hunks: list[Hunk] = []
    lines = diff.split("\n")
    at = 0
    while at < len(lines):
        head = _HEAD.match(lines[at])
        if head is None:
            if hunks and lines[at:] != [""]:
                return None
            at += 1
            continue
        begin = at = at + 1
        # The head says how many lines follow, since a line may look like anything.
        old, new = int(head[2] or 1), int(head[4] or 1)
        while at < len(lines) and (old > 0 or new > 0 or lines[at].startswith(_NO_NEWLINE)):
            sign = lines[at][:1]
            old -= sign in (" ", "-", "")
            new -= sign in (" ", "+", "")
            at += 1
        hunk = make_hunk(int(head[1]), lines[begin:at])
        if hunk is None:
            return None
        hunks.append(hunk)
    return hunks or None


def make_hunk(start: int, lines: Sequence[str]) -> Hunk | None:
    """A hunk of signed lines; "\\" behind a line says that no newline ends it."""
    sides: tuple[list[str], list[str]] = ([], [])
    last: tuple[int, ...] = ()
    for line in lines:
        sign, text = line[:1], line[1:]
        if sign == _NO_NEWLINE:
            for side in last:
                sides[side][-1] = sides[side][-1].removesuffix("\n")
            continue
        last = {" ": (0, 1), "": (0, 1), "-": (0,), "+": (1,)}.get(sign, ())
        if not last:
            return None
        for side in last:
            sides[side].append(text + "\n")
    return Hunk(start, tuple(sides[0]), tuple(sides[1]))


def changing(change: Callable[[str], str | None]) -> Edit:
    """The edit that changes the text of a file as it is, with the bytes that end its lines."""

    def edit(base: KnownContent | None) -> KnownContent | None:
        if not isinstance(base, FileContent):
            return None
        try:
            done = change(base.body.decode())
        except UnicodeDecodeError:
            return None
        return FileContent(done.encode(), base.exact) if done is not None else None

    return edit


def patched(text: str, hunks: Sequence[Hunk]) -> str | None:
    """The text with hunks applied; every old line must stand where the hunk says."""
    lines = text.split("\n")
    whole = [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    result: list[str] = []
    at = 0
    for hunk in hunks:
        begin = hunk.start - 1 if hunk.old else hunk.start
        begin = max(begin, 0)
        if begin < at or tuple(whole[begin : begin + len(hunk.old)]) != hunk.old:
            return None
        result += whole[at:begin]
        result += hunk.new
        at = begin + len(hunk.old)
    return "".join(result + whole[at:])


def patching(hunks: Sequence[Hunk], replacements: Sequence[Replacement]) -> Edit:
    """The edit that applies hunks to text whose lines end as the file's do; where they do not fit, replacements."""
    replace = replacing(replacements) if replacements else None

    def edit(base: KnownContent | None) -> KnownContent | None:
        text = plain(base)
        done = patched(text, hunks) if text is not None and hunks else None
        if done is not None:
            return with_line_endings_of(done, base)
        return replace(base) if replace is not None else None

    return edit


def writing(text: str, *, verbatim: bool = False) -> Edit:
    """The edit that replaces a file whole.

    Over content unknown, how lines end is known only of a tool that writes what it is given (`verbatim`).
    """

    def edit(base: KnownContent | None) -> KnownContent | None:
        is_exact = isinstance(base, Absent) or (verbatim and not text.startswith("\ufeff"))
        if isinstance(base, FileContent) and base.exact:
            is_exact = is_exact or not (b"\r" in base.body or b"\0" in base.body or base.body.startswith(_MARKS))
        if not is_exact:
            return as_text(text)
        try:
            return FileContent(text.encode(), True)
        except UnicodeEncodeError:
            return None

    return edit


def writing_behind_mark(text: str) -> Edit:
    """The edit of a tool that writes what it is given, and keeps a byte order mark that it finds."""

    def edit(base: KnownContent | None) -> KnownContent | None:
        has_no_mark = isinstance(base, FileContent) and base.exact and not base.body.startswith(_MARKS)
        return writing(text, verbatim=has_no_mark)(base)

    return edit


def rewriting(text: str) -> Edit:
    """The edit that gives a file new text, in lines that end as those before it."""
    plain_text = text.removeprefix("\ufeff").replace("\r\n", "\n")

    def edit(base: KnownContent | None) -> KnownContent | None:
        return as_text(text) if "\ufffd" in text else with_line_endings_of(plain_text, base)

    return edit
