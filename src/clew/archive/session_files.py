"""Which files are archived: those of each session, and those that an agent keeps for all of its sessions."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from clew.agents.backups import is_behind_link
from clew.agents.base import Agent, SourceFile
from clew.archive.records import Role
from clew.host import Host
from clew.io.paths import walk


class FileToCapture(NamedTuple):
    """A file to archive."""

    host: Host
    agent: str
    session: Callable[[], str]
    """Returns the session's id; it may have to read the file for it."""
    role: Role
    main: Path
    """The main file of the session."""
    path: Path


def files_of(host: Host, agent: Agent, source: SourceFile) -> Iterator[FileToCapture]:
    """Yield the files of a session: its main file, its parts and sides, and the copies of files that go with it."""
    folder = source.path.parent
    named: list[tuple[Role, Path]] = [("main", source.path)]
    named += [("part", folder / name) for name in source.parts]
    named += [("side", folder / name) for name in source.sides]
    places = [place for place in agent.copies(source) if not is_behind_link(place, source.path)]
    named += [("copy", path) for place in places for path in _regular_files(place)]
    for role, path in named:
        yield FileToCapture(host, agent.id, partial(agent.session_id, source), role, source.path, path)


def companions_of(host: Host, agents: Iterable[Agent]) -> Iterator[FileToCapture]:
    """Yield the files that agents keep for all of their sessions."""
    for agent in agents:
        for place in agent.companions(host):
            for path in _regular_files(place):
                yield FileToCapture(host, agent.id, str, "shared", path, path)


def without_duplicates(files: Iterable[FileToCapture]) -> list[FileToCapture]:
    """Return every file once: as the main file of a session if it is one, as shared if several sessions name it."""
    found: dict[tuple[int, Path], FileToCapture] = {}
    for file in files:
        key = id(file.host), file.path
        known = found.setdefault(key, file)
        if known.role == "main" or (known.main == file.main and file.role != "main"):
            continue
        shared = file._replace(session=str, role="shared", main=file.path)
        found[key] = file if file.role == "main" else shared
    return list(found.values())


def _regular_files(place: Path) -> Iterator[Path]:
    """Yield a file, or all files below a folder; links are not followed."""
    try:
        found = place.lstat()
    except OSError:
        return
    if stat.S_ISREG(found.st_mode):
        yield place
    elif stat.S_ISDIR(found.st_mode):
        for below, names, files in walk(place):
            names.sort()
            for name in sorted(files):
                path = Path(below) / name
                if path.is_file() and not path.is_symlink():
                    yield path
