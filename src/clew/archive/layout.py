"""What an archive is made of: packs with the content, and one manifest per capture that says what it is.

    captures/00000007.manifest   digest, then packed records: files, blocks, dictionaries
    packs/00000007.manifest      the same once more
    packs/00000001.pack          blocks and dictionaries, one behind the other, each with a head that tells what it is
    health                       when each pack was last found whole, and what was not
    damaged/                     manifests that could not be read, and bytes of packs that belonged to nothing
    lock                         held by who writes

A chunk is a record of a source; it has a number for ever. A block is many chunks packed together. A manifest with
`whole` tells everything there is; the others add to it. What no manifest names is found by the heads in the packs.

An archive may lie in a repository, which can hold links to another archive or to any file: nothing inside it is a link.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from clew.errors import InvalidDocument, SourceUnreadable
from clew.host import data_dir
from clew.io.filesystem import SYSTEM, open_regular
from clew.io.paths import refuse_link_on_way

FORMAT = 2
FOLDER = "archive"
CAPTURES, PACKS, LOCK, HEALTH, DAMAGED = "captures", "packs", "lock", "health", "damaged"
_SUFFIX, _PACK = ".manifest", ".pack"
DIGEST = 32
KEY_BYTES = 16
HASH_BYTES = 9
"""Of a chunk. The hash is keyed, so nobody can make two chunks that have the same one."""
MANIFEST_LIMIT = 1 << 30
"""Bytes of a stored manifest."""
_UNPACKED_LIMIT, _FREE_UNPACKED, _MAX_RATIO = 4 << 30, 64 << 20, 200
"""A manifest unpacks to at most so many bytes; to more than the second only up to so many times its stored size."""
_MAX_DIGITS = 12
_NAMED = 3
"""So many files are named in a line."""

COPIES = (CAPTURES, PACKS)
"""Where the manifests are, and where they are once more."""

Role = Literal["main", "part", "side", "copy", "shared"]
"""What a file is to its session. One that several sessions need, or all of an agent, is shared."""


class Place(msgspec.Struct, frozen=True, array_like=True):
    """A home that files come from."""

    kind: str
    name: str | None
    home: str
    env: dict[str, str]
    base: str = ""
    """The folder on this machine that stands for the root of another."""


class Damage(msgspec.Struct, frozen=True):
    """Something that is not as it was."""

    path: str
    offset: int
    what: str
    files: tuple[str, ...] = ()
    """Those that cannot be brought back for it, or not in every version."""
    harmless: bool = False
    """All that was said there is said elsewhere, too."""

    def __str__(self) -> str:
        place = f"{self.path} at byte {self.offset}" if self.offset else self.path
        touched = f"; touches {', '.join(self.files[:_NAMED])}" if self.files else ""
        more = len(self.files) - _NAMED
        return f"{place}: {self.what}{touched}" + (f" and {more} more" if more > 0 else "")


class Block(msgspec.Struct, frozen=True, array_like=True):
    """Where chunks lie: `count` of them from number `first` on."""

    pack: int
    offset: int
    size: int
    first: int
    count: int
    live: int
    """So many of them are kept."""
    raw: int
    dictionary: int
    digest: bytes
    """Of the stored bytes."""


class Dictionary(msgspec.Struct, frozen=True, array_like=True):
    """A dictionary that blocks were packed with."""

    number: int
    agent: str
    pack: int
    offset: int
    size: int
    digest: bytes
    learned: int
    """From how many bytes."""


class Version(msgspec.Struct, frozen=True, array_like=True):
    """A file as it was at a capture."""

    place: int
    path: bytes
    agent: str
    session: str
    role: Role
    main: bytes
    """The main file of its session."""
    size: int
    mode: int
    mtime_ns: int
    stamp: tuple[int, int]
    """What else tells an unchanged file: the time of its last change of any kind, and its number on the disk."""
    digest: bytes
    """SHA-256."""
    runs: tuple[int, ...]
    """Its chunks: a first number and a count, again and again."""
    taken_us: int
    written_ns: int = 0
    """When it was written to, as far as is known: a file that is only touched or copied keeps it."""
    grown: bool = False
    """The file only became longer: this takes the place of the version before."""


class Capture(msgspec.Struct, frozen=True, array_like=True):
    """One line of the history."""

    number: int
    taken_us: int
    files: int
    raw: int
    stored: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a capture added; with `whole`, all there is. Places and dictionaries are always told all."""

    format: int
    number: int
    whole: bool
    before: bytes
    """The digest of the manifest before it."""
    key: bytes
    next_chunk: int
    captures: tuple[Capture, ...]
    places: tuple[Place, ...] = ()
    blocks: tuple[Block, ...] = ()
    dictionaries: tuple[Dictionary, ...] = ()
    versions: tuple[Version, ...] = ()
    retired: tuple[int, ...] = ()
    """Of a whole manifest: packs that a prune gave up. All that was to be kept of them is in others."""


