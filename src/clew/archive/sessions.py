"""The sessions of an archive one by one, for programs that read them on another machine, such as workers of a cluster.

Nothing here looks at the homes of this machine. Content is read on demand. Sessions come in the order in
which they were archived, so that a pass over all of them decompresses each block about once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from clew.archive.archive import Archive
from clew.archive.records import FileKey, Role, SourceHome, Version


class ArchivedFile(NamedTuple):
    """The newest version of a file."""

    path: str
    """As its own machine names it; bytes that are not valid text come back with `os.fsencode`."""
    role: Role
    size: int
    mtime_ns: int
    mode: int
    digest: bytes
    """SHA-256."""
    version: Version
    archive: Archive

    def read(self) -> bytes:
        """Return the content; raises SourceUnreadable where it is damaged."""
        return self.archive.content(self.version)

    def pieces(self) -> Iterator[bytes]:
        """Yield the content piece by piece; raises SourceUnreadable at the end where it is wrong."""
        return self.archive.pieces(self.version)


class ArchivedSession(NamedTuple):
    """A session with all its files."""

    agent: str
    id: str
    path: str
    """Of its main file."""
    home: SourceHome
    """The home it comes from: kind and name of the host, path of the home, environment variables of agents."""
    files: tuple[ArchivedFile, ...]
    """The main file first, then its parts, sides and copies."""
    shared: tuple[ArchivedFile, ...]
    """The files that the agent keeps for all sessions of that home."""

    @property
    def size(self) -> int:
        """The bytes of its own files."""
        return sum(file.size for file in self.files)


def sessions(
    archive: Archive, agents: Sequence[str] | None = None, part: int = 0, parts: int = 1
) -> Iterator[ArchivedSession]:
    """Yield the newest version of every session, or of those in one of several parts of about equal size."""
    shared: dict[tuple[SourceHome, str], list[ArchivedFile]] = {}
    for version in archive.newest():
        if version.role == "shared":
            shared.setdefault((version.home, version.agent), []).append(_file(archive, version))
    for files in _groups(archive, agents, part, parts):
        main = files[0]
        yield ArchivedSession(
            agent=main.agent,
            id=main.session,
            path=os.fsdecode(main.main),
            home=main.home,
            files=tuple(_file(archive, version) for version in files),
            shared=tuple(shared.get((main.home, main.agent), ())),
        )


def files(archive: Archive) -> Iterator[ArchivedFile]:
    """Yield the newest version of every file."""
    return (_file(archive, version) for version in archive.newest())


def _file(archive: Archive, version: Version) -> ArchivedFile:
    path = os.fsdecode(version.path)
    return ArchivedFile(
        path, version.role, version.size, version.mtime_ns, version.mode, version.digest, version, archive
    )


def _groups(archive: Archive, agents: Sequence[str] | None, part: int, parts: int) -> list[list[Version]]:
    """Return the files of each session, the main file first, for the sessions of one part."""
    groups: dict[FileKey, list[Version]] = {}
    for version in archive.newest():
        if version.role != "shared" and (agents is None or version.agent in agents):
            groups.setdefault(version.session_key, []).append(version)
    every = [sorted(files, key=lambda one: (one.role != "main", one.path)) for files in groups.values()]
    every.sort(key=lambda files: (files[0].capture, files[0].agent, files[0].home.path, files[0].path))
    total, before, chosen = sum(one.size for files in every for one in files), 0, []
    for files in every:
        if min(parts - 1, before * parts // max(1, total)) == part:
            chosen.append(files)
        before += sum(one.size for one in files)
    return chosen
