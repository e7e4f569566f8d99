"""Chunks packed together, and unpacked again.

A block is a table of lengths and hashes, a list of frames, and the frames. A small block is one frame, packed with the
dictionary of its agent; of a large one the records are sorted into columns, and each stream of them is a frame.
"""

from __future__ import annotations

import hashlib
import struct
import sys
import threading
from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from clew.archive.columns import Streams, gather, spread
from clew.archive.layout import HASH_BYTES
from clew.errors import SourceUnreadable

if TYPE_CHECKING:
    import zstandard

LEVEL = 6
RAW = 24 << 20
"""So much goes into a block."""
SMALL = 512 << 10
"""A block of less is packed with a dictionary."""
_MIN_MATCH, _WINDOW_LOG = 6, 24
_SEARCH_LOG = 2
"""At the usual level: half as far as zstd looks there."""
_MOST_TUNED = 12
"""Levels above look for short matches on purpose."""
_Kind = TypeVar("_Kind")
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
    keyed = hashlib.sha256(key)
    keyed.update(chunk)
    return keyed.digest()[:HASH_BYTES]


def digest_of(*stored: bytes) -> bytes:
    """The digest of stored bytes, which may come in pieces."""
    digest = hashlib.sha256()
    for piece in stored:
        digest.update(piece)
    return digest.digest()


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

    def pack(self, chunks: Sequence[bytes], hashes: Sequence[bytes], dictionary: int) -> tuple[bytes, int]:
        """The bytes of a block, and the dictionary that was used."""
        body = b"".join(chunks)
        dictionary = dictionary if len(body) < SMALL else 0
        return table_of(chunks, hashes) + self.pack_body(body, dictionary), dictionary

    def pack_body(self, body: bytes, dictionary: int = 0) -> bytes:
        """What stands behind the table of a block."""
        streams = spread(body) if len(body) >= SMALL else None
        frames = [self._frame(stream, dictionary) for stream in streams or (body,)]
        sizes = msgspec.msgpack.encode([[packed, len(frame)] for packed, frame in frames])
        return b"".join((_SIZE.pack(len(sizes)), sizes, *(frame for _, frame in frames)))

    def _frame(self, stream: bytes, dictionary: int) -> tuple[bool, bytes]:
        """A stream packed, or as it is where packing does not make it smaller."""
        packed = self._packer(dictionary).compress(stream)
        return (True, packed) if len(packed) < len(stream) else (False, stream)

    def unpack(self, stored: bytes, dictionary: int) -> Unpacked:
        """A block; raises SourceUnreadable where it cannot be one."""
        import zstandard

        table, start = read_table(stored)
        try:
            sizes, at = _read_part(stored, start, list[tuple[bool, int]])
            streams = []
            for is_packed, size in sizes:
                streams.append(
                    self._stream(stored[at : at + size], dictionary) if is_packed else stored[at : at + size]
                )
                at += size
            body = streams[0] if len(streams) == 1 else gather(Streams(*streams), LIMIT)
        except (zstandard.ZstdError, ValueError, TypeError) as error:
            raise SourceUnreadable(f"a block is damaged: {error}") from None
        offsets = list(accumulate(table.lengths, initial=0))
        if offsets[-1] != len(body):
            raise SourceUnreadable("a block is damaged: its lengths are wrong")
        return Unpacked(table, offsets, body)

    def _stream(self, frame: bytes, dictionary: int) -> bytes:
        import zstandard

        if not 0 <= zstandard.frame_content_size(frame) <= LIMIT:
            raise SourceUnreadable("a block says that it is larger than any")
        return self._unpacker(dictionary).decompress(frame)

    def _packer(self, dictionary: int) -> zstandard.ZstdCompressor:
        import zstandard

        kept: dict[int, zstandard.ZstdCompressor] = self._local.__dict__.setdefault("packers", {})
        if dictionary not in kept:
            if dictionary:
                known = zstandard.ZstdCompressionDict(self._known[dictionary])
                known.precompute_compress(level=self._level)
                kept[dictionary] = zstandard.ZstdCompressor(level=self._level, dict_data=known)
            else:
                kept[dictionary] = zstandard.ZstdCompressor(compression_params=_parameters(self._level))
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

    return zstandard.ZstdCompressor(level=9).compress(body)


def unpack_plain(stored: bytes) -> bytes:
    """What `pack_plain` packed."""
    import zstandard

    try:
        if 0 <= zstandard.frame_content_size(stored) <= LIMIT:
            return zstandard.ZstdDecompressor().decompress(stored)
    except zstandard.ZstdError as error:
        raise SourceUnreadable(f"a dictionary is damaged: {error}") from None
    raise SourceUnreadable("a dictionary says that it is larger than any")


def _parameters(level: int) -> zstandard.ZstdCompressionParameters:
    """Of large blocks: the window spans all of it, and short matches far away are not worth their while."""
    import zstandard

    if level > _MOST_TUNED:
        return zstandard.ZstdCompressionParameters.from_level(level, window_log=_WINDOW_LOG)
    more = {"search_log": _SEARCH_LOG} if level == LEVEL else {}
    return zstandard.ZstdCompressionParameters.from_level(level, window_log=_WINDOW_LOG, min_match=_MIN_MATCH, **more)


def table_size(head: bytes) -> int:
    """How many bytes of a block its table takes, from the first of them."""
    return int(_SIZE.unpack_from(head)[0]) + _SIZE.size if len(head) >= _SIZE.size else 0


def table_of(chunks: Sequence[bytes], hashes: Sequence[bytes]) -> bytes:
    """The table that a block begins with."""
    table = msgspec.msgpack.encode([_pack_lengths(chunks), b"".join(hashes)])
    return _SIZE.pack(len(table)) + table


def _pack_lengths(chunks: Sequence[bytes]) -> bytes:
    import zstandard

    lengths = array("I", map(len, chunks))
    if sys.byteorder == "big":
        lengths.byteswap()
    return zstandard.ZstdCompressor(level=3).compress(lengths.tobytes())


def _unpack_lengths(packed: bytes) -> list[int]:
    import zstandard

    try:
        if not 0 <= zstandard.frame_content_size(packed) <= LIMIT:
            raise ValueError("a table says that it is larger than any")
        lengths = array("I", zstandard.ZstdDecompressor().decompress(packed))
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
    if sys.byteorder == "big":
        lengths.byteswap()
    return lengths.tolist()


def read_table(stored: bytes) -> tuple[Table, int]:
    """The table of a block, and where it ends."""
    try:
        (packed, hashes), end = _read_part(stored, 0, tuple[bytes, bytes])
        lengths = _unpack_lengths(packed)
    except ValueError:
        raise SourceUnreadable("a block is damaged: its table cannot be read") from None
    if len(hashes) != HASH_BYTES * len(lengths):
        raise SourceUnreadable("a block is damaged: its table is not complete")
    parts = [hashes[at : at + HASH_BYTES] for at in range(0, len(hashes), HASH_BYTES)]
    return Table(lengths, parts), end


def _read_part(stored: bytes, at: int, kind: type[_Kind]) -> tuple[_Kind, int]:
    """A part with its size before it, and where it ends; raises ValueError where there is none."""
    try:
        begin = at + _SIZE.size
        end = begin + _SIZE.unpack_from(stored, at)[0]
        return msgspec.msgpack.decode(stored[begin:end], type=kind), end
    except (struct.error, msgspec.DecodeError) as error:
        raise ValueError(str(error)) from None
