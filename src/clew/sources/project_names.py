"""The file `project_names.json` in clew's data folder: names that the user gave to projects.

A key is the folder of a project, `FOLDER/*` for all folders below it, or the name that the project has without this
file: the last part of its folder, or the hash that an agent recorded in its place.

Loads next to nothing: every command that reads the catalog looks whether the names have changed.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from clew.datadir import data_path
from clew.errors import SourceUnreadable, UnknownReference, UsageError

FILE = "project_names.json"
ALL_BELOW = "/*"
MAX_NAME_CHARS = 100
MAX_KEY_CHARS = 4_000
_write_lock = threading.Lock()
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]")


def names_path(env: Mapping[str, str] | None = None) -> Path:
    """Where the file is, or would be."""
    return Path(data_path(env)) / FILE


def load(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The name of each project; empty where there is no file. Raises SourceUnreadable."""
    path = names_path(env)
    try:
        names = json.loads(path.read_bytes())
        json.dumps(names, ensure_ascii=False).encode()  # fails for half of a character, which no database stores
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SourceUnreadable(f"{path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise SourceUnreadable(f"{path}: {error}; correct or delete the file") from None
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise SourceUnreadable(f"{path}: not an object with a name for each project; correct or delete the file")
    return names


def add(names: Mapping[str, str], env: Mapping[str, str] | None = None) -> None:
    """Store the names of some projects. Raises UsageError for a name that cannot be shown on one line."""
    checked = {_checked(key, "project", MAX_KEY_CHARS): _checked(names[key], "name", MAX_NAME_CHARS) for key in names}
    with _write_lock:
        _write({**load(env), **checked}, env)


def remove(projects: Sequence[str], env: Mapping[str, str] | None = None) -> list[str]:
    """Delete the names of some projects; returns those that had one. Raises UnknownReference if none had."""
    with _write_lock:
        names = load(env)
        found = [project for project in projects if names.pop(project, None) is not None]
        if not found:
            raise UnknownReference(f"{projects[0]} was not named; `clew sources name` lists the names")
        _write(names, env)
    return found


def name_of(workspace: str, recorded: str, names: Mapping[str, str]) -> str:
    """The name of the project in a folder; `recorded` is its name where none was given."""
    from clew.agents.file_evidence import absolute, is_windows

    folder = absolute(workspace, None) if is_windows(workspace) else workspace
    if folder in names:
        return names[folder]
    while "/" in folder:
        folder = folder.rpartition("/")[0]
        if folder + ALL_BELOW in names:
            return names[folder + ALL_BELOW]
    return names.get(recorded, recorded)


def _checked(text: str, what: str, longest: int) -> str:
    text = text.strip()
    if not text or len(text) > longest or _CONTROL.search(text):
        raise UsageError(f"{text[:60]!r} cannot be a {what}: 1 to {longest:,} characters on one line")
    return text


def _write(names: dict[str, str], env: Mapping[str, str] | None) -> None:
    from clew.io.atomic import write_atomic

    text = json.dumps(names, indent=2, sort_keys=True, ensure_ascii=False)
    path = names_path(env)
    try:
        write_atomic(path, f"{text}\n".encode())
    except OSError as error:
        raise SourceUnreadable(f"{path}: cannot be written: {error.strerror or error}") from None
