"""Folders and settings of a store: one folder per session with its log, snapshots, metadata and backups."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

import msgspec

from clew.agents.folders import subfolders
from clew.agents.sage_agent.locate import BACKUPS, MESSAGES, METADATA, SNAPSHOTS
from clew.agents.sage_format import read_object
from clew.errors import TargetRefused, UsageError
from clew.host import is_copy
from clew.io.file_lock import LOCK_WAIT_SECONDS
from clew.io.paths import refuse_link_on_way, refuse_link_to_session, safe_relative
from clew.model.json import JSON

__all__ = ["BACKUPS", "MESSAGES", "METADATA", "SNAPSHOTS", "Durability", "Settings", "root_of", "session_folder"]

ROOT, SESSIONS, PROJECTS, CONFIG = ".sage", "sessions", "projects", "config.json"
SCANS = "scans"
"""In a session's folder: the index of the last scan of each workspace, as a blob."""
RESCUE = "rescue"
"""In a session's folder: copies of edited files that an undo replaced."""
FORMAT = 1
"""The number of the store's format; a store with a higher number is read-only."""
OWN = "clew"
"""The store's key in files that it shares with other programs."""

Durability = Literal["disk", "system"]
"""disk: an append returns when the record would survive a power cut. system: when it survives the process."""

Redact = Callable[[dict[str, JSON]], dict[str, JSON]]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How a store works; `.sage/config.json` may say so under the key `clew`."""

    durability: Durability = "disk"
    lock_wait: float = LOCK_WAIT_SECONDS
    alone: bool = False
    """Only this process writes: continue where the file system has no locks."""
    user_type: str | None = "external"
    redact: Literal["none", "secrets", "pii", "paths", "all"] = "none"
    """What is masked in records before they are written."""
    ignore: tuple[str, ...] = ()
    """Patterns of files and folders that are left out where a whole workspace is watched, as in a `.gitignore` file."""
    store: int = FORMAT


def root_of(place: Path) -> Path:
    """The folder `.sage` of a place, which may be that folder itself; a link is refused outside of the user's home."""
    place = place.expanduser()
    root = place if place.name == ROOT else place / ROOT
    refuse_link_to_session(root)
    return root


def session_folder(root: Path, session: str) -> Path:
    """The folder of a session; its name comes from outside."""
    if not session or session.startswith(".") or not session.isprintable():
        raise UsageError(f"not a session id: {session!r}")
    return root / SESSIONS / safe_relative(session)


def refuse_links(folder: Path, *inner: str) -> None:
    """Refuse a session or project whose folders are symbolic links: a store follows none inside it, in any home."""
    refuse_link_to_session(folder)
    for place in (folder, *(folder / name for name in inner)):
        refuse_link_on_way(folder.parent.parent, place)


def refuse_copy(folder: Path) -> None:
    """Refuse to write into the copy of another machine's sessions, or of archived ones."""
    if is_copy(folder):
        raise TargetRefused(f"{folder}: a copy of another machine's session or of an archived session; it is read-only")


def read_settings(root: Path, given: dict[str, JSON]) -> Settings:
    """The settings of the store's configuration, and over them those that were given."""
    place = root / CONFIG
    found = read_object(place)
    if found is None:
        raise UsageError(f"{place}: not a JSON object, or a link; repair or remove it")
    own = found.get(OWN, {})
    if not isinstance(own, dict):
        raise UsageError(f"{place}: `{OWN}` must be an object")
    known = {name: own[name] for name in Settings.__struct_fields__ if name in own}
    try:
        settings = msgspec.convert(known, Settings)
    except msgspec.ValidationError as error:
        raise UsageError(f"{place}: {error}") from None
    try:
        settings = msgspec.convert({**known, **given}, Settings)
    except msgspec.ValidationError as error:
        raise UsageError(f"invalid options for the store: {error}") from None
    assert settings.durability in get_args(Durability)
    return settings


def folders(place: Path) -> list[Path]:
    """Return the folders in a folder, by name, without links; none where the folder itself is a link."""
    return [] if place.is_symlink() else subfolders(place)
