"""What is to be known of an agent before another agent's session is written for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from clew.agents.tools import Tool
from clew.errors import UsageError
from clew.host import Host
from clew.io.compress import SUFFIXES
from clew.model.json import JSON
from clew.model.unit import Unit
from clew.redact.packed import ORIGIN as ORIGIN

BESIDE = ".clew"
"""Suffix of the file that holds them where they cannot stand in the session's own file."""


class Header(NamedTuple):
    """The parts of a unified document that are not messages or records."""

    schema_version: str
    export_timestamp: str
    agent: str
    session: dict[str, JSON]
    extensions: dict[str, JSON]


class Aside(NamedTuple):
    """What a record says that messages may not: words that go over, or what is lost, and why."""

    what: str
    why: str = ""
    text: str = ""
    """Goes over as words where there are some."""
    role: str = "user"
    call: str | None = None
    """The call by which the conversation tells it as well, if it has it."""
    marks: tuple[str, ...] = ()
    """Words by which it is known that the message before or behind says the same."""
    begins: bool = False
    """True for what belongs to the message behind it."""
    after: int = 0
    """Index of the message it stands behind."""
    waits: bool = False
    """True for a prompt that any later message may hold."""
    is_thought: bool = False
    """True for words that a model thought, and did not say."""


class Capacity(msgspec.Struct, frozen=True):
    """What the sessions of an agent can hold of a conversation beside texts, calls and results."""

    images: bool = False
    documents: bool = False
    images_in_results: bool = False
    """Tool results may hold pictures."""
    images_in_replies: bool = False
    """What the model says may hold pictures and documents."""
    image_types: tuple[str, ...] = ("",)
    """How the types of pictures begin that the provider of its model takes."""
    document_types: tuple[str, ...] = ("",)
    typed_links: bool = False
    """What is attached by its address has a type as well."""
    thinking: bool = False
    """Another agent's thoughts can be kept; an agent's own always can."""
    failures: bool = False
    """A result says whether the call failed."""
    instructions: bool = False
    """What the model is told at the outset, or on the way, stands in messages of the role `system`."""
    titles: bool = False
    subagents: bool = False
    """The sessions of sub-agents lie beside that of their parent."""
    todos: tuple[str, ...] = ()
    """The roles whose messages can carry the todo list as it stood."""
    foreign_lines: bool = False
    """Lines of a type the agent does not know may stand in its file: it passes over them."""


Read = Callable[[str], bytes | None]
"""Gives what a file below the home folder holds, None where there is none."""


class TargetProfile(msgspec.Struct, frozen=True):
    """An agent as the one that goes on."""

    capacity: Capacity
    tools: tuple[Tool, ...]
    id_keys: tuple[str, ...]
    """The keys under which records name their own session."""
    resume: Callable[[Mapping[str, JSON]], list[str]]
    """The command that goes on with a session, to be run in the session's folder; `command` is the one to ask."""
    goes_on: Callable[[Path, Sequence[str]], bool] = lambda _path, _parts: True
    """Whether the agent of today goes on with a file, and with its further parts, as they are.

    If not, the session is written anew in today's form.
    """
    injected: tuple[str, ...] = ()
    """How texts begin in which the agent tells its model of the surroundings; the next one tells of its own."""
    is_command: Callable[[str], bool] = lambda _value: False
    """Whether a prompt looks like a command to the agent itself. One that the model answered was none."""
    spoken: tuple[str, ...] = ()
    """How notes of the agent begin that are words of the person all the same."""
    aside: Callable[[Unit], Aside | None] = lambda _record: None
    """What a record of the agent says that is part of the conversation."""
    strange: Callable[[Unit], str | None] = lambda _unit: None
    """The kind of a note that nobody knows; it may be no note at all."""
    namespace: Callable[[Unit], str | None] = lambda _unit: None
    """What the names of the tools begin with that a message calls, if it is told apart from them."""
    unsaid: Callable[[Unit], Iterator[str]] = lambda _message: iter(())
    """What a message holds beside its texts that no other agent has, in words."""
    unanswered: str = ""
    """What stands in the place of a result that never came."""
    tells_failure: Callable[[JSON], bool] = lambda _value: False
    """Whether the agent reads from a result, as it writes the one that is given here, that its call failed."""
    guard: str = ""
    """A text that says nothing: it stands before words that the agent would not take for a person's."""
    child_id: Callable[[str], str] = lambda identity: identity
    """The id of a sub-agent's session, made from one that no other session has."""
    keeps_children: bool = False
    """Sub-agents lie within their parent's folder, so their ids may occur elsewhere too."""
    gathered: Callable[[Path, int], Iterator[bytes] | None] = lambda _path, _size: None
    """The first bytes of a main file, so many of them, with the history that it only refers to.

    None where it refers to none, or to what is not here.
    """
    beyond: Callable[[Mapping[str, JSON]], Sequence[str]] = lambda _session: ()
    """What a session of the agent refers to and does not hold, in words."""
    absent: Callable[[Mapping[str, JSON], Path], Sequence[str]] = lambda _session, _home: ()
    """What a session of the agent refers to and is not below a home folder, in words."""
    filed_under: Callable[[str, Read], str] = lambda _workspace, _read: ""
    """The name of the folder a workspace's sessions lie in, where a file below the home says so; else empty."""
    housed: Callable[[str, Host], Path] = lambda place, host: host.home / place
    """Where a main file goes on a host, given where it goes in any home: some agents have one of several folders."""
    register: Callable[[Header, Read], Iterator[tuple[str, bytes]]] = lambda _header, _read: iter(())
    """Files below the home that must name the session so that the agent sees it, as they should be."""
    listed: Callable[[Header], Iterator[tuple[str, bytes]]] = lambda _header: iter(())
    """Lines that name the session, to be added to logs below the home."""
    renewed: Mapping[str, Callable[[bytes, bytes], bytes]] = {}
    """Files beside the main one that may be there before it: what they held and should hold gives what they will."""
    finds: Callable[[Path, str], bool] = lambda path, _identity: path.suffix not in SUFFIXES
    """Whether the agent finds a session by its id in a file that lies among its own."""

    def main(self, place: str, home: Path) -> Path:
        """Where a main file goes in a home, given where it goes in any; the environment speaks of the user's own."""
        is_own = os.path.realpath(home) == os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111 - never fails
        return self.housed(place, Host(home, os.environ) if is_own else Host.at(home))

    def command(self, session: Mapping[str, JSON]) -> list[str]:
        """The command that goes on with a session; refuses an id that could be taken for something else."""
        # An id comes from a file: it must not become an option or steer a terminal.
        identity = str(session["id"])
        if not (identity[:1].replace("_", "a").isalnum() and identity.isprintable()):
            raise UsageError(f"{session['id']!r} is no id to give to a program")
        return self.resume(session)
