"""Paths of sessions that are rows of a database.

The path is `<database>.sessions/<session id>.jsonl`. A restored copy of the rows lies there as a file: beside the
database, where the agent does not look.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER_SUFFIX = ".sessions"
FILE_SUFFIX = ".jsonl"


def database_of(path: Path) -> Path | None:
    """The database whose rows are the file with this path; None where there is none."""
    return database_of_folder(path.parent) if path.suffix == FILE_SUFFIX else None


def database_of_folder(folder: Path) -> Path | None:
    """The database whose sessions have paths in this folder; None where there is none."""
    if not folder.name.endswith(FOLDER_SUFFIX):
        return None
    database = folder.with_name(folder.name.removesuffix(FOLDER_SUFFIX))
    return database if database.is_file() else None


def is_in_database(path: str) -> bool:
    """True for the path of a session that is, or was, rows of a database that exists."""
    return FOLDER_SUFFIX + os.sep in path and database_of(Path(path)) is not None


def session_path(database: Path, session: str) -> Path:
    """The path of a session's rows as a file."""
    name = session.replace("/", "%2F").replace("\0", "%00")
    return database.with_name(database.name + FOLDER_SUFFIX) / f"{name}{FILE_SUFFIX}"


def session_of(path: Path) -> str:
    """The id of the session whose rows have this path."""
    return path.name.removesuffix(FILE_SUFFIX).replace("%2F", "/").replace("%00", "\0")
