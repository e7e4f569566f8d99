"""The original files of a converted session, which travel along so that converting back gives the same bytes.

They are packed with zstd and spelled as lines of JSON, each of a size that every reader of lines can bear.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Annotated, NamedTuple, Protocol, cast

import msgspec
import zstandard

from clew.agents import registry
from clew.agents.backups import is_plain_file
from clew.agents.base import Agent, SourceFile
from clew.agents.target_profile import BESIDE as BESIDE
from clew.agents.target_profile import ORIGIN
from clew.analysis.titles import short_title
from clew.convert.copies import copies_of, is_own, place_of, places_of
from clew.convert.history import BranchSelection
from clew.errors import InvalidDocument, UsageError
from clew.host import Host
from clew.io.codec import dumps
from clew.io.compress import MAX_UNPACKED, SUFFIXES, open_source
from clew.io.paths import safe_below
from clew.model.json import JSON
from clew.redact.packed import is_origin_line

MARK = b'{"type":"clew-origin",'
"""How every such line begins: as we spell it, so that no line need be decoded to tell."""


def is_marked(line: bytes) -> bool:
    """True for a line of an original, also where another program spelled it anew or glued it to the line before."""
    return line.startswith(MARK) or is_origin_line(line)


def content_hash(path: Path) -> str:
    """The hash of a file without the lines of an original."""
    digest = hashlib.sha256()
    with open_source(path) as stream:
        for line in stream:
            if not is_marked(line):
                digest.update(line)
    return digest.hexdigest()


TYPE = ORIGIN
_PIECE = 512 << 10
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class UnusableOriginal(InvalidDocument):
    """What should be the original of a converted session cannot come back."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the original that travels along: {why}")
        self.why = why


class DamagedOriginal(UnusableOriginal):
    """What should be the original of a converted session gives no files."""

    def __init__(self, why: str) -> None:
        super().__init__(f"it is damaged: {why}")


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
    """SHA-256 of the converted session's main file, without these lines; empty where nobody can tell."""
    files: list[OriginalFile]
    children: list[Origin] = []
    """The sub-agents that went with it."""
    beside: str = ""
    """Of a sub-agent: where its converted file lies, seen from the folder of the session's own."""
    title: str | None | msgspec.UnsetType = msgspec.UNSET
    """What the converted session is called; older originals do not say."""
    copies: list[OriginalFile] = []
    """What its agent keeps for it elsewhere; the bytes of all of these come last."""

    def family(self) -> list[Origin]:
        """This one and those below it, in the order of the bytes."""
        return [self, *(each for child in self.children for each in child.family())]

    def everything(self) -> list[OriginalFile]:
        """The files and copies of the family, in the order of the bytes."""
        files = [file for each in self.family() for file in each.files]
        return files + [copy for each in self.family() for copy in each.copies]


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
    for each, source in zip(origin.family(), sources, strict=True):
        for copy in each.copies:
            path = place_of(places_of(source), copy.name)
            yield from _read_file(path, copy.size) if path is not None else ()


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
    is_there = is_plain_file(source.path.parent / beside)
    return ["", *source.parts, *source.sides, *([beside] if is_there else ())]


def describe(source: SourceFile) -> list[OriginalFile]:
    """Size and hash of each file of a session."""
    return [_measured(name, place(source, name), _size(source, name)) for name in names(source)]


def describe_copies(source: SourceFile) -> list[OriginalFile]:
    """Size and hash of each copy that its agent keeps for a session."""
    return [_measured(name, path, path.stat().st_size) for name, path in copies_of(source)]


def _measured(name: str, path: Path, size: int) -> OriginalFile:
    digest, length = hashlib.sha256(), 0
    for piece in _read_file(path, size):
        digest.update(piece)
        length += len(piece)
    return OriginalFile(name, length, digest.hexdigest())


def _size(source: SourceFile, name: str) -> int:
    """How much of a file is read."""
    return source.size if source.frozen and not name else place(source, name).stat().st_size


def place(source: SourceFile, name: str) -> Path:
    """Where a file of a session lies."""
    return source.path.parent / name if name else source.path


class Kept(NamedTuple):
    """An original that was found, and the file its lines stand in."""

    origin: Origin
    path: Path


def find(source: SourceFile) -> Kept | None:
    """The original that a converted session was made from; raises where it is there and gives no files."""
    beside = source.path.with_name(source.path.name + BESIDE)
    path = beside if is_plain_file(beside) else source.path
    found = _last(path)
    if found is None:
        if path == beside:
            raise DamagedOriginal(f"{beside.name} does not hold it")
        return None
    _check(found)
    with open_source(path) as stream:
        unpack(stream, found, [NOWHERE] * len(found.everything()))
    return Kept(found, path)


