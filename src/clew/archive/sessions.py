"""The sessions of an archive one by one, for who reads them elsewhere: another machine, a worker of a cluster.

Nothing here looks at the homes of this machine. Files are read when they are asked for, in the order in which they
lie in the packs, so that a pass over all of them unpacks each block about once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from clew.archive.layout import Place, Role, Version
from clew.archive.reading import Reader
from clew.archive.state import State


class ArchivedFile(NamedTuple):
    """The newest version of a file."""

    path: str
    """Where it lay, as its own machine spells it; bytes that are no text come back with `os.fsencode`."""
    role: Role
    size: int
    mtime_ns: int
    mode: int
    digest: bytes
    """SHA-256."""
    version: Version
    reader: Reader

    def read(self) -> bytes:
        """Its content; raises SourceUnreadable where that is damaged."""
        return self.reader.content(self.version)

    def pieces(self) -> Iterator[bytes]:
        """Its content piece by piece; only the end tells whether all of it was right."""
        return self.reader.pieces(self.version)


class ArchivedSession(NamedTuple):
    """A session with all its files."""

    agent: str
    id: str
    path: str
    """Of its main file."""
    place: Place
    """The home it comes from: kind and name of the host, the home's path there, the agents' variables."""
    files: tuple[ArchivedFile, ...]
    """The main file first, then its parts, sides and copies."""
    shared: tuple[ArchivedFile, ...]
    """What the agent looks up for all sessions of that home."""

    @property
    def size(self) -> int:
        """The bytes of its own files."""
        return sum(file.size for file in self.files)


@contextmanager
def opened(folder: Path) -> Iterator[Reader]:
    """An archive opened for reading; what is damaged in its manifests stands in `reader.state.problems`."""
    reader = Reader(folder)
    try:
        yield reader
    finally:
        reader.close()


def sessions(
    reader: Reader, agents: Sequence[str] | None = None, part: int = 0, parts: int = 1
) -> Iterator[ArchivedSession]:
    """Every session as it was last seen, or one of several parts of them that are about equally large."""
    shared: dict[tuple[int, str], list[ArchivedFile]] = {}
    for version in reader.state.newest():
        if version.role == "shared":
            shared.setdefault((version.place, version.agent), []).append(_file(reader, version))
    for files in _groups(reader.state, agents, part, parts):
        main = files[0]
        yield ArchivedSession(
            agent=main.agent,
            id=main.session,
            path=os.fsdecode(main.main),
            place=reader.state.places[main.place],
            files=tuple(_file(reader, version) for version in files),
            shared=tuple(shared.get((main.place, main.agent), ())),
        )


def files(reader: Reader) -> Iterator[ArchivedFile]:
    """The newest version of every file, whatever it is to a session."""
    return (_file(reader, version) for version in reader.state.newest())


def _file(reader: Reader, version: Version) -> ArchivedFile:
    path = os.fsdecode(version.path)
    return ArchivedFile(
        path, version.role, version.size, version.mtime_ns, version.mode, version.digest, version, reader
    )


def _groups(state: State, agents: Sequence[str] | None, part: int, parts: int) -> list[list[Version]]:
    """The files of each session, the main file first; sessions in the order of their packs."""
    groups: dict[tuple[int, bytes], list[Version]] = {}
    for version in state.newest():
        if version.role != "shared" and (agents is None or version.agent in agents):
            groups.setdefault((version.place, version.main), []).append(version)
    every = [sorted(files, key=lambda one: (one.role != "main", one.path)) for files in groups.values()]
    every.sort(key=lambda files: (files[0].runs[:1], files[0].place, files[0].path))
    total, before, chosen = sum(one.size for files in every for one in files), 0, []
    for files in every:
        if min(parts - 1, before * parts // max(1, total)) == part:
            chosen.append(files)
        before += sum(one.size for one in files)
    return chosen
