"""The machine as clew sees it: homes, environment, clock. Passed in, so that every test builds its own world."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Host:
    """One home folder to read agents from, with the environment that belongs to it."""

    home: Path
    env: Mapping[str, str] = field(default_factory=dict)
    now: Callable[[], datetime] = _now

    @classmethod
    def local(cls) -> Host:
        """The user's own home, with the real environment."""
        return cls(Path.home(), os.environ)

    @classmethod
    def at(cls, home: Path) -> Host:
        """A named home folder: environment variables of the running user do not apply to it."""
        return cls(home)


def data_dir(env: Mapping[str, str] | None = None) -> Path:
    """The one folder clew keeps its own files in; `CLEW_DATA_DIR` overrides it."""
    env = os.environ if env is None else env
    if env.get("CLEW_DATA_DIR"):
        return Path(env["CLEW_DATA_DIR"])
    import platformdirs

    return Path(platformdirs.user_data_dir("clew", appauthor=False))