def _check(origin: Origin) -> None:
    """Refuse what cannot be put anywhere. What leads elsewhere is left to who writes: that is no mere damage."""
    places = []
    for each in origin.family():
        names = [file.name for file in each.files]
        if not names or names[0]:
            raise DamagedOriginal("it does not say which files it has")
        for name in (each.target, *names[1:]):
            _check_name(name)
        _check_place(origin.agent, each)
        places += [each.target, *(f"{each.target.rpartition('/')[0]}/{name}" for name in names[1:])]
    if len({*places}) < len(places):
        raise DamagedOriginal("two of its files have the same place")


def _check_name(name: str) -> None:
    if _leads_out(name):
        return
    try:
        safe_below(name)
        name.encode()
    except (UsageError, UnicodeEncodeError):
        raise DamagedOriginal(f"{name!r} names no file") from None
    if _CONTROL.search(name):
        raise UnusableOriginal(f"{name!r} is no name to give to a file")


def _leads_out(name: str) -> bool:
    return name.startswith("/") or ".." in name.split("/")


def _check_place(agent: str, origin: Origin) -> None:
    """Whether it lies where an agent keeps sessions, and then where its own agent does."""
    if not registry.is_known(agent) or _leads_out(origin.target):
        return
    host = Host.at(Path("/"))
    main = host.home / origin.target
    roots = list(registry.get(agent).roots(host))
    if main in roots:
        raise DamagedOriginal(f"{origin.target!r} is a folder of sessions")
    if any(map(main.is_relative_to, roots)):
        _check_copies(places_of(SourceFile(agent, main)), origin.copies)
        return
    others = (root for each in registry.names() for root in registry.get(each).roots(host))
    if any(map(main.is_relative_to, others)):
        raise DamagedOriginal(f"{origin.target!r} belongs to another agent")


def _check_copies(places: Sequence[Path], copies: Sequence[OriginalFile]) -> None:
    for copy in copies:
        try:
            is_sound = place_of(places, copy.name) is not None
        except UsageError:
            is_sound = False
        if not is_sound or _CONTROL.search(copy.name):
            raise DamagedOriginal(f"{copy.name!r} names no copy")


def _last(path: Path) -> Origin | None:
    """The last description in a file."""
    found, is_there = None, False
    with open_source(path) as stream:
        for line in stream:
            if is_marked(line):
                is_there = True
                found = _read(line).origin or found
    if is_there and found is None:
        raise DamagedOriginal("nothing says what it is")
    return found


class Out(Protocol):
    """Something to write to."""

    def write(self, piece: bytes, /) -> int:
        """Add to the end."""
        ...


class _Nowhere:
    def write(self, piece: bytes, /) -> int:
        return len(piece)


NOWHERE = _Nowhere()
"""For what need not be written."""


