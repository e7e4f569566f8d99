"""The original files of a converted session, which travel along so that converting back gives the same bytes.

They are compressed with zstd and written as lines of JSON: one that describes the files, then their bytes in base64,
in lines of a size that every reader of lines accepts. Nothing of the description is believed: the files are unpacked
into a temporary folder and accepted only if their agent finds sessions there.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import weakref
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated, NamedTuple

import msgspec
import zstandard

from clew.agents import registry
from clew.agents.backups import is_plain_file
from clew.agents.base import Agent, SourceFile, open_main
from clew.agents.target_profile import ORIGIN
from clew.agents.target_profile import ORIGINAL_FILE_SUFFIX as ORIGINAL_FILE_SUFFIX
from clew.convert.copies import PIECE_BYTES, copies_of, is_own, place_of, places_of, read_pieces
from clew.errors import InvalidDocument, UsageError
from clew.host import Host
from clew.io.codec import dumps
from clew.io.compress import MAX_UNPACKED, SUFFIXES, open_source
from clew.io.database_paths import is_in_database
from clew.io.paths import safe_below
from clew.model.json import JSON
from clew.redact.packed import is_origin_line

MARK = b'{"type":"clew-origin",'
"""How clew begins every such line, so that most lines need not be decoded."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def is_marked(line: bytes) -> bool:
    """True for a line of an original, also where another program rewrote its JSON or glued it to the line before."""
    return line.startswith(MARK) or is_origin_line(line)


class DamagedOriginal(InvalidDocument):
    """The original inside a session cannot be unpacked."""

    def __init__(self, why: str) -> None:
        self.why = f"it is damaged: {why}"
        super().__init__(f"the included original: {self.why}")


class Misplaced(InvalidDocument):
    """An original with a file that is no session of its agent, nor a part of one."""

    def __init__(self, name: str) -> None:
        self.why = f"{name!r} belongs nowhere"
        super().__init__(f"the included original has an unsafe path: {name!r}")


class OriginalFile(msgspec.Struct, frozen=True):
    """One file of the original: its name beside the main file, its size and its hash."""

    name: str
    size: Annotated[int, msgspec.Meta(ge=0)]
    sha256: str


class Origin(msgspec.Struct, frozen=True):
    """The description of an original, in the first of its lines."""

    agent: str
    session: str
    target: str
    """Where the main file belongs below a home folder."""
    converted: str
    """SHA-256 of the converted session's main file, without these lines; empty where it is unknown."""
    files: list[OriginalFile]
    children: list[Origin] = []
    """The sub-agents that were converted with it."""
    beside: str = ""
    """Of a sub-agent: its converted file, relative to the folder of the converted session's main file."""
    title: str | None | msgspec.UnsetType = msgspec.UNSET
    """The title of the converted session; older originals do not have it."""
    copies: list[OriginalFile] = []
    """What its agent keeps for it elsewhere; the bytes of all of these come last."""
    logs: list[OriginalFile] = []
    """The further logs of the converted session, beside its main file, as they were written."""
    list_entry: dict[str, JSON] = {}
    """What the agent's list of sessions said about it."""

    def family(self) -> list[Origin]:
        """This one and those below it, in the order of the bytes."""
        return [self, *(each for child in self.children for each in child.family())]


class _Line(msgspec.Struct):
    type: str
    data: str
    origin: Origin | None = None


# Packing


def file_names(source: SourceFile) -> list[str]:
    """The files of a session: "" is the main one. One that was converted itself keeps its own original beside it."""
    beside = source.path.name + ORIGINAL_FILE_SUFFIX
    is_there = is_plain_file(source.path.parent / beside)
    return ["", *source.parts, *source.sides, *([beside] if is_there else ())]


def file_path(source: SourceFile, name: str) -> Path:
    """The path of a file of a session."""
    return source.path.parent / name if name else source.path


def describe(source: SourceFile) -> list[OriginalFile]:
    """Size and hash of each file of a session."""
    return [_describe_file(name, file_pieces(source, name)) for name in file_names(source)]


def describe_copies(source: SourceFile) -> list[OriginalFile]:
    """Size and hash of each copy that its agent keeps for a session."""
    return [_describe_file(name, read_pieces(path)) for name, path in copies_of(source)]


def file_pieces(source: SourceFile, name: str, size: int | None = None) -> Iterator[bytes]:
    """A file of a session in pieces, as it is on disk; rows of a database as a file."""
    if not name and is_in_database(str(source.path)):
        with open_main(msgspec.structs.replace(source, mask=None)) as stream:
            yield from iter(lambda: stream.read(PIECE_BYTES), b"")
        return
    if size is None and source.frozen and not name:
        size = source.size
    yield from read_pieces(file_path(source, name), size)


