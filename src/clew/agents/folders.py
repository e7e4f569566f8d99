"""Find files below agent folders without following links; user folders of VS Code editors."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase, translate
from pathlib import Path

from clew.agents.backups import is_link
from clew.host import Host
from clew.io.compress import plain_name
from clew.io.paths import walk

_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf", "Positron")
_SERVERS = (".vscode-server/data", ".vscode-server-insiders/data", ".cursor-server/data", ".local/share/code-server")
_MACOS, _WINDOWS = "Library/Application Support", "AppData/Roaming"


def files_below(root: Path, patterns: Sequence[str]) -> Iterator[Path]:
    """Files below a folder whose paths fit a pattern such as `*/log.jsonl`; the files of each folder in order.

    Patterns are those of `fnmatch` for each folder and for the file; compression suffixes do not count. A pattern that
    begins with `**/` fits at any depth. No folder is opened in which nothing can fit.
    """
    wanted = [(pattern.split("/")[:-1], re.compile(translate(pattern.rpartition("/")[2]))) for pattern in patterns]
    for folder, names, files in walk(root):
        place = Path(folder)
        above = place.parts[len(root.parts) :]
        names[:] = sorted(name for name in names if any(_leads_to(folders, (*above, name)) for folders, _ in wanted))
        name_patterns = [name for folders, name in wanted if _fits(folders, above)]
        for name in sorted(files) if name_patterns else ():
            plain = plain_name(name)
            if any(pattern.match(plain) for pattern in name_patterns):
                path = place / name
                if not is_link(path):
                    yield path


def _leads_to(folders: Sequence[str], path: Sequence[str]) -> bool:
    """True for a folder on the way to those that fit, or one that fits."""
    return folders[:1] == ["**"] or (len(path) <= len(folders) and all(map(fnmatchcase, path, folders)))


def _fits(folders: Sequence[str], path: Sequence[str]) -> bool:
    """True for a folder that fits the pattern of folders."""
    if folders[:1] == ["**"]:
        folders = folders[1:]
        path = path[len(path) - len(folders) :] if len(path) >= len(folders) else ()
    return len(path) == len(folders) and all(map(fnmatchcase, path, folders))


def file_names(folder: Path) -> list[str]:
    """The files in a folder, in order; none where it cannot be read."""
    return _entry_names(folder, lambda entry: entry.is_file(follow_symlinks=False))


def subfolders(folder: Path) -> list[Path]:
    """The folders in a folder, in order; none where it cannot be read."""
    return [folder / name for name in _entry_names(folder, lambda entry: entry.is_dir(follow_symlinks=False))]


def _entry_names(folder: Path, is_wanted: Callable[[os.DirEntry[str]], bool]) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if is_wanted(entry))
    except OSError:
        return []


def user_folders(host: Host) -> Iterator[Path]:
    """The folder `User` of each editor on each system, existing or not; that of VS Code on Linux comes first."""
    configuration = Path(host.env.get("XDG_CONFIG_HOME") or host.home / ".config")
    for parent in (configuration, host.home / _MACOS, host.home / _WINDOWS):
        yield from (parent / editor / "User" for editor in _EDITORS)
    yield from (host.home / server / "User" for server in _SERVERS)
