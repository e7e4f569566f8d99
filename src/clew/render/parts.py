"""The parts of a rendered session, independent of the output format: Markdown, terminal or HTML.

`level` is the first level of detail that shows a part (detail.py). Texts are not escaped: each format does that.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from clew.render.detail import FULL, Speaker


class Section(msgspec.Struct, frozen=True, gc=False):
    """The start of a message; further records of the same reply are `Continued`."""

    index: int
    who: str
    time: str | None
    marks: tuple[str, ...] = ()
    speaker: Speaker = "reply"
    level: int = FULL
    branch: int | None = None
    """The first message of the branch it belongs to; None before the first fork."""
    on_abandoned_branch: bool = False
    """True on an abandoned branch."""


class Continued(msgspec.Struct, frozen=True, gc=False):
    """The next record of the current reply."""

    index: int
    level: int = FULL


class Divider(msgspec.Struct, frozen=True, gc=False):
    """The conversation was compacted here."""

    index: int
    time: str | None
    level: int


class Branch(msgspec.Struct, frozen=True, gc=False):
    """A branch after a fork, by its first message."""

    index: int
    is_active: bool


class Fork(msgspec.Struct, frozen=True, gc=False):
    """Several branches continue from this message, or the conversation was rewound to it."""

    index: int
    branches: tuple[Branch, ...]
    level: int

    @property
    def title(self) -> str:
        """The text that describes the fork."""
        if any(branch.is_active for branch in self.branches):
            return "The conversation forks here"
        return "The conversation went back to here, and has not gone on"


class Prose(msgspec.Struct, frozen=True, gc=False):
    """Text of a user or a model, in Markdown."""

    text: str
    level: int = FULL


class Thought(msgspec.Struct, frozen=True, gc=False):
    """Thinking of the model."""

    text: str
    level: int = FULL


class Injected(msgspec.Struct, frozen=True, gc=False):
    """Text that the agent injected into a message; `what` is its kind."""

    text: str
    what: str
    level: int = FULL


class Code(msgspec.Struct, frozen=True, gc=False):
    """Text that is shown exactly as it is. `title` is the file or thing it belongs to."""

    text: str
    language: str = ""
    title: str | None = None
    level: int = FULL


class Output(msgspec.Struct, frozen=True, gc=False):
    """Output of a program or a tool, with terminal escape sequences."""

    text: str
    level: int = FULL


class Command(msgspec.Struct, frozen=True, gc=False):
    """A shell command."""

    text: str
    folder: str | None = None


class Diff(msgspec.Struct, frozen=True, gc=False):
    """A change to a file, as lines that begin with +, - or a space."""

    text: str
    path: str | None = None


class Fields(msgspec.Struct, frozen=True, gc=False):
    """Short arguments of a call."""

    pairs: tuple[tuple[str, str], ...]


class Task(msgspec.Struct, frozen=True, gc=False):
    """An item of a task list; `change` is its change since the list before."""

    text: str
    status: str
    change: str | None = None


class Tasks(msgspec.Struct, frozen=True, gc=False):
    """A task list."""

    tasks: tuple[Task, ...]
    done: int
    total: int


class Option(msgspec.Struct, frozen=True, gc=False):
    """An option of a question."""

    label: str
    about: str | None = None
    is_chosen: bool = False


class Question(msgspec.Struct, frozen=True, gc=False):
    """A question to the user; `answer` is free text."""

    text: str
    header: str | None
    options: tuple[Option, ...]
    answer: str | None = None


class Picture(msgspec.Struct, frozen=True, gc=False):
    """An image inside the session, in base64."""

    media_type: str
    base64: str
    level: int = FULL


class Note(msgspec.Struct, frozen=True, gc=False):
    """A note by clew, with a value from the session."""

    text: str
    value: str | None = None
    level: int = FULL


Piece: TypeAlias = Code | Output | Command | Diff | Fields | Tasks | Question | Picture | Note
"""The parts inside of tool calls and results."""


class Result(msgspec.Struct, frozen=True, gc=False):
    """The result of a tool call. Without a call before it, or after other messages, it is a part of its own."""

    index: int
    name: str
    is_error: bool
    pieces: tuple[Piece, ...]
    exit_code: int | None = None
    call: int | None = None
    """Index of the message with the call, where the result does not stand with it."""
    level: int = FULL
    block: int = 1
    """Its number among the blocks of its message."""


class Subagent(msgspec.Struct, frozen=True, gc=False):
    """A sub-agent; `root` is its first message where it is in the same file."""

    session: str | None
    agent: str | None = None
    root: str | None = None


class Call(msgspec.Struct, frozen=True, gc=False):
    """A tool call with its result."""

    name: str
    note: str | None
    pieces: tuple[Piece, ...]
    result: Result | None = None
    subagents: tuple[Subagent, ...] = ()
    level: int = FULL
    has_result: bool = True
    """Whether the session has a result of it, also where the level of detail leaves the result out."""
    seconds: float | None = None
    """From the call to its result."""


Part: TypeAlias = (
    Section | Continued | Divider | Fork | Prose | Thought | Injected | Call | Result | Code | Picture | Note
)
