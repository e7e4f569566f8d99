"""Suggests names for projects: worktrees get that of their repository, and hashes that of the folder they stand for."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from os.path import commonpath
from pathlib import Path
from typing import NamedTuple

from clew.agents import registry
from clew.agents.file_evidence import absolute, is_windows
from clew.analysis.session import project_of
from clew.catalog.schema import KEYS_PER_SOURCE
from clew.io.git_worktrees import same_folder_in_main_worktree
from clew.io.paths import path_from_text, path_to_text
from clew.project_names import ALL_BELOW, name_of

_WORKTREES = re.compile(
    r"(?P<folder>(?P<repository>.*/[^/]+)/\.(?:claude/worktrees|worktrees|conductor)"
    r"|(?P<beside>.*/[^/]+)\.worktrees|.*/\.cursor/worktrees/[^/]+|.*/conductor/workspaces/[^/]+)/[^/]+(?:/.*)?"
)
"""Folders in which programs make worktrees: in the repository, beside it, or in a folder with its name.

Claude Code, Copilot in VS Code, Cursor and Conductor, and a widespread habit.
"""
_HASH = re.compile(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}")
MIN_FOLDER_PARTS = 4
"""`/home/ada/tide` has four. The common folder of changed files is not that of a project if it is higher up."""
MAX_FOLDERS = 2_000
MAX_FOLDERS_ON_DISK = 200
"""Folders in which git's own files are looked for; the folder of a network may answer slowly."""


class ProjectFolder(NamedTuple):
    """A folder that sessions were recorded in."""

    agent: str
    workspace: str
    recorded: str
    """The name of its project where none was given."""
    name: str
    is_local: bool
    sessions: int


class Suggestion(NamedTuple):
    """A name for some projects."""

    name: str
    keys: tuple[str, ...]
    """The projects, as the file of names has them."""
    current: tuple[str, ...]
    """The names that they have now."""
    reason: str
    sessions: int


def project_folders(db: sqlite3.Connection) -> list[ProjectFolder]:
    """The folders that sessions were recorded in, those with most sessions first."""
    query = """SELECT s.agent, coalesce(json_extract(s.header, '$.workspace'), ''),
        coalesce(json_extract(s.header, '$.project'), ''), s.project, f.host = '', count(*)
      FROM session s JOIN source f ON f.id = s.id WHERE s.is_visible = 1 AND s.project <> ''
      GROUP BY 1, 2, 3, 4, 5 ORDER BY 6 DESC, 2 LIMIT ?"""
    return [ProjectFolder(*row) for row in db.execute(query, (MAX_FOLDERS,))]


def is_hash(name: str) -> bool:
    """True for a project that has only a hash for a name."""
    return _HASH.fullmatch(name) is not None


def suggestions(db: sqlite3.Connection, folders: Sequence[ProjectFolder], names: Mapping[str, str]) -> list[Suggestion]:
    """Names that would help, those for most sessions first. `names` are those that the user gave."""
    found = [*_worktrees(folders, names), *_hashes(db, folders, names)]
    return sorted(found, key=lambda one: (-one.sessions, one.name))


def _worktrees(folders: Iterable[ProjectFolder], names: Mapping[str, str]) -> Iterable[Suggestion]:
    groups: dict[tuple[str, str], dict[str, list[ProjectFolder]]] = {}
    looked_at = 0
    for folder in folders:
        found = _worktree_by_path(folder)
        if found is None and folder.is_local and looked_at < MAX_FOLDERS_ON_DISK:
            looked_at += 1
            found = _worktree_by_git(folder)
        if found is None:
            continue
        key, repository = found
        name = name_of(repository, project_of(repository) or "", names)
        if name and name != folder.name and key not in names:
            groups.setdefault((repository, name), {}).setdefault(key, []).append(folder)
    for (repository, name), by_key in groups.items():
        members = [folder for group in by_key.values() for folder in group]
        current = tuple(dict.fromkeys(folder.name for folder in members))
        reason = f"worktrees of {repository}" if "/" in repository else f"worktrees of a repository {repository}"
        yield Suggestion(name, tuple(by_key), current, reason, sum(folder.sessions for folder in members))


def _worktree_by_path(folder: ProjectFolder) -> tuple[str, str] | None:
    """The key under which a worktree is named, and its repository; None if its path does not tell that it is one."""
    path = absolute(folder.workspace, None) if is_windows(folder.workspace) else folder.workspace
    match = _WORKTREES.fullmatch(path)
    if match is None:
        return None
    container = match["folder"]
    return container + ALL_BELOW, match["repository"] or match["beside"] or container.rpartition("/")[2]


def _worktree_by_git(folder: ProjectFolder) -> tuple[str, str] | None:
    """The key and the repository of a worktree that git's own files tell of."""
    if not folder.workspace.startswith("/"):
        return None
    main = same_folder_in_main_worktree(Path(path_from_text(folder.workspace)))
    return (folder.workspace, path_to_text(str(main))) if main is not None else None


def _hashes(db: sqlite3.Connection, folders: Sequence[ProjectFolder], names: Mapping[str, str]) -> Iterable[Suggestion]:
    hashes = [folder for folder in folders if is_hash(folder.name) and folder.recorded not in names]
    known = [folder.workspace for folder in folders if "/" in folder.workspace or "\\" in folder.workspace]
    proven: dict[str, str] = {}
    for agent in {folder.agent for folder in hashes}:
        if registry.is_known(agent):
            recorded = {folder.recorded for folder in hashes if folder.agent == agent}
            proven |= registry.get(agent).folders_of_hashes(recorded, known)
    changed = _folders_of_changes(db, [folder.workspace for folder in hashes if folder.recorded not in proven])
    for folder in hashes:
        path, reason = proven.get(folder.recorded), "the hash of"
        if path is None:
            path, reason = changed.get(folder.workspace), "its sessions changed files in"
        if path is not None and (name := name_of(path, project_of(path) or "", names)):
            yield Suggestion(name, (folder.recorded,), (folder.name,), f"{reason} {path}", folder.sessions)


def _folders_of_changes(db: sqlite3.Connection, workspaces: Sequence[str]) -> dict[str, str]:
    """For each workspace the folder that holds all files that its sessions changed."""
    if not workspaces:
        return {}
    query = f"""SELECT DISTINCT json_extract(s.header, '$.workspace'), c.path FROM session s
      JOIN change c ON c.id >= s.id * {KEYS_PER_SOURCE} AND c.id < (s.id + 1) * {KEYS_PER_SOURCE}
      WHERE json_extract(s.header, '$.workspace') IN (SELECT value FROM json_each(?)) AND c.path LIKE '/%'"""
    changed: dict[str, set[str]] = {}
    for workspace, path in db.execute(query, (json.dumps(workspaces),)):
        changed.setdefault(workspace, set()).add(path.rpartition("/")[0] or "/")
    folders = {workspace: commonpath(paths) for workspace, paths in changed.items()}
    return {key: folder for key, folder in folders.items() if len(Path(folder).parts) >= MIN_FOLDER_PARTS}
