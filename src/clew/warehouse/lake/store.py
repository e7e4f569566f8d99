"""Where a lake lies: a folder, or anything fsspec knows. Objects are put, read, listed and removed; never changed."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from clew.datadir import private_folder
from clew.errors import ClewError, RemoteFailed, TargetRefused, UsageError
from clew.io.atomic import sync_folder

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_HALF_A_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/(?!/)")
"""Two letters at least: one is a drive."""
_PASSWORD = re.compile(r"(?<=://)[^/\s]*@")
"""Up to the last @: a password may hold another."""
_QUERY = re.compile(r"(://[^\s?]*)\?\S*")
_SYNCED = 8
_HALF_WRITTEN = re.compile(r"\.(?:[0-9a-f]{2}-)?[0-9a-f]{32}\.parquet\.[0-9a-f]{8}")
"""What an object is called while it is written to a folder."""
_OWN = 0o600
"""The mode of objects in a folder: they hold what sessions hold, and nobody else need read them."""
_OBJECT_STORES = frozenset("s3 s3a gs gcs abfs abfss adl az oss oci tos".split())
"""Where an object is whole or not there, and a list whole or an error. Elsewhere there are folders with files."""
_S3 = {"config_kwargs": {"connect_timeout": 10, "read_timeout": 60, "retries": {"max_attempts": 3}}}


class Object(NamedTuple):
    """An object of a lake."""

    name: str
    size: int
    written: float
    """When, in seconds since 1970."""


class Store(Protocol):
    """Objects by their names."""

    shown: str
    """What it is called in messages: without a password."""
    at_once: int
    """So many objects are best written at the same time."""

    def list(self, folder: str) -> list[Object]:
        """The objects below a folder, by name; none where there is no such folder."""
        ...

    def put(self, name: str, content: bytes) -> bool:
        """Create an object; False where it was there."""
        ...

    def read(self, name: str) -> bytes:
        """The content of an object. Raises FileNotFoundError where it went away."""
        ...

    def remove(self, name: str) -> None:
        """Remove an object, unless it is gone already."""
        ...

    def settle(self) -> None:
        """Make what was put outlast a power cut."""
        ...

    def url(self, name: str) -> str:
        """Where an engine finds an object."""
        ...


def shown(target: str) -> str:
    """A target as it may be printed: without user, password and query."""
    return _QUERY.sub(r"\1", _PASSWORD.sub("", target))


def open_store(target: str) -> Store:
    """The store at a path or URL. Nothing is looked at yet."""
    check_target(target)
    folder = _folder(target)
    if folder is not None:
        return FolderStore(Path(folder))
    store = RemoteStore(target)
    innermost = store.fs
    while (inner := getattr(innermost, "fs", None)) is not None:
        innermost = inner
    if "file" not in _protocols(innermost):
        return store
    # fsspec would create files that others may read.
    if innermost is not store.fs:
        raise UsageError("the lake: name a folder of this machine by its path")
    return FolderStore(Path(store.root))


def _protocols(fs: Any) -> tuple[str, ...]:
    """What a file system of fsspec is called in URLs."""
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


def check_target(target: str) -> None:
    """Raise UsageError for what is no place for a lake. Nothing of it is told: it may hold a password."""
    scheme, mark, rest = target.partition("://")
    if not (scheme and rest if mark else target):
        raise UsageError("name a folder or a URL for the lake")
    if not mark and _HALF_A_URL.match(target):
        raise UsageError("the lake: a URL is spelled with two slashes, as s3://bucket/folder")
    if mark and scheme == "memory":
        raise UsageError("the lake: what is written to memory:// is gone when clew ends")
    if mark and _is_cut(*rest.split("/", 1)):
        raise UsageError("the lake: spell @ as %40 and / as %2F where they stand in a name or a password")


def _is_cut(host: str, path: str = "") -> bool:
    """True where a password seems to hold what ends it, so that a part of it would be taken for something else."""
    is_port = "@" in host and host.rpartition(":")[2].isdigit()
    return host.count("@") > 1 or (":" in host and "@" in path and not is_port)


def _folder(target: str) -> str | None:
    """The folder of this machine that a target is; None for a URL."""
    scheme, mark, rest = target.partition("://")
    return target if not mark else rest if scheme == "file" else None


def absolute(target: str) -> str:
    """The same place for a process that was started in another folder."""
    check_target(target)
    folder = _folder(target)
    return target if folder is None else str(Path(folder).absolute())


T = TypeVar("T")
_TRIES = 4


def patiently(work: Callable[[], T], shown: str) -> T:
    """Do something again where an object went away meanwhile: then its rows stand in another."""
    for _ in range(_TRIES):
        with suppress(FileNotFoundError):
            return work()
    raise RemoteFailed(f"{shown}: objects go away while they are read")


@contextmanager
def _told(store: str, is_local: bool = False) -> Iterator[None]:
    """Errors of a store in words of ours: full, forbidden to write, out of reach. Words of a library may hold what must
    stay secret."""
    try:
        yield
    except ClewError:
        raise
    except OSError as error:
        if error.errno in _FULL:
            raise TargetRefused(f"{store}: no space left; what was complete counts, the next run goes on") from error
        if is_local and error.errno in _FORBIDDEN:
            raise TargetRefused(f"{store}: cannot be written to ({error.strerror})") from error
        raise RemoteFailed(f"{store}: {_reason(error)}") from error
    except Exception as error:
        raise RemoteFailed(f"{store}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    from clew.warehouse.privacy import told

    said = told(shown(str(getattr(error, "strerror", None) or error)))
    return f"cannot be reached ({said or type(error).__name__})"


def _content(read: Callable[[], bytes]) -> bytes | None:
    try:
        return read()
    except FileNotFoundError:
        return None


def _there(content: bytes | None, name: str) -> bytes:
    if content is None:
        raise FileNotFoundError(name)
    return content


class FolderStore:
    """A folder of this machine."""

    at_once = 1

    def __init__(self, folder: Path) -> None:
        self._folder, self.shown = folder.absolute(), str(folder)
        self._loose: set[Path] = set()

    def list(self, folder: str) -> list[Object]:
        """See `Store`."""
        with _told(self.shown):
            return sorted(self._below(self._path(folder)))

    def _path(self, name: str) -> Path:
        """Where an object or a folder of objects lies, which is checked on every way to it."""
        path = self._folder
        for part in name.rstrip("/").split("/"):
            path /= part
            with suppress(FileNotFoundError, NotADirectoryError):
                self._check(path)
        return path

    def _check(self, path: Path) -> os.stat_result:
        """Refuse what is neither file nor folder: others may write to a shared lake, so a link could lead anywhere,
        and a pipe would never end."""
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
            kind = "a link" if stat.S_ISLNK(found.st_mode) else "a pipe or device"
            raise TargetRefused(
                f"{self.shown}: {path.relative_to(self._folder)} is {kind}, and must be a file or a folder"
            )
        return found

    def _below(self, folder: Path) -> Iterator[Object]:
        # A folder that cannot be read must not look empty: what nobody names is removed one day.
        for place, folders, files in os.walk(folder, onerror=_unless_missing):
            folders.sort()
            for name in folders:
                self._check(Path(place) / name)
            for name in files:
                if not name.startswith("."):
                    path = Path(place) / name
                    with suppress(FileNotFoundError):
                        found = self._check(path)
                        named = path.relative_to(self._folder).as_posix()
                        yield Object(named, found.st_size, found.st_mtime)

    def put(self, name: str, content: bytes) -> bool:
        """See `Store`: written under another name, then linked, so that it is whole or not there."""
        path = self._path(name)
        # One that is there may not have reached the disk: whoever put it could have been killed.
        self._loose.add(path)
        with _told(self.shown, is_local=True):
            if path.exists():
                return False
            private_folder(str(path.parent))
            beside = path.parent / f".{path.name}.{secrets.token_hex(4)}"
            try:
                beside.touch(_OWN, exist_ok=False)
                beside.write_bytes(content)
                return _created(beside, path)
            finally:
                beside.unlink(missing_ok=True)

    def read(self, name: str) -> bytes:
        """See `Store`."""
        with _told(self.shown):
            path = self._path(name)
            content = _content(path.read_bytes)
        return _there(content, name)

    def remove(self, name: str) -> None:
        """See `Store`."""
        with _told(self.shown, is_local=True):
            self._path(name).unlink(missing_ok=True)

    def settle(self) -> None:
        """See `Store`: several at a time, because each waits for the disk."""
        from concurrent.futures import ThreadPoolExecutor

        folders = {folder for path in self._loose for folder in _up_to(path.parent, self._folder)}
        with _told(self.shown, is_local=True), ThreadPoolExecutor(_SYNCED) as pool:
            list(pool.map(_sync, self._loose))
            list(pool.map(sync_folder, folders))
        self._loose = set()

    def url(self, name: str) -> str:
        """See `Store`."""
        return str(self._path(name))

    def sweep(self, before: float) -> None:
        """Remove what writers that were killed left half done before a time."""
        with _told(self.shown, is_local=True):
            for path in self._folder.glob("table=*/day=*/.*"):
                is_inside = not path.parent.is_symlink() and not path.parent.parent.is_symlink()
                if not is_inside or not _HALF_WRITTEN.fullmatch(path.name):
                    continue
                with suppress(FileNotFoundError):
                    if path.lstat().st_mtime < before:
                        path.unlink()


def _unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _sync(path: Path) -> None:
    with suppress(FileNotFoundError), path.open("rb") as file:
        os.fsync(file.fileno())


def _up_to(folder: Path, top: Path) -> Iterator[Path]:
    yield folder
    while folder != top:
        folder = folder.parent
        yield folder


def _created(beside: Path, path: Path) -> bool:
    try:
        os.link(beside, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno in _FULL:
            raise
        # A file system without links; the content is the same, whoever comes last.
        beside.replace(path)
    return True


class RemoteStore:
    """Anything else that fsspec knows: S3 and its kin, web folders, other machines."""

    at_once = 16

    def __init__(self, target: str) -> None:
        from clew.warehouse.extras import need

        need("lake")
        self.shown = shown(target)
        scheme = target.partition("://")[0]
        self._has_folders = scheme not in _OBJECT_STORES
        if scheme in ("s3", "s3a"):
            need("s3")
        self.fs, self.root = _opened(target, _S3 if scheme in ("s3", "s3a") else {})

    def list(self, folder: str) -> list[Object]:
        """See `Store`."""
        with _told(self.shown):
            self.fs.invalidate_cache()
            try:
                found = self._below(f"{self.root}/{folder}")
            except FileNotFoundError:
                # A folder that nothing was put into; but a bucket that is not there is an error.
                self.fs.ls(self.root.split("/")[0], detail=False)
                return []
        start = len(self.root.lstrip("/")) + 1 if self.root else 0
        objects = (
            Object(path.lstrip("/")[start:], about.get("size") or 0, _seconds(about)) for path, about in found.items()
        )
        return sorted(objects)

    def _below(self, folder: str) -> dict[str, dict[str, Any]]:
        """What is known of every file below a folder, by their paths."""
        if not self._has_folders:
            every: dict[str, dict[str, Any]] = self.fs.find(folder, detail=True)
            return every
        found, folders = {}, [folder]
        while folders:
            # A folder may go while it is looked for; but one that cannot be read must not look empty.
            with suppress(FileNotFoundError):
                for about in self.fs.ls(folders.pop(), detail=True):
                    if about["type"] == "directory":
                        folders.append(about["name"])
                    else:
                        found[about["name"]] = about
        return found

    def put(self, name: str, content: bytes) -> bool:
        """See `Store`. The same name always has the same content, so a second writer does no harm."""
        path = f"{self.root}/{name}"
        with _told(self.shown):
            if self._has_folders:
                return self._move_in(path, content)
            try:
                self.fs.pipe_file(path, content, mode="create")
            except FileExistsError:
                return False
            except (TypeError, ValueError, NotImplementedError):
                if self.fs.exists(path):
                    return False
                self.fs.pipe_file(path, content)
        return True

    def _move_in(self, path: str, content: bytes) -> bool:
        """Written under another name first: a line that is cut must not leave half of it under this one."""
        if self.fs.exists(path):
            return False
        folder, _, name = path.rpartition("/")
        self.fs.makedirs(folder, exist_ok=True)
        beside = f"{folder}/.{name}.{secrets.token_hex(4)}"
        self.fs.pipe_file(beside, content)
        self.fs.mv(beside, path)
        return True

    def read(self, name: str) -> bytes:
        """See `Store`."""
        with _told(self.shown):
            content = _content(lambda: self.fs.cat_file(f"{self.root}/{name}"))
        return _there(content, name)

    def remove(self, name: str) -> None:
        """See `Store`."""
        with _told(self.shown), suppress(FileNotFoundError):
            self.fs.rm_file(f"{self.root}/{name}")

    def settle(self) -> None:
        """See `Store`: what is put is there."""

    def url(self, name: str) -> str:
        """See `Store`."""
        path: str = self.fs.unstrip_protocol(f"{self.root}/{name}")
        return path


def _opened(target: str, options: dict[str, Any]) -> tuple[Any, str]:
    import fsspec

    with _told(shown(target)):
        try:
            fs, root = fsspec.core.url_to_fs(target, use_listings_cache=False, **options)
        except (ValueError, ImportError) as error:
            raise UsageError(f"{shown(target)}: {shown(str(error))}") from None
    return fs, str(root).rstrip("/")


def _seconds(about: dict[str, Any]) -> float:
    for key in ("LastModified", "mtime", "created", "last_modified", "updated"):
        when = about.get(key)
        if isinstance(when, datetime):
            return when.timestamp()
        if isinstance(when, int | float):
            return float(when)
    return time.time()


def put_all(store: Store, objects: Iterable[tuple[str, bytes]], tell: Callable[[int], None] | None = None) -> list[str]:
    """Put many objects, several at a time; returns those that were there already."""
    from concurrent.futures import ThreadPoolExecutor

    def put(one: tuple[str, bytes]) -> tuple[str, bool, int]:
        return one[0], store.put(*one), len(one[1])

    there = []
    with ThreadPoolExecutor(store.at_once) as pool:
        objects = iter(objects)
        while some := list(islice(objects, store.at_once * 4)):
            for name, is_new, size in pool.map(put, some):
                if not is_new:
                    there.append(name)
                elif tell is not None:
                    tell(size)
    return there
