"""The heads in packs: each block and each dictionary tells itself what it is, so that no manifest is needed to find it.

A head has a digest of its own. Where one is damaged, the next is looked for by its first bytes.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from clew.archive.layout import DIGEST, KEY_BYTES, Block, Dictionary, open_inside

_MAGIC = b"\0clew\xffpart"
_FIELDS = struct.Struct(f"<{len(_MAGIC)}scQQIIQI{KEY_BYTES}s{DIGEST}s")
_CHECK = 8
HEAD = _FIELDS.size + _CHECK
_BLOCK, _DICTIONARY = b"B", b"D"
_WINDOW = 1 << 20

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
    if kind == _BLOCK:
        return Block(pack, offset, size, first, count, live, raw, dictionary, digest), key
    return Dictionary(first, "", pack, offset, size, digest, raw), key


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
