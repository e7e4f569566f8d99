"""Files that take their places together: written whole under other names first, and taken away again if one fails."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import NamedTuple, NoReturn

from clew.errors import Busy, WouldLose
from clew.io.atomic import sync_folder
from clew.io.paths import refuse_link_to_session

_OWN, _FOLDER = 0o600, 0o700
"""Sessions are private: nobody else need read them."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_AT_END = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)
_BUFFER = 1 << 20
_STAGED = re.compile(r"\..+\.(\d+)-[0-9a-f]{12}\.tmp")
"""How our files are called on their way: whose they are is told by the number of the process."""
_OLDER = 2
"""So many seconds: some agents look at no less."""


class StagedFile:
    """A file under another name, beside the place it is meant for."""

    def __init__(self, path: Path, mode: int = _OWN) -> None:
        self.path = path
        self.name = path.with_name(f".{path.name[:100]}.{os.getpid()}-{os.urandom(6).hex()}.tmp")
        self._waiting = bytearray()
        self._mode = mode
        self._is_begun = False
        self._is_done = False

    def write(self, piece: bytes) -> int:
        """Add to the end."""
        self._waiting += piece
        if len(self._waiting) >= _BUFFER:
            self._drain()
        return len(piece)

    def _drain(self, durable: bool = False) -> None:
        """Write what waits. The file is closed again: there may be more than a process may have open."""
        with named(self.path):
            descriptor = os.open(self.name, _AT_END if self._is_begun else _NEW, _OWN)
            self._is_begun = True
            try:
                write_all(descriptor, self._waiting)
                if durable:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
        self._waiting = bytearray()

    def finish(self) -> None:
        """Make the file durable; nothing is added afterwards."""
        if self._is_done:
            return
        self._drain(durable=True)
        if self._mode != _OWN:
            with named(self.path):
                self.name.chmod(self._mode)
        self._is_done = True

    def is_there(self) -> bool:
        """Whether its place holds the same already: what a try that was killed has left is in nobody's way."""
        if not self.path.is_file() or self.path.is_symlink():
            return False
        with self.path.open("rb") as one, self.name.open("rb") as other:
            while (piece := one.read(_BUFFER)) == other.read(_BUFFER):
                if not piece:
                    return True
        return False

    def make_older(self, than: float) -> None:
        """Agents take the file that was written last for the session to go on with."""
        with suppress(OSError):
            os.utime(self.name, (than - _OLDER, than - _OLDER))

    def take_back(self) -> None:
        """Take it away from its place, if it got there."""
        if not self.name.exists():
            self.path.unlink()

    def drop(self) -> None:
        """Take it away, in whatever state it is."""
        with suppress(OSError):
            self.name.unlink(missing_ok=True)


