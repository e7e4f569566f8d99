"""Full blocks packed beside the one who writes, in processes that take turns, so that all cores have work.

They have some memory in common with the writer: it puts a block there, and they leave what became of it. They write
nowhere and hold no lock. Where one dies, its block is packed here; where the writer dies, they hear the end of their
pipe.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Callable
from contextlib import suppress

from clew.archive.blocks import digest_of

Pack = Callable[[bytes], bytes]
_SIZE = struct.Struct("<Q")
_DIGEST = 32
_MOST = 4
_STANDARD = 3
"""The descriptors below are those that every process has."""
_MOST_DESCRIPTORS = 1 << 16


def most_packers() -> int:
    """How many are of use: none where there is one core, or no such process; more than a few would not be fed."""
    cores = os.cpu_count() or 1
    return min(cores, _MOST) if cores > 1 and hasattr(os, "fork") else 0


class Packer:
    """A process that packs one block after the other."""

    def __init__(self, pack: Pack, room: int) -> None:
        self._pack, self._body, self._size = pack, b"", 0
        self._shared = mmap.mmap(-1, room)
        hears, self._tell = os.pipe()
        self._hear, tells = os.pipe()
        self._process = os.fork()
        if not self._process:
            _serve(pack, self._shared, hears, tells)
        os.close(hears)
        os.close(tells)

    def begin(self, body: bytes) -> None:
        """Let a block be packed."""
        self._body = body
        if len(body) <= len(self._shared):
            self._shared[: len(body)] = body
            with suppress(OSError):
                os.write(self._tell, _SIZE.pack(len(body)))

    def result(self) -> bytes:
        """What became of the block; waits for it."""
        answer = b""
        if len(self._body) <= len(self._shared):
            with suppress(OSError):
                answer = os.read(self._hear, _SIZE.size + _DIGEST)
        if len(answer) == _SIZE.size + _DIGEST:
            packed = self._shared[: _SIZE.unpack_from(answer)[0]]
            if digest_of(packed) == answer[_SIZE.size :]:
                return packed
        return self._pack(self._body)

    def close(self) -> None:
        """Let the process go; it leaves as soon as it has done what it is at."""
        os.close(self._tell)
        os.close(self._hear)
        self._shared.close()
        with suppress(ChildProcessError):
            os.waitpid(self._process, 0)


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
            os.write(tells, _SIZE.pack(len(packed)) + digest_of(packed) if fits else b"\0")
    finally:
        os._exit(0)
