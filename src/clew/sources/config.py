"""The file `sources.jsonl` in clew's data folder: one line for each source that the user added."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from clew.errors import UsageError
from clew.host import data_dir
from clew.io.atomic import write_atomic

FILE = "sources.jsonl"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}")
_ODD = re.compile(r"[^A-Za-z0-9_.@-]+")


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of the file. `off`: a home that is found automatically, and that the user removed."""

    name: str
    kind: Literal["home", "ssh", "off"]
    where: str = ""


class Configuration(NamedTuple):
    """The lines of the file, those that could be parsed, and the problems of the others."""

    lines: tuple[bytes, ...] = ()
    entries: tuple[Entry, ...] = ()
    problems: tuple[str, ...] = ()


def load() -> Configuration:
    """Read the file; without it there are no sources. A line that cannot be parsed does not affect the others."""
    path = data_dir() / FILE
    try:
        lines = [line for line in path.read_bytes().splitlines() if line.strip()]
    except FileNotFoundError:
        return Configuration()
    entries, problems, taken = [], [], set()
    for number, line in enumerate(lines, 1):
        try:
            entry = checked(msgspec.json.decode(line, type=Entry))
        except (msgspec.DecodeError, UnicodeDecodeError, UsageError) as error:
            problems.append(f"{path}:{number}: {error}")
            continue
        if entry.name.casefold() in taken:
            problems.append(f"{path}:{number}: {entry.name} is a duplicate")
            continue
        taken.add(entry.name.casefold())
        entries.append(entry)
    return Configuration(tuple(lines), tuple(entries), tuple(problems))


def checked(entry: Entry) -> Entry:
    """Return the entry; raises UsageError for a bad name, host or folder."""
    if entry.name.casefold() in ("local", "archive"):
        raise UsageError(f"{entry.name!r} cannot be the name of a source: that name is reserved")
    if not _NAME.fullmatch(entry.name):
        raise UsageError(f"{entry.name!r} cannot be the name of a source: letters, digits and ._@- only")
    if entry.kind == "ssh":
        from clew.sources.ssh import Target

        Target.parse(entry.where)
    if entry.kind == "home" and not Path(entry.where).is_absolute():
        raise UsageError(f"{entry.where!r} is not an absolute path")
    return entry


def add(entry: Entry) -> None:
    """Append an entry."""
    now = load()
    _write((*now.lines, msgspec.json.encode(checked(entry))))


def remove(name: str) -> None:
    """Delete the entry with this name; lines that cannot be parsed stay."""
    kept = []
    for line in load().lines:
        try:
            if msgspec.json.decode(line, type=Entry).name == name:
                continue
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
        kept.append(line)
    _write(tuple(kept))


def _write(lines: tuple[bytes, ...]) -> None:
    write_atomic(data_dir() / FILE, b"".join(line + b"\n" for line in lines))


def default_name(text: str) -> str:
    """Return a name for a source, made of a host or a folder name."""
    return _ODD.sub("-", text).strip("-.")[:64]