def _describe_file(name: str, pieces: Iterable[bytes]) -> OriginalFile:
    digest, length = hashlib.sha256(), 0
    for piece in pieces:
        digest.update(piece)
        length += len(piece)
    return OriginalFile(name, length, digest.hexdigest())


def encode_original(origin: Origin, sources: Sequence[SourceFile]) -> Iterator[bytes]:
    """The original as lines; the first describes it. `sources`: of it and of those below it."""
    yield dumps({"type": ORIGIN, "data": "", "origin": msgspec.to_builtins(origin)}) + b"\n"
    compressor = zstandard.ZstdCompressor(level=9).compressobj()
    packed = b""
    for piece in _contents(origin, sources):
        packed += compressor.compress(piece)
        while len(packed) >= PIECE_BYTES:
            yield _line(packed[:PIECE_BYTES])
            packed = packed[PIECE_BYTES:]
    packed += compressor.flush()
    for at in range(0, len(packed), PIECE_BYTES):
        yield _line(packed[at : at + PIECE_BYTES])


def _contents(origin: Origin, sources: Sequence[SourceFile]) -> Iterator[bytes]:
    pairs = list(zip(origin.family(), sources, strict=True))
    for each, source in pairs:
        for file in each.files:
            yield from file_pieces(source, file.name, file.size)
    for each, source in pairs:
        places = places_of(source)
        for copy in each.copies:
            path = place_of(places, copy.name)
            yield from read_pieces(path, copy.size) if path is not None else ()


def _line(packed: bytes) -> bytes:
    return dumps({"type": ORIGIN, "data": base64.b64encode(packed).decode()}) + b"\n"


# Unpacking


class Member(NamedTuple):
    """A session of an original, decoded from its own bytes."""

    origin: Origin
    source: SourceFile
    session: dict[str, JSON]
    first_prompt: str | None
    copies: list[Path]
    """The unpacked files of `origin.copies`."""


