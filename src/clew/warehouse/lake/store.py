"""Where the objects of a lake are kept: a folder of this machine, or any store that fsspec knows.

Objects are created, read, listed and removed; never changed.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from clew.datadir import private_folder
from clew.errors import ClewError, RemoteFailed, TargetRefused, UsageError
from clew.extras import require_extra
from clew.io.atomic import sync_folder
from clew.warehouse.lake.layout import VERSION_DIR, check_version, month_of, no_lake, table_folder
from clew.warehouse.urls import has_unescaped_delimiter, mask_urls

_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_PERMISSION = (errno.EACCES, errno.EPERM, errno.EROFS)
_URL_WITH_ONE_SLASH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/(?!/)")
"""At least two letters: one letter is a Windows drive."""
_PARTIAL_OBJECT = re.compile(r"\.(?:[0-9a-f]{2}-)?[0-9a-f]{32}\.parquet\.[0-9a-f]{8}")
"""The name of an object of a folder while it is written."""
_OBJECT_MODE = 0o600
"""Objects hold what sessions hold: only their owner may read them."""
_FSYNC_THREADS = 8
_OBJECT_STORES = frozenset("s3 s3a gs gcs abfs abfss adl az oss oci tos".split())
"""Stores in which an object is complete or absent. The other protocols of fsspec have folders and partial files."""
_S3_OPTIONS = {"config_kwargs": {"connect_timeout": 10, "read_timeout": 60, "retries": {"max_attempts": 3}}}
_TRIES_IF_DELETED = 4

T = TypeVar("T")


class Object(NamedTuple):
    """An object of a lake."""

    name: str
    size: int
    written: float
    """Seconds since 1970."""


class Store(Protocol):
    """Objects by name."""

    display_url: str
    """The name of the store in messages, without a password."""
    max_parallel: int
    """How many objects to read or write at the same time."""

    def list(self, folder: str) -> list[Object]:
        """The objects below a folder, sorted by name; none if there is no such folder."""
        ...

    def put(self, name: str, content: bytes) -> bool:
        """Create an object; False if it existed."""
        ...

    def read(self, name: str) -> bytes:
        """The content of an object. Raises FileNotFoundError if it was removed."""
        ...

    def remove(self, name: str) -> None:
        """Remove an object if it exists."""
        ...

    def fsync(self) -> None:
        """Make everything that was put durable."""
        ...

    def url(self, name: str) -> str:
        """The path or URL of an object, for engines."""
        ...


def open_store(target: str) -> Store:
    """The store at a path or URL; nothing is read yet."""
    check_target(target)
    folder = _local_folder(target)
    if folder is not None:
        return FolderStore(Path(folder))
    store = RemoteStore(target)
    innermost = store.fs
    while (inner := getattr(innermost, "fs", None)) is not None:
        innermost = inner
    protocols = (innermost.protocol,) if isinstance(innermost.protocol, str) else tuple(innermost.protocol)
    if "file" not in protocols:
        return store
    # fsspec would create files that others may read.
    if innermost is not store.fs:
        raise UsageError("the lake: name a folder of this machine by its path")
    return FolderStore(Path(store.root))


def check_target(target: str) -> None:
    """Raise UsageError if a lake cannot be there. The message does not repeat the target: it may hold a password."""
    scheme, mark, rest = target.partition("://")
    if not (scheme and rest if mark else target):
        raise UsageError("name a folder or a URL for the lake")
    if not mark and _URL_WITH_ONE_SLASH.match(target):
        raise UsageError("the lake: a URL has two slashes, as in s3://bucket/folder")
    if mark and scheme == "memory":
        raise UsageError("the lake: memory:// is empty again when clew ends")
    if mark and has_unescaped_delimiter(rest, path_may_hold_at=True):
        raise UsageError("the lake: write @ as %40 and / as %2F in a user name or password")


def _local_folder(target: str) -> str | None:
    """The folder of this machine that a target names; None for the URL of another store."""
    scheme, mark, rest = target.partition("://")
    return target if not mark else rest if scheme == "file" else None


def absolute_target(target: str) -> str:
    """The target for a process that runs in another folder."""
    check_target(target)
    folder = _local_folder(target)
    return target if folder is None else str(Path(folder).absolute())


def list_objects(store: Store, *tables: str) -> list[Object]:
    """The objects of tables, in this order."""
    return [one for table in tables for one in store.list(table_folder(table)) if month_of(one.name)]


def check_lake(store: Store, *, must_exist: bool = False) -> None:
    """Raise TargetRefused for a lake of a newer version, and UnknownReference if there must be one and is not."""
    versions = [one.name for one in store.list(f"{VERSION_DIR}/")]
    if must_exist and not versions:
        raise no_lake(store.display_url)
    check_version(versions, store.display_url)


def retry_if_deleted(work: Callable[[], T], display_url: str) -> T:
    """Repeat work that read an object which compaction replaced meanwhile: its rows are in another object now."""
    for _ in range(_TRIES_IF_DELETED):
        with suppress(FileNotFoundError):
            return work()
    raise RemoteFailed(f"{display_url}: objects are removed while they are read")


@contextmanager
def _translate_errors(display_url: str, *, writing: bool = False, may_be_missing: bool = False) -> Iterator[None]:
    """Turn errors of a store into ours: no space, no permission, not reachable. The original text may hold secrets.

    `may_be_missing`: FileNotFoundError passes.
    """
    try:
        yield
    except ClewError:
        raise
    except OSError as error:
        if may_be_missing and isinstance(error, FileNotFoundError):
            raise
        if error.errno in _FULL:
            message = "no space left; complete sessions are kept, the next run continues"
            raise TargetRefused(f"{display_url}: {message}") from error
        if writing and error.errno in _NO_PERMISSION:
            raise TargetRefused(f"{display_url}: cannot be written to ({error.strerror})") from error
        raise RemoteFailed(f"{display_url}: {_reason(error)}") from error
    except Exception as error:
        raise RemoteFailed(f"{display_url}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    from clew.warehouse.privacy import redact_error  # loads the rules for secrets

    text = redact_error(mask_urls(str(getattr(error, "strerror", None) or error)))
    return f"cannot be reached ({text or type(error).__name__})"


class FolderStore:
    """A folder of this machine. Its files are readable by their owner alone; links are refused."""

    max_parallel = 1

    def __init__(self, folder: Path) -> None:
        self._folder, self.display_url = folder.absolute(), str(folder)
        self._not_synced: set[Path] = set()

    def list(self, folder: str) -> list[Object]:
        with _translate_errors(self.display_url):
            return sorted(self._walk(self._path(folder)))

    def _walk(self, folder: Path) -> Iterator[Object]:
        # A folder that cannot be read must not look empty: compaction removes rows that no batch names.
        for parent, folders, files in os.walk(folder, onerror=_raise_unless_missing):
            folders.sort()
            for name in folders:
                self._check_type(Path(parent) / name)
            for name in files:
                path = Path(parent) / name
                with suppress(FileNotFoundError):
                    if not name.startswith("."):
                        found = self._check_type(path)
                        yield Object(path.relative_to(self._folder).as_posix(), found.st_size, found.st_mtime)

    def _path(self, name: str) -> Path:
        """The path of an object or folder, after a check of every folder above it."""
        path = self._folder
        for part in name.rstrip("/").split("/"):
            path /= part
            with suppress(FileNotFoundError, NotADirectoryError):
                self._check_type(path)
        return path

    def _check_type(self, path: Path) -> os.stat_result:
        """Refuse links, pipes and devices: another user could have created them in a shared folder."""
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
            kind = "a link" if stat.S_ISLNK(found.st_mode) else "a pipe or device"
            name = path.relative_to(self._folder)
            raise TargetRefused(f"{self.display_url}: {name} is {kind}, and must be a file or a folder")
        return found

    def put(self, name: str, content: bytes) -> bool:
        """See `Store`: written under a temporary name, then linked, so that an object is complete or absent."""
        path = self._path(name)
        # Also if it exists: the process that wrote it may not have synced it yet.
        self._not_synced.add(path)
        with _translate_errors(self.display_url, writing=True):
            if path.exists():
                return False
            private_folder(str(path.parent))
            temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}"
            try:
                temporary.touch(_OBJECT_MODE, exist_ok=False)
                temporary.write_bytes(content)
                return _link(temporary, path)
            finally:
                temporary.unlink(missing_ok=True)

    def read(self, name: str) -> bytes:
        with _translate_errors(self.display_url, may_be_missing=True):
            return self._path(name).read_bytes()

    def remove(self, name: str) -> None:
        with _translate_errors(self.display_url, writing=True):
            self._path(name).unlink(missing_ok=True)

    def fsync(self) -> None:
        """See `Store`: in threads, because each call waits for the disk."""
        folders = {folder for path in self._not_synced for folder in _folders_up_to(path.parent, self._folder)}
        with _translate_errors(self.display_url, writing=True), ThreadPoolExecutor(_FSYNC_THREADS) as pool:
            list(pool.map(_fsync_file, self._not_synced))
            list(pool.map(sync_folder, folders))
        self._not_synced = set()

    def url(self, name: str) -> str:
        return str(self._path(name))

    def remove_partial(self, before: float) -> None:
        """Remove the temporary files of killed writers that were written before a time."""
        with _translate_errors(self.display_url, writing=True):
            for path in self._folder.glob("table=*/*=*/.*"):
                is_inside = not path.parent.is_symlink() and not path.parent.parent.is_symlink()
                if is_inside and _PARTIAL_OBJECT.fullmatch(path.name):
                    with suppress(FileNotFoundError):
                        if path.lstat().st_mtime < before:
                            path.unlink()


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _fsync_file(path: Path) -> None:
    with suppress(FileNotFoundError), path.open("rb") as file:
        os.fsync(file.fileno())


def _folders_up_to(folder: Path, top: Path) -> Iterator[Path]:
    yield folder
    while folder != top:
        folder = folder.parent
        yield folder


def _link(temporary: Path, path: Path) -> bool:
    """Give a complete file its name; False if the name exists."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno in _FULL:
            raise
        # A file system without hard links. A second writer replaces the file by equal content.
        temporary.replace(path)
    return True


