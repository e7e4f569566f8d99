"""What a session shows, piece by piece, before it is Markdown, terminal text or a page.

Everything comes from the session and message objects of the unified document, one message at a time; only
the ids of calls that wait for their result are held.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from clew.derive.reminders import split_reminders, strip_reminders
from clew.model.json import JSON
from clew.model.time import parse_time
from clew.render.detail import Detail, Voice, blocks_shown, voice
from clew.render.safe import one_line
from clew.render.tables import size
from clew.render.tools import Code, call_code, json_code


class Section(msgspec.Struct, frozen=True):
    """A message begins; further lines of the same reply are `Continued`."""

    index: int
    who: str
    time: str | None
    marks: tuple[str, ...] = ()


class Continued(msgspec.Struct, frozen=True):
    """The next line of the reply that is being shown."""

    index: int


class Divider(msgspec.Struct, frozen=True):
    """The conversation was compacted here."""

    index: int
    time: str | None


class Prose(msgspec.Struct, frozen=True):
    """Words of a person or a model: Markdown."""

    text: str


class Thought(msgspec.Struct, frozen=True):
    """What the model thought; empty where the agent kept only a signature."""

    text: str


class Call(msgspec.Struct, frozen=True):
    """A tool is called; its input follows as Code."""

    name: str
    note: str | None = None


class Result(msgspec.Struct, frozen=True):
    """A tool answers; its output follows."""

    name: str
    is_error: bool
    call: int | None = None
    """Index of the message that made the call."""


class Note(msgspec.Struct, frozen=True):
    """A remark of ours, with a word from the session."""

    text: str
    value: str | None = None


Part: TypeAlias = Section | Continued | Divider | Prose | Thought | Call | Result | Note | Code

_MARKS: dict[Voice, str] = {
    "injected": "injected by the agent",
    "summary": "summary of what came before",
    "aside": "sub-agent",
}


def parts(
    session: dict[str, JSON], messages: Iterator[dict[str, JSON]], *, detail: Detail = "full", reminders: bool = True
) -> Iterator[Part]:
    """What a level of detail shows of the messages. Reminders that the agent put into text show only in full."""
    outline = _Outline(session, detail, reminders and detail == "full")
    for message in messages:
        yield from outline.message(message)


def session_title(session: dict[str, JSON]) -> str:
    """What a session is called, on one line: its title, else its id."""
    return one_line(session.get("title") or "") or "Session " + one_line(session["id"])


def session_notes(session: dict[str, JSON]) -> Iterator[Note]:
    """Links to the sessions around this one that no tool call shows."""
    if session.get("parent_session_id"):
        yield Note("Sub-agent of session", session["parent_session_id"])
    for link in session.get("subagents") or ():
        if link.get("tool_id") is None:
            yield _subagent(link)


def clock(timestamp: JSON) -> str | None:
    """A message's time to the minute, in UTC; as it is where it cannot be read."""
    stamp = parse_time(timestamp)
    if stamp is not None:
        return stamp.strftime("%Y-%m-%d %H:%M")
    return timestamp if isinstance(timestamp, str) else None


