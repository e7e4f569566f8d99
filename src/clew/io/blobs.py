"""Copies of files by the digest of their content: how one is packed, and how it is read again.

A copy is a zstd file. Where it is told by its differences to another copy, a skippable frame in front of it names that
one, and the rest was packed with its content as dictionary.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path

from clew.errors import LimitExceeded, SourceUnreadable

SUFFIX = ".zst"
LIMIT = 64 << 20
"""A larger file is not kept."""
DEEPEST = 16
"""So many copies may be needed to read one."""

_NAME = re.compile(r"([0-9a-f]{64})" + re.escape(SUFFIX))
_SKIPPABLE = b"\x5c\x2a\x4d\x18" + (32).to_bytes(4, "little")
HEADER = len(_SKIPPABLE) + 32
_LEVEL = 3


def digest_of(body: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(body).hexdigest()


def name_of(digest: str) -> str:
    """The file name of a copy."""
    return digest + SUFFIX


def digest_in(name: str) -> str | None:
    """The digest that a file name says; None where it is no copy of ours."""
    found = _NAME.fullmatch(name)
    return found[1] if found else None


def pack(body: bytes, base: bytes | None = None) -> bytes:
    """A copy; with a base it is told by its differences to that."""
    import zstandard

    if base is None:
        return zstandard.ZstdCompressor(level=_LEVEL).compress(body)
    # The window must reach from the end of the body to the beginning of the base.
    window = max(10, (len(base) + len(body)).bit_length())
    parameters = zstandard.ZstdCompressionParameters.from_level(_LEVEL, window_log=window)
    known = zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    packed = zstandard.ZstdCompressor(dict_data=known, compression_params=parameters).compress(body)
    return _SKIPPABLE + hashlib.sha256(base).digest() + packed


def base_of(head: bytes) -> str | None:
    """The digest of the copy that is needed to read this one, from its first bytes."""
    return head[len(_SKIPPABLE) : HEADER].hex() if head.startswith(_SKIPPABLE) else None


def read_base(folder: Path, digest: str) -> str | None:
    """The digest of the copy that is needed to read this one; raises SourceUnreadable where it cannot be read."""
    return base_of(_read(folder / name_of(digest), HEADER))


def read_blob(folder: Path, digest: str, deepest: int = DEEPEST) -> bytes:
    """The content of this digest; raises SourceUnreadable with the reason where it is gone or damaged."""
    raw = _read(folder / name_of(digest))
    base = base_of(raw)
    if base is not None and deepest <= 0:
        raise LimitExceeded(f"the copy {digest[:12]} needs too many others")
    known = read_blob(folder, base, deepest - 1) if base is not None else None
    body = _unpacked(raw, known, digest)
    if digest_of(body) != digest:
        raise SourceUnreadable(f"the copy {digest[:12]} is damaged: its content has another digest")
    return body


def _unpacked(raw: bytes, base: bytes | None, digest: str) -> bytes:
    import zstandard

    packed = raw if base is None else raw[HEADER:]
    known = zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT) if base is not None else None
    try:
        if not 0 <= zstandard.frame_content_size(packed) <= LIMIT:
            raise LimitExceeded(f"the copy {digest[:12]} says that it is larger than {LIMIT} bytes")
        return zstandard.ZstdDecompressor(dict_data=known).decompress(packed)
    except zstandard.ZstdError as error:
        raise SourceUnreadable(f"the copy {digest[:12]} is damaged: {error}") from None


def _read(path: Path, size: int = -1) -> bytes:
    """A regular file or its first bytes, links not followed."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(path, flags), "rb") as handle:
            found = os.fstat(handle.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > 2 * LIMIT:
                raise SourceUnreadable(f"the copy {path.name[:12]} is no file of ours")
            return handle.read(size)
    except FileNotFoundError:
        raise SourceUnreadable(f"the copy {path.name[:12]} is gone") from None
    except OSError as error:
        raise SourceUnreadable(f"the copy {path.name[:12]}: {error.strerror or error}") from error
