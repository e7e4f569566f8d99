"""One session written anew for an agent, below a home folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import msgspec

from clew.agents.base import (
    Agent,
    Header,
    SourceFile,
    Unit,
    archive_damage,
    main_file,
    open_file,
    session_object,
    with_current_size,
)
from clew.agents.derived_ids import derived_id
from clew.agents.masking import learn_subagents
from clew.agents.tools import Translator
from clew.convert import origin
from clew.convert.conversation import Conversation, is_custom_title, safe_id
from clew.convert.copies import LIMIT as MOST_COPIES
from clew.convert.copies import copies_of
from clew.convert.file_transaction import DryRun, FileTransaction, roll_back_on_signal
from clew.convert.history import BranchSelection, Whole
from clew.convert.losses import Damage, Loss
from clew.convert.origin import BESIDE, Origin
from clew.convert.target_files import Files, Registration, patiently, reader
from clew.errors import SourceUnreadable, UsageError, WouldLose
from clew.io.compress import SUFFIXES
from clew.model import SCHEMA_VERSION
from clew.model.json import JSON
from clew.store.layout import refuse_copy


class SameAgent:
    """The units of a session, repaired. The losses are complete once it was iterated."""

    def __init__(self, path: BranchSelection, whole: bool) -> None:
        self._path, self._whole = path, whole
        self.losses: list[Loss] = []
        self.said = 0
        """How many messages go over."""

    def of(self, units: Iterable[Unit]) -> Iterator[Unit]:
        """Everything but fragments. Unless the whole is wanted, only the messages on the path, and no rewinds.

        A rewind would take back messages of the path.
        """
        left_out = ("fragment",) if self._whole else ("fragment", "rewind")
        for unit in units:
            if not unit.is_message:
                if unit.value["kind"] not in left_out:
                    yield unit
            elif self._whole or self._path.holds(unit.value["index"]):
                self.said += 1
                yield self._relinked(unit)

    def _relinked(self, unit: Unit) -> Unit:
        """A message whose parent is missing follows the one before it."""
        instead = self._path.bridges.get(unit.value["index"])
        if instead is None or "parent_uuid" not in unit.value:
            return unit
        return unit._replace(value={**unit.value, "parent_uuid": instead})


_KEPT = ("workspace", "started_at", "ended_at", "source", "title")
_PIECE = 1 << 20
REFERRED = "the session only refers to it, and it is not here as it was"
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


def refuse_losses(losses: Sequence[Loss], allow_loss: bool) -> None:
    """Refuse to lose anything unless that is allowed."""
    if losses and not allow_loss:
        raise WouldLose(f"{counted(losses)} would be lost; --allow-loss converts all the same")


class Parent(NamedTuple):
    """The session that started the one at hand, by the id that it has now, and where it is filed."""

    new_id: str
    folder: dict[str, JSON]
    elders: dict[str, str]
    """All sessions above, by their ids before the conversion: those they have now. The first is no sub-agent."""
    known: set[str]
    """Every session that has gone over so far, by its id before: a family may claim to go round in a circle."""


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
        receiver = target.target_profile()
        if receiver is None:
            raise UsageError(f"{target.title} does not go on with sessions that were written for it")
        self._agent, self._source, self._target = agent, with_current_size(source), target
        self._receiver = receiver
        self._is_same = agent.id == target.id and self._receiver.goes_on(source.path, source.parts)
        self._branch, self._parent, self._with_original = branch, parent, with_original
        self._find_child = find
        if parent is None and find is not None:
            learn_subagents(agent, self._source, find)
        self._whole = Whole(agent, self._source)
        self._facts = self._whole.facts
        self._original = session_object(agent, self._source, self._facts)
        # A sub-agent by itself is called as its agent calls sub-agents.
        is_child = self._is_same and parent is None and self._original["is_agent_session"]
        self._files = origin.describe(self._source)
        new_id = self._identity(new_id) if parent is None else new_id
        self._new_id = self._receiver.child_id(new_id) if is_child else new_id
        self._placed: tuple[Path, str] | None = None
        self._path = self._whole.chosen(branch)
        self.session = self._session()
        self._elders = {**(parent.elders if parent else {}), self._original["id"]: self._new_id}
        self._known = parent.known if parent else {self._original["id"]}
        self._children: list[Conversion] = []
        self._copies: list[origin.OriginalFile] = []
        self.losses = [*lost, *self._survey()]

    def _find(self, identity: str) -> SourceFile | None:
        """The session of a sub-agent, masked where this one is."""
        source = self._find_child(identity) if self._find_child is not None else None
        mask = self._source.mask
        return source if source is None or mask is None or source.mask is not None else mask.cover(source)

    def _identity(self, identity: str) -> str:
        """An id that stays the same as long as everything does that goes over."""
        files = [self._files, *(origin.describe(source) for source in self._below())]
        history = ["with its history"] if self._whole.is_gathered else []
        return derived_id(identity, self._original.get("title"), msgspec.to_builtins(files), *history)

    def _below(self) -> Iterator[SourceFile]:
        """The files of its sub-agents, and of theirs."""
        known, waiting = {self._original["id"]}, [self._original]
        for session in waiting:
            links = (link.get("session_id") for link in session.get("subagents") or ())
            for child in (child for child in links if child and child not in known):
                known.add(child)
                if (source := self._find(child)) is not None:
                    yield source
                    with suppress(SourceUnreadable):
                        facts = self._agent.facts(source)
                        waiting.append(session_object(self._agent, source, facts))

    def _session(self) -> dict[str, JSON]:
        if self._is_same:
            parent = {"parent_session_id": self._parent.new_id, **self._parent.folder} if self._parent else {}
            # It does not go back to where the original lies, but to where its agent keeps new sessions.
            source = {**self._original["source"], "path": ""}
            return {**self._original, "id": self._new_id, **parent, "source": source}
        kept = {name: self._original[name] for name in _KEPT if name in self._original}
        place: dict[str, JSON] = {"is_agent_session": False, "parent_session_id": None, "agent_id": None}
        if self._parent is not None:
            # What the target calls it comes from its id.
            name = self._new_id.removeprefix("agent-")
            place = {"is_agent_session": True, "parent_session_id": self._parent.new_id, "agent_id": name}
            place |= self._parent.folder
        return {"id": self._new_id, "workspace_encoded": "", **kept, **place}

    def _conversation(self) -> Conversation | SameAgent:
        if self._is_same:
            return SameAgent(self._path, whole=self._branch is None)
        own = self._agent.target_profile()
        translator = Translator(own.tools if own else (), self._receiver.tools)
        return Conversation(
            self._path,
            self._receiver,
            translator,
            own,
            new_id=self._new_id,
            title=self._target.title,
        )

    def _survey(self) -> Iterator[Loss]:
        """What would be lost; reads the session once and writes nothing."""
        conversation, damage = self._conversation(), Damage(self._whole.lines_before)
        units = self._agent.units(self._whole.source)
        for _ in conversation.of(self._in_order(self._whole.seen(damage.seen(units)))):
            pass
        is_cut = archive_damage(self._whole.source) is not None
        yield from map(self._whole.placed, chain(damage.losses(is_cut), conversation.losses))
        has_title = self._facts.titles or is_custom_title(self._original.get("title"), self._facts.first_prompt)
        if not self._is_same and has_title and not self._receiver.capacity.titles:
            yield Loss(None, "the title", f"{self._target.title} has no place for one")
        if not conversation.said:
            raise NothingSaid("nothing was said in this session, so there is nothing to convert")
        if (own := self._agent.target_profile()) is not None:
            for what in own.beyond(self._original):
                yield Loss(None, what, REFERRED)
        if not (self._is_same and self._branch is None):
            yield from self._left_out()
        yield from self._survey_copies()
        for link in self._original.get("subagents") or ():
            yield from self._survey_child(link)

    def _survey_copies(self) -> Iterator[Loss]:
        """Copies go over to the same agent, and to others with the original, as long as they may and are few."""
        size = sum(path.stat().st_size for _, path in copies_of(self._source))
        why = None
        if not self._with_original:
            why = "they are not masked" if self._is_same else None
        elif not self._is_same and size > MOST_COPIES:
            why = f"{size >> 20} MB are too much to travel along"
        elif not self._is_same:
            self._copies = origin.describe_copies(self._source)
        if size and why:
            yield Loss(None, "the copies of files that its agent keeps", why)

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
        if not is_inside and link["session_id"] in self._known:
            return
        source = self._find(link["session_id"]) if link.get("session_id") else None
        if source is None or not self._receiver.capacity.subagents:
            why = f"{self._target.title} has no sub-agents"
            if self._receiver.capacity.subagents:
                why = "it lies within the session's own file" if is_inside else "it is not here"
            yield Loss(None, f"the sub-agent {name}", f"{why}; what it answered goes over with the call")
            return
        try:
            child = self._child(source, str(link["session_id"]))
        except (NothingSaid, SourceUnreadable) as error:
            yield Loss(None, f"the sub-agent {name}", str(error))
            return
        self._children.append(child)
        self._link(child, link.get("tool_id"))
        for loss in child.losses:
            yield Loss(None, f"{loss.what}, in the sub-agent {name}", loss.why)

    def _link(self, child: Conversion, call: str | None) -> None:
        """Let the new session name its sub-agent; one for its own agent does so by its own records."""
        if not self._is_same:
            named = {"session_id": child._new_id, "agent_id": child.session["agent_id"]}
            links: list[JSON] = self.session.setdefault("subagents", [])
            links.append({**named, "tool_id": safe_id(call) if call else None})

    def _child(self, source: SourceFile, old_id: str) -> Conversion:
        kept = self._is_same and self._receiver.keeps_children
        identity = old_id if kept else self._receiver.child_id(derived_id(self._new_id, old_id))
        self._known.add(old_id)
        return Conversion(
            self._agent,
            source,
            self._target,
            new_id=identity,
            parent=self._as_parent(),
            find=self._find_child,
            with_original=self._with_original,
        )

    def _as_parent(self) -> Parent:
        """Where an agent keeps sub-agents in the folder of their session, it keeps theirs there as well."""
        if not self._receiver.keeps_children:
            return Parent(self._new_id, {}, self._elders, self._known)
        folder = {name: self.session[name] for name in ("workspace", "workspace_encoded")}
        return Parent(next(iter(self._elders.values())), folder, self._elders, self._known)

    def describe(self, home: Path) -> Converted:
        """The session as `write` would write it, with its main file alone: what else there is, is found by writing."""
        return self._converted([main_file(self._target, self._header(home), home)])

    def rehearse(self, home: Path) -> Converted:
        """What `write` would do, file by file; writes nothing, and refuses what is in the way."""
        return self._place(DryRun(home), home)

    def _converted(self, files: Iterable[Path]) -> Converted:
        resume = self._receiver.command(self.session)
        return Converted(self._new_id, [str(path) for path in files], resume, self.losses)

    def _header(self, home: Path) -> Header:
        folder = self._receiver.filed_under(self.session["workspace"], reader(home))
        session = {**self.session, "workspace_encoded": folder} if folder else self.session
        return Header(SCHEMA_VERSION, "", self._target.id, session, {})

    def write(self, home: Path, *, allow_loss: bool = False) -> Converted:
        """Write the session below `home`; where something would be lost, writes nothing unless that is allowed."""
        refuse_losses(self.losses, allow_loss)
        return patiently(lambda: self._write(home))

    def _write(self, home: Path) -> Converted:
        refuse_copy(home)
        with roll_back_on_signal(), FileTransaction(home) as placing:
            return self._place(placing, home)

    def _place(self, placing: FileTransaction, home: Path) -> Converted:
        # What cannot be registered is refused before anything is written.
        registration = Registration(self._receiver, self._header(home), home)
        family = list(self._family())
        agents = {old: child._new_id for child in family if len(old := child._original["id"]) >= _LONG}
        below = [path for child in family for path in child._stage(placing, home, agents)]
        files = self._stage(placing, home, agents)
        registration.place(placing)
        placing.finish()
        return self._converted([*files, *registration.files, *below])

    def _family(self) -> Iterator[Conversion]:
        """Its sub-agents, and theirs."""
        for child in self._children:
            yield child
            yield from child._family()

    def _stage(self, placing: FileTransaction, home: Path, agents: Mapping[str, str]) -> list[Path]:
        header = self._header(home)
        pieces = self._renamed(self._target.encode(header, self._units()), agents)
        main = main_file(self._target, header, home)
        files = Files(placing, main, self._receiver, is_last=self._parent is None)
        for name, piece in chain([("", b"")], pieces):
            files.write(name, piece)
        if self._is_same:
            self._stage_sides(files, agents)
        self._placed = files.main, files.digest.hexdigest()
        if self._parent is None and self._with_original:
            self._write_origin(files)
        if self._is_same and self._with_original:
            self._stage_copies(files)
        return files.finish()

    def _stage_sides(self, files: Files, agents: Mapping[str, str]) -> None:
        """The small files beside the session that its agent's encoder does not write itself."""
        for side in self._source.sides:
            name = side.replace(self._agent.session_id(self._source), self._new_id)
            if not files.has(name):
                with open_file(self._source, side) as stream:
                    for _, piece in self._renamed([(name, stream.read())], agents):
                        files.write(name, piece)

    def _stage_copies(self, files: Files) -> None:
        for name, path in copies_of(self._source):
            out = files.copy(self._target.id, name)
            if out is not None:
                with path.open("rb") as stream:
                    while piece := stream.read(_PIECE):
                        out.write(piece)
                out.finish()

    def _units(self) -> Iterator[Unit]:
        return self._conversation().of(self._in_order(self._agent.units(self._whole.source)))

    def _in_order(self, units: Iterable[Unit]) -> Iterable[Unit]:
        """As it was said; in a whole copy for its own agent the records stay where they are."""
        return units if self._is_same and self._branch is None else self._path.in_order(units)

    def _renamed(self, pieces: Iterable[tuple[str, bytes]], agents: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
        """The pieces with the new id where an agent's own records name the old one; `agents`: those of sub-agents."""
        if not self._is_same:
            yield from pieces
            return
        renames = [(old.encode(), new.encode()) for old, new in self._elders.items()]
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

    def _write_origin(self, files: Files) -> None:
        described = self._origin(files.main.parent)
        name = "" if self._receiver.capacity.foreign_lines else files.main.name + BESIDE
        for line in origin.lines(described, self._sources()):
            files.write(name, line)

    def _origin(self, folder: Path, above: tuple[Path, str] | None = None) -> Origin:
        """What the original is; `folder`: where the main file of the converted session lies.

        `above`: the main file of the session that started it, and where that belongs below a home.
        """
        path, converted = self._placed or (folder, "")
        target = self._belongs(above)
        return Origin(
            agent=self._agent.id,
            session=self._original["id"],
            target=target,
            converted=converted,
            files=self._files,
            children=[child._origin(folder, (self._source.path, target)) for child in self._children],
            beside=os.path.relpath(path, folder) if self._parent is not None else "",
            title=self.session.get("title") if self._receiver.capacity.titles else None,
            copies=self._copies,
        )

    def _belongs(self, above: tuple[Path, str] | None) -> str:
        """Where the original lies below a home: one within the folder of the session that started it, there again."""
        if above is not None and self._source.path.is_relative_to(above[0].parent):
            return (PurePosixPath(above[1]).parent / self._source.path.relative_to(above[0].parent)).as_posix()
        target = self._agent.target(Header(SCHEMA_VERSION, "", self._agent.id, self._original, {}))
        suffix = self._source.path.suffix
        return target + (suffix if suffix in SUFFIXES else "")

    def _sources(self) -> list[SourceFile]:
        return [self._source, *(source for child in self._children for source in child._sources())]


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count} messages"
