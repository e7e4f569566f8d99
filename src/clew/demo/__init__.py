"""A small home folder with sessions of a fictional developer, so that every command can be tried."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from clew.datadir import private_folder
from clew.errors import UsageError
from clew.model.time import parse_time

__all__ = ["write_demo"]

# Package data carries no leading dots: build tools and file listings pass over hidden names.
_FOLDERS = {"claude": ".claude", "codex": ".codex", "gemini": ".gemini", "sage": ".sage", "emacs.d": ".emacs.d"}

_HIDDEN = ("project_root",)

_TIME = re.compile(rb'"timestamp": ?"([^"]+)"')


def write_demo(target: Path) -> list[Path]:
    """Copy the demo home into `target`, which must be new or empty; returns the files written."""
    _claim(target)
    home = files(__name__).joinpath("home")
    return [path for source, name in _FOLDERS.items() for path in _copy(home.joinpath(source), target / name)]


def _claim(target: Path) -> None:
    if target.is_symlink():
        raise UsageError(f"{target} is a symbolic link: name a new folder for the demo")
    if target.exists() and not target.is_dir():
        raise UsageError(f"{target} is not a folder")
    if target.is_dir() and any(target.iterdir()):
        raise UsageError(f"{target} is not empty: name a new folder for the demo")
    private_folder(str(target))


def _copy(folder: Traversable, target: Path) -> Iterator[Path]:
    target.mkdir(mode=0o700)
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        path = target / (f".{entry.name}" if entry.name in _HIDDEN else entry.name)
        if entry.is_dir():
            yield from _copy(entry, path)
        else:
            path.touch(mode=0o600, exist_ok=False)
            path.write_bytes(entry.read_bytes())
            _date(path)
            yield path


def _date(path: Path) -> None:
    """A session was written to when its last record says so."""
    times = [parse_time(time.decode()) for time in _TIME.findall(path.read_bytes())]
    last = max((time for time in times if time is not None), default=None)
    if last is not None:
        os.utime(path, (last.timestamp(), last.timestamp()))
