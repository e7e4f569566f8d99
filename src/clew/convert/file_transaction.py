"""Several files written below a home, all of them or none.

Every file is written whole under a temporary name before the first one is renamed. Where something fails, the files
that were renamed are removed again, and those that were replaced get their content back.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from clew.agents.backups import is_plain_file
from clew.errors import Busy, WouldLose
from clew.io.atomic import may_run, sync_folder
from clew.io.paths import refuse_link_to_session

_FILE_MODE, _FOLDER_MODE = 0o600, 0o700
"""Sessions are private: nobody else need read them."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_APPEND = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)
_BUFFER_BYTES = 1 << 20
_TEMPORARY = re.compile(r"\..+\.(\d+)-[0-9a-f]{12}\.tmp")
"""The names of temporary files, with the id of the process that writes them."""
_OLDER_SECONDS = 2
"""Some agents compare times to no less than this."""


class StagedFile:
    """A new file under a temporary name beside its path; in a dry run only its hash is kept.

    It is closed between writes: a session may have more files than a process may have open.
    """

    def __init__(self, path: Path, mode: int, *, dry_run: bool) -> None:
        self.path = path
        self.temporary = path.with_name(f".{path.name[:100]}.{os.getpid()}-{os.urandom(6).hex()}.tmp")
        self.digest = hashlib.sha256()
        self.size = 0
        self._mode, self._dry_run = mode, dry_run
        self._buffer = bytearray()
        self._is_begun = self._is_finished = False

    def write(self, piece: bytes) -> None:
        """Add to the end."""
        self.digest.update(piece)
        self.size += len(piece)
        if not self._dry_run:
            self._buffer += piece
            if len(self._buffer) >= _BUFFER_BYTES:
                self._flush()

    def _flush(self, *, durable: bool = False) -> None:
        with _naming(self.path):
            descriptor = os.open(self.temporary, _APPEND if self._is_begun else _NEW, _FILE_MODE)
            self._is_begun = True
            try:
                view = memoryview(self._buffer)
                while view:
                    view = view[os.write(descriptor, view) :]
                if durable:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
        self._buffer = bytearray()

    def finish(self) -> None:
        """Make the content durable; nothing is added afterwards."""
        if self._dry_run or self._is_finished:
            return
        self._flush(durable=True)
        if self._mode != _FILE_MODE:
            with _naming(self.path):
                self.temporary.chmod(self._mode)
        self._is_finished = True

    def is_in_place(self) -> bool:
        """Whether the path holds the same content already, as after an attempt that was killed."""
        if not is_plain_file(self.path):
            return False
        with self.path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").digest() == self.digest.digest()

    def rename(self) -> None:
        """Give the file its path."""
        with _naming(self.path):
            os.replace(self.temporary, self.path)  # noqa: PTH105 - tests let each call of the system fail

    def take_back(self) -> None:
        """Remove the file from its path, if it got there."""
        if not self.temporary.exists():
            self.path.unlink()

    def discard(self) -> None:
        """Remove the temporary file."""
        with suppress(OSError):
            self.temporary.unlink(missing_ok=True)


class _Replacement(NamedTuple):
    """New content for a file, and a copy of what it holds; None where there is no file yet."""

    staged: StagedFile
    backup: StagedFile | None
    before: bytes | None
    content: bytes

    def current(self) -> bytes | None:
        """What the file holds now."""
        return self.staged.path.read_bytes() if os.path.lexists(self.staged.path) else None

    def take_back(self) -> None:
        """Restore what was there, unless another program has changed the file since."""
        if self.current() != self.content:
            return
        if self.backup is None:
            self.staged.take_back()
        else:
            self.backup.temporary.replace(self.backup.path)


