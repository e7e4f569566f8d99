"""What is known of the packs: how each looked when it was last found whole, and which parts of it are not.

A pack that looks as it did is not read again. Deleting this file costs one look at all packs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from clew.archive.layout import DIGEST, HEALTH, Block, Damage, Version, pack_path, read_inside
from clew.archive.parts import Part
from clew.archive.reading import Reader
from clew.archive.state import State
from clew.errors import SourceUnreadable
from clew.io.filesystem import SYSTEM, System, replace_file

Stamp = tuple[int, int, int, int]


_HEALTH_LIMIT = 16 << 20
"""Bytes: about 400 000 packs."""


class Health(msgspec.Struct):
    """The packs by their numbers, and the parts that were found damaged by pack and offset."""

    packs: dict[int, Stamp] = {}
    damaged: set[tuple[int, int]] = set()


def read_health(folder: Path) -> Health:
    """What is known; nothing where there is no such file. Raises SourceUnreadable where it is damaged."""
    try:
        raw = read_inside(folder / HEALTH, _HEALTH_LIMIT)
        if hashlib.sha256(raw[DIGEST:]).digest() == raw[:DIGEST]:
            return msgspec.msgpack.decode(raw[DIGEST:], type=Health)
    except FileNotFoundError:
        return Health()
    except (SourceUnreadable, msgspec.MsgspecError):
        pass
    raise SourceUnreadable("damaged; the next capture makes it anew")


def write_health(folder: Path, state: State, damaged: Iterable[Part], system: System = SYSTEM) -> None:
    """Keep how the packs look now."""
    stamps = {number: stamp for number in state.ends() if (stamp := stamp_of(folder, number)) is not None}
    health = Health(stamps, {(part.pack, part.offset) for part in damaged})
    body = msgspec.msgpack.encode(health)
    raw = hashlib.sha256(body).digest() + body
    try:
        if read_inside(folder / HEALTH, _HEALTH_LIMIT) == raw:
            return
    except (FileNotFoundError, SourceUnreadable):
        pass
    replace_file(system, folder / HEALTH, raw, durable=False)


def stamp_of(folder: Path, pack: int) -> Stamp | None:
    """How a pack looks."""
    try:
        status = pack_path(folder, pack).stat()
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


class Found(NamedTuple):
    """What is wrong with parts of packs."""

    damaged: list[Part]
    """Their content is not what it was."""
    headless: list[Part]
    """Only their heads are not."""

    def __bool__(self) -> bool:
        return bool(self.damaged or self.headless)


def look(folder: Path, state: State) -> Found:
    """Find damage: what is known of it, and what is new in packs that do not look as they did."""
    try:
        health = read_health(folder)
    except SourceUnreadable:
        health = Health()
    same = {number for number in state.ends() if health.packs.get(number) == stamp_of(folder, number) is not None}
    suspect = [part for part in state.parts() if part.pack not in same or (part.pack, part.offset) in health.damaged]
    if not suspect:
        return Found([], [])
    reader = Reader(folder, state)
    try:
        return examine(reader, suspect)
    finally:
        reader.close()


def examine(reader: Reader, parts: Iterable[Part]) -> Found:
    """Read parts, and compare them with what they were."""
    found = Found([], [])
    for part in parts:
        if not is_whole(reader, part):
            found.damaged.append(part)
        elif not reader.has_head(part):
            found.headless.append(part)
    return found


def is_whole(reader: Reader, part: Part) -> bool:
    """True where a part's content is as it was."""
    try:
        reader.stored(part)
    except (OSError, SourceUnreadable):
        return False
    return True


def unreadable_dictionaries(state: State, damaged: Collection[Part]) -> set[int]:
    """The dictionaries that are damaged wherever they are."""
    wrong = {(part.pack, part.offset) for part in damaged}
    readable = {one.number for one in state.dictionaries if (one.pack, one.offset) not in wrong}
    named = {block.dictionary for block in state.blocks} | {one.number for one in state.dictionaries}
    return named - readable - {0}


def unreadable(state: State, damaged: Collection[Part]) -> set[Block]:
    """The blocks that cannot be unpacked: damaged ones, and those whose dictionary is."""
    wrong = {(part.pack, part.offset) for part in damaged}
    spoiled = unreadable_dictionaries(state, damaged)
    return {one for one in state.blocks if (one.pack, one.offset) in wrong or one.dictionary in spoiled}


def touched(state: State, versions: Iterable[Version], bad: Collection[Block]) -> list[Version]:
    """The versions that need a chunk that these blocks have, or none has."""
    marks = bytearray(b"\1") * state.next_chunk
    for block in state.blocks:
        if block not in bad:
            marks[block.first : block.first + block.count] = bytes(block.count)
    return [
        version
        for version in versions
        if any(
            marks.find(1, first, first + count) >= 0
            for first, count in zip(version.runs[::2], version.runs[1::2], strict=True)
        )
    ]


def damages(folder: Path, state: State, found: Found) -> list[Damage]:
    """Damage in packs, each with its place and the files that it touches."""
    spoiled = unreadable_dictionaries(state, found.damaged)
    told = [_told(folder, part, "its head is damaged, what it holds is not", ()) for part in found.headless]
    for part in found.damaged:
        if isinstance(part, Block):
            told.append(_told(folder, part, "a block is damaged", touched(state, state.versions(), {part})))
        elif part.number not in spoiled:
            told.append(_told(folder, part, "a dictionary is damaged here, but not where it is once more", ()))
        else:
            using = {block for block in state.blocks if block.dictionary == part.number}
            told.append(_told(folder, part, "a dictionary is damaged", touched(state, state.versions(), using)))
    return told


def _told(folder: Path, part: Part, what: str, versions: Iterable[Version]) -> Damage:
    path = pack_path(folder, part.pack)
    is_there = path.exists()
    files = sorted({version.path.decode("utf-8", "backslashreplace") for version in versions})
    return Damage(
        str(path),
        part.offset if is_there else 0,
        what if is_there else "the pack is gone",
        tuple(files),
        harmless=not files,
    )
