"""The folders clew keeps its own files and settings in. Loads next to nothing: the quickest commands begin here."""

from __future__ import annotations

import os
import sys

ANNOTATIONS_FILE = "annotations.db"
"""The stars, labels, notes and titles of the user, in the data folder."""
PROJECT_NAMES_FILE = "project_names.json"
"""The names that the user gave to projects, in the data folder."""


def data_path() -> str:
    """The one folder clew keeps its own files in; `CLEW_DATA_DIR` overrides it."""
    return _named("CLEW_DATA_DIR") or _usual("XDG_DATA_HOME", ".local/share", "user_data_dir")


def config_path() -> str:
    """The folder for what a person sets; `CLEW_CONFIG_DIR` overrides it."""
    return _named("CLEW_CONFIG_DIR") or _usual("XDG_CONFIG_HOME", ".config", "user_config_dir")


def environment_problem() -> str | None:
    """What is wrong with the folders and limits that the environment sets for clew; None where nothing is."""
    from clew.errors import UsageError

    try:
        folders = (data_path(), config_path())
    except UsageError as error:
        return str(error)
    for folder in folders:
        if os.path.exists(folder) and not os.path.isdir(folder):  # noqa: PTH110, PTH112
            return f"{folder}: is a file, not a folder; clew keeps its own files in a folder of this name"
    longest = os.environ.get("CLEW_MAX_LINE", "")
    if longest and not (longest.isdecimal() and int(longest) > 0):
        return f"CLEW_MAX_LINE={longest!r}: not a number of bytes above 0"
    return None


def private_folder(folder: str) -> None:
    """Make a folder and those above it that are missing, each for its owner alone."""
    missing, place = [], os.path.abspath(folder)  # noqa: PTH100 - pathlib is not light
    while not os.path.isdir(place):  # noqa: PTH112
        missing.append(place)
        place = os.path.dirname(place)  # noqa: PTH120
    for place in reversed(missing):
        try:
            os.mkdir(place, 0o700)  # noqa: PTH102
        except FileExistsError:
            if not os.path.isdir(place):  # noqa: PTH112 - else another process was quicker
                raise


def _named(variable: str) -> str:
    """The folder that a variable of clew's own names; raises UsageError for a relative path."""
    named = os.environ.get(variable, "")
    return _absolute(named, variable) if named else ""


def _absolute(path: str, variable: str) -> str:
    """The path; a relative one would make a folder of whatever project is current clew's own."""
    if os.path.isabs(path):  # noqa: PTH117 - pathlib is not light
        return path
    from clew.errors import UsageError

    raise UsageError(f"{variable}={path!r}: not an absolute path")


def _usual(variable: str, usual: str, name: str) -> str:
    if os.name == "posix" and sys.platform.startswith("linux"):
        # What platformdirs says too; it takes longer to load than a look at all sessions.
        base = os.environ.get(variable, "").strip()
        if not os.path.isabs(base):  # noqa: PTH117
            # The XDG specification says that a relative path is to be ignored.
            home = _absolute(os.path.expanduser("~"), "HOME")  # noqa: PTH111
            base = f"{home.rstrip('/')}/{usual}"
        return f"{base}/clew"
    import platformdirs

    return _absolute(str(getattr(platformdirs, name)("clew", appauthor=False)), variable)