class FileTransaction:
    """New, replaced and extended files; leaving it without `commit` leaves everything as it was.

    Temporary files of processes that were killed are removed: from the folders that files come to, and from those
    above them up to the `home`. A dry run writes nothing, and refuses what a commit would refuse.
    """

    def __init__(self, home: Path | None = None, *, dry_run: bool = False) -> None:
        self._home, self._dry_run = home, dry_run
        self._new: list[StagedFile] = []
        self._last: list[StagedFile] = []
        self._replaced: list[_Replacement] = []
        self._lines: list[_AppendedLine] = []
        self._undo: list[Callable[[], object]] = []
        self._cleared: set[Path] = set()

    def __enter__(self) -> FileTransaction:
        return self

    def __exit__(self, *_error: object) -> None:
        while self._undo:
            with suppress(OSError):
                self._undo.pop()()

    def create(self, path: Path, *, last: bool = False) -> StagedFile:
        """A file that must not exist yet, unless with the same content.

        The last one, by which the session is found, is renamed after all others. It must not exist at all.
        """
        self._refuse_link(path)
        if last and os.path.lexists(path):
            raise WouldLose(f"{path} exists already")
        staged = self._stage(path, _FILE_MODE)
        (self._last if last else self._new).append(staged)
        return staged

    def replace(self, path: Path, before: bytes | None, content: bytes) -> None:
        """New content for a file that holds `before`; None: it does not exist. A link to it stays one."""
        self._refuse_link(path)
        path = path.resolve()
        mode, backup = _FILE_MODE, None
        if before is not None:
            mode = stat.S_IMODE(path.stat().st_mode)
            backup = self._stage(path, mode)
            backup.write(before)
        staged = self._stage(path, mode)
        staged.write(content)
        self._replaced.append(_Replacement(staged, backup, before, content))

    def append(self, path: Path, line: bytes) -> None:
        """A line at the end of a log that other programs append to as well."""
        self._refuse_link(path)
        self._make_folder(path.parent)
        self._lines.append(_AppendedLine(path, line))

    def commit(self) -> None:
        """Put every file in its place: the new ones, then the lists that name them, and last the main file."""
        if self._dry_run:
            self._missing()
            return
        backups = [one.backup for one in self._replaced if one.backup is not None]
        replaced = [one.staged for one in self._replaced]
        for staged in (*self._new, *self._last, *backups, *replaced):
            staged.finish()
        with ExitStack() as locks:
            for folder in sorted({staged.path.parent for staged in replaced}):
                locks.enter_context(_locked_folder(folder))
            for one in self._replaced:
                if one.current() != one.before:
                    raise Busy(f"{one.staged.path} was changed by another program; try again")
            for staged in self._missing():
                if self._last:
                    # Agents go on with the session that was written last.
                    older = self._last[0].temporary.stat().st_mtime - _OLDER_SECONDS
                    with suppress(OSError):
                        os.utime(staged.temporary, (older, older))
                self._undo.append(staged.take_back)
                staged.rename()
            # Files that exist come last: they are the hardest to undo.
            for one in sorted(self._replaced, key=lambda one: one.before is not None):
                self._undo.append(one.take_back)
                one.staged.rename()
            _sync_folders((*self._new, *replaced))
        for line in self._lines:
            self._undo.append(line.take_back)
            line.append()
        for staged in self._last:
            if os.path.lexists(staged.path):
                raise WouldLose(f"{staged.path} exists already")
            self._undo.append(staged.take_back)
            staged.rename()
        _sync_folders(self._last)
        self._undo = [staged.discard for staged in (*self._new, *backups)]

    def _missing(self) -> list[StagedFile]:
        """The new files that are not in place yet; refuses other files in their places."""
        missing = []
        for staged in self._new:
            if not os.path.lexists(staged.path):
                missing.append(staged)
            elif not staged.is_in_place():
                raise WouldLose(f"{staged.path} exists already")
        return missing

    def _refuse_link(self, path: Path) -> None:
        if self._home is not None:
            refuse_link_to_session(path, self._home)

    def _stage(self, path: Path, mode: int) -> StagedFile:
        staged = StagedFile(path, mode, dry_run=self._dry_run)
        if not self._dry_run:
            self._make_folder(path.parent)
            self._clear_abandoned(path.parent)
            self._undo.append(staged.discard)
        return staged

    def _make_folder(self, folder: Path) -> None:
        if self._dry_run or folder.is_dir():
            return
        self._make_folder(folder.parent)
        with suppress(FileExistsError), _naming(folder):
            os.mkdir(folder, _FOLDER_MODE)  # noqa: PTH102 - tests let each call of the system fail
            self._undo.append(folder.rmdir)

    def _clear_abandoned(self, folder: Path) -> None:
        while folder not in self._cleared:
            self._cleared.add(folder)
            with suppress(OSError):
                for path in list(folder.iterdir()):
                    found = _TEMPORARY.fullmatch(path.name)
                    if found is not None and not may_run(int(found[1])):
                        path.unlink()
            if self._home is None or self._home not in folder.parent.parents:
                return
            folder = folder.parent


class _AppendedLine:
    """A line appended to a log in one write, so that lines which other programs append at that time stay whole."""

    def __init__(self, path: Path, line: bytes) -> None:
        self._path, self._line = path, line
        self._is_new = False
        self._added = b""

    def append(self) -> None:
        """Append the line, unless it is the last one already: an attempt that was killed may have added it."""
        self._is_new = not self._path.exists()
        with _naming(self._path):
            descriptor = os.open(self._path, _APPEND | os.O_CREAT, _FILE_MODE)
            try:
                _lock(descriptor)
                size = os.fstat(descriptor).st_size
                os.lseek(descriptor, max(size - len(self._line) - 1, 0), os.SEEK_SET)
                end = b"\n" + os.read(descriptor, len(self._line) + 1)
                if not end.endswith(b"\n" + self._line):
                    self._write(descriptor, size, self._line if end.endswith(b"\n") else b"\n" + self._line)
            finally:
                os.close(descriptor)

    def _write(self, descriptor: int, size: int, text: bytes) -> None:
        written = 0
        try:
            written = os.write(descriptor, text)
            if written < len(text):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(descriptor)
        except BaseException:
            # What another program has appended meanwhile stays.
            if os.fstat(descriptor).st_size == size + written:
                os.ftruncate(descriptor, size)
            raise
        self._added = text

    def take_back(self) -> None:
        """Remove this line and no other."""
        if self._added:
            with self._path.open("r+b") as stream:
                _lock(stream.fileno())
                before, found, after = stream.read().rpartition(self._added)
                if found:
                    stream.seek(0)
                    stream.write(before + after)
                    stream.truncate()
        if self._is_new and self._path.stat().st_size == 0:
            self._path.unlink()


def _sync_folders(files: Iterable[StagedFile]) -> None:
    for folder in dict.fromkeys(staged.path.parent for staged in files):
        with _naming(folder):
            sync_folder(folder)


@contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    """Keep other transactions from replacing files in a folder, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        yield
        return
    with _naming(folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _lock(descriptor)
        yield
    finally:
        with _naming(folder):
            os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Lock a file until it is closed, where the system can."""
    with suppress(ImportError):
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let every error of the system name this path."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
