"""What lies in packs although no manifest names it: found by its heads, and made restorable.

Manifests can be missing (a partial copy of the archive), or older than the packs (a restored backup, a capture that was
killed). The packs then still tell which blocks they hold, but not which files those belonged to. So each chunk that no
known file needs becomes part of a file of its own, one for each block, in the place `RECOVERED`. As a version of a file
it is restored, verified and pruned like every other, and no pack that holds it counts as garbage.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from clew.archive.blocks import Table
from clew.archive.health import is_whole
from clew.archive.layout import RECOVERED, Block, Dictionary, Version, open_inside, pack_path, packs
from clew.archive.parts import HEAD, Part, is_begun_head, read_head, scan
from clew.archive.reading import Reader
from clew.archive.state import Blocks, State, needed, runs_of
from clew.errors import SourceUnreadable

_MODE = 0o600
_NO_DIGEST = bytes(32)
"""Of content that cannot be read: it equals no real digest, so the file counts as damaged."""


def recover(folder: Path, state: State) -> None:
    """Take in the blocks and dictionaries that no manifest names.

    Where manifests are lost, all packs are searched; else only what lies behind the last part that is named.
    """
    ends = {} if state.lost else state.ends()
    suspect = {number: ends.get(number, 0) for number, size in state.sizes.items() if size > ends.get(number, 0)}
    if not suspect:
        return
    reader = Reader(folder, state)
    try:
        fresh = _take_in(reader, suspect)
        _list_unneeded(reader, state.blocks if state.lost else fresh)
    finally:
        reader.close()


def _take_in(reader: Reader, suspect: dict[int, int]) -> list[Block]:
    """Add the parts that are found from an offset on in each of these packs; returns the blocks among them."""
    state = reader.state
    found = [part for number in sorted(suspect, reverse=True) for part in _parts(reader, number, suspect[number])]
    dictionaries = _take_in_dictionaries(reader, [one for one in found if isinstance(one, Dictionary)])
    fresh = _take_in_blocks(reader, [one for one in found if isinstance(one, Block)])
    state.is_recovered = state.is_recovered or bool(fresh) or dictionaries
    return fresh


def _take_in_dictionaries(reader: Reader, found: list[Dictionary]) -> bool:
    """Add dictionaries that are not known, or not whole where they are known; returns whether there were any."""
    state = reader.state
    named = list(state.dictionaries)
    added = False
    for one in found:
        same = [other for other in named if other.number == one.number]
        if not is_whole(reader, one) or any(other.digest != one.digest or is_whole(reader, other) for other in same):
            continue
        agent = same[0].agent if same else one.agent
        # In place: the reader has the same list.
        state.dictionaries[:] = [other for other in state.dictionaries if other not in same]
        state.dictionaries.append(msgspec.structs.replace(one, agent=agent))
        added = True
    return added


def _take_in_blocks(reader: Reader, found: list[Block]) -> list[Block]:
    """Add blocks, of several with the same chunks the first one that is whole; returns those that were added."""
    state = reader.state
    marks = needed(state, state.versions())
    known = _Ranges(state.blocks)
    fresh: list[Block] = []
    damaged: list[Block] = []
    for block in found:
        others = known.overlapping(block)
        if not is_whole(reader, block):
            damaged.append(block)
        elif all(_is_inside(one, block) and not is_whole(reader, one) for one in others):
            # Where a manifest names a pack that is gone or damaged, its chunks may have been moved to this one.
            known.replace(others, block)
            fresh = [one for one in fresh if one not in others] + [block]
    # A damaged block is only of use where a file needs it: then its damage is told, and can be made good.
    for block in damaged:
        if not known.overlapping(block) and 1 in marks[block.first : block.first + block.count]:
            known.replace([], block)
            fresh.append(block)
    state.blocks = known.blocks
    state.next_chunk = max([state.next_chunk, *(block.first + block.count for block in state.blocks)])
    return fresh


def _is_inside(one: Block, other: Block) -> bool:
    return other.first <= one.first and one.first + one.count <= other.first + other.count


class _Ranges:
    """Blocks of which no two have the same chunk, in the order of their chunks."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self.blocks = sorted(blocks, key=lambda block: block.first)

    def overlapping(self, block: Block) -> list[Block]:
        """Those that have a chunk of this block."""
        at = bisect_left(self.blocks, block.first + block.count, key=lambda one: one.first)
        found = []
        while at and self.blocks[at - 1].first + self.blocks[at - 1].count > block.first:
            at -= 1
            found.append(self.blocks[at])
        return found

    def replace(self, others: Iterable[Block], block: Block) -> None:
        """Put a block in the place of others."""
        for one in others:
            self.blocks.remove(one)
        insort(self.blocks, block, key=lambda one: one.first)


