"""The copies of files that a session keeps: each content once, durable before anything names it.

A new version of a file is told by its differences to the last one. Chains are short: where one would grow too long, the
next version is told by its differences to the first of it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from clew.errors import SourceUnreadable
from clew.io.blobs import DEEPEST, LIMIT, digest_in, digest_of, name_of, pack, read_base, read_blob
from clew.io.filesystem import SYSTEM, System, add_file_name, make_folder, open_new, sync_folder, write_all

_SMALL = 512
"""Below this, differences save nothing."""
_LARGE = 32 << 20
"""Above this, they take too long."""
_WORTH = 0.6
"""Differences must be so much smaller than the whole."""
_TOGETHER = 128
"""So many files are written before they are synced, which is then one effort for the disk."""


class Fresh(NamedTuple):
    """Content to keep, and the version of the same file before it."""

    body: bytes
    before: str | None = None


class Blobs:
    """The copies in one folder. Who puts or removes some holds the lock of the snapshots."""

    def __init__(self, folder: Path, system: System = SYSTEM) -> None:
        self.folder, self._system = folder, system
        self._last: tuple[str, bytes] = ("", b"")
        self._sound: dict[str, int] = {}
        """Copies that were written or read here, with the sizes of their files: those need not be read again."""

    def has(self, digest: str) -> bool:
        """True where a copy of this name is there."""
        return (self.folder / name_of(digest)).is_file()

    def get(self, digest: str) -> bytes:
        """The content; raises SourceUnreadable where it is gone or damaged."""
        if self._last[0] == digest:
            return self._last[1]
        return read_blob(self.folder, digest)

    def put(self, contents: Iterable[Fresh]) -> list[str]:
        """Keep contents; on return all of them are durable under their digests."""
        if self.folder.is_symlink():
            raise NotADirectoryError(errno.ENOTDIR, "a link, and not followed", str(self.folder))
        make_folder(self._system, self.folder)
        digests: list[str] = []
        waiting = iter(contents)
        while group := list(islice(waiting, _TOGETHER)):
            digests += self._put(group)
        return digests

    def _put(self, group: Sequence[Fresh]) -> list[str]:
        digests = [digest_of(fresh.body) for fresh in group]
        new: dict[str, Fresh] = {}
        for digest, fresh in zip(digests, group, strict=True):
            size = self._size(digest)
            if size is None:
                new[digest] = fresh
            elif not self._is_sound(digest, size):
                # Whole: what it could be told by may itself be told by this one.
                new[digest] = Fresh(fresh.body)
        for digest, fresh in new.items():
            if len(fresh.body) > LIMIT:
                raise SourceUnreadable(f"{digest[:12]}: a file of {len(fresh.body)} bytes is too large to keep")
        packed = {digest: self._packed(fresh) for digest, fresh in new.items()}
        _write(self._system, self.folder, ((self.folder / name_of(digest), body) for digest, body in packed.items()))
        self._sound.update({digest: len(body) for digest, body in packed.items()})
        if new:
            self._last = (digests[-1], group[-1].body)
        return digests

    def _size(self, digest: str) -> int | None:
        try:
            return (self.folder / name_of(digest)).stat().st_size
        except FileNotFoundError:
            return None

    def _is_sound(self, digest: str, size: int) -> bool:
        """True where a copy that is there holds what it should. While its content is at hand, it can be mended."""
        if self._sound.get(digest) == size:
            return True
        try:
            read_blob(self.folder, digest)
        except SourceUnreadable:
            return False
        self._sound[digest] = size
        return True

    def _packed(self, fresh: Fresh) -> bytes:
        whole = pack(fresh.body)
        base = self._base(fresh)
        if base is None:
            return whole
        told = pack(fresh.body, base)
        return told if len(told) < len(whole) * _WORTH else whole

    def _base(self, fresh: Fresh) -> bytes | None:
        """The content that differences are told to; None where the whole is better."""
        if fresh.before is None or not _SMALL <= len(fresh.body) <= _LARGE:
            return None
        try:
            chain = list(self.chain(fresh.before))
            # All of them must be there, and the whole one at the end can always stand for the last.
            body = self.get(fresh.before if len(chain) < DEEPEST else chain[-1])
        except SourceUnreadable:
            return None
        return body if len(body) <= _LARGE else None

    def chain(self, digest: str) -> Iterator[str]:
        """The copy itself, and those that are needed to read it."""
        at: str | None = digest
        for _ in range(2 * DEEPEST):
            if at is None:
                return
            yield at
            at = read_base(self.folder, at)

    def all(self) -> set[str]:
        """The digests of all copies. In a linked folder they are another session's, and not for this one to remove."""
        if self.folder.is_symlink():
            return set()
        with suppress(FileNotFoundError):
            return {digest for path in self.folder.iterdir() if (digest := digest_in(path.name)) is not None}
        return set()

    def needed(self, named: Iterable[str]) -> set[str]:
        """Those that are named, and those without which they cannot be read."""
        needed: set[str] = set()
        for digest in named:
            with suppress(SourceUnreadable):
                needed.update(self.chain(digest))
        return needed

    def free(self, gone: set[str]) -> None:
        """Have nothing depend on these: what is told by its differences to one of them is written whole."""
        for digest in sorted(self.all() - gone):
            with suppress(SourceUnreadable):
                if read_base(self.folder, digest) in gone:
                    whole = pack(self.get(digest))
                    _write(self._system, self.folder, [(self.folder / name_of(digest), whole)])

    def remove(self, digests: Iterable[str]) -> None:
        """Remove copies that nothing needs."""
        for digest in digests:
            self._system.unlink(self.folder / name_of(digest))


def _write(system: System, folder: Path, files: Iterable[tuple[Path, bytes]]) -> None:
    """Write files so that each is there whole and durable, or not at all."""
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