class FileTransaction:
    """New and renewed files on their way; leaving it without `finish` leaves everything as it was.

    What tries that were killed have left on their way is taken away: from the folders that files come to, and from
    those above them up to the `home`.
    """

    def __init__(self, home: Path | None = None) -> None:
        self._home = home
        self._new: list[StagedFile] = []
        self._last: list[StagedFile] = []
        self._renewed: list[_Renewed] = []
        self._lines: list[tuple[Path, bytes]] = []
        self._undo: list[Callable[[], object]] = []
        self._swept: set[Path] = set()

    def __enter__(self) -> FileTransaction:
        return self

    def __exit__(self, *_error: object) -> None:
        while self._undo:
            with suppress(OSError):
                self._undo.pop()()

    def _refuse_link(self, path: Path) -> None:
        if self._home is not None:
            refuse_link_to_session(path, self._home)

    def new(self, path: Path, last: bool = False) -> StagedFile:
        """A file that must not be there yet, unless with the same content.

        The last one takes its place when all others have theirs: by it the session is found. It must not be there at
        all.
        """
        self._refuse_link(path)
        if last and os.path.lexists(path):
            raise WouldLose(f"{path} exists already")
        staged = self._staged(path, _OWN)
        (self._last if last else self._new).append(staged)
        return staged

    def renew(self, path: Path, before: bytes | None, content: bytes) -> None:
        """Another content for a file that held `before`; None: it was not there. A link to it stays one."""
        self._refuse_link(path)
        path = path.resolve()
        mode = _OWN if before is None else stat.S_IMODE(path.stat().st_mode)
        copy = self._staged(path, mode) if before is not None else None
        if copy is not None and before is not None:
            copy.write(before)
        staged = self._staged(path, mode)
        staged.write(content)
        self._renewed.append(_Renewed(staged, copy, before, content))

    def add(self, path: Path, line: bytes) -> None:
        """A line at the end of a log that others add to as well."""
        self._refuse_link(path)
        self._make(path.parent)
        self._lines.append((path, line))

    def _staged(self, path: Path, mode: int) -> StagedFile:
        self._make(path.parent)
        self._sweep(path.parent)
        staged = StagedFile(path, mode)
        self._undo.append(staged.drop)
        return staged

    def _sweep(self, folder: Path) -> None:
        while folder not in self._swept:
            self._swept.add(folder)
            _sweep(folder)
            if self._home is None or self._home not in folder.parent.parents:
                return
            folder = folder.parent

    def _make(self, folder: Path) -> None:
        missing = []
        while not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        for each in reversed(missing):
            with suppress(FileExistsError), named(each):
                os.mkdir(each, _FOLDER)  # noqa: PTH102 - a failure at any of the system's calls is tested
                self._undo.append(each.rmdir)

    def finish(self) -> None:
        """Give every file its place: the new ones, then what names them, and at last what all of it is found by."""
        renewed = [each for one in self._renewed for each in (one.copy, one.staged) if each is not None]
        for staged in (*self._new, *self._last, *renewed):
            staged.finish()
        with ExitStack() as held:
            for folder in sorted({one.staged.path.parent for one in self._renewed}):
                held.enter_context(_alone_in(folder))
            self._put_all()
        for path, line in self._lines:
            self._undo.append(_Line(path, line).add())
        self._put_last()
        self._undo = [one.copy.drop for one in self._renewed if one.copy is not None]

    def _put_all(self) -> None:
        for one in self._renewed:
            if one.now() != one.before:
                raise Busy(f"{one.staged.path} was changed by another program; try again")
        for staged in self._missing():
            if self._last:
                staged.make_older(self._last[0].name.stat().st_mtime)
            self._put(staged, staged.take_back)
        # What is there already comes last: of all steps this is the hardest to undo.
        for one in sorted(self._renewed, key=lambda one: one.before is not None):
            self._put(one.staged, one.take_back)
        _sync(staged.path.parent for staged in chain(self._new, (one.staged for one in self._renewed)))

    def _missing(self) -> list[StagedFile]:
        """The new files that are not there yet."""
        missing = []
        for staged in self._new:
            if not os.path.lexists(staged.path):
                missing.append(staged)
            elif not staged.is_there():
                raise WouldLose(f"{staged.path} exists already")
            else:
                staged.drop()
        return missing

    def _put_last(self) -> None:
        for staged in self._last:
            if os.path.lexists(staged.path):
                raise WouldLose(f"{staged.path} exists already")
            self._put(staged, staged.take_back)
        _sync(staged.path.parent for staged in self._last)

    def _put(self, staged: StagedFile, undo: Callable[[], object]) -> None:
        self._undo.append(undo)
        with named(staged.path):
            os.replace(staged.name, staged.path)  # noqa: PTH105 - as above


class DryRun(FileTransaction):
    """Says what is in the way of files, and writes nothing."""

    def _staged(self, path: Path, mode: int) -> StagedFile:
        return _Unwritten(path, mode)

    def _make(self, folder: Path) -> None:
        pass

    def finish(self) -> None:
        """Refuse what would be refused."""
        self._missing()


class _Unwritten(StagedFile):
    """A file of which only the hash is known."""

    def __init__(self, path: Path, mode: int) -> None:
        super().__init__(path, mode)
        self._digest = hashlib.sha256()

    def write(self, piece: bytes) -> int:
        self._digest.update(piece)
        return len(piece)

    def is_there(self) -> bool:
        if not self.path.is_file() or self.path.is_symlink():
            return False
        with self.path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").digest() == self._digest.digest()

    def finish(self) -> None:
        pass

    def drop(self) -> None:
        pass