class Original:
    """An original that was found in a session and unpacked. Its folder is removed with this object."""

    def __init__(self, origin: Origin, path: Path) -> None:
        self.origin = origin
        self.path = path
        """The file that holds its lines."""
        self._folder = Path(mkdtemp(prefix="clew-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._unpack()

    def _unpack(self) -> None:
        """Write all files and check their hashes; they are numbered, as their names are not checked yet."""
        family = self.origin.family()
        files = [file for each in family for file in each.files] + [copy for each in family for copy in each.copies]
        if sum(file.size for file in files) > MAX_UNPACKED:
            raise DamagedOriginal("its stated size is too large")
        packed = self._folder / "packed"
        with open_source(self.path) as lines, packed.open("wb") as out:
            for piece in _packed_pieces(lines, self.origin):
                out.write(piece)
        with packed.open("rb") as stream:
            reader = zstandard.ZstdDecompressor().stream_reader(stream)
            for number, file in enumerate(files):
                digest, missing = hashlib.sha256(), file.size
                with (self._folder / str(number)).open("wb") as out:
                    while missing:
                        try:
                            piece = reader.read(min(missing, PIECE_BYTES))
                        except zstandard.ZstdError as error:
                            raise DamagedOriginal(str(error)) from error
                        if not piece:
                            raise DamagedOriginal("its end is missing")
                        digest.update(piece)
                        out.write(piece)
                        missing -= len(piece)
                if digest.hexdigest() != file.sha256:
                    raise DamagedOriginal(f"{file.name or 'its main file'} is not what it was")
        packed.unlink()

    def lay_out(self) -> list[Member]:
        """Give the files their names; returns the sessions: the one that was converted, then those below it.

        Each must be found by its agent in its place, with the files and copies that such a session has, and each of
        those below must be started by another.
        """
        agent, home, family = registry.get(self.origin.agent), self._folder / "home", self.origin.family()
        unpacked = (self._folder / str(number) for number in count())
        for each in family:
            try:
                main = home / safe_below(each.target)
                paths = [main, *(main.parent / safe_below(file.name) for file in each.files[1:])]
            except UsageError:
                outside = [name for name in (each.target, *(file.name for file in each.files)) if _leads_out(name)]
                raise Misplaced(outside[0]) from None
            if not any(main.is_relative_to(root) and main != root for root in agent.roots(Host.at(home))):
                raise Misplaced(each.target)
            for path in paths:
                path.parent.mkdir(parents=True, exist_ok=True)
                next(unpacked).rename(path)
        members = [_member(agent, each, home, [next(unpacked) for _ in each.copies]) for each in family]
        started = {link.get("session_id") for member in members for link in member.session.get("subagents") or ()}
        for member in members[1:]:
            if member.session["id"] not in started:
                raise Misplaced(member.origin.target)
        return members


def find(source: SourceFile) -> Original | None:
    """The original that a converted session was made from; raises where it is damaged."""
    beside = source.path.with_name(source.path.name + ORIGINAL_FILE_SUFFIX)
    path = beside if is_plain_file(beside) else source.path
    origin, has_lines = None, False
    if is_in_database(str(path)) and not is_plain_file(path):
        return None
    with open_source(path) as stream:
        for line in filter(is_marked, stream):
            has_lines = True
            origin = _decode(line).origin or origin
    if origin is None:
        if has_lines:
            raise DamagedOriginal("its description is missing")
        if path == beside:
            raise DamagedOriginal(f"{beside.name} does not hold it")
        return None
    _check(origin)
    return Original(origin, path)


def _decode(line: bytes) -> _Line:
    try:
        return msgspec.json.decode(line, type=_Line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedOriginal(str(error)) from error


def _packed_pieces(lines: Iterator[bytes], origin: Origin) -> Iterator[bytes]:
    """The compressed bytes behind the line that describes an original."""
    is_wanted = False
    for line in filter(is_marked, lines):
        decoded = _decode(line)
        if decoded.origin is not None:
            is_wanted = decoded.origin == origin
        elif is_wanted:
            try:
                yield base64.b64decode(decoded.data, validate=True)
            except ValueError as error:
                raise DamagedOriginal(str(error)) from error


def _check(origin: Origin) -> None:
    """Refuse names that no file can have. Names that lead elsewhere are no mere damage: `lay_out` refuses them."""
    paths = []
    for each in origin.family():
        file_names = [file.name for file in each.files]
        if not file_names or file_names[0]:
            raise DamagedOriginal("its list of files is missing")
        for name in (each.target, *file_names[1:]):
            if not _leads_out(name) and not _is_path(name):
                raise DamagedOriginal(f"{name!r} names no file")
        if registry.is_known(origin.agent) and not _leads_out(each.target):
            _check_place(origin.agent, each)
        paths += [each.target, *(f"{each.target.rpartition('/')[0]}/{name}" for name in file_names[1:])]
    if len({*paths}) < len(paths):
        raise DamagedOriginal("two of its files have the same path")


def _leads_out(name: str) -> bool:
    return name.startswith("/") or ".." in name.split("/")


def _is_path(name: str) -> bool:
    try:
        safe_below(name).encode()
    except (UsageError, UnicodeEncodeError):
        return False
    return _CONTROL.search(name) is None


def _check_place(agent: str, origin: Origin) -> None:
    """Refuse a session among those of another agent, and copies without a place."""
    host = Host.at(Path("/"))
    main = host.home / origin.target
    owners = [name for name in registry.names() if any(map(main.is_relative_to, registry.get(name).roots(host)))]
    if main in registry.get(agent).roots(host):
        raise DamagedOriginal(f"{origin.target!r} is a folder of sessions")
    if owners and agent not in owners:
        raise DamagedOriginal(f"{origin.target!r} belongs to another agent")
    for copy in origin.copies if owners else ():
        try:
            is_place = place_of(places_of(SourceFile(agent, main)), copy.name) is not None
        except UsageError:
            is_place = False
        if not is_place or _CONTROL.search(copy.name):
            raise DamagedOriginal(f"{copy.name!r} names no copy")


def _member(agent: Agent, origin: Origin, home: Path, copies: list[Path]) -> Member:
    """One session, found as its agent finds its sessions."""
    main = home / origin.target
    if not _is_listed(agent, main, home):
        raise Misplaced(origin.target)
    source = agent.locate(main)
    known = {"", *source.parts, *source.sides, main.name + ORIGINAL_FILE_SUFFIX}
    stray = [file.name for file in origin.files if file.name not in known]
    stray += [copy.name for copy in origin.copies if not is_own(source, copy.name)]
    if stray:
        raise Misplaced(stray[0])
    facts = agent.facts(source)
    return Member(origin, source, agent.session(source, facts), facts.first_prompt, copies)


def _is_listed(agent: Agent, main: Path, home: Path) -> bool:
    """Whether an agent lists a session, be it compressed, or in a folder whose other files are missing here."""
    plain = main.with_suffix("") if main.suffix in SUFFIXES else main
    profile = agent.target_profile()
    beside = profile.merged_files if profile is not None else {}
    expected = [plain, *(folder / name for name in beside for folder in (main.parent, main.parent.parent))]
    for missing in ([], [path for path in expected if not path.exists()]):
        for path in missing:
            path.touch()
        found = {source.path for root in agent.roots(Host.at(home)) for source in agent.discover(root)}
        for path in missing:
            path.unlink()
        if main in found or plain in found:
            return True
    return False
