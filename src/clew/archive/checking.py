"""Proof that an archive is whole: every stored byte, every chunk, every file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from clew.archive.blocks import hash_of
from clew.archive.layout import Block, Dictionary, pack_path, packs
from clew.archive.reading import Reader
from clew.archive.state import State, load
from clew.errors import ClewError, SourceUnreadable


class Proof(NamedTuple):
    """What was looked at, and what was wrong."""

    versions: int
    blocks: int
    stored: int
    problems: list[str]


def verify(folder: Path) -> Proof:
    """Read all of an archive."""
    try:
        state = load(folder)
    except SourceUnreadable as error:
        if not folder.is_dir():
            raise
        return Proof(0, 0, 0, [str(error)])
    reader = Reader(folder, state)
    try:
        problems = [*_packs(folder, state), *_blocks(reader), *_files(reader)]
    finally:
        reader.close()
    return Proof(sum(map(len, state.files.values())), len(state.blocks), state.stored, problems)


def _packs(folder: Path, state: State) -> Iterator[str]:
    """Every byte of a pack belongs to a block or a dictionary; each of those is what it was."""
    there = packs(folder)
    parts: dict[int, list[Block | Dictionary]] = {}
    for part in state.parts():
        parts.setdefault(part.pack, []).append(part)
    for number, own in sorted(parts.items()):
        path = pack_path(folder, number)
        if number not in there:
            yield f"{path}: the pack is gone"
            continue
        at = 0
        for part in sorted(own, key=lambda one: one.offset):
            if part.offset != at:
                yield f"{path} at byte {at}: belongs to nothing"
            at = part.offset + part.size
        if path.stat().st_size < at:
            yield f"{path}: is cut short"


def _blocks(reader: Reader) -> Iterator[str]:
    for entry in reader.state.dictionaries:
        try:
            reader.dictionary(entry)
        except (OSError, ClewError) as error:
            yield str(error)
    for block in reader.state.blocks:
        try:
            unpacked = reader.unpack(block)
        except (OSError, ClewError) as error:
            yield str(error)
            continue
        for at, (length, name) in enumerate(zip(*unpacked.table, strict=True)):
            if length and hash_of(unpacked.chunk(at), reader.state.key) != name:
                yield f"chunk {block.first + at}: its content has another hash"


def _files(reader: Reader) -> Iterator[str]:
    for version in reader.state.versions():
        try:
            for _ in reader.pieces(version):
                pass
        except (OSError, ClewError) as error:
            yield f"{version.path.decode('utf-8', 'backslashreplace')}: {error}"
