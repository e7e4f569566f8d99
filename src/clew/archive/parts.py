"""The heads in packs: each block and each dictionary tells itself what it is, so that no manifest is needed to find it.

A head has a digest of its own. Where one is damaged, the next is looked for by its first bytes.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from clew.archive.layout import DIGEST, HASH_BYTES, KEY_BYTES, Block, Dictionary, Manifest, open_inside

_MAGIC = b"\0clew\xffpart"
_FIELDS = struct.Struct(f"<{len(_MAGIC)}scQQIIQI{KEY_BYTES}s{DIGEST}s")
_CHECK = 8
HEAD = _FIELDS.size + _CHECK
_BLOCK, _DICTIONARY = b"B", b"D"
_WINDOW = 1 << 20
MAX_CHUNKS = 1 << 30
"""Chunk numbers are below this. Some commands need one byte of memory for each number."""
_MAX_PART_BYTES = 512 << 20
"""More than a block takes of the largest chunks and the longest table."""

Part = Block | Dictionary


def spell_head(part: Part, key: bytes) -> bytes:
    """The head of a part, which stands before its stored bytes."""
    if isinstance(part, Block):
        fields = (_BLOCK, part.size, part.first, part.count, part.live, part.raw, part.dictionary)
    else:
        fields = (_DICTIONARY, part.size, part.number, 0, 0, part.learned, 0)
    head = _FIELDS.pack(_MAGIC, *fields, key, part.digest)
    return head + _check(head)


def _check(head: bytes) -> bytes:
    return hashlib.sha256(head).digest()[:_CHECK]


def read_head(head: bytes, pack: int, offset: int) -> tuple[Part, bytes] | None:
    """What a head tells, and the key of the archive; None where it is none."""
    if len(head) < HEAD or not head.startswith(_MAGIC) or _check(head[: _FIELDS.size]) != head[_FIELDS.size : HEAD]:
        return None
    _, kind, size, first, count, live, raw, dictionary, key, digest = _FIELDS.unpack_from(head)
    if size < HEAD:
        return None
    part: Part = (
        Block(pack, offset, size, first, count, live, raw, dictionary, digest)
        if kind == _BLOCK
        else Dictionary(first, "", pack, offset, size, digest, raw)
    )
    return (part, key) if is_possible(part) else None


def is_possible(part: Part) -> bool:
    """True where the numbers of a part can be right: each chunk of a block has a hash among the stored bytes."""
    if part.pack < 1 or part.offset < 0 or not HEAD <= part.size <= _MAX_PART_BYTES:
        return False
    if isinstance(part, Dictionary):
        return True
    is_in_range = part.first >= 0 and part.raw >= 0 and part.first + part.count <= MAX_CHUNKS
    return is_in_range and 0 < part.live <= part.count and part.count * HASH_BYTES <= part.size - HEAD


def is_possible_manifest(manifest: Manifest) -> bool:
    """True where the numbers of a manifest can be right."""
    parts: list[Part] = [*manifest.blocks, *manifest.dictionaries]
    if not 0 <= manifest.next_chunk <= MAX_CHUNKS or not all(is_possible(part) for part in parts):
        return False
    if any(block.first + block.count > manifest.next_chunk for block in manifest.blocks):
        return False
    for version in manifest.versions:
        runs = list(zip(version.runs[::2], version.runs[1::2], strict=False))
        if len(version.runs) % 2 or not 0 <= version.place < len(manifest.places) or version.size < 0:
            return False
        if any(first < 0 or count < 1 or first + count > manifest.next_chunk for first, count in runs):
            return False
    return True


def is_begun_head(head: bytes) -> bool:
    """True for the first bytes of a head, or of something that begins like one."""
    return head.startswith(_MAGIC[: len(head)])


def scan(path: Path, pack: int, start: int = 0) -> Iterator[tuple[Part, bytes]]:
    """All parts from an offset on whose heads can be read, without a look at what they hold."""
    with open_inside(path) as stream:
        at: int | None = start
        while at is not None:
            stream.seek(at)
            found = read_head(stream.read(HEAD), pack, at)
            if found is None:
                at = _next(stream, at + 1)
                continue
            yield found
            at += found[0].size


def _next(stream: BinaryIO, at: int) -> int | None:
    """Where the next head may begin."""
    stream.seek(at)
    kept = b""
    while piece := stream.read(_WINDOW):
        window = kept + piece
        found = window.find(_MAGIC)
        if found >= 0:
            return at - len(kept) + found
        at += len(piece)
        kept = window[-len(_MAGIC) + 1 :]
    return None
