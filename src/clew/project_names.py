"""The file `project_names.json` in clew's data folder: names that the user gave to projects.

A key is the folder of a project, `FOLDER/*` for all folders below it, or the name that the project has without this
file: the last part of its folder, or the hash that an agent recorded in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from clew.agents.file_evidence import absolute, is_windows
from clew.datadir import PROJECT_NAMES_FILE
from clew.errors import UnknownReference, UsageError
from clew.filters import is_path, recorded_folders
from clew.host import data_dir
from clew.io import json_file
from clew.io.paths import path_for_display, path_to_text
from clew.render.text_safety import checked_line

ALL_BELOW = "/*"
MAX_NAME_CHARS = 100
MAX_KEY_CHARS = 4_000


def names_path() -> Path:
    """Where the file is, or would be."""
    return data_dir() / PROJECT_NAMES_FILE


def load() -> dict[str, str]:
    """The name of each project; empty where there is no file. Raises SourceUnreadable."""
    return json_file.load(names_path(), str)


def project_keys(project: str, *, below: bool = False) -> list[str]:
    """The keys of a project that a user names: of a folder, those of all paths under which sessions may know it.

    `below`, or a path that ends in `/*`, stands for all folders below a folder. Raises UsageError.
    """
    project = project.strip()
    if is_path(project):
        suffix = ALL_BELOW if below or project.endswith(ALL_BELOW) else ""
        folders = recorded_folders([project.removesuffix(suffix) or "/"])
        return [path_to_text(folder) + suffix for folder in folders]
    if below:
        raise UsageError(f"{project}: --below needs the path of a folder")
    return [path_to_text(project)]


def add(names: Mapping[str, str]) -> dict[str, str]:
    """Store names of projects by their keys, and return them as they are stored. Raises UsageError."""
    checked = {key: checked_line(name, "project name", MAX_NAME_CHARS) for key, name in names.items()}
    for key in checked:
        if not 0 < len(key) <= MAX_KEY_CHARS:
            raise UsageError(f"{key[:60]!r} cannot be a project: 1 to {MAX_KEY_CHARS:,} characters")
    with json_file.update(names_path(), str) as stored:
        stored |= checked
    return checked


def remove(keys: Sequence[str]) -> list[str]:
    """Delete the names of projects; returns the keys that had one. Raises UnknownReference if none had."""
    with json_file.update(names_path(), str) as names:
        found = [key for key in keys if names.pop(key, None) is not None]
        if not found:
            raise UnknownReference(f"{path_for_display(keys[0])}: no name was given to this project")
    return found


def name_of(workspace: str, recorded: str, names: Mapping[str, str]) -> str:
    """The name of the project in a folder; `recorded` is its name where none was given."""
    folder = absolute(workspace, None) if is_windows(workspace) else workspace
    if folder in names:
        return names[folder]
    while "/" in folder:
        folder = folder.rpartition("/")[0]
        if folder + ALL_BELOW in names:
            return names[folder + ALL_BELOW]
    return names.get(recorded, recorded)
