"""The value types of an archive, the names of its files, and where it lies.

    index.sqlite       where each chunk lies and which versions of files there are; rebuilt from the packs when needed
    index.sha256       size and checksum of index.sqlite
    packs/*.pack       the content: blocks of compressed chunks, and records that say which files they belong to
    lock               locked by the one process that writes
    holds.json         which sessions must not be removed, and why

An archive may lie in a repository, which can hold links to another archive or to any file. So a link inside an archive
is refused, for reading and writing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from clew.errors import InvalidDocument
from clew.host import data_dir
from clew.io.paths import refuse_link_on_way

FOLDER = "archive"
PACKS, LOCK, INDEX, CHECKSUM, HOLDS = "packs", "lock", "index.sqlite", "index.sha256", "holds.json"
PACK_SUFFIX = ".pack"
CHUNK_ID_BYTES = 16
MAX_EARLIER_STATES = 128
"""Each one adds about 60 bytes to the record of a version, which is written with every capture of a growing file."""
_PACK_NAME = re.compile(r"[0-9]{8,12}-[0-9a-f]{16}")
_OLD_NAME = re.compile(r"[0-9]{8,12}\.(?:pack|manifest)")
_MAX_NAMED_FILES = 3
"""Number of files that one line about damage names."""

Role = Literal["main", "part", "side", "copy", "shared"]
"""What a file is to its session. A file that several sessions or all sessions of an agent need is shared."""


class SourceHome(msgspec.Struct, frozen=True, array_like=True):
    """A home folder that archived files come from."""

    kind: str
    name: str | None
    path: str
    env: tuple[tuple[str, str], ...] = ()
    """The environment variables that name folders of agents, sorted."""
    base: str = ""
    """For the mirror of another machine: the local folder that holds the copy of its root."""

    def folder_above(self, path: Path) -> Path | None:
        """The folder that a file lies below: the home, or one that a variable names; None for any other file."""
        folders = [self.path, *(folder for _, value in self.env for folder in value.split(","))]
        return next((Path(folder) for folder in folders if Path(folder) in path.parents), None)


class EarlierState(msgspec.Struct, frozen=True, array_like=True):
    """A replaced version of a file, whose content is the beginning of the version that replaced it."""

    taken_us: int
    size: int
    mtime_ns: int
    digest: bytes
    """SHA-256 of the content."""


class Version(msgspec.Struct, frozen=True, array_like=True):
    """The content and attributes of a file at one capture."""

    home: SourceHome
    path: bytes
    agent: str
    session: str
    role: Role
    main: bytes
    """Path of the main file of its session."""
    size: int
    mode: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    digest: bytes
    """SHA-256 of the content."""
    chunks: bytes
    """The ids of its chunks, one after the other."""
    capture: int
    taken_us: int
    written_ns: int
    """When the content was written: the first modification time that was seen with this content."""
    extends: bytes = b""
    """Digest of the version that this one only appended to, and replaces."""
    earlier: tuple[EarlierState, ...] = ()
    """The versions that this one replaced, oldest first. Empty in archives of earlier versions of clew."""

    @property
    def file(self) -> FileKey:
        """The key of the file that this is a version of."""
        return self.home, self.path

    @property
    def session_key(self) -> FileKey:
        """The key of the main file of its session."""
        return self.home, self.main

    def at(self, time_us: int) -> Version | None:
        """Return the version as it was archived at a time; None if it was not there yet."""
        if self.taken_us <= time_us:
            return self
        states = [state for state in self.earlier if state.taken_us <= time_us]
        return msgspec.structs.replace(self, **msgspec.structs.asdict(states[-1]), earlier=()) if states else None

    def chunk_ids(self) -> list[bytes]:
        """Return the ids of the chunks in their order. An earlier state needs only the first `size` bytes of them."""
        return [self.chunks[at : at + CHUNK_ID_BYTES] for at in range(0, len(self.chunks), CHUNK_ID_BYTES)]


FileKey = tuple[SourceHome, bytes]
Files = dict[FileKey, list[Version]]
"""The versions of each file, the newest last."""


class Capture(msgspec.Struct, frozen=True, array_like=True):
    """One entry of the history: what one pack added."""

    number: int
    taken_us: int
    files: int
    raw: int
    """Bytes of files that were new or had changed."""
    stored: int
    """Bytes of the pack."""


class PackRecords(msgspec.Struct, frozen=True, kw_only=True):
    """What a pack says about files and other packs."""

    versions: tuple[Version, ...] = ()
    captures: tuple[Capture, ...] = ()
    replaces: tuple[str, ...] = ()
    """Names of packs that this pack, together with `needs`, takes the place of."""
    needs: tuple[str, ...] = ()


class Damage(msgspec.Struct, frozen=True):
    """A place in an archive that cannot be read or does not have its checksum."""

    path: str
    offset: int
    what: str
    files: tuple[str, ...] = ()
    """Files that cannot be restored, or not in every version."""
    harmless: bool = False
    """No content is lost."""

    def __str__(self) -> str:
        place = f"{self.path} at byte {self.offset}" if self.offset else self.path
        affected = f"; affects {', '.join(self.files[:_MAX_NAMED_FILES])}" if self.files else ""
        more = len(self.files) - _MAX_NAMED_FILES
        return f"{place}: {self.what}{affected}" + (f" and {more} more" if more > 0 else "")


def archive_folder(chosen: str | None) -> Path:
    """Return the folder that the caller or `CLEW_ARCHIVE_DIR` names, else the one in clew's data folder."""
    named = chosen or os.environ.get("CLEW_ARCHIVE_DIR")
    return Path(named).expanduser() if named else data_dir() / FOLDER


