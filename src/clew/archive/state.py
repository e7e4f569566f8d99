"""All that the manifests of an archive say, each read for itself.

A manifest is there twice. Where both are damaged, the files that it alone told of are not known any more; everything
else is, and what lies in the packs is found by its heads.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from clew.archive.layout import (
    CAPTURES,
    COPIES,
    FORMAT,
    Block,
    Capture,
    Damage,
    Dictionary,
    Manifest,
    Place,
    Version,
    manifest_numbers,
    manifest_path,
    packs,
    read_manifest,
)
from clew.archive.parts import scan
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
    problems: list[Damage] = field(default_factory=list)
    """What is damaged in the manifests."""

    @property
    def lost(self) -> list[Damage]:
        """Manifests that cannot be read in either place."""
        return [damage for damage in self.problems if not damage.harmless]

    def add(self, manifest: Manifest, digest: bytes) -> None:
        """Take in the next manifest."""
        self.key, self.number, self.before = manifest.key, manifest.number, digest
        self.next_chunk = manifest.next_chunk
        self.first = manifest.number if manifest.whole else self.first
        self.captures += manifest.captures
        self.places = list(manifest.places)
        self.dictionaries = list(manifest.dictionaries)
        self.blocks += manifest.blocks
        for version in manifest.versions:
            self.remember(version)

    def remember(self, version: Version) -> None:
        """A version that was found: of a file that grew, or was only looked at, it takes the place of the last."""
        known = self.files.setdefault((version.place, version.path), [])
        if version.grown and known:
            known[-1] = msgspec.structs.replace(version, grown=False)
            if len(known) > 1 and is_same(known[-2], known[-1]):
                del known[-2]
        elif known and is_same(known[-1], version):
            known[-1] = version
        else:
            known.append(msgspec.structs.replace(version, grown=False))

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


def runs_of(chunks: Iterable[int]) -> tuple[int, ...]:
    """Numbers of chunks as runs."""
    runs: list[int] = []
    for number in chunks:
        if runs and runs[-2] + runs[-1] == number:
            runs[-1] += 1
        else:
            runs += (number, 1)
    return tuple(runs)


def load(folder: Path) -> State:
    """The state of an archive, as far as it can be read; raises SourceUnreadable where there is none."""
    for _ in range(8):
        numbers = manifest_numbers(folder)
        if not numbers:
            raise SourceUnreadable(f"{folder}: there is no archive; `clew archive` makes one where it finds sessions")
        with suppress(FileNotFoundError):
            state = _read(folder, numbers)
            if not state.problems or manifest_numbers(folder) == numbers:
                return state
        # else a whole manifest has come, and those before it have gone
    raise SourceUnreadable(f"{folder}: the archive changes all the time")


def _read(folder: Path, numbers: set[int]) -> State:
    state = State()
    for manifest, digest in _from_whole(folder, numbers, state.problems):
        if state.before and manifest.number == state.number + 1 and manifest.before != state.before:
            path = str(manifest_path(folder, manifest.number))
            state.problems.append(Damage(path, 0, "the manifest before it is another one"))
        state.add(manifest, digest)
    state.number = max(numbers)
    if state.lost:
        _recover(folder, state)
    return state


def _from_whole(folder: Path, numbers: set[int], problems: list[Damage]) -> list[tuple[Manifest, bytes]]:
    """The manifests that count, in their order: from the newest whole one on, without those that cannot be read."""
    found: list[tuple[Manifest, bytes]] = []
    for number in range(max(numbers), 0, -1):
        one = _either(folder, number, number == max(numbers), problems)
        if one is not None:
            found.append(one)
            if one[0].whole:
                break
        elif number <= min(numbers):
            break
    found.reverse()
    return found


def _either(folder: Path, number: int, newest: bool, problems: list[Damage]) -> tuple[Manifest, bytes] | None:
    """A manifest from the first place where it can be read; what is wrong in either is told."""
    found, wrong = None, []
    for place in COPIES:
        path = manifest_path(folder, number, place)
        try:
            one = read_manifest(path)
            if one[0].number != number:
                raise SourceUnreadable(f"{path}: the manifest of another capture")
            found = found or one
        except FileNotFoundError:
            # The second of the two is written first: without the other, the capture was just ended or cut off.
            if not (newest and place == CAPTURES):
                wrong.append(Damage(str(path), 0, "the manifest is missing"))
        except SourceUnreadable as error:
            wrong.append(Damage(str(path), 0, str(error).removeprefix(f"{path}: ")))
    problems += [msgspec.structs.replace(one, harmless=found is not None) for one in wrong]
    return found


def _recover(folder: Path, state: State) -> None:
    """Take in what the lost manifests told of; where blocks tell of the same chunks, the newer pack is right."""
    ranges = sorted((block.first, block.first + block.count) for block in state.blocks)
    for number, path in sorted(packs(folder).items(), reverse=True):
        for part, key in scan(path, number):
            state.key = state.key or key
            if isinstance(part, Dictionary):
                if not any((one.pack, one.offset) == (part.pack, part.offset) for one in state.dictionaries):
                    state.dictionaries.append(part)
                continue
            end = part.first + part.count
            at = bisect_left(ranges, (end, 0))
            if not at or ranges[at - 1][1] <= part.first:
                ranges.insert(at, (part.first, end))
                state.blocks.append(part)
    state.blocks.sort(key=lambda block: block.first)
    state.next_chunk = max([state.next_chunk, *(end for _, end in ranges)])
