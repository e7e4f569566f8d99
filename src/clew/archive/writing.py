"""Who writes to an archive: chunks go into blocks, blocks into packs, and a manifest makes them count.

A pack is synced before the manifest that names its blocks, and a manifest appears whole or not at all: first its
copy beside the packs, then itself. Either of them counts. Blocks that a killed process left behind its last manifest
are taken in by the next one that writes, which also puts right what is damaged in the manifests. Nothing is removed
that is not known to be of no use: what no manifest names may be all that is left of a capture.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from operator import add
from pathlib import Path

from clew.archive.blocks import LEVEL, RAW, SMALL, Codec, digest_of, hash_of, pack_plain, table_of
from clew.archive.layout import (
    CAPTURES,
    COPIES,
    DAMAGED,
    FORMAT,
    KEY_BYTES,
    LOCK,
    MANIFEST_LIMIT,
    PACKS,
    Block,
    Capture,
    Damage,
    Dictionary,
    Manifest,
    Place,
    Version,
    manifest_numbers,
    manifest_path,
    manifests,
    pack_path,
    packs,
    read_inside,
    refuse_links,
    spell_manifest,
)
from clew.archive.packing import Job, Packers
from clew.archive.parts import HEAD, spell_head
from clew.archive.reading import Reader
from clew.archive.recovering import has_other_key, unnamed_packs
from clew.archive.state import State, load, load_manifests, runs_of
from clew.errors import ClewError, SourceUnreadable
from clew.io.file_lock import locked
from clew.io.filesystem import SYSTEM, System, make_folder, open_log, replace_file, write_all

FULL = RAW
"""Chunks of this size together are packed."""
PACK_BYTES = 256 << 20
"""A pack of this size is not continued."""
MOST_MANIFESTS = 64
"""When there are so many, one takes the place of all."""
REMEMBERED = 1_500_000
"""So many of the newest chunks are known again; an older one that comes once more is kept once more."""
WAIT = 2.0
_MORE = 2 << 20
"""A block may be larger by a chunk."""
_TEMPORARY = re.compile(r"\.(?:[0-9]{8,}\.manifest|health)\.[0-9a-f]{12}\.tmp")
"""What `replace_file` calls a file that it has not finished."""
_AHEAD = 1
"""So many blocks may be packed and wait for an older one, which would keep others from their work otherwise."""


class Recall:
    """The chunks of an archive that a process has written to before; without it they are read from the packs."""

    def __init__(self) -> None:
        self.before = b""
        self.known: dict[bytes, int] = {}


class _Pending:
    """Chunks that wait for their block."""

    def __init__(self, dictionary: int) -> None:
        self.dictionary, self.raw, self.first = dictionary, 0, 0
        self.chunks: list[bytes] = []
        self.hashes: list[bytes] = []


class Writer:
    """The one that may change an archive; it holds the lock."""

    def __init__(
        self, folder: Path, state: State, system: System = SYSTEM, level: int = LEVEL, recall: Recall | None = None
    ) -> None:
        self.folder, self.state, self.system = folder, state, system
        self.codec = Codec(level)
        self._packers = Packers(self.codec.pack_body, FULL + _MORE)
        self._recall = recall or Recall()
        self._known = self._recall.known if state.before and self._recall.before == state.before else None
        self._recall.before = b""
        self._next = state.next_chunk
        self._pending = _Pending(0)
        self._waiting: deque[tuple[_Pending, Job]] = deque()
        self._ends = state.ends()
        self._avoided: set[Block] = set()
        self._pack, self._descriptor = 0, -1
        self._opened_at = 0
        """How long the pack was before this process wrote to it."""
        self.places: list[Place] = []
        self.blocks: list[Block] = []
        self.dictionaries: list[Dictionary] = []
        self._versions: list[tuple[Version, int]] = []
        self.lost: list[Damage] = []
        """Manifests that could not be read when the archive was opened; by now one that says the rest is written."""

    def close(self) -> None:
        """Stop; what was not committed is cut off again, as far as that can be."""
        self._packers.close()
        if self._descriptor < 0:
            return
        if self.blocks or self.dictionaries or self._waiting:
            with suppress(OSError, ClewError):
                # The manifest may be there although it was not known to be durable, so the disk is asked.
                end = load_manifests(self.folder).ends().get(self._pack, 0)
                self.system.truncate(self._descriptor, max(self._opened_at, end))
        self.system.close(self._descriptor)
        self._descriptor = -1

    def place(self, place: Place) -> int:
        """The number of a home."""
        known = [*self.state.places, *self.places]
        if place in known:
            return known.index(place)
        self.places.append(place)
        return len(known)

    def avoid(self, blocks: Collection[Block]) -> None:
        """Do not build on chunks of these blocks: what is in them is kept anew when it comes."""
        self._avoided = set(blocks)
        if blocks:
            self._known = None

    def dictionary_of(self, agent: str) -> Dictionary | None:
        """The newest dictionary of an agent."""
        every = [*self.state.dictionaries, *self.dictionaries]
        return next((entry for entry in reversed(every) if entry.agent == agent), None)

    def learn(self, agent: str, dictionary: bytes, learned: int) -> None:
        """Keep a dictionary for an agent's blocks, twice: without it they could not be read."""
        numbers = [entry.number for entry in (*self.state.dictionaries, *self.dictionaries)]
        number = max(numbers, default=0) + 1
        stored = pack_plain(dictionary)
        for _ in range(2):
            self.dictionaries.append(self.put_dictionary(number, agent, stored, learned))
        self.codec.learn(number, dictionary)

    def put_dictionary(self, number: int, agent: str, stored: bytes, learned: int) -> Dictionary:
        """Write a dictionary, or a copy of it."""
        part = Dictionary(number, agent, 0, 0, HEAD + len(stored), digest_of(stored), learned)
        pack, offset = self.append(spell_head(part, self.state.key) + stored)
        return Dictionary(number, agent, pack, offset, part.size, part.digest, learned)

    def put_block(self, stored: Sequence[bytes], first: int, count: int, live: int, raw: int, dictionary: int) -> Block:
        """Write a block, whose bytes come in pieces."""
        size = HEAD + sum(map(len, stored))
        part = Block(0, 0, size, first, count, live, raw, dictionary, digest_of(*stored))
        pack, offset = self.append(b"".join((spell_head(part, self.state.key), *stored)))
        return Block(pack, offset, part.size, first, count, live, raw, dictionary, part.digest)

    def use(self, agent: str) -> None:
        """What comes next is of this agent."""
        entry = self.dictionary_of(agent)
        number = entry.number if entry is not None else 0
        if number == self._pending.dictionary:
            return
        self.flush()
        self._pending = _Pending(number if self._can_use(number) else 0)

    def _can_use(self, number: int) -> bool:
        """Make a dictionary known to the codec; False where it cannot be read."""
        if not self.codec.knows(number):
            reader = Reader(self.folder, self.state)
            with suppress(SourceUnreadable):
                self.codec.learn(number, reader.dictionary(number))
            reader.close()
        return self.codec.knows(number)

    def add(self, chunks: Sequence[bytes]) -> tuple[int, ...]:
        """Keep chunks that are not there yet; returns where all of them are."""
        self._recall.before = b""  # until all of them count
        known, key, pending = self.index(), self.state.key, self._pending
        numbers: list[int] = []
        for chunk in chunks:
            name = hash_of(chunk, key)
            number = known.get(name)
            if number is None:
                number = known[name] = self._next
                self._next += 1
                pending.chunks.append(chunk)
                pending.hashes.append(name)
                pending.raw += len(chunk)
                if pending.raw >= FULL:
                    self.flush()
                    pending = self._pending
            numbers.append(number)
        return runs_of(numbers)

    def index(self) -> dict[bytes, int]:
        """The numbers of chunks by their hashes, newest blocks first until there are enough."""
        if self._known is None:
            self._known = {}
            reader = Reader(self.folder, self.state)
            for block in reversed(self.state.blocks):
                if block in self._avoided:
                    continue
                with suppress(SourceUnreadable, FileNotFoundError):
                    for at, (length, name) in enumerate(zip(*reader.table(block), strict=True)):
                        if length:
                            self._known.setdefault(name, block.first + at)
                if len(self._known) >= REMEMBERED:
                    break
            reader.close()
        return self._known

    def flush(self) -> None:
        """Let the waiting chunks be packed."""
        pending = self._pending
        if not pending.chunks:
            return
        self._pending = _Pending(pending.dictionary)
        pending.first = self._next - len(pending.chunks)
        self._waiting.append((pending, self._begun(pending)))
        self._write_waiting(len(self._packers.begun) + _AHEAD)

    def _begun(self, pending: _Pending) -> Job:
        """The work at a block; in a small capture there is nothing to do beside it."""
        least = SMALL if self._packers.begun else FULL
        if self._packers and pending.raw >= least:
            pending.dictionary = 0
            return self._packers.begin(pending.chunks)
        body = b"".join(pending.chunks)
        pending.dictionary = pending.dictionary if len(body) < SMALL else 0
        return Job(packed=self.codec.pack_body(body, pending.dictionary))

    def _drain(self) -> None:
        self.flush()
        self._write_waiting(0)

    def _write_waiting(self, most: int) -> None:
        """Write the blocks that are packed, in their order; wait for them while there are more than so many."""
        while self._waiting and (len(self._waiting) > most or self._waiting[0][1].is_done()):
            pending, job = self._waiting.popleft()
            stored = table_of(pending.chunks, pending.hashes), job.result()
            count = len(pending.chunks)
            self.blocks.append(self.put_block(stored, pending.first, count, count, pending.raw, pending.dictionary))

    def begin_pack(self) -> None:
        """What comes next goes into a pack of its own."""
        self._open_pack(fresh=True)

    def append(self, stored: bytes) -> tuple[int, int]:
        """Write to the end of the pack that is in use; returns where."""
        if self._descriptor < 0 or self._ends[self._pack] >= PACK_BYTES:
            self._open_pack()
        offset = self._ends[self._pack]
        try:
            write_all(self.system, self._descriptor, stored)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(pack_path(self.folder, self._pack))) from error
        self._ends[self._pack] = offset + len(stored)
        return self._pack, offset

    def _open_pack(self, fresh: bool = False) -> None:
        """Go on with the last pack, or begin one.

        A pack is only continued where its last known part ends: what lies behind that may be all that is left of a
        capture, and nothing is put behind a hole.
        """
        if self._descriptor >= 0:
            self.system.sync(self._descriptor)
            self.system.close(self._descriptor)
            self._descriptor = -1
        last = max(self._ends, default=0)
        if not fresh and last and self._ends[last] < PACK_BYTES and self._continue(last):
            return
        # The number of a pack that was given up is not used again, as that one is removed.
        number = max((*self._ends, *packs(self.folder), *self.state.retired), default=0) + 1
        self._descriptor = open_log(self.system, pack_path(self.folder, number))
        self._pack, self._ends[number], self._opened_at = number, 0, 0

    def _continue(self, number: int) -> bool:
        try:
            descriptor = open_log(self.system, pack_path(self.folder, number), create=False)
        except FileNotFoundError:
            return False
        try:
            is_as_known = self.system.fstat(descriptor).st_size == self._ends[number]
        except BaseException:
            self.system.close(descriptor)
            raise
        if not is_as_known:
            self.system.close(descriptor)
            return False
        self._pack, self._descriptor, self._opened_at = number, descriptor, self._ends[number]
        return True

    def keep(self, version: Version, added: int) -> None:
        """A version of a file whose chunks were added, and how many bytes of it are new."""
        self._versions.append((version, added))

    def commit(self, taken_us: int) -> None:
        """Make everything that was added count."""
        self._drain()
        self._commit(taken_us, self._next)
        if self._known is not None:
            self._recall.before, self._recall.known = self.state.before, self._known

    def checkpoint(self, taken_us: int) -> None:
        """Make count what is written by now; what is being packed is not waited for."""
        self._write_waiting(len(self._waiting))
        first = self._next - len(self._pending.chunks)
        self._commit(taken_us, self._waiting[0][0].first if self._waiting else first)

    def _commit(self, taken_us: int, end: int) -> None:
        """Write a manifest of the chunks before this one, and of the versions that need no others."""
        ready = [one for one in self._versions if _end(one[0]) <= end]
        if not (self.blocks or ready or self.dictionaries):
            return
        self.sync()
        stored = sum(block.size for block in self.blocks) + sum(entry.size for entry in self.dictionaries)
        raw = sum(added for _, added in ready)
        capture = Capture(self.state.number + 1, taken_us, len(ready), raw, stored)
        manifest = Manifest(
            format=FORMAT,
            number=capture.number,
            whole=self.state.number == 0,
            before=self.state.before,
            key=self.state.key,
            next_chunk=end,
            captures=(capture,),
            places=(*self.state.places, *self.places),
            blocks=tuple(self.blocks),
            dictionaries=(*self.state.dictionaries, *self.dictionaries),
            versions=tuple(version for version, _ in ready),
        )
        text = _write_manifest(self.folder, manifest, self.system)
        self.state.add(manifest, text[:32])
        self._versions = [one for one in self._versions if _end(one[0]) > end]
        self.places, self.blocks, self.dictionaries = [], [], []

    def sync(self) -> None:
        """Make what was appended durable."""
        if self._descriptor >= 0:
            self.system.sync(self._descriptor)

    def settle(self) -> None:
        """Where there are many manifests, one that says it all takes their place."""
        if len(manifests(self.folder)) > MOST_MANIFESTS:
            replace_all(self.folder, self.state, self.system)
            self._recall.before = self.state.before if self._known is not None else b""


