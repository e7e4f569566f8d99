"""The bytes of archived files, from the blocks that hold them."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from clew.archive.blocks import TABLE_HEAD, Codec, Table, Unpacked, digest_of, read_table, table_size, unpack_plain
from clew.archive.layout import Block, Version, open_inside, pack_path
from clew.archive.parts import HEAD, Part, spell_head
from clew.archive.state import Blocks, State, load
from clew.errors import SourceUnreadable

_KEPT = 4
"""So many blocks stay in memory."""
_MAX_OPEN_PACKS = 16


class Reader:
    """Reads an archive. Beside a prune that moves blocks, it looks again where they are."""

    def __init__(self, folder: Path, state: State | None = None) -> None:
        self.folder = folder
        self.state = state or load(folder)
        self._blocks = Blocks(self.state.blocks)
        self._dictionaries = self.state.dictionaries
        self._codec = Codec()
        self._recent: OrderedDict[int, Unpacked] = OrderedDict()
        self._packs: dict[int, BinaryIO] = {}
        self._failed: dict[Block, str] = {}

    def close(self) -> None:
        """Let go of the packs."""
        for pack in self._packs.values():
            pack.close()
        self._packs.clear()

    def pieces(self, version: Version) -> Iterator[bytes]:
        """The content of a file, piece by piece; at the end raises SourceUnreadable where it is another."""
        digest = hashlib.sha256()
        for first, count in zip(version.runs[::2], version.runs[1::2], strict=True):
            for piece in self._run(first, first + count):
                digest.update(piece)
                yield piece
        if digest.digest() != version.digest:
            raise SourceUnreadable("its content has another digest than it had when it was archived")

    def content(self, version: Version) -> bytes:
        """The content of a file at once."""
        return b"".join(self.pieces(version))

    def _run(self, at: int, end: int) -> Iterator[bytes]:
        while at < end:
            unpacked = self._unpacked(at)
            block = self._blocks.of(at)
            stop = min(end, block.first + block.count)
            begin = at - block.first
            if 0 in unpacked.table.lengths[begin : stop - block.first]:
                raise SourceUnreadable(f"a chunk of block {block.first} was pruned")
            yield unpacked.body[unpacked.offsets[begin] : unpacked.offsets[stop - block.first]]
            at = stop

    def _unpacked(self, chunk: int) -> Unpacked:
        block = self._blocks.of(chunk)
        if block.first in self._recent:
            self._recent.move_to_end(block.first)
            return self._recent[block.first]
        if block in self._failed:
            raise SourceUnreadable(self._failed[block])
        try:
            unpacked = self.unpack(block)
        except (FileNotFoundError, SourceUnreadable):
            unpacked, block = self._once_more(block, chunk)
        self._recent[block.first] = unpacked
        if len(self._recent) > _KEPT:
            self._recent.popitem(last=False)
        return unpacked

    def _once_more(self, block: Block, chunk: int) -> tuple[Unpacked, Block]:
        """A block that could not be read where it was; one that did not move is not tried again."""
        try:
            block = self._look_again(block, chunk)
            return self.unpack(block), block
        except SourceUnreadable as error:
            self._failed[block] = str(error)
            raise

    def _look_again(self, block: Block, chunk: int) -> Block:
        """The block where it is now; the error stands where it did not move."""
        now = load(self.folder)
        blocks = Blocks(now.blocks)
        if blocks.of(chunk) == block:
            if not pack_path(self.folder, block.pack).exists():
                raise SourceUnreadable(f"{pack_path(self.folder, block.pack)}: the pack is gone")
            return block
        self.close()
        self._recent.clear()
        self._blocks, self._dictionaries = blocks, now.dictionaries
        return blocks.of(chunk)

    def unpack(self, block: Block) -> Unpacked:
        """A block, checked against its digest."""
        stored = self.stored(block)
        if not self._codec.knows(block.dictionary):
            self._codec.learn(block.dictionary, self.dictionary(block.dictionary))
        try:
            unpacked = self._codec.unpack(stored, block.dictionary)
        except SourceUnreadable as error:
            raise SourceUnreadable(f"{self._spot(block)}: {error}") from None
        if len(unpacked.table.lengths) != block.count:
            raise SourceUnreadable(f"{self._spot(block)}: damaged, it has another number of chunks")
        return unpacked

    def dictionary(self, number: int) -> bytes:
        """A dictionary's bytes, from the first place where they are as they were."""
        wrong = "is not known"
        for entry in self._dictionaries:
            if entry.number == number:
                try:
                    return unpack_plain(self.stored(entry))
                except (OSError, SourceUnreadable) as error:
                    wrong = f"cannot be read: {error}"
        raise SourceUnreadable(f"dictionary {number} {wrong}")

    def stored(self, part: Part) -> bytes:
        """The bytes of a part of a pack, checked against their digest, without the head."""
        pack = self._pack(part.pack)
        pack.seek(part.offset)
        stored = pack.read(part.size)
        if len(stored) < part.size:
            raise SourceUnreadable(f"{self._spot(part)}: cut short")
        if digest_of(stored[HEAD:]) != part.digest:
            raise SourceUnreadable(f"{self._spot(part)}: damaged")
        return stored[HEAD:]

    def unchecked(self, part: Part) -> bytes:
        """The bytes of a part, head and all, whatever they are."""
        pack = self._pack(part.pack)
        pack.seek(part.offset)
        return pack.read(part.size).ljust(part.size, b"\0")

    def has_head(self, part: Part) -> bool:
        """True where a part's head tells what the manifests tell; it is only needed without them."""
        pack = self._pack(part.pack)
        pack.seek(part.offset)
        return pack.read(HEAD) == spell_head(part, self.state.key)

    def table(self, block: Block) -> Table:
        """The table of a block alone, unchecked: good enough to know chunks again, for a wrong hash knows none."""
        pack = self._pack(block.pack)
        pack.seek(block.offset + HEAD)
        head = pack.read(min(block.size - HEAD, TABLE_HEAD))
        size = table_size(head)
        if size > len(head):
            head += pack.read(min(block.size - HEAD, size) - len(head))
        return read_table(head)[0]

    def _pack(self, number: int) -> BinaryIO:
        if number not in self._packs:
            if len(self._packs) >= _MAX_OPEN_PACKS:
                self._packs.pop(next(iter(self._packs))).close()
            self._packs[number] = open_inside(pack_path(self.folder, number))
        return self._packs[number]

    def _spot(self, part: Part) -> str:
        return f"{pack_path(self.folder, part.pack)} at byte {part.offset}"
