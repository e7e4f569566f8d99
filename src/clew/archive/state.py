"""All that the manifests of an archive say, each read for itself.

A manifest is there twice. Where both are damaged or missing, the files that it alone told of are not known any more;
everything else is, and what lies in the packs is found by its heads (`recovering`).
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from clew.archive.layout import (
    CAPTURES,
    COPIES,
    FORMAT,
    LOCK,
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
    refuse_links,
)
from clew.archive.parts import is_possible_manifest
from clew.errors import Busy, SourceUnreadable
from clew.io.filesystem import SHARED, SYSTEM, open_regular


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
    retired: set[int] = field(default_factory=set)
    """Packs that the newest whole manifest gave up."""
    sizes: dict[int, int] = field(default_factory=dict)
    """How long each pack is on the disk, but for those that were given up. Empty while another process writes."""
    is_recovered: bool = False
    """Something was found in the packs that no manifest names."""

    @property
    def lost(self) -> list[Damage]:
        """Manifests that cannot be read in either place."""
        return [damage for damage in self.problems if not damage.harmless]

    def add(self, manifest: Manifest, digest: bytes) -> None:
        """Take in the next manifest."""
        self.key, self.number, self.before = manifest.key, manifest.number, digest
        self.next_chunk = max(self.next_chunk, manifest.next_chunk)
        if manifest.whole:
            self.first, self.retired = manifest.number, set(manifest.retired)
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
            retired=tuple(sorted(self.retired)),
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


def needed(state: State, versions: Iterable[Version]) -> bytearray:
    """For each chunk whether one of these versions needs it."""
    marks = bytearray(state.next_chunk)
    for version in versions:
        for first, count in zip(version.runs[::2], version.runs[1::2], strict=True):
            marks[first : first + count] = b"\1" * count
    return marks


def load(folder: Path, *, locked: bool = False) -> State:
    """The state of an archive, as far as it can be read; raises SourceUnreadable where there is none.

    What no manifest names is taken in too, unless another process writes: then it belongs to that one. Who holds the
    lock says so with `locked`.
    """
    refuse_links(folder)
    for _ in range(8):
        with suppress(FileNotFoundError), _without_writers(folder, locked) as is_quiet:
            numbers = manifest_numbers(folder)
            sizes = {number: path.stat().st_size for number, path in packs(folder).items()} if is_quiet else {}
            if not numbers and not any(sizes.values()):
                if not is_quiet:
                    raise Busy(f"{folder}: there is no archive yet, the first capture has not ended")
                words = "there is no archive; `clew archive` makes one where it finds sessions"
                raise SourceUnreadable(f"{folder}: {words}")
            state = _read(folder, numbers)
            _recover(folder, state, sizes)
            if not state.problems or manifest_numbers(folder) == numbers:
                return state
        # else a whole manifest has come, and those before it have gone
    raise SourceUnreadable(f"{folder}: the archive changes all the time")


def load_manifests(folder: Path) -> State:
    """What the manifests say and nothing else; nothing where there are none."""
    refuse_links(folder)
    return _read(folder, manifest_numbers(folder))


@contextmanager
def _without_writers(folder: Path, locked: bool) -> Iterator[bool]:
    """Keep others from writing meanwhile; yields False where somebody does, or where that cannot be known."""
    if locked:
        yield True
        return
    try:
        descriptor = open_regular(SYSTEM, folder / LOCK, os.O_RDONLY)
    except OSError as error:
        yield isinstance(error, FileNotFoundError)
        return
    try:
        try:
            SYSTEM.lock(descriptor, SHARED)
            is_quiet = True
        except OSError as error:
            # Where there are no locks, nobody can write.
            is_quiet = not isinstance(error, BlockingIOError)
        yield is_quiet
    finally:
        os.close(descriptor)


def _read(folder: Path, numbers: set[int]) -> State:
    state = State()
    if not numbers:
        return state
    for manifest, digest in _from_whole(folder, numbers, state.problems):
        if state.before and manifest.number == state.number + 1 and manifest.before != state.before:
            path = str(manifest_path(folder, manifest.number))
            state.problems.append(Damage(path, 0, "the manifest before it is another one"))
        state.add(manifest, digest)
    state.number = max(numbers)
    return state


def _recover(folder: Path, state: State, sizes: dict[int, int]) -> None:
    """Take in what the packs hold that no manifest names."""
    from clew.archive.recovering import recover  # which reads packs, and so needs this module

    ends = state.ends()
    state.sizes = {number: size for number, size in sizes.items() if number in ends or number not in state.retired}
    if not state.number:
        what = "all manifests are missing; `clew archive restore` writes what the packs hold below recovered/"
        state.problems.append(Damage(str(folder / CAPTURES), 0, what))
    if state.lost and not sizes:
        state.sizes = {number: path.stat().st_size for number, path in packs(folder).items()}
    recover(folder, state)


def _from_whole(folder: Path, numbers: set[int], problems: list[Damage]) -> list[tuple[Manifest, bytes]]:
    """The manifests that count, in their order: from the newest whole one on, without those that cannot be read."""
    found: list[tuple[Manifest, bytes]] = []
    expected = max(numbers)
    for number in sorted(numbers - {0}, reverse=True):
        if number < expected:
            problems.append(_missing(folder, number + 1, expected))
        one = _either(folder, number, number == max(numbers), problems)
        if one is not None:
            found.append(one)
            if one[0].whole:
                break
        expected = number - 1
    else:
        if found and expected > 0:
            problems.append(_missing(folder, 1, expected))
    found.reverse()
    return found


def _missing(folder: Path, first: int, last: int) -> Damage:
    """Manifests that are in neither place. File names can be any numbers, so a gap is told once, however long."""
    what = "the manifest is missing" if first == last else f"the manifests from {first} to {last} are missing"
    return Damage(str(manifest_path(folder, last)), 0, what)


def _either(folder: Path, number: int, newest: bool, problems: list[Damage]) -> tuple[Manifest, bytes] | None:
    """A manifest from the first place where it can be read; what is wrong in either is told."""
    found, wrong = None, []
    for place in COPIES:
        path = manifest_path(folder, number, place)
        try:
            one = read_manifest(path)
            if one[0].number != number:
                raise SourceUnreadable(f"{path}: the manifest of another capture")
            if not is_possible_manifest(one[0]):
                raise SourceUnreadable(f"{path}: the manifest is damaged: its numbers cannot be right")
            found = found or one
        except FileNotFoundError:
            # The second of the two is written first: without the other, the capture was just ended or cut off.
            if not (newest and place == CAPTURES):
                wrong.append(Damage(str(path), 0, "the manifest is missing"))
        except SourceUnreadable as error:
            wrong.append(Damage(str(path), 0, str(error).removeprefix(f"{path}: ")))
    problems += [msgspec.structs.replace(one, harmless=found is not None) for one in wrong]
    return found
