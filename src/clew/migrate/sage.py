"""Migrations of sage-emacs and Sage Agent: `plan` lists the steps and writes nothing, `apply` carries them out.

sage-emacs: project folders get aligned names, records get ids and token estimates. Sage Agent: records of the older
form get the current one. Both: metadata.json is rebuilt from the log. What is replaced is kept as a backup.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Literal

import msgspec

from clew.agents.backups import is_plain_file
from clew.agents.base import SourceFile
from clew.agents.sage_agent import SageAgent
from clew.agents.sage_agent.encode import platform_of
from clew.agents.sage_agent.locate import AGENT, MESSAGES
from clew.agents.sage_agent.metadata import COUNT, VERSION, rebuilt
from clew.agents.sage_agent.records import is_old_form, message_body
from clew.agents.sage_agent.upgrade_records import make_envelope, parent_of, to_current_form, with_parent
from clew.agents.sage_emacs import SageEmacs
from clew.agents.sage_emacs.locate import CONVERSATION, HISTORY, is_saved, project_folder
from clew.agents.sage_emacs.metadata import describe, measure
from clew.agents.sage_emacs.records import ROLES, TOOL
from clew.agents.sage_emacs.written_records import with_estimated_tokens, with_ids
from clew.agents.sage_format import METADATA, encode_metadata, read_metadata
from clew.errors import Busy, WouldLose
from clew.host import Host
from clew.io.atomic import create, replacing, sync_folder, write_atomic
from clew.io.codec import DIALECTS, NOT_JSON, dumps, loads
from clew.io.compress import SUFFIXES, open_regular, open_source
from clew.io.paths import encode_sage, refuse_link_to_session, same_project
from clew.io.records import RawRecord, read_records
from clew.model.json import JSON
from clew.store.session_metadata import count_records

_PROJECT_FILES = (CONVERSATION, METADATA)
_ADDED_KEYS = ("uuid", "session_id", "tokens")

_Record = dict[str, JSON]
_Change = Callable[[RawRecord], _Record | None]
"""Gives the new value of a record, or None where it stays as it is."""


class Step(msgspec.Struct, frozen=True):
    """One thing to do to one file or folder; a plan is a list of them, in order."""

    kind: Literal["rename", "leave", "copy", "append", "set-aside", "ids", "tokens", "form", "metadata"]
    path: Path
    target: Path | None = None
    """Where it goes, or what it is added to."""
    reason: str = ""
    """For people: why, and how much."""
    changes: int = 0
    """Records that would change, where that can be counted."""


def plan(
    place: Path,
    *,
    names: bool = False,
    ids: bool = False,
    tokens: bool = False,
    forms: bool = False,
    metadata: bool = False,
) -> list[Step]:
    """What there is to do in a home, or in one store of a Sage program.

    names: project folders of sage-emacs get their aligned names. ids, tokens: its records get uuid and session_id, and
    estimates. forms: records of Sage Agent get the current form. metadata: metadata.json is made from the log.
    """
    emacs, agent, host = SageEmacs(), SageAgent(), Host.at(place)
    if next(emacs.discover(place), None) is not None:
        projects, sessions = [place], []
    elif next(agent.discover(place), None) is not None:
        projects, sessions = [], [place]
    else:
        projects, sessions = list(emacs.roots(host)), list(agent.roots(host))
    steps: list[Step] = []
    for root in projects:
        sources = list(emacs.discover(root))
        for source in sources:
            steps += _plan_conversation(source, ids, tokens, metadata)
        if names:
            planner = _FolderPlanner()
            for folder in dict.fromkeys(project_folder(source.path) for source in sources):
                steps += planner.plan(folder)
    for root in sessions:
        for source in agent.discover(root):
            if forms and (changes := _count_changes(source.path, _old_form)):
                steps.append(Step("form", source.path, None, "records of the older form", changes))
            steps += _plan_metadata(source) if metadata else []
    for path in (path for step in steps for path in (step.path, step.target) if path is not None):
        refuse_link_to_session(path, place)
    return steps


def apply(steps: Iterable[Step], stamp: str) -> None:
    """Carry out the steps in order. `stamp` is part of the names of backups.

    A step that would overwrite something raises, and leaves everything as it was before that step.
    """
    originals = Originals(stamp)
    for step in steps:
        match step.kind:
            case "rename":
                _rename(step)
            case "copy":
                _copy(step)
            case "append":
                _append(step, originals)
            case "set-aside":
                _set_aside(step, originals)
            case "ids":
                rewrite(
                    step.path, _rewritten_lines(step.path, _make_id_adder(SageEmacs().locate(step.path))), originals
                )
            case "tokens":
                rewrite(step.path, _rewritten_lines(step.path, _add_tokens), originals)
            case "form":
                rewrite(
                    step.path,
                    _rewritten_lines(step.path, _make_form_converter(SageAgent().locate(step.path))),
                    originals,
                )
            case "metadata":
                _rebuild_metadata(step.path, originals)


class Originals:
    """Where one migration keeps what it replaces or moves away: always under names that it creates itself.

    Such a name has the time to the second, so a prepared repository may have a file or a link there already.
    """

    def __init__(self, stamp: str) -> None:
        self._stamp = stamp
        self._kept: set[Path] = set()
        self._folders: dict[Path, Path] = {}

    def keep(self, path: Path) -> None:
        """Copy a file to `NAME.bak-STAMP` beside it; of a file that several steps rewrite, only the first state."""
        if path not in self._kept:
            content, mode = _read(path), stat.S_IMODE(path.stat().st_mode)
            self._create(path, "bak", lambda backup: create(backup, content, mode))
            self._kept.add(path)

    def move(self, paths: Iterable[Path], project: Path) -> None:
        """Move files of a project to the folder `STORE.migrated-STAMP` beside the store, which nothing reads."""
        root = project.parent
        if root not in self._folders:
            self._folders[root] = self._create(root, "migrated", lambda folder: folder.mkdir(mode=0o700))
        folder = self._folders[root] / project.name
        folder.mkdir(mode=0o700, exist_ok=True)
        for path in paths:
            _refuse_existing(folder / path.name)
            path.rename(folder / path.name)
        sync_folder(folder)

    def _create(self, path: Path, word: str, make: Callable[[Path], None]) -> Path:
        """Make a file or folder beside a path, under the first name that is free."""
        for number in count(1):
            made = path.with_name(f"{path.name}.{word}-{self._stamp}{f'-{number}' if number > 1 else ''}")
            try:
                make(made)
            except FileExistsError:
                continue
            break
        return made


def rewrite(path: Path, pieces: Iterable[bytes], originals: Originals) -> None:
    """Replace the file by `pieces`, which may be made from it; the original stays as a backup."""
    before = path.stat()
    originals.keep(path)
    with replacing(path, stat.S_IMODE(before.st_mode)) as handle:
        for piece in pieces:
            handle.write(piece)
        now = path.stat()
        if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise Busy(f"{path}: another program wrote to it; nothing was changed")


def _read(path: Path) -> bytes:
    """All bytes of a file; raises SourceUnreadable for anything else, as a pipe would never end."""
    stream, _ = open_regular(path)
    with stream:
        return stream.readall()


def _refuse_existing(target: Path) -> None:
    """Refuse to move or copy onto something, which may be a link."""
    if os.path.lexists(target):
        raise WouldLose(f"{target}: appeared after the plan was made; make a new one")


# Records


def _rewritten_lines(path: Path, change: _Change) -> Iterator[bytes]:
    """The file's bytes with the change made; lines that cannot be encoded again byte for byte stay as they are."""
    with open_source(path) as stream:
        for record in read_records(stream):
            value = change(record)
            if value is None or record.dialect is None:
                yield record.text
            else:
                yield DIALECTS[record.dialect](value) + record.end


