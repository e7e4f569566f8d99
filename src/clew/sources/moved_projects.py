"""The file `moved_projects.json` in clew's data folder: where folders that sessions name are now.

Sessions keep the paths that they were recorded with. A project that was moved or renamed is found by its old path.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from clew.agents.file_evidence import absolute, is_windows
from clew.errors import SourceUnreadable, UnknownReference, UsageError
from clew.host import data_dir
from clew.io import json_file

FILE = "moved_projects.json"


def load() -> dict[str, str]:
    """The new folder of each old one; empty where there is no file. Raises SourceUnreadable."""
    return json_file.load(data_dir() / FILE, str)


def add(old: str, new: str) -> tuple[str, str]:
    """Store that a folder is now elsewhere; returns both paths as they are stored."""
    old, new = full_path(old), full_path(new)
    if not Path(new).is_dir():
        raise SourceUnreadable(f"{new}: no such folder")
    if _rest(old, new) is not None or _rest(new, old) is not None:
        raise UsageError(f"{old} and {new}: OLD and NEW must not contain each other")
    with json_file.update(data_dir() / FILE, str) as moved:
        mapped = old if moved.get(old, new) != new else _mapping_of(new, moved)
        if mapped is not None:
            raise UsageError(f"{mapped} is mapped to {moved[mapped]}; `clew sources unmap {mapped}` first")
        moved[old] = new
        for folder in moved:
            if _follow(folder, moved)[1]:
                raise UsageError(f"{old} and {new}: with the other mappings, {folder} would lead back to itself")
    return old, new


def remove(old: str) -> str:
    """Delete a mapping; returns the new folder that it had."""
    with json_file.update(data_dir() / FILE, str) as moved:
        for name in (old, full_path(old)):
            if name in moved:
                return moved.pop(name)
        raise UnknownReference(f"{old} is not mapped; `clew sources map` lists the mappings")


def full_path(path: str) -> str:
    """A path in the spelling of records; a relative one is below the current folder."""
    return absolute(path, None) if is_windows(path) else absolute(str(Path(path).expanduser().absolute()), None)


def current_path(path: str, moved: Mapping[str, str]) -> str:
    """Where a recorded file or folder is now: the path itself where nothing above it was moved."""
    return _follow(absolute(path, None), moved)[0]


def _follow(path: str, moved: Mapping[str, str]) -> tuple[str, bool]:
    """Where a path is now, and True if it would need a mapping twice: each is used at most once."""
    used = set[str]()
    while (old := _mapping_of(path, moved)) is not None:
        if old in used:
            return path, True
        used.add(old)
        path = moved[old] + (_rest(path, old) or "")
    return path, False


def _mapping_of(path: str, moved: Mapping[str, str]) -> str | None:
    """The innermost old folder that a path is at or below; None where nothing above it was moved."""
    return max((old for old in moved if _rest(path, old) is not None), key=len, default=None)


def recorded_paths(path: str, moved: Mapping[str, str]) -> list[str]:
    """The paths under which sessions may know what is at or below a path now: itself, and the old ones."""
    found = [(absolute(path, None), frozenset[str]())]
    names = {found[0][0]}
    for known, used in found:
        for old, new in moved.items():
            if (rest := _rest(known, new)) is not None:
                name = old + rest
            elif _rest(new, known) is not None:
                name = old
            else:
                continue
            if name not in names and old not in used:
                names.add(name)
                found.append((name, used | {old}))
    return [name for name, _ in found]


def _rest(path: str, folder: str) -> str | None:
    """What follows the folder in a path at or below it; None for any other path."""
    if path == folder:
        return ""
    base = folder.rstrip("/") + "/"
    return path[len(base) - 1 :] if path.startswith(base) else None
