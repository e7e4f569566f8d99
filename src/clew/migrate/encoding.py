"""Project folders of sage-emacs under their old names: renamed, or merged where the aligned name is taken."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from clew.agents.backups import is_plain_file
from clew.agents.sage_emacs import locate
from clew.io.atomic import sync_folder, write_atomic
from clew.io.codec import NOT_JSON, dumps, loads
from clew.io.paths import encode_sage, same_project
from clew.migrate.step import Originals, Step, content_of, refuse_taken, rewrite

_SINGLE = (locate.CONVERSATION, locate.METADATA)


def plan_encoding(root: Path) -> list[Step]:
    """Steps that give every project below the root its aligned name."""
    planner = _Planner()
    folders = dict.fromkeys(locate.project_folder(source.path) for source in locate.discover(root))
    return [step for folder in folders for step in planner.plan(folder)]


def aligned_name(folder: Path) -> str:
    """The aligned name: of the recorded path where the folder stands for it, else of the old name."""
    recorded = recorded_path(folder)
    if recorded and same_project(folder.name, recorded):
        return encode_sage(recorded) or folder.name
    return encode_sage(folder.name).rstrip("-") or folder.name


def recorded_path(folder: Path) -> str | None:
    """The project's path as its metadata have it, without a slash at the end."""
    recorded = (locate.metadata(folder / locate.CONVERSATION) or {}).get("project_dir")
    return recorded.rstrip("/") if isinstance(recorded, str) else None


class _Planner:
    """Sees the store as it will be after the steps planned so far."""

    def __init__(self) -> None:
        self._renamed: dict[Path, Path] = {}
        self._copied: dict[Path, Path] = {}

    def plan(self, folder: Path) -> Iterator[Step]:
        target = folder.with_name(aligned_name(folder))
        if target == folder:
            return
        other = self._now(target)
        if other is not None and _are_strangers(folder, other):
            yield Step("leave", folder, target, "the aligned name belongs to another project")
        elif other is not None or _is_shared(folder):
            yield from self._merge(folder, target)
        else:
            self._renamed[target] = folder
            yield Step("rename", folder, target, "the folder gets its aligned name")

    def _now(self, place: Path) -> Path | None:
        """Where that lies today which will be at `place`; None where nothing will be."""
        if place in self._copied:
            return self._copied[place]
        for target, source in self._renamed.items():
            if place.is_relative_to(target):
                place = source / place.relative_to(target)
        return place if place.exists() else None

    def _merge(self, folder: Path, target: Path) -> Iterator[Step]:
        """Bring the sage files of one folder into another that has files of its own."""
        for name in _SINGLE:
            source, place = folder / name, target / name
            if source.is_file() and self._now(place) is None:
                yield self._copy(source, place, "the project has none yet")
            elif source.is_file() and name == locate.CONVERSATION:
                yield from self._append(source, place)
        for archive in sorted(path for path in (folder / locate.HISTORY).glob("*.jsonl*") if is_plain_file(path)):
            free = self._free_place(archive, target / locate.HISTORY)
            if free is not None:
                yield self._copy(archive, free, "the archive joins those of the project")
        for name in (*_SINGLE, locate.HISTORY):
            if (folder / name).exists():
                yield Step("set-aside", folder / name, None, "its content is in the aligned folder")

    def _copy(self, source: Path, place: Path, reason: str) -> Step:
        self._copied[place] = source
        return Step("copy", source, place, reason)

    def _append(self, source: Path, place: Path) -> Iterator[Step]:
        present = self._now(place)
        missing = missing_lines(source, present) if present is not None else []
        if missing:
            yield Step("append", source, place, "lines that the conversation lacks", len(missing))
        if missing and self._now(place.with_name(locate.METADATA)) is not None:
            yield Step("metadata", place.with_name(locate.METADATA), None, "the conversation grew")

    def _free_place(self, source: Path, folder: Path) -> Path | None:
        """A free name in the folder; None when the same bytes are there already."""
        content = content_of(source)
        place, number = folder / source.name, 1
        while (present := self._now(place)) is not None:
            if present.is_file() and content_of(present) == content:
                return None
            number += 1
            place = folder / f"{source.name.removesuffix('.jsonl')}-{number}.jsonl"
        return place


def _are_strangers(folder: Path, other: Path) -> bool:
    """True when both folders say whose they are, and it is not the same project."""
    mine, theirs = recorded_path(folder), recorded_path(other)
    return bool(mine and theirs and mine != theirs)


def _is_shared(folder: Path) -> bool:
    """True when files of others lie in the folder; they must stay where they are."""
    names = (path.name.partition(".bak-")[0] for path in folder.iterdir())
    return any(name not in (*_SINGLE, locate.HISTORY) for name in names)


def missing_lines(source: Path, place: Path) -> list[bytes]:
    """The lines of `source` that `place` does not hold; ids and estimates make no difference."""
    known = {_said(line) for line in content_of(place).split(b"\n")}
    lines = content_of(source).split(b"\n")
    return [line + b"\n" for line in lines if line.strip() and _said(line) not in known]


def _said(line: bytes) -> bytes:
    """What a line says, apart from the fields that a migration may have added."""
    try:
        record = loads(line)
    except NOT_JSON:
        return line.strip()
    if not isinstance(record, dict):
        return line.strip()
    return dumps([(name, record[name]) for name in sorted(record) if name not in ("uuid", "session_id", "tokens")])


def rename(step: Step, originals: Originals) -> None:
    """Carry out a rename; never onto something."""
    assert step.target is not None
    refuse_taken(step.target)
    step.path.rename(step.target)
    sync_folder(step.target.parent)


def copy(step: Step, originals: Originals) -> None:
    """Carry out a copy; never over something else."""
    assert step.target is not None
    content = content_of(step.path)
    if is_plain_file(step.target) and content_of(step.target) == content:
        return
    refuse_taken(step.target)
    write_atomic(step.target, content, stat.S_IMODE(step.path.stat().st_mode))


def append(step: Step, originals: Originals) -> None:
    """Carry out an append: the bytes that are there stay as they are."""
    assert step.target is not None
    present = content_of(step.target)
    gap = b"" if not present or present.endswith(b"\n") else b"\n"
    rewrite(step.target, [present, gap, *missing_lines(step.path, step.target)], originals)


def set_aside(step: Step, originals: Originals) -> None:
    """Move a file or folder, with its backups, out of the store to a folder beside it that nothing reads."""
    project = step.path.parent
    originals.move([step.path, *project.glob(f"{step.path.name}.bak-*")], project)
    if not any(project.iterdir()):
        project.rmdir()
