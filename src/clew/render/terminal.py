"""A session as text for a terminal. Rich is loaded only when colours are wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from clew.model.json import JSON
from clew.model.time import parse_time
from clew.render.branching import Forks
from clew.render.detail import Detail
from clew.render.markdown_safe import safe_markdown
from clew.render.outline import decoded_size, parts, session_notes, session_title, subagent_note
from clew.render.parts import (
    Call,
    Code,
    Command,
    Continued,
    Diff,
    Divider,
    Fields,
    Fork,
    Injected,
    Note,
    Output,
    Part,
    Picture,
    Piece,
    Prose,
    Question,
    Result,
    Section,
    Tasks,
    Thought,
)
from clew.render.tables import size
from clew.render.text_safety import one_line, visible
from clew.timezone import format_minute, zone_label

if TYPE_CHECKING:
    from rich.console import RenderableType

STYLED_LENGTH = 20_000
"""Longer texts are printed without styles, because styling them is slow."""

_INDENT = "    "
_SIGNS = {"completed": "x", "in_progress": "~", "cancelled": "-"}
_SPOKEN: dict[type, str] = {Command: "sh", Diff: "diff"}
_SECTIONS = {"user": "bold cyan", "assistant": "bold green", "tool": "magenta", "system": "italic"}


class Subhead(NamedTuple):
    """The line that announces a call or a result."""

    text: str
    style: str


def show(
    session: dict[str, JSON],
    messages: Iterator[dict[str, JSON]],
    console_width: int,
    color: bool,
    detail: Detail = "full",
    *,
    reminders: bool = True,
    forks: Forks | None = None,
) -> Iterator[str]:
    """The session in pieces of text; without colours nothing is wrapped or decorated, so that it suits a pipe."""
    yield from show_header(session, console_width, color)
    yield from show_messages(session, messages, console_width, color, detail, reminders=reminders, forks=forks)


def show_header(
    session: dict[str, JSON], console_width: int, color: bool, summary: Sequence[str] = ()
) -> Iterator[str]:
    """The title of a session, the facts of `summary` below it, and notes on sessions around it."""
    write = _styled(console_width) if color else _plain
    title = write(Section(0, session_title(session), _start(session)))
    yield title if summary else title + "\n"
    if summary:
        yield write(Note(" · ".join(map(one_line, summary))))
    for note in session_notes(session):
        yield write(note)


def show_messages(
    session: dict[str, JSON],
    messages: Iterator[dict[str, JSON]],
    console_width: int,
    color: bool,
    detail: Detail,
    *,
    reminders: bool = True,
    forks: Forks | None = None,
) -> Iterator[str]:
    """The messages of a session in pieces of text."""
    write = _styled(console_width) if color else _plain
    is_prompt = False
    for part in parts(session, messages, detail=detail, reminders=reminders, forks=forks):
        if type(part) is Section:
            is_prompt = part.speaker == "prompt"
        elif color and is_prompt and type(part) is Prose:
            part = _typed(part)
        for line in _lines_of(part):
            yield write(line)


def _start(session: dict[str, JSON]) -> str | None:
    """When a session began, and in which zone all its times are shown."""
    stamp = parse_time(session.get("started_at"))
    return f"{format_minute(stamp)} {zone_label(stamp)}" if stamp is not None else None


def _typed(part: Prose) -> Prose:
    """What a person typed, whose lines end where they ended; Markdown would join them."""
    return Prose(part.text.replace("\n", "  \n"), part.level)


Line: TypeAlias = Part | Piece | Subhead
"""Parts that are printed with one call."""


def _lines_of(part: Part) -> Iterator[Line]:
    """A part and the parts inside of it, in the order in which they are printed: call, arguments, result."""
    match part:
        case Call():
            yield Subhead(" · ".join(["▸ " + one_line(part.name), *_words(part.note)]), "blue")
            yield from part.pieces
            yield from map(subagent_note, part.subagents)
            if part.result is not None:
                yield from _lines_of(part.result)
        case Result():
            state = [f"exit {part.exit_code}"] if part.exit_code is not None else []
            state += [f"call {part.call}"] if part.call is not None else []
            mark, style = ("✗", "bold red") if part.is_error else ("◂", "red" if part.exit_code else "magenta")
            yield Subhead(" · ".join([f"{mark} {one_line(part.name)}", *state]), style)
            yield from part.pieces
        case Injected():
            yield Note(part.what)
            yield Output(part.text)
        case Fork():
            yield Note(f"{part.title}:")
            yield Fields(tuple((f"message {way.index}", _WAYS[way.is_active]) for way in part.branches))
        case _:
            yield part


_WAYS = {True: "active branch", False: "abandoned branch"}


def _plain(part: Line) -> str:
    match part:
        case Continued():
            return ""
        case Section():
            return caption(part) + "\n"
        case Subhead():
            return f"  {part.text}\n"
        case Divider() | Note() | Picture():
            return caption(part) + "\n\n"
        case Prose():
            return visible(part.text).strip("\n") + "\n\n"
        case Thought():
            return _indented(part.text, "  │ ") + "\n"
        case Fields() | Tasks() | Question():
            return _indented(listed(part), _INDENT) + "\n"
        case Code() | Output() | Command() | Diff():
            title = title_of(part)
            path = f"  {one_line(title)}\n" if title else ""
            return path + _indented(part.text, _INDENT) + "\n"
        case Call() | Result() | Injected() | Fork():
            return "".join(map(_plain, _lines_of(part)))


def title_of(part: Code | Output | Command | Diff) -> str | None:
    """The file or folder a text belongs to."""
    match part:
        case Code():
            return part.title
        case Command():
            return part.folder
        case Diff():
            return part.path
        case Output():
            return None


def listed(part: Fields | Tasks | Question) -> str:
    """Arguments, tasks or answers, one a line."""
    if isinstance(part, Question):
        return _asked(part)
    if isinstance(part, Fields):
        return "\n".join(f"{one_line(name)}: {one_line(value)}" for name, value in part.pairs)
    lines = [f"{part.done} of {part.total} done"]
    for task in part.tasks:
        words = ", ".join([one_line(task.status).replace("_", " "), *([task.change] if task.change else [])])
        lines.append(f"[{_SIGNS.get(task.status, ' ')}] {one_line(task.text)} ({words})")
    return "\n".join(lines)


def _asked(part: Question) -> str:
    lines = [": ".join(_words(part.header, part.text))]
    lines += [f"[{'x' if one.is_chosen else ' '}] {': '.join(_words(one.label, one.about))}" for one in part.options]
    return "\n".join([*lines, *([f"[x] {one_line(part.answer)}"] if part.answer else [])])


def caption(part: Section | Divider | Note | Picture) -> str:
    """The line that announces a section or says something."""
    match part:
        case Section():
            words = [str(part.index)] if part.index else []
            return "── " + " · ".join([*words, one_line(part.who), *_words(part.time, *part.marks)])
        case Divider():
            return "══ " + " · ".join([str(part.index), "the conversation was compacted here", *_words(part.time)])
        case Note():
            return "  " + " ".join(_words(part.text, part.value))
        case Picture():
            return f"  image, {one_line(part.media_type)}, {size(decoded_size(part.base64))}"


def _words(*words: str | None) -> list[str]:
    return [one_line(word) for word in words if word]


def _indented(text: str, prefix: str) -> str:
    lines = visible(text).strip("\n").split("\n")
    return "".join(f"{prefix}{line}".rstrip() + "\n" for line in lines)


def _styled(width: int) -> Callable[[Line], str]:
    """A writer that styles each part; what rich prints contains no foreign control character."""
    from io import StringIO

    from rich.console import Console

    stream = StringIO()
    console = Console(
        file=stream, width=width, force_terminal=True, color_system="standard", legacy_windows=False,
        no_color=False, markup=False, emoji=False, highlight=False, _environ={},
    )  # fmt: skip

    def write(part: Line) -> str:
        renderable = _renderable(part)
        if renderable is None:
            return _plain(part)
        console.print(renderable)
        written = stream.getvalue()
        stream.seek(0)
        stream.truncate()
        return written

    return write


def _renderable(part: Line) -> RenderableType | None:
    """The part for rich; None where plain text does as well."""
    from rich.markdown import Markdown
    from rich.padding import Padding
    from rich.text import Text

    match part:
        case Section():
            return Text(caption(part), style=_SECTIONS.get(part.who, "bold"))
        case Divider():
            return Text(caption(part) + "\n", style="bold magenta")
        case Subhead():
            return Text(f"  {part.text}", style=part.style)
        case Note() | Picture():
            return Text(caption(part) + "\n", style="italic")
        case Prose() if len(part.text) <= STYLED_LENGTH:
            # Links would be written as escape sequences with foreign addresses in them.
            return Padding(Markdown(safe_markdown(part.text), hyperlinks=False), (0, 0, 1, 0))
        case Thought() if len(part.text) <= STYLED_LENGTH:
            return Padding(Text(visible(part.text).strip("\n"), style="italic"), (0, 0, 1, 4))
        case Fields() | Tasks() | Question():
            return Padding(Text(listed(part)), (0, 0, 1, 4))
        case Code() | Output() | Command() | Diff() if len(part.text) <= STYLED_LENGTH:
            return _code(part)
        case _:
            return None


def _code(part: Code | Output | Command | Diff) -> RenderableType:
    from rich.console import Group
    from rich.padding import Padding
    from rich.syntax import Syntax
    from rich.text import Text

    text = visible(part.text).strip("\n")
    body: RenderableType = Text(text)
    language = part.language if isinstance(part, Code) else _SPOKEN.get(type(part), "")
    if language:
        body = Syntax(text, language, theme="ansi_dark", background_color="default", word_wrap=True)
    title = title_of(part)
    head = [Text(one_line(title), style="bold")] if title else []
    return Padding(Group(*head, body), (0, 0, 1, 4))
