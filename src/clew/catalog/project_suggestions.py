"""Suggests names for projects: worktrees get that of their repository, and hashes that of the folder they stand for."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping
from os.path import commonpath
from pathlib import Path
from typing import NamedTuple

from clew.agents import registry
from clew.agents.file_evidence import absolute, is_windows
from clew.analysis.session import project_of
from clew.catalog.schema import KEYS_PER_SOURCE
from clew.io.git_worktrees import same_folder_in_main_worktree
from clew.io.paths import path_from_text, path_to_text
from clew.sources.project_names import ALL_BELOW, name_of

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
MAX_CHANGED_FILES = 200
MAX_FOLDERS = 2_000


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


def suggestions(db: sqlite3.Connection, names: Mapping[str, str]) -> list[Suggestion]:
    """Names that would help, those for most sessions first. `names` are those that the user gave."""
    folders = project_folders(db)
    found = [*_worktrees(folders, names), *_hashes(db, folders, names)]
    return sorted(found, key=lambda one: (-one.sessions, one.name))


def _worktrees(folders: Iterable[ProjectFolder], names: Mapping[str, str]) -> Iterable[Suggestion]:
    groups: dict[tuple[str, str], dict[str, list[ProjectFolder]]] = {}
    for folder in folders:
        place = _worktree_place(folder)
        if place is None:
            continue
        key, repository = place
        name = name_of(repository, project_of(repository) or "", names)
        if name and name != folder.name and key not in names:
            groups.setdefault((repository, name), {}).setdefault(key, []).append(folder)
    for (repository, name), by_key in groups.items():
        members = [folder for group in by_key.values() for folder in group]
        current = tuple(dict.fromkeys(folder.name for folder in members))
        reason = f"worktrees of {repository}" if "/" in repository else f"worktrees of a repository {repository}"
        yield Suggestion(name, tuple(by_key), current, reason, sum(folder.sessions for folder in members))


def _worktree_place(folder: ProjectFolder) -> tuple[str, str] | None:
    """The key under which a worktree is named, and its repository; None for any other folder."""
    path = absolute(folder.workspace, None) if is_windows(folder.workspace) else folder.workspace
    match = _WORKTREES.fullmatch(path)
    if match is not None:
        container = match["folder"]
        return container + ALL_BELOW, match["repository"] or match["beside"] or container.rpartition("/")[2]
    if not folder.is_local or not folder.workspace.startswith("/"):
        return None
    main = same_folder_in_main_worktree(Path(path_from_text(folder.workspace)))
    return (folder.workspace, path_to_text(str(main))) if main is not None else None


def _hashes(db: sqlite3.Connection, folders: list[ProjectFolder], names: Mapping[str, str]) -> Iterable[Suggestion]:
    known = [folder.workspace for folder in folders if "/" in folder.workspace or "\\" in folder.workspace]
    for folder in folders:
        if not is_hash(folder.name) or folder.recorded in names:
            continue
        agent = registry.get(folder.agent) if registry.is_known(folder.agent) else None
        path = agent.folder_of_hash(folder.recorded, known) if agent is not None else None
        reason = f"the hash of {path}"
        if path is None:
            path = _folder_of_changes(db, folder.workspace)
            reason = f"its sessions changed files in {path}"
        if path is not None and (name := name_of(path, project_of(path) or "", names)):
            yield Suggestion(name, (folder.recorded,), (folder.name,), reason, folder.sessions)


def _folder_of_changes(db: sqlite3.Connection, workspace: str) -> str | None:
    """The folder that holds all files that the sessions of a workspace changed."""
    query = f"""SELECT DISTINCT c.path FROM session s
      JOIN change c ON c.id >= s.id * {KEYS_PER_SOURCE} AND c.id < (s.id + 1) * {KEYS_PER_SOURCE}
      WHERE json_extract(s.header, '$.workspace') = ? AND c.path LIKE '/%' LIMIT ?"""
    paths = [path.rpartition("/")[0] or "/" for (path,) in db.execute(query, (workspace, MAX_CHANGED_FILES))]
    folder = commonpath(paths) if paths else ""
    return folder if len(Path(folder).parts) >= MIN_FOLDER_PARTS else None
