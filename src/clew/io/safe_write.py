"""Files written below one folder and nowhere else, all of them or none.

Paths come from records, which are untrusted. A path must be plain on every system. Each folder on the way is opened
from the one above it, links are never followed, and a file is written under a temporary name and then renamed.
Temporary files of processes that died are removed by the next process that writes into the same folder.

There may be more folders than a process may have open, so only some stay open. One that is opened again must be the
folder it was.
"""

from __future__ import annotations

import errno
import os
import platform
import re
import secrets
import stat
import time
import unicodedata
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import msgspec

from clew.errors import PathRefused, SourceUnreadable, UsageError
from clew.io.atomic import may_run
from clew.io.paths import MAX_FOLDER_DEPTH

_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE | re.DOTALL
)
_EXPANDED = re.compile(r"~|\$|%[^%]+%")
"""How a path begins that some programs expand to a folder elsewhere."""
_MAX_NAME_BYTES = 255
_TEMPORARY = re.compile(r"\.clew-([0-9a-f]{8})-(\d{1,9})-[0-9a-f]{8}\.(?:tmp|old|é)")
"""Names of temporary files, with the machine and the process that they belong to."""
_HERE = f"{zlib.crc32(platform.node().encode()):08x}"
_ABANDONED_SECONDS = 86_400
"""The age at which a temporary file of another machine is removed."""
WIDEST = 0o755
_FILE_MODE = 0o644
_FOLDER_MODE = 0o755
MAX_OPEN_FOLDERS = 48
"""Per `Within`, beside its root. A restore uses three of them at once, and some systems allow 256 open files."""

Parts = tuple[str, ...]


class CaseCollisionError(PathRefused):
    """Two names that are the same file on some systems."""


class Change(NamedTuple):
    """A file to write, or to remove if there is no body."""

    path: str
    body: bytes | None
    mode: int | None = None
    """None: as the file that is there, else as new ones are."""
    mtime_ns: int | None = None
    """When it was last written; None: now."""
    link: bytes | None = None
    """Where it leads, if it is to be a link and no file."""
    over: bytes | None = None
    """Where the link leads that it takes the place of; any other link that is there is refused."""

    @property
    def is_removal(self) -> bool:
        """True where nothing is to be there."""
        return self.body is None and self.link is None


def parts_of(path: str) -> Parts:
    """Return the parts of a relative path from untrusted text; refuse what could lead elsewhere on any system."""
    parts = own_parts_of(path)
    if len(parts) > MAX_FOLDER_DEPTH:
        raise PathRefused(f"{path[:100]!r}... is nested too deeply")
    for part in parts:
        if "\\" in part or ":" in part:
            raise PathRefused(f"{path!r} is not a plain path below a folder")
        if part[-1] in ". " or _RESERVED.fullmatch(part):
            raise PathRefused(f"{path!r} is not a valid path on Windows")
    if _EXPANDED.match(parts[0]):
        raise PathRefused(f"{path!r} begins like an absolute path")
    return parts


def own_parts_of(path: str) -> Parts:
    """Return the parts of a path that was found on this system; other systems may read it differently."""
    parts = tuple(path.split("/"))
    for part in parts:
        if part in ("", ".", "..") or "\0" in part:
            raise PathRefused(f"{path!r} is not a plain path below a folder")
        try:
            size = len(os.fsencode(part))
        except UnicodeEncodeError:
            raise PathRefused(f"{path!r} cannot be a file name") from None
        if size > _MAX_NAME_BYTES:
            raise PathRefused(f"{path!r} has a part that is too long")
    return parts


def refuse_twins(paths: Sequence[str]) -> None:
    """Refuse names that are the same file on some file systems."""
    seen: dict[Parts, Parts] = {}
    for path in paths:
        parts = own_parts_of(path)
        for end in range(1, len(parts) + 1):
            part = parts[:end]
            other = seen.setdefault(tuple(fold(one) for one in part), part)
            if other != part:
                raise CaseCollisionError(
                    f"{'/'.join(other)!r} and {'/'.join(part)!r} are the same file on some systems"
                )