def _end(version: Version) -> int:
    """The number behind the last of a version's chunks."""
    return max(map(add, version.runs[::2], version.runs[1::2]), default=0)


def _write_manifest(folder: Path, manifest: Manifest, system: System) -> bytes:
    """Write a manifest in both places."""
    text = spell_manifest(manifest)
    for place in reversed(COPIES):
        replace_file(system, manifest_path(folder, manifest.number, place), text)
    return text


def replace_all(folder: Path, state: State, system: System = SYSTEM) -> None:
    """Write the state as one manifest, and remove those before it."""
    state.retired = (state.retired & packs(folder).keys()) - state.ends().keys()
    manifest = state.whole()
    text = _write_manifest(folder, manifest, system)
    state.number = state.first = manifest.number
    state.before = text[:32]
    sweep(folder, state, system)
    state.problems.clear()
    state.is_recovered = False


@contextmanager
def writer(
    folder: Path, system: System = SYSTEM, level: int = LEVEL, wait: float = WAIT, recall: Recall | None = None
) -> Iterator[Writer]:
    """The archive opened for writing; made where there is none. Raises Busy where another process writes."""
    refuse_links(folder)
    for part in (folder, folder / CAPTURES, folder / PACKS):
        make_folder(system, part)
    lock = folder / LOCK
    system.close(open_log(system, lock))
    with locked(system, lock, wait):
        state = _loaded(folder)
        state.key = state.key or os.urandom(KEY_BYTES)
        lost = list(state.lost)
        _put_right(folder, state, system)
        writing = Writer(folder, state, system, level, recall)
        writing.lost = lost
        try:
            yield writing
        finally:
            writing.close()


