"""Plain copies of what somebody changed, where a person finds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path

from clew.io.filesystem import SYSTEM, make_folder
from clew.io.safe_write import Change
from clew.store.groups import folders_of
from clew.store.placing import is_folder, is_there, obstacle, place
from clew.store.steps import Step

EARLIER = "earlier"
"""The folder for versions of a file that another one has the place of."""


def rescue(conflicts: Sequence[Step], folder: Path | None) -> Path | None:
    """Keep copies in the folder; returns where they are, or None where there is nothing to keep.

    Where one of them would take the place of something, all of them go into a new folder inside.
    """
    kept = list(_copies(conflicts))
    if not kept or folder is None:
        return None
    paths = [copy.path for copy in kept]
    rooms = (folder / str(number) for number in count(2))
    room = next(room for room in chain([folder], rooms) if _has_room(room, folder, paths))
    for above in ("", *folders_of(paths)):
        make_folder(SYSTEM, room / above)
    place(room, kept)
    return room


def _has_room(room: Path, chosen: Path, paths: Sequence[str]) -> bool:
    """True where nothing is in the way of any path; the folder that was chosen may be a link."""
    if room != chosen and is_there(room) and not is_folder(room):
        return False
    return not any(is_there(room / path) or obstacle(room, path, (), ()) for path in paths)


def _copies(conflicts: Sequence[Step]) -> Iterator[Change]:
    tops = {step.path.partition("/")[0] for step in conflicts}
    files: set[str] = set()
    folders: set[str] = set()
    for step in conflicts:
        places = (_place(step.path, number, tops) for number in count())
        for body in _versions(step):
            path = next(one for one in places if one not in folders and files.isdisjoint((one, *folders_of([one]))))
            files.add(path)
            folders.update(folders_of([path]))
            yield Change(path, body, 0o600)


def _place(path: str, number: int, tops: set[str]) -> str:
    """The place of a copy: the first is where the file is, the others are below folders for earlier versions."""
    if not number:
        return path
    above = EARLIER + (str(number) if number > 1 else "")
    while above in tops:
        above += "-"
    return f"{above}/{path}"


def _versions(step: Step) -> list[bytes]:
    """What somebody made of a file, the last first, each once."""
    now = [step.there] if step.is_changed_since else []
    made = [one.made for one in reversed(step.between)]
    return list(dict.fromkeys(body for body in (*now, *made) if body is not None))
