"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from clew.datadir import private_folder

_OWN = 0o600
"""The mode that a temporary file has."""
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
"""Fails if anything is there: a link that another user put there is never followed."""


@contextmanager
def replacing(path: Path, mode: int = _OWN, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """Write to a temporary file beside `path`; on success it takes the place of `path`, durably.

    Folders that are missing are made, for their owner alone.

    What can be made again any time need not outlast a power cut.
    """
    try:
        descriptor, name = _temporary(path)
    except FileNotFoundError:
        private_folder(str(path.parent))
        descriptor, name = _temporary(path)
    try:
        with open(descriptor, "wb") as handle:
            yield handle
            if durable:
                handle.flush()
                os.fsync(handle.fileno())
        if mode != _OWN:
            Path(name).chmod(mode)
        os.replace(name, path)  # noqa: PTH105 - there may be many
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == name:
            error.filename = str(path)
        raise
    if durable:
        sync_folder(path.parent)


def _temporary(path: Path) -> tuple[int, str]:
    """A new file beside `path`, opened, and its name."""
    folder, name = os.path.split(path)  # there may be many
    while True:
        place = os.path.join(folder, f".{name[:100]}.{os.urandom(6).hex()}.tmp")  # noqa: PTH118
        try:
            return os.open(place, _NEW, _OWN), place
        except FileExistsError:
            continue
        except OSError as error:
            # The user knows the target, not the temporary file.
            error.filename = str(path)
            raise
        except BaseException:
            # A signal came while the file was created.
            Path(place).unlink(missing_ok=True)
            raise


def write_atomic(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace the file by `content`."""
    with replacing(path, mode) as handle:
        handle.write(content)


def create(path: Path, content: bytes, mode: int = _OWN) -> None:
    """Create a file, durably; raises FileExistsError where anything is there, a link too."""
    descriptor = os.open(path, _NEW, _OWN)
    try:
        with open(descriptor, "wb") as handle:
            handle.write(content)
            handle.flush()
            if mode != _OWN:
                path.chmod(mode)
            os.fsync(handle.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename in the folder durable, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def may_run(process: int) -> bool:
    """Whether a process of that id may run, and need its temporary files; on Windows one cannot ask without harm."""
    if os.name == "nt":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
