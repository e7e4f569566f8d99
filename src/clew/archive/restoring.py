"""Archived files put back below a folder that a person names, with their bytes, modes and times."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple

from clew.archive.layout import RECOVERED, Damage, Place, Version
from clew.archive.reading import Reader
from clew.archive.state import State
from clew.datadir import private_folder
from clew.errors import AmbiguousReference, SourceUnreadable, UnknownReference, WouldLose
from clew.io.paths import file_name
from clew.io.safe_write import Change, Within, refuse_twins

_AT_ONCE = 64 << 20
_OUTSIDE = "outside-home"


class Step(NamedTuple):
    """A file to put back."""

    version: Version
    path: str
    """Below the folder."""


def choose(state: State, references: Sequence[str], at_us: int | None = None) -> list[Version]:
    """The versions that are meant: of all sessions or of some, as they are now or were at a time."""
    every = [_at(versions, at_us) for versions in state.files.values()]
    found = [version for version in every if version is not None]
    if not references:
        return found
    wanted = {session for reference in references for session in [_session(found, reference)]}
    return [version for version in found if (version.agent, version.session) in wanted]


def _at(versions: list[Version], at_us: int | None) -> Version | None:
    kept = [version for version in versions if at_us is None or version.taken_us <= at_us]
    return kept[-1] if kept else None


def _session(versions: Iterable[Version], reference: str) -> tuple[str, str]:
    """The one session whose id begins like this; `agent:id` names the agent too."""
    agent, _, start = reference.rpartition(":")
    mains = [version for version in versions if version.role == "main" and agent in ("", version.agent)]
    found = {(version.agent, version.session) for version in mains if version.session.startswith(start)}
    exact = {one for one in found if one[1] == start}
    if len(exact or found) == 1:
        return (exact or found).pop()
    if not found:
        raise UnknownReference(f"{reference}: no such session in the archive; `clew archive list` shows them")
    raise AmbiguousReference(f"{reference}: {len(found)} sessions begin like this; name more of the id")


def plan(state: State, versions: Sequence[Version]) -> list[Step]:
    """Where each file goes: as it lay below its home; apart by home where there are several.

    Records whose files are not known go to a folder of their own.
    """
    many = len({version.place for version in versions if state.places[version.place] != RECOVERED}) > 1
    names = _names(state.places) if many else {}
    steps = []
    for version in versions:
        place = state.places[version.place]
        below = _below_home(version, place)
        folder = RECOVERED.kind if place == RECOVERED else names[version.place] if many else ""
        steps.append(Step(version, f"{folder}/{below}" if folder else below))
    refuse_twins([step.path for step in steps])
    return steps


def _names(places: Sequence[Place]) -> dict[int, str]:
    """A folder for each home."""
    names: dict[int, str] = {}
    for number, place in enumerate(places):
        name = file_name(place.name or PurePosixPath(place.home.replace("\\", "/")).name or place.kind)
        names[number] = name if name not in names.values() else f"{name}-{number}"
    return names


def _below_home(version: Version, place: Place) -> str:
    path = os.fsdecode(version.path)
    kind = PureWindowsPath if place.home[1:2] == ":" or place.home.startswith("\\") else PurePosixPath
    whole, home = kind(path), kind(place.home)
    if whole.is_relative_to(home):
        return whole.relative_to(home).as_posix()
    return "/".join([_OUTSIDE, *whole.parts[bool(whole.anchor) :]])


class Restored(NamedTuple):
    """What came back."""

    written: int
    same: int
    """So many were there already."""
    damaged: list[Damage]
    """What could not be brought back."""


def restore(reader: Reader, steps: Sequence[Step], target: Path, force: bool = False) -> Restored:
    """Write the files, all that can be read."""
    private_folder(str(target))
    written, same, damaged = 0, 0, list[Damage]()
    with Within(target, folder_mode=0o700) as folder:
        differing = [step for step in steps if _state(folder, step) == "other"] if not force else []
        if differing:
            raise WouldLose(f"nothing was written: {differing[0].path} is there and differs; --force replaces it")
        for batch in _batches(steps):
            changes = []
            for step in batch:
                version = step.version
                if _state(folder, step) == "same":
                    same += 1
                    continue
                try:
                    changes.append(Change(step.path, reader.content(version), version.mode, version.mtime_ns))
                except (OSError, SourceUnreadable) as error:
                    damaged.append(Damage(os.fsdecode(version.path), 0, str(error), (step.path,)))
            folder.apply(changes)
            written += len(changes)
    return Restored(written, same, damaged)


def _state(folder: Within, step: Step) -> str:
    """Whether there is nothing in a file's place, the same or something else."""
    import hashlib

    there = folder.read(step.path)
    if there is None:
        return "nothing"
    return "same" if hashlib.sha256(there).digest() == step.version.digest else "other"


def _batches(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Files that are put back together: all of a batch or none of it."""
    batch: list[Step] = []
    size = 0
    for step in steps:
        if batch and size + step.version.size > _AT_ONCE:
            yield batch
            batch, size = [], 0
        batch.append(step)
        size += step.version.size
    if batch:
        yield batch
