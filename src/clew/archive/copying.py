"""Which files are archived: those of each session, and what an agent keeps beside them."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from clew.agents.backups import is_behind_link
from clew.agents.base import Agent, SourceFile
from clew.archive.layout import Role
from clew.host import Host
from clew.io.paths import walk


class Wanted(NamedTuple):
    """A file to archive."""

    host: Host
    agent: str
    session: Callable[[], str]
    """The session's id; it may take a look into the file."""
    role: Role
    main: Path
    path: Path


def files_of(host: Host, agent: Agent, source: SourceFile) -> Iterator[Wanted]:
    """The files of a session: its main file, its parts and sides, and the copies of files that go with it."""
    folder = source.path.parent
    named: list[tuple[Role, Path]] = [("main", source.path)]
    named += [("part", folder / name) for name in source.parts]
    named += [("side", folder / name) for name in source.sides]
    places = [place for place in agent.copies(source) if not is_behind_link(place, source.path)]
    named += [("copy", path) for place in places for path in _regular_below(place)]
    for role, path in named:
        yield Wanted(host, agent.id, partial(agent.session_id, source), role, source.path, path)


def companions_of(host: Host, agents: Iterable[Agent]) -> Iterator[Wanted]:
    """The files outside its folders that an agent looks into."""
    for agent in agents:
        for place in agent.companions(host):
            for path in _regular_below(place):
                yield Wanted(host, agent.id, str, "shared", path, path)


def each_once(files: Iterable[Wanted]) -> list[Wanted]:
    """Every file once: what is the main file of a session is that, what several sessions name is shared."""
    found: dict[tuple[int, Path], Wanted] = {}
    for wanted in files:
        key = id(wanted.host), wanted.path
        known = found.setdefault(key, wanted)
        if known.role == "main" or (known.main == wanted.main and wanted.role != "main"):
            continue
        shared = wanted._replace(session=str, role="shared", main=wanted.path)
        found[key] = wanted if wanted.role == "main" else shared
    return list(found.values())


def _regular_below(place: Path) -> Iterator[Path]:
    """A file, or all files below a folder; links are not followed."""
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
