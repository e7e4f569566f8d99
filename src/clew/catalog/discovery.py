"""Lists the files and settings to watch, so that the next sync knows without a search whether sources changed."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clew.agents import registry
from clew.agents.base import SourceFile
from clew.analysis import pricing
from clew.catalog.change_detection import (
    ENV_PREFIX,
    NO_SOURCE_ID,
    UNREADABLE_FOLDERS,
    describe_hosts,
    folder_mtime,
    stat_signature,
    trusted_mtime,
)
from clew.catalog.database import catalog_folder
from clew.host import Host, Origin, data_dir
from clew.io.paths import UnreadableFolder, path_from_text, path_to_text
from clew.sources import config
from clew.sources.local import folders_below


@dataclass
class WatchList:
    """The folders, files and environment variables that decide which sources exist and what is read of them."""

    folders: dict[str, int] = field(default_factory=dict)
    """mtime by path."""
    files: dict[str, tuple[int, int]] = field(default_factory=dict)
    """mtime and size by path."""
    agent_of_file: dict[str, str] = field(default_factory=dict)
    """The agent that reads such a file for all of its sessions."""
    environ: dict[str, str | None] = field(default_factory=dict)
    unreadable: list[UnreadableFolder] = field(default_factory=list)


class RecordingEnviron(Mapping[str, str]):
    """An environment that records which variables were read."""

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


def watch_list(hosts: Sequence[Host], folder: Path) -> WatchList:
    """Record the present state of all that is watched; called before discovery, so that no later change is missed."""
    found = WatchList()
    now_ns = time.time_ns()
    for host in hosts:
        environ = RecordingEnviron(host.env)
        recording = host._replace(env=environ)
        for agent in registry.load_all():
            for root in agent.roots(recording):
                for path in map(path_to_text, folders_below(root, agent, found.unreadable)):
                    found.folders[path] = trusted_mtime(folder_mtime(path), now_ns)
            for path in map(str, agent.companions(recording)):
                found.files[path], found.agent_of_file[path] = stat_signature(path), agent.id
        if host.env is os.environ:
            found.environ.update(environ.answers)
    settings = [pricing.override_path(), pricing.TABLE_PATH]
    found.environ["CLEW_PRICES"] = os.environ.get("CLEW_PRICES")
    if folder == catalog_folder():
        # The default sources follow from the home, and from the file that names others.
        found.environ["HOME"] = os.environ.get("HOME")
        settings.append(str(data_dir() / config.FILE))
    found.files.update({path: stat_signature(path) for path in settings})
    # A database that could not be read is tried again, whether or not it changed.
    for unreadable in found.unreadable:
        if Path(path_from_text(unreadable.path)).is_file():
            found.folders[unreadable.path] = -1
    return found


def reread_agents_with_changed_files(db: sqlite3.Connection, found: WatchList) -> None:
    """Have all sessions of an agent read again if a file changed that it reads for all of them."""
    query = "SELECT path, mtime_ns, size FROM side_file WHERE owner = ?"
    before = {path: (mtime_ns, size) for path, mtime_ns, size in db.execute(query, (NO_SOURCE_ID,))}
    changed = {
        agent for path, agent in found.agent_of_file.items() if before.get(path, found.files[path]) != found.files[path]
    }
    for agent in changed:
        db.execute("UPDATE source SET size = -1 WHERE agent = ? AND state = 'live'", (agent,))


def record_watch_list(db: sqlite3.Connection, found: WatchList, hosts: Sequence[Host]) -> None:
    """Record what is to be watched from now on."""
    db.execute("DELETE FROM watched_folder")
    db.executemany("INSERT INTO watched_folder VALUES (?, ?)", found.folders.items())
    db.execute("DELETE FROM side_file WHERE owner = ?", (NO_SOURCE_ID,))
    files = [(path, NO_SOURCE_ID, *signature) for path, signature in found.files.items()]
    db.executemany("INSERT INTO side_file VALUES (?, ?, ?, ?)", files)
    db.execute("DELETE FROM meta WHERE key GLOB ?", (f"{ENV_PREFIX}*",))
    environ = [(f"{ENV_PREFIX}{name}", value) for name, value in found.environ.items()]
    db.executemany("INSERT INTO meta VALUES (?, ?)", environ)
    db.execute("INSERT OR REPLACE INTO meta VALUES ('hosts', ?)", (describe_hosts(hosts),))
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (UNREADABLE_FOLDERS, json.dumps(found.unreadable)))


def host_name(source: SourceFile) -> str:
    """The name of the machine that a source was written on; "" for this one."""
    return (source.origin.host if source.origin is not None else None) or ""


def source_to_json(source: SourceFile) -> str:
    """The parts, side files and origin of a source, for the column `source.source_json`."""
    known: dict[str, object] = {"parts": source.parts, "sides": source.sides, "origin": source.origin}
    if source.change_token:
        known["rows"] = source.size, source.mtime
    return json.dumps(known)


def source_from_json(agent: str, path: str, text: str) -> SourceFile:
    """The source that `source_to_json` described."""
    known, path = json.loads(text), path_from_text(path)
    origin = Origin(*known["origin"]) if known["origin"] else None
    try:
        found = os.stat(path)
        size, mtime = found.st_size, found.st_mtime
    except OSError:
        size, mtime = known.get("rows", (0, 0.0))
    return SourceFile(agent, Path(path), tuple(known["parts"]), tuple(known["sides"]), size, mtime, origin=origin)


def side_files(source: SourceFile) -> list[str]:
    """The files of a source other than its main file."""
    return [str(source.path.parent / name) for name in (*source.parts, *source.sides)]
