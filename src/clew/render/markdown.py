"""A session as Markdown, from the unified document alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from clew.model.json import JSON
from clew.model.time import parse_time
from clew.render.branching import Forks
from clew.render.detail import Detail
from clew.render.markdown_safe import code, fence, plain, quote, safe_markdown
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
from clew.render.text_safety import one_line
from clew.timezone import zone_label

_HEADER = ("id", "title", "workspace", "started_at", "ended_at", "parent_session_id", "agent_id")


def markdown(
    session: dict[str, JSON],
    messages: Iterable[dict[str, JSON]],
    *,
    detail: Detail = "full",
    reminders: bool = True,
    forks: Forks | None = None,
) -> Iterator[str]:
    """The session in pieces: front matter, title, and a section for each message or reply.

    The front matter has times in UTC, and names the zone of the times of messages.

    `reminders` False leaves out what the agent put into prompts and results; below `full` it is left out anyway.
    """
    yield from _front_matter(session)
    yield f"\n# {plain(session_title(session))}\n"
    for note in session_notes(session):
        yield f"\n{_note(note)}\n"
    writer = _Writer()
    for part in parts(session, messages, detail=detail, reminders=reminders, forks=forks):
        yield f"\n{writer.write(part)}\n"


def section_markdown(section: Iterable[Part], linked: Iterable[int] = ()) -> str:
    """One message or reply as `markdown` writes it. `linked` are messages whose anchors earlier sections have set."""
    writer = _Writer(linked)
    return "\n".join(f"{writer.write(part)}\n" for part in section)


def anchor(index: int) -> str:
    """The name that links to a message use."""
    return f"m{index}"


def _front_matter(session: dict[str, JSON]) -> Iterator[str]:
    source = session.get("source") or {}
    values = {key: session.get(key) for key in _HEADER}
    started = parse_time(session.get("started_at"))
    values["timezone"] = zone_label(started) if started is not None else None
    values |= {f"source_{key}": source.get(key) for key in ("type", "host", "path")}
    yield "---\n"
    for key, value in values.items():
        if value is not None:
            # A JSON string is a quoted YAML string.
            yield f"{key}: {json.dumps(one_line(str(value)), ensure_ascii=False)}\n"
    yield "---\n"


class _Writer:
    """Writes parts, and knows which anchors it has set."""

    def __init__(self, linked: Iterable[int] = ()) -> None:
        self._set = set(linked)

    def write(self, part: Part) -> str:
        """The Markdown of the next part."""
        match part:
            case Section():
                return self._heading(part.index, part.who, part.time, *part.marks)
            case Divider():
                return "---\n\n" + self._heading(part.index, "the conversation was compacted here", part.time)
            case Continued():
                return self._anchor(part.index).rstrip("\n")
            case Call():
                return self._call(part)
            case Result():
                return _result(part)
            case Prose():
                return safe_markdown(part.text)
            case Thought():
                return _thought(part.text)
            case Injected():
                return f"*{part.what}*\n\n{fence(part.text)}"
            case Fork():
                return _fork(part)
            case Code() | Picture() | Note():
                return _piece(part)

    def _heading(self, index: int, who: str, *words: str | None) -> str:
        shown = " · ".join([str(index), who, *(plain(word) for word in words if word)])
        return f"{self._anchor(index)}## {shown}"

    def _anchor(self, index: int) -> str:
        """The place that links to a message lead to; it is set once."""
        if index in self._set:
            return ""
        self._set.add(index)
        return f'<a id="{anchor(index)}"></a>\n\n'

    def _call(self, part: Call) -> str:
        title = f"**Call** {code(part.name)}" + (f" · {plain(part.note)}" if part.note else "")
        pieces = [title, *map(_piece, part.pieces)]
        pieces += [_note(subagent_note(subagent)) for subagent in part.subagents]
        if part.result is not None:
            pieces.append(self._anchor(part.result.index) + _result(part.result))
        return "\n\n".join(pieces)


def _result(part: Result) -> str:
    title = f"{'**Error**' if part.is_error else '**Result**'} {code(part.name)}"
    if part.exit_code is not None:
        title += f" · exit {part.exit_code}"
    if part.call is not None:
        title += f" · [call {part.call}](#{anchor(part.call)})"
    return "\n\n".join([title, *map(_piece, part.pieces)])


def _thought(text: str) -> str:
    return quote("**Thinking**\n\n" + safe_markdown(text, quoted=True))


def _fork(part: Fork) -> str:
    ways = [
        f"- [branch from message {branch.index}](#{anchor(branch.index)})"
        + (" (active branch)" if branch.is_active else "")
        for branch in part.branches
    ]
    return f"*{part.title}*\n\n" + "\n".join(ways)


def _piece(part: Piece) -> str:
    match part:
        case Output():
            return fence(part.text)
        case Code():
            return _titled(part.title, fence(part.text, part.language))
        case Command():
            return _titled(part.folder, fence(part.text, "sh"))
        case Diff():
            return _titled(part.path, fence(part.text, "diff"))
        case Fields():
            return "\n".join(f"- {plain(name)}: {code(value)}" for name, value in part.pairs)
        case Tasks():
            return _tasks(part)
        case Question():
            return _question(part)
        case Picture():
            return f"*{plain(f'image, {part.media_type}, {size(decoded_size(part.base64))}')}*"
        case Note():
            return _note(part)


def _titled(title: str | None, block: str) -> str:
    return f"{code(title)}\n\n{block}" if title else block


def _tasks(part: Tasks) -> str:
    lines = [f"*{part.done} of {part.total} done*", ""]
    for task in part.tasks:
        words = ", ".join([one_line(task.status).replace("_", " "), *([task.change] if task.change else [])])
        lines.append(f"- [{'x' if task.status == 'completed' else ' '}] {plain(task.text)} *({plain(words)})*")
    return "\n".join(lines)


def _question(part: Question) -> str:
    head = f"*{plain(part.header)}* " if part.header else ""
    lines = [f"{head}{plain(part.text)}", ""]
    for option in part.options:
        about = f": {plain(option.about)}" if option.about else ""
        lines.append(f"- [{'x' if option.is_chosen else ' '}] {plain(option.label)}{about}")
    return "\n".join([*lines, *([f"- [x] {plain(part.answer)}"] if part.answer else [])])


def _note(part: Note) -> str:
    return f"*{plain(part.text)}*" + (f" {code(part.value)}" if part.value else "")
