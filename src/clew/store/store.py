"""`Store`: opens or creates the sessions and projects of one folder."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from clew.agents.sage_emacs.locate import CONVERSATION
from clew.errors import UnknownReference, UsageError
from clew.io.codec import dumps
from clew.io.file_lock import ignore_missing_locks
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
from clew.store.project import Project, project_folder
from clew.store.session import Session, is_session
from clew.store.writer import Clock, WriterConfig, new_uuid

if TYPE_CHECKING:
    from clew.redact.redactor import Redactor


class Store:
    """The sessions in the folder `.sage` below `place`, or in `place` itself if it is called `.sage`.

    Arguments override the key `clew` of `.sage/config.json`. `durability` is `disk` (an append returns when the record
    survives a power cut; the default) or `system` (when it survives this process). `lock_wait` is in seconds; with
    `alone` the store works where the file system has no locks. `version` is that of the agent that writes. With
    `redact` (a profile: secrets, pii, paths, all; or a function) every record of the log is masked before it is
    written; snapshots are not masked.
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
        self.root: Path = root_of(Path(place)).absolute()
        """The folder `.sage`; absolute, since the process may change its working folder."""
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
        system = ignore_missing_locks(system) if self.settings.alone else system
        self._config = WriterConfig(self.settings, system, clock, version, function, self._configure)

    def __repr__(self) -> str:
        return f"<Store {self.root}>"

    def session(self, session: str | None = None) -> Session:
        """Return the session with this id, which is created by its first message; without an id, a new one."""
        return self._opened(session_folder(self.root, new_uuid() if session is None else session))

    def get(self, session: str) -> Session:
        """Return the session with this id; raises UnknownReference if there is none."""
        folder = session_folder(self.root, session)
        if not is_session(folder):
            raise UnknownReference(f"{self.root}: no session {session!r}")
        return self._opened(folder)

    def sessions(self) -> Iterator[Session]:
        """Yield every session, the most recently written first."""
        found = [folder for folder in folders(self.root / SESSIONS) if is_session(folder)]
        for folder in sorted(found, key=_written, reverse=True):
            yield self._opened(folder)

    def project(self, workspace: Path | str) -> Project:
        """Return the conversation of a project folder, in the layout of sage-emacs."""
        folder = project_folder(self.root / PROJECTS, str(workspace))
        project = Project(folder, str(workspace), self._config)
        self._learn_markers(folder / CONVERSATION)
        return project

    def _opened(self, folder: Path) -> Session:
        session = Session(folder, self._config)
        self._learn_markers(folder / MESSAGES)
        return session

    def _learn_markers(self, log: Path) -> None:
        """Learn the values that earlier processes masked in a log, so that they are masked in new records too."""
        if self._redactor is not None and log.is_file() and not log.is_symlink():
            with suppress(OSError), log.open(encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    self._redactor.learn_markers(line)

    def _configure(self) -> None:
        """Write the format into the configuration of a new store; an existing one is never changed."""
        place = self.root / CONFIG
        if not self.root.exists():
            make_folder(self._config.system, self.root)
            # Each session has it too, so a failure here is no reason to refuse a message.
            with suppress(OSError):
                if not place.exists():  # another program may have made the folder meanwhile
                    replace_file(self._config.system, place, dumps({OWN: {"store": FORMAT}}) + b"\n")


def _refuse_file(root: Path) -> None:
    """Refuse a path that is, or leads through, a file."""
    there = next((folder for folder in (root, *root.parents) if folder.exists()), None)
    if there is not None and not there.is_dir():
        raise UsageError(f"{there}: not a folder")


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
        return (folder / MESSAGES).stat().st_mtime_ns, folder.name
    return 0, folder.name
