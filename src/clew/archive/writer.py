"""Writing to an archive: chunks go into blocks, blocks into packs, and the index follows.

A pack is written under a temporary name, made durable, and renamed; then one transaction brings the index up to date
with it. A process that dies before the rename leaves a temporary file, which the next writer removes. One that dies
after it leaves a complete pack, which the next writer adds to the index. A pack is removed only after the pack that
replaces it is durable and in the index.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import zstandard

from clew.archive.archive import Archive
from clew.archive.index import Index
from clew.archive.packs import CHUNKS, PackWriter, chunk_id, encode_table, read_pack
from clew.archive.records import (
    CHECKSUM,
    INDEX,
    LOCK,
    PACKS,
    Capture,
    PackRecords,
    Version,
    add_version,
    check_folder,
    pack_names,
    pack_path,
)
from clew.io.file_lock import locked
from clew.io.filesystem import SYSTEM, System, make_folder, open_log

LEVEL = 6
BLOCK_BYTES = 4 << 20
"""Uncompressed. Larger blocks compress little better, and one damaged bit costs a whole block."""
PACK_BYTES = 64 << 20
"""Compressed. A pack of this size is finished; a kill costs at most the work on one pack."""
WAIT_SECONDS = 2.0
_TEMPORARY = re.compile(
    rf"\.(?:[0-9]{{8,12}}-[0-9a-f]{{16}}\.tmp|(?:{re.escape(INDEX)}|{re.escape(CHECKSUM)})\.[0-9a-f]{{12}}\.tmp)"
)


class ArchiveWriter(Archive):
    """An archive that is open for writing; it holds the lock."""

    def __init__(self, folder: Path, index: Index, system: System, level: int) -> None:
        super().__init__(folder, index)
        self.system, self._level = system, level
        self._workers = min(4, os.cpu_count() or 1)
        self._pool = ThreadPoolExecutor(self._workers)
        self._compressing: deque[tuple[bytes, int, Future[bytes]]] = deque()
        """Blocks that are being compressed, in the order in which they are written: table, raw size, data."""
        self._chunks: list[bytes] = []
        self._ids: list[bytes] = []
        self._chunk_bytes = 0
        self._added: set[bytes] = set()
        """Chunks that are not in the index yet."""
        self._versions: list[Version] = []
        self._pack: PackWriter | None = None
        self._number = 0
        self._finished: list[str] = []
        """Packs that have their name and are not in the index yet."""

    def close(self) -> None:
        """Stop; what was not committed is discarded."""
        self._pool.shutdown(cancel_futures=True)
        if self._pack is not None:
            with suppress(OSError):
                self._pack.discard()
        super().close()

    @property
    def pack_number(self) -> int:
        """The number of the pack that is written now, or that comes next. Numbers only increase."""
        if not self._number:
            names = [*self.index.packs(), *self.index.replaced(), *pack_names(self.folder)]
            self._number = max((int(name.partition("-")[0]) for name in names), default=0) + 1
        return self._number

    @property
    def pack_is_full(self) -> bool:
        """True where it is time to commit."""
        return self._pack is not None and self._pack.size >= PACK_BYTES

    def add(self, chunks: Sequence[bytes]) -> bytes:
        """Store the chunks that the archive does not hold yet; returns the ids of all of them."""
        ids = [chunk_id(chunk) for chunk in chunks]
        for identity, chunk in zip(ids, chunks, strict=True):
            if identity not in self._added and not self.index.has_chunk(identity):
                self.store(identity, chunk)
        return b"".join(ids)

    def store(self, identity: bytes, chunk: bytes) -> None:
        """Store a chunk, whether the index knows it or not."""
        self._added.add(identity)
        self._ids.append(identity)
        self._chunks.append(chunk)
        self._chunk_bytes += len(chunk)
        if self._chunk_bytes >= BLOCK_BYTES:
            self._compress_block()

    def is_stored(self, identity: bytes) -> bool:
        """Return True for a chunk that was stored since the last commit."""
        return identity in self._added

    def keep(self, version: Version) -> None:
        """Record a version whose chunks were added; it counts with the next commit."""
        self._versions.append(version)

    def commit(self, taken_us: int, raw: int) -> None:
        """Finish the pack and add it to the index. Does nothing where nothing was added."""
        if not (self._versions or self._added):
            return
        self._write_blocks(0)
        pack = self._open_pack()
        capture = Capture(self.pack_number, taken_us, len(self._versions), raw, pack.size)
        self._finish(PackRecords(versions=tuple(self._versions), captures=(capture,)))

    def commit_rewritten(
        self, versions: Sequence[Version], captures: Sequence[Capture], packs: Collection[str]
    ) -> None:
        """Finish the packs that take the place of others, switch the index to them, and remove the others."""
        self._write_blocks(0)
        needs = tuple(self._finished)
        records = PackRecords(
            versions=tuple(versions), captures=tuple(captures), replaces=tuple(sorted(packs)), needs=needs
        )
        self._finish(records)
        self.files = self.index.files()
        remove_replaced(self.folder, self.index, self.system)

    def next_pack(self) -> None:
        """Finish the pack without adding it to the index; `commit_rewritten` does that for all of them at once."""
        self._write_blocks(0)
        if self._pack is not None:
            self._finish_pack(self._pack)

    def _finish(self, records: PackRecords) -> None:
        pack = self._open_pack()
        pack.write_records(records)
        self._finish_pack(pack)
        with self.index.transaction():
            for name in self._finished:
                # The pack is read back from the disk, by the code that rebuilds the index.
                content = read_pack(self.folder, name)
                self.index.put_pack(name, pack_path(self.folder, name).stat(), content)
        for version in self._versions:
            add_version(self.files, version)
        self._versions, self._finished = [], []
        self._added.clear()

    def _finish_pack(self, pack: PackWriter) -> None:
        self._finished.append(pack.finish())
        self._pack, self._number = None, 0

    def _open_pack(self) -> PackWriter:
        if self._pack is None:
            self._pack = PackWriter(self.system, self.folder, self.pack_number)
        return self._pack

    def _compress_block(self) -> None:
        """Start to compress the chunks that wait, and write the blocks that are done."""
        if self._chunks:
            table, raw = encode_table(self._chunks, self._ids), b"".join(self._chunks)
            self._compressing.append((table, len(raw), self._pool.submit(self._compress, raw)))
            self._chunks, self._ids, self._chunk_bytes = [], [], 0
        self._write_compressed(self._workers + 1)

    def _compress(self, raw: bytes) -> bytes:
        # zstandard releases the GIL while it works, so threads use all cores.
        return zstandard.ZstdCompressor(level=self._level).compress(raw)

    def _write_blocks(self, waiting: int) -> None:
        self._compress_block()
        self._write_compressed(waiting)

    def _write_compressed(self, waiting: int) -> None:
        """Write blocks in their order until at most `waiting` are still being compressed."""
        while len(self._compressing) > waiting:
            table, size, future = self._compressing.popleft()
            self._open_pack().write_block(CHUNKS, table, future.result(), size)


@contextmanager
def open_writer(
    folder: Path,
    system: System = SYSTEM,
    level: int = LEVEL,
    wait: float = WAIT_SECONDS,
    recheck: Collection[str] = (),
) -> Iterator[ArchiveWriter]:
    """Open an archive for writing, or create it; raises Busy where another process writes.

    What a killed process left is put in order, the index is rebuilt if needed, and packs that changed since they were
    written, or that `recheck` names, are read again.
    """
    check_folder(folder)
    for inner in (folder, folder / PACKS):
        make_folder(system, inner)
    lock = folder / LOCK
    system.close(open_log(system, lock))
    with locked(system, lock, wait):
        for path in (*folder.iterdir(), *(folder / PACKS).iterdir()):
            if _TEMPORARY.fullmatch(path.name):
                system.unlink(path)
        index = Index.open_to_write(folder, system)
        try:
            index.sync(folder, recheck)
            remove_replaced(folder, index, system)
            writer = ArchiveWriter(folder, index, system, level)
        except BaseException:
            index.close()
            raise
        try:
            yield writer
        finally:
            writer.close()


def remove_replaced(folder: Path, index: Index, system: System) -> None:
    """Remove packs whose content other packs hold."""
    for name in index.replaced():
        with suppress(FileNotFoundError):
            system.unlink(pack_path(folder, name))
