"""Calls to the file system that can be replaced, so that a test can make each of them fail."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from clew.errors import SourceUnreadable, TargetRefused

FOLDER_MODE, FILE_MODE = 0o700, 0o600
"""Only the owner can read what is created."""

if sys.platform == "win32":
    import msvcrt

    LOCK, SHARED, UNLOCK = msvcrt.LK_NBLCK, msvcrt.LK_NBRLCK, msvcrt.LK_UNLCK
    _LOCKED_BYTE = 1 << 62  # Locks are mandatory on Windows, so the locked byte is beyond any log.

    def _lock(descriptor: int, how: int) -> None:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, how, 1)
        except PermissionError as error:
            raise BlockingIOError(error.errno, "held") from error
else:
    import fcntl

    LOCK, SHARED, UNLOCK = fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_SH | fcntl.LOCK_NB, fcntl.LOCK_UN
    _lock = fcntl.flock


def _sync(descriptor: int) -> None:
    if sys.platform == "darwin":
        # On macOS, fsync alone leaves the bytes in the cache of the drive.
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


class System:
    """The calls of the operating system. Each raises OSError if it fails; `write` may write only a part."""

    write_through: int = getattr(os, "O_DSYNC", 0) if sys.platform == "linux" else 0
    """Open flag: each write waits for the disk, which is quicker than a sync after it; 0 where that is unreliable."""
    open: Callable[..., int] = staticmethod(os.open)
    close: Callable[[int], None] = staticmethod(os.close)
    write: Callable[[int, bytes], int] = staticmethod(os.write)
    seek: Callable[[int, int, int], int] = staticmethod(os.lseek)
    fstat: Callable[[int], os.stat_result] = staticmethod(os.fstat)
    stat: Callable[[str], os.stat_result] = staticmethod(os.stat)
    truncate: Callable[[int, int], None] = staticmethod(os.ftruncate)
    chmod: Callable[[Path, int], None] = staticmethod(os.chmod)
    mkdir: Callable[[Path, int], None] = staticmethod(os.mkdir)
    rmdir: Callable[[Path], None] = staticmethod(os.rmdir)
    replace: Callable[[Path, Path], None] = staticmethod(os.replace)
    unlink: Callable[[Path], None] = staticmethod(os.unlink)
    lock: Callable[[int, int], None] = staticmethod(_lock)
    sync: Callable[[int], None] = staticmethod(_sync)

    @staticmethod
    def read(descriptor: int, size: int, offset: int) -> bytes:
        """Read bytes at an offset; fewer only at the end of the file."""
        os.lseek(descriptor, offset, os.SEEK_SET)
        parts = []
        while size and (part := os.read(descriptor, size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


SYSTEM = System()


def sync_folder(system: System, folder: Path) -> None:
    """Make created, renamed and removed names in a folder durable, where the system can."""
    if sys.platform == "win32":
        return
    descriptor = system.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        system.sync(descriptor)
    finally:
        system.close(descriptor)


@contextmanager
def explain_permission_errors(place: Path) -> Iterator[None]:
    """Raise TargetRefused where a store may not be written to."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        reason = f"{error.filename or place}: {error.strerror}"
        raise TargetRefused(f"the store in {place} may only be read, and nothing was written: {reason}") from error


def make_folder(system: System, folder: Path) -> None:
    """Create a folder and its missing parents, durably, for the owner alone whatever the umask."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for made in reversed(missing):
        try:
            system.mkdir(made, FOLDER_MODE)
        except FileExistsError:
            continue  # another process was quicker
        if made.stat().st_mode & 0o777 != FOLDER_MODE:
            system.chmod(made, FOLDER_MODE)
        sync_folder(system, made.parent)


def open_regular(system: System, path: Path, flags: int, mode: int = FILE_MODE) -> int:
    """Open a regular file without following a link; raises SourceUnreadable for anything else."""
    # O_NONBLOCK: opening a pipe would wait for a writer.
    for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
        flags |= getattr(os, name, 0)
    try:
        descriptor = system.open(path, flags, mode)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise SourceUnreadable(f"{path}: it is a link and is not followed") from error
        raise
    try:
        if not stat.S_ISREG(system.fstat(descriptor).st_mode):
            raise SourceUnreadable(f"{path}: not a regular file")
    except BaseException:
        system.close(descriptor)
        raise
    return descriptor


def open_log(system: System, path: Path, *, also: int = 0) -> int:
    """Open a file for appending and reading, without following a link; created for its owner alone."""
    flags = os.O_RDWR | os.O_APPEND | also
    with suppress(FileNotFoundError):
        return open_regular(system, path, flags)
    try:
        descriptor = open_regular(system, path, flags | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        return open_regular(system, path, flags)
    try:
        if system.fstat(descriptor).st_mode & 0o777 != FILE_MODE:
            system.chmod(path, FILE_MODE)
        sync_folder(system, path.parent)
    except BaseException:
        system.close(descriptor)
        raise
    return descriptor


def open_new(system: System, path: Path) -> int:
    """Create a file for its owner alone, whatever the umask; it must not exist."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    descriptor = system.open(path, flags, FILE_MODE)
    try:
        if system.fstat(descriptor).st_mode & 0o777 != FILE_MODE:
            system.chmod(path, FILE_MODE)
    except BaseException:
        system.close(descriptor)
        discard(system, path)
        raise
    return descriptor


def write_all(system: System, descriptor: int, content: bytes) -> None:
    """Write all bytes, in several calls if necessary."""
    done = 0
    while done < len(content):
        try:
            done += system.write(descriptor, content[done:] if done else content)
        except InterruptedError:
            continue


def replace_file(system: System, path: Path, content: bytes, *, durable: bool = True) -> None:
    """Replace a file durably: a reader, and a crash, see the old or the new one.

    With `durable=False` that holds for the end of the process, but not for a power cut.
    """
    temporary = path.with_name(f".{path.name[:100]}.{os.urandom(6).hex()}.tmp")
    descriptor = open_new(system, temporary)
    try:
        try:
            write_all(system, descriptor, content)
            if durable:
                system.sync(descriptor)
        finally:
            system.close(descriptor)
        system.replace(temporary, path)
    except BaseException:
        add_file_name(path)
        discard(system, temporary)
        raise
    if durable:
        sync_folder(system, path.parent)


def add_file_name(path: Path) -> None:
    """Add the file name to the OSError that is being handled: calls on open files do not have one."""
    error = sys.exception()
    if isinstance(error, OSError) and error.filename is None:
        error.filename = str(path)


def discard(system: System, path: Path) -> None:
    """Remove a temporary file, as far as that is possible."""
    try:
        system.unlink(path)
    except OSError:
        return  # doctor finds it by its name