def _loaded(folder: Path) -> State:
    """The state of the archive; an empty one where there is none yet."""
    is_there = manifest_numbers(folder) or any(path.stat().st_size for path in packs(folder).values())
    return load(folder, locked=True) if is_there else State()


def _put_right(folder: Path, state: State, system: System) -> None:
    """Complete what was cut off, and write anew what is damaged in the manifests."""
    if state.problems or state.is_recovered:
        replace_all(folder, state, system)
    elif state.number and state.number not in manifests(folder):
        text = read_inside(manifest_path(folder, state.number, PACKS), MANIFEST_LIMIT)
        replace_file(system, manifest_path(folder, state.number), text)
    sweep(folder, state, system)


def sweep(folder: Path, state: State, system: System = SYSTEM) -> None:
    """Remove what is known to be of no use, and nothing else.

    That is: manifests before a whole one, packs that a prune gave up or that hold nothing of their own, and files that
    a killed process had not finished.
    """
    _set_aside(folder, [Path(damage.path) for damage in state.lost], system)
    old = [path for place in COPIES for number, path in manifests(folder, place).items() if number < state.first]
    ends, there = state.ends(), packs(folder)
    given_up = [
        there[number]
        for number in sorted(state.retired)
        if number in there and number not in ends and not has_other_key(folder, state, number)
    ]
    redundant = [there[number] for number, is_redundant in unnamed_packs(folder, state) if is_redundant]
    unfinished = [
        path for part in ("", *COPIES) for path in (folder / part).iterdir() if _TEMPORARY.fullmatch(path.name)
    ]
    for path in (*old, *given_up, *redundant, *unfinished):
        with suppress(FileNotFoundError):
            system.unlink(path)


def _set_aside(folder: Path, paths: Sequence[Path], system: System) -> None:
    """Keep manifests that cannot be read, in case somebody can."""
    for path in paths:
        if path.is_file():
            make_folder(system, folder / DAMAGED)
            system.replace(path, folder / DAMAGED / f"{path.parent.name}-{path.name}")
