"""One append-only file of JSON lines: appended under its lock, made durable, and mended where a crash tore its end.

No byte of a whole line is ever changed. A record that could not be finished is undone before the lock is let go;
what a dying process left behind is put into quarantine by the next one that appends.
"""

from __future__ import annotations

import base64
import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from clew.errors import Busy, SourceUnreadable
from clew.io.codec import NOT_JSON, dumps, loads
from clew.io.filesystem import LOCK, SYSTEM, UNLOCK, System, name_place, open_log, telling_forbidden, write_all
from clew.model.json import JSON
from clew.store.keeping import CAN_KEEP, Kept, Sign, keep
from clew.store.lock import LONGEST_PAUSE, WAIT, Lock

QUARANTINE = "quarantine.jsonl"
"""Beside the log: ends of records that were torn off, in base64, each with its place."""

SHARED_FOR = 1.0
"""Seconds for which a log counts as shared, and its lock is not kept, after somebody had to wait for it."""
_UNKNOWN = -1
_END = os.SEEK_END
_CHUNK = 1 << 16


class Log:
    """An open log, for one thread at a time."""

    def __init__(
        self,
        path: Path,
        *,
        system: System = SYSTEM,
        durable: bool = True,
        wait: float = WAIT,
        moves: bool = False,
    ) -> None:
        self.path, self.durable = path, durable
        self.guard = threading.RLock()
        """For whoever shares the log among threads, held from before `begin` until behind `finish`.

        Nobody takes it twice, see `refuse_own`; it only knows who holds it.
        """
        self.end = _UNKNOWN
        """Where the last whole line ends, as far as this handle knows."""
        self._system, self._moves = system, moves
        # At hand, since every append needs them.
        self._hold, self.seek, self.write, self._sync = system.lock, system.seek, system.write, system.sync
        self._stat = system.fstat
        self._lock, self._sign = Lock(system, path, wait), Sign(system, path)
        self._flags = system.write_through if durable else 0
        self.syncs = durable and not self._flags
        self.descriptor = -1
        self._unsynced = False
        self.is_kept = False
        """True while the lock stays taken between appends."""
        _LOGS.add(self)

    def refuse_own(self) -> None:
        """Before the guard is taken: a signal handler in the thread that holds it would wait for itself."""
        if self.guard._is_owned():  # type: ignore[attr-defined]
            raise under_way(self.path)

    def begin(self) -> bool:
        """Take the lock; True where the file is not as this handle left it. Its end is whole afterwards."""
        if self.is_kept:
            self._give_way()
        descriptor = self.descriptor
        if descriptor < 0 or self._moves:
            descriptor = self._locked()
        elif not self.is_kept:
            try:
                self._hold(descriptor, LOCK)
            except OSError as error:
                self._lock.wait(descriptor, error)
        try:
            size = self.seek(descriptor, 0, _END)
            if size == self.end and self._stat(descriptor).st_nlink > 0:
                return False  # nobody has written since, removed the file or put another in its place
            self._look(descriptor, size)
        except BaseException:
            self.finish()
            raise
        return True

    def append(self, lines: bytes) -> None:
        """Write whole lines, between `begin` and `finish`; they are durable on return, or not there at all."""
        try:
            self.complete(lines, self.write(self.descriptor, lines))
        except BaseException:
            self._undo()
            raise
        self.end += len(lines)
        self._unsynced = not self.durable

    def complete(self, lines: bytes, done: int) -> None:
        """Write the rest of lines that the system took only a part of, and make them durable."""
        if done != len(lines):
            write_all(self._system, self.descriptor, lines[done:])
        if self.syncs:
            self._sync(self.descriptor)

    def give_up(self) -> None:
        """A line could not be written while the lock was kept: take it back, and keep the lock no longer."""
        self._undo()
        self.finish()

    def settle(self) -> None:
        """Make durable what stands in the log already: who wrote it may have died before it did so."""
        if self.durable:
            self._system.sync(self.descriptor)

    def _undo(self) -> None:
        name_place(self.path)
        end, self.end = self.end, _UNKNOWN
        # Where even this fails, the next one to append finds a torn end and mends it.
        with suppress(OSError):
            self._system.truncate(self.descriptor, end)

    def finish(self) -> None:
        """Let go of the lock."""
        self.is_kept = False
        try:
            if self.descriptor >= 0:
                self._hold(self.descriptor, UNLOCK)
        except OSError:
            self.drop()  # which lets go of it in any case

    def keep(self, kept: Kept) -> bool:
        """Instead of `finish`: hold on to the lock until it is not used for a moment; False where somebody waits."""
        if not self.is_kept:
            alone = CAN_KEEP and not self._moves and time.monotonic() - self._lock.waited > SHARED_FOR
            self.is_kept = alone and not self._sign.is_seen()
        self.is_kept = self.is_kept and keep(kept)
        return self.is_kept

    def is_wanted(self) -> bool:
        """While the lock is kept: whether somebody waits for it."""
        return self._sign.is_seen()

    def is_as_left(self) -> bool:
        """Whether nobody has written since, or removed the log; who knows of no locks may have, while it is kept."""
        descriptor = self.descriptor
        return self.seek(descriptor, 0, _END) == self.end and self._stat(descriptor).st_nlink > 0

    def _give_way(self) -> None:
        """Let go of a lock that was kept, where somebody waits for it, and keep it no more for a while."""
        if self._sign.is_seen():
            self._lock.waited = time.monotonic()
            self.finish()
            time.sleep(LONGEST_PAUSE)  # until who waits has looked again

    def forget(self) -> None:
        """Have the next `begin` look at the end of the log again."""
        self.end = _UNKNOWN

    def sync(self) -> None:
        """Make durable what was appended at the faster level."""
        if self._unsynced and self.descriptor >= 0:
            self._system.sync(self.descriptor)
            self._unsynced = False

    def close(self) -> None:
        """Make everything durable and close the file."""
        try:
            self.sync()
        finally:
            self.drop()

    def drop(self) -> None:
        """Close the file as it is."""
        self.is_kept = False
        descriptor, self.descriptor, self.end = self.descriptor, -1, _UNKNOWN
        self._sign.take_down()
        if descriptor >= 0:
            with suppress(OSError):
                self._system.close(descriptor)

    def _locked(self) -> int:
        while True:
            if self.descriptor < 0:
                with telling_forbidden(self.path.parent):
                    self.descriptor = open_log(self._system, self.path, also=self._flags)
            self._lock.take(self.descriptor)
            if not self._moves or self._in_place():
                return self.descriptor
            self.drop()

    def _in_place(self) -> bool:
        """True when the open file is still the one that the path names."""
        mine = self._system.fstat(self.descriptor)
        try:
            named = self.path.stat()
        except FileNotFoundError:
            return False
        return (mine.st_dev, mine.st_ino) == (named.st_dev, named.st_ino)

    def _look(self, descriptor: int, size: int) -> None:
        if not self._moves and not self._in_place():
            raise SourceUnreadable(f"{self.path}: the log was erased or replaced while it was open")
        torn = torn_end(self._system, descriptor, size)
        self.end = size if not torn else self._mend(descriptor, size, torn)

    def _mend(self, descriptor: int, size: int, torn: bytes) -> int:
        """Close the last line if it is whole, else take it out; returns where the log ends then."""
        if record_in(torn) is not None:
            try:
                write_all(self._system, descriptor, b"\n")
                self._system.sync(descriptor)
            except BaseException:
                with suppress(OSError):
                    self._system.truncate(descriptor, size)
                raise
            return size + 1
        start = size - len(torn)
        quarantine(self._system, self.path, start, torn)
        self._system.truncate(descriptor, start)
        self._system.sync(descriptor)
        return start

    def part_from_parent(self) -> None:
        """In a forked child: what is open is the parent's, and so is its lock."""
        self.guard = threading.RLock()
        self.drop()

    def backward(self) -> Iterator[bytes]:
        """The lines from the last to the first, between `begin` and `finish`."""
        yield from lines_backward(self._system, self.descriptor, self.end)

    def place_of(self, beginning: bytes, near: int | None = None) -> int | None:
        """Where the last line stands that begins so; None where none does. Lines never move, so `near` is enough."""
        if near is not None:
            return near if self._system.read(self.descriptor, len(beginning), near) == beginning else None
        at = self.end
        for line in self.backward():
            at -= len(line) + 1
            if line.startswith(beginning):
                return at
        return None


