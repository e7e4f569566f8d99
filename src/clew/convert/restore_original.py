"""A converted session brought back to the files it was made from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from clew.agents import registry
from clew.agents.base import Agent, Header, SourceFile
from clew.agents.target_profile import TargetProfile
from clew.analysis.titles import short_title
from clew.convert.conversation import is_custom_title
from clew.convert.copies import read_pieces
from clew.convert.file_transaction import FileTransaction
from clew.convert.history import BranchSelection
from clew.convert.losses import Converted, Loss
from clew.convert.origin import Member, Origin, Original, file_path, is_marked
from clew.convert.target_files import Prepared, SessionFiles, file_reader, register_session
from clew.errors import UsageError, WouldLose
from clew.io.codec import dumps
from clew.io.compress import SUFFIXES, open_source
from clew.io.database_paths import is_in_database
from clew.io.paths import safe_below
from clew.model import SCHEMA_VERSION
from clew.model.json import JSON


class Restoration(Prepared):
    """The original of a converted session, byte for byte, registered with its agent like any other session."""

    def __init__(
        self,
        original: Original,
        members: Sequence[Member],
        target: Agent,
        converted: Mapping[str, JSON],
        home: Path | None = None,
    ) -> None:
        """`converted`: the session that carries the original."""
        self._original, self._members = original, members  # the folder of the members is removed with the original
        self._target, self._workspace = target, str(converted["workspace"])
        self._profile: TargetProfile | None = target.target_profile()
        self._session = members[0].session
        self._started_at = converted.get("started_at") or self._session.get("started_at")
        self._folder = str(self._session.get("workspace_encoded") or "")
        self._resume: list[str] = []
        self.losses: list[Loss] = []
        if self._profile is None:
            return
        try:
            # Extensions are of the client that had the session. One that imports it may give it another id.
            self._resume = self._profile.command({**self._session, "extensions": {}})
        except UsageError as error:
            self.losses.append(Loss(None, "the command that continues it", str(error)))
        for what in self._profile.missing_history(self._session, home) if home is not None else ():
            self.losses.append(Loss(None, what, "the original only refers to it, and it is missing"))

    def describe(self, home: Path) -> Converted:
        """What `write` would do to the files of the sessions themselves."""
        mains = [self._main(member.origin, home) for member in self._members]
        files = [
            main.parent / safe_below(file.name) if file.name else main
            for main, member in zip(mains, self._members, strict=True)
            for file in member.origin.files
        ]
        return self._converted(files, home)

    def _write(self, transaction: FileTransaction, home: Path) -> Converted:
        # Where the original lies in its old folder, it does not come back to another one.
        old = home / safe_below(self._original.origin.target)
        if old.exists() or self._target.locate(old).change_token:
            raise WouldLose(f"{old} exists already")
        paths: list[Path] = []
        for member in self._members:
            main = self._main(member.origin, home)
            files = SessionFiles(transaction, main, self._profile, is_last=member is self._members[0])
            for file in member.origin.files:
                for piece in chain([b""], read_pieces(file_path(member.source, file.name))):
                    files.write(file.name, piece)
            if self._imports(home):
                header = Header(SCHEMA_VERSION, "", self._target.id, member.session, {})
                for name, piece in self._target.encode(header, self._target.units(member.source)):
                    if name:
                        files.write(name, piece)
            for copy, path in zip(member.origin.copies, member.copies, strict=True):
                files.write_copy(self._target.id, copy.name, path)
            paths += files.finish()
        if self._profile is not None:
            paths += register_session(transaction, self._profile, self._header(home), home)
        transaction.commit()
        return self._converted(paths, home)

    def _converted(self, files: Sequence[Path], home: Path) -> Converted:
        names = [str(path) for path in files]
        return Converted(self._session["id"], names, self._resume, self.losses, self._imports(home))

    def _imports(self, home: Path) -> list[list[str]]:
        """The commands by which the agent takes over the sessions."""
        mains = [self._main(member.origin, home) for member in self._members]
        return self._profile.import_commands(mains) if self._profile is not None else []

    def _project_folder_name(self, home: Path) -> str:
        return self._profile.project_folder_name(self._workspace, file_reader(home)) if self._profile else ""

    def _main(self, origin: Origin, home: Path) -> Path:
        """Where a session goes: as it was, in the folder that this home has for its project."""
        parts = safe_below(origin.target).split("/")
        project_folder_name = self._project_folder_name(home)
        if project_folder_name and self._folder in parts:
            parts[parts.index(self._folder)] = project_folder_name
        path = safe_below("/".join(parts))
        return self._profile.main_file_path(path, home) if self._profile else home / path

    def _header(self, home: Path) -> Header:
        """What the lists that name the session must say: its title only where its own files do not have it."""
        title = self._original.origin.title
        named: dict[str, JSON] = {"id": self._session["id"], "workspace": self._workspace}
        named["workspace_encoded"] = self._project_folder_name(home) or self._folder
        named["title"] = None
        if isinstance(title, str) and title != self._session.get("title"):
            named["title"] = title if is_custom_title(title, self._members[0].first_prompt) else None
        # Agents whose records have no times know the start from their list alone.
        named |= {"started_at": self._started_at, "ended_at": self._session.get("ended_at")}
        named["list_entry"] = self._original.origin.list_entry or {"title": self._session.get("title")}
        return Header(SCHEMA_VERSION, "", self._target.id, named, {})


def is_unchanged(source: SourceFile, origin: Origin) -> bool:
    """Whether nothing was said or renamed in a converted session and its sub-agents since it was written."""
    is_same = _has_same_logs(source, origin) if origin.logs else _has_same_messages(source, origin.converted)
    if not is_same:
        return False
    agent = registry.get(source.agent)
    for child in origin.family()[1:]:
        path = source.path.parent / child.beside
        if child.converted and path.is_file():
            below = agent.locate(path)
            if below.path != path or not _has_same_messages(below, child.converted):
                return False
    if isinstance(origin.title, msgspec.UnsetType):
        return True
    facts = agent.facts(source)
    session = agent.session(source, facts)
    derived = (None, session["id"], short_title(facts.first_prompt))
    return short_title(session.get("title")) in (short_title(origin.title), *derived)


def _has_same_logs(source: SourceFile, origin: Origin) -> bool:
    """The same of a session whose messages are in further files: its main file only describes it."""
    sizes = [0, *(next((log.size for log in origin.logs if log.name == name), 0) for name in source.parts)]
    for log in origin.logs:
        place, digest = file_path(source, log.name), hashlib.sha256()
        for piece in read_pieces(place, log.size) if place.is_file() else ():
            digest.update(piece)
        if digest.hexdigest() != log.sha256:
            return False
    agent = registry.get(source.agent)
    path = BranchSelection(agent.facts(source), None)
    return all(
        path.contains(unit.value["index"]) and unit.stop <= sizes[unit.part]
        for unit in agent.units(source)
        if unit.is_message
    )


def _has_same_messages(source: SourceFile, converted: str) -> bool:
    """Whether a file is as it was written, or begins so and nothing after that changes the messages."""
    if is_in_database(str(source.path)) and registry.get(source.agent).locate(source.path).change_token:
        return _rows_have_same_messages(source, converted)
    size, written, digest = 0, None, hashlib.sha256()
    with open_source(source.path) as stream:
        for line in stream:
            is_ours = is_marked(line)
            if not is_ours:
                digest.update(line)
            is_behind = is_ours and written == size
            if is_behind or (written is None and digest.copy().hexdigest() == converted):
                written = size + len(line)
            size += len(line)
    if source.path.suffix in SUFFIXES:
        return not source.parts and digest.hexdigest() == converted
    if written is None or (written == size and not source.parts):
        return written is not None
    return _fingerprint(msgspec.structs.replace(source, parts=()), written) == _fingerprint(source, size)


def _rows_have_same_messages(source: SourceFile, converted: str) -> bool:
    """Whether the rows that an agent made of a file hold the messages of that file, which is as it was written."""
    with TemporaryDirectory(prefix="clew-") as folder:
        copy = Path(folder) / source.path.name
        digest = hashlib.sha256()
        with open_source(source.path) as stream, copy.open("wb") as out:
            for line in stream:
                if not is_marked(line):
                    digest.update(line)
                    out.write(line)
        size = copy.stat().st_size
        written = SourceFile(source.agent, copy, size=size)
        return digest.hexdigest() == converted and _fingerprint(written, size) == _fingerprint(source, source.size)


def _fingerprint(source: SourceFile, size: int) -> tuple[str, int]:
    """The hash of the messages on the path, up to a place in the file, and how many messages there are in all."""
    agent = registry.get(source.agent)
    source = msgspec.structs.replace(source, size=size, frozen=True)
    profile = agent.target_profile()
    has_instructions = profile is not None and profile.capacity.instructions
    path, digest, messages = BranchSelection(agent.facts(source), None), hashlib.sha256(), 0
    for unit in path.in_order(agent.units(source)):
        value = unit.value
        if unit.is_message and (value["role"] != "system" or has_instructions):
            messages += 1
            if path.contains(value["index"]):
                digest.update(dumps([value["role"], value["content"]]))
    return digest.hexdigest(), messages
