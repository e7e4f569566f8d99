"""The copies of files and the long outputs that an agent keeps for one session beside its records.

A copy is named by the number of its place among those that the agent lists, and by its path below that place. So the
name is valid in any home, and never leads out of the places that the agent lists there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from clew.agents import registry
from clew.agents.backups import is_behind_link, is_plain_file
from clew.agents.base import SourceFile
from clew.io.paths import safe_below, walk

MAX_COPIES_BYTES = 16 << 20
"""More than this does not travel inside another agent's session."""
PIECE_BYTES = 512 << 10
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAME = re.compile(r"(\d{1,3})(?:/(.+))?", re.DOTALL)


def places_of(source: SourceFile) -> list[Path]:
    """Where the agent of a session keeps copies for it; existing or not."""
    return list(registry.get(source.agent).copies(source))


def copies_of(source: SourceFile) -> Iterator[tuple[str, Path]]:
    """The copies that belong to the session alone, with their names."""
    for number, place in enumerate(places_of(source)):
        if not _belongs(place, source) or is_behind_link(place, source.path):
            continue
        if is_plain_file(place):
            yield f"{number}", place
        for folder, folders, names in walk(place):
            folders.sort()
            for path in (Path(folder, name) for name in sorted(names)):
                if is_plain_file(path):
                    yield f"{number}/{path.relative_to(place).as_posix()}", path


def is_own(source: SourceFile, name: str) -> bool:
    """Whether a copy of that name would lie where its agent keeps what belongs to the session alone."""
    places, found = places_of(source), _NAME.fullmatch(name)
    return found is not None and int(found[1]) < len(places) and _belongs(places[int(found[1])], source)


def _belongs(place: Path, source: SourceFile) -> bool:
    """False for what a whole project shares, also where a session calls itself by the name of a shared folder."""
    identity = registry.get(source.agent).session_id(source)
    folder = source.path.parent
    if folder.name == identity and place.is_relative_to(folder):
        return True
    return _UUID.fullmatch(identity) is not None and (identity in place.parts or place.name.startswith(identity))


def place_of(places: Sequence[Path], name: str) -> Path | None:
    """Where a copy of that name goes; None where the name is none."""
    found = _NAME.fullmatch(name)
    if found is None or int(found[1]) >= len(places):
        return None
    place = places[int(found[1])]
    return place / safe_below(found[2]) if found[2] else place


def read_pieces(path: Path, size: int | None = None) -> Iterator[bytes]:
    """A file in pieces, or its first `size` bytes: it may have grown since."""
    left = path.stat().st_size if size is None else size
    with path.open("rb") as stream:
        while left and (piece := stream.read(min(left, PIECE_BYTES))):
            left -= len(piece)
            yield piece