def _count_changes(path: Path, change: _Change) -> int:
    with open_source(path) as stream:
        return sum(record.dialect is not None and change(record) is not None for record in read_records(stream))


def _plan_conversation(source: SourceFile, ids: bool, tokens: bool, metadata: bool) -> list[Step]:
    if source.path.suffix in SUFFIXES or is_saved(source.path):
        return []
    steps: list[Step] = []
    if ids and (changes := _count_changes(source.path, _make_id_adder(source))):
        steps.append(Step("ids", source.path, None, "records without uuid or session_id", changes))
    if tokens and (changes := _count_changes(source.path, _add_tokens)):
        steps.append(Step("tokens", source.path, None, "records without an estimate", changes))
    if steps and source.sides:
        return [*steps, _metadata_step(source.path.parent / METADATA, "the conversation grew")]
    is_current = source.path.name == CONVERSATION
    return [*steps, *(_plan_metadata(source) if metadata and is_current else [])]


def _make_id_adder(source: SourceFile) -> _Change:
    """Adds the uuid and session_id under which clew knows a record that has none."""
    agent = SageEmacs()
    session = agent.session_id(source)
    uuids = {
        unit.start: unit.value["uuid"]
        for unit in agent.units(source)
        if unit.is_message and unit.start < unit.stop and unit.native.get("uuid") != unit.value["uuid"]
    }

    def change(record: RawRecord) -> _Record | None:
        value = record.value
        if value is None or value.get("role") not in (*ROLES, TOOL):
            return None
        return with_ids(value, uuids.get(record.start), session)

    return change


