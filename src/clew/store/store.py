"""The store: the sessions and projects below one folder, opened or created by name."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from clew.errors import UnknownReference, UsageError
from clew.io.codec import dumps
from clew.io.filesystem import SYSTEM, System, make_folder, replace_file
from clew.model.json import JSON
from clew.store.layout import (
    CONFIG,
    FORMAT,
    MESSAGES,
    OWN,
    PROJECTS,
    SESSIONS,
    Durability,
    Redact,
    folders,
    read_settings,
    root_of,
    session_folder,
)
from clew.store.lock import going_alone
from clew.store.project import Project, project_folder
from clew.store.session import Session, is_session
from clew.store.stamps import Clock, new_uuid
from clew.store.writer import World

if TYPE_CHECKING:
    from clew.redact.redactor import Redactor


class Store:
    """Sessions in the folder `.sage` below a place; a place of that name is meant itself.

    What `.sage/config.json` says under `clew` holds, unless it is given here. `durability` is `disk` (an append returns
    when the record would survive a power cut; the default) or `system` (when it survives this process). A lock is
    waited for `lock_wait` seconds; `alone` goes on where there are no locks. `version` is that of the agent that
    writes. With `redact` (a profile: secrets, pii, paths, all; or a function of your own) every record is masked before
    a byte of it reaches the disk.
    """

    def __init__(
        self,
        place: Path | str,
        *,
        durability: Durability | None = None,
        lock_wait: float | None = None,
        alone: bool | None = None,
        user_type: str | None = None,
        version: str = "0.1.0",
        redact: Redact | Redactor | str | None = None,
        clock: Clock = time.time,
        system: System = SYSTEM,
    ) -> None:
        # Whole, so that it stays the same place when the process goes to another folder.
        self.root = root_of(Path(place)).absolute()
        _refuse_file(self.root)
        given: dict[str, JSON] = {"durability": durability, "lock_wait": lock_wait, "alone": alone}
        given |= {"user_type": user_type, "redact": redact if isinstance(redact, str) else None}
        self.settings = read_settings(self.root, {name: item for name, item in given.items() if item is not None})
        self._redactor: Redactor | None = None
        if callable(redact):
            function: Redact | None = redact
        else:
            self._redactor = _redactor(redact, self.settings.redact)
            function = None if self._redactor is None else self._redactor.mask_for_append
        system = going_alone(system) if self.settings.alone else system
        self._world = World(self.settings, system, clock, version, function, self._configure)

    def __repr__(self) -> str:
        return f"<Store {self.root}>"

    def session(self, session: str | None = None) -> Session:
        """The session of this id, which begins with its first message; without an id, a new one."""
        return self._opened(session_folder(self.root, session or new_uuid()))

    def get(self, session: str) -> Session:
        """The session of this id, which must be there."""
        folder = session_folder(self.root, session)
        if not is_session(folder):
            raise UnknownReference(f"{self.root}: no session {session!r}")
        return self._opened(folder)

    def sessions(self) -> Iterator[Session]:
        """Every session, the one written to last first."""
        found = [folder for folder in folders(self.root / SESSIONS) if is_session(folder)]
        for folder in sorted(found, key=_written, reverse=True):
            yield Session(folder, self._world)

    def project(self, workspace: Path | str) -> Project:
        """The one conversation of a project folder, in the layout of sage-emacs."""
        return Project(project_folder(self.root / PROJECTS, str(workspace)), str(workspace), self._world)

    def _opened(self, folder: Path) -> Session:
        """Open a session. Values that were masked in it before, by whichever process, are masked from then on."""
        session, log = Session(folder, self._world), folder / MESSAGES
        if self._redactor is not None and log.is_file() and not log.is_symlink():
            with suppress(OSError), log.open(encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    self._redactor.learn_markers(line)
        return session

    def _configure(self) -> None:
        """A new store says which form it has; a configuration that is there is never touched."""
        place = self.root / CONFIG
        if not self.root.exists():
            make_folder(self._world.system, self.root)
            # Each session says it too, so that no message need wait for this.
            with suppress(OSError):
                if not place.exists():
                    replace_file(self._world.system, place, dumps({OWN: {"store": FORMAT}}) + b"\n")


def _refuse_file(root: Path) -> None:
    """A file where a folder should be is somebody's mistake, and told as such."""
    there = next((folder for folder in (root, *root.parents) if folder.exists()), None)
    if there is not None and not there.is_dir():
        raise UsageError(f"{there}: is a file, and a store is a folder")


def _redactor(given: Redactor | str | None, profile: str) -> Redactor | None:
    """Return the redactor that was given, or one of the profile in the settings."""
    if given is not None and not isinstance(given, str):
        return given
    if profile == "none":
        return None
    from clew.redact.redactor import Redactor
    from clew.redact.settings import load_settings

    return Redactor(load_settings(profile))


def _written(folder: Path) -> tuple[int, str]:
    with suppress(OSError):
        return (folder / "messages.jsonl").stat().st_mtime_ns, folder.name
    return 0, folder.name
