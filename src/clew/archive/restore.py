"""Restoring archived files with content, modes and times, below a folder that the user names or where they were."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple

from clew.agents import registry
from clew.archive.archive import Archive, open_archive
from clew.archive.records import Damage, SourceHome, Version, archive_folder
from clew.datadir import private_folder
from clew.errors import AmbiguousReference, ClewError, SourceUnreadable, UnknownReference, UsageError, WouldLose
from clew.io.batches import batches_by_size
from clew.io.paths import file_name
from clew.io.safe_write import Change, Within, refuse_twins

_BATCH_BYTES = 64 << 20
_OUTSIDE = "outside-home"


class Step(NamedTuple):
    """A file to restore."""

    version: Version
    path: str
    """Relative to the target folder."""


def choose(archive: Archive, references: Sequence[str], at_us: int | None = None) -> list[Version]:
    """Return the versions to restore: of all sessions or of some, the newest or those at a time."""
    every = [_version_at(versions, at_us) for versions in archive.files.values()]
    found = [version for version in every if version is not None]
    if not references:
        return found
    wanted = {_session(found, reference, at_us) for reference in references}
    return [version for version in found if (version.agent, version.session) in wanted]


def _version_at(versions: Sequence[Version], at_us: int | None) -> Version | None:
    if at_us is None:
        return versions[-1]
    return next((found for version in reversed(versions) if (found := version.at(at_us)) is not None), None)


def _session(versions: Iterable[Version], reference: str, at_us: int | None) -> tuple[str, str]:
    """Return agent and id of the one session whose id begins with the reference; `agent:id` names the agent too."""
    agent, _, start = reference.rpartition(":")
    agent = registry.match(agent) if agent else ""
    mains = [version for version in versions if version.role == "main" and agent in ("", version.agent)]
    found = {(version.agent, version.session) for version in mains if version.session.startswith(start)}
    exact = {one for one in found if one[1] == start}
    if len(exact or found) == 1:
        return (exact or found).pop()
    if not found:
        when = " at that time" if at_us is not None else ""
        raise UnknownReference(f"{reference}: no such session in the archive{when}; `clew archive list` shows all")
    raise AmbiguousReference(f"{reference}: {len(found)} sessions match; give more of the id")


def in_archive(start: str, agent: str | None) -> UnknownReference | None:
    """The error that a session is gone and only in the archive, with the commands for it; None where it is not there.

    `start` is its id or the beginning of it.
    """
    name = f"{agent or ''}:{start}"
    try:
        with open_archive(archive_folder(None)) as archive:
            found = ":".join(_session(archive.newest(), name, None))
    except (ClewError, OSError):
        return None
    read, restored = f"`clew show {found} --source archive`", f"`clew archive restore {found} --in-place`"
    return UnknownReference(f"{found} is only in the archive: {read} or {restored}")


def plan(versions: Sequence[Version]) -> list[Step]:
    """Return where each file goes: to its path below its home, with a folder for each home where there are several."""
    homes = list(dict.fromkeys(version.home for version in versions))
    folders = _folder_names(homes)
    steps = []
    for version in versions:
        below = _path_below_home(version)
        steps.append(Step(version, f"{folders[version.home]}/{below}" if len(homes) > 1 else below))
    refuse_twins([step.path for step in steps])
    return steps


def plan_in_place(versions: Sequence[Version]) -> dict[Path, list[Step]]:
    """Return the files by the folder they go below: their home, or a folder that a variable of their agent named."""
    found: dict[Path, list[Step]] = {}
    for version in versions:
        home, path = version.home, Path(os.fsdecode(version.path))
        if home.base or not path.is_absolute():
            raise UsageError(f"{path}: is a file of another machine; use --into DIR")
        folder = home.folder_above(path)
        if folder is None:
            raise UsageError(f"{path}: lies neither in its home nor in a folder of its agent; use --into DIR")
        found.setdefault(folder, []).append(Step(version, path.relative_to(folder).as_posix()))
    return found


def _folder_names(homes: Sequence[SourceHome]) -> dict[SourceHome, str]:
    """Return the name of a folder for each home."""
    names: dict[SourceHome, str] = {}
    for number, home in enumerate(homes):
        name = file_name(home.name or PurePosixPath(home.path.replace("\\", "/")).name or home.kind)
        names[home] = name if name not in names.values() else f"{name}-{number}"
    return names


def _path_below_home(version: Version) -> str:
    path, home = os.fsdecode(version.path), version.home.path
    kind = PureWindowsPath if home[1:2] == ":" or home.startswith("\\") else PurePosixPath
    if kind(path).is_relative_to(kind(home)):
        return kind(path).relative_to(kind(home)).as_posix()
    return "/".join([_OUTSIDE, *kind(path).parts[bool(kind(path).anchor) :]])


class Restored(NamedTuple):
    """The result of a restore."""

    written: int
    same: int
    """Number of files that were there already."""
    damaged: list[Damage]
    """Files that could not be restored."""


def restore(archive: Archive, targets: Mapping[Path, Sequence[Step]], force: bool = False) -> Restored:
    """Write the files that can be read below their folders; one that differs is replaced only with `force`."""
    for target, steps in targets.items():
        private_folder(str(target))
        with Within(target, folder_mode=0o700) as folder:
            differing = [step for step in steps if _compare(folder, step) == "other"] if not force else []
        if differing:
            raise WouldLose(f"nothing was written: {differing[0].path} exists and differs; use --force to replace it")
    results = [_restore_below(archive, steps, target) for target, steps in targets.items()]
    damaged = [damage for result in results for damage in result.damaged]
    return Restored(sum(result.written for result in results), sum(result.same for result in results), damaged)


def _restore_below(archive: Archive, steps: Sequence[Step], target: Path) -> Restored:
    written, same, damaged = 0, 0, list[Damage]()
    with Within(target, folder_mode=0o700) as folder:
        # All files of a batch are written, or none.
        for batch in batches_by_size(steps, lambda step: step.version.size, _BATCH_BYTES):
            changes = []
            for step in batch:
                version = step.version
                if _compare(folder, step) == "same":
                    same += 1
                    continue
                try:
                    changes.append(Change(step.path, archive.content(version), version.mode, version.mtime_ns))
                except (OSError, SourceUnreadable) as error:
                    damaged.append(Damage(os.fsdecode(version.path), 0, str(error), (step.path,)))
            folder.apply(changes)
            written += len(changes)
    return Restored(written, same, damaged)


def _compare(folder: Within, step: Step) -> str:
    """Return whether the target has nothing, the same content or other content at the path of a file."""
    there = folder.read(step.path)
    if there is None:
        return "nothing"
    return "same" if hashlib.sha256(there).digest() == step.version.digest else "other"
