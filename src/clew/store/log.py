"""One append-only file of JSON lines: appended to under its lock, made durable, and repaired after a crash.

No byte of a complete line is ever changed in place. A line that cannot be written completely is removed before the lock
is released; what a dying process left is moved to the quarantine by the next append. Another file may take the log's
place while it is open (`erase` rewrites it): each time the lock is taken, the path must still name the open file.
"""

from __future__ import annotations

import base64
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from clew.errors import Busy, SourceUnreadable
from clew.io.codec import NOT_JSON, dumps, loads
from clew.io.compress import open_regular
from clew.io.file_lock import LOCK_WAIT_SECONDS, acquire_lock
from clew.io.filesystem import SYSTEM, UNLOCK, System, add_file_name, explain_permission_errors, open_log, write_all
from clew.model.json import JSON

QUARANTINE = "quarantine.jsonl"
"""Beside the log: incomplete last lines that were removed, in base64, each with its position."""

_UNKNOWN = -1
_CHUNK_BYTES = 1 << 16
"""Read at once from the end of a log."""
_READ_BYTES = 8 << 20
"""Read at once from the beginning of a log."""


class Log:
    """An append-only log, for any number of threads and processes."""

    def __init__(
        self,
        path: Path,
        *,
        system: System = SYSTEM,
        durable: bool = True,
        wait: float = LOCK_WAIT_SECONDS,
        file_may_be_renamed: bool = False,
        on_change: Callable[[], object] = bool,
    ) -> None:
        self.path, self._path_text = path, os.fspath(path)
        self.end = _UNKNOWN
        """Where the last complete line ends, as far as this handle knows."""
        self.was_replaced = False
        """Another file has taken the log's place since this handle used it last."""
        self._system, self._durable, self._wait = system, durable, wait
        self._file_may_be_renamed, self._on_change = file_may_be_renamed, on_change
        self._open_flags = system.write_through if durable else 0
        self._descriptor = -1
        self._device, self._inode = 0, 0
        self._has_unsynced_lines = False
        self._thread_lock = threading.RLock()
        self._is_in_use = False
        _LOGS.add(self)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the log alone; its last line is complete.

        If the log is not as this handle left it, `on_change` is called first: when it is opened, when another handle
        has written to it, and after an error in an earlier block.
        """
        # A generator, because an interrupt cannot skip its `finally`, as it can skip the body of `__exit__`.
        with self._thread_lock:
            self._forbid_reentrant_append()
            try:
                self._is_in_use = True
                size = self._lock_file()
                if size != self.end:
                    self.end = self._repaired_end(size)
                    self._on_change()
                yield
                self.was_replaced = False
            except BaseException:
                self.end = _UNKNOWN
                raise
            finally:
                self._is_in_use = False
                self._release()

    def _forbid_reentrant_append(self) -> None:
        """Refuse a signal handler that appends while its own thread does: it would wait for itself."""
        if self._is_in_use:
            raise Busy(
                f"{self.path}: this thread is already appending to the log; a signal handler must not append, but can "
                "set a flag for the program"
            )

    def _lock_file(self) -> int:
        """Open and lock the file that the path names; returns its size."""
        while True:
            if self._descriptor < 0:
                self._open()
            acquire_lock(self._system, self._descriptor, self.path, self._wait)
            try:
                named = self._system.stat(self._path_text)
                if named.st_ino == self._inode and named.st_dev == self._device:
                    return named.st_size
            except FileNotFoundError:
                if not self._file_may_be_renamed:
                    raise SourceUnreadable(f"{self.path}: the log was erased while it was open") from None
            self.drop()

    def _open(self) -> None:
        with explain_permission_errors(self.path.parent):
            descriptor = open_log(self._system, self.path, also=self._open_flags)
        try:
            opened = self._system.fstat(descriptor)
        except BaseException:
            self._system.close(descriptor)
            raise
        known, found = (self._device, self._inode), (opened.st_dev, opened.st_ino)
        self.was_replaced = self.was_replaced or (known != (0, 0) and known != found)
        self._descriptor, (self._device, self._inode) = descriptor, found

    def _release(self) -> None:
        try:
            if self._descriptor >= 0:
                self._system.lock(self._descriptor, UNLOCK)
        except OSError:
            self.drop()  # closing releases the lock in any case

    def append(self, lines: bytes) -> None:
        """Write complete lines while the log is locked; they are durable on return, or not there at all."""
        try:
            write_all(self._system, self._descriptor, lines)
            if self._durable and not self._open_flags:
                self._system.sync(self._descriptor)
        except BaseException:
            add_file_name(self.path)
            end, self.end = self.end, _UNKNOWN
            # Where even this fails, the next append finds an incomplete line and repairs it.
            with suppress(OSError):
                self._system.truncate(self._descriptor, end)
            raise
        self.end += len(lines)
        self._has_unsynced_lines = not self._durable

    def sync_existing(self) -> None:
        """Make durable what is in the log already: its writer may have died before it did so."""
        if self._durable:
            self._system.sync(self._descriptor)

    def close(self) -> None:
        """Make everything durable and close the file."""
        with self._thread_lock:
            self._forbid_reentrant_append()
            try:
                if self._has_unsynced_lines and self._descriptor >= 0:
                    self._system.sync(self._descriptor)
                    self._has_unsynced_lines = False
            finally:
                self.drop()

    def drop(self) -> None:
        """Close the file without syncing it."""
        descriptor, self._descriptor, self.end = self._descriptor, -1, _UNKNOWN
        if descriptor >= 0:
            with suppress(OSError):
                self._system.close(descriptor)

    def _repaired_end(self, size: int) -> int:
        """Complete the last line if it lacks only its line end, else remove it; returns where the log ends then."""
        torn = incomplete_last_line(self._system, self._descriptor, size)
        if not torn:
            return size
        if record_in(torn) is not None:
            try:
                write_all(self._system, self._descriptor, b"\n")
                self._system.sync(self._descriptor)
            except BaseException:
                with suppress(OSError):
                    self._system.truncate(self._descriptor, size)
                raise
            return size + 1
        start = size - len(torn)
        quarantine(self._system, self.path, start, torn)
        self._system.truncate(self._descriptor, start)
        self._system.sync(self._descriptor)
        return start

    def reset_after_fork(self) -> None:
        """In a forked child: the open file and its lock are the parent's."""
        self._thread_lock = threading.RLock()
        self._is_in_use = False
        self.drop()

    def backward(self) -> Iterator[bytes]:
        """Yield the lines from the last to the first, while the log is locked."""
        yield from lines_backward(self._system, self._descriptor, self.end)


