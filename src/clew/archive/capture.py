"""A capture: what is new in the sources goes into the archive.

A file that has the size, the times and the number on the disk that it had is not opened. One that grew is read to
see that its beginning is the same, and only its end is kept. Any other is a new version; the old one stays. What the
archive holds of a file and cannot be read any more is kept anew.
"""

from __future__ import annotations

import gc
import hashlib
import os
import random
import stat
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import msgspec

from clew.archive.blocks import RAW
from clew.archive.chunks import cut
from clew.archive.copying import Wanted, each_once
from clew.archive.health import damages, look, touched, unreadable, write_health
from clew.archive.layout import Place, Version
from clew.archive.mending import mend
from clew.archive.recovering import drop_known_again
from clew.archive.state import join_runs
from clew.archive.writing import Writer, replace_all
from clew.errors import SourceUnreadable
from clew.host import Host

COMMIT_BYTES = 160 << 20
"""After so many new bytes a manifest is written: what a kill can undo is no more, and what is being packed."""
_READ = 1 << 20
_LEAST_LEARNED, _MOST_LEARNED = 512 << 10, 2 << 20
"""A dictionary is learned from at least so much, and from no more."""
_SAMPLE = 8 << 10
_LARGEST_DICTIONARY = 112 << 10
_AGAIN = 8
"""A dictionary that was learned from this many times less than there is now is learned anew."""

Progress = Callable[[int, int], None]


class Outcome(msgspec.Struct, kw_only=True):
    """What a capture came to."""

    files: int = 0
    """Looked at."""
    unchanged: int = 0
    grown: int = 0
    new: int = 0
    rewritten: int = 0
    read: int = 0
    """Bytes of files that were new or had changed."""
    stored: int = 0
    """What was added to the packs; what was damaged may have gone from them."""
    mended: int = 0
    """Versions of files that were damaged in the archive and are not any more."""
    problems: list[str] = msgspec.field(default_factory=list)


class _Changed(NamedTuple):
    wanted: Wanted
    place: int
    path: bytes
    known: Version | None
    size: int
    torn: bool
    """What the archive has of it cannot be read."""


def capture(
    writer: Writer, files: Iterable[Wanted], now: Callable[[], datetime], progress: Progress | None = None
) -> Outcome:
    """Bring the archive up to date with these files."""
    # Many small objects come and go and none of them in circles; looking for those takes a tenth of the time.
    collects = gc.isenabled()
    gc.disable()
    try:
        return _capture(writer, files, now, progress)
    finally:
        if collects:
            gc.enable()


def _capture(
    writer: Writer, files: Iterable[Wanted], now: Callable[[], datetime], progress: Progress | None
) -> Outcome:
    outcome = Outcome(problems=[str(damage) for damage in writer.lost])
    before = writer.state.stored
    wrong = look(writer.folder, writer.state)
    bad = unreadable(writer.state, wrong.damaged)
    writer.avoid(bad)
    damaged = touched(writer.state, writer.state.versions(), bad)
    torn = {(one.place, one.path) for one in damaged}
    changed = sorted(_changed(writer, files, outcome, torn), key=lambda one: one.wanted.agent)
    small, large = _by_size(changed)
    _learn(writer, small)
    _take_all(writer, changed, outcome, now, progress)
    # Large blocks need no dictionary: what they could teach is for later, and learned while the last are packed.
    writer.flush()
    _learn(writer, large)
    writer.commit(_micros(now()))
    writer.settle()
    if drop_known_again(writer.folder, writer.state):
        replace_all(writer.folder, writer.state, writer.system)
    outcome.stored = writer.state.stored - before
    if wrong:
        mend(writer, wrong)
        _tell_damage(writer, outcome, len(damaged))
    else:
        write_health(writer.folder, writer.state, [], writer.system)
    return outcome


def _tell_damage(writer: Writer, outcome: Outcome, before: int) -> None:
    """Say what was made good, and what is still damaged."""
    left = look(writer.folder, writer.state)
    bad = unreadable(writer.state, left.damaged)
    outcome.mended = before - len(touched(writer.state, writer.state.versions(), bad))
    outcome.problems += map(str, damages(writer.folder, writer.state, left))


