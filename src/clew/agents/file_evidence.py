"""What the records of a session prove about files: what an agent's `file_changes` yields.

It goes through a session once, in its order, and holds no content longer than it must. Messages are named by index.
"""

from __future__ import annotations

import ntpath
import posixpath
import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import unquote

from clew.analysis.titles import short_command
from clew.model.json import JSON

Action = Literal["read", "create", "change", "delete", "snapshot", "undo", "redo", "outside"]
"""What a message did, or what a copy shows. An undo or redo is no message's: it put files back between two of them.
No record holds a change from outside: two pieces of evidence disagree, and nothing ran between them.
"""
RESTORATIONS = ("undo", "redo")
"""Changes that no message made: files were put back."""
How = Literal["backup", "record", "edit", "read"]
"""A copy that the agent made; whole content in a record; an edit of content known before; what a tool read."""


class FileContent(NamedTuple):
    """The content of a file.

    If not exact, line endings and byte order mark are unknown; the body then is UTF-8 with "\\n" and without a mark.
    """

    body: bytes
    exact: bool


class Absent(Enum):
    """There is no such file: a fact, unlike not knowing."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT
KnownContent: TypeAlias = FileContent | Absent
Edit: TypeAlias = Callable[[KnownContent | None], KnownContent | None]
"""Content from content; None is unknown. Pure."""


OTHER = "other"
"""In place of a digest: the path existed, but nothing proves that it still had the earlier content."""


class FileChange(NamedTuple):
    """What one tool did to one file, or what a copy or a reading shows of it.

    Nothing had happened yet when message `call` was written; all had when message `done` was.
    """

    path: str
    action: Action
    call: int
    done: int
    how: How
    before: KnownContent | None = None
    after: KnownContent | None = None
    edit: Edit | None = None
    """Makes the content after it, where `after` does not hold it, of the content before it."""
    source: str | None = None
    """The file that was moved here: the edit is of its content."""
    digest: str | None = None
    """SHA-256 of the content after it, where the record tells no more."""
    found: str | None = None
    """SHA-256 of the content before; "" if a file existed and no more is known; or `OTHER`."""
    note: str | None = None
    """Why there is less evidence than there could be."""
    modes: tuple[int, int] | None = None
    """Permission bits before and after; None if not recorded."""
    leaves_other: bool = False
    """What it left is known to be no file, such as a link."""


class WriterStarted(NamedTuple):
    """Something began after message `call` that can change any file: a command, a sub-agent, a foreign tool."""

    key: str
    call: int
    what: str
    observed_paths: frozenset[str] = frozenset()
    """Files that the agent watched while it ran: each change of them has a `FileChange` of its own."""
    is_cut_off: bool = False
    """The watch was interrupted: the list of changed files is incomplete."""
    only: frozenset[str] | None = None
    """The files that it can have changed, where not any."""


class WriterFinished(NamedTuple):
    """It was over when message `done` was written."""

    key: str
    done: int


class NoExternalRestore(NamedTuple):
    """Between the previous message and this one no file was restored, except as `FileChange`s say."""

    message: int


class WrittenDuringRun(NamedTuple):
    """A message written while a tool of message `call` was changing watched files.

    Snapshots before and after it do not show the files at this message.
    """

    message: int
    call: int
    files: frozenset[str]


Event: TypeAlias = FileChange | WriterStarted | WriterFinished | NoExternalRestore | WrittenDuringRun


def snapshot(path: str, index: int, content: KnownContent | None) -> FileChange:
    """A file as it was at a message, by a copy; None where the copy is missing."""
    note = None if content is not None else "the copy of it is missing"
    return FileChange(path, "snapshot", index, index, "backup", content, content, note=note)


_DRIVE = re.compile(r"[A-Za-z]:(?=[\\/]|$)")
_URI = re.compile(r"file://(?:localhost|(?P<host>[^/]+))?(?=/)", re.IGNORECASE)


def tool_call(block: dict[str, JSON]) -> tuple[str, str, dict[str, JSON]] | None:
    """Id, tool and arguments of a `tool_use` block; None for a call without an id or a name."""
    key, name, given = block.get("tool_id"), block.get("tool_name"), block.get("input")
    if not isinstance(key, str) or not isinstance(name, str):
        return None
    return key, name, given if isinstance(given, dict) else {}


def writer_started(key: str, call: int, name: str, command: JSON) -> WriterStarted:
    """A call of a tool that can change any file: it is called by its command where it has one."""
    return WriterStarted(key, call, f"`{short_command(command)}`" if isinstance(command, str) else name)


def first_text(given: Mapping[str, JSON], *names: str) -> str | None:
    """The first of the named arguments that is a text."""
    return next((given[name] for name in names if isinstance(given.get(name), str)), None)


def as_text(text: JSON) -> FileContent | None:
    """Content of which a record keeps the characters; None where some of them are lost, or it is no text."""
    found = as_bytes(text)
    if found is None:
        return None
    return FileContent(found.body.replace(b"\r\n", b"\n").removeprefix(b"\xef\xbb\xbf"), False)


def as_bytes(text: JSON) -> FileContent | None:
    """Content of which a record keeps every byte, as UTF-8; None where some are lost, or it is no text."""
    if not isinstance(text, str) or "\ufffd" in text:
        return None
    try:
        return FileContent(text.encode(), True)
    except UnicodeEncodeError:
        return None


def absolute(path: str, folder: str | None) -> str:
    """Normalize a recorded path: absolute if possible, with `/`; does not touch the disk."""
    uri = _URI.match(path)
    if uri is not None:
        path = unquote(path[uri.end() :])
        if uri["host"] is not None:
            # What another machine shares, as Windows spells it.
            path = f"\\\\{uri['host']}{path}"
        path = path[1:] if _DRIVE.match(path, 1) else path
    if is_windows(path):
        return _windows(path)
    if path.startswith(("/", "~")) or not folder:
        return _posix(path)
    base = absolute(folder, None)
    return _windows(f"{base}/{path}") if is_windows(base) else _posix(f"{base}/{path}")


def is_windows(path: str) -> bool:
    """True for an absolute path of Windows."""
    return _DRIVE.match(path) is not None or path.startswith("\\\\")


def _windows(path: str) -> str:
    plain = ntpath.normpath(path).replace("\\", "/")
    return plain[0].upper() + plain[1:]


def _posix(path: str) -> str:
    plain = posixpath.normpath(path)
    return plain[1:] if plain.startswith("//") else plain
