"""The bytes of archived files, from the blocks that hold them."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from clew.archive.blocks import TABLE_HEAD, Codec, Table, Unpacked, digest_of, read_table, table_size, unpack_plain
from clew.archive.layout import Block, Dictionary, Version, pack_path
from clew.archive.state import Blocks, State, load
from clew.errors import SourceUnreadable

_KEPT = 16
"""So many blocks stay in memory."""


class Reader:
    """Reads an archive. Beside a prune that moves blocks, it looks again where they are."""

    def __init__(self, folder: Path, state: State | None = None) -> None:
        self._folder = folder
        self.state = state or load(folder)
        self._blocks = Blocks(self.state.blocks)
        self._dictionaries = self.state.dictionaries
        self._codec = Codec()
        self._recent: OrderedDict[int, Unpacked] = OrderedDict()
        self._packs: dict[int, BinaryIO] = {}

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
        try:
            unpacked = self.unpack(block)
        except (FileNotFoundError, SourceUnreadable):
            block = self._look_again(block, chunk)
            unpacked = self.unpack(block)
        self._recent[block.first] = unpacked
        if len(self._recent) > _KEPT:
            self._recent.popitem(last=False)
        return unpacked

    def _look_again(self, block: Block, chunk: int) -> Block:
        """The block where it is now; the error stands where it did not move."""
        now = load(self._folder)
        blocks = Blocks(now.blocks)
        if blocks.of(chunk) == block:
            if not pack_path(self._folder, block.pack).exists():
                raise SourceUnreadable(f"{pack_path(self._folder, block.pack)}: the pack is gone")
            return block
        self.close()
        self._recent.clear()
        self._blocks, self._dictionaries = blocks, now.dictionaries
        return blocks.of(chunk)

    def unpack(self, block: Block) -> Unpacked:
        """A block, checked against its digest."""
        stored = self.stored(block)
        if not self._codec.knows(block.dictionary):
            entry = next((one for one in self._dictionaries if one.number == block.dictionary), None)
            if entry is None:
                raise SourceUnreadable(f"{self._spot(block)}: its dictionary is not known")
            self._codec.learn(entry.number, self.dictionary(entry))
        try:
            return self._codec.unpack(stored, block.dictionary)
        except SourceUnreadable as error:
            raise SourceUnreadable(f"{self._spot(block)}: {error}") from None

    def dictionary(self, entry: Dictionary) -> bytes:
        """A dictionary's bytes."""
        return unpack_plain(self.stored(entry))

    def stored(self, part: Block | Dictionary) -> bytes:
        """The bytes of a part of a pack, checked against their digest."""
        pack = self._pack(part.pack)
        pack.seek(part.offset)
        stored = pack.read(part.size)
        if digest_of(stored) != part.digest:
            raise SourceUnreadable(f"{self._spot(part)}: damaged")
        return stored

    def table(self, block: Block) -> Table:
        """The table of a block alone, unchecked: good enough to know chunks again, for a wrong hash knows none."""
        pack = self._pack(block.pack)
        pack.seek(block.offset)
        head = pack.read(min(block.size, TABLE_HEAD))
        size = table_size(head)
        if size > len(head):
            head += pack.read(min(block.size, size) - len(head))
        return read_table(head)[0]

    def _pack(self, number: int) -> BinaryIO:
        if number not in self._packs:
            self._packs[number] = pack_path(self._folder, number).open("rb")
        return self._packs[number]

    def _spot(self, part: Block | Dictionary) -> str:
        return f"{pack_path(self._folder, part.pack)} at byte {part.offset}"
