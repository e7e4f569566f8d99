"""A home folder with sessions of a fictional developer, so that every command can be tried."""

from __future__ import annotations

import os
import re
from pathlib import Path

from clew.datadir import private_folder
from clew.demo.examples import copy_examples
from clew.errors import UsageError
from clew.model.time import parse_time

__all__ = ["write_demo"]

_TIME = re.compile(rb'"timestamp": ?"([^"]+)"')


def write_demo(target: Path) -> list[Path]:
    """Write the demo home into `target`, which must be new or empty; returns the files written."""
    _claim(target)
    written = copy_examples(target)
    set_file_times(written)
    return written


def _claim(target: Path) -> None:
    if target.is_symlink():
        raise UsageError(f"{target} is a symbolic link: name a new folder for the demo")
    if target.exists() and not target.is_dir():
        raise UsageError(f"{target} is not a folder")
    if target.is_dir() and any(target.iterdir()):
        raise UsageError(f"{target} is not empty: name a new folder for the demo")
    private_folder(str(target))


def set_file_times(paths: list[Path]) -> None:
    """Date each file to the last timestamp among its records."""
    for path in paths:
        times = [parse_time(time.decode()) for time in _TIME.findall(path.read_bytes())]
        last = max((time for time in times if time is not None), default=None)
        if last is not None:
            os.utime(path, (last.timestamp(), last.timestamp()))
