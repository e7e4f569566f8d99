"""The whole workspace at a glance: which files are there, and which are not as they were when they were kept.

A file that looks the same to the system is not read again. Of a link is seen where it leads, and it is not followed.
What is neither is left alone, and so is everything that the list of what to ignore names.
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
from clew.io.blobs import MAX_BLOB_BYTES, digest_of
from clew.io.ignore_patterns import TEMPORARY, Ignored, ignoring
from clew.io.safe_write import Within
from clew.store.groups import groups_of
from clew.store.sightings import Files, Seen, Sightings

IGNORED = tuple(".git .hg .svn .sage node_modules __pycache__ .venv .tox .mypy_cache .pytest_cache .ruff_cache".split())
"""Never looked at, beside what a person adds: other programs' own folders, what can be made again, our own."""

_MOMENT, _WHOLE_SECONDS = 50_000_000, 2_000_000_000
"""A file that changed so shortly before it was read may change again without looking different."""

Keep = Callable[[Sequence[bytes]], list[str | None]]
"""Keeps contents; for each the reason why it could not, or None."""


class _Met(NamedTuple):
    path: str
    found: os.stat_result


class Workspace:
    """A folder that is looked at again and again; what was seen is kept in a file."""

    def __init__(self, root: Path, sightings: Sightings, ignore: Sequence[str]) -> None:
        self.root, self.sightings = root, sightings
        self.ignored = (*IGNORED, *ignore)
        """What is left out."""
        self._ignored = ignoring(self.ignored)

    def scan(self, keep: Keep) -> Files:
        """Every file as it is now; the content of those that are new or changed is kept."""
        last = self.sightings.last()
        known = last.named if last is not None else {}
        unreadable: list[str] = []
        now: Files = {}
        met: list[_Met] = []
        for path, found in walk(self.root, self._ignored, unreadable):
            before = known.get(path)
            if before is not None and before.looks_like(found):
                now[path] = before
            else:
                met.append(_Met(path, found))
        for prefix in unreadable:
            # What cannot be looked into is not gone.
            now.update({path: seen for path, seen in known.items() if path.startswith(prefix)})
        now.update(self._read(met, keep))
        return now

    def look(self) -> Files:
        """The same, and nothing is kept."""
        return self.scan(lambda contents: [None] * len(contents))

    def _read(self, met: Sequence[_Met], keep: Keep) -> Iterator[tuple[str, Seen]]:
        links = [one for one in met if stat.S_ISLNK(one.found.st_mode)]
        if links:
            yield from _links(self.root, links)
        for group in _grouped([one for one in met if not stat.S_ISLNK(one.found.st_mode)] if links else met):
            moment = time.time_ns()
            bodies = list(_bodies(self.root, group))
            pairs = list(zip(group, bodies, strict=True))
            reasons = iter(keep([body for body in bodies if isinstance(body, bytes)]))
            for one, body in pairs:
                if body is None:
                    continue
                if isinstance(body, str):
                    yield one.path, _seen(one.found, "", body, moment)
                else:
                    yield one.path, _seen(one.found, digest_of(body), next(reasons), moment)


def _links(root: Path, links: Sequence[_Met]) -> Iterator[tuple[str, Seen]]:
    """Where links lead; one that is gone by now is left out."""
    for group in _grouped(links):
        with Within(root, own=True) as within:
            for one in group:
                try:
                    target = within.link(one.path)
                except (PathRefused, OSError):
                    continue  # a name that could not be put back either
                if target is not None:
                    seen = _seen(one.found, "", None, time.time_ns())
                    yield one.path, msgspec.structs.replace(seen, link=target)


def _seen(found: os.stat_result, digest: str, missing: str | None, moment: int) -> Seen:
    slack = _WHOLE_SECONDS if found.st_mtime_ns % 1_000_000_000 == 0 else _MOMENT
    unsure = max(found.st_mtime_ns, found.st_ctime_ns) > moment - slack
    return Seen(
        found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_mode, digest, missing, unsure
    )


def _grouped(met: Sequence[_Met]) -> Iterator[list[_Met]]:
    return groups_of(met, lambda one: one.path, lambda one: one.found.st_size)


def _bodies(root: Path, group: Sequence[_Met]) -> Iterator[bytes | str | None]:
    """What each file holds; why it cannot be kept; None where it is gone."""
    with Within(root, own=True) as within:
        for one in group:
            yield read_body(within, one.path, one.found.st_size)


def read_body(within: Within, path: str, size: int | None = None) -> bytes | str | None:
    """What a file holds, or why it cannot be kept; None where there is none."""
    try:
        if size is not None and size > MAX_BLOB_BYTES:
            return f"larger than {MAX_BLOB_BYTES >> 20} MB"
        body = within.read(path)
        return body if body is None or len(body) <= MAX_BLOB_BYTES else f"larger than {MAX_BLOB_BYTES >> 20} MB"
    except PathRefused as error:
        return str(error)
    except OSError as error:
        return error.strerror or str(error)


def walk(root: Path, ignored: Ignored, unreadable: list[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Every file and link below a folder that is not ignored, with what the system says of it."""
    folders = [""]
    base = os.fspath(root)
    names, is_plain = ignored.names, ignored.is_plain
    while folders:
        prefix = folders.pop()
        try:
            files, inner = _entries(f"{base}/{prefix}")
        except OSError as error:
            if not prefix:
                raise SourceUnreadable(f"{root}: {error.strerror or error}") from error
            unreadable.append(prefix)
            continue
        folders += [f"{prefix}{name}/" for name in inner if not ignored.covers(prefix + name)]
        for name, found in files:
            if name in names or name.startswith(TEMPORARY):
                continue
            if is_plain or not ignored.covers(prefix + name):
                yield prefix + name, found


def _entries(folder: str) -> tuple[list[tuple[str, os.stat_result]], list[str]]:
    """The files and links in a folder, with what the system says of them, and the folders in it."""
    if os.scandir not in os.supports_fd:
        return _sorted_out(os.scandir(folder))
    # From an open folder the system need not find the way to each file anew.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        return _sorted_out(os.scandir(descriptor))
    finally:
        os.close(descriptor)


def _sorted_out(entries: Iterator[os.DirEntry[str]]) -> tuple[list[tuple[str, os.stat_result]], list[str]]:
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
    """The part of a mode that can be put back."""
    return stat.S_IMODE(mode)