def pack_path(folder: Path, name: str) -> Path:
    """Return the path of a pack."""
    return folder / PACKS / f"{name}{PACK_SUFFIX}"


def pack_names(folder: Path) -> list[str]:
    """Return the names of all packs in the folder, oldest first."""
    return sorted(
        path.stem
        for path in _entries(folder / PACKS)
        if path.suffix == PACK_SUFFIX and _PACK_NAME.fullmatch(path.stem) and not path.is_dir()
    )


def check_folder(folder: Path) -> None:
    """Refuse an archive with a link inside it, and one of an older format. Every command begins with this."""
    inner = [
        PACKS,
        LOCK,
        CHECKSUM,
        HOLDS,
        f"{HOLDS}.lock",
        *(f"{INDEX}{suffix}" for suffix in ("", "-journal", "-wal", "-shm")),
    ]
    for path in (*(folder / name for name in inner), *_entries(folder / PACKS)):
        refuse_link_on_way(folder, path)
    for path in (*_entries(folder / PACKS), *_entries(folder / "captures")):
        if _OLD_NAME.fullmatch(path.name) and path.is_file():
            raise InvalidDocument(
                f"{folder}: this archive has the format of an older clew and is not read or changed; "
                "move it away, or name another folder with --archive"
            )


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def is_same_content(one: Version, other: Version) -> bool:
    """Return True for versions with equal content and mode; a new modification time alone makes no version."""
    return (one.digest, one.size, one.mode) == (other.digest, other.size, other.mode)


def add_version(files: Files, version: Version) -> None:
    """Add a version to those of its file, without the versions that it replaces."""
    versions = files.setdefault(version.file, [])
    for _ in replaced_versions(versions, version):
        versions.pop()
    versions.append(version)


def replaced_versions(versions: Sequence[Version], version: Version) -> Sequence[Version]:
    """Return the last versions of a file that a new one replaces: it has their content, or only extends it."""
    if not versions or not (is_same_content(versions[-1], version) or versions[-1].digest == version.extends):
        return ()
    return versions[-2:] if len(versions) > 1 and is_same_content(versions[-2], version) else versions[-1:]


def earlier_states(replaced: Iterable[Version]) -> tuple[EarlierState, ...]:
    """Return the states that the record of a new version keeps of the versions that it replaces.

    Above `MAX_EARLIER_STATES` every second one is left out: their content stays, only their times are lost.
    """
    states: list[EarlierState] = []
    for one in replaced:
        states += [*one.earlier, EarlierState(one.taken_us, one.size, one.mtime_ns, one.digest)]
    return tuple(states[::2] if len(states) > MAX_EARLIER_STATES else states)


def path_text(version: Version) -> str:
    """Return the path of a version as text for messages."""
    return version.path.decode("utf-8", "backslashreplace")
