"""Archived sessions as homes that every command can read: files that are gone are written to a cache.

The cache repeats the paths of the files below a folder of clew's own, as the mirror of another machine does. It can be
deleted at any time; files are written again when a command needs them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Container
from pathlib import Path
from typing import cast

import msgspec

from clew.agents.source import SourceFile, source_state
from clew.archive.archive import Archive, open_archive
from clew.archive.records import FileKey, SourceHome, Version
from clew.datadir import private_folder
from clew.errors import SourceUnreadable, UsageError
from clew.host import ARCHIVED, Host, Kind, data_dir
from clew.io.atomic import write_atomic
from clew.io.database_paths import is_in_database
from clew.sources.mirror import Mirror


def archived_hosts(folder: Path) -> tuple[tuple[Host, ...], list[str]]:
    """Return a host for each home with sessions that are gone, and what could not be extracted."""
    hosts: list[Host] = []
    with open_archive(folder) as archive:
        problems = [str(damage) for damage in archive.problems]
        for home, versions in _files_of_gone_sessions(archive).items():
            host = _extract_home(archive, home, versions, problems)
            hosts += [host] if host is not None else []
    return tuple(hosts), problems


def _files_of_gone_sessions(archive: Archive) -> dict[SourceHome, list[Version]]:
    """Return for each home the files of sessions whose main file is gone, and the shared files of their agents."""
    gone = {one.file for one in archive.newest() if one.role == "main" and is_gone(one)}
    agents = {(one.home, one.agent) for one in archive.newest() if one.session_key in gone}
    found: dict[SourceHome, list[Version]] = {}
    for version in archive.newest():
        wanted = found.setdefault(version.home, [])
        is_shared = version.role == "shared" and (version.home, version.agent) in agents
        if version.session_key in gone or is_shared:
            wanted.append(version)
    return found


def catalog_path(session_key: FileKey, known: Container[Path]) -> Path:
    """The path by which catalogs know a session: that of its main file, or else that of the copy in the cache."""
    home, main = session_key
    path = _local_path(home, main)
    copy = _mirror(home).files / _posix_path(os.fsdecode(main)).lstrip("/")
    return copy if path not in known and copy in known else path


def _local_path(home: SourceHome, path: bytes) -> Path:
    """Where a file is, or was, on this machine."""
    original = Path(os.fsdecode(path))
    return Path(home.base, *original.parts[1:]) if home.base else original


def is_gone(version: Version) -> bool:
    """Return True where a file is no longer at its path on this machine."""
    path = _local_path(version.home, version.path)
    if is_in_database(str(path)):
        try:
            source_state(SourceFile(version.agent, path))
        except OSError:
            return True
        except SourceUnreadable:
            pass
        return False
    return not os.path.exists(path)  # noqa: PTH110 - Path.exists raises below folders of other users


def _mirror(home: SourceHome) -> Mirror:
    """The part of the cache for the files of a home."""
    name = hashlib.sha256(msgspec.json.encode(home)).hexdigest()[:16]
    return Mirror(data_dir() / ARCHIVED / name, home.name or "")


def _extract_home(archive: Archive, home: SourceHome, versions: list[Version], problems: list[str]) -> Host | None:
    """Write the files of a home to the cache, remove others from it, and return the home they make."""
    mirror, listed = _mirror(home), set()
    for version in versions:
        try:
            path = _posix_path(os.fsdecode(version.path))
            copy = mirror.place(path)
            listed.add(path)
            _extract(archive, version, copy)
        except (SourceUnreadable, UsageError) as error:
            problems.append(f"{os.fsdecode(version.path)}: {error}")
    for path in mirror.gone(listed):
        mirror.place(path).unlink(missing_ok=True)
    if not versions:
        return None
    try:
        host = mirror.host(_posix_path(home.path), dict(home.env))
    except UsageError as error:
        problems.append(f"{home.path}: {error}")
        return None
    return host._replace(kind=cast(Kind, home.kind), name=home.name)


def clear_cache() -> None:
    """Remove all extracted files."""
    shutil.rmtree(data_dir() / ARCHIVED, ignore_errors=True)


def _posix_path(path: str) -> str:
    """Return a path of any system as one with slashes."""
    return path if path.startswith("/") else "/" + path.replace("\\", "/").replace(":", "")


def _extract(archive: Archive, version: Version, copy: Path) -> None:
    """Write a file to the cache, unless it is there."""
    try:
        known = copy.stat()
        if (known.st_size, known.st_mtime_ns) == (version.size, version.mtime_ns):
            return
    except OSError:
        pass
    private_folder(str(copy.parent))
    write_atomic(copy, archive.content(version))
    os.utime(copy, ns=(version.mtime_ns, version.mtime_ns))