class RemoteStore:
    """Any other store of fsspec: S3, other object stores, web folders, other machines."""

    max_parallel = 16

    def __init__(self, target: str) -> None:
        require_extra("lake")
        self.display_url = mask_urls(target)
        scheme = target.partition("://")[0]
        self._has_folders = scheme not in _OBJECT_STORES
        is_s3 = scheme in ("s3", "s3a")
        if is_s3:
            require_extra("s3")
        self.fs, self.root = _open_fsspec(target, _S3_OPTIONS if is_s3 else {})

    def list(self, folder: str) -> list[Object]:
        with _translate_errors(self.display_url):
            self.fs.invalidate_cache()
            try:
                found = self._find(f"{self.root}/{folder}")
            except FileNotFoundError:
                # An empty folder; but a bucket that does not exist is an error.
                self.fs.ls(self.root.split("/")[0], detail=False)
                return []
        start = len(self.root.lstrip("/")) + 1 if self.root else 0
        return sorted(
            Object(path.lstrip("/")[start:], entry.get("size") or 0, _written(entry)) for path, entry in found.items()
        )

    def _find(self, folder: str) -> dict[str, dict[str, Any]]:
        """Every file below a folder, by path."""
        if not self._has_folders:
            every: dict[str, dict[str, Any]] = self.fs.find(folder, detail=True)
            return every
        found, folders = {}, [folder]
        while folders:
            # A folder may be removed meanwhile; but one that cannot be read must not look empty.
            with suppress(FileNotFoundError):
                for entry in self.fs.ls(folders.pop(), detail=True):
                    if entry["type"] == "directory":
                        folders.append(entry["name"])
                    else:
                        found[entry["name"]] = entry
        return found

    def put(self, name: str, content: bytes) -> bool:
        """See `Store`. Equal names have equal content, so a second writer does no harm."""
        path = f"{self.root}/{name}"
        with _translate_errors(self.display_url):
            if self._has_folders:
                return self._write_and_rename(path, content)
            try:
                self.fs.pipe_file(path, content, mode="create")
            except FileExistsError:
                return False
            except (TypeError, ValueError, NotImplementedError):  # a store that cannot create exclusively
                if self.fs.exists(path):
                    return False
                self.fs.pipe_file(path, content)
        return True

    def _write_and_rename(self, path: str, content: bytes) -> bool:
        """Write under a temporary name first: a lost connection must not leave a partial object."""
        if self.fs.exists(path):
            return False
        folder, _, name = path.rpartition("/")
        self.fs.makedirs(folder, exist_ok=True)
        temporary = f"{folder}/.{name}.{secrets.token_hex(4)}"
        self.fs.pipe_file(temporary, content)
        self.fs.mv(temporary, path)
        return True

    def read(self, name: str) -> bytes:
        with _translate_errors(self.display_url, may_be_missing=True):
            content: bytes = self.fs.cat_file(f"{self.root}/{name}")
        return content

    def remove(self, name: str) -> None:
        with _translate_errors(self.display_url), suppress(FileNotFoundError):
            self.fs.rm_file(f"{self.root}/{name}")

    def fsync(self) -> None:
        """See `Store`: an object that was put is durable."""

    def url(self, name: str) -> str:
        path: str = self.fs.unstrip_protocol(f"{self.root}/{name}")
        return path


