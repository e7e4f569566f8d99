"""The local copy of another machine's session files: which files to request, and where they are stored.

A mirror repeats the other machine's paths below `files`. A copy with the size and the time of its original is not
requested again. Everything that the other machine sends is untrusted.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import msgspec

from clew.agents import registry
from clew.agents.base import Agent
from clew.datadir import private_folder
from clew.errors import RemoteFailed, UsageError
from clew.host import Host
from clew.io.atomic import write_atomic
from clew.io.paths import MAX_FOLDER_DEPTH, safe_relative
from clew.redact.credential_files import is_credential_file

FILE_LIMIT = 4 << 30
TOTAL_LIMIT = 64 << 30
_STATE = "state.json"
_AGENT_KEYS = re.compile(
    r"(?i)\.?(?:(?:mcp-)?auth|credentials?|secrets?|oauth_creds|google_accounts)\.(?:json|ya?ml|toml)|id_[a-z0-9]+"
)
"""Names of files in which agents keep keys beside their sessions, besides those that redaction knows."""
_DATABASE_LOG = re.compile("-(?:wal|shm|journal)$")
_ODD = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""Control characters, and bytes that are not UTF-8."""
_SECOND_NS = 10**9
_UNSTABLE_NS = _SECOND_NS // 2
"""Originals have times in whole seconds: a copy with half a second more is never taken for unchanged."""


class Listed(NamedTuple):
    """A file of the other machine."""

    path: str
    size: int
    mtime: int


class Wanted(NamedTuple):
    """A file to be sent from byte `begin` on, if what comes before it still has this digest."""

    file: Listed
    begin: int
    digest: str


class Stored(NamedTuple):
    """How many bytes of a file were received, and whether a longer earlier copy was kept."""

    received: int
    kept: bool


class MirrorState(msgspec.Struct, frozen=True, kw_only=True):
    """The state file of a mirror."""

    home: str
    env: dict[str, str]
    fetched_at: str
    gone: tuple[str, ...] = ()
    """Files that were deleted on the other machine; the copies stay."""
    problems: tuple[str, ...] = ()
    target: str = ""
    """The host that the files came from, as it was named to ssh; empty in files of earlier versions."""


