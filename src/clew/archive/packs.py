"""Packs: files of blocks, each with a header that describes it, so that a pack can be read without the index.

    block    = header, table, data
    header   = magic, format, kind, pack id, sizes of table, data and uncompressed data, SHA-256 of table and data,
               checksum of the header
    chunks   = table: the id and the size of each chunk; data: the chunks, one after the other, compressed with zstd
    records  = no table; data: a PackRecords struct as msgpack, compressed with zstd; written twice
    end      = no table; data: the number of different records blocks; the last block of every pack, written twice

The pack id is part of the file name. A block with another pack id is not part of the pack, even if the bytes of a
captured file look like one. A pack gets its name when all its blocks are on disk, and never changes afterwards.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
import zstandard

from clew.archive.records import CHUNK_ID_BYTES, PACK_SUFFIX, PACKS, PackRecords, pack_path
from clew.errors import InvalidDocument, SourceUnreadable
from clew.io.filesystem import SYSTEM, System, open_new, open_regular, sync_folder, write_all

FORMAT = 3
"""Written into every block. Formats 1 and 2 had other files, see `records.check_folder`."""
CHUNKS, RECORDS, END = b"C", b"R", b"E"
MAX_UNCOMPRESSED_BYTES = 256 << 20
"""A block that claims more is damaged: a small hostile file could otherwise fill the memory."""
RECORD_COPIES = 2
"""The records of a pack are small. Without them and the index it is unknown which file a chunk belongs to."""
_MAX_VERSIONS_PER_BLOCK = 2000
_MAGIC = b"\0clew\xffpack"
_HEADER = struct.Struct(f"<{len(_MAGIC)}sBc8sIII32s")
_COUNT = struct.Struct("<I")
_CHECK_BYTES = 8
HEADER_BYTES = _HEADER.size + _CHECK_BYTES
_SEARCH_BYTES = 1 << 20
_TABLE_ENTRY_BYTES = CHUNK_ID_BYTES + 4


def chunk_id(chunk: bytes) -> bytes:
    """Return the id of a chunk: the first 128 bits of its SHA-256. Every file is also checked by its whole SHA-256."""
    return hashlib.sha256(chunk).digest()[:CHUNK_ID_BYTES]


class TableEntry(NamedTuple):
    """A chunk in a block."""

    id: bytes
    start: int
    """Offset in the uncompressed data."""
    size: int


class Block(NamedTuple):
    """A block of a pack."""

    offset: int
    size: int
    """Bytes of header, table and data."""
    kind: bytes
    table: tuple[TableEntry, ...] = ()
    records: PackRecords | None = None
    record_count: int = 0
    """In the end block: the number of different records blocks."""


class PackContent(NamedTuple):
    """What was found in a pack."""

    blocks: list[Block]
    """The blocks that have their checksum."""
    damaged: list[Block]
    """The blocks that do not; the table of such a block may be wrong."""
    gaps: list[tuple[int, int]]
    """Ranges of bytes, from start to end, without a readable header; an empty range where the end is missing."""

    @property
    def is_damaged(self) -> bool:
        """True where some byte of the pack could not be read as part of a block."""
        return bool(self.damaged or self.gaps)

    def records(self) -> list[PackRecords]:
        """Return the records of the pack, each once although it is written twice."""
        different = {msgspec.msgpack.encode(block.records): block.records for block in self.blocks if block.records}
        return list(different.values())

    @property
    def has_all_records(self) -> bool:
        """True where it is certain that a copy of all records was read."""
        return any(block.kind == END and block.record_count == len(self.records()) for block in self.blocks)


class _Header(NamedTuple):
    kind: bytes
    table_bytes: int
    data_bytes: int
    uncompressed_bytes: int
    digest: bytes

    @property
    def block_bytes(self) -> int:
        return HEADER_BYTES + self.table_bytes + self.data_bytes


def _pack_id(name: str) -> bytes:
    return bytes.fromhex(name.rpartition("-")[2])


def _check(header: bytes) -> bytes:
    return hashlib.sha256(header).digest()[:_CHECK_BYTES]


def _read_header(raw: bytes, name: str) -> _Header | None:
    """Decode a header; None where the bytes are not a header of this pack."""
    if len(raw) < HEADER_BYTES or not raw.startswith(_MAGIC) or _check(raw[: _HEADER.size]) != raw[_HEADER.size :]:
        return None
    _, version, kind, pack_id, table_bytes, data_bytes, uncompressed_bytes, digest = _HEADER.unpack_from(raw)
    if pack_id != _pack_id(name):
        return None
    if version != FORMAT:
        raise InvalidDocument(f"{name}{PACK_SUFFIX}: written by another clew; this one reads format {FORMAT}")
    header = _Header(kind, table_bytes, data_bytes, uncompressed_bytes, digest)
    return header if header.uncompressed_bytes <= MAX_UNCOMPRESSED_BYTES else None


def encode_table(chunks: Sequence[bytes], ids: Sequence[bytes]) -> bytes:
    """Return the table of a block of chunks."""
    return b"".join(ids) + struct.pack(f"<{len(chunks)}I", *map(len, chunks))


def _decode_table(raw: bytes) -> tuple[TableEntry, ...]:
    count = len(raw) // _TABLE_ENTRY_BYTES
    sizes = struct.unpack_from(f"<{count}I", raw, count * CHUNK_ID_BYTES)
    entries, start = [], 0
    for number, size in enumerate(sizes):
        entries.append(TableEntry(raw[number * CHUNK_ID_BYTES : (number + 1) * CHUNK_ID_BYTES], start, size))
        start += size
    return tuple(entries)


def _decompress(data: bytes, size: int) -> bytes:
    """Decompress the data of a block; raises SourceUnreadable where it is not of this size."""
    try:
        # zstandard allocates the size that a frame declares, whatever `max_output_size` is.
        if zstandard.frame_content_size(data) != size:
            raise SourceUnreadable("the block has another size than its header says")
        return zstandard.ZstdDecompressor().decompress(data)
    except zstandard.ZstdError as error:
        raise SourceUnreadable(f"the block cannot be decompressed: {error}") from None


def open_pack(folder: Path, name: str) -> BinaryIO:
    """Open a pack for reading; raises SourceUnreadable for anything but a regular file."""
    return open(open_regular(SYSTEM, pack_path(folder, name), os.O_RDONLY), "rb")


def read_chunks(pack: BinaryIO, name: str, offset: int) -> bytes:
    """Return the uncompressed data of a block of chunks; raises SourceUnreadable where it is damaged."""
    pack.seek(offset)
    header = _read_header(pack.read(HEADER_BYTES), name)
    if header is None or header.kind != CHUNKS:
        raise SourceUnreadable("the header of the block is damaged")
    payload = pack.read(header.table_bytes + header.data_bytes)
    if hashlib.sha256(payload).digest() != header.digest:
        raise SourceUnreadable("the block is damaged")
    return _decompress(payload[header.table_bytes :], header.uncompressed_bytes)


def read_pack(folder: Path, name: str, *, check_chunks: bool = False) -> PackContent:
    """Read a whole pack and check every checksum; with `check_chunks`, also decompress and hash every chunk."""
    content = PackContent([], [], [])
    with open_pack(folder, name) as pack:
        end = os.fstat(pack.fileno()).st_size
        offset = 0
        while offset < end:
            pack.seek(offset)
            header = _read_header(pack.read(HEADER_BYTES), name)
            if header is None or offset + header.block_bytes > end:
                following = _find_header(pack, name, offset + 1, end)
                content.gaps.append((offset, following))
                offset = following
                continue
            payload = pack.read(header.table_bytes + header.data_bytes)
            block, is_intact = _read_block(header, payload, offset, check_chunks)
            (content.blocks if is_intact else content.damaged).append(block)
            offset += block.size
    if not content.is_damaged and (not content.blocks or content.blocks[-1].kind != END):
        content.gaps.append((end, end))
    return content


def _read_block(header: _Header, payload: bytes, offset: int, check_chunks: bool) -> tuple[Block, bool]:
    """Return a block, and whether it is intact."""
    table = _decode_table(payload[: header.table_bytes])
    block = Block(offset, header.block_bytes, header.kind, table)
    if hashlib.sha256(payload).digest() != header.digest:
        return block, False
    try:
        if header.kind == RECORDS:
            raw = _decompress(payload, header.uncompressed_bytes)
            return block._replace(records=msgspec.msgpack.decode(raw, type=PackRecords)), True
        if header.kind == END:
            (count,) = _COUNT.unpack(payload)
            return block._replace(record_count=count), True
        if header.uncompressed_bytes != sum(entry.size for entry in table):
            return block, False
        if check_chunks and header.kind == CHUNKS:
            raw = _decompress(payload[header.table_bytes :], header.uncompressed_bytes)
            return block, all(chunk_id(raw[one.start : one.start + one.size]) == one.id for one in table)
    except (SourceUnreadable, msgspec.MsgspecError, struct.error):
        return block, False
    return block, True


def _find_header(pack: BinaryIO, name: str, start: int, end: int) -> int:
    """Return the offset of the next header, or the end of the pack."""
    while start < end:
        pack.seek(start)
        window = pack.read(_SEARCH_BYTES + HEADER_BYTES)
        at = window.find(_MAGIC)
        while 0 <= at < _SEARCH_BYTES:
            if _read_header(window[at : at + HEADER_BYTES], name) is not None:
                return start + at
            at = window.find(_MAGIC, at + 1)
        start += _SEARCH_BYTES
    return end


class PackWriter:
    """Writes one pack under a temporary name; `finish` gives it its name."""

    def __init__(self, system: System, folder: Path, number: int) -> None:
        self._system, self._folder = system, folder
        self.name = f"{number:08}-{os.urandom(8).hex()}"
        self.size = 0
        self._record_count = 0
        self._temporary = folder / PACKS / f".{self.name}.tmp"
        self._descriptor = open_new(system, self._temporary)

    def write_block(self, kind: bytes, table: bytes, data: bytes, uncompressed_bytes: int) -> None:
        """Append a block."""
        digest = hashlib.sha256(table + data).digest()
        header = _HEADER.pack(
            _MAGIC, FORMAT, kind, _pack_id(self.name), len(table), len(data), uncompressed_bytes, digest
        )
        block = b"".join((header, _check(header), table, data))
        try:
            write_all(self._system, self._descriptor, block)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(pack_path(self._folder, self.name))) from error
        self.size += len(block)

    def write_records(self, records: PackRecords) -> None:
        """Append records, in several blocks if there are many versions; each block twice."""
        groups = [
            records.versions[at : at + _MAX_VERSIONS_PER_BLOCK]
            for at in range(0, len(records.versions), _MAX_VERSIONS_PER_BLOCK)
        ]
        last = msgspec.structs.replace(records, versions=groups[-1] if groups else ())
        for part in (*(PackRecords(versions=group) for group in groups[:-1]), last):
            raw = msgspec.msgpack.encode(part)
            data = zstandard.ZstdCompressor(level=9).compress(raw)
            self._record_count += 1
            for _ in range(RECORD_COPIES):
                self.write_block(RECORDS, b"", data, len(raw))

    def finish(self) -> str:
        """Make the pack durable and give it its name; returns the name."""
        for _ in range(RECORD_COPIES):
            self.write_block(END, b"", _COUNT.pack(self._record_count), 0)
        try:
            self._system.sync(self._descriptor)
        finally:
            self._system.close(self._descriptor)
            self._descriptor = -1
        self._system.replace(self._temporary, pack_path(self._folder, self.name))
        sync_folder(self._system, self._folder / PACKS)
        return self.name

    def discard(self) -> None:
        """Remove the unfinished pack."""
        if self._descriptor >= 0:
            self._system.close(self._descriptor)
            self._descriptor = -1
        self._system.unlink(self._temporary)
