"""A session as Markdown, from the unified document alone."""

from __future__ import annotations

import json
from collections.abc import Iterator

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
    parts,
    session_notes,
    session_title,
)
from clew.render.prose import code, fence, plain, prose, quote
from clew.render.safe import one_line
from clew.render.tools import Code

_HEADER = ("id", "title", "workspace", "started_at", "ended_at", "parent_session_id", "agent_id")


def markdown(
    session: dict[str, JSON], messages: Iterator[dict[str, JSON]], *, detail: Detail = "full", reminders: bool = True
) -> Iterator[str]:
    """The session in pieces: front matter, title, and a section for each message or reply.

    `reminders` False leaves out what the agent put into prompts and results; below `full` it is left out anyway.
    """
    yield from _front_matter(session)
    yield f"\n# {plain(session_title(session))}\n"
    for note in session_notes(session):
        yield f"\n{_note(note)}\n"
    for part in parts(session, messages, detail=detail, reminders=reminders):
        yield f"\n{_write(part)}\n"


def anchor(index: int) -> str:
    """The name that links to a message use."""
    return f"m{index}"


def _front_matter(session: dict[str, JSON]) -> Iterator[str]:
    source = session.get("source") or {}
    values = {key: session.get(key) for key in _HEADER}
    values |= {f"source_{key}": source.get(key) for key in ("type", "host", "path")}
    yield "---\n"
    for key, value in values.items():
        if value is not None:
            # A JSON string is a quoted YAML string.
            yield f"{key}: {json.dumps(one_line(str(value)), ensure_ascii=False)}\n"
    yield "---\n"


def _write(part: Part) -> str:
    match part:
        case Section():
            return _heading(part.index, part.who, part.time, *part.marks)
        case Divider():
            return "---\n\n" + _heading(part.index, "the conversation was compacted here", part.time)
        case Continued():
            return _anchor_line(part.index)
        case Prose():
            return prose(part.text)
        case Thought():
            return _thought(part.text)
        case Call():
            return f"**Call** {code(part.name)}" + (f" · {plain(part.note)}" if part.note else "")
        case Result():
            return _result(part)
        case Note():
            return _note(part)
        case Code():
            title = f"{code(part.title)}\n\n" if part.title else ""
            return title + fence(part.text, part.language)


def _heading(index: int, who: str, *words: str | None) -> str:
    shown = " · ".join([str(index), who, *(plain(word) for word in words if word)])
    return f"{_anchor_line(index)}\n\n## {shown}"


def _anchor_line(index: int) -> str:
    return f'<a id="{anchor(index)}"></a>'


def _thought(text: str) -> str:
    return quote("**Thinking**\n\n" + prose(text, quoted=True)) if text.strip() else "*Thinking, not recorded*"


def _result(part: Result) -> str:
    link = f" · [call {part.call}](#{anchor(part.call)})" if part.call is not None else ""
    return f"{'**Error**' if part.is_error else '**Result**'} {code(part.name)}{link}"


def _note(part: Note) -> str:
    return f"*{plain(part.text)}*" + (f" {code(part.value)}" if part.value else "")
