"""Archived sessions as homes that every command reads: files that are gone from their place, written to a cache.

A cache repeats the paths below a folder of clew's own, as the mirror of another machine does. What is in it can go at
any time; it is written again when it is asked for.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import msgspec

from clew.archive.layout import Place, Version
from clew.archive.reading import Reader
from clew.archive.state import State
from clew.datadir import private_folder
from clew.errors import SourceUnreadable, UsageError
from clew.host import ARCHIVED, Host, Kind, data_dir
from clew.io.atomic import write_atomic
from clew.sources.mirror import Mirror


def archived_hosts(folder: Path, env: Mapping[str, str] | None = None) -> tuple[tuple[Host, ...], list[str]]:
    """A home for each home whose sessions are gone, and what could not be brought back."""
    reader = Reader(folder)
    problems = [str(damage) for damage in reader.state.lost]
    try:
        cache = data_dir(env) / ARCHIVED
        found = [_host(reader, place, versions, cache, problems) for place, versions in _wanted(reader.state)]
    finally:
        reader.close()
    return tuple(host for host in found if host is not None), problems


def _wanted(state: State) -> Iterator[tuple[Place, list[Version]]]:
    """For each home the files of sessions whose main file is gone, and those that such sessions share."""
    for number, place in enumerate(state.places):
        newest = [version for version in state.newest() if version.place == number]
        gone = {version.path: version.agent for version in newest if version.role == "main" and is_gone(place, version)}
        agents = set(gone.values())
        yield place, [one for one in newest if one.main in gone or (one.role == "shared" and one.agent in agents)]


def is_gone(place: Place, version: Version) -> bool:
    """True where the file is no longer in its place on this machine."""
    path = Path(os.fsdecode(version.path))
    path = Path(place.base, *path.parts[1:]) if place.base else path
    return not os.path.exists(path)  # noqa: PTH110 - Path.exists raises below folders that others keep to themselves


def _host(reader: Reader, place: Place, versions: list[Version], cache: Path, problems: list[str]) -> Host | None:
    """The files of a home, brought back, and the home they make."""
    name = hashlib.sha256(msgspec.json.encode(place)).hexdigest()[:16]
    mirror = Mirror(cache / name, place.name or "")
    listed = set()
    for version in versions:
        try:
            path = _spelled(os.fsdecode(version.path))
            copy = mirror.place(path)
            listed.add(path)
            _bring(reader, version, copy)
        except (SourceUnreadable, UsageError) as error:
            problems.append(f"{os.fsdecode(version.path)}: {error}")
    for path in mirror.gone(listed):
        mirror.place(path).unlink(missing_ok=True)
    if not versions:
        return None
    try:
        host = mirror.host(_spelled(place.home), place.env)
    except UsageError as error:
        problems.append(f"{place.home}: {error}")
        return None
    return host._replace(kind=cast(Kind, place.kind), name=place.name)


def forget(env: Mapping[str, str] | None = None) -> None:
    """Empty the cache."""
    shutil.rmtree(data_dir(env) / ARCHIVED, ignore_errors=True)


def _spelled(path: str) -> str:
    """A path of any system in the words of this one."""
    return path if path.startswith("/") else "/" + path.replace("\\", "/").replace(":", "")


def _bring(reader: Reader, version: Version, copy: Path) -> None:
    """Write a file to the cache, unless it is there."""
    try:
        known = copy.stat()
        if (known.st_size, known.st_mtime_ns) == (version.size, version.mtime_ns):
            return
    except OSError:
        pass
    private_folder(str(copy.parent))
    write_atomic(copy, reader.content(version))
    os.utime(copy, ns=(version.mtime_ns, version.mtime_ns))
