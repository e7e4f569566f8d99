"""The file contents that a session keeps: each content once, compressed, durable before any record names it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path

from clew.errors import SourceUnreadable
from clew.io.blobs import MAX_BLOB_BYTES, digest_in, digest_of, name_of, pack, read_blob
from clew.io.filesystem import SYSTEM, System, add_file_name, make_folder, open_new, sync_folder, write_all

_FILES_PER_SYNC = 128
"""So many files are written before they are synced: the disk then works on all of them at once."""


class Blobs:
    """The blobs in one folder. The caller of `put` and `remove` holds the lock of the snapshots."""

    def __init__(self, folder: Path, system: System = SYSTEM) -> None:
        self.folder, self._system = folder, system
        self._checked_sizes: dict[str, int] = {}
        """File sizes of blobs that this object wrote or read: these are not read again to check them."""

    def has(self, digest: str) -> bool:
        """Return whether there is a blob with this digest."""
        return (self.folder / name_of(digest)).is_file()

    def get(self, digest: str) -> bytes:
        """Return a content; raises SourceUnreadable if its blob is missing or damaged."""
        return read_blob(self.folder, digest)

    def put(self, contents: Iterable[bytes]) -> list[str]:
        """Keep contents and return their digests; on return all of them are durable."""
        if self.folder.is_symlink():
            raise NotADirectoryError(errno.ENOTDIR, "a link, and not followed", str(self.folder))
        make_folder(self._system, self.folder)
        digests: list[str] = []
        remaining = iter(contents)
        while group := list(islice(remaining, _FILES_PER_SYNC)):
            hashed = [(digest_of(body), body) for body in group]
            new = {digest: body for digest, body in hashed if not self._is_intact(digest)}
            for digest, body in new.items():
                if len(body) > MAX_BLOB_BYTES:
                    raise SourceUnreadable(f"{digest[:12]}: a file of {len(body)} bytes is too large to keep")
            packed = {digest: pack(body) for digest, body in new.items()}
            _write(self._system, self.folder, ((self.folder / name_of(one), body) for one, body in packed.items()))
            self._checked_sizes.update({digest: len(body) for digest, body in packed.items()})
            digests += [digest for digest, _ in hashed]
        return digests

    def _is_intact(self, digest: str) -> bool:
        """Return whether a blob is there and holds its content; a damaged one is written again while it can be."""
        try:
            size = (self.folder / name_of(digest)).stat().st_size
            if self._checked_sizes.get(digest) == size:
                return True
            read_blob(self.folder, digest)
        except (FileNotFoundError, SourceUnreadable):
            return False
        self._checked_sizes[digest] = size
        return True

    def all(self) -> set[str]:
        """Return the digests of all blobs. A linked folder belongs to another session: nothing in it may be removed."""
        if self.folder.is_symlink():
            return set()
        with suppress(FileNotFoundError):
            return {digest for path in self.folder.iterdir() if (digest := digest_in(path.name)) is not None}
        return set()

    def remove(self, digests: Iterable[str]) -> None:
        """Delete blobs that no record names."""
        for digest in digests:
            self._system.unlink(self.folder / name_of(digest))


def _write(system: System, folder: Path, files: Iterable[tuple[Path, bytes]]) -> None:
    """Write files so that each is there complete and durable, or not at all."""
    written: list[tuple[Path, Path]] = []
    descriptors: list[int] = []
    try:
        for path, content in files:
            temporary = path.with_name(f".{path.name[:20]}.{os.urandom(6).hex()}.tmp")
            descriptors.append(open_new(system, temporary))
            written.append((temporary, path))
            write_all(system, descriptors[-1], content)
        for descriptor in descriptors:
            system.sync(descriptor)
        while descriptors:
            system.close(descriptors.pop())
        while written:
            system.replace(*written[-1])
            written.pop()
    except BaseException:
        add_file_name(folder)
        for descriptor in descriptors:
            with suppress(OSError):
                system.close(descriptor)
        for temporary, _ in written:
            with suppress(OSError):
                system.unlink(temporary)
        raise
    sync_folder(system, folder)
