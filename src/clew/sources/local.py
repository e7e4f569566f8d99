"""Sessions below home folders and named paths."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path, PurePath
from typing import NamedTuple

import msgspec

from clew.agents import registry
from clew.agents.base import Agent, Claim, SourceFile
from clew.agents.database import database_problem
from clew.agents.database_agent import sources_in_database
from clew.errors import SourceUnreadable
from clew.host import Host
from clew.io.database_paths import database_of, database_of_folder
from clew.io.paths import UnreadableFolder, blocking_folder, escape_controls, folder_error, path_to_text, walk


class Found(NamedTuple):
    """A source, and the agent that wrote it."""

    agent: Agent
    source: SourceFile


def folders_below(root: Path, agent: Agent, unreadable: list[UnreadableFolder]) -> Iterator[str]:
    """Yield a root of an agent, even if it does not exist, all folders below it, and its databases with their logs.

    List the folders and databases that cannot be read. Agents skip what they cannot read, so this is the place where
    all of them are detected.
    """

    def report(error: OSError) -> None:
        path = blocking_folder(os.fsdecode(error.filename))
        unreadable.append(UnreadableFolder(path_to_text(path), agent.id, error.strerror or str(error)))

    yield str(root)
    for folder, names, files in walk(root, report):
        above = folder[len(str(root)) + 1 :]
        names[:] = [name for name in names if not agent.ignores(PurePath(above, name))]
        yield from (f"{folder}{os.sep}{name}" for name in names)
        for name in files if agent.layout is not None else ():
            if agent.layout is not None and agent.layout.is_database(name):
                path = f"{folder}{os.sep}{name}"
                yield from (path, f"{path}-wal")
                error = database_problem(Path(path), agent.layout)
                if error is not None:
                    unreadable.append(UnreadableFolder(path_to_text(path), agent.id, str(error), error.problem_code))


def unreadable_folders(hosts: Iterable[Host], agents: Iterable[str] | None = None) -> list[UnreadableFolder]:
    """Find the unreadable folders of the given homes, each once."""
    found: list[UnreadableFolder] = []
    chosen = _chosen(agents)
    roots = ((agent, root) for host in hosts for agent in chosen for root in agent.roots(host))
    for agent, root in roots:
        for _ in folders_below(root, agent, found):
            pass
    return list({folder.path: folder for folder in found}.values())


def _chosen(agents: Iterable[str] | None) -> list[Agent]:
    return [registry.get(name) for name in agents] if agents is not None else registry.load_all()


def in_homes(hosts: Iterable[Host], agents: Iterable[str] | None = None) -> Iterator[Found]:
    """Yield every session of the given homes once; of a folder that two agents share, each takes its own files."""
    chosen = _chosen(agents)
    seen: set[str] = set()
    for host in hosts:
        for agent in chosen:
            for root in agent.roots(host):
                for source in agent.discover(root) if is_folder(root) else ():
                    place = str(source.path)
                    if place not in seen:
                        seen.add(place)
                        yield Found(agent, _labelled(source, host))


def is_folder(path: Path) -> bool:
    """Return whether there is a folder that can be read; False without permission or on a share that is offline."""
    try:
        return path.is_dir()
    except OSError:
        return False


def listed_roots(agent: Agent, hosts: Iterable[Host]) -> list[Path]:
    """The folders to list for an agent: those that exist or cannot be read; without any, the first where it looks.

    Extensions of editors have a folder in each editor on each system.
    """
    roots = [root for host in hosts for root in agent.roots(host)]
    return [root for root in roots if is_folder(root) or folder_error(str(root))] or roots[:1]


def at_path(
    path: Path, hosts: Iterable[Host] = (), on_unreadable: Callable[[str], None] | None = None
) -> Iterator[Found]:
    """Yield the session in a file, or every session below a folder, labelled with the host whose home they are in.

    `on_unreadable` is called with each folder and file below a folder that cannot be read, and the reason.
    """
    hosts = list(hosts)
    for found in _at_path(path, hosts, on_unreadable or (lambda _: None)):
        place = found.source.path.absolute()
        foreign = (host for host in hosts if host.kind != "local" or host.base is not None)
        host = next((host for host in foreign if host.holds(place)), None)
        yield found if host is None else Found(found.agent, _labelled(found.source, host))


def _labelled(source: SourceFile, host: Host) -> SourceFile:
    """Set the origin of a session, unless it is in a home of this machine that is not a copy."""
    if host.kind == "local" and host.base is None:
        return source
    return msgspec.structs.replace(source, origin=host.origin(source.path.absolute()))


def _at_path(path: Path, hosts: Iterable[Host], on_unreadable: Callable[[str], None]) -> Iterator[Found]:
    database = database_of_folder(path)
    if database is not None and not path.exists():
        yield from _in_database(database)
        return
    database = database_of(path)
    if database is not None and not path.exists():
        in_database = [found for found in _in_database(database) if found.source.path == path]
        if not in_database:
            raise SourceUnreadable(f"{path}: no such session in {database}")
        yield from in_database
        return
    if not path.exists():
        raise SourceUnreadable(f"{path}: no such file or folder")
    places = _Places(hosts)
    if path.is_file() and _owners_of_database(path):
        yield from _in_database(path)
        return
    if not path.is_dir():
        agent = _owner(path, places) or registry.required_claimant(path)
        yield Found(agent, agent.locate(path))
        return
    seen: set[Path] = set()
    for file in _files_below(path, on_unreadable):
        try:
            if _owners_of_database(file):
                yield from _in_database(file)
                continue
            owner = _owner(file, places)
        except SourceUnreadable as error:
            on_unreadable(str(error))
            continue
        found = Found(owner, owner.locate(file)) if owner is not None else None
        if found is not None and found.source.path not in seen:
            seen.add(found.source.path)
            yield found


def _owners_of_database(path: Path) -> list[Agent]:
    """Return the agents that give their databases such a name."""
    return [agent for agent in registry.load_all() if agent.layout is not None and agent.layout.is_database(path.name)]


def _in_database(database: Path) -> Iterator[Found]:
    """Yield the sessions in a database. Raises SourceUnreadable where no agent can read it."""
    error: SourceUnreadable | None = None
    for agent in _owners_of_database(database):
        assert agent.layout is not None
        try:
            for source in sources_in_database(agent.id, database, agent.layout):
                yield Found(agent, source)
            return
        except SourceUnreadable as reason:
            error = error or reason
    if error is not None:
        raise error


def _files_below(folder: Path, on_unreadable: Callable[[str], None]) -> Iterator[Path]:
    """Yield every file below a folder, without links: they could lead to files that the user did not name."""

    def report(error: OSError) -> None:
        on_unreadable(f"{escape_controls(os.fsdecode(error.filename))}: {error.strerror or error}")

    for below, names, files in walk(folder, report):
        names.sort()
        for path in (Path(below) / name for name in sorted(files)):
            if not path.is_symlink():
                yield path


def _owner(path: Path, places: _Places) -> Agent | None:
    """Return the agent whose format a file has; if that is not certain, the one that finds the file in its folders."""
    claim, agent = registry.best_claim(path)
    return agent if claim == Claim.YES else places.owner(path) or agent


class _Places:
    """The sessions that agents find in their own folders, also those whose content does not show the agent."""

    def __init__(self, hosts: Iterable[Host]) -> None:
        self._own = [one for host in hosts for one in _roots(host)]
        self._at: dict[Path, list[tuple[Agent, Path]]] = {}
        self._found: dict[tuple[str, Path], frozenset[Path]] = {}

    def owner(self, path: Path) -> Agent | None:
        """Return the agent that finds the file among its sessions, in a home above it or in one of the hosts."""
        path = path.absolute()
        for agent, root in self._above(path.parent):
            if path in self._sessions(agent, root):
                return agent
        return None

    def _above(self, folder: Path) -> list[tuple[Agent, Path]]:
        """Return the session folders of agents that contain a folder."""
        if folder not in self._at:
            homes = map(_roots, map(Host.at, (folder, *folder.parents)))
            self._at[folder] = [one for one in chain(self._own, *homes) if folder.is_relative_to(one[1])]
        return self._at[folder]

    def _sessions(self, agent: Agent, root: Path) -> frozenset[Path]:
        if (agent.id, root) not in self._found:
            listed = agent.discover(root) if is_folder(root) else ()
            self._found[agent.id, root] = frozenset(source.path for source in listed)
        return self._found[agent.id, root]


def _roots(host: Host) -> list[tuple[Agent, Path]]:
    return [(agent, root) for agent in registry.load_all() for root in agent.roots(host)]
