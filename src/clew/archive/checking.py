"""Proof that an archive is whole: every stored byte, chunk and file. Each damage is told once, with its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from clew.archive.blocks import hash_of
from clew.archive.health import Found, damages, examine, read_health, touched, unreadable, write_health
from clew.archive.layout import HEALTH, Block, Damage, Version, pack_path
from clew.archive.parts import Part
from clew.archive.reading import Reader
from clew.archive.recovering import is_understood, is_unfinished, stray_bytes, unnamed_packs
from clew.archive.state import State, load
from clew.errors import ClewError, SourceUnreadable


class Proof(NamedTuple):
    """What was looked at, and what was wrong."""

    versions: int
    blocks: int
    stored: int
    problems: list[Damage]


def verify(folder: Path) -> Proof:
    """Read all of an archive. What is found is noted for the next capture, which may have the sources to mend it."""
    state = load(folder)
    reader = Reader(folder, state)
    try:
        found = examine(reader, state.parts())
        bad = unreadable(state, found.damaged)
        problems = [*state.problems, *_health(folder), *_gaps(folder, state, found), *damages(folder, state, found)]
        problems += _chunks(reader, [block for block in state.blocks if block not in bad])
        problems += _files(reader, bad)
    finally:
        reader.close()
    if found:
        with suppress(OSError):
            write_health(folder, state, [*found.damaged, *found.headless])
    return Proof(sum(map(len, state.files.values())), len(state.blocks), state.stored, _each_once(problems))


def _each_once(problems: Iterable[Damage]) -> list[Damage]:
    """One line for each place; of a pack that is gone one for all, with the files that any of its blocks touches."""
    found: dict[tuple[str, int, str], Damage] = {}
    for one in problems:
        key = (one.path, one.offset, one.what)
        files = {*one.files, *(found[key].files if key in found else ())}
        found[key] = Damage(one.path, one.offset, one.what, tuple(sorted(files)), one.harmless and not files)
    return list(found.values())


def _health(folder: Path) -> Iterator[Damage]:
    try:
        read_health(folder)
    except SourceUnreadable as error:
        yield Damage(str(folder / HEALTH), 0, str(error), harmless=True)


def _gaps(folder: Path, state: State, found: Found) -> Iterator[Damage]:
    """Every byte of a pack belongs to a block or a dictionary, but for what a killed capture was writing."""
    parts: dict[int, list[Part]] = {}
    for part in state.parts():
        parts.setdefault(part.pack, []).append(part)
    for number in sorted(parts.keys() & state.sizes.keys()):
        if not is_understood(folder, state, number, found.headless):
            what = "it holds parts of another archive, or none that can be read; it is left alone"
            yield Damage(str(pack_path(folder, number)), 0, what, harmless=True)
            continue
        size = state.sizes[number]
        for start, end in stray_bytes(parts[number], size):
            if end < size or not is_unfinished(folder, number, state.key, start, size):
                what = "belongs to nothing; `clew archive prune --repack --apply` moves it to damaged/"
                yield Damage(str(pack_path(folder, number)), start, what, harmless=True)
    for number, is_redundant in unnamed_packs(folder, state) if state.sizes else ():
        if not is_redundant:
            what = "no manifest names this pack, and it holds something that cannot be read; it is left alone"
            yield Damage(str(pack_path(folder, number)), 0, what, harmless=True)


def _chunks(reader: Reader, blocks: Iterable[Block]) -> Iterator[Damage]:
    for block in blocks:
        try:
            unpacked = reader.unpack(block)
            chunks = enumerate(zip(*unpacked.table, strict=True))
            is_right = all(hash_of(unpacked.chunk(at), reader.state.key) == name for at, (size, name) in chunks if size)
            wrong = "" if is_right else "a chunk has another hash than it had"
        except (OSError, ClewError) as error:
            wrong = str(error)
        if wrong:
            files = _names(touched(reader.state, reader.state.versions(), {block}))
            yield Damage(str(pack_path(reader.folder, block.pack)), block.offset, wrong, files)


def _files(reader: Reader, bad: set[Block]) -> Iterator[Damage]:
    """The content of files that no damaged block is known to touch; those it touches were told with it."""
    state = reader.state
    touching = {id(version) for version in touched(state, state.versions(), bad)} if bad else set()
    for version in state.versions():
        if id(version) in touching:
            continue
        try:
            for _ in reader.pieces(version):
                pass
        except (OSError, ClewError) as error:
            (name,) = _names([version])
            yield Damage(name, 0, str(error), (name,))


def _names(versions: Iterable[Version]) -> tuple[str, ...]:
    return tuple(sorted({version.path.decode("utf-8", "backslashreplace") for version in versions}))