def _sync(folders: Iterator[Path]) -> None:
    for folder in dict.fromkeys(folders):
        with named(folder):
            sync_folder(folder)


def _sweep(folder: Path) -> None:
    """Take away what tries that were killed have left half written."""
    with suppress(OSError):
        for path in list(folder.iterdir()):
            found = _STAGED.fullmatch(path.name)
            if found is not None and _is_dead(int(found[1])):
                path.unlink()


def _is_dead(process: int) -> bool:
    """Whether no process of that number runs; where one cannot ask without harm, all of them do."""
    if os.name == "nt":
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


class _Renewed(NamedTuple):
    """What is to come, a copy of what is there, and the bytes of both."""

    staged: StagedFile
    copy: StagedFile | None
    before: bytes | None
    content: bytes

    def now(self) -> bytes | None:
        """What the file holds; None where there is none."""
        return self.staged.path.read_bytes() if os.path.lexists(self.staged.path) else None

    def take_back(self) -> None:
        """Let it be as it was, unless somebody else has changed it since."""
        if self.now() != self.content:
            return
        if self.copy is None:
            self.staged.take_back()
        else:
            self.copy.name.replace(self.copy.path)


class _Line:
    """A line of ours at the end of a log, added in one go, so that what others add at the same time stays."""

    def __init__(self, path: Path, line: bytes) -> None:
        self._path, self._line = path, line
        self._is_new = not path.exists()

    def add(self) -> Callable[[], object]:
        """Add it; gives what takes it away again."""
        with named(self._path):
            descriptor = os.open(self._path, _AT_END | os.O_CREAT, _OWN)
            try:
                with _locked(descriptor):
                    self._add(descriptor)
            except BaseException:
                with suppress(OSError):
                    os.close(descriptor)
                self._clear()
                raise
            try:
                os.close(descriptor)
            except BaseException:
                self.take_away()
                raise
        return self.take_away

    def _add(self, descriptor: int) -> None:
        size, written = os.fstat(descriptor).st_size, 0
        os.lseek(descriptor, max(size - len(self._line) - 1, 0), os.SEEK_SET)
        end = b"\n" + os.read(descriptor, len(self._line) + 1)
        if end.endswith(b"\n" + self._line):
            self._line = b""  # a try that was killed has added it
            return
        if not end.endswith(b"\n"):
            self._line = b"\n" + self._line
        try:
            written = os.write(descriptor, self._line)
            if written < len(self._line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(descriptor)
        except BaseException:
            # What somebody else has added meanwhile stays.
            if os.fstat(descriptor).st_size == size + written:
                os.ftruncate(descriptor, size)
            raise

    def take_away(self) -> None:
        """Take this line away and no other."""
        if not self._line:
            return
        with self._path.open("r+b") as stream, _locked(stream.fileno()):
            content = stream.read()
            before, found, after = content.rpartition(self._line)
            if found:
                stream.seek(0)
                stream.write(before + after)
                stream.truncate()
        self._clear()

    def _clear(self) -> None:
        if self._is_new and self._path.stat().st_size == 0:
            self._path.unlink()


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Alone among those who ask for the same folder, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        yield
        return
    with named(folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with _locked(descriptor):
            yield
    finally:
        with named(folder):
            os.close(descriptor)


@contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    """Alone among those who lock, where the system can."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def write_all(descriptor: int, piece: bytes | bytearray) -> None:
    """Write every byte: the system may take fewer at a time."""
    view = memoryview(piece)
    while view:
        view = view[os.write(descriptor, view) :]


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Whatever fails inside says which file it was."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


@contextmanager
def roll_back_on_signal() -> Iterator[None]:
    """Let a request to end come as an exception, so that nothing half done stays behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    names = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {name: signal.getsignal(name) for name in names}
    ours = [name for name in names if before[name] is signal.SIG_DFL]
    for name in ours:
        signal.signal(name, _leave)
    try:
        yield
    finally:
        for name in ours:
            signal.signal(name, before[name])


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    # Once is enough: what is being taken away then is taken away undisturbed.
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)
