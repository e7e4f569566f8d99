"""Archives (tar, also packed with gzip or zstd, and zip) unpacked into a new folder: all of it or nothing.

The content of an archive is not trusted. Names must be plain on every system, only files and folders are taken, and
there are limits to their number and size. Modes and times are not taken over: what is unpacked is the owner's alone.
"""

from __future__ import annotations

import errno
import lzma
import os
import secrets
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple, cast

from clew.datadir import private_folder
from clew.errors import LimitExceeded, PathRefused, SourceUnreadable, WouldLose
from clew.io.compress import FREE_BYTES, MAX_RATIO, MAX_UNPACKED, open_source
from clew.io.safe_write import parts_of, refuse_twins

MAX_ENTRIES = 100_000
"""So many files and folders may be in an archive."""

_MAX_LIST = 16 << 20
"""A zip file's list of what is in it may be so long."""
_MAX_HEADER = 1 << 20
"""So much may stand before a file in a tar archive."""
_FOLDER, _FILE = 0o700, 0o600
_TAIL = 22 + 65535
_END_OF_ZIP = b"PK\x05\x06"
_BLOCK = 1 << 20
_DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    NotImplementedError,
    EOFError,
    ValueError,
    struct.error,
)
"""What reading an archive raises where it is not as it was written."""


class Entry(NamedTuple):
    """One file of an archive; a folder has no content."""

    name: str
    content: IO[bytes] | None


def is_archive(path: Path) -> bool:
    """True for a tar archive, packed or not, and for a zip file."""
    head = _head(path)
    return head[257:262] == b"ustar" or _is_zip(head)


def _head(path: Path) -> bytes:
    with open_source(path) as stream:
        return stream.read(512)


def _is_zip(head: bytes) -> bool:
    return head.startswith((b"PK\x03\x04", _END_OF_ZIP))


def unpack(path: Path, target: Path) -> list[Path]:
    """Unpack an archive into a folder that is not there yet, or is empty; returns the files."""
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise WouldLose(f"{target}: already exists; an archive is unpacked into a new folder")
    private_folder(str(target.parent))
    made = target.parent / f".{target.name[:100]}.{secrets.token_hex(6)}.tmp"
    made.mkdir(_FOLDER)
    try:
        entries = _in_zip if _is_zip(_head(path)) else _in_tar
        names = _unpack(entries(path), made)
        made.replace(target)
    except _DAMAGED as error:
        raise SourceUnreadable(f"{path}: is damaged: {error}") from error
    except OSError as error:
        # A packing says so without a number; a number is the system's own, which speaks of seeking before the start.
        if error.errno not in (None, errno.EINVAL):
            raise
        raise SourceUnreadable(f"{path}: is damaged: {error}") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return [target / name for name in names]


def _unpack(entries: Iterable[Entry], folder: Path) -> list[str]:
    """Write all entries below a folder that no other process writes to; returns the names of the files."""
    names: list[str] = []
    files: list[str] = []
    total = 0
    for entry in entries:
        parts = parts_of(entry.name)
        names.append(entry.name)
        if len(names) > MAX_ENTRIES:
            raise LimitExceeded(f"the archive holds more than {MAX_ENTRIES} files and folders")
        _make(folder, parts if entry.content is None else parts[:-1], entry.name)
        if entry.content is not None:
            files.append(entry.name)
            total += _write(folder / entry.name, entry.content, MAX_UNPACKED - total)
    refuse_twins(names)
    return files


def _make(folder: Path, parts: Iterable[str], name: str) -> None:
    for part in parts:
        folder /= part
        if not folder.is_dir():
            try:
                folder.mkdir(_FOLDER)
            except FileExistsError:
                raise PathRefused(f"{name!r} is below a file of the same archive") from None


def _write(path: Path, content: IO[bytes], left: int) -> int:
    """Write a new file; returns its size."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags, _FILE)
    except FileExistsError:
        raise PathRefused(f"{path.name!r} is in the archive twice") from None
    size = 0
    with open(descriptor, "wb") as handle:
        while block := content.read(_BLOCK):
            size += len(block)
            if size > left:
                raise LimitExceeded(f"the archive holds more than {MAX_UNPACKED} bytes")
            handle.write(block)
    return size


class _Budget:
    """A stream of which only so much may be read before more is allowed: a header cannot fill the memory."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self.left = stream, _MAX_HEADER

    def read(self, size: int) -> bytes:
        """The next bytes."""
        self.left -= size
        if self.left < 0:
            raise LimitExceeded(f"the archive has a header of more than {_MAX_HEADER} bytes")
        return self._stream.read(size)


def _opened(stream: _Budget) -> tarfile.TarFile:
    return tarfile.open(fileobj=cast(IO[bytes], stream), mode="r|")


def _in_tar(path: Path) -> Iterator[Entry]:
    with open_source(path) as stream, _opened(budget := _Budget(stream)) as archive:
        while (member := archive.next()) is not None:
            # tarfile keeps every member for lookups by name, which are not needed here.
            archive.members.clear()  # type: ignore[attr-defined]
            name = member.name.removeprefix("./")
            if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE):
                raise PathRefused(f"{name!r} is neither a file nor a folder")
            if member.isdir():
                if name != ".":
                    yield Entry(name, None)
            else:
                budget.left = member.size + _MAX_HEADER
                yield Entry(name, archive.extractfile(member))
            budget.left = _MAX_HEADER


def _in_zip(path: Path) -> Iterator[Entry]:
    _check_list(path)
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        total, size = sum(member.file_size for member in members), path.stat().st_size
        if total > MAX_UNPACKED or (total > FREE_BYTES and total > MAX_RATIO * size):
            raise LimitExceeded(f"{path}: would unpack to {total} bytes")
        for member in members:
            if "\0" in member.orig_filename or not member.filename:
                raise PathRefused(f"{member.orig_filename!r} cannot be a file name")
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR) or (kind == stat.S_IFDIR) > member.is_dir():
                raise PathRefused(f"{member.filename!r} is neither a file nor a folder")
            if member.flag_bits & 1:
                raise SourceUnreadable(f"{path}: {member.filename!r} is encrypted")
            if member.is_dir():
                yield Entry(member.filename.removesuffix("/"), None)
            else:
                with archive.open(member) as content:
                    yield Entry(member.filename, content)


def _check_list(path: Path) -> None:
    """The list of a zip file is read at once, so its length is looked at before."""
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - _TAIL))
        _, found, end = stream.read().rpartition(_END_OF_ZIP)
    if not found or len(end) < 18:
        raise SourceUnreadable(f"{path}: is damaged: the table of contents is missing")
    count, size = int.from_bytes(end[6:8], "little"), int.from_bytes(end[8:12], "little")
    if count > MAX_ENTRIES or count == 0xFFFF or size > _MAX_LIST:
        raise LimitExceeded(f"{path}: holds more than {MAX_ENTRIES} files and folders, or cannot tell how many")
