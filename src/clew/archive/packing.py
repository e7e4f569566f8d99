"""Full blocks packed beside the one who writes, each by the first process that is free, so that all cores have work.

They have some memory in common with the writer: it puts a block there, and they leave what became of it. They write
nowhere and hold no lock. Where one dies, its block is packed here; where the writer dies, they hear the end of their
pipe.
"""

from __future__ import annotations

import mmap
import os
import select
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress

Pack = Callable[[bytes], bytes]
_SIZE = struct.Struct("<Q")
_MOST = 4
_STANDARD = 3
"""The descriptors below are those that every process has."""
_MOST_DESCRIPTORS = 1 << 16


def most_packers() -> int:
    """How many are of use: none where there is one core, or no such process; more than a few would not be fed."""
    cores = os.cpu_count() or 1
    return min(cores, _MOST) if cores > 1 and hasattr(os, "fork") else 0


class Job:
    """A block that is packed, here or beside."""

    def __init__(self, chunks: Sequence[bytes] = (), packed: bytes = b"") -> None:
        self.chunks, self.packed = chunks, packed
        self.packer: Packer | None = None

    def is_done(self) -> bool:
        """True where `result` need not wait."""
        return self.packer is None or self.packer.has_answered()

    def result(self) -> bytes:
        """What became of the block; waits for it."""
        if self.packer is not None:
            self.packer.finish()
        return self.packed


class Packer:
    """A process that packs one block after the other."""

    def __init__(self, pack: Pack, room: int) -> None:
        self._pack = pack
        self.job: Job | None = None
        self._shared = mmap.mmap(-1, room)
        hears, self._tell = os.pipe()
        self.hear, tells = os.pipe()
        self.process = os.fork()
        if not self.process:
            _serve(pack, self._shared, hears, tells)
        os.close(hears)
        os.close(tells)

    def begin(self, chunks: Sequence[bytes]) -> Job:
        """Let a block be packed; what has no room is packed here."""
        size = sum(map(len, chunks))
        if size > len(self._shared):
            return Job(packed=self._pack(b"".join(chunks)))
        self._shared.seek(0)
        for chunk in chunks:
            self._shared.write(chunk)
        with suppress(OSError):
            os.write(self._tell, _SIZE.pack(size))
        self.job = Job(chunks)
        self.job.packer = self
        return self.job

    def has_answered(self) -> bool:
        """True where the block is packed, or never will be."""
        return bool(_answered([self], 0))

    def finish(self) -> None:
        """Wait for the block, and be free for another."""
        job, self.job = self.job, None
        if job is not None:
            job.packed = self._answer() or self._pack(b"".join(job.chunks))
            job.packer, job.chunks = None, ()

    def _answer(self) -> bytes:
        """The packed block; empty where it did not come whole."""
        answer = b""
        with suppress(OSError):
            answer = os.read(self.hear, _SIZE.size)
        return self._shared[: _SIZE.unpack(answer)[0]] if len(answer) == _SIZE.size else b""

    def close(self) -> None:
        """Let the process go; it leaves as soon as it has done what it is at."""
        os.close(self._tell)
        os.close(self.hear)
        self._shared.close()
        with suppress(ChildProcessError):
            os.waitpid(self.process, 0)


class Packers:
    """As many packers as are of use, begun when they are needed."""

    def __init__(self, pack: Pack, room: int) -> None:
        self._pack, self._room = pack, room
        self._most = most_packers()
        self.begun: list[Packer] = []

    def __bool__(self) -> bool:
        return self._most > 0

    def begin(self, chunks: Sequence[bytes]) -> Job:
        """Let a block be packed by one that has nothing to do; waits for the first that is done."""
        return self._free().begin(chunks)

    def _free(self) -> Packer:
        for packer in self.begun:
            if packer.job is None:
                return packer
        if len(self.begun) < self._most:
            self.begun.append(Packer(self._pack, self._room))
            return self.begun[-1]
        packer = _answered(self.begun)[0]
        packer.finish()
        return packer

    def close(self) -> None:
        """Let all of them go."""
        for packer in self.begun:
            packer.close()


def _answered(packers: Sequence[Packer], timeout: int | None = None) -> list[Packer]:
    """Those that have something to say, or have died; waits until there is one."""
    ears = select.poll()
    for packer in packers:
        ears.register(packer.hear, select.POLLIN)
    heard = {descriptor for descriptor, _ in ears.poll(timeout)}
    return [packer for packer in packers if packer.hear in heard]


def _serve(pack: Pack, shared: mmap.mmap, hears: int, tells: int) -> None:
    """Pack what is in the shared memory, until nobody asks any more; never returns."""
    try:
        # Above all the lock: it must not outlive the one who holds it.
        low, high = sorted((hears, tells))
        for begin, end in ((_STANDARD, low), (low + 1, high), (high + 1, _MOST_DESCRIPTORS)):
            os.closerange(begin, end)
        while asked := os.read(hears, _SIZE.size):
            packed = pack(shared[: _SIZE.unpack(asked)[0]])
            # What has no room there is packed again by who asked.
            fits = len(packed) <= len(shared)
            if fits:
                shared[: len(packed)] = packed
            os.write(tells, _SIZE.pack(len(packed) if fits else 0))
    finally:
        os._exit(0)