def _take_all(
    writer: Writer,
    changed: list[_Changed],
    outcome: Outcome,
    now: Callable[[], datetime],
    progress: Progress | None,
) -> None:
    total, waiting = sum(one.size for one in changed), 0
    for one in changed:
        waiting += _take(writer, one, outcome, _micros(now()))
        if waiting >= COMMIT_BYTES:
            writer.checkpoint(_micros(now()))
            waiting = 0
        if progress is not None:
            progress(outcome.read, total)


def _micros(moment: datetime) -> int:
    return round((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)


def _changed(
    writer: Writer, files: Iterable[Wanted], outcome: Outcome, torn: set[tuple[int, bytes]]
) -> Iterable[_Changed]:
    """The files that are not as they were last seen."""
    places: dict[int, tuple[int, Place]] = {}
    homes = _homes(writer)
    for wanted in each_once(files):
        if id(wanted.host) not in places:
            own = place_of(wanted.host)
            places[id(wanted.host)] = writer.place(own), own
        place, own = places[id(wanted.host)]
        main, path = (os.fsencode(_named(wanted.host, file)) for file in (wanted.main, wanted.path))
        if wanted.role != "shared" and (place, main) not in writer.state.files:
            place = homes.get((*_home(own), main), place)
        outcome.files += 1
        versions = writer.state.files.get((place, path))
        known = versions[-1] if versions else None
        try:
            status = wanted.path.stat()
        except OSError as error:
            outcome.problems.append(f"{wanted.path}: {error.strerror or error}")
            continue
        stamp = (known.size, known.mtime_ns, known.mode, known.stamp) if known is not None else None
        is_torn = (place, path) in torn
        if known is not None and _stamp(status) == stamp and known.role == wanted.role and not is_torn:
            outcome.unchanged += 1
        else:
            yield _Changed(wanted, place, path, known, status.st_size, is_torn)


def _homes(writer: Writer) -> dict[tuple[str, str | None, str, str, bytes], int]:
    """Which place has a session, by its main file: with other variables it is the same session, and kept once."""
    state = writer.state
    return {
        (*_home(state.places[number]), path): number
        for (number, path), versions in state.files.items()
        if versions[-1].role == "main"
    }


def _home(place: Place) -> tuple[str, str | None, str, str]:
    return place.kind, place.name, place.home, place.base


def _stamp(status: os.stat_result) -> tuple[int, int, int, tuple[int, int]]:
    mode = stat.S_IMODE(status.st_mode)
    return status.st_size, status.st_mtime_ns, mode, (status.st_ctime_ns, status.st_ino)


def place_of(host: Host) -> Place:
    """A home, with the variables that agents ask for when they say where their sessions are."""
    from clew.sources.fetch import variables

    env = {name: host.env[name] for name in variables() if host.env.get(name)}
    if host.base is not None:
        env = {name: _original(value, host.base) for name, value in env.items()}
    base = str(host.base.absolute()) if host.base is not None else ""
    return Place(host.kind, host.name, _named(host, host.home), env, base)


def _named(host: Host, path: Path) -> str:
    """A path as the machine it was written on names it, whole: `..` would lead elsewhere when it is put back."""
    whole = os.path.abspath(path)  # noqa: PTH100 - links are to stay as they are
    return host.origin(Path(whole)).path


def _original(value: str, base: Path) -> str:
    """Folders in a mirror, as the other machine calls them."""
    return ",".join("/" + os.path.relpath(folder, base) for folder in value.split(","))


def _take(writer: Writer, one: _Changed, outcome: Outcome, taken_us: int) -> int:
    """Archive one file; returns how many bytes were new in it. What cannot be read is told, and stops nothing."""
    wanted = one.wanted
    try:
        with _open(wanted.path) as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise SourceUnreadable(f"{wanted.path}: not a regular file")
            version = _read(writer, one, stream, status, taken_us)
    except SourceUnreadable as error:
        outcome.problems.append(str(error))
        return 0
    except OSError as error:
        if error.filename != str(wanted.path):
            raise
        outcome.problems.append(f"{wanted.path}: {error.strerror or error}")
        return 0
    _count(outcome, one, version)
    added = version.size - (one.known.size if version.grown and one.known is not None else 0)
    writer.keep(version, added)
    outcome.read += version.size
    return added


def _open(path: Path) -> BinaryIO:
    # O_NONBLOCK keeps a pipe named like a session from hanging us.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    return open(os.open(path, flags), "rb", buffering=0)


def _count(outcome: Outcome, one: _Changed, version: Version) -> None:
    if one.known is None:
        outcome.new += 1
    elif version.grown:
        outcome.grown += 1
    elif version.digest == one.known.digest:
        outcome.unchanged += 1
    else:
        outcome.rewritten += 1


class _Hashed:
    """A stream that is hashed as it is read. A failing disk is told with the name of the file."""

    def __init__(self, stream: BinaryIO, path: Path) -> None:
        self._stream, self._path = stream, path
        self.digest = hashlib.sha256()
        self.size = 0

    def read(self, size: int) -> bytes:
        """The next bytes."""
        try:
            piece = self._stream.read(size)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from error
        self.digest.update(piece)
        self.size += len(piece)
        return piece


def _read(writer: Writer, one: _Changed, stream: BinaryIO, status: os.stat_result, taken_us: int) -> Version:
    """A version of the file as long as it was when it was opened."""
    hashed = _Hashed(stream, one.wanted.path)
    size, mtime_ns, mode, stamp = _stamp(status)
    grown = one.known is not None and _has_grown(hashed, one.known, size)
    runs = one.known.runs if one.known is not None and grown and not one.torn else ()
    if hashed.size and not runs:
        stream.seek(0)
        hashed = _Hashed(stream, one.wanted.path)
    writer.use(one.wanted.agent)
    for chunks in cut(cast(BinaryIO, hashed), size - hashed.size):
        runs = join_runs(runs, writer.add(chunks))
    digest = hashed.digest.digest()
    is_same = one.known is not None and one.known.digest == digest
    return Version(
        place=one.place,
        path=one.path,
        agent=one.wanted.agent,
        session=one.wanted.session(),
        role=one.wanted.role,
        main=os.fsencode(_named(one.wanted.host, one.wanted.main)),
        size=hashed.size,
        mode=mode,
        mtime_ns=mtime_ns,
        stamp=stamp,
        digest=digest,
        runs=runs,
        taken_us=taken_us,
        written_ns=one.known.written_ns if one.known is not None and is_same else mtime_ns,
        grown=grown,
    )


def _has_grown(hashed: _Hashed, known: Version, size: int) -> bool:
    """Read as much as is known; True where that is what it was."""
    if size <= known.size or not known.size:
        return False
    while hashed.size < known.size and hashed.read(min(_READ, known.size - hashed.size)):
        pass
    return hashed.digest.digest() == known.digest


def _by_size(changed: list[_Changed]) -> tuple[list[_Changed], list[_Changed]]:
    """The files of agents that have less than a full block of them, and those of the others."""
    sizes: Counter[str] = Counter()
    for one in changed:
        sizes[one.wanted.agent] += one.size
    small = [one for one in changed if sizes[one.wanted.agent] < RAW]
    return small, [one for one in changed if sizes[one.wanted.agent] >= RAW]


def _learn(writer: Writer, changed: list[_Changed]) -> None:
    """Learn a dictionary for each agent that has none, or one that knew little."""
    for agent in sorted({one.wanted.agent for one in changed}):
        own = [one for one in changed if one.wanted.agent == agent and one.size]
        total = min(sum(one.size for one in own), _MOST_LEARNED)
        known = writer.dictionary_of(agent)
        if total < max(_LEAST_LEARNED, _AGAIN * known.learned if known is not None else 0):
            continue
        samples = _samples(own)
        dictionary = train(samples)
        if dictionary is not None:
            writer.learn(agent, dictionary, total)


def _samples(files: list[_Changed]) -> list[bytes]:
    """Pieces from all over the files; the same of the same files."""
    chance = random.Random(len(files))
    sizes = [one.size for one in files]
    chosen = chance.choices(range(len(files)), sizes, k=min(_MOST_LEARNED, sum(sizes)) // _SAMPLE)
    samples = []
    for at, times in sorted(Counter(chosen).items()):
        try:
            with _open(files[at].wanted.path) as stream:
                for _ in range(times):
                    stream.seek(chance.randrange(max(1, files[at].size - _SAMPLE)))
                    samples.append(stream.read(_SAMPLE))
        except OSError:
            continue
    return [sample for sample in samples if sample]


def train(samples: list[bytes]) -> bytes | None:
    """A dictionary; None where there is too little to learn from."""
    import zstandard

    size = min(_LARGEST_DICTIONARY, sum(map(len, samples)) // 16)
    try:
        return zstandard.train_dictionary(size, list(samples), k=256, d=8).as_bytes()
    except zstandard.ZstdError:
        return None
