"""One session written anew for an agent, below a home folder, or brought back to the files it once was."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from clew.agents.base import Agent, Header, Receives, SourceFile, freeze, skim
from clew.agents.folding import derived_id
from clew.agents.receiving import Read
from clew.agents.tools import Translator
from clew.convert import origin
from clew.convert.conversation import Conversation, Loss
from clew.convert.origin import BESIDE, Origin
from clew.convert.path import Chosen
from clew.convert.same import SameAgent
from clew.errors import InvalidDocument, SourceUnreadable, UsageError, WouldLose
from clew.host import Host
from clew.io.atomic import replacing, write_atomic
from clew.io.compress import open_source
from clew.io.paths import safe_below
from clew.model import SCHEMA_VERSION
from clew.model.json import JSON

_KEPT = ("workspace", "started_at", "ended_at", "source", "title")
_PACKED = (".gz", ".zst")
_LONG = 32
"""An id of so many characters is no word that could stand for anything else."""


class Converted(msgspec.Struct, frozen=True):
    """What a conversion wrote, or would write."""

    session_id: str
    files: list[str]
    resume: list[str]
    losses: list[Loss]


def counted(losses: Sequence[Loss]) -> str:
    """How many things would be lost, in words."""
    return "1 thing" if len(losses) == 1 else f"{len(losses)} things"


class Parent(NamedTuple):
    """The session that started the one at hand: its id before and after the conversion."""

    old_id: str
    new_id: str


class NothingSaid(UsageError):
    """A session without words, calls or results."""


Find = Callable[[str], SourceFile | None]
"""Gives the session of a sub-agent by its id."""


class Conversion:
    """A session on its way to an agent: surveyed first, then written."""

    def __init__(
        self,
        agent: Agent,
        source: SourceFile,
        target: Agent,
        *,
        new_id: str,
        branch: str | None = None,
        parent: Parent | None = None,
        find: Find | None = None,
        with_original: bool = True,
        lost: Iterable[Loss] = (),
    ) -> None:
        if not isinstance(target, Receives):
            raise UsageError(f"{target.title} does not go on with sessions that were written for it")
        self._agent, self._source, self._target = agent, freeze(source), target
        self._receiver = target.receiver()
        self._is_same = agent.id == target.id and self._receiver.goes_on(source.path, source.parts)
        self._branch, self._parent, self._find, self._with_original = branch, parent, find, with_original
        self._facts = skim(agent, self._source, tree=True, counts=False)
        self._original = agent.session(self._source, self._facts)
        # A sub-agent by itself is called as its agent calls sub-agents.
        is_child = self._is_same and parent is None and self._original["is_agent_session"]
        self._new_id = self._receiver.child_id(new_id) if is_child else new_id
        self._path = Chosen(self._facts, branch)
        self.session = self._session()
        self._children: list[Conversion] = []
        self.losses = [*lost, *self._survey()]

    def _session(self) -> dict[str, JSON]:
        if self._is_same:
            parent = {"parent_session_id": self._parent.new_id} if self._parent else {}
            # It does not go back to where the original lies, but to where its agent keeps new sessions.
            source = {**self._original["source"], "path": ""}
            return {**self._original, "id": self._new_id, **parent, "source": source}
        kept = {name: self._original[name] for name in _KEPT if name in self._original}
        place: dict[str, JSON] = {"is_agent_session": False, "parent_session_id": None, "agent_id": None}
        if self._parent is not None:
            # What the target calls it comes from its id.
            name = self._new_id.removeprefix("agent-")
            place = {"is_agent_session": True, "parent_session_id": self._parent.new_id, "agent_id": name}
        return {"id": self._new_id, "workspace_encoded": "", **kept, **place}

    def _conversation(self) -> Conversation | SameAgent:
        if self._is_same:
            return SameAgent(self._path, self._agent.id, whole=self._branch is None)
        own = self._agent.receiver() if isinstance(self._agent, Receives) else None
        translator = Translator(own.tools if own else (), self._receiver.tools)
        return Conversation(
            self._path,
            self._receiver.capacity,
            translator,
            own,
            new_id=self._new_id,
            title=self._target.title,
        )

    def _survey(self) -> Iterator[Loss]:
        """What would be lost; reads the session once and writes nothing."""
        conversation = self._conversation()
        reading = self._agent.read(self._source, self._facts)
        for _ in conversation.of(reading):
            pass
        self._extensions = reading.extensions()
        yield from conversation.losses
        if not self._is_same and self._facts.titles and not self._receiver.capacity.titles:
            yield Loss(None, "the title", f"{self._target.title} has no place for one")
        if not conversation.said:
            raise NothingSaid("nothing was said in this session, so there is nothing to convert")
        if isinstance(self._agent, Receives) and not self._is_same:
            for what in self._agent.receiver().beyond(self._original):
                yield Loss(None, what, "the session only refers to it")
        if not (self._is_same and self._branch is None):
            yield from self._left_out()
        for link in self._original.get("subagents") or ():
            yield from self._survey_child(link)

    def _left_out(self) -> Iterator[Loss]:
        """What stands in the session's file and not on the path."""
        if self._path.left_out:
            what = _messages(self._path.left_out)
            yield Loss(None, f"{what} on other branches", "one path goes over; --branch chooses another")
        named = {link.get("root_uuid") for link in self._original.get("subagents") or ()} - {None}
        unnamed = sum(count for root, count in self._path.aside.items() if root not in named)
        if unnamed:
            yield Loss(None, f"{_messages(unnamed)} of sub-agents", "they lie within the session's own file")

    def _survey_child(self, link: Mapping[str, JSON]) -> Iterator[Loss]:
        name = link.get("agent_id") or link.get("session_id") or link.get("root_uuid")
        is_inside = not link.get("session_id")
        if is_inside and ((self._is_same and self._branch is None) or link.get("root_uuid") not in self._path.aside):
            return  # it goes along, or is named with the other branches
        if not is_inside and link["session_id"] in {child._original["id"] for child in self._children}:
            return
        source = self._find(link["session_id"]) if self._find and link.get("session_id") else None
        if source is None or not self._receiver.capacity.subagents:
            why = f"{self._target.title} has no sub-agents"
            if self._receiver.capacity.subagents:
                why = "it is not here" if self._parent is None else "a sub-agent of a sub-agent stays behind"
                why = "it lies within the session's own file" if is_inside else why
            yield Loss(None, f"the sub-agent {name}", f"{why}; what it answered goes over with the call")
            return
        try:
            child = self._child(source, str(link["session_id"]))
        except (NothingSaid, SourceUnreadable) as error:
            yield Loss(None, f"the sub-agent {name}", str(error))
            return
        self._children.append(child)
        for loss in child.losses:
            yield Loss(None, f"{loss.what}, in the sub-agent {name}", loss.why)

    def _child(self, source: SourceFile, old_id: str) -> Conversion:
        kept = self._is_same and self._receiver.keeps_children
        identity = old_id if kept else self._receiver.child_id(derived_id(self._new_id, old_id))
        parent = Parent(self._original["id"], self._new_id)
        return Conversion(
            self._agent, source, self._target, new_id=identity, parent=parent, with_original=self._with_original
        )

    def describe(self, home: Path) -> Converted:
        """What `write` would do."""
        return self._converted([home / self._target.target(self._header(home))])

    def _converted(self, files: Iterable[Path]) -> Converted:
        resume = self._receiver.command(self.session)
        return Converted(self._new_id, [str(path) for path in files], resume, self.losses)

    def _header(self, home: Path) -> Header:
        folder = self._receiver.filed_under(self.session["workspace"], _reader(home))
        session = {**self.session, "workspace_encoded": folder} if folder else self.session
        return Header(SCHEMA_VERSION, "", self._target.id, session, self._extensions if self._is_same else {})

    def write(self, home: Path, *, allow_loss: bool = False) -> Converted:
        """Write the session below `home`; where something would be lost, writes nothing unless that is allowed."""
        if self.losses and not allow_loss:
            raise WouldLose(f"{counted(self.losses)} would be lost; --allow-loss converts all the same")
        # What cannot be registered is refused before anything is written.
        registered = self._registered(home)
        # Agents take the file written last for the session to go on with, so sub-agents come first.
        with ExitStack() as undo:
            below: list[Path] = []
            agents = {old: child._new_id for child in self._children if len(old := child._original["id"]) >= _LONG}
            for child in self._children:
                for path in child._write_files(home, agents):
                    undo.callback(path.unlink, missing_ok=True)
                    below.append(path)
            files = self._write_files(home, agents)
            for path in files:
                undo.callback(path.unlink, missing_ok=True)
            for path, content in registered.items():
                write_atomic(path, content)
            undo.pop_all()
        return self._converted([*files, *registered, *below])

    def _write_files(self, home: Path, agents: Mapping[str, str]) -> list[Path]:
        header = self._header(home)
        pieces = self._renamed(self._target.write(header, self._units()), agents)
        with _Files(home / self._target.target(header)) as files:
            for name, piece in chain([("", b"")], pieces):
                files.write(name, piece)
            if self._parent is None and self._with_original:
                self._write_origin(files)
        return files.paths

    def _units(self) -> Iterator[tuple[bool, dict[str, JSON]]]:
        return self._conversation().of(self._agent.read(self._source, self._facts))

    def _renamed(self, pieces: Iterable[tuple[str, bytes]], agents: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
        """The pieces with the new id where an agent's own records name the old one; `agents`: those of sub-agents."""
        if not self._is_same:
            yield from pieces
            return
        renames = [(self._original["id"].encode(), self._new_id.encode())]
        if self._parent is not None:
            renames.append((self._parent.old_id.encode(), self._parent.new_id.encode()))
        keys = [key.encode() for key in self._receiver.id_keys]
        # Inside a text quotation marks are escaped, so this meets keys and no words.
        spellings = [b'"%b":%b"' % (key, space) for key in keys for space in (b"", b" ")]
        for name, piece in pieces:
            for old, new in renames:
                for spelling in spellings if old in piece else ():
                    piece = piece.replace(spelling + old + b'"', spelling + new + b'"')
            for agent, instead in agents.items():
                # The model calls a sub-agent by its id, so that it stands in arguments and results too.
                piece = piece.replace(agent.encode(), instead.encode())
            yield name, piece

    def _write_origin(self, files: _Files) -> None:
        described = self._origin(files.digest.hexdigest())
        name = "" if self._receiver.capacity.foreign_lines else files.main.name + BESIDE
        for line in origin.lines(described, self._sources()):
            files.write(name, line)

    def _origin(self, converted: str = "") -> Origin:
        suffix = self._source.path.suffix
        target = self._agent.target(Header(SCHEMA_VERSION, "", self._agent.id, self._original, self._extensions))
        return Origin(
            agent=self._agent.id,
            session=self._original["id"],
            target=target + (suffix if suffix in _PACKED else ""),
            converted=converted,
            files=origin.describe(self._source),
            children=[child._origin() for child in self._children],
        )

    def _sources(self) -> list[SourceFile]:
        return [self._source, *(source for child in self._children for source in child._sources())]

    def _registered(self, home: Path) -> dict[Path, bytes]:
        """The files below the home that must name the session, as they should be."""
        found = self._receiver.register(self._header(home), _reader(home))
        files = {home / safe_below(name): content for name, content in found}
        for path in files:
            if path.exists() and not path.is_file():
                raise WouldLose(f"{path} is in the way")
        return files


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count} messages"