def _add_tokens(record: RawRecord) -> _Record | None:
    """Adds the estimate sage-emacs itself makes: a token for every four characters."""
    value = record.value
    if value is None or value.get("role") not in ROLES:
        return None
    return with_estimated_tokens(value)


def _old_form(record: RawRecord) -> _Record | None:
    """The value of a record in Sage Agent's older form that has what the current form needs; else None."""
    value = record.value
    if value is None or not is_old_form(value) or message_body(value) is not value:
        return None
    return value if isinstance(value.get("content"), str) else None


def _make_form_converter(source: SourceFile) -> _Change:
    """Gives old records the current form, and the records after them their parent."""
    agent = SageAgent()
    facts, known = agent.facts(source), read_metadata(source.path.parent) or {}
    cwd = agent.session(source, facts)["workspace"]
    context: _Record = {"cwd": cwd, "gitBranch": known.get("gitBranch") or facts.git_branch}
    context["platform"] = platform_of(cwd)
    version = known.get("version") or facts.version or VERSION
    envelope = make_envelope(
        agent.session_id(source), version, {name: item for name, item in context.items() if item is not None}
    )
    uuids: dict[int, str] = {}
    parents: dict[int, str] = {}
    for unit in agent.units(source):
        if unit.is_message and not unit.part:
            body, parent = message_body(unit.native) or {}, unit.value.get("parent_uuid")
            if body.get("uuid") != unit.value["uuid"]:
                uuids[unit.start] = unit.value["uuid"]
            if parent is not None and parent_of(body) != parent:
                parents[unit.start] = parent

    def change(record: RawRecord) -> _Record | None:
        value, start = record.value, record.start
        if (old := _old_form(record)) is not None:
            return to_current_form(old, uuids[start], parents.get(start), envelope)
        if value is not None and start in parents and start not in uuids:
            return with_parent(value, parents[start])
        return None

    return change


# Metadata


def _plan_metadata(source: SourceFile) -> list[Step]:
    """A step where the metadata are missing, damaged or wrong."""
    place = source.path.parent / METADATA
    known = read_metadata(place.parent)
    if known is None:
        return [_metadata_step(place, "cannot be read")]
    if not place.exists():
        return [Step("metadata", place, None, "is missing")]
    if source.agent == AGENT:
        truth: _Record = {"id": SageAgent().session_id(source), COUNT: count_records(source.path)}
    else:
        truth = dict(zip(("message_count", "total_size"), measure(source), strict=True))
    wrong = [name for name, value in truth.items() if known.get(name) != value]
    return [Step("metadata", place, None, f"{', '.join(wrong)} not as in the log")] if wrong else []


def _metadata_step(place: Path, reason: str) -> Step:
    """The step that rebuilds metadata; anything but a regular file is skipped."""
    if place.exists() and not place.is_file():
        return Step("leave", place, None, "not a regular file")
    return Step("metadata", place, None, reason)


def _rebuild_metadata(place: Path, originals: Originals) -> None:
    """Write the metadata of the log beside `place`; what was there stays as a backup."""
    known = read_metadata(place.parent) or {}
    if place.with_name(CONVERSATION).exists():
        emacs = SageEmacs()
        source = emacs.locate(place.with_name(CONVERSATION))
        content = describe(emacs.session(source, emacs.facts(source)), *measure(source), known)
    else:
        agent = SageAgent()
        source = agent.locate(place.with_name(MESSAGES))
        facts = agent.facts(source)
        content = encode_metadata(rebuilt(known, agent.session(source, facts), facts, count_records(source.path)))
    if place.exists():
        rewrite(place, [content], originals)
    else:
        write_atomic(place, content)


# Project folders of sage-emacs