def _open_fsspec(target: str, options: dict[str, Any]) -> tuple[Any, str]:
    import fsspec

    with _translate_errors(mask_urls(target)):
        try:
            fs, root = fsspec.core.url_to_fs(target, use_listings_cache=False, **options)
        except (ValueError, ImportError) as error:
            raise UsageError(f"{mask_urls(target)}: {mask_urls(str(error))}") from None
    return fs, str(root).rstrip("/")


def _written(entry: dict[str, Any]) -> float:
    """The time of a file; every implementation of fsspec has a key of its own for it."""
    for key in ("LastModified", "mtime", "created", "last_modified", "updated"):
        when = entry.get(key)
        if isinstance(when, datetime):
            return when.timestamp()
        if isinstance(when, int | float):
            return float(when)
    return time.time()


def put_all(
    store: Store, objects: Iterable[tuple[str, bytes]], on_created: Callable[[int], None] | None = None
) -> list[str]:
    """Put objects, several at a time; returns the names of those that existed. `on_created` gets the bytes of each."""
    existed = []
    objects = iter(objects)
    with ThreadPoolExecutor(store.max_parallel) as pool:
        while group := list(islice(objects, store.max_parallel * 4)):
            created = pool.map(lambda one: store.put(*one), group)
            for (name, content), is_new in zip(group, created, strict=True):
                if not is_new:
                    existed.append(name)
                elif on_created is not None:
                    on_created(len(content))
    return existed
