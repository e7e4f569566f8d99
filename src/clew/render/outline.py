"""Turns messages of the unified document into parts (parts.py), one message at a time, for every output format.

In memory are only messages whose tool calls wait for their results, the current task list, and the branch of each
message of a session with forks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from clew.analysis.actions import Printed, exit_code, printed
from clew.analysis.commands import parse_command
from clew.analysis.injected_text import REMINDER, split_context, split_reminders, strip_reminders, with_files
from clew.analysis.pair_tool_results import Answer, Joined, joined
from clew.analysis.prompts import typed_text
from clew.analysis.todos import SINGLE, stepped
from clew.model import Todo
from clew.model.json import JSON
from clew.model.time import microseconds
from clew.render.branching import Branching, Forks
from clew.render.detail import DETAILS, FULL, PROMPTS, Detail, Speaker, block_level, is_remark, result_level, speaker_of
from clew.render.parts import (
    Call,
    Code,
    Continued,
    Divider,
    Injected,
    Note,
    Output,
    Part,
    Picture,
    Piece,
    Prose,
    Result,
    Section,
    Subagent,
    Thought,
)
from clew.render.pieces import call_pieces, changed_tasks, json_code
from clew.render.tables import clock, size
from clew.render.text_safety import one_line

_MARKS: dict[Speaker, str] = {
    "injected": "injected by the agent",
    "summary": "summary of what came before",
    "aside": "sub-agent",
}


def parts(
    session: dict[str, JSON],
    messages: Iterable[dict[str, JSON]],
    *,
    detail: Detail = "full",
    reminders: bool = True,
    forks: Forks | None = None,
) -> Iterator[Part]:
    """The parts that a level of detail shows. Reminders that the agent put into text are shown only at level `full`."""
    return chain.from_iterable(by_section(session, messages, detail=detail, reminders=reminders, forks=forks))


def by_section(
    session: dict[str, JSON],
    messages: Iterable[dict[str, JSON]],
    *,
    detail: Detail = "full",
    reminders: bool = True,
    forks: Forks | None = None,
) -> Iterator[list[Part]]:
    """The parts of each message or reply as a list; its section has the lowest level of all of its parts."""
    outline = _Outline(session, detail, reminders and detail == "full", forks)
    parts_of = outline.message_parts if outline.branching is None else outline.parts_with_fork
    waiting: list[Part] = []
    level = FULL
    for entry in joined(messages):
        shown = parts_of(entry)
        if not shown:
            continue
        # The first part has the lowest level of a message, except for a fork after it, which is the last part.
        first, here = shown[0], shown[-1].level
        if first.level < here:
            here = first.level
        if waiting and type(first) is Continued:
            waiting += shown
            if here < level:
                level = here
            continue
        if waiting:
            yield _with_section_level(waiting, level)
        waiting, level = shown, here
        if outline.reply is None:
            yield waiting
            waiting = []
    if waiting:
        yield _with_section_level(waiting, level)


def _with_section_level(shown: list[Part], level: int) -> list[Part]:
    """Set the level of the section of a reply to the lowest level of its parts."""
    first = shown[0]
    if type(first) is Section and level < first.level:
        shown[0] = msgspec.structs.replace(first, level=level)
    return shown


def session_title(session: dict[str, JSON]) -> str:
    """The title of a session on one line; without one, its id."""
    return one_line(session.get("title") or "") or "Session " + one_line(session["id"])


def session_notes(session: dict[str, JSON]) -> Iterator[Note]:
    """Notes on the parent session, and on sub-agents without a tool call that started them."""
    if session.get("parent_session_id"):
        yield Note("Sub-agent of session", session["parent_session_id"])
    yield from map(subagent_note, subagents_without_call(session))


def subagents_without_call(session: dict[str, JSON]) -> list[Subagent]:
    """The sub-agents of a session without a known tool call that started them."""
    return [_subagent(link) for link in session.get("subagents") or () if not link.get("tool_id")]


def subagent_note(subagent: Subagent) -> Note:
    """A note on where the messages of a sub-agent are."""
    if subagent.session:
        return Note("Sub-agent in session", subagent.session)
    if subagent.root:
        return Note("Sub-agent in this file, from message", subagent.root)
    return Note("Sub-agent", subagent.agent)


class _Outline:
    """State of the conversion: what later messages need to know of earlier ones."""

    def __init__(self, session: dict[str, JSON], detail: Detail, reminders: bool, forks: Forks | None) -> None:
        self.deepest = DETAILS.index(detail)
        self.reminders = reminders
        self.in_subagent = session.get("is_agent_session") is True
        self.subagents: dict[JSON, tuple[Subagent, ...]] = {}
        """The sub-agents that a call started, by the id of the call."""
        for link in session.get("subagents") or ():
            if tool_id := link.get("tool_id"):
                self.subagents[tool_id] = (*self.subagents.get(tool_id, ()), _subagent(link))
        self.branching = Branching(forks) if forks else None
        self.reply: str | None = None
        self.model: str | None = None
        self.todos: list[Todo] = []

    def parts_with_fork(self, entry: Joined) -> list[Part]:
        """The parts of a message, and the fork after it, if there is one."""
        assert self.branching is not None
        self.branching.see(entry.message)
        shown = self.message_parts(entry)
        fork = self.branching.forks.fork(entry.message["index"])
        if fork is not None and fork.level <= self.deepest:
            shown.append(fork)
        return shown

    def message_parts(self, entry: Joined) -> list[Part]:
        """The parts of a message."""
        message, moved = entry.message, entry.moved
        content = message["content"]
        if is_remark(message):
            self.reply = None
            return [Note(content[0]["text"], None, PROMPTS)]
        if moved and len(moved) == len(content):
            # All of it stands with the calls that it answers.
            return []
        speaker = speaker_of(message, in_subagent=self.in_subagent)
        shown: list[Part] = []
        if speaker == "prompt" and len(content) > 2:
            content = with_files(content)
        for place, block in enumerate(content):
            level = block_level(block, speaker)
            if level > self.deepest or (moved and place in moved):
                continue
            if block["type"] == "tool_use":
                shown.append(self._call(message, block, level, entry.answers.get(place)))
            else:
                self._block(shown, block, speaker, level, entry, place)
        if not shown:
            return shown
        level = shown[0].level if len(shown) == 1 else min([part.level for part in shown])
        if speaker == "boundary":
            self.reply = None
            return [Divider(message["index"], clock(message.get("timestamp")), level)]
        shown.insert(0, self._section(message, speaker, level))
        return shown

    def _section(self, message: dict[str, JSON], speaker: Speaker, level: int) -> Part:
        metadata = message.get("metadata") or {}
        index: int = message["index"]
        role = message["role"]
        reply = metadata.get("message_id") if role == "assistant" else None
        if reply is not None and reply == self.reply:
            return Continued(index, level)
        self.reply = reply
        who = "tool" if speaker == "result" else role
        marks: tuple[str, ...] = (_MARKS[speaker],) if speaker in _MARKS else ()
        model = metadata.get("model")
        name = model.get("name") if model else None
        if name and name != self.model:
            self.model = name
            marks += (name,)
        time = clock(message.get("timestamp"))
        if self.branching is None:
            return Section(index, who, time, marks, speaker, level)
        branch, on_abandoned_branch = self.branching.place
        marks += ("abandoned branch",) if on_abandoned_branch else ()
        return Section(index, who, time, marks, speaker, level, branch, on_abandoned_branch)

    def _block(
        self, shown: list[Part], block: dict[str, JSON], speaker: Speaker, level: int, entry: Joined, place: int
    ) -> None:
        kind = block["type"]
        if kind == "tool_result":
            shown.append(self._result(entry.message["index"], block, level, entry.late.get(place)))
        elif kind == "thinking":
            # Many agents store only a signature for each call: an empty box would have no use.
            if (block.get("thinking") or "").strip():
                shown.append(Thought(block["thinking"], level))
        elif kind == "text":
            self._text(shown, block.get("text") or "", speaker, level)
        else:
            shown.extend(_attachment(block, level))

    def _text(self, shown: list[Part], text: str, speaker: Speaker, level: int) -> None:
        if REMINDER not in text:
            self._words(shown, text, speaker, level)
            return
        for passage in split_reminders(text):
            if not passage.is_reminder:
                self._words(shown, passage.text, speaker, level)
            elif self.reminders:
                shown.append(Injected(passage.text.strip("\n"), "Reminder injected by the agent"))

    def _words(self, shown: list[Part], text: str, speaker: Speaker, level: int) -> None:
        words = text.strip("\n")
        if not words or words.isspace():
            return
        if speaker == "prompt":
            self._prompt(shown, words, level)
            return
        if speaker != "injected":
            shown.append(Prose(words, level))
            return
        command = parse_command(words)
        if command is not None:
            shown.append(Note("Command", f"{command.name} {command.args or ''}".strip(), level))
        else:
            # Injected text is seldom prose: mostly tags, listings and logs.
            shown.append(Injected(words, "Injected by the agent", level))

    def _prompt(self, shown: list[Part], text: str, level: int) -> None:
        typed = typed_text(text)
        if typed is None:
            if self.reminders:
                shown.append(Injected(text, "Context injected by the editor"))
            return
        before, words, behind = split_context(typed)
        if before and self.reminders:
            shown.append(Injected(before, "Context injected by the editor"))
        shown.append(Prose(words.strip("\n") if before or behind else words, level))
        if behind and self.reminders:
            shown.append(Injected(behind.strip("\n"), "Files injected by the agent"))

    def _call(self, message: dict[str, JSON], block: dict[str, JSON], level: int, answer: Answer | None) -> Call:
        note, pieces, todos = call_pieces(block.get("input"), self.todos, answer and answer.block.get("output"))
        if todos is not None:
            self.todos = todos
        result = seconds = None
        name = block.get("tool_name")
        if answer is not None:
            returned = answer.block
            seconds = _seconds_between(message, answer.message)
            todos = stepped(self.todos, block, returned) if name in SINGLE else None
            if todos is not None:
                pieces = (*pieces, changed_tasks(self.todos, todos))
                self.todos = todos
            depth = result_level(returned)
            if depth <= self.deepest:
                number = next(n for n, each in enumerate(answer.message["content"], 1) if each is returned)
                result = self._result(answer.message["index"], returned, depth, None, number)
        subagents = self.subagents.get(block.get("tool_id"), ()) if self.subagents else ()
        return Call(name or "unnamed tool", note, pieces, result, subagents, level, answer is not None, seconds)

    def _result(self, index: int, block: dict[str, JSON], level: int, call: int | None, number: int = 1) -> Result:
        output = block.get("output")
        is_error = block.get("is_error") is True
        name = block.get("tool_name") or "tool"
        pieces: tuple[Piece, ...]
        if type(output) is str and (unwrapped := printed(output)) is not None:
            pieces = tuple(self._unwrapped(unwrapped))
            return Result(index, name, is_error, pieces, unwrapped.exit_code, call, level, number)
        if type(output) is str and output:
            # As nearly always.
            pieces = (Output(output if self.reminders else self._printed(output)),)
        else:
            pieces = tuple(self._output(output))
        return Result(index, name, is_error, pieces, exit_code(output), call, level, number)

    def _unwrapped(self, found: Printed) -> Iterator[Piece]:
        if found.text:
            yield Output(self._printed(found.text))
        else:
            yield Note("no output")
        if found.running is not None:
            yield Note(f"still running, as process {found.running}")
        if found.seconds is not None and found.seconds >= 1:
            yield Note(f"took {found.seconds:.1f} s")

    def _output(self, output: JSON) -> Iterator[Piece]:
        if output is None or output == "" or output == []:
            yield Note("no output")
        elif isinstance(output, list):
            for item in output:
                yield from self._nested(item)
        else:
            yield json_code(output)

    def _nested(self, item: JSON) -> Iterator[Piece]:
        kind = item.get("type") if isinstance(item, dict) else None
        if kind == "text" and isinstance(item.get("text"), str):
            yield Output(self._printed(item["text"]))
        elif kind in ("image", "document", "unknown"):
            yield from _attachment(item, FULL)
        else:
            yield json_code(item)

    def _printed(self, text: str) -> str:
        return text if self.reminders or REMINDER not in text else strip_reminders(text)


def _attachment(block: dict[str, JSON], level: int) -> Iterator[Code | Picture | Note]:
    kind = block["type"]
    if kind not in ("image", "document"):
        value = block.get("value", block)
        name = value.get("type") if isinstance(value, dict) else None
        yield Note("Block of an unknown kind", name if isinstance(name, str) else None, level)
        yield json_code(value, level)
        return
    content, encoding = block.get(kind), block.get("encoding")
    words = [word for word in (kind, block.get("title"), block.get("media_type")) if isinstance(word, str)]
    if not isinstance(content, str):
        yield Note(", ".join(words), None, level)
    elif encoding == "url":
        yield Note(", ".join(words), content, level)
    elif encoding == "text":
        yield Note(", ".join(words), None, level)
        yield Code(content, level=level)
    elif kind == "image" and isinstance(block.get("media_type"), str):
        yield Picture(block["media_type"], content, level)
    else:
        yield Note(", ".join([*words, size(decoded_size(content))]), None, level)


def decoded_size(base64: str) -> int:
    """The number of bytes that a base64 text encodes; it may contain line breaks."""
    return len("".join(base64.split()).rstrip("=")) * 3 // 4


def _seconds_between(message: dict[str, JSON], later: dict[str, JSON]) -> float | None:
    """The time between two messages; None where the time of one is unknown."""
    start, end = microseconds(message.get("timestamp")), microseconds(later.get("timestamp"))
    return max(0, end - start) / 1_000_000 if start is not None and end is not None else None


def _subagent(link: dict[str, JSON]) -> Subagent:
    return Subagent(link.get("session_id"), link.get("agent_id"), link.get("root_uuid"))
