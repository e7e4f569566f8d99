"""A session for the eyes on a terminal. Rich is loaded only when colours are wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from clew.model.json import JSON
from clew.render.detail import Detail
from clew.render.parts import (
    Call,
    Continued,
    Divider,
    Note,
    Part,
    Prose,
    Result,
    Section,
    Thought,
    clock,
    parts,
    session_notes,
    session_title,
)
from clew.render.prose import prose
from clew.render.safe import one_line, visible
from clew.render.tools import Code

if TYPE_CHECKING:
    from rich.console import RenderableType

STYLED_LENGTH = 20_000
"""Longer texts are printed as they are: styling them would keep the reader waiting."""

_INDENT = "    "
_SECTIONS = {"user": "bold cyan", "assistant": "bold green", "tool": "yellow", "system": "dim"}


def show(
    session: dict[str, JSON],
    messages: Iterator[dict[str, JSON]],
    console_width: int,
    color: bool,
    detail: Detail = "full",
    *,
    reminders: bool = True,
) -> Iterator[str]:
    """The session in pieces of text; without colours nothing is wrapped or decorated, so that it suits a pipe."""
    write = _styled(console_width) if color else _plain
    yield write(Section(0, session_title(session), clock(session.get("started_at")))) + "\n"
    for note in session_notes(session):
        yield write(note)
    for part in parts(session, messages, detail=detail, reminders=reminders):
        yield write(part)


def _plain(part: Part) -> str:
    match part:
        case Continued():
            return ""
        case Section() | Call() | Result():
            return caption(part) + "\n"
        case Divider() | Note():
            return caption(part) + "\n\n"
        case Prose():
            return visible(part.text).strip("\n") + "\n\n"
        case Thought():
            return _indented(part.text, "  │ ") + "\n" if part.text.strip() else ""
        case Code():
            path = f"  {one_line(part.title)}\n" if part.title else ""
            return path + _indented(part.text, _INDENT) + "\n"


def caption(part: Section | Divider | Call | Result | Note) -> str:
    """The line that announces a section, a call, a result or a note."""
    match part:
        case Section():
            words = [str(part.index)] if part.index else []
            return "── " + " · ".join([*words, one_line(part.who), *_words(part.time, *part.marks)])
        case Divider():
            return "══ " + " · ".join([str(part.index), "the conversation was compacted here", *_words(part.time)])
        case Call():
            return " · ".join(["  ▸ " + one_line(part.name), *_words(part.note)])
        case Result():
            mark = "✗" if part.is_error else "◂"
            return f"  {mark} {one_line(part.name)}" + (f" · call {part.call}" if part.call is not None else "")
        case Note():
            return "  " + " ".join(_words(part.text, part.value))


def _words(*words: str | None) -> list[str]:
    return [one_line(word) for word in words if word]


def _indented(text: str, prefix: str) -> str:
    lines = visible(text).strip("\n").split("\n")
    return "".join(f"{prefix}{line}".rstrip() + "\n" for line in lines)


def _styled(width: int) -> Callable[[Part], str]:
    """A writer that styles each part; what rich prints contains no foreign control character."""
    from io import StringIO

    from rich.console import Console

    stream = StringIO()
    console = Console(
        file=stream, width=width, force_terminal=True, color_system="standard", legacy_windows=False,
        no_color=False, markup=False, emoji=False, highlight=False, _environ={},
    )  # fmt: skip

    def write(part: Part) -> str:
        renderable = _renderable(part)
        if renderable is None:
            return _plain(part)
        console.print(renderable)
        written = stream.getvalue()
        stream.seek(0)
        stream.truncate()
        return written

    return write


def _renderable(part: Part) -> RenderableType | None:
    """The part for rich; None where plain text does as well."""
    from rich.markdown import Markdown
    from rich.padding import Padding
    from rich.text import Text

    match part:
        case Section():
            return Text(caption(part), style=_SECTIONS.get(part.who, "bold"))
        case Divider():
            return Text(caption(part) + "\n", style="bold magenta")
        case Call():
            return Text(caption(part), style="blue")
        case Result():
            return Text(caption(part), style="bold red" if part.is_error else "yellow")
        case Note():
            return Text(caption(part) + "\n", style="italic")
        case Prose() if len(part.text) <= STYLED_LENGTH:
            # Links would be written as escape sequences with foreign addresses in them.
            return Padding(Markdown(prose(part.text), hyperlinks=False), (0, 0, 1, 0))
        case Thought() if 0 < len(part.text.strip()) <= STYLED_LENGTH:
            return Padding(Text(visible(part.text).strip("\n"), style="dim italic"), (0, 0, 1, 4))
        case Code() if len(part.text) <= STYLED_LENGTH:
            return _code(part)
        case _:
            return None


def _code(part: Code) -> RenderableType:
    from rich.console import Group
    from rich.padding import Padding
    from rich.syntax import Syntax
    from rich.text import Text

    text = visible(part.text).strip("\n")
    body: RenderableType = Text(text, style="dim")
    if part.language:
        body = Syntax(text, part.language, theme="ansi_dark", background_color="default", word_wrap=True)
    head = [Text(one_line(part.title), style="bold")] if part.title else []
    return Padding(Group(*head, body), (0, 0, 1, 4))