def _parts(reader: Reader, number: int, start: int) -> Iterator[Part]:
    """The parts of this archive in a pack, without one that was cut short."""
    state = reader.state
    for part, key in scan(pack_path(reader.folder, number), number, start):
        state.key = state.key or key
        if key == state.key and part.offset + part.size <= state.sizes[number]:
            yield part


def _list_unneeded(reader: Reader, blocks: Iterable[Block]) -> None:
    """Make a file of the chunks of each block that no file needs."""
    state = reader.state
    marks = needed(state, state.versions())
    for block in blocks:
        table = _table(reader, block)
        there = range(block.count) if table is None else [at for at, length in enumerate(table.lengths) if length]
        chunks = [block.first + at for at in there if not marks[block.first + at]]
        if chunks:
            _list(reader, block, chunks)


def _table(reader: Reader, block: Block) -> Table | None:
    try:
        table = reader.table(block)
    except (OSError, SourceUnreadable):
        return None
    return table if len(table.lengths) == block.count else None


def _list(reader: Reader, block: Block, chunks: list[int]) -> None:
    state = reader.state
    if RECOVERED not in state.places:
        state.places.append(RECOVERED)
    path = f"{RECOVERED.home}/{chunks[0]:012}.records".encode()
    try:
        unpacked = reader.unpack(block)
        content = b"".join(unpacked.chunk(chunk - block.first) for chunk in chunks)
        size, digest = len(content), hashlib.sha256(content).digest()
    except (OSError, SourceUnreadable):
        size, digest = 0, _NO_DIGEST
    try:
        written_ns = pack_path(reader.folder, block.pack).stat().st_mtime_ns
    except FileNotFoundError:
        written_ns = 0
    version = Version(
        place=state.places.index(RECOVERED),
        path=path,
        agent="",
        session="",
        role="shared",
        main=path,
        size=size,
        mode=_MODE,
        mtime_ns=written_ns,
        stamp=(0, 0),
        digest=digest,
        runs=runs_of(chunks),
        taken_us=written_ns // 1000,
        written_ns=written_ns,
    )
    state.files[version.place, version.path] = [version]
    state.is_recovered = True


def recovered(state: State) -> list[Version]:
    """The files that were made of chunks whose own files are not known."""
    return [version for version in state.versions() if state.places[version.place] == RECOVERED]


def drop_known_again(folder: Path, state: State) -> bool:
    """Take out of recovered files what other files need by now; returns whether there was any."""
    held = recovered(state)
    if not held:
        return False
    others = (version for version in state.versions() if state.places[version.place] != RECOVERED)
    marks = needed(state, others)
    blocks, changed = Blocks(state.blocks), False
    reader = Reader(folder, state)
    try:
        for version in held:
            if not any(
                marks.count(1, first, first + count)
                for first, count in zip(version.runs[::2], version.runs[1::2], strict=True)
            ):
                continue
            chunks = [chunk for chunk in _chunks(version) if not marks[chunk]]
            changed = True
            del state.files[version.place, version.path]
            if chunks:
                _list(reader, blocks.of(chunks[0]), chunks)
    finally:
        reader.close()
    return changed


