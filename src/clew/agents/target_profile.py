"""How sessions are converted to an agent, and from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import msgspec

from clew.agents.tools import Tool
from clew.errors import UsageError
from clew.host import Host
from clew.io.compress import SUFFIXES
from clew.io.paths import is_own_home
from clew.model.json import JSON
from clew.model.record import ORIGIN as ORIGIN
from clew.model.unit import Unit

ORIGINAL_FILE_SUFFIX = ".clew"
"""Suffix of the file beside a session that holds its original, where the agent accepts no foreign lines in its own
file.
"""


class Header(NamedTuple):
    """The parts of a unified document that are not messages or records."""

    schema_version: str
    export_timestamp: str
    agent: str
    session: dict[str, JSON]
    extensions: dict[str, JSON]
    main_file: str = ""
    """The path of the file that is written, for agents that keep it in another file; empty where none is written."""

    @property
    def recorded_path(self) -> PurePosixPath:
        """The path that the session was read from, on whichever system; empty where none is recorded."""
        return PurePosixPath(str((self.session.get("source") or {}).get("path") or "").replace("\\", "/"))


class RecordText(NamedTuple):
    """The part of a conversation that only a record holds, and no message."""

    description: str
    """What it is, for the list of losses."""
    loss_reason: str = ""
    text: str = ""
    """Becomes a message of the converted session; where it is empty, the record is a loss."""
    role: str = "user"
    """The role of that message."""
    call: str | None = None
    """The id of a call. Where the conversation has this call, the record adds nothing."""
    identifying_texts: tuple[str, ...] = ()
    """Where the message before or behind the record has all of these texts, the record adds nothing."""
    belongs_to_next_message: bool = False
    after: int = 0
    """Index of the message before the record."""
    may_be_sent_later: bool = False
    """True for a prompt that any later message may hold."""
    is_thought: bool = False
    """True for thinking of a model."""
    is_note: bool = False
    """True if no model ever saw it: then it can be lost without `--allow-loss`."""


class Compaction(NamedTuple):
    """A summary that an agent sends to its model in place of all messages before it."""

    messages: tuple[dict[str, JSON], ...] = ()
    """The messages sent instead; empty if the summary itself is a message."""
    first_kept: str | None = None
    """The uuid of the first of the earlier messages that are still sent, behind the summary."""
    last_kept: str | None = None
    """Uuid of the last kept message; None: the last one before the summary."""
    is_unreadable: bool = False
    """True for a summary that only the provider of its model can decrypt."""


def read_summary_message(unit: Unit, _before: Unit | None) -> Compaction | None:
    """The compaction of agents whose summary message replaces all earlier messages."""
    is_summary = unit.is_message and (unit.value.get("metadata") or {}).get("is_compact_summary")
    return Compaction() if is_summary else None


class Capacity(msgspec.Struct, frozen=True):
    """What the sessions of an agent can hold of a conversation in addition to texts, calls and results."""

    images: bool = False
    documents: bool = False
    images_in_results: bool = False
    """Tool results may hold pictures."""
    images_in_replies: bool = False
    """What the model says may hold pictures and documents."""
    image_types: tuple[str, ...] = ("image/png", "image/jpeg", "image/gif", "image/webp")
    """Prefixes of accepted image types; the default is accepted by nearly all providers."""
    document_types: tuple[str, ...] = ("",)
    typed_links: bool = False
    """An attachment by URL needs a media type."""
    thinking: bool = False
    """Thinking of another agent's model can be kept; that of the agent's own always can."""
    failures: bool = False
    """A result says whether the call failed."""
    instructions: bool = False
    """Instructions to the model are messages of the role `system`."""
    titles: bool = False
    subagents: bool = False
    """Sub-agents have sessions of their own."""
    subagents_by_call: bool = False
    """The record of a call links to the sub-agent that it started: one that no call started cannot be linked."""
    todos: tuple[str, ...] = ()
    """The roles whose messages can carry the current todo list."""
    foreign_lines: bool = False
    """The agent skips lines of unknown types in its files."""
    compactions: bool = False
    """Messages before a summary stay in the file and are not sent to the model."""


ReadFile = Callable[[str], bytes | None]
"""Gives the content of a file below the home folder, None where there is none."""


class TargetProfile(msgspec.Struct, frozen=True):
    """How sessions are converted to an agent (what it can hold, where files go, how to resume) and from it (what its
    records mean).
    """

    capacity: Capacity
    tools: tuple[Tool, ...]
    id_keys: tuple[str, ...]
    """The keys under which records name their own session."""
    resume: Callable[[Mapping[str, JSON]], list[str]]
    """The command that resumes a session, to be run in the session's folder; call `command` instead."""
    resumes_file: Callable[[Path, Sequence[str]], bool] = lambda _path, _parts: True
    """Whether today's version of the agent resumes a file, and its further parts, as they are.

    If not, the session is converted to the current format.
    """
    injected_prefixes: tuple[str, ...] = ()
    """How texts begin that the agent writes for its model, such as the date; other agents write their own."""
    is_command: Callable[[str], bool] = lambda _text: False
    """Whether a prompt looks like a command to the agent itself. One that the model answered was a prompt."""
    user_note_prefixes: tuple[str, ...] = ()
    """How notes of the agent begin that the person wrote."""
    aside: Callable[[Unit], RecordText | None] = lambda _record: None
    """The part of the conversation that only this record holds."""
    compaction: Callable[[Unit, Unit | None], Compaction | None] = read_summary_message
    """The compaction that a unit records, given also the message before it."""
    unknown_kind: Callable[[Unit], str | None] = lambda _note: None
    """The kind of a note that clew does not know; it may be no note at all."""
    namespace: Callable[[Unit], str | None] = lambda _message: None
    """The prefix for the names of the tools that a message calls, where the record keeps it apart from them."""
    unconvertible: Callable[[Unit], Iterable[str]] = lambda _message: ()
    """What a message holds that no other agent has, described for the list of losses."""
    no_result_text: str = ""
    """The text in the place of a result that never came."""
    shows_failure: Callable[[JSON], bool] = lambda _output: False
    """True if the agent recognizes from this output that the call failed."""
    text_guard: str = ""
    """An invisible text before a text that the agent would otherwise take for a command."""
    new_id: Callable[[str], str] = lambda identity: identity
    """The id of a converted session, made from a UUID that no other session has."""
    child_id: Callable[[str], str] = lambda identity: identity
    """The id of a sub-agent's session, made from one that no other session has."""
    nests_subagents: bool = False
    """Sub-agents lie within their parent's folder, so their ids may occur elsewhere too."""
    read_with_history: Callable[[Path, int], Iterator[bytes] | None] = lambda _path, _size: None
    """The first bytes of a main file, so many of them, with the history that it only refers to.

    None where it refers to none, or to what is not here.
    """
    referred_history: Callable[[Mapping[str, JSON]], Sequence[str]] = lambda _session: ()
    """What a session of the agent refers to and does not hold, described for the list of losses."""
    missing_history: Callable[[Mapping[str, JSON], Path], Sequence[str]] = lambda _session, _home: ()
    """What a session of the agent refers to and is not below a home folder, described for the list of losses."""
    project_folder_name: Callable[[str, ReadFile], str] = lambda _workspace, _read: ""
    """The name of the folder a workspace's sessions lie in, where a file below the home says so; else empty."""
    main_path: Callable[[str, Host], Path] = lambda place, host: host.home / place
    """Where a main file goes on a host, given where it goes in any home: some agents have one of several folders."""
    register: Callable[[Header, ReadFile], Iterable[tuple[str, bytes]]] = lambda _header, _read: ()
    """Files below the home that must name the session so that the agent sees it, with their new content."""
    list_entry: Callable[[Path], dict[str, JSON]] = lambda _main_file: {}
    """What a list that `register` changes says about the session in a main file; `register` gets it back with the
    original, as `list_entry` of the session.
    """
    index_lines: Callable[[Header], Iterable[tuple[str, bytes]]] = lambda _header: ()
    """Lines that name the session, to be appended to logs below the home."""
    merged_files: Mapping[str, Callable[[bytes, bytes], bytes]] = {}
    """Files beside the main one that may exist before it: old and needed content give the new content."""
    import_command: Callable[[Path], list[str]] | None = None
    """The command by which the agent takes over a session, given its main file, to be run in the session's folder.

    None where the agent finds the file by itself. Otherwise its own sessions are re-encoded like those of others.
    """
    can_find_by_id: Callable[[Path, str], bool] = lambda path, _identity: path.suffix not in SUFFIXES
    """Whether the agent finds a session by its id in a file that lies among its own."""

    def main_file_path(self, place: str, home: Path) -> Path:
        """Where a main file goes in a home, given where it goes in any; the environment speaks of the user's own."""
        return self.main_path(place, Host(home, os.environ) if is_own_home(home) else Host.at(home))

    def import_commands(self, main_files: Iterable[Path]) -> list[list[str]]:
        """The commands by which the agent takes over sessions; none where it finds their files by itself.

        The files are absolute: the commands run in the session's folder.
        """
        return [self.import_command(path.absolute()) for path in main_files] if self.import_command is not None else []

    def command(self, session: Mapping[str, JSON]) -> list[str]:
        """The command that resumes a session; refuses an id that could become an option or steer a terminal."""
        identity = str(session["id"])
        if not identity[:1].replace("_", "a").isalnum() or not identity.isprintable():
            raise UsageError(f"{session['id']!r} is not a safe id for a command line")
        return self.resume(session)
