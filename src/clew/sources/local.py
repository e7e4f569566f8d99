"""Sessions below home folders and named paths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import msgspec

from clew.agents import registry
from clew.agents.base import Agent, Claim, SourceFile
from clew.errors import SourceUnreadable
from clew.host import Host
from clew.io.paths import walk


class Found(NamedTuple):
    """A source, and the agent that wrote it."""

    agent: Agent
    source: SourceFile


def in_homes(hosts: Iterable[Host], agents: Iterable[str] | None = None) -> Iterator[Found]:
    """Yield every session of the given homes once; of a folder that two agents share, each takes its own files."""
    chosen = [registry.get(name) for name in agents] if agents is not None else registry.load_all()
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


def at_path(path: Path, hosts: Iterable[Host] = ()) -> Iterator[Found]:
    """Yield the session in a file, or every session below a folder, labelled with the host whose home they are in."""
    hosts = list(hosts)
    for found in _at_path(path, hosts):
        place = found.source.path.absolute()
        foreign = (host for host in hosts if host.kind != "local" or host.base is not None)
        host = next((host for host in foreign if host.holds(place)), None)
        yield found if host is None else Found(found.agent, _labelled(found.source, host))


def _labelled(source: SourceFile, host: Host) -> SourceFile:
    """Set the origin of a session, unless it is in a home of this machine that is not a copy."""
    if host.kind == "local" and host.base is None:
        return source
    return msgspec.structs.replace(source, origin=host.origin(source.path.absolute()))


def _at_path(path: Path, hosts: Iterable[Host]) -> Iterator[Found]:
    if not path.exists():
        raise SourceUnreadable(f"{path}: no such file or folder")
    places = _Places(hosts)
    if not path.is_dir():
        agent = _owner(path, places) or registry.required_claimant(path)
        yield Found(agent, agent.locate(path))
        return
    seen: set[Path] = set()
    for file in _files_below(path):
        found = _claimed(file, places)
        if found is not None and found.source.path not in seen:
            seen.add(found.source.path)
            yield found


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder, without links: they could lead to files that the user did not name."""
    for below, names, files in walk(folder):
        names.sort()
        for path in (Path(below) / name for name in sorted(files)):
            if not path.is_symlink():
                yield path


def _claimed(path: Path, places: _Places) -> Found | None:
    try:
        agent = _owner(path, places)
    except SourceUnreadable:
        return None
    return Found(agent, agent.locate(path)) if agent is not None else None


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