_LOGS: weakref.WeakSet[Log] = weakref.WeakSet()
"""Also those that are not open: another thread may hold the guard of one when this process forks."""


def under_way(path: Path) -> Busy:
    """What a signal handler is told."""
    words = "this very thread is appending to it just now; a signal handler has to leave that to the program"
    return Busy(f"{path}: {words}, as by setting a flag")


def _after_fork() -> None:
    for log in list(_LOGS):
        log.part_from_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def record_in(line: bytes) -> dict[str, JSON] | None:
    """The record that a line is; None where it is no JSON object."""
    try:
        value = loads(line)
    except NOT_JSON:
        return None
    return value if isinstance(value, dict) else None


def torn_end(system: System, descriptor: int, size: int) -> bytes:
    """What stands behind the last line end; nothing in a log that is well."""
    if not size or system.read(descriptor, 1, size - 1) == b"\n":
        return b""
    parts: list[bytes] = []
    while size:
        start = max(0, size - _CHUNK)
        part = system.read(descriptor, size - start, start)
        _, found, behind = part.rpartition(b"\n")
        parts.append(behind)
        if found:
            break
        size = start
    return b"".join(reversed(parts))


def lines_backward(system: System, descriptor: int, end: int) -> Iterator[bytes]:
    """The lines before `end`, which is a line end, without their line ends, last first."""
    kept: list[bytes] = []
    at = max(0, end - 1)
    while at > 0:
        start = max(0, at - _CHUNK)
        first, *others = system.read(descriptor, at - start, start).split(b"\n")
        for line in reversed(others):
            yield b"".join([line, *reversed(kept)])
            kept.clear()
        kept.append(first)
        at = start
    if end:
        yield b"".join(reversed(kept))


def quarantine(system: System, log: Path, start: int, torn: bytes) -> None:
    """Keep a torn piece beside the log, durably, before it is cut off."""
    entry = dumps({"file": log.name, "start": start, "base64": base64.b64encode(torn).decode()}) + b"\n"
    descriptor = open_log(system, log.with_name(QUARANTINE))
    try:
        size = system.seek(descriptor, 0, os.SEEK_END)
        # A crash right here a moment ago may have left half an entry.
        entry = b"\n" + entry if torn_end(system, descriptor, size) else entry
        try:
            write_all(system, descriptor, entry)
            system.sync(descriptor)
        except BaseException:
            with suppress(OSError):
                system.truncate(descriptor, size)
            raise
    finally:
        system.close(descriptor)
