"""Holds: sessions that must not be removed, for a reason, until the hold is removed or the session is old enough.

They are in the file `holds.json` in the folder of the archive. Everything that removes a session or an archived version
of it asks here first. A session of which too little is known is held: a hold on a project covers sessions whose project
no catalog knows, and a minimum age covers sessions whose last activity no catalog knows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from clew.archive.records import HOLDS, check_folder
from clew.errors import UnknownReference, WouldLose
from clew.io import json_file
from clew.model.time import parse_time, spell_time


class Hold(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is held, and why. All that is given must apply to a session; a hold without any of it covers everything."""

    reason: str
    added_at: str
    sessions: tuple[str, ...] = ()
    """As `agent:id`."""
    agents: tuple[str, ...] = ()
    project: str | None = None
    """Sessions whose folder contains this text, in any case."""
    folders: tuple[str, ...] = ()
    """Sessions of one of these folders, or below it."""
    since: str | None = None
    """Sessions with activity since this time."""
    until: str | None = None
    """Sessions that began before this time."""
    min_age_days: float | None = None
    """Sessions are held until their last activity is so long ago."""
    removed_at: str | None = None
    removal_reason: str | None = None


class CatalogFacts(NamedTuple):
    """What a catalog knows of a session, by which a hold may choose it."""

    workspace: str | None = None
    started: datetime | None = None
    last_message: datetime | None = None


KnownSessions = Mapping[Path, CatalogFacts]
"""By the absolute paths of the main files of the sessions."""
NOTHING_KNOWN: KnownSessions = MappingProxyType({})


class Held(NamedTuple):
    """The hold that covers a session."""

    hold: str
    """Its number and reason."""
    unknown: str = ""
    """What no catalog knows of the session, so that the hold covers it: its `project`, for example."""

    def __str__(self) -> str:
        return f"{self.hold}; its {self.unknown} is not known, `clew sync` reads it" if self.unknown else self.hold


class Holds:
    """The holds of an archive, as they are now."""

    def __init__(self, folder: Path, known: KnownSessions = NOTHING_KNOWN) -> None:
        """Load them. Raises SourceUnreadable for a damaged file: then nothing may be removed."""
        self.all = load_holds(folder)
        self._known = known

    def find(
        self,
        agent: str,
        session: str,
        main: Path,
        last_write: datetime,
        now: datetime,
        *,
        archived_at: datetime | None = None,
    ) -> Held | None:
        """Find a hold on a session, if possible one that covers it by what is known; None if there is none.

        The time of a file may be older than its content, as after a copy. So the last activity is the last message or
        the last write, whichever is later. Where no catalog knows the last message, it was at `archived_at` at the
        latest; without that, it may have been just now.
        """
        about = self._known.get(absolute_path(main), CatalogFacts())
        last_activity = max(last_write, about.last_message or archived_at or now)
        found = [
            Held(f"hold {name}: {hold.reason}", _unknown(hold, about, last_write, now))
            for name, hold in self.all.items()
            if _covers(hold, agent, session, about, last_activity, now)
        ]
        return min(found, key=lambda held: bool(held.unknown), default=None)

    def refuse(self, agent: str, session: str, main: Path, last_write: datetime, now: datetime) -> None:
        """Raise WouldLose, naming the hold, if a session is held."""
        if held := self.find(agent, session, main, last_write, now):
            raise WouldLose(f"{agent}:{session}: nothing was changed: it is held ({held})")


def absolute_path(path: Path) -> Path:
    """A path as the archive names it: absolute, with links as they are."""
    return Path(os.path.abspath(path))  # noqa: PTH100


def _covers(hold: Hold, agent: str, session: str, about: CatalogFacts, last_activity: datetime, now: datetime) -> bool:
    until = parse_time(hold.until) if hold.until else None
    is_other_project = about.workspace is not None and not _is_in_project(hold, about.workspace)
    return not (
        hold.removed_at is not None
        or (hold.sessions and f"{agent}:{session}" not in hold.sessions)
        or (hold.agents and agent not in hold.agents)
        or is_other_project
        or not _is_in_time(hold, last_activity, now)
        or (until is not None and about.started is not None and about.started >= until)
    )


def _is_in_time(hold: Hold, last_activity: datetime, now: datetime) -> bool:
    """False if a session was active last before the time of a hold, or longer ago than its minimum age."""
    since = parse_time(hold.since) if hold.since else None
    is_old = hold.min_age_days is not None and now - last_activity >= timedelta(days=hold.min_age_days)
    return not is_old and (since is None or last_activity >= since)


def _unknown(hold: Hold, about: CatalogFacts, last_write: datetime, now: datetime) -> str:
    """Name what would have to be known of a session to decide whether a hold covers it; empty if it is known."""
    if about.workspace is None and (hold.project is not None or hold.folders):
        return "project"
    if about.last_message is None and not _is_in_time(hold, last_write, now):
        return "last message"
    if about.started is None and hold.until:
        return "first message"
    return ""


def _is_in_project(hold: Hold, workspace: str) -> bool:
    if hold.folders and not any(f"{workspace}/".startswith(f"{folder.rstrip('/')}/") for folder in hold.folders):
        return False
    return hold.project is None or hold.project.casefold() in workspace.casefold()


def load_holds(folder: Path) -> dict[str, Hold]:
    """Load the holds of an archive by their numbers, removed ones included."""
    check_folder(folder)
    return json_file.load(folder / HOLDS, Hold)


def add_hold(folder: Path, hold: Hold) -> str:
    """Add a hold, and return its number."""
    check_folder(folder)
    with json_file.update(folder / HOLDS, Hold) as holds:
        number = str(max((int(name) for name in holds if name.isdecimal()), default=0) + 1)
        holds[number] = hold
    return number


def remove_hold(folder: Path, number: str, reason: str, now: datetime) -> Hold:
    """Remove a hold. It stays in the file, with the time and the reason."""
    check_folder(folder)
    with json_file.update(folder / HOLDS, Hold) as holds:
        if number not in holds or holds[number].removed_at is not None:
            raise UnknownReference(f"there is no hold {number}; `clew archive hold list` shows all")
        removed = msgspec.structs.replace(holds[number], removed_at=spell_time(now), removal_reason=reason)
        holds[number] = removed
    return removed