def fold(name: str) -> str:
    """Return a key that is equal for names that differ only in case or in how letters are composed."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


class _Step(msgspec.Struct):
    """A change on its way: temporary names in the folder that it is made in."""

    folder: Parts
    name: str
    new: str | None = None
    """The file that is renamed to `name`; None: the file is removed."""
    backup: str | None = None
    """A second name of the file that was there."""


class Within:
    """One folder that the user chose; a context manager.

    Names that are the same file on some file systems are refused; with `apart`, only if they are on this one. Names
    that mean something else on other systems are refused too, unless they are `own`: found on this system. New folders
    get `folder_mode`, as far as the umask allows.
    """

    def __init__(
        self, folder: Path, *, apart: bool = False, own: bool = False, folder_mode: int = _FOLDER_MODE
    ) -> None:
        if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
            raise UsageError("files cannot be restored safely on this system")
        self._parts_of = own_parts_of if own else parts_of
        self._folder_mode = folder_mode
        self._root = _open_root(folder)
        self._open_folders: OrderedDict[Parts, int] = OrderedDict()
        """Descriptors, the least recently used first."""
        self._identities: dict[Parts, tuple[int, int]] = {}
        """Device and inode of every folder that was opened."""
        self._names: dict[Parts, dict[str, set[str]]] = {}
        self._made: list[tuple[Parts, str]] = []
        self._lets_twins: bool | None = None if apart else False
        """None: not tested yet."""

    def __enter__(self) -> Within:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for descriptor in self._open_folders.values():
            os.close(descriptor)
        self._open_folders.clear()
        if self._root >= 0:
            os.close(self._root)
            self._root = -1

    def read(self, path: str) -> bytes | None:
        """The content of a file; None where there is none. Refuses anything that is not a regular file."""
        above, folder, name = self._locate(path)
        if folder is None or self._check(above, folder, name, path) is None:
            return None
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(name, flags, dir_fd=folder), "rb") as handle:
            if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
                raise PathRefused(f"{path!r} is not a regular file")
            return handle.read()

    def link(self, path: str) -> bytes | None:
        """Return the target of a link, which is not followed; None if there is no link."""
        above, folder, name = self._locate(path)
        if folder is None:
            return None
        self._refuse_twin(above, folder, name, path)
        return _leads_to(folder, name)

    def is_folder(self, path: str) -> bool:
        """True where there is a folder, and no file."""
        _, folder, name = self._locate(path)
        try:
            return folder is not None and stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        except FileNotFoundError:
            return False

    def mode(self, path: str) -> int | None:
        """The mode of a file; None where there is none."""
        above, folder, name = self._locate(path)
        return self._check(above, folder, name, path) if folder is not None else None

    def apply(self, changes: Sequence[Change]) -> None:
        """Make all changes. If one fails, none is made: what was there is there again."""
        try:
            refuse_twins([change.path for change in changes])
        except CaseCollisionError:
            if not self._tells_apart():
                raise
        steps: list[_Step] = []
        begun: list[_Step] = []
        try:
            for change in changes:
                steps.append(self._prepare(change))  # noqa: PERF401 - what is prepared must be known if one fails
            for step in steps:
                folder = self._descriptor(step.folder)
                _back_up(folder, step)
                begun.append(step)
                if step.new is not None:
                    os.rename(step.new, step.name, src_dir_fd=folder, dst_dir_fd=folder)
                elif step.backup is not None:
                    os.unlink(step.name, dir_fd=folder)
            # A folder that was made lasts only with its name in the one above it.
            for parts in {step.folder for step in steps} | {above for above, _ in self._made}:
                os.fsync(self._descriptor(parts))
        except BaseException:
            self._roll_back(steps, begun)
            raise
        for step in steps:
            if step.backup is not None:
                with suppress(OSError, PathRefused):
                    os.unlink(step.backup, dir_fd=self._descriptor(step.folder))
        for parts in {step.folder for step in steps}:
            with suppress(OSError, PathRefused):
                _remove_abandoned(self._descriptor(parts))
        self._made.clear()

    def clear(self, paths: Sequence[str]) -> None:
        """Remove the temporary files of processes that died from the folders of these files."""
        for path in paths:
            with suppress(PathRefused):  # where there is no such folder, nothing was left in it
                _, folder, _ = self._locate(path)
                if folder is not None:
                    _remove_abandoned(folder)

    def _locate(self, path: str, *, make: bool = False) -> tuple[Parts, int | None, str]:
        """The folder of a path, its descriptor or None where it is missing, and the name of the file."""
        *above, name = self._parts_of(path)
        return tuple(above), self._open(tuple(above), path, make), name

    def _prepare(self, change: Change) -> _Step:
        """Write the new file under a temporary name."""
        above, folder, name = self._locate(change.path, make=not change.is_removal)
        if folder is None:
            raise PathRefused(f"{change.path!r} is not there")
        known = self._check(above, folder, name, change.path, change.over)
        if change.link is not None:
            new = _temporary("tmp")
            os.symlink(change.link, os.fsencode(new), dir_fd=folder)
            return _Step(above, name, new)
        if change.body is None:
            return _Step(above, name)
        mode = change.mode if change.mode is not None else known if known is not None else _FILE_MODE
        return _Step(above, name, _write(folder, change.body, mode & WIDEST, change.mtime_ns))

    def _check(self, above: Parts, folder: int, name: str, path: str, over: bytes | None = None) -> int | None:
        """The mode of what is in the place, which must be a regular file; None where there is nothing.

        The one link that may be there counts as nothing.
        """
        self._refuse_twin(above, folder, name, path)
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if over is not None and stat.S_ISLNK(found.st_mode) and _leads_to(folder, name) == over:
            return None
        if not stat.S_ISREG(found.st_mode):
            raise PathRefused(f"{path!r} is not a regular file")
        return stat.S_IMODE(found.st_mode)

    def _open(self, parts: Parts, path: str, make: bool) -> int | None:
        """The descriptor of a folder; made where it is missing, if wanted. None where it is missing and not made.

        The descriptor is valid until the next folder is opened.
        """
        for end in range(1, len(parts) + 1):
            above, name = parts[: end - 1], parts[end - 1]
            if parts[:end] in self._identities:
                continue
            folder = self._descriptor(above)
            self._refuse_twin(above, folder, name, path)
            try:
                self._keep(parts[:end], _open_folder(folder, name))
            except FileNotFoundError:
                if not make:
                    return None
                os.mkdir(name, self._folder_mode, dir_fd=folder)
                self._made.append((above, name))
                self._keep(parts[:end], _open_folder(folder, name))
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise PathRefused(f"{path!r} leads through a link or a file") from None
                raise
        return self._descriptor(parts)

    def _descriptor(self, parts: Parts) -> int:
        """The descriptor of a folder that was opened before; opened again where it was closed meanwhile.

        Raises PathRefused where another folder, a link or nothing is in its place by now.
        """
        start = len(parts)
        while start and parts[:start] not in self._open_folders:
            start -= 1
        descriptor = self._root
        if start:
            self._open_folders.move_to_end(parts[:start])
            descriptor = self._open_folders[parts[:start]]
        try:
            for end in range(start + 1, len(parts) + 1):
                descriptor = self._keep(parts[:end], _open_folder(descriptor, parts[end - 1]))
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENOENT):
                raise PathRefused(f"{'/'.join(parts)!r} was replaced while it was in use") from None
            raise
        return descriptor

    def _keep(self, parts: Parts, descriptor: int) -> int:
        """Take over a descriptor that was opened, and close the one that was not used for longest if there are many."""
        try:
            found = os.fstat(descriptor)
            identity = (found.st_dev, found.st_ino)
            if self._identities.setdefault(parts, identity) != identity:
                raise PathRefused(f"{'/'.join(parts)!r} was replaced while it was in use")
        except BaseException:
            os.close(descriptor)
            raise
        self._open_folders[parts] = descriptor
        if len(self._open_folders) > MAX_OPEN_FOLDERS:
            os.close(self._open_folders.popitem(last=False)[1])
        return descriptor

    def _forget(self, parts: Parts) -> None:
        """A folder is no longer there; one that could not be opened after it was made has no identity."""
        self._identities.pop(parts, None)
        if parts in self._open_folders:
            os.close(self._open_folders.pop(parts))

    def _refuse_twin(self, above: Parts, folder: int, name: str, path: str) -> None:
        if above not in self._names:
            names = self._names[above] = {}
            for one in os.listdir(folder):
                names.setdefault(fold(one), set()).add(one)
        there = self._names[above].get(fold(name))
        if there and name not in there and not self._tells_apart():
            raise CaseCollisionError(f"{path!r}: {min(there)!r} is there, which is the same file on some systems")

    def _tells_apart(self) -> bool:
        if self._lets_twins is None:
            self._lets_twins = _tells_apart(self._root)
        return self._lets_twins

    def _roll_back(self, steps: list[_Step], begun: list[_Step]) -> None:
        for step in reversed(begun):
            with suppress(OSError, PathRefused):
                folder = self._descriptor(step.folder)
                if step.backup is not None:
                    os.rename(step.backup, step.name, src_dir_fd=folder, dst_dir_fd=folder)
                    # Two names of one file: a rename of one onto the other leaves both.
                    os.unlink(step.backup, dir_fd=folder)
                elif step.new is not None and not _is_there(folder, step.new):
                    os.unlink(step.name, dir_fd=folder)
        for step in steps:
            if step.new is not None:
                with suppress(OSError, PathRefused):
                    os.unlink(step.new, dir_fd=self._descriptor(step.folder))
        for above, name in reversed(self._made):
            with suppress(OSError, PathRefused):
                os.rmdir(name, dir_fd=self._descriptor(above))
                self._forget((*above, name))
        self._made.clear()


def _temporary(suffix: str) -> str:
    return f".clew-{_HERE}-{os.getpid()}-{secrets.token_hex(4)}.{suffix}"


def _remove_abandoned(folder: int) -> None:
    """Remove the temporary files of dead processes. What they held is kept elsewhere: a file is copied before."""
    for name in os.listdir(folder):
        found = _TEMPORARY.fullmatch(name)
        if found is None:
            continue
        with suppress(OSError):
            if found[1] == _HERE:
                is_abandoned = not may_run(int(found[2]))
            else:
                age = time.time() - os.stat(name, dir_fd=folder, follow_symlinks=False).st_ctime
                is_abandoned = age > _ABANDONED_SECONDS
            if is_abandoned:
                os.unlink(name, dir_fd=folder)


def _open_root(folder: Path) -> int:
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SourceUnreadable(f"{folder}: {error.strerror}") from error


def _open_folder(above: int, name: str) -> int:
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)


def _write(folder: int, body: bytes, mode: int, mtime_ns: int | None) -> str:
    """A new file in the folder, durable; returns its name."""
    name = _temporary("tmp")
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    try:
        with open(descriptor, "wb") as handle:
            handle.write(body)
            handle.flush()
            os.fchmod(handle.fileno(), mode)
            if mtime_ns is not None:
                os.utime(handle.fileno(), ns=(mtime_ns, mtime_ns))
            os.fsync(handle.fileno())
    except BaseException:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
        raise
    return name


def _leads_to(folder: int, name: str) -> bytes | None:
    try:
        return os.readlink(os.fsencode(name), dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.EINVAL:  # it is something else
            return None
        raise


def _tells_apart(folder: int) -> bool:
    """Whether names that differ only in case, or in how letters are composed, are two files here."""
    name = _temporary("é")
    os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder))
    try:
        return not any(_is_there(folder, other) for other in (name.upper(), unicodedata.normalize("NFD", name)))
    finally:
        os.unlink(name, dir_fd=folder)


def _back_up(folder: int, step: _Step) -> None:
    """Give the file that is there a second name."""
    backup = _temporary("old")
    with suppress(FileNotFoundError):
        os.link(step.name, backup, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        step.backup = backup


def _is_there(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
