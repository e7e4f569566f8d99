"""All that the manifests of an archive say, read one after the other."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import msgspec

from clew.archive.layout import (
    FORMAT,
    Block,
    Capture,
    Dictionary,
    Manifest,
    Place,
    Version,
    manifests,
    read_manifest,
)
from clew.errors import SourceUnreadable


@dataclass
class State:
    """An archive as its manifests describe it."""

    key: bytes = b""
    number: int = 0
    """Of the newest manifest."""
    first: int = 0
    """Of the newest manifest that is whole; those before it do not count."""
    before: bytes = b""
    next_chunk: int = 0
    captures: list[Capture] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    """In the order of their chunks."""
    dictionaries: list[Dictionary] = field(default_factory=list)
    files: dict[tuple[int, bytes], list[Version]] = field(default_factory=dict)
    """The versions of each file, the newest last."""

    def add(self, manifest: Manifest, digest: bytes) -> None:
        """Take in the next manifest."""
        self.key, self.number, self.before = manifest.key, manifest.number, digest
        self.next_chunk = manifest.next_chunk
        self.first = manifest.number if manifest.whole else self.first
        self.captures += manifest.captures
        self.places += manifest.places
        self.blocks += manifest.blocks
        self.dictionaries += manifest.dictionaries
        for version in manifest.versions:
            self.remember(version)

    def remember(self, version: Version) -> None:
        """A version that was found: of a file that grew, or was only looked at, it takes the place of the last."""
        known = self.files.setdefault((version.place, version.path), [])
        if version.grown and known:
            runs = join_runs(known[-1].runs, version.runs)
            known[-1] = msgspec.structs.replace(version, runs=runs, grown=False)
            if len(known) > 1 and is_same(known[-2], known[-1]):
                del known[-2]
        elif known and is_same(known[-1], version):
            known[-1] = version
        else:
            known.append(version)

    def newest(self) -> Iterator[Version]:
        """Each file as it was last seen."""
        return (versions[-1] for versions in self.files.values())

    def versions(self) -> Iterator[Version]:
        """Every version of every file."""
        return (version for versions in self.files.values() for version in versions)

    def whole(self) -> Manifest:
        """One manifest that says it all."""
        return Manifest(
            format=FORMAT,
            number=self.number + 1,
            whole=True,
            before=self.before,
            key=self.key,
            next_chunk=self.next_chunk,
            captures=tuple(self.captures),
            places=tuple(self.places),
            blocks=tuple(self.blocks),
            dictionaries=tuple(self.dictionaries),
            versions=tuple(self.versions()),
        )

    def parts(self) -> list[Block | Dictionary]:
        """All that lies in packs."""
        return [*self.blocks, *self.dictionaries]

    def ends(self) -> dict[int, int]:
        """How long each pack is, as far as it counts."""
        found: dict[int, int] = {}
        for part in self.parts():
            found[part.pack] = max(found.get(part.pack, 0), part.offset + part.size)
        return found

    @property
    def raw(self) -> int:
        """The size of all versions."""
        return sum(version.size for version in self.versions())

    @property
    def stored(self) -> int:
        """The size of all packs."""
        return sum(self.ends().values())


class Blocks:
    """Finds the block of a chunk."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self._blocks = sorted(blocks, key=lambda block: block.first)
        self._firsts = [block.first for block in self._blocks]

    def of(self, chunk: int) -> Block:
        """The block that a chunk is in."""
        at = bisect_right(self._firsts, chunk) - 1
        if at < 0 or chunk >= self._blocks[at].first + self._blocks[at].count:
            raise SourceUnreadable(f"chunk {chunk} is in no block")
        return self._blocks[at]


def is_same(one: Version, other: Version) -> bool:
    """True for the same content with the same mode; that it was written once more makes no other version."""
    return (one.digest, one.size, one.mode) == (other.digest, other.size, other.mode)


def join_runs(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """Runs one behind the other."""
    joined = list(one)
    for first, count in zip(other[::2], other[1::2], strict=True):
        if joined and joined[-2] + joined[-1] == first:
            joined[-1] += count
        else:
            joined += (first, count)
    return tuple(joined)


def load(folder: Path) -> State:
    """The state of an archive; raises SourceUnreadable where there is none, or a manifest is damaged or missing."""
    for _ in range(8):
        try:
            state, paths = State(), manifests(folder)
            for manifest, digest in _newest_whole(paths):
                state.add(manifest, digest)
            if state.number:
                return state
            raise SourceUnreadable(f"{folder}: there is no archive; `clew archive` makes one")
        except FileNotFoundError:
            continue  # a whole manifest has come, and those before it have gone
    raise SourceUnreadable(f"{folder}: the archive changes all the time")


def _newest_whole(paths: dict[int, Path]) -> list[tuple[Manifest, bytes]]:
    """The manifests that count, in their order: from the newest whole one on."""
    found: list[tuple[Manifest, bytes]] = []
    for number in sorted(paths, reverse=True):
        found.append(read_manifest(paths[number]))
        if found[-1][0].whole:
            break
    found.reverse()
    if found and not found[0][0].whole:
        raise SourceUnreadable(f"{paths[min(paths)]}: the manifests before it are missing")
    for (_, digest), (after, _) in pairwise(found):
        if after.before != digest:
            raise SourceUnreadable(f"{paths[after.number]}: the manifest before it is missing or another one")
    return found
