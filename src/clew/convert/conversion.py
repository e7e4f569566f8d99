"""One session and its sub-agents written for an agent, below a home folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from itertools import chain
from pathlib import Path, PurePosixPath

import msgspec

from clew.agents.base import Agent, Header, Unit, main_file, session_object
from clew.agents.derived_ids import derived_id
from clew.agents.masking import learn_subagents
from clew.agents.source import SourceFile, archive_damage, open_file, with_current_size
from clew.agents.target_profile import Compaction
from clew.agents.tools import Translator
from clew.convert import origin
from clew.convert.compaction import CompactedSession, find_compaction
from clew.convert.conversation import NO_PROFILE, Conversation, is_custom_title, safe_id
from clew.convert.copies import MAX_COPIES_BYTES, copies_of
from clew.convert.file_transaction import FileTransaction
from clew.convert.history import SessionWithHistory
from clew.convert.losses import Converted, Damage, Loss
from clew.convert.origin import ORIGINAL_FILE_SUFFIX, Origin
from clew.convert.target_files import Prepared, SessionFiles, file_reader, register_session
from clew.errors import ClewError, SourceUnreadable, UsageError
from clew.host import current_time
from clew.io.compress import SUFFIXES
from clew.model import SCHEMA_VERSION
from clew.model.json import JSON
from clew.model.time import parse_time, spell_time

_KEPT_FIELDS = ("workspace", "started_at", "ended_at", "source", "title")
REFERRED = "the session only refers to it, and it is missing or has changed"
_LONG_ID_CHARACTERS = 32
"""An id of this length is no word that could mean anything else."""

Find = Callable[[str], SourceFile | None]
"""Gives the session of a sub-agent by its id."""


def has_start_time(session: Mapping[str, JSON]) -> bool:
    """True if the session records a valid start time."""
    return parse_time(session.get("started_at")) is not None


def fill_missing_times(session: dict[str, JSON], default: datetime) -> None:
    """Add the start and end times that formats demand; a session without a start time gets the default."""
    if not has_start_time(session):
        session["started_at"] = spell_time(default)
    if parse_time(session.get("ended_at")) is None:
        session["ended_at"] = session["started_at"]


class NothingToConvert(ClewError):
    """A session without words, calls or results."""


class Conversion(Prepared):
    """A session and its sub-agents, read once for a list of losses, then written."""

    def __init__(
        self,
        agent: Agent,
        source: SourceFile,
        target: Agent,
        *,
        new_id: str,
        branch: str | None = None,
        parent: Conversion | None = None,
        find: Find | None = None,
        with_original: bool = True,
        lost: Iterable[Loss] = (),
        workspace: str | None = None,
        full_history: bool = False,
        title: str | None = None,
        now: Callable[[], datetime] = current_time,
    ) -> None:
        """`full_history`: the target's model also gets the messages before a compaction; `title`: a new one."""
        profile = target.target_profile()
        if profile is None:
            raise UsageError(f"{target.title} cannot continue converted sessions")
        self._agent, self._source, self._target, self._profile = agent, with_current_size(source), target, profile
        self._is_same = (
            agent.id == target.id and profile.import_command is None and profile.resumes_file(source.path, source.parts)
        )
        self._is_whole_copy = self._is_same and branch is None
        if title is not None and self._is_same:
            raise UsageError(f"--title is for another agent; rename the session in {target.title} itself")
        self._parent, self._find_child, self._with_original, self._now = parent, find, with_original, now
        self._moved_to = workspace
        """The project's folder in the new session, where it is not the recorded one."""
        if parent is None and find is not None:
            learn_subagents(agent, self._source, find)
        self._history = SessionWithHistory(agent, self._source)
        self._original = session_object(agent, self._source, self._history.facts)
        self._files = origin.describe(self._source)
        if parent is None:
            new_id = profile.new_id(self._stable_id(new_id))
            if self._is_same and self._original["is_agent_session"]:
                new_id = profile.child_id(new_id)
        self._new_id = new_id
        self._new_ids: dict[str, str] = {**(parent._new_ids if parent else {}), self._original["id"]: new_id}
        """Of this session and those above, by their ids before the conversion; the first is no sub-agent."""
        self._has_claimed_id = False
        """Whether a record was read that names a session."""
        self._converted_ids: set[str] = parent._converted_ids if parent else {self._original["id"]}
        """Ids before the conversion of all sessions so far: sub-agents may claim to start each other."""
        self._path = self._history.select(branch)
        self._has_full_history = full_history
        self._first_summary = 0
        """Index of the summary that the path begins with; 0: it begins with another message."""
        self._compaction = None if self._is_same or full_history else self._find_compaction()
        self.session = self._new_session()
        if workspace is not None:
            self.session |= {"workspace": workspace, "workspace_encoded": ""}
        if title is not None:
            self.session["title"] = title
        self._had_start_time = has_start_time(self.session)
        file_time = parse_time(int(self._source.mtime)) if self._source.mtime else None
        fill_missing_times(self.session, file_time or now())
        self._children: list[Conversion] = []
        self._copies: list[origin.OriginalFile] = []
        self._main: tuple[Path, str] | None = None
        """Path and SHA-256 of the main file, once it is staged."""
        self._logs: list[origin.OriginalFile] = []
        """The further logs, once they are staged."""
        self.losses = [*lost, *self._survey()]

    # Reading

    def _find(self, identity: str) -> SourceFile | None:
        """The session of a sub-agent, masked where this one is."""
        source = self._find_child(identity) if self._find_child is not None else None
        mask = self._source.mask
        return source if source is None or mask is None or source.mask is not None else mask.cover(source)

    def _stable_id(self, identity: str) -> str:
        """An id that stays the same as long as all files do that are converted, also those of sub-agents and theirs."""
        files = [self._files]
        known, waiting = {self._original["id"]}, [self._original]
        for session in waiting:
            links = (link.get("session_id") for link in session.get("subagents") or ())
            for child in (child for child in links if child and child not in known):
                known.add(child)
                if (source := self._find(child)) is not None:
                    files.append(origin.describe(source))
                    with suppress(SourceUnreadable):
                        waiting.append(session_object(self._agent, source, self._agent.facts(source)))
        history = ["with its history"] if self._history.is_joined else []
        return derived_id(identity, self._original.get("title"), msgspec.to_builtins(files), *history)

    def _new_session(self) -> dict[str, JSON]:
        """The `session` object that the target's encoder gets."""
        above: dict[str, JSON] = {}
        if self._parent is not None:
            above = {"parent_session_id": self._parent._new_id}
            if self._profile.nests_subagents:
                # Such agents keep all sub-agents in the folder of the session that a person started.
                above = {"parent_session_id": next(iter(self._new_ids.values()))}
                above |= {name: self._parent.session[name] for name in ("workspace", "workspace_encoded")}
        if self._is_same:
            # It does not go back to where the original lies, but to where its agent keeps new sessions.
            source = {**self._original["source"], "path": ""}
            return {**self._original, "id": self._new_id, **above, "source": source}
        kept = {name: self._original[name] for name in _KEPT_FIELDS if name in self._original}
        place: dict[str, JSON] = {"is_agent_session": False, "parent_session_id": None, "agent_id": None}
        if self._parent is not None:
            place = {"is_agent_session": True, "agent_id": self._new_id.removeprefix("agent-"), **above}
        return {"id": self._new_id, "workspace_encoded": "", **kept, **place}

    def _find_compaction(self) -> CompactedSession | Compaction | None:
        units = self._note_first_summary(self._path.in_order(self._history.units()))
        return find_compaction(units, self._path, self._agent.target_profile() or NO_PROFILE)

    def _note_first_summary(self, units: Iterable[Unit]) -> Iterator[Unit]:
        """The units as they are; notes the index of a summary that the path begins with, as in Gemini CLI."""
        is_first = True
        for unit in units:
            if is_first and unit.is_message and self._path.contains(unit.value["index"]):
                is_first = False
                if (unit.value.get("metadata") or {}).get("is_compact_summary"):
                    self._first_summary = unit.value["index"]
            yield unit

    def _conversation(self) -> Conversation:
        own = self._agent.target_profile()
        translator = Translator(own.tools if own else (), self._profile.tools)
        return Conversation(
            self._path,
            self._profile,
            translator,
            own,
            new_id=self._new_id,
            title=self._target.title,
            compaction=self._compaction if isinstance(self._compaction, CompactedSession) else None,
        )

    def units(self) -> Iterator[Unit]:
        """The units that the target's encoder gets."""
        units = self._agent.units(self._history.source)
        return self._own_units(units) if self._is_same else self._conversation().convert(self._path.in_order(units))

    def _own_units(self, units: Iterable[Unit]) -> Iterator[Unit]:
        """The units for their own agent: everything but fragments, or only the messages on the branch.

        A message whose parent is missing follows the one before it. A rewind would take back messages of the branch.
        Of one branch, the records between messages follow what is written before them: some agents go on at the last.
        """
        last_uuid = None
        for unit in units if self._is_whole_copy else self._path.in_order(units):
            value, parent = unit.value, None
            if unit.is_message:
                self._note_claimed_id(unit.claimed_session)
                if not self._is_whole_copy and not self._path.contains(value["index"]):
                    continue
                parent = self._path.bridges.get(value["index"])
            elif value["kind"] == "fragment" or (not self._is_whole_copy and value["kind"] == "rewind"):
                continue
            elif not self._is_whole_copy:
                parent = last_uuid
            last_uuid = value.get("uuid") or last_uuid
            is_relinked = parent is not None and "parent_uuid" in value
            yield unit._replace(value={**value, "parent_uuid": parent}) if is_relinked else unit

    def _note_claimed_id(self, claimed: str | None) -> None:
        """Note that the first id in a file is that of its session, also where the file has another name."""
        if claimed and not self._has_claimed_id:
            self._has_claimed_id = True
            if claimed != self._original.get("parent_session_id"):
                self._new_ids.setdefault(claimed, self._new_id)

    def _survey(self) -> Iterator[Loss]:
        """What would be lost; reads the session once and writes nothing."""
        damage = Damage(self._history.lines_before)
        units = damage.seen(self._history.units())
        found: list[Loss] = []
        if self._is_same:
            message_count = sum(unit.is_message for unit in self._own_units(units))
        else:
            conversation = self._conversation()
            for _ in conversation.convert(self._path.in_order(units)):
                pass
            message_count, found = conversation.message_count, conversation.losses
        is_cut = archive_damage(self._history.source) is not None
        yield from map(self._history.with_own_index, chain(damage.losses(is_cut), found))
        yield from self._survey_compaction()
        facts = self._history.facts
        has_title = facts.titles or is_custom_title(self.session.get("title"), facts.first_prompt)
        if not self._is_same and has_title and not self._profile.capacity.titles:
            yield Loss(None, "the title", f"{self._target.title} has no place for one", is_note=True)
        if not self._is_same and not self._had_start_time:
            used = "the modification time of its file" if self._source.mtime else "the time of the conversion"
            yield Loss(None, "the time of the session", f"it records no valid one; {used} is used", is_note=True)
        if not message_count:
            raise NothingToConvert("the session has no messages to convert")
        if (own := self._agent.target_profile()) is not None:
            for what in own.referred_history(self._original):
                yield Loss(None, what, REFERRED)
        if not self._is_whole_copy:
            yield from self._left_out()
        yield from self._survey_copies()
        for link in self._original.get("subagents") or ():
            yield from self._survey_child(link)

    def _survey_compaction(self) -> Iterator[Loss]:
        """What a compaction means for the target's model."""
        if isinstance(self._compaction, Compaction):
            why = "only the provider of its model can decrypt the summary, so the messages before it are sent"
            yield Loss(None, "the compaction of the session", why, is_note=True)
        elif self._compaction is not None and (count := self._compaction.earlier_count):
            why = "left out; the summary is sent in their place"
            if self._profile.capacity.compactions:
                why = "kept in the file and not sent to the model"
            yield Loss(None, f"{_messages(count)} before the compaction", why, is_note=True)

    def _survey_copies(self) -> Iterator[Loss]:
        """Copies go to the same agent, and to others with the original, as long as they may and are small."""
        size = sum(path.stat().st_size for _, path in copies_of(self._source))
        why = None
        if not self._with_original:
            why = "they are not masked" if self._is_same else None
        elif not self._is_same and size > MAX_COPIES_BYTES:
            why = f"{size >> 20} MB exceed the limit of {MAX_COPIES_BYTES >> 20} MB"
        elif not self._is_same:
            self._copies = origin.describe_copies(self._source)
        if size and why:
            yield Loss(None, "the agent's backup copies of files", why)

    def _left_out(self) -> Iterator[Loss]:
        """The messages in the session's file that are not on the path."""
        replaced = [index for index in self._path.left_out if index < self._first_summary]
        if replaced:
            why = "the agent took them out of the conversation; its summary is sent in their place"
            yield Loss(None, f"{_messages(len(replaced))} before the compaction", why, is_note=True)
        if count := len(self._path.left_out) - len(replaced):
            yield Loss(
                None, f"{_messages(count)} on other branches", "only one branch is converted; --branch selects another"
            )
        named = {link.get("root_uuid") for link in self._original.get("subagents") or ()} - {None}
        if count := sum(len(indexes) for root, indexes in self._path.sidechain_messages.items() if root not in named):
            yield Loss(None, f"{_messages(count)} of sub-agents", "they are in the session's own file")

    def _survey_child(self, link: Mapping[str, JSON]) -> Iterator[Loss]:
        name = link.get("agent_id") or link.get("session_id") or link.get("root_uuid")
        old_id, source = link.get("session_id"), None
        if old_id:
            if old_id in self._converted_ids:
                return
            source = self._find(old_id)
        elif self._is_whole_copy or link.get("root_uuid") not in self._path.sidechain_messages:
            return  # it is copied with the file, or listed with the other branches
        if not old_id or source is None or not self._profile.capacity.subagents:
            why = f"{self._target.title} has no sub-agents"
            if self._profile.capacity.subagents:
                why = "it is missing" if old_id else "it is in the session's own file"
            is_missing = bool(old_id) and source is None
            yield Loss(None, f"the sub-agent {name}", f"{why}; its answer is carried over with the call", is_missing)
            return
        self._converted_ids.add(old_id)
        keeps_id = self._is_same and self._profile.nests_subagents
        try:
            child = Conversion(
                self._agent,
                source,
                self._target,
                new_id=old_id if keeps_id else self._profile.child_id(derived_id(self._new_id, old_id)),
                parent=self,
                find=self._find_child,
                with_original=self._with_original,
                workspace=self._moved_to,
                full_history=self._has_full_history,
                now=self._now,
            )
        except (NothingToConvert, SourceUnreadable) as error:
            yield Loss(None, f"the sub-agent {name}", str(error))
            return
        self._children.append(child)
        if not self._is_same:
            # For their own agent the records name the sub-agents.
            call = safe_id(link["tool_id"]) if link.get("tool_id") else None
            started = {"session_id": child._new_id, "agent_id": child.session["agent_id"]}
            self.session.setdefault("subagents", []).append({**started, "tool_id": call})
            child.session["parent_tool_id"] = call
            if call is None and self._profile.capacity.subagents_by_call:
                why = f"no call started it, and {self._target.title} has no other link; its session is converted"
                yield Loss(None, f"the sub-agent {name}", why, is_note=True)
        for loss in child.losses:
            yield loss.in_subagent(str(name))

    # Writing

    def describe(self, home: Path) -> Converted:
        """The session as `write` would write it, with its main file alone: only writing finds the others."""
        return self._converted([main_file(self._target, self._header(home), home)], home)

    def _write(self, transaction: FileTransaction, home: Path) -> Converted:
        # What cannot be registered is refused before the session is encoded.
        lists = register_session(transaction, self._profile, self._header(home), home)
        family = self._family()
        ids = {old: child._new_id for child in family[1:] if len(old := child._original["id"]) >= _LONG_ID_CHARACTERS}
        below = [path for child in family[1:] for path in child._stage(transaction, home, ids)]
        files = self._stage(transaction, home, ids)
        transaction.commit()
        return self._converted([*files, *lists, *below], home)

    def _converted(self, files: Iterable[Path], home: Path) -> Converted:
        resume = self._profile.command(self.session)
        mains = [main_file(self._target, each._header(home), home) for each in self._family()]
        imports = self._profile.import_commands(mains)
        return Converted(self._new_id, [str(path) for path in files], resume, self.losses, imports)

    def _header(self, home: Path) -> Header:
        folder = self._profile.project_folder_name(self.session["workspace"], file_reader(home))
        session = {**self.session, "workspace_encoded": folder} if folder else self.session
        return Header(SCHEMA_VERSION, "", self._target.id, session, {})

    def _family(self) -> list[Conversion]:
        """This session, its sub-agents, and theirs."""
        return [self, *(each for child in self._children for each in child._family())]

    def _stage(self, transaction: FileTransaction, home: Path, subagents: Mapping[str, str]) -> list[Path]:
        """Add the files of this session to a transaction; `subagents`: their new ids by the old ones."""
        header, is_root = self._header(home), self._parent is None
        path = main_file(self._target, header, home)
        files = SessionFiles(transaction, path, self._profile, is_last=is_root)
        for name, piece in self._target.encode(header._replace(main_file=str(path)), self.units()):
            files.write(name, self._renamed(piece, subagents) if self._is_same else piece)
        if self._is_same:
            # Small files beside the session, unless the encoder wrote them itself.
            for side in self._source.sides:
                name = side.replace(self._agent.session_id(self._source), self._new_id)
                if name not in files:
                    with open_file(self._source, side) as stream:
                        files.write(name, self._renamed(stream.read(), subagents))
        self._main, self._logs = (files.main.path, files.main.digest.hexdigest()), files.logs()
        if is_root and self._with_original:
            name = "" if self._profile.capacity.foreign_lines else files.main.path.name + ORIGINAL_FILE_SUFFIX
            sources = [each._source for each in self._family()]
            for line in origin.encode_original(self._origin(files.main.path.parent), sources):
                files.write(name, line)
        if self._is_same and self._with_original:
            for name, path in copies_of(self._source):
                files.write_copy(self._target.id, name, path)
        return files.finish()

    def _renamed(self, piece: bytes, subagents: Mapping[str, str]) -> bytes:
        """An agent's own records with the new ids of this session, those above, and all sub-agents."""
        for old, new in self._new_ids.items():
            for key in self._profile.id_keys if old.encode() in piece else ():
                # Inside a text quotation marks are escaped, so only values of keys match.
                for start in (f'"{key}":"', f'"{key}": "'):
                    piece = piece.replace(f'{start}{old}"'.encode(), f'{start}{new}"'.encode())
        for old, new in subagents.items():
            # The model calls a sub-agent by its id, so that it stands in arguments and results too.
            piece = piece.replace(old.encode(), new.encode())
        return piece

    def _origin(self, folder: Path, above: tuple[Path, str] | None = None) -> Origin:
        """The description of the original; `folder`: where the main file of the converted session lies.

        `above`: the main file of the session that started it, and where that belongs below a home.
        """
        path, sha256 = self._main or (folder, "")
        source, own = self._source.path, self._agent.target_profile()
        if above is not None and source.is_relative_to(above[0].parent):
            target = (PurePosixPath(above[1]).parent / source.relative_to(above[0].parent)).as_posix()
        else:
            target = self._agent.target(Header(SCHEMA_VERSION, "", self._agent.id, self._original, {}))
            target += source.suffix if source.suffix in SUFFIXES else ""
        return Origin(
            agent=self._agent.id,
            session=self._original["id"],
            target=target,
            converted=sha256,
            files=self._files,
            children=[child._origin(folder, (source, target)) for child in self._children],
            beside=os.path.relpath(path, folder) if self._parent is not None else "",
            title=self.session.get("title") if self._profile.capacity.titles else None,
            copies=self._copies,
            logs=self._logs,
            list_entry=own.list_entry(source) if own is not None else {},
        )


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count} messages"
