"""Chunks packed together, and unpacked again. A block is a table of lengths and hashes, and the chunks as one frame."""

from __future__ import annotations

import hashlib
import struct
import threading
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from clew.archive.layout import HASH_BYTES
from clew.errors import SourceUnreadable

if TYPE_CHECKING:
    import zstandard

LEVEL = 6
RAW = 4 << 20
"""So much goes into a block."""
LIMIT = 64 << 20
"""No block unpacks to more."""
_SIZE = struct.Struct("<I")
TABLE_HEAD = 32 << 10
"""Most tables are no longer."""


class Table(NamedTuple):
    """The chunks of a block: their lengths, 0 for one that is no longer kept, and their hashes."""

    lengths: list[int]
    hashes: list[bytes]


class Unpacked(NamedTuple):
    """A block in memory."""

    table: Table
    offsets: list[int]
    body: bytes

    def chunk(self, at: int) -> bytes:
        """A chunk by its place in the block."""
        return self.body[self.offsets[at] : self.offsets[at + 1]]


def hash_of(chunk: bytes, key: bytes) -> bytes:
    """The hash that chunks are known by in one archive."""
    return hashlib.blake2b(chunk, digest_size=HASH_BYTES, key=key).digest()


def digest_of(stored: bytes) -> bytes:
    """The digest of stored bytes."""
    return hashlib.sha256(stored).digest()


class Codec:
    """Packs and unpacks with the dictionaries of an archive, from several threads at once."""

    def __init__(self, level: int = LEVEL) -> None:
        self._level = level
        self._known: dict[int, bytes] = {}
        self._local = threading.local()

    def learn(self, number: int, dictionary: bytes) -> None:
        """Make a dictionary known."""
        self._known[number] = dictionary

    def knows(self, number: int) -> bool:
        """True where blocks with this dictionary can be read; 0 is none."""
        return number == 0 or number in self._known

    def pack(self, chunks: Sequence[bytes], hashes: Sequence[bytes], dictionary: int) -> bytes:
        """The bytes of a block."""
        table = msgspec.msgpack.encode([[len(chunk) for chunk in chunks], b"".join(hashes)])
        return _SIZE.pack(len(table)) + table + self._packer(dictionary).compress(b"".join(chunks))

    def unpack(self, stored: bytes, dictionary: int) -> Unpacked:
        """A block; raises SourceUnreadable where it cannot be one."""
        import zstandard

        table, start = read_table(stored)
        try:
            if not 0 <= zstandard.frame_content_size(stored[start:]) <= LIMIT:
                raise SourceUnreadable("a block says that it is larger than any")
            body = self._unpacker(dictionary).decompress(stored[start:])
        except zstandard.ZstdError as error:
            raise SourceUnreadable(f"a block is damaged: {error}") from None
        offsets = list(accumulate(table.lengths, initial=0))
        if offsets[-1] != len(body):
            raise SourceUnreadable("a block is damaged: its lengths are wrong")
        return Unpacked(table, offsets, body)

    def _packer(self, dictionary: int) -> zstandard.ZstdCompressor:
        import zstandard

        kept: dict[int, zstandard.ZstdCompressor] = self._local.__dict__.setdefault("packers", {})
        if dictionary not in kept:
            known = zstandard.ZstdCompressionDict(self._known[dictionary]) if dictionary else None
            if known is not None:
                known.precompute_compress(level=self._level)
            kept[dictionary] = zstandard.ZstdCompressor(level=self._level, dict_data=known)
        return kept[dictionary]

    def _unpacker(self, dictionary: int) -> zstandard.ZstdDecompressor:
        import zstandard

        kept: dict[int, zstandard.ZstdDecompressor] = self._local.__dict__.setdefault("unpackers", {})
        if dictionary not in kept:
            known = zstandard.ZstdCompressionDict(self._known[dictionary]) if dictionary else None
            kept[dictionary] = zstandard.ZstdDecompressor(dict_data=known)
        return kept[dictionary]


def pack_plain(body: bytes) -> bytes:
    """Bytes packed without a dictionary: a dictionary itself."""
    import zstandard

    return zstandard.ZstdCompressor(level=19).compress(body)


def unpack_plain(stored: bytes) -> bytes:
    """What `pack_plain` packed."""
    import zstandard

    return zstandard.ZstdDecompressor().decompress(stored, max_output_size=LIMIT)


def table_size(head: bytes) -> int:
    """How many bytes of a block its table takes, from the first of them."""
    return int(_SIZE.unpack_from(head)[0]) + _SIZE.size if len(head) >= _SIZE.size else 0


def read_table(stored: bytes) -> tuple[Table, int]:
    """The table of a block, and where its frame begins."""
    try:
        (size,) = _SIZE.unpack_from(stored)
        lengths, hashes = msgspec.msgpack.decode(stored[_SIZE.size : _SIZE.size + size], type=tuple[list[int], bytes])
    except (struct.error, msgspec.DecodeError):
        raise SourceUnreadable("a block is damaged: its table cannot be read") from None
    if len(hashes) != HASH_BYTES * len(lengths):
        raise SourceUnreadable("a block is damaged: its table is not complete")
    parts = [hashes[at : at + HASH_BYTES] for at in range(0, len(hashes), HASH_BYTES)]
    return Table(lengths, parts), _SIZE.size + size