def _read(line: bytes) -> _Line:
    try:
        return msgspec.json.decode(line, type=_Line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedOriginal(str(error)) from error


def unpack(stream: IO[bytes], origin: Origin, outs: Sequence[Out]) -> None:
    """Write the files of the original and of those below it, in their order, checked against their hashes."""
    reader = zstandard.ZstdDecompressor().stream_reader(cast(IO[bytes], _Packed(stream, origin)))
    try:
        files = origin.everything()
        if sum(file.size for file in files) > MAX_UNPACKED:
            raise DamagedOriginal("it claims to be larger than any session")
        for file, out in zip(files, outs, strict=True):
            _unpack(reader, file, out)
    except zstandard.ZstdError as error:
        raise DamagedOriginal(str(error)) from error


def _unpack(reader: IO[bytes], file: OriginalFile, out: Out) -> None:
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
        if not is_marked(line):
            continue
        read = _read(line)
        if read.origin is not None:
            within = read.origin == origin
        elif within and read.data:
            try:
                yield base64.b64decode(read.data, validate=True)
            except ValueError as error:
                raise DamagedOriginal(str(error)) from error


class Misplaced(InvalidDocument):
    """An original with a file that is no session of its agent, nor a part of one."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the original inside the session belongs nowhere: {name!r}")
        self.why = f"{name!r} belongs nowhere"


class Member(NamedTuple):
    """A session of the original, as its own bytes tell it."""

    origin: Origin
    source: SourceFile
    session: dict[str, JSON]
    first_prompt: str | None


@contextmanager
def laid_out(kept: Kept) -> Iterator[list[Member]]:
    """The sessions of an original in a folder that is gone afterwards: the one that was converted, then those below."""
    agent = registry.get(kept.origin.agent)
    with TemporaryDirectory(prefix="clew-") as folder:
        home = Path(folder)
        mains = [_main(agent, each, home) for each in kept.origin.family()]
        outs: list[Out] = []
        for main, each in zip(mains, kept.origin.family(), strict=True):
            outs += [_Laid(_beside(main, file.name)) for file in each.files]
        copies = [copy for each in kept.origin.family() for copy in each.copies]
        with open_source(kept.path) as stream:
            unpack(stream, kept.origin, [*outs, *(NOWHERE for _ in copies)])
        members = [_member(agent, each, home) for each in kept.origin.family()]
        _check_links(members)
        yield members


def _main(agent: Agent, origin: Origin, home: Path) -> Path:
    try:
        main = home / safe_below(origin.target)
    except UsageError:
        raise Misplaced(origin.target) from None
    if not any(main.is_relative_to(root) and main != root for root in agent.roots(Host.at(home))):
        raise Misplaced(origin.target)
    return main


def _beside(main: Path, name: str) -> Path:
    try:
        return main.parent / safe_below(name) if name else main
    except UsageError:
        raise Misplaced(name) from None


def _member(agent: Agent, origin: Origin, home: Path) -> Member:
    """One session, found as its agent finds its sessions."""
    main = home / origin.target
    source = _found(agent, main, home)
    if source is None:
        raise Misplaced(origin.target)
    known = {"", *source.parts, *source.sides, main.name + BESIDE}
    stray = [file.name for file in origin.files if file.name not in known]
    stray += [copy.name for copy in origin.copies if not is_own(source, copy.name)]
    if stray:
        raise Misplaced(stray[0])
    facts = agent.facts(source)
    return Member(origin, source, agent.session(source, facts), facts.first_prompt)


def _found(agent: Agent, main: Path, home: Path) -> SourceFile | None:
    """The session in a file, if its agent lists it: unpacked, and in a folder that is known as it was."""
    plain = main.with_suffix("") if main.suffix in SUFFIXES else main
    receiver = agent.target_profile()
    renewed = receiver.renewed if receiver is not None else {}
    known = [folder / name for name in renewed for folder in (main.parent, main.parent.parent)]
    for missing in ([], [each for each in (plain, *known) if not each.exists()]):
        for path in missing:
            path.touch()
        is_listed = any(source.path in (main, plain) for source in _listed(agent, home))
        for path in missing:
            path.unlink()
        if is_listed:
            return agent.locate(main)
    return None


def _listed(agent: Agent, home: Path) -> Iterator[SourceFile]:
    return (source for root in agent.roots(Host.at(home)) for source in agent.discover(root))


def _check_links(members: list[Member]) -> None:
    """Each of those below was started by another."""
    named = {link.get("session_id") for member in members for link in member.session.get("subagents") or ()}
    for member in members[1:]:
        if member.session["id"] not in named:
            raise Misplaced(member.origin.target)


class _Laid:
    """A file of the original; there may be more than a program may have open."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def write(self, piece: bytes, /) -> int:
        """Add to the end."""
        with self._path.open("ab") as stream:
            return stream.write(piece)


def is_unchanged(source: SourceFile, origin: Origin) -> bool:
    """Whether the converted session says what was written: its file, its sub-agents, its title."""
    if not _says_the_same(source, origin.converted):
        return False
    for child in origin.family()[1:]:
        path = source.path.parent / child.beside
        if child.converted and path.is_file():
            below = registry.get(source.agent).locate(path)
            if below.path != path or not _says_the_same(below, child.converted):
                return False
    return isinstance(origin.title, msgspec.UnsetType) or _is_called(source, origin.title)


def _is_called(source: SourceFile, title: str | None) -> bool:
    """Whether a session has this title still, or none but its first words or its id."""
    agent = registry.get(source.agent)
    facts = agent.facts(source)
    now = agent.session(source, facts)
    derived = (None, now["id"], short_title(facts.first_prompt))
    return short_title(now.get("title")) in (short_title(title), *derived)


def _says_the_same(source: SourceFile, converted: str) -> bool:
    """Whether a file is as it was written, or begins so and nothing behind that changes what was said."""
    if source.path.suffix in SUFFIXES:
        return not source.parts and content_hash(source.path) == converted
    written, size = _written(source, converted)
    if written is None or (written == size and not source.parts):
        return written is not None
    return _said(msgspec.structs.replace(source, parts=()), written) == _said(source, size)


def _written(source: SourceFile, converted: str) -> tuple[int | None, int]:
    """How much of a file is what was written, with the lines of the original behind it; and how long it is."""
    digest, size, found = hashlib.sha256(), 0, None
    with open_source(source.path) as stream:
        for line in stream:
            is_ours = is_marked(line)
            if not is_ours:
                digest.update(line)
            if found is None or (is_ours and found == size):
                is_whole = is_ours and found is not None
                found = size + len(line) if is_whole or digest.copy().hexdigest() == converted else found
            size += len(line)
    return found, size


def _said(source: SourceFile, size: int) -> tuple[str, int]:
    """The hash of what was said on the path, up to a place in the file, and how many messages there are in all."""
    agent = registry.get(source.agent)
    source = msgspec.structs.replace(source, size=size, frozen=True)
    facts = agent.facts(source)
    receiver = agent.target_profile()
    tells = receiver is not None and receiver.capacity.instructions
    path, digest, messages = BranchSelection(facts, None), hashlib.sha256(), 0
    for unit in path.in_order(agent.units(source)):
        value = unit.value
        if not unit.is_message or (value["role"] == "system" and not tells):
            continue
        messages += 1
        if path.holds(value["index"]):
            digest.update(dumps([value["role"], value["content"]]))
    return digest.hexdigest(), messages