class _FolderPlanner:
    """Plans renames and merges of project folders. Sees the store as it will be after the steps planned so far."""

    def __init__(self) -> None:
        self._renamed: dict[Path, Path] = {}
        self._copied: dict[Path, Path] = {}

    def plan(self, folder: Path) -> Iterator[Step]:
        """The steps that give a folder its aligned name, or merge it into the folder that has that name."""
        recorded = _recorded_path(folder)
        if recorded and same_project(folder.name, recorded):
            target = folder.with_name(encode_sage(recorded) or folder.name)
        else:
            target = folder.with_name(encode_sage(folder.name).rstrip("-") or folder.name)
        if target == folder:
            return
        other = self._now(target)
        theirs = _recorded_path(other) if other is not None else None
        names = (path.name.partition(".bak-")[0] for path in folder.iterdir())
        if recorded and theirs and recorded != theirs:
            yield Step("leave", folder, target, "the aligned name belongs to another project")
        elif other is not None or any(name not in (*_PROJECT_FILES, HISTORY) for name in names):
            # Files of other programs must stay where they are.
            yield from self._merge(folder, target)
        else:
            self._renamed[target] = folder
            yield Step("rename", folder, target, "the folder gets its aligned name")

    def _now(self, place: Path) -> Path | None:
        """The present path of what will be at `place`; None where nothing will be."""
        if place in self._copied:
            return self._copied[place]
        for target, source in self._renamed.items():
            if place.is_relative_to(target):
                place = source / place.relative_to(target)
        return place if place.exists() else None

    def _merge(self, folder: Path, target: Path) -> Iterator[Step]:
        """Bring the sage files of one folder into another that has files of its own."""
        for name in _PROJECT_FILES:
            source, place = folder / name, target / name
            if source.is_file() and self._now(place) is None:
                yield self._copy(source, place, "the project has none yet")
            elif source.is_file() and name == CONVERSATION:
                yield from self._append(source, place)
        for archive in sorted(path for path in (folder / HISTORY).glob("*.jsonl*") if is_plain_file(path)):
            free = self._free_place(archive, target / HISTORY)
            if free is not None:
                yield self._copy(archive, free, "the archive joins those of the project")
        for name in (*_PROJECT_FILES, HISTORY):
            if (folder / name).exists():
                yield Step("set-aside", folder / name, None, "its content is in the aligned folder")

    def _copy(self, source: Path, place: Path, reason: str) -> Step:
        self._copied[place] = source
        return Step("copy", source, place, reason)

    def _append(self, source: Path, place: Path) -> Iterator[Step]:
        present = self._now(place)
        missing = _missing_lines(source, present) if present is not None else []
        if missing:
            yield Step("append", source, place, "lines that the conversation lacks", len(missing))
        if missing and self._now(place.with_name(METADATA)) is not None:
            yield Step("metadata", place.with_name(METADATA), None, "the conversation grew")

    def _free_place(self, source: Path, folder: Path) -> Path | None:
        """A free name in the folder; None when the same bytes are there already."""
        content = _read(source)
        stem, dot, rest = source.name.partition(".jsonl")
        place, number = folder / source.name, 1
        while (present := self._now(place)) is not None:
            if present.is_file() and _read(present) == content:
                return None
            number += 1
            place = folder / f"{stem}-{number}{dot}{rest}"
        return place


def _recorded_path(folder: Path) -> str | None:
    """The project's path as its metadata have it, without a slash at the end."""
    recorded = (read_metadata(folder) or {}).get("project_dir")
    return recorded.rstrip("/") if isinstance(recorded, str) else None


def _missing_lines(source: Path, place: Path) -> list[bytes]:
    """The lines of `source` that `place` does not have; ids and estimates make no difference."""
    known = {_without_added_keys(line) for line in _read(place).split(b"\n")}
    lines = _read(source).split(b"\n")
    return [line + b"\n" for line in lines if line.strip() and _without_added_keys(line) not in known]


def _without_added_keys(line: bytes) -> bytes:
    """A line without the keys that a migration may have added, for comparison."""
    try:
        record = loads(line)
    except NOT_JSON:
        return line.strip()
    if not isinstance(record, dict):
        return line.strip()
    return dumps([(name, record[name]) for name in sorted(record) if name not in _ADDED_KEYS])


def _rename(step: Step) -> None:
    assert step.target is not None
    _refuse_existing(step.target)
    step.path.rename(step.target)
    sync_folder(step.target.parent)


def _copy(step: Step) -> None:
    assert step.target is not None
    content = _read(step.path)
    if is_plain_file(step.target) and _read(step.target) == content:
        return
    _refuse_existing(step.target)
    write_atomic(step.target, content, stat.S_IMODE(step.path.stat().st_mode))


def _append(step: Step, originals: Originals) -> None:
    """Carry out an append: the bytes that are there stay as they are."""
    assert step.target is not None
    present = _read(step.target)
    gap = b"" if not present or present.endswith(b"\n") else b"\n"
    rewrite(step.target, [present, gap, *_missing_lines(step.path, step.target)], originals)


def _set_aside(step: Step, originals: Originals) -> None:
    """Move a file or folder, with its backups, out of the store."""
    project = step.path.parent
    originals.move([step.path, *project.glob(f"{step.path.name}.bak-*")], project)
    if not any(project.iterdir()):
        project.rmdir()
