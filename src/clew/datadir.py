"""The folders clew keeps its own files and settings in. Loads next to nothing: the quickest commands begin here."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def data_path(env: Mapping[str, str] | None = None) -> str:
    """The one folder clew keeps its own files in; `CLEW_DATA_DIR` overrides it."""
    env = os.environ if env is None else env
    return env.get("CLEW_DATA_DIR") or _usual("XDG_DATA_HOME", "~/.local/share", "user_data_dir")


def config_path(env: Mapping[str, str] | None = None) -> str:
    """The folder for what a person sets; `CLEW_CONFIG_DIR` overrides it."""
    env = os.environ if env is None else env
    return env.get("CLEW_CONFIG_DIR") or _usual("XDG_CONFIG_HOME", "~/.config", "user_config_dir")


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


def _usual(variable: str, usual: str, name: str) -> str:
    if os.name == "posix" and sys.platform.startswith("linux"):
        # What platformdirs says too; it takes longer to load than a look at all sessions.
        base = os.environ.get(variable, "").strip() or os.path.expanduser(usual)  # noqa: PTH111 - pathlib is not light
        return f"{base}/clew"
    import platformdirs

    return str(getattr(platformdirs, name)("clew", appauthor=False))
