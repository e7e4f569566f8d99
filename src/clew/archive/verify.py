"""Checks a whole archive: every stored byte, chunk and file. Each damage is reported once, with its place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from clew.archive.archive import Archive, open_archive
from clew.archive.packs import CHUNKS, RECORDS, PackContent, read_pack
from clew.archive.records import Damage, Version, pack_path, path_text
from clew.archive.writer import open_writer
from clew.errors import Busy, ClewError, SourceUnreadable


class Proof(NamedTuple):
    """What was checked, and what was wrong."""

    versions: int
    blocks: int
    stored: int
    problems: list[Damage]


def verify(folder: Path) -> Proof:
    """Read everything in an archive.

    Damage is noted in the index, if that can be written, so that the next capture stores again what sources still have.
    """
    with open_archive(folder) as archive:
        proof = check(archive)
        paths = {problem.path for problem in proof.problems}
        damaged_packs = [name for name in archive.index.packs() if str(pack_path(folder, name)) in paths]
    if damaged_packs:
        with suppress(Busy, OSError, SourceUnreadable), open_writer(folder, wait=0, recheck=damaged_packs):
            pass
    return proof


def check(archive: Archive) -> Proof:
    """Read everything in an open archive, and write nothing."""
    problems = list(archive.problems)
    for name in archive.index.packs():
        problems += _check_pack(archive, name)
    problems += _check_files(archive, {path for problem in problems for path in problem.files})
    return Proof(len(list(archive.versions())), archive.index.block_count, archive.stored, problems)


def _check_pack(archive: Archive, name: str) -> Iterator[Damage]:
    """Yield what is wrong with a pack, with the files that it affects."""
    path = str(pack_path(archive.folder, name))
    try:
        content = read_pack(archive.folder, name, check_chunks=True)
    except (FileNotFoundError, SourceUnreadable) as error:
        what = str(error).removeprefix(f"{path}: ") if isinstance(error, SourceUnreadable) else "the pack is missing"
        chunks = archive.index.chunks_between(name, 0, None)
        yield Damage(path, 0, what, _affected(archive, chunks, PackContent([], [], []), name))
        return
    for block in content.damaged:
        known = archive.index.chunks_between(name, block.offset, block.offset + 1)
        chunks = known or {entry.id for entry in block.table}
        files = _affected(archive, chunks, content, name) if block.kind == CHUNKS else ()
        yield Damage(path, block.offset, _explain(block.kind), files, harmless=not files)
    for number, (start, end) in enumerate(content.gaps):
        is_last = number == len(content.gaps) - 1
        chunks = archive.index.chunks_between(name, start, None if is_last else end)
        files = _affected(archive, chunks, content, name)
        what = f"{end - start} bytes cannot be read" if end > start else "the end of the pack is missing"
        what = "the header of a block is damaged" if chunks else what
        yield Damage(path, start, what, files, harmless=not files)


def _explain(kind: bytes) -> str:
    if kind == RECORDS:
        return "one of two copies of the list of files is damaged"
    return "a block is damaged"


def _affected(archive: Archive, chunks: Collection[bytes], content: PackContent, name: str) -> tuple[str, ...]:
    """Return the files with a version that needs one of these chunks, where no other block holds it."""
    intact = {entry.id for block in content.blocks for entry in block.table}
    lost = {
        chunk
        for chunk in chunks
        if chunk not in intact and all(place.pack == name for place in archive.index.places(chunk))
    }
    return _paths(version for version in archive.versions() if not lost.isdisjoint(version.chunk_ids()))


def _check_files(archive: Archive, reported: Collection[str]) -> Iterator[Damage]:
    """Read every version of every file, except for files that a damage in a pack already names."""
    for version in archive.versions():
        path = path_text(version)
        if path in reported:
            continue
        try:
            for _ in archive.pieces(version):
                pass
        except (OSError, ClewError) as error:
            yield Damage(path, 0, str(error), (path,))


def _paths(versions: Iterable[Version]) -> tuple[str, ...]:
    return tuple(sorted({path_text(version) for version in versions}))
