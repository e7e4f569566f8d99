"""The machine as clew sees it: homes, environment, clock. Passed in, so that every test builds its own world."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

from clew.datadir import config_path, data_path

Kind = Literal["local", "wsl", "windows", "remote"]
REMOTES, ARCHIVED = "remotes", "archived"
"""Folders in the data folder: copies of other machines' sessions, and sessions unpacked from the archive."""


class Origin(NamedTuple):
    """Where a session was written, as its document says it."""

    type: Kind
    host: str | None
    path: str


def current_time() -> datetime:
    return datetime.now(UTC)


class Host(NamedTuple):
    """One home folder to read agents from, with the environment that belongs to it."""

    home: Path
    env: Mapping[str, str] = MappingProxyType({})
    now: Callable[[], datetime] = current_time
    kind: Kind = "local"
    name: str | None = None
    """The remote host or the WSL distribution."""
    base: Path | None = None
    """The folder that stands for the root of another machine, where its files are a copy."""

    @classmethod
    def local(cls) -> Host:
        """The user's own home, with the real environment."""
        return cls(Path.home(), os.environ)

    @classmethod
    def at(cls, home: Path) -> Host:
        """A named home folder: environment variables of the running user do not apply to it."""
        return cls(home)

    def expand(self, text: str) -> Path:
        """A configured path, with the home in place of a leading `~`. The name of another user stays as it is."""
        path = Path(text)
        return self.home.joinpath(*path.parts[1:]) if path.parts[:1] == ("~",) else path

    def configured_folder(self, variable: str, usual: str) -> Path:
        """The folder that a variable of the environment names, else the usual one below the home."""
        configured = self.env.get(variable)
        return self.expand(configured) if configured else self.home / usual

    def origin(self, path: Path) -> Origin:
        """Where a file of this host was written; of a copy, its place on the other machine."""
        if self.base is None or not path.is_relative_to(self.base):
            return Origin(self.kind, self.name, str(path))
        return Origin(self.kind, self.name, "/" + path.relative_to(self.base).as_posix())

    def holds(self, path: Path) -> bool:
        """True for a file of this host."""
        return path.absolute().is_relative_to((self.base or self.home).absolute())


def config_dir() -> Path:
    """The folder for what a person sets; `CLEW_CONFIG_DIR` overrides it."""
    return Path(config_path())


def data_dir() -> Path:
    """The one folder clew keeps its own files in; `CLEW_DATA_DIR` overrides it."""
    return Path(data_path())


def is_copy(path: Path) -> bool:
    """True for what lies in the copy of another machine's sessions, or of archived ones, which clew only reads."""
    path, data = path.resolve(), data_dir().resolve()
    return any(path.is_relative_to(data / name) for name in (REMOTES, ARCHIVED))
