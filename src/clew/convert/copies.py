"""The copies of files and the long outputs that an agent keeps for one session beside its records.

Each is called by a number, that of the place among those its agent names, and by its path below that place: so it
finds its way into any home, and never leaves the places that the agent names there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from clew.agents import registry
from clew.agents.backups import is_behind_link, is_plain_file
from clew.agents.base import SourceFile
from clew.io.paths import safe_below

LIMIT = 16 << 20
"""More than this does not travel inside another agent's session."""
_UNIQUE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""An id that nothing else is called by."""
_NAME = re.compile(r"(\d{1,3})(?:/(.+))?", re.DOTALL)


def places_of(source: SourceFile) -> list[Path]:
    """Where the agent of a session keeps copies for it; existing or not."""
    return list(registry.get(source.agent).copies(source))


def copies_of(source: SourceFile) -> Iterator[tuple[str, Path]]:
    """The copies that belong to the session alone, with their names."""
    identity = registry.get(source.agent).session_id(source)
    for number, place in enumerate(places_of(source)):
        if not _belongs(place, source, identity) or is_behind_link(place, source.path):
            continue
        if is_plain_file(place):
            yield f"{number}", place
        for path in _below(place):
            yield f"{number}/{path.relative_to(place).as_posix()}", path


def is_own(source: SourceFile, name: str) -> bool:
    """Whether a copy of that name would lie where its agent keeps what belongs to the session alone."""
    places, found = places_of(source), _NAME.fullmatch(name)
    identity = registry.get(source.agent).session_id(source)
    return found is not None and int(found[1]) < len(places) and _belongs(places[int(found[1])], source, identity)


def _belongs(place: Path, source: SourceFile, identity: str) -> bool:
    """False for what a whole project shares, also where a session calls itself by the name of a shared folder."""
    folder = source.path.parent
    if folder.name == identity and place.is_relative_to(folder):
        return True
    return _UNIQUE.fullmatch(identity) is not None and (identity in place.parts or place.name.startswith(identity))


def _below(folder: Path) -> Iterator[Path]:
    for below, folders, names in os.walk(folder):
        folders.sort()
        yield from (path for name in sorted(names) if is_plain_file(path := Path(below, name)))


def place_of(places: Sequence[Path], name: str) -> Path | None:
    """Where a copy of that name goes; None where the name is none."""
    found = _NAME.fullmatch(name)
    if found is None or int(found[1]) >= len(places):
        return None
    place = places[int(found[1])]
    return place / safe_below(found[2]) if found[2] else place