_LOGS: weakref.WeakSet[Log] = weakref.WeakSet()
"""All logs of this process: in a forked child, a lock that another thread held is never released."""


def _reset_after_fork() -> None:
    for log in list(_LOGS):
        log.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def record_in(line: bytes) -> dict[str, JSON] | None:
    """Decode the record of a line; None where it is not a JSON object."""
    try:
        value = loads(line)
    except NOT_JSON:
        return None
    return value if isinstance(value, dict) else None


def whole_lines(path: Path, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Yield the bytes of a log in chunks of complete lines; an incomplete last line is left out."""
    with open_regular(path)[0] as stream:
        limit = os.fstat(stream.fileno()).st_size if end is None else end
        stream.seek(start)
        kept = b""
        while start < limit and (part := stream.read(min(_READ_BYTES, limit - start))):
            start += len(part)
            cut = part.rfind(b"\n") + 1
            if cut:
                yield kept + part[:cut] if kept else part[:cut]
                kept = part[cut:]
            else:
                kept += part


def complete_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a log without their line ends; an incomplete last line is left out."""
    for chunk in whole_lines(path):
        yield from chunk.split(b"\n")[:-1]


def read_log(path: Path) -> Iterator[dict[str, JSON]]:
    """Yield the records of a log, none if there is no log; lines that are not JSON objects are left out."""
    with suppress(FileNotFoundError):
        for line in complete_lines(path):
            if (record := record_in(line)) is not None:
                yield record


def incomplete_last_line(system: System, descriptor: int, size: int) -> bytes:
    """Return what follows the last line end; nothing where the last line is complete."""
    if not size or system.read(descriptor, 1, size - 1) == b"\n":
        return b""
    parts: list[bytes] = []
    while size:
        start = max(0, size - _CHUNK_BYTES)
        part = system.read(descriptor, size - start, start)
        _, found, behind = part.rpartition(b"\n")
        parts.append(behind)
        if found:
            break
        size = start
    return b"".join(reversed(parts))


def lines_backward(system: System, descriptor: int, end: int) -> Iterator[bytes]:
    """Yield the lines before `end`, which is a line end, from the last to the first, without their line ends."""
    kept: list[bytes] = []
    at = max(0, end - 1)
    while at > 0:
        start = max(0, at - _CHUNK_BYTES)
        first, *others = system.read(descriptor, at - start, start).split(b"\n")
        for line in reversed(others):
            yield b"".join([line, *reversed(kept)])
            kept.clear()
        kept.append(first)
        at = start
    if end:
        yield b"".join(reversed(kept))


def quarantine(system: System, log: Path, start: int, torn: bytes) -> None:
    """Copy an incomplete line into a file beside the log, durably, before it is removed."""
    entry = dumps({"file": log.name, "start": start, "base64": base64.b64encode(torn).decode()}) + b"\n"
    descriptor = open_log(system, log.with_name(QUARANTINE))
    try:
        size = system.seek(descriptor, 0, os.SEEK_END)
        # A crash while an entry was written may have left half of it.
        entry = b"\n" + entry if incomplete_last_line(system, descriptor, size) else entry
        try:
            write_all(system, descriptor, entry)
            system.sync(descriptor)
        except BaseException:
            with suppress(OSError):
                system.truncate(descriptor, size)
            raise
    finally:
        system.close(descriptor)