class Mirror:
    """The copy of one machine, in clew's data folder."""

    def __init__(self, folder: Path, host_name: str) -> None:
        self.folder, self.host_name = folder, host_name
        self.files = folder / "files"
        self.kept = folder / "kept"
        """Earlier copies of files that became shorter on the host; no session is read from here."""

    def state(self) -> MirrorState | None:
        """Read the state file; None if there is none, or it is damaged."""
        try:
            return msgspec.json.decode((self.folder / _STATE).read_bytes(), type=MirrorState)
        except (OSError, msgspec.DecodeError):
            return None

    def remember(self, state: MirrorState) -> None:
        """Write the state file."""
        write_atomic(self.folder / _STATE, msgspec.json.encode(state))

    def host(self, home: str, env: Mapping[str, str]) -> Host:
        """Return the mirror as a home; variables that name folders outside of the mirror are left out."""
        folders = {name: self._mirrored(value, home) for name, value in env.items()}
        inside = {name: value for name, value in folders.items() if value is not None}
        return Host(self.place(home), inside, kind="remote", name=self.host_name, base=self.files)

    def place(self, path: str) -> Path:
        """Return the path of the copy of a file; refuse a path that could lead elsewhere."""
        if not path.startswith("/") or _ODD.search(path) or path.count("/") > MAX_FOLDER_DEPTH:
            raise UsageError(f"not a safe path: {path!r}")
        return self.files.joinpath(*map(safe_relative, PurePosixPath(path).parts[1:]))

    def _mirrored(self, value: str, home: str) -> str | None:
        """Return the folders in a variable's value as paths in the mirror; None if one cannot be such a path."""
        try:
            entries = [entry for entry in map(str.strip, value.split(",")) if entry]
            folders = [re.sub(r"^~(?=/|$)", lambda _: home, entry) for entry in entries]
            return ",".join(str(self.place(folder)) for folder in folders) or None
        except UsageError:
            return None

    def original(self, place: Path) -> str:
        """Return the path on the other machine."""
        return "/" + place.relative_to(self.files).as_posix()

    def roots(self, host: Host) -> list[str]:
        """Return the folders and files to list on the other machine, without those inside another one."""
        inside = {place for place in places(host) if place.is_relative_to(self.files)}
        found = sorted(map(self.original, inside))
        return [root for root in found if not any(root.startswith(f"{other}/") for other in found)]

    def is_ignored(self, host: Host) -> Callable[[str], bool]:
        """Return a function that tells whether no agent needs a file of the other machine."""
        roots = [(agent, root) for agent in registry.load_all() for root in agent.roots(host)]
        owners = [(agent, f"{self.original(root)}/") for agent, root in roots if root.is_relative_to(self.files)]

        def is_ignored(path: str) -> bool:
            below = [(agent, path.removeprefix(root)) for agent, root in owners if path.startswith(root)]
            return bool(below) and all(agent.ignores(PurePosixPath(name)) for agent, name in below)

        return is_ignored

    def filter_allowed(
        self, listing: Iterable[Listed], roots: list[str], is_ignored: Callable[[str], bool] = lambda _path: False
    ) -> tuple[list[Listed], list[str]]:
        """Return the files that may be copied, and a problem for each of the others."""
        admitted, problems, total = [], [], 0
        for file in listing:
            name = PurePosixPath(file.path).name
            if is_credential_file(file.path) or _AGENT_KEYS.fullmatch(name) or is_ignored(file.path):
                continue
            if (database := _DATABASE_LOG.sub("", name)) != name and _owner_of_database(database):
                continue
            reason = self._refusal(file, roots, total)
            if reason is None:
                admitted.append(file)
                total += file.size
            else:
                spelled = file.path.encode("utf-8", "backslashreplace").decode()
                problems.append(f"{spelled}: {reason}")
        return admitted, problems

    def _refusal(self, file: Listed, roots: list[str], total: int) -> str | None:
        """Return why a file is not copied; None if it is."""
        if not any(file.path == root or file.path.startswith(f"{root}/") for root in roots):
            return "it was not requested"
        try:
            self.place(file.path)
        except UsageError:
            return "its name could lead elsewhere"
        if owner := _owner_of_database(PurePosixPath(file.path).name):
            return f"a database of {owner} is not copied, since it may hold credentials; run clew on that machine"
        if file.size > FILE_LIMIT:
            return f"larger than {FILE_LIMIT >> 30} GiB"
        return "the mirror would be too large" if total + file.size > TOTAL_LIMIT else None

    def wanted(self, files: Iterable[Listed]) -> Iterator[Wanted]:
        """Yield the files that are new or have changed; of a file that has grown, only the appended bytes."""
        for file in files:
            place = self.place(file.path)
            try:
                known = place.stat()
            except OSError:
                known = None
            if known is None or not stat.S_ISREG(known.st_mode):
                # A folder at its path is refused when the file arrives.
                yield Wanted(file, 0, "-")
                continue
            if (known.st_size, known.st_mtime_ns) == (file.size, file.mtime * _SECOND_NS):
                continue
            begin = known.st_size if known.st_size <= file.size else 0
            yield Wanted(file, begin, _digest(place) if begin else "-")

    def store(self, wanted: Wanted, begin: int, pieces: Iterable[bytes], is_stable: bool) -> Stored:
        """Write the bytes that were sent: at the end of the copy, or as a new copy."""
        if begin not in (0, wanted.begin):
            raise RemoteFailed(f"{self.host_name}: sent bytes that were not requested")
        place = self.place(wanted.file.path)
        private_folder(str(place.parent))
        stored = Stored(_write_rest(place, begin, pieces), False) if begin else self._replace(place, pieces)
        # A file that was written in the last seconds, or was truncated meanwhile, is requested again next time.
        is_complete = is_stable and begin + stored.received == wanted.file.size
        stamp = wanted.file.mtime * _SECOND_NS + (0 if is_complete else _UNSTABLE_NS)
        os.utime(place, ns=(stamp, stamp))
        return stored

    def _replace(self, place: Path, pieces: Iterable[bytes]) -> Stored:
        """Replace the copy by the bytes that arrive; a longer copy is kept in the folder `kept`."""
        arriving = self.folder / f"arriving-{os.getpid()}"
        try:
            came = 0
            with open(os.open(arriving, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
                for piece in pieces:
                    came += out.write(piece)
            is_kept = came < _size(place) and self._keep(place)
            arriving.replace(place)
            return Stored(came, is_kept)
        finally:
            arriving.unlink(missing_ok=True)

    def _keep(self, place: Path) -> bool:
        """Move a copy to the folder `kept`, unless a longer one is there: a host cannot fill the disk with copies.

        Returns whether it was moved.
        """
        kept = self.kept / place.relative_to(self.files)
        private_folder(str(kept.parent))
        if _size(place) <= _size(kept):
            return False
        place.replace(kept)
        return True

    def kept_files(self) -> int:
        """Return the number of earlier copies in the folder `kept`."""
        return sum(len(names) for _, _, names in os.walk(self.kept))

    def gone(self, listed: set[str]) -> list[str]:
        """Return the copies whose originals were deleted."""
        copies = (self.original(Path(below) / name) for below, _, names in os.walk(self.files) for name in names)
        return sorted(path for path in copies if path not in listed)

    def extent(self) -> tuple[int, int]:
        """Return the number of files in the mirror, and their bytes."""
        sizes = []
        for below, _, names in os.walk(self.files):
            for name in names:
                with suppress(OSError):
                    sizes.append((Path(below) / name).stat().st_size)
        return len(sizes), sum(sizes)


def _owner_of_database(name: str) -> str | None:
    """Return the agent that gives its databases such a name."""
    owners = (agent for agent in registry.load_all() if agent.layout is not None and agent.layout.is_database(name))
    return next((agent.title for agent in owners), None)


def places(host: Host, agents: Iterable[Agent] | None = None) -> Iterator[Path]:
    """Yield every folder and file that the agents, by default all, read on a host."""
    for agent in registry.load_all() if agents is None else agents:
        yield from agent.roots(host)
        yield from agent.companions(host)


def _write_rest(place: Path, begin: int, pieces: Iterable[bytes]) -> int:
    """Append to a copy. Another process that does so at the same time writes the same bytes to the same offset."""
    came = 0
    with place.open("r+b") as out:
        out.seek(begin)
        for piece in pieces:
            came += out.write(piece)
    return came


def _size(path: Path) -> int:
    """Return the size of a regular file; -1 if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return -1
    return found.st_size if stat.S_ISREG(found.st_mode) else -1


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
