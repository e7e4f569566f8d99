"""Compressed files, in and out, with limits that a bomb cannot pass."""

from __future__ import annotations

import io
import os
import re
import stat
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, BinaryIO, cast

from clew.errors import LimitExceeded, SourceUnreadable
from clew.io.paths import escape_controls

MAX_RATIO = 200
"""An archive may unpack to this many times its size ..."""
FREE_BYTES = 64 << 20
"""... once it has given this much."""
MAX_UNPACKED = 4 << 30
"""Largest unpacked size."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
SUFFIXES = {".gz": "gzip", ".zst": "zstd"}
_BUFFER = 1 << 18
_SPOOL_BYTES = 8 << 20
_SMALL = 4 << 20
"""A file up to this size can be read at once."""
_STEP = 16 << 10
"""So much is unpacked at once; where the archive is damaged, at most this is lost."""


def plain_name(name: str) -> str:
    """A file name without compression suffixes."""
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def open_source(path: Path, limit: int | None = None, *, is_read_whole: bool = False) -> BinaryIO:
    """Open a regular file for reading, unpacking it where it is compressed; else it ends at `limit`.

    A small one is read at once where all of it is wanted.
    """
    try:
        raw, size = open_regular(path)
        if is_read_whole and size <= _SMALL:
            text = raw.read(-1 if limit is None else limit)
            magic = text[:4]
        else:
            text = None
            magic = raw.read(4) or b""
        is_packed = magic.startswith(_GZIP) or magic == _ZSTD
        if text is not None and not is_packed:
            raw.close()
            return io.BytesIO(text)
        raw.seek(0)
    except OSError as error:
        raise SourceUnreadable(f"{escape_controls(str(path))}: {error.strerror or error}") from error
    if limit is not None and not is_packed:
        return cast(BinaryIO, io.BufferedReader(_Head(raw, limit), _BUFFER))
    handle = cast(BinaryIO, io.BufferedReader(raw, _BUFFER))
    if magic.startswith(_GZIP):
        from gzip import GzipFile

        return _guard(cast(BinaryIO, GzipFile(fileobj=handle)), handle, path)
    if magic == _ZSTD:
        return _guard(_zstd_reader(handle), handle, path, _is_cut_zstd)
    return handle


class _Head(io.RawIOBase):
    """The beginning of a file that may be growing."""

    def __init__(self, raw: io.FileIO, limit: int) -> None:
        self._raw, self._left = raw, limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        with memoryview(buffer) as view:
            size = self._raw.readinto(view[: self._left]) or 0
        self._left -= size
        return size

    def close(self) -> None:
        self._raw.close()
        super().close()


def open_regular(path: Path) -> tuple[io.FileIO, int]:
    """The file and its size; raises SourceUnreadable where it is not a regular file."""
    # O_NONBLOCK keeps a FIFO named like a session from hanging us.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise SourceUnreadable(f"{escape_controls(str(path))}: not a regular file")
    return io.FileIO(descriptor, "rb"), status.st_size


def _zstd_reader(handle: BinaryIO) -> BinaryIO:
    import zstandard

    return cast(BinaryIO, zstandard.ZstdDecompressor().stream_reader(handle, read_across_frames=True))


def _is_cut_zstd(handle: BinaryIO) -> bool:
    """True where the last frame is not complete: the reader ends there without a word."""
    import zstandard

    at, size = 0, os.fstat(handle.fileno()).st_size
    while at < size:
        head = _read_at(handle, at, 18)
        if _SKIPPABLE.match(head):
            at += 8 + int.from_bytes(head[4:8], "little")
            continue
        try:
            has_checksum = zstandard.get_frame_parameters(head).has_checksum
            at += zstandard.frame_header_size(head)
        except zstandard.ZstdError:
            return True
        last = False
        while not last:
            block = _read_at(handle, at, 3)
            if len(block) < 3:
                return True
            number = int.from_bytes(block, "little")
            last = bool(number & 1)
            is_run = number >> 1 & 3 == 1
            at += 3 + (1 if is_run else number >> 3)
        at += 4 if has_checksum else 0
    return at > size


def _read_at(handle: BinaryIO, at: int, size: int) -> bytes:
    handle.seek(at)
    return handle.read(size)


def _guard(
    stream: BinaryIO, handle: BinaryIO, path: Path, is_cut: Callable[[BinaryIO], bool] = lambda _: False
) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(Guarded(stream, handle, path, is_cut), _BUFFER))


class Guarded(io.RawIOBase):
    """A decompressing stream that stops at the limits and ends early, not loudly, where the archive is damaged."""

    def __init__(
        self, stream: BinaryIO, handle: BinaryIO, path: Path, is_cut: Callable[[BinaryIO], bool] = lambda _: False
    ) -> None:
        self._stream, self._handle, self._path, self._is_cut = cast(io.BufferedReader, stream), handle, path, is_cut
        packed = os.fstat(handle.fileno()).st_size
        self._limit = min(MAX_UNPACKED, max(FREE_BYTES, packed * MAX_RATIO))
        self._given = 0
        self._waiting = b""
        self.damage: str | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        # The step size is fixed, so that a damaged archive always yields the same bytes.
        self._waiting = self._waiting or self._step()
        piece = self._waiting[: len(buffer)]
        self._waiting = self._waiting[len(buffer) :]
        self._given += len(piece)
        if self._given > self._limit:
            raise LimitExceeded(f"{self._path}: unpacks to more than {self._limit} bytes")
        buffer[: len(piece)] = piece
        return len(piece)

    def _step(self) -> bytes:
        if self.damage:
            return b""
        try:
            piece = self._stream.read1(_STEP)
            if not piece and self._is_cut(self._handle):
                self.damage = "the archive ends inside a frame"
            return piece
        except (EOFError, OSError, zlib.error) as error:
            self.damage = str(error)
        except Exception as error:
            if type(error).__module__.partition(".")[0] != "zstandard":
                raise
            self.damage = str(error)
        return b""

    def close(self) -> None:
        self._handle.close()
        super().close()


def damage(stream: BinaryIO) -> str | None:
    """What was wrong with the archive behind a stream of open_source, once it was read to the end."""
    return getattr(getattr(stream, "raw", None), "damage", None)


def packer(compression: str | None) -> Callable[[IO[bytes]], IO[bytes]]:
    """A wrapper that compresses what is written: None, "gzip" or "zstd"."""
    if compression == "gzip":
        # mtime 0: the same session gives the same bytes.
        from gzip import GzipFile

        return lambda raw: cast(IO[bytes], GzipFile(fileobj=raw, mode="wb", compresslevel=6, mtime=0))
    if compression == "zstd":
        import zstandard

        return lambda raw: cast(IO[bytes], zstandard.ZstdCompressor(level=6).stream_writer(raw, closefd=False))
    return lambda raw: raw


def seekable(stream: IO[bytes]) -> IO[bytes]:
    """The stream, or where it cannot go back a copy of it: in memory while it is small, then in a temporary file."""
    if stream.seekable():
        return stream
    import shutil
    from tempfile import SpooledTemporaryFile

    copy = SpooledTemporaryFile(_SPOOL_BYTES)  # noqa: SIM115 - the caller closes it
    with stream:
        shutil.copyfileobj(stream, copy)
    copy.seek(0)
    return copy
