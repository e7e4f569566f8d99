"""Which sources there are, and what is to be watched to know it without looking again."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from clew.agents import registry
from clew.agents.base import SourceFile
from clew.catalog.change_detection import NO_SOURCE_ID, folder_time, stat_signature, trusted_mtime
from clew.catalog.database import catalog_folder
from clew.host import Host, Origin, data_dir
from clew.io.paths import walk
from clew.sources import config
from clew.sources.local import Found, in_homes, is_folder
from clew.sources.registry import sources as configured_sources


class Places(NamedTuple):
    """Everything that decides about which sources there are."""

    folders: dict[str, int]
    files: dict[str, tuple[int, int]]
    agents: dict[str, str]
    """Who consults such a file."""
    env: dict[str, str | None]


class RecordingEnviron(Mapping[str, str]):
    """An environment that notes what it is asked for."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self.answers: dict[str, str | None] = {}

    def __getitem__(self, name: str) -> str:
        self.answers[name] = self._env.get(name)
        return self._env[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._env)

    def __len__(self) -> int:
        return len(self._env)


def places(hosts: Iterable[Host], now_ns: int) -> Places:
    """Look at all folders below the roots of all agents. To be asked before the sources are looked for."""
    found = Places({}, {}, {}, {})
    for host in hosts:
        asked = RecordingEnviron(host.env)
        for agent in registry.load_all():
            noted = host._replace(env=asked)
            for root in agent.roots(noted):
                for folder in _below(root):
                    found.folders[folder] = trusted_mtime(folder_time(folder), now_ns)
            for path in map(str, agent.companions(noted)):
                found.files[path], found.agents[path] = stat_signature(path), agent.id
        if host.env is os.environ:
            found.env.update(asked.answers)
    return found


def _below(root: Path) -> Iterator[str]:
    yield str(root)
    if is_folder(root):
        for folder, names, _ in walk(root):
            yield from filter(is_text, (f"{folder}{os.sep}{name}" for name in names))


def is_text(path: str) -> bool:
    """True for a path that a database can hold: a name may be any bytes."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def consult_again(db: sqlite3.Connection, found: Places) -> None:
    """Where a file changed that an agent consults, what it says of any session may be another."""
    query = "SELECT path, mtime_ns, size FROM side_file WHERE owner = ?"
    before = {path: (mtime_ns, size) for path, mtime_ns, size in db.execute(query, (NO_SOURCE_ID,))}
    agents = {found.agents[path] for path in found.agents if before.get(path, found.files[path]) != found.files[path]}
    for agent in agents:
        db.execute("UPDATE source SET size = -1 WHERE agent = ? AND state = 'live'", (agent,))


def note_places(db: sqlite3.Connection, found: Places, folder: Path) -> None:
    """Note them for the next time."""
    if folder == catalog_folder():
        _note_defaults(db, found)
    db.execute("DELETE FROM watched_folder")
    db.executemany("INSERT INTO watched_folder VALUES (?, ?)", found.folders.items())
    db.execute("DELETE FROM side_file WHERE owner = ?", (NO_SOURCE_ID,))
    files = [(path, NO_SOURCE_ID, *mark) for path, mark in found.files.items()]
    db.executemany("INSERT INTO side_file VALUES (?, ?, ?, ?)", files)
    db.execute("DELETE FROM meta WHERE key >= 'env ' AND key < 'env!'")
    db.executemany("INSERT INTO meta VALUES (?, ?)", [(f"env {name}", value) for name, value in found.env.items()])


def _note_defaults(db: sqlite3.Connection, found: Places) -> None:
    """The default sources follow from the home, and from the file that names others; of other systems nobody knows."""
    found.env["HOME"] = os.environ.get("HOME")
    file = str(data_dir() / config.FILE)
    found.files[file] = stat_signature(file)
    is_plain = all(source.kind in ("local", "home") for source in configured_sources())
    db.execute("INSERT OR REPLACE INTO meta VALUES ('plain', ?)", (int(is_plain and os.name != "nt"),))


def sources(hosts: Iterable[Host]) -> Iterator[Found]:
    """Every source of the hosts."""
    return in_homes(hosts)


def source_to_json(source: SourceFile) -> str:
    """What the catalog must know to read a source again."""
    return json.dumps({"parts": source.parts, "sides": source.sides, "origin": source.origin})


def source_from_json(agent: str, path: str, notes: str) -> SourceFile:
    """The source again."""
    known = json.loads(notes)
    origin = Origin(*known["origin"]) if known["origin"] else None
    try:
        found = os.stat(path)
        size, mtime = found.st_size, found.st_mtime
    except OSError:
        size, mtime = 0, 0.0
    return SourceFile(agent, Path(path), tuple(known["parts"]), tuple(known["sides"]), size, mtime, origin=origin)


def files_of(source: SourceFile) -> list[str]:
    """The files that belong to a source beside its main one."""
    return [str(source.path.parent / name) for name in (*source.parts, *source.sides)]
