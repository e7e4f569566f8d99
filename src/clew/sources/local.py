"""Sessions below home folders and named paths."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from clew.agents import registry
from clew.agents.base import Agent, SourceFile
from clew.errors import SourceUnreadable
from clew.host import Host


class Found(NamedTuple):
    """A source, and the agent that wrote it."""

    agent: Agent
    source: SourceFile


def in_homes(hosts: Iterable[Host], agents: Iterable[str] | None = None) -> Iterator[Found]:
    """Every session of the given homes; a folder that two agents share is sorted out by each of them."""
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
    """True for a folder that may be looked at; one behind a closed door or a dead share is none."""
    try:
        return path.is_dir()
    except OSError:
        return False


def at_path(path: Path, hosts: Iterable[Host] = ()) -> Iterator[Found]:
    """The session in a file, or every session below a folder; one of the hosts may be where they come from."""
    for found in _at_path(path):
        place = found.source.path.absolute()
        foreign = (host for host in hosts if host.kind != "local" or host.base is not None)
        host = next((host for host in foreign if host.holds(place)), None)
        yield found if host is None else Found(found.agent, _labelled(found.source, host))


def _labelled(source: SourceFile, host: Host) -> SourceFile:
    """What lies in a home of this machine needs no label, unless it is a copy."""
    if host.kind == "local" and host.base is None:
        return source
    return msgspec.structs.replace(source, origin=host.origin(source.path.absolute()))


def _at_path(path: Path) -> Iterator[Found]:
    if not path.exists():
        raise SourceUnreadable(f"{path}: no such file or folder")
    if not path.is_dir():
        agent = registry.required_claimant(path)
        yield Found(agent, agent.locate(path))
        return
    seen: set[Path] = set()
    for file in _files_below(path):
        found = _claimed(file)
        if found is not None and found.source.path not in seen:
            seen.add(found.source.path)
            yield found


def _files_below(folder: Path) -> Iterator[Path]:
    for below, names, files in os.walk(folder):
        names.sort()
        for name in sorted(files):
            yield Path(below) / name


def _claimed(path: Path) -> Found | None:
    try:
        agent = registry.claimant(path)
    except SourceUnreadable:
        return None
    return Found(agent, agent.locate(path)) if agent is not None else None
