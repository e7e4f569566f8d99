"""Fetches from another machine in one connection: list its files, request new bytes, store them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from clew.agents.base import Agent
from clew.datadir import private_folder
from clew.errors import RemoteFailed, UsageError
from clew.host import Host
from clew.model.time import spell_time
from clew.sources.mirror import Listed, Mirror, MirrorState, Stored, Wanted, places
from clew.sources.ssh import IDLE_SECONDS, Connection, Target

LISTING_LIMIT = 256 << 20
_VALUE_LIMIT = 1 << 16
_STABLE_AFTER_SECONDS = 2
"""A file that was written to later than this before the listing may still change within the same second."""


class FetchResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a fetch found and received."""

    files: int
    """Session files on the host."""
    waiting: int
    """How many of them are new or changed."""
    waiting_bytes: int
    """Bytes of them that are not here yet."""
    received: int = 0
    """Bytes received."""
    gone: int = 0
    """Copies whose originals were deleted on the host."""
    kept: int = 0
    """Files that became shorter on the host, so that an earlier copy was set aside."""
    problems: tuple[str, ...] = ()


Progress = Callable[[int, int], None]


def fetch_dry_run(target: Target, mirror: Mirror) -> FetchResult:
    """Return what a fetch would receive."""
    with Connection(target, IDLE_SECONDS) as line:
        _, files, problems, wanted, _ = list_remote_files(line, mirror)
        return _visit(len(files), wanted, problems)


def fetch(
    target: Target, mirror: Mirror, now: datetime, progress: Progress | None = None, idle: float = IDLE_SECONDS
) -> FetchResult:
    """Fetch what is new. What was received before a connection broke is kept, and is not requested again."""
    private_folder(str(mirror.folder))
    with Connection(target, idle) as line:
        state, files, problems, wanted, clock = list_remote_files(line, mirror)
        received = kept = 0
        line.send([*(word for want in wanted for word in _request(want)), ""])
        for number, want in enumerate(wanted, 1):
            stored = _receive(line, mirror, want, clock, problems)
            received, kept = received + stored.received, kept + stored.kept
            if progress is not None:
                progress(number, len(wanted))
    gone = mirror.gone({file.path for file in files})
    known = MirrorState(
        home=state.home,
        env=state.env,
        fetched_at=spell_time(now),
        gone=tuple(gone),
        problems=tuple(problems),
        target=str(target),
    )
    mirror.remember(known)
    visit = _visit(len(files), wanted, problems)
    return msgspec.structs.replace(visit, received=received, gone=len(gone), kept=kept, problems=tuple(problems))


def list_remote_files(
    line: Connection, mirror: Mirror
) -> tuple[MirrorState, list[Listed], list[str], list[Wanted], int]:
    """Return the state and the files of the host, its problems, the files to request, and the time of its clock."""
    state = read_remote_environment(line)
    host = _host(mirror, state)
    roots = mirror.roots(host)
    line.send([*roots, ""])
    clock = line.number("list")
    listed = list(_listing(line.payload(LISTING_LIMIT)))
    complete = line.frame("listed") == ["0"]
    files, problems = mirror.filter_allowed(listed, roots, mirror.is_ignored(host))
    if not complete:
        problems.append("some folders could not be read")
    return state, files, problems, list(mirror.wanted(files)), clock


def read_remote_environment(line: Connection) -> MirrorState:
    """Ask the host for its home and for the variables that agents read."""
    names = variables()
    line.send([" ".join(names)])
    line.frame("home")
    home = _text(line.payload(_VALUE_LIMIT))
    env = {}
    for name in names:
        line.frame("variable")
        env[name] = _text(line.payload(_VALUE_LIMIT))
    line.frame("ready")
    return MirrorState(home=home, env={name: value for name, value in env.items() if value}, fetched_at="")


def _host(mirror: Mirror, state: MirrorState) -> Host:
    try:
        return mirror.host(state.home, state.env)
    except UsageError as error:
        raise RemoteFailed(f"{mirror.host_name}: its home is {error}") from None


def variables(agents: Iterable[Agent] | None = None) -> list[str]:
    """Return the environment variables that the agents, by default all, read to locate their sessions."""
    asked = _Asked()
    for _ in places(Host(Path("/"), asked), agents):
        pass
    return sorted(name for name in asked.names if name.isascii() and name.isidentifier())


class _Asked(dict[str, str]):
    """An empty environment that records which names are looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def get(self, name: str, default: object = None) -> object:  # type: ignore[override]
        self.names.add(name)
        return default

    def __contains__(self, name: object) -> bool:
        self.names.add(str(name))
        return False


def _listing(pieces: Iterator[bytes]) -> Iterator[Listed]:
    """Parse lines of size, time and path; skip other lines."""
    for line in b"".join(pieces).split(b"\n"):
        size, _, rest = line.partition(b" ")
        mtime, _, path = rest.partition(b" ")
        if size.isdigit() and mtime.isdigit() and len(size) < 19 and len(mtime) < 12:
            yield Listed(path.decode("utf-8", "surrogateescape"), int(size), int(mtime))


def _request(want: Wanted) -> Iterator[str]:
    yield f"{want.begin} {want.file.size} {want.digest}"
    yield want.file.path


def _receive(line: Connection, mirror: Mirror, want: Wanted, clock: int, problems: list[str]) -> Stored:
    begin = line.number("file")
    pieces = line.payload(max(want.file.size - begin, 0))
    is_stable = want.file.mtime + _STABLE_AFTER_SECONDS <= clock
    try:
        return mirror.store(want, begin, pieces, is_stable)
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        for _ in pieces:
            pass
        problems.append(f"{want.file.path}: a file and a folder have the same name")
        return Stored(0, False)


def _visit(files: int, wanted: list[Wanted], problems: list[str]) -> FetchResult:
    waiting = [want.file.size - want.begin for want in wanted if want.file.size > want.begin]
    return FetchResult(files=files, waiting=len(waiting), waiting_bytes=sum(waiting), problems=tuple(problems))


def _text(pieces: Iterator[bytes]) -> str:
    return b"".join(pieces).decode("utf-8", "surrogateescape")