def _reader(home: Path) -> Read:
    def read(name: str) -> bytes | None:
        path = home / safe_below(name)
        return path.read_bytes() if path.is_file() else None

    return read


class _Files:
    """New files that appear together when all are written."""

    def __init__(self, main: Path) -> None:
        self.main = main
        self.paths: list[Path] = []
        self.digest = hashlib.sha256()
        """Of what went into the main file so far."""
        self._open: dict[str, IO[bytes]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type]

    def write(self, name: str, piece: bytes) -> None:
        """Add to a file, named as it lies beside the main one; "" is the main one."""
        if name not in self._open:
            path = self.main.parent / safe_below(name) if name else self.main
            if path.exists():
                raise WouldLose(f"{path} exists already")
            self._open[name] = self._stack.enter_context(replacing(path))
            self.paths.append(path)
        self._open[name].write(piece)
        if not name:
            self.digest.update(piece)


class Return:
    """The way back: the original of a converted session, byte for byte."""

    def __init__(self, kept: origin.Kept, target: Agent) -> None:
        self._kept, self._target = kept, target

    def _paths(self, home: Path) -> list[Path]:
        paths = []
        roots = list(self._target.roots(Host.at(home)))
        for each in self._kept.origin.family():
            main = home / safe_below(each.target)
            # What a file says of its origin is not to be believed: it goes to where the agent keeps sessions.
            if not any(main.is_relative_to(root) for root in roots):
                raise InvalidDocument(f"the original inside the session belongs nowhere: {each.target!r}")
            paths += [main.parent / safe_below(file.name) if file.name else main for file in each.files]
        return paths

    def describe(self, home: Path) -> Converted:
        """What `write` would do."""
        session: dict[str, JSON] = {"id": self._kept.origin.session}
        resume = self._target.receiver().command(session) if isinstance(self._target, Receives) else []
        return Converted(self._kept.origin.session, [str(path) for path in self._paths(home)], resume, [])

    def write(self, home: Path, *, allow_loss: bool = False) -> Converted:
        """Write the files of the original; each is checked against its hash."""
        paths = self._paths(home)
        for path in paths:
            if path.exists():
                raise WouldLose(f"{path} exists already")
        with ExitStack() as stack, open_source(self._kept.path) as stream:
            outs = [stack.enter_context(replacing(path)) for path in paths]
            origin.unpack(stream, self._kept.origin, outs)
        return self.describe(home)