RECOVERED = Place("recovered", None, "/recovered", {})
"""The place of files that were made of chunks whose own files are not known, as no manifest names them any more."""


def archive_folder(chosen: str | None, env: Mapping[str, str] | None = None) -> Path:
    """The folder that was named, here or by `CLEW_ARCHIVE_DIR`, else the one among clew's own files."""
    named = chosen or (os.environ if env is None else env).get("CLEW_ARCHIVE_DIR")
    return Path(named).expanduser() if named else data_dir(env) / FOLDER


def manifest_path(folder: Path, number: int, place: str = CAPTURES) -> Path:
    """Where a manifest lies, or its copy."""
    return folder / place / f"{number:08}{_SUFFIX}"


def pack_path(folder: Path, number: int) -> Path:
    """Where a pack lies."""
    return folder / PACKS / f"{number:08}{_PACK}"


def refuse_links(folder: Path) -> None:
    """Refuse an archive with a link inside it. Everything that reads or writes an archive begins with this."""
    for inner in (CAPTURES, PACKS, DAMAGED, LOCK, HEALTH):
        refuse_link_on_way(folder, folder / inner)
    for inner in COPIES:
        try:
            paths = list((folder / inner).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            continue
        for path in paths:
            refuse_link_on_way(folder / inner, path)


def open_inside(path: Path) -> BinaryIO:
    """Open a file of an archive for reading; raises SourceUnreadable for a link and for anything but a regular file."""
    return open(open_regular(SYSTEM, path, os.O_RDONLY), "rb")


def read_inside(path: Path, limit: int) -> bytes:
    """The bytes of a file of an archive; raises SourceUnreadable where there are more."""
    with open_inside(path) as stream:
        if os.fstat(stream.fileno()).st_size > limit:
            raise SourceUnreadable(f"{path}: larger than {limit} bytes")
        return stream.read(limit)


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def numbered(folder: Path, suffix: str) -> dict[int, Path]:
    """The files of the folder whose names are a number, spelled as clew spells it."""
    try:
        names = [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return {}
    plain = {name.removesuffix(suffix): folder / name for name in names if name.endswith(suffix)}
    stems = (stem for stem in sorted(plain) if stem.isascii() and stem.isdigit() and len(stem) <= _MAX_DIGITS)
    numbers = {int(stem): plain[stem] for stem in stems}
    return {number: path for number, path in numbers.items() if path.name == f"{number:08}{suffix}" and _is_file(path)}


def manifests(folder: Path, place: str = CAPTURES) -> dict[int, Path]:
    """Every manifest by its number."""
    return numbered(folder / place, _SUFFIX)


def manifest_numbers(folder: Path) -> set[int]:
    """The numbers of all manifests that are there, once or twice."""
    return {number for place in COPIES for number in manifests(folder, place)}


def packs(folder: Path) -> dict[int, Path]:
    """Every pack by its number."""
    return numbered(folder / PACKS, _PACK)


def spell_manifest(manifest: Manifest) -> bytes:
    """The bytes of a manifest."""
    import zstandard

    body = zstandard.ZstdCompressor(level=9).compress(msgspec.msgpack.encode(manifest))
    return hashlib.sha256(body).digest() + body


def read_manifest(path: Path) -> tuple[Manifest, bytes]:
    """A manifest and its digest; raises SourceUnreadable where it is damaged."""
    import zstandard

    raw = read_inside(path, MANIFEST_LIMIT)
    digest, body = raw[:DIGEST], raw[DIGEST:]
    if hashlib.sha256(body).digest() != digest:
        raise SourceUnreadable(f"{path}: the manifest is damaged")
    try:
        # The size that a frame declares is allocated at once, whatever `max_output_size` says.
        if (
            not 0
            <= zstandard.frame_content_size(body)
            <= min(_UNPACKED_LIMIT, max(_FREE_UNPACKED, _MAX_RATIO * len(body)))
        ):
            raise SourceUnreadable(f"{path}: the manifest says that it is larger than any")
        found = msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(body))
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise InvalidDocument(f"{path}: written by another clew; format {FORMAT} is read here")
        return msgspec.convert(found, Manifest), digest
    except (zstandard.ZstdError, msgspec.MsgspecError) as error:
        raise SourceUnreadable(f"{path}: the manifest is damaged: {error}") from None
