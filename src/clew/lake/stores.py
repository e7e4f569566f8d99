"""Where a lake lies: a folder, or anything fsspec knows. Objects are put, read, listed and removed; never changed."""

from __future__ import annotations

import errno
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from clew.errors import ClewError, RemoteFailed, TargetRefused, UsageError
from clew.io.atomic import sync_folder

_FULL = (errno.ENOSPC, errno.EDQUOT)
_PASSWORD = re.compile(r"(?<=://)[^/@\s]*@")
_QUERY = re.compile(r"(://[^\s?]*)\?\S*")
_SYNCED = 8
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
    scheme, mark, rest = target.partition("://")
    if not target or (mark and not scheme):
        raise UsageError("name a folder or a URL for the lake")
    if not mark:
        return FolderStore(Path(target))
    if scheme == "file":
        return FolderStore(Path(rest))
    return RemoteStore(target)


T = TypeVar("T")
_TRIES = 4


def patiently(work: Callable[[], T], shown: str) -> T:
    """Do something again where an object went away meanwhile: then its rows stand in another."""
    for _ in range(_TRIES):
        with suppress(FileNotFoundError):
            return work()
    raise RemoteFailed(f"{shown}: objects go away while they are read")


@contextmanager
def _told(store: str) -> Iterator[None]:
    """Errors of a store in words of ours: full, or out of reach. Words of a library may hold what must stay secret."""
    try:
        yield
    except ClewError:
        raise
    except OSError as error:
        if error.errno in _FULL:
            raise TargetRefused(f"{store}: no space left; what was complete counts, the next run goes on") from error
        raise RemoteFailed(f"{store}: {_reason(error)}") from error
    except Exception as error:
        raise RemoteFailed(f"{store}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    from clew.tables.levels import told

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
            return sorted(self._below(self._folder / folder))

    def _below(self, folder: Path) -> Iterator[Object]:
        for place, folders, files in os.walk(folder):
            folders.sort()
            for name in files:
                if not name.startswith("."):
                    path = Path(place) / name
                    with suppress(FileNotFoundError):
                        found = path.stat()
                        named = path.relative_to(self._folder).as_posix()
                        yield Object(named, found.st_size, found.st_mtime)

    def put(self, name: str, content: bytes) -> bool:
        """See `Store`: written under another name, then linked, so that it is whole or not there."""
        path = self._folder / name
        with _told(self.shown):
            if path.exists():
                return False
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.parent / f".{path.name}.{secrets.token_hex(4)}"
            try:
                beside.write_bytes(content)
                self._loose.add(path)
                return _created(beside, path)
            finally:
                beside.unlink(missing_ok=True)

    def read(self, name: str) -> bytes:
        """See `Store`."""
        with _told(self.shown):
            content = _content(lambda: (self._folder / name).read_bytes())
        return _there(content, name)

    def remove(self, name: str) -> None:
        """See `Store`."""
        with _told(self.shown):
            (self._folder / name).unlink(missing_ok=True)

    def settle(self) -> None:
        """See `Store`: several at a time, because each waits for the disk."""
        from concurrent.futures import ThreadPoolExecutor

        folders = {folder for path in self._loose for folder in _up_to(path.parent, self._folder)}
        with _told(self.shown), ThreadPoolExecutor(_SYNCED) as pool:
            list(pool.map(_sync, self._loose))
            list(pool.map(sync_folder, folders))
        self._loose = set()

    def url(self, name: str) -> str:
        """See `Store`."""
        return str(self._folder / name)

    def sweep(self, before: float) -> None:
        """Remove what writers that were killed left half done before a time."""
        for path in self._folder.glob("table=*/day=*/.*"):
            with suppress(OSError):
                if path.stat().st_mtime < before:
                    path.unlink()


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
        from clew.tables.extras import need

        need("lake")
        self.shown = shown(target)
        scheme = target.partition("://")[0]
        if scheme in ("s3", "s3a"):
            need("s3")
        self.fs, self.root = _opened(target, _S3 if scheme in ("s3", "s3a") else {})

    def list(self, folder: str) -> list[Object]:
        """See `Store`."""
        with _told(self.shown):
            self.fs.invalidate_cache()
            try:
                found = self.fs.find(f"{self.root}/{folder}", detail=True)
            except FileNotFoundError:
                # A folder that nothing was put into; but a bucket that is not there is an error.
                self.fs.ls(self.root.split("/")[0], detail=False)
                return []
        start = len(self.root.lstrip("/")) + 1
        objects = (
            Object(path.lstrip("/")[start:], about.get("size") or 0, _seconds(about)) for path, about in found.items()
        )
        return sorted(objects)

    def put(self, name: str, content: bytes) -> bool:
        """See `Store`. The same name always has the same content, so a second writer does no harm."""
        path = f"{self.root}/{name}"
        with _told(self.shown):
            try:
                self.fs.pipe_file(path, content, mode="create")
            except FileExistsError:
                return False
            except (TypeError, ValueError, NotImplementedError):
                if self.fs.exists(path):
                    return False
                self.fs.pipe_file(path, content)
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