class _Outline:
    """What must be known of earlier messages to show the next one."""

    def __init__(self, session: dict[str, JSON], detail: Detail, reminders: bool) -> None:
        self.detail = detail
        self.reminders = reminders
        self.in_subagent = session.get("is_agent_session") is True
        self.links = {link["tool_id"]: link for link in session.get("subagents") or () if link.get("tool_id")}
        self.reply: str | None = None
        self.model: str | None = None
        self.calls: dict[str, int] = {}

    def message(self, message: dict[str, JSON]) -> Iterator[Part]:
        speaker = voice(message, in_subagent=self.in_subagent)
        blocks = blocks_shown(message, speaker, self.detail)
        shown = [part for block in blocks for part in self._block(message, block, speaker)]
        if not shown:
            return
        if speaker == "boundary":
            self.reply = None
            yield Divider(message["index"], clock(message.get("timestamp")))
            return
        yield self._section(message, speaker)
        yield from shown

    def _section(self, message: dict[str, JSON], speaker: Voice) -> Part:
        metadata = message.get("metadata") or {}
        reply = metadata.get("message_id") if message["role"] == "assistant" else None
        if reply is not None and reply == self.reply:
            return Continued(message["index"])
        self.reply = reply
        who = "tool" if speaker == "result" else message["role"]
        marks = [_MARKS[speaker]] if speaker in _MARKS else []
        model = (metadata.get("model") or {}).get("name")
        if model and model != self.model:
            self.model = model
            marks.append(model)
        return Section(message["index"], who, clock(message.get("timestamp")), tuple(marks))

    def _block(self, message: dict[str, JSON], block: dict[str, JSON], speaker: Voice) -> Iterator[Part]:
        kind = block["type"]
        if kind == "tool_use":
            yield from self._call(message["index"], block)
        elif kind == "tool_result":
            yield from self._result(block)
        elif kind == "thinking":
            yield Thought(block.get("thinking") or "")
        elif kind == "text":
            yield from self._text(block.get("text") or "", speaker)
        else:
            yield from _attachment(block)

    def _text(self, text: str, speaker: Voice) -> Iterator[Part]:
        for passage in split_reminders(text):
            words = passage.text.strip("\n")
            if passage.is_reminder:
                if self.reminders:
                    yield Note("Reminder injected by the agent")
                    yield Code(words)
            elif words.strip():
                # What the agent injects is seldom prose: tags, listings, logs.
                yield Code(words) if speaker == "injected" else Prose(words)

    def _call(self, index: int, block: dict[str, JSON]) -> Iterator[Part]:
        tool_id, arguments = block.get("tool_id"), block.get("input")
        name = block.get("tool_name") or "unnamed tool"
        if tool_id is not None:
            self.calls[tool_id] = index
        note = arguments.get("description") if isinstance(arguments, dict) else None
        yield Call(name, note if isinstance(note, str) else None)
        yield from call_code(name, arguments)
        if tool_id in self.links:
            yield _subagent(self.links[tool_id])

    def _result(self, block: dict[str, JSON]) -> Iterator[Part]:
        call = self.calls.pop(block.get("tool_id") or "", None)
        yield Result(block.get("tool_name") or "tool", block.get("is_error") is True, call)
        yield from self._output(block.get("output"))

    def _output(self, output: JSON) -> Iterator[Part]:
        if output is None or output == "" or output == []:
            yield Note("no output")
        elif isinstance(output, str):
            yield Code(self._words(output))
        elif isinstance(output, list):
            for item in output:
                yield from self._nested(item)
        else:
            yield json_code(output)

    def _nested(self, item: JSON) -> Iterator[Part]:
        kind = item.get("type") if isinstance(item, dict) else None
        if kind == "text" and isinstance(item.get("text"), str):
            yield Code(self._words(item["text"]))
        elif kind in ("image", "document", "unknown"):
            yield from _attachment(item)
        else:
            yield json_code(item)

    def _words(self, text: str) -> str:
        return text if self.reminders else strip_reminders(text)


def _attachment(block: dict[str, JSON]) -> Iterator[Part]:
    kind = block["type"]
    if kind not in ("image", "document"):
        value = block.get("value", block)
        name = value.get("type") if isinstance(value, dict) else None
        yield Note("Block of an unknown kind", name if isinstance(name, str) else None)
        yield json_code(value)
        return
    content = block.get(kind)
    words = [word for word in (kind, block.get("title"), block.get("media_type")) if isinstance(word, str)]
    if not isinstance(content, str):
        yield Note(", ".join(words))
    elif block.get("encoding") == "url":
        yield Note(", ".join(words), content)
    elif block.get("encoding") == "text":
        yield Note(", ".join(words))
        yield Code(content)
    else:
        yield Note(", ".join([*words, size(decoded_size(content))]))


def decoded_size(base64: str) -> int:
    """How many bytes a base64 text stands for."""
    return len(base64) * 3 // 4 - base64[-2:].count("=")


def _subagent(link: dict[str, JSON]) -> Note:
    if link.get("session_id"):
        return Note("Sub-agent in session", link["session_id"])
    if link.get("root_uuid"):
        return Note("Sub-agent in this file, from message", link["root_uuid"])
    return Note("Sub-agent", link.get("agent_id"))
