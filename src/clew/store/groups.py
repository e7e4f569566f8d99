"""Paths that are worked on at once: each folder on their ways is held open meanwhile, and contents are in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

FOLDERS = 200
"""So many folders are held open at once."""
TOGETHER = 16 << 20
"""So many bytes are held at once."""

T = TypeVar("T")


def folders_to(path: str) -> Iterator[str]:
    """The folders on the way to a path, the outermost first."""
    parts = path.split("/")
    return ("/".join(parts[:end]) for end in range(1, len(parts)))


def folders_of(paths: Iterable[str]) -> list[str]:
    """The folders on the ways to all of them, each behind those above it."""
    return list(dict.fromkeys(folder for path in paths for folder in folders_to(path)))


def grouped(paths: Iterable[str]) -> Iterator[list[str]]:
    """Paths in groups of which no one has too many folders."""
    return groups_of(paths, str, lambda _: 0)


def groups_of(items: Iterable[T], path_of: Callable[[T], str], size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Whatever has a path and a size, in groups of which no one has too many folders or bytes."""
    group: list[T] = []
    folders: set[str] = set()
    size = 0
    for one in items:
        path, grown = path_of(one), size_of(one)
        folder = path.rpartition("/")[0]
        ways = folders if not folder or folder in folders else folders.union(folders_to(path))
        if group and (len(ways) > FOLDERS or size + grown > TOGETHER):
            yield group
            group, ways, size = [], set(folders_to(path)), 0
        group.append(one)
        folders, size = ways, size + grown
    if group:
        yield group
