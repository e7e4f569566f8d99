"""Reading an archive: the versions of files that it holds, and their content."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from clew.archive.index import ChunkPlace, Index
from clew.archive.packs import open_pack, read_chunks
from clew.archive.records import INDEX, LOCK, Capture, Damage, Version, check_folder, pack_names, pack_path
from clew.errors import Busy, SourceUnreadable
from clew.io.filesystem import SHARED, SYSTEM, open_regular

_MAX_CACHED_BLOCKS = 6
_MAX_OPEN_PACKS = 16


class Archive:
    """An archive that is open for reading. A prune in another process may move chunks meanwhile."""

    def __init__(self, folder: Path, index: Index) -> None:
        self.folder, self.index = folder, index
        self.files = index.files()
        """The versions of each file, the newest last."""
        self.problems: list[Damage] = []
        """What was wrong with the index."""
        self._blocks: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._open_packs: dict[str, BinaryIO] = {}
        self._failed: dict[tuple[str, int], str] = {}

    def close(self) -> None:
        """Close the packs and the index."""
        for pack in self._open_packs.values():
            pack.close()
        self._open_packs.clear()
        self.index.close()

    def newest(self) -> Iterator[Version]:
        """Yield the newest version of each file."""
        return (versions[-1] for versions in self.files.values())

    def versions(self) -> Iterator[Version]:
        """Yield every version of every file."""
        return (version for versions in self.files.values() for version in versions)

    @property
    def captures(self) -> list[Capture]:
        """The history, oldest first."""
        return [capture for _, capture in self.index.captures()]

    @property
    def stored(self) -> int:
        """The size of all packs in bytes."""
        return self.index.stored

    def pieces(self, version: Version) -> Iterator[bytes]:
        """Yield the content of a version piece by piece; raises SourceUnreadable at the end where it is wrong."""
        digest, left = hashlib.sha256(), version.size
        for chunk in version.chunk_ids():
            if not left:
                break
            piece = self.chunk(chunk)[:left]
            left -= len(piece)
            digest.update(piece)
            yield piece
        if digest.digest() != version.digest:
            raise SourceUnreadable("the checksum of the content has changed since it was archived")

    def content(self, version: Version) -> bytes:
        """Return the content of a version; raises SourceUnreadable where a part of it is damaged."""
        return b"".join(self.pieces(version))

    def chunk(self, chunk: bytes) -> bytes:
        """Return a chunk from the first place where it can be read."""
        reason = "a part of the content is missing from the archive"
        for _ in range(2):
            # Twice: a prune may move the chunk between the query and the read.
            for place in self.index.places(chunk):
                try:
                    return self._block(place)[place.start : place.start + place.size]
                except FileNotFoundError:
                    reason = f"{pack_path(self.folder, place.pack)}: the pack is missing"
                except SourceUnreadable as error:
                    reason = f"{pack_path(self.folder, place.pack)} at byte {place.offset}: {error}"
        raise SourceUnreadable(reason)

    def _block(self, place: ChunkPlace) -> bytes:
        """Return the uncompressed block of a chunk. Some blocks stay in memory; a damaged one is read once."""
        key = place.pack, place.offset
        if key in self._failed:
            raise SourceUnreadable(self._failed[key])
        if key not in self._blocks:
            try:
                self._blocks[key] = read_chunks(self._open(place.pack), place.pack, place.offset)
            except SourceUnreadable as error:
                self._failed[key] = str(error)
                raise
            if len(self._blocks) > _MAX_CACHED_BLOCKS:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(key)
        return self._blocks[key]

    def _open(self, name: str) -> BinaryIO:
        if name not in self._open_packs:
            if len(self._open_packs) >= _MAX_OPEN_PACKS:
                self._open_packs.pop(next(iter(self._open_packs))).close()
            self._open_packs[name] = open_pack(self.folder, name)
        return self._open_packs[name]


@contextmanager
def open_archive(folder: Path) -> Iterator[Archive]:
    """Open an archive for reading; raises SourceUnreadable where there is none.

    Nothing is written. Without a usable index all packs are read instead, and packs that the index does not know yet
    are read in addition.
    """
    check_folder(folder)
    with _writers_kept_out(folder) as is_quiet:
        index = Index.open_to_read(folder, check=is_quiet)
        is_rebuilt = index is None
        if index is None:
            index = Index.in_memory()
        try:
            if not is_rebuilt and is_quiet and index.changed_packs(folder):
                stored, index = index, index.copy()
                stored.close()
            if is_rebuilt or is_quiet:
                index.sync(folder)
            if not index.packs():
                raise _no_archive(folder, is_quiet)
            archive = Archive(folder, index)
        except BaseException:
            index.close()
            raise
    if is_rebuilt:
        what = "the index is missing or damaged; all packs were read instead; the next `clew archive` writes it again"
        archive.problems.append(Damage(str(folder / INDEX), 0, what, harmless=True))
    try:
        yield archive
    finally:
        archive.close()


def _no_archive(folder: Path, is_quiet: bool) -> Exception:
    if not is_quiet and not pack_names(folder):
        return Busy(f"{folder}: there is no archive yet: the first capture is still running")
    return SourceUnreadable(f"{folder}: there is no archive; `clew archive` creates one")


@contextmanager
def _writers_kept_out(folder: Path) -> Iterator[bool]:
    """Keep other processes from writing meanwhile; yields False where one writes, or where that cannot be known."""
    try:
        descriptor = open_regular(SYSTEM, folder / LOCK, os.O_RDONLY)
    except OSError as error:
        yield isinstance(error, FileNotFoundError)
        return
    try:
        try:
            SYSTEM.lock(descriptor, SHARED)
            is_quiet = True
        except OSError as error:
            # Without locks in the file system no process can write.
            is_quiet = not isinstance(error, BlockingIOError)
        yield is_quiet
    finally:
        os.close(descriptor)
