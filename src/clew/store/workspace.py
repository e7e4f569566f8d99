"""Scans of a whole workspace: which files are there, and which changed since the last scan.

A file whose size, times and inode are as in the last scan is not read again. Of a link the target is recorded; links
are not followed. Pipes, devices and everything that the ignore patterns name are left out. The result of a scan, the
index, is kept as a blob of its own, which the snapshot record names by its digest.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from clew.errors import PathRefused, SourceUnreadable
from clew.io.batches import batches_by_size
from clew.io.blobs import MAX_BLOB_BYTES, digest_of
from clew.io.ignore_patterns import IgnorePatterns, ignore_patterns
from clew.io.safe_write import Within

IGNORED = tuple(".git .hg .svn .sage node_modules __pycache__ .venv .tox .mypy_cache .pytest_cache .ruff_cache".split())
"""Not scanned by default: folders of other programs, what can be made again, and the store itself. The patterns of the
user come after these, so `!.venv` has it scanned."""

_BATCH_BYTES = 16 << 20
"""Bytes of content that are in memory at once."""
_RECENT_NS, _RECENT_WHOLE_SECONDS_NS = 50_000_000, 2_000_000_000
"""A file that changed so shortly before it was read may change again without other times in its status. File systems
with times in whole seconds need the longer limit."""

Keep = Callable[[Sequence[bytes]], list[str | None]]
"""Keeps contents as blobs; returns for each the reason why it could not be kept, or None."""


class IndexEntry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A file as it was when it was read."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    mode: int
    digest: str
    """Empty if the file could not be read."""
    missing: str | None = None
    """Why its content is not kept."""
    is_recent: bool = False
    """It changed just before it was read, so another change may not show in its status: read it again next time."""
    link: bytes | None = None
    """The target, if it is a link; then there is no digest."""

    def is_unchanged(self, found: os.stat_result) -> bool:
        """Return whether the file need not be read again; what could not be kept is always tried again."""
        return (
            self.ctime_ns == found.st_ctime_ns
            and not self.is_recent
            and self.missing is None
            and self.mtime_ns == found.st_mtime_ns
            and self.size == found.st_size
            and self.inode == found.st_ino
        )


Index = dict[str, IndexEntry]
"""The files of a workspace by their path relative to its root."""


class _IndexFile(msgspec.Struct, array_like=True):
    """An index as it is stored. Paths are bytes, because a file name need not be text."""

    root: bytes
    files: dict[bytes, IndexEntry]


_decoder = msgspec.msgpack.Decoder(_IndexFile)


def encode_index(root: str, index: Index) -> bytes:
    """Encode an index for its blob."""
    return msgspec.msgpack.encode(
        _IndexFile(os.fsencode(root), {os.fsencode(path): entry for path, entry in sorted(index.items())})
    )


def decode_index(body: bytes) -> Index:
    """Decode an index; raises SourceUnreadable if the content is something else."""
    try:
        return {os.fsdecode(path): entry for path, entry in _decoder.decode(body).files.items()}
    except msgspec.MsgspecError as error:
        raise SourceUnreadable(f"not a workspace index: {error}") from None


class _FileToRead(NamedTuple):
    path: str
    found: os.stat_result


class Workspace:
    """A folder that is scanned again and again."""

    def __init__(self, root: Path, ignore: Sequence[str]) -> None:
        self.root = root
        self.ignored = (*IGNORED, *ignore)
        """Patterns of what is left out."""
        self._ignored = ignore_patterns(self.ignored)

    def scan(self, known: Index, keep: Keep) -> Index:
        """Return every file as it is now. The content of files that are not as in `known` is read and kept."""
        unreadable: list[str] = []
        index: Index = {}
        changed: list[_FileToRead] = []
        for path, found in walk(self.root, self._ignored, unreadable):
            before = known.get(path)
            if before is not None and before.is_unchanged(found):
                index[path] = before
            else:
                changed.append(_FileToRead(path, found))
        for prefix in unreadable:
            # The files of a folder that cannot be opened now are not taken for deleted.
            index.update({path: entry for path, entry in known.items() if path.startswith(prefix)})
        index.update(self._read(changed, keep))
        return index

    def scan_only(self, known: Index) -> Index:
        """Return every file as it is now, and keep no contents."""
        return self.scan(known, lambda contents: [None] * len(contents))

    def _read(self, changed: Sequence[_FileToRead], keep: Keep) -> Iterator[tuple[str, IndexEntry]]:
        links = [file for file in changed if stat.S_ISLNK(file.found.st_mode)]
        if links:
            yield from _read_links(self.root, links)
            changed = [file for file in changed if not stat.S_ISLNK(file.found.st_mode)]
        for batch in batches_by_size(changed, lambda file: file.found.st_size, _BATCH_BYTES):
            started_ns = time.time_ns()
            with Within(self.root, own=True) as within:
                bodies = [read_body(within, file.path, file.found.st_size) for file in batch]
            reasons = iter(keep([body for body in bodies if isinstance(body, bytes)]))
            for file, body in zip(batch, bodies, strict=True):
                if isinstance(body, str):
                    yield file.path, _entry(file.found, "", body, started_ns)
                elif body is not None:
                    yield file.path, _entry(file.found, digest_of(body), next(reasons), started_ns)


def _read_links(root: Path, links: Sequence[_FileToRead]) -> Iterator[tuple[str, IndexEntry]]:
    """Yield the targets of links; a link that is gone meanwhile is left out."""
    with Within(root, own=True) as within:
        for file in links:
            try:
                target = within.link(file.path)
            except (PathRefused, OSError):
                continue  # a name that could not be restored either
            if target is not None:
                entry = _entry(file.found, "", None, time.time_ns())
                yield file.path, msgspec.structs.replace(entry, link=target)


def _entry(found: os.stat_result, digest: str, missing: str | None, started_ns: int) -> IndexEntry:
    recent_ns = _RECENT_WHOLE_SECONDS_NS if found.st_mtime_ns % 1_000_000_000 == 0 else _RECENT_NS
    is_recent = max(found.st_mtime_ns, found.st_ctime_ns) > started_ns - recent_ns
    return IndexEntry(
        found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_mode, digest, missing, is_recent
    )


def read_body(within: Within, path: str, size: int | None = None) -> bytes | str | None:
    """Return the content of a file, or the reason why it cannot be kept; None if there is no file."""
    try:
        if size is not None and size > MAX_BLOB_BYTES:
            return f"larger than {MAX_BLOB_BYTES >> 20} MB"
        body = within.read(path)
        return body if body is None or len(body) <= MAX_BLOB_BYTES else f"larger than {MAX_BLOB_BYTES >> 20} MB"
    except PathRefused as error:
        return str(error)
    except OSError as error:
        return error.strerror or str(error)


def walk(root: Path, ignored: IgnorePatterns, unreadable: list[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Yield every file and link below a folder that is not ignored, with its status; `unreadable` gets the folders
    that cannot be opened."""
    folders = [""]
    base = os.fspath(root)
    while folders:
        prefix = folders.pop()
        try:
            files, inner = _entries(f"{base}/{prefix}")
        except OSError as error:
            if not prefix:
                raise SourceUnreadable(f"{root}: {error.strerror or error}") from error
            unreadable.append(prefix)
            continue
        folders += [f"{prefix}{name}/" for name in inner if not ignored.ignores(prefix + name, is_folder=True)]
        yield from ((prefix + name, found) for name, found in files if not ignored.ignores(prefix + name))


def _entries(folder: str) -> tuple[list[tuple[str, os.stat_result]], list[str]]:
    """Return the files and links in a folder with their status, and the names of the folders in it."""
    if os.scandir not in os.supports_fd:
        return _split_entries(os.scandir(folder))
    # The status of each file is found faster relative to an open folder than by its whole path.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        return _split_entries(os.scandir(descriptor))
    finally:
        os.close(descriptor)


def _split_entries(entries: Iterator[os.DirEntry[str]]) -> tuple[list[tuple[str, os.stat_result]], list[str]]:
    files: list[tuple[str, os.stat_result]] = []
    folders: list[str] = []
    for entry in entries:
        try:
            if entry.is_file(follow_symlinks=False) or entry.is_symlink():
                files.append((entry.name, entry.stat(follow_symlinks=False)))
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
        except FileNotFoundError:
            continue
    return files, folders


def permissions(mode: int) -> int:
    """Return the part of a mode that can be restored."""
    return stat.S_IMODE(mode)
