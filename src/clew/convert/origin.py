"""The original files of a converted session, which travel along so that converting back gives the same bytes.

They are packed with zstd and spelled as lines of JSON, each of a size that every reader of lines can bear.
"""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Annotated, NamedTuple, cast

import msgspec
import zstandard

from clew.agents.base import SourceFile
from clew.agents.receiving import BESIDE as BESIDE
from clew.agents.receiving import ORIGIN
from clew.errors import InvalidDocument
from clew.io.codec import dumps
from clew.io.compress import MAX_UNPACKED, open_source

TYPE = ORIGIN
MARK = b'{"type":"clew-origin",'
"""How every such line begins: as we spell it, so that no line need be decoded to tell."""
_PIECE = 512 << 10


class DamagedOriginal(InvalidDocument):
    """What should be the original of a converted session gives no files."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the original that travels along is damaged: {why}")
        self.why = why


class OriginalFile(msgspec.Struct, frozen=True):
    """One file of the original: its name beside the main file, its size and its hash."""

    name: str
    size: Annotated[int, msgspec.Meta(ge=0)]
    sha256: str


class Origin(msgspec.Struct, frozen=True):
    """What the first line says of the whole."""

    agent: str
    session: str
    target: str
    """Where the main file lives below a home folder."""
    converted: str
    """SHA-256 of the converted session's main file, without these lines."""
    files: list[OriginalFile]
    children: list[Origin] = []
    """The sub-agents that went with it."""

    def family(self) -> list[Origin]:
        """This one and those below it, in the order of the bytes."""
        return [self, *(each for child in self.children for each in child.family())]


class _Line(msgspec.Struct):
    type: str
    data: str
    origin: Origin | None = None


def lines(origin: Origin, sources: Sequence[SourceFile]) -> Iterator[bytes]:
    """The original as lines; the first describes it. `sources`: of it and of those below it."""
    yield dumps({"type": TYPE, "data": "", "origin": msgspec.to_builtins(origin)}) + b"\n"
    packer = zstandard.ZstdCompressor(level=9).compressobj()
    waiting = b""
    for piece in _read_all(origin, sources):
        waiting += packer.compress(piece)
        while len(waiting) >= _PIECE:
            yield _line(waiting[:_PIECE])
            waiting = waiting[_PIECE:]
    waiting += packer.flush()
    for at in range(0, len(waiting), _PIECE):
        yield _line(waiting[at : at + _PIECE])


def _read_all(origin: Origin, sources: Sequence[SourceFile]) -> Iterator[bytes]:
    for each, source in zip(origin.family(), sources, strict=True):
        for file in each.files:
            yield from _read_file(place(source, file.name), file.size)


def _read_file(path: Path, size: int) -> Iterator[bytes]:
    """The beginning of a file, which may have grown since."""
    with path.open("rb") as stream:
        while size and (piece := stream.read(min(size, _PIECE))):
            size -= len(piece)
            yield piece


def _line(packed: bytes) -> bytes:
    return dumps({"type": TYPE, "data": base64.b64encode(packed).decode()}) + b"\n"


def names(source: SourceFile) -> list[str]:
    """The files of a session: "" is the main one. One that was converted itself keeps its own original beside it."""
    beside = source.path.name + BESIDE
    is_there = (source.path.parent / beside).is_file()
    return ["", *source.parts, *source.sides, *([beside] if is_there else ())]


def describe(source: SourceFile) -> list[OriginalFile]:
    """Size and hash of each file of a session."""
    found = []
    for name in names(source):
        digest, size = hashlib.sha256(), 0
        for piece in _read_file(place(source, name), place(source, name).stat().st_size):
            digest.update(piece)
            size += len(piece)
        found.append(OriginalFile(name, size, digest.hexdigest()))
    return found


def place(source: SourceFile, name: str) -> Path:
    """Where a file of a session lies."""
    return source.path.parent / name if name else source.path


class Kept(NamedTuple):
    """An original that was found, and the file its lines stand in."""

    origin: Origin
    path: Path
    is_current: bool
    """False when the session went on after it was converted: then there is more than the original."""


def find(source: SourceFile) -> Kept | None:
    """The original that a converted session was made from; raises where it is there and gives no files."""
    beside = source.path.with_name(source.path.name + BESIDE)
    path = beside if beside.is_file() else source.path
    found = _last(path)
    if found is None:
        if path == beside:
            raise DamagedOriginal(f"{beside.name} does not hold it")
        return None
    with open_source(path) as stream:
        unpack(stream, found, [_NOWHERE] * sum(len(each.files) for each in found.family()))
    return Kept(found, path, _content(source.path) == found.converted and not source.parts)


def _last(path: Path) -> Origin | None:
    """The last description in a file."""
    found, is_there = None, False
    with open_source(path) as stream:
        for line in stream:
            if line.startswith(MARK):
                is_there = True
                found = _read(line).origin or found
    if is_there and found is None:
        raise DamagedOriginal("nothing says what it is")
    return found


class _Nowhere(io.RawIOBase):
    def write(self, piece: object) -> int:
        return 0


_NOWHERE = cast(IO[bytes], _Nowhere())


def _content(path: Path) -> str:
    """The hash of a file without the lines of an original."""
    digest = hashlib.sha256()
    with open_source(path) as stream:
        for line in stream:
            if not line.startswith(MARK):
                digest.update(line)
    return digest.hexdigest()


def _read(line: bytes) -> _Line:
    try:
        return msgspec.json.decode(line, type=_Line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedOriginal(str(error)) from error


def unpack(stream: IO[bytes], origin: Origin, outs: Sequence[IO[bytes]]) -> None:
    """Write the files of the original and of those below it, in their order, checked against their hashes."""
    reader = zstandard.ZstdDecompressor().stream_reader(cast(IO[bytes], _Packed(stream, origin)))
    try:
        files = [file for each in origin.family() for file in each.files]
        if sum(file.size for file in files) > MAX_UNPACKED:
            raise DamagedOriginal("it claims to be larger than any session")
        for file, out in zip(files, outs, strict=True):
            _unpack(reader, file, out)
    except zstandard.ZstdError as error:
        raise DamagedOriginal(str(error)) from error


def _unpack(reader: IO[bytes], file: OriginalFile, out: IO[bytes]) -> None:
    digest, missing = hashlib.sha256(), file.size
    while missing:
        piece = reader.read(min(missing, _PIECE))
        if not piece:
            raise DamagedOriginal("its end is missing")
        digest.update(piece)
        out.write(piece)
        missing -= len(piece)
    if digest.hexdigest() != file.sha256:
        raise DamagedOriginal(f"{file.name or 'its main file'} is not what it was")


class _Packed:
    """The packed bytes behind the line that describes an original, as a stream."""

    def __init__(self, stream: IO[bytes], origin: Origin) -> None:
        self._pieces = _pieces(stream, origin)
        self._left = b""

    def read(self, size: int) -> bytes:
        """At most so many bytes; none at the end."""
        self._left = self._left or next(self._pieces, b"")
        piece, self._left = self._left[:size], self._left[size:]
        return piece


def _pieces(stream: IO[bytes], origin: Origin) -> Iterator[bytes]:
    within = False
    for line in stream:
        if not line.startswith(MARK):
            continue
        read = _read(line)
        if read.origin is not None:
            within = read.origin == origin
        elif within and read.data:
            try:
                yield base64.b64decode(read.data, validate=True)
            except ValueError as error:
                raise DamagedOriginal(str(error)) from error
