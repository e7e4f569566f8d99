"""Small JSON files that the user may edit: an object, loaded whole, and changed by one process at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from clew.datadir import private_folder
from clew.errors import SourceUnreadable
from clew.io.atomic import write_atomic
from clew.io.file_lock import ignore_missing_locks, locked
from clew.io.filesystem import SYSTEM, open_log

T = TypeVar("T")


class DamagedFile(SourceUnreadable):
    """The file does not hold the values that belong into it."""


def load(path: Path, value_type: type[T]) -> dict[str, T]:
    """The values of an object by their keys; none without a file. Raises SourceUnreadable."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, value_type])  # type: ignore[valid-type]
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SourceUnreadable(f"{path}: {error.strerror or error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedFile(f"{path}: {error}; correct or delete the file") from None


@contextmanager
def update(path: Path, value_type: type[T], *, set_aside: bool = False) -> Iterator[dict[str, T]]:
    """The values, to be changed in the block and then stored, while no other process changes them.

    If the block raises, nothing is stored. A file that cannot be read is not replaced: raises SourceUnreadable. With
    `set_aside`, a damaged file gets the name `FILE.damaged`, and there are no values.
    """
    with exclusive(path, value_type, set_aside=set_aside) as (values, store):
        yield values
        store(values)


@contextmanager
def exclusive(
    path: Path, value_type: type[T], *, set_aside: bool = False
) -> Iterator[tuple[dict[str, T], Callable[[dict[str, T]], None]]]:
    """The values, and a function that stores others durably; no other process changes them during the block.

    A file that cannot be read is not replaced, unless it is damaged and `set_aside`: raises SourceUnreadable.
    """

    def store(values: dict[str, T]) -> None:
        content = msgspec.json.format(msgspec.json.encode(values, order="deterministic"), indent=2)
        try:
            write_atomic(path, content + b"\n")
        except OSError as error:
            raise _not_writable(path, error) from None

    try:
        lock = _lock_file(path)
    except OSError as error:
        raise _not_writable(path, error) from None
    with locked(ignore_missing_locks(SYSTEM), lock):
        try:
            values = load(path, value_type)
        except DamagedFile:
            if not set_aside:
                raise
            path.replace(path.with_name(f"{path.name}.damaged"))
            values = {}
        yield values, store


def _lock_file(path: Path) -> Path:
    """The file whose lock protects another one, which is itself replaced by each change; created if missing."""
    lock = path.with_name(f"{path.name}.lock")
    try:
        descriptor = open_log(SYSTEM, lock)
    except FileNotFoundError:
        private_folder(str(path.parent))
        descriptor = open_log(SYSTEM, lock)
    SYSTEM.close(descriptor)
    return lock


def _not_writable(path: Path, error: OSError) -> SourceUnreadable:
    return SourceUnreadable(f"{path}: cannot be written: {error.strerror or error}")