def _chunks(version: Version) -> Iterator[int]:
    for first, count in zip(version.runs[::2], version.runs[1::2], strict=True):
        yield from range(first, first + count)


def stray_bytes(parts: Iterable[Part], size: int) -> Iterator[tuple[int, int]]:
    """The stretches of a pack, each from an offset to another, that belong to none of these parts."""
    at = 0
    for part in sorted(parts, key=lambda one: one.offset):
        if part.offset > at:
            yield at, min(part.offset, size)
        at = max(at, part.offset + part.size)
    if at < size:
        yield at, size


def is_unfinished(folder: Path, number: int, key: bytes, at: int, size: int) -> bool:
    """True where the end of a pack, from an offset on, is the beginning of a part: whoever wrote it was stopped."""
    with open_inside(pack_path(folder, number)) as stream:
        stream.seek(at)
        head = stream.read(min(HEAD, size - at))
    found = read_head(head, number, at)
    if found is not None:
        return found[1] == key and at + found[0].size > size
    return len(head) < HEAD and is_begun_head(head)


def has_other_key(folder: Path, state: State, number: int) -> bool:
    """True for a pack with a part of another archive: what the manifests say of this number is about another pack."""
    return any(key != state.key for _, key in scan(pack_path(folder, number), number))


def is_understood(folder: Path, state: State, number: int, headless: Iterable[Part]) -> bool:
    """True for a pack of this archive, known by a head or by a whole part without one; only such a pack is given up.

    A pack that is gone counts as well: there is nothing to lose.
    """
    try:
        keys = {key for _, key in scan(pack_path(folder, number), number)}
    except FileNotFoundError:
        return True
    return keys == {state.key} or (not keys and any(part.pack == number for part in headless))


def unnamed_packs(folder: Path, state: State) -> Iterator[tuple[int, bool]]:
    """Packs that no manifest names and no prune gave up; for each whether all that it holds is elsewhere, too."""
    ends = state.ends()
    numbers = [
        number
        for number in packs(folder)
        if number not in ends and (number not in state.retired or has_other_key(folder, state, number))
    ]
    if not numbers:
        return
    reader = Reader(folder, state)
    try:
        for number in numbers:
            yield number, _is_redundant(reader, number)
    finally:
        reader.close()


def _is_redundant(reader: Reader, number: int) -> bool:
    """True where every byte of a pack is known, and every chunk and dictionary in it is whole in another pack."""
    state, path = reader.state, pack_path(reader.folder, number)
    size, at = path.stat().st_size, 0
    for part, key in scan(path, number):
        if key != state.key or part.offset != at:
            return False
        at += part.size
        if at > size:
            # Cut short, so what it held is not known: it must be a copy of blocks that are whole.
            return isinstance(part, Block) and _has_chunks(reader, part, None)
        if isinstance(part, Dictionary):
            if not any(one.digest == part.digest and is_whole(reader, one) for one in state.dictionaries):
                return False
        elif (table := _table(reader, part)) is None or not _has_chunks(reader, part, table):
            return False
    return at == size or is_unfinished(reader.folder, number, state.key, at, size)


def _has_chunks(reader: Reader, block: Block, table: Table | None) -> bool:
    """True where other blocks, all of them whole, have each chunk of a block; by their hashes where these are known."""
    blocks = Blocks(reader.state.blocks)
    at = block.first
    while at < block.first + block.count:
        try:
            other = blocks.of(at)
        except SourceUnreadable:
            return False
        known = _table(reader, other)
        if known is None or not is_whole(reader, other):
            return False
        end = min(block.first + block.count, other.first + other.count)
        if table is not None:
            for chunk in range(at, end):
                length, name = table.lengths[chunk - block.first], table.hashes[chunk - block.first]
                if length and name != known.hashes[chunk - other.first]:
                    return False
        at = end
    return True
