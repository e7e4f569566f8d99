"""The parts that a session is shown in, before they are Markdown, terminal text or a page.

`level` is the first level of detail that shows a part (detail.py). Texts are as the session has them: each face makes
them harmless in its own way.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from clew.render.detail import FULL, Speaker


class Section(msgspec.Struct, frozen=True, gc=False):
    """A message begins; further lines of the same reply are `Continued`."""

    index: int
    who: str
    time: str | None
    marks: tuple[str, ...] = ()
    speaker: Speaker = "reply"
    level: int = FULL
    branch: int | None = None
    """The first message of the branch it belongs to; None before the first fork."""
    on_abandoned_branch: bool = False
    """On a branch that the conversation did not go on with."""


class Continued(msgspec.Struct, frozen=True, gc=False):
    """The next line of the reply that is being shown."""

    index: int
    level: int = FULL


class Divider(msgspec.Struct, frozen=True, gc=False):
    """The conversation was compacted here."""

    index: int
    time: str | None
    level: int


class Branch(msgspec.Struct, frozen=True, gc=False):
    """One way to go on, by its first message."""

    index: int
    is_active: bool


class Fork(msgspec.Struct, frozen=True, gc=False):
    """The conversation goes on in several ways from this message, or went back to it."""

    index: int
    branches: tuple[Branch, ...]
    level: int

    @property
    def title(self) -> str:
        """What happened here."""
        if any(branch.is_active for branch in self.branches):
            return "The conversation forks here"
        return "The conversation went back to here, and has not gone on"


class Prose(msgspec.Struct, frozen=True, gc=False):
    """Words of a person or a model: Markdown."""

    text: str
    level: int = FULL


class Thought(msgspec.Struct, frozen=True, gc=False):
    """What the model thought."""

    text: str
    level: int = FULL


class Injected(msgspec.Struct, frozen=True, gc=False):
    """Text that the agent put in somebody's mouth; `what` says which kind."""

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
    """What a program or a tool printed; colours are escape sequences in it."""

    text: str
    level: int = FULL


class Command(msgspec.Struct, frozen=True, gc=False):
    """A line for a shell."""

    text: str
    folder: str | None = None


class Diff(msgspec.Struct, frozen=True, gc=False):
    """A change to a file, as signed lines."""

    text: str
    path: str | None = None


class Fields(msgspec.Struct, frozen=True, gc=False):
    """Short arguments of a call."""

    pairs: tuple[tuple[str, str], ...]


class Task(msgspec.Struct, frozen=True, gc=False):
    """An item of a task list; `change` says what became of it since the list before."""

    text: str
    status: str
    change: str | None = None


class Tasks(msgspec.Struct, frozen=True, gc=False):
    """A task list."""

    tasks: tuple[Task, ...]
    done: int
    total: int


class Option(msgspec.Struct, frozen=True, gc=False):
    """An answer that was offered."""

    label: str
    about: str | None = None
    is_chosen: bool = False


class Question(msgspec.Struct, frozen=True, gc=False):
    """A question to a person; `answer` is one in words of their own."""

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
    """A remark of ours, with a word from the session."""

    text: str
    value: str | None = None
    level: int = FULL


Piece: TypeAlias = Code | Output | Command | Diff | Fields | Tasks | Question | Picture | Note
"""What calls and results are made of."""


class Result(msgspec.Struct, frozen=True, gc=False):
    """What a tool gave back; one that has no call before it, or came late, stands alone."""

    index: int
    name: str
    is_error: bool
    pieces: tuple[Piece, ...]
    exit_code: int | None = None
    call: int | None = None
    """Index of the message with the call, where the result does not stand with it."""
    level: int = FULL


class Subagent(msgspec.Struct, frozen=True, gc=False):
    """A session that was started from here; `root` is its first message where it is in the same file."""

    session: str | None
    agent: str | None = None
    root: str | None = None


class Call(msgspec.Struct, frozen=True, gc=False):
    """A tool is called, and what came of it."""

    name: str
    note: str | None
    pieces: tuple[Piece, ...]
    result: Result | None = None
    subagents: tuple[Subagent, ...] = ()
    level: int = FULL


Part: TypeAlias = (
    Section | Continued | Divider | Fork | Prose | Thought | Injected | Call | Result | Code | Picture | Note
)
