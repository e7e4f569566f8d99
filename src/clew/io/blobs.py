"""The format of kept file contents: one zstd file per content, named by the SHA-256 of the content."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path

from clew.errors import LimitExceeded, SourceUnreadable

SUFFIX = ".zst"
MAX_BLOB_BYTES = 64 << 20
"""Larger files are not kept."""

_NAME = re.compile(r"([0-9a-f]{64})" + re.escape(SUFFIX))
_LEVEL = 3


def digest_of(body: bytes) -> str:
    """Return the SHA-256 in hex."""
    return hashlib.sha256(body).hexdigest()


def name_of(digest: str) -> str:
    """Return the file name of the blob with this digest."""
    return digest + SUFFIX


def digest_in(name: str) -> str | None:
    """Return the digest in a blob's file name; None if the file is not a blob."""
    found = _NAME.fullmatch(name)
    return found[1] if found else None


def pack(body: bytes) -> bytes:
    """Compress a content as it is stored."""
    import zstandard

    return zstandard.ZstdCompressor(level=_LEVEL).compress(body)


def read_blob(folder: Path, digest: str) -> bytes:
    """Return the content with this digest; raises SourceUnreadable with the reason if it is missing or damaged."""
    import zstandard

    packed = _read(folder / name_of(digest))
    try:
        if not 0 <= zstandard.frame_content_size(packed) <= MAX_BLOB_BYTES:
            raise LimitExceeded(f"the copy {digest[:12]} is larger than {MAX_BLOB_BYTES} bytes")
        body = zstandard.ZstdDecompressor().decompress(packed)
    except zstandard.ZstdError as error:
        raise SourceUnreadable(f"the copy {digest[:12]} is damaged: {error}") from None
    if digest_of(body) != digest:
        raise SourceUnreadable(f"the copy {digest[:12]} is damaged: its checksum differs")
    return body


def _read(path: Path) -> bytes:
    """Read a regular file; links are not followed, and a pipe does not block."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(path, flags), "rb") as handle:
            found = os.fstat(handle.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > 2 * MAX_BLOB_BYTES:
                raise SourceUnreadable(f"the copy {path.name[:12]} is not a regular file, or is too large")
            return handle.read()
    except FileNotFoundError:
        raise SourceUnreadable(f"the copy {path.name[:12]} is missing") from None
    except OSError as error:
        raise SourceUnreadable(f"the copy {path.name[:12]}: {error.strerror or error}") from error
