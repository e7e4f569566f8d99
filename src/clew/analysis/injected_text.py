"""Text an agent puts in the mouth of the user or behind a tool's output: `<system-reminder>`, an editor's context."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from clew.model.json import JSON

REMINDER = "<system-reminder>"
"""How a reminder begins."""
_TAG = re.compile(r"<(/?)system-reminder>")
_CONTEXT = "#"
_FILES, _FILES_END = "\n--- Content from referenced files ---\n", "\n--- End of content ---"
_REQUEST = re.compile(r"^#+ My request for Codex:[^\S\n]*$", re.MULTILINE)


class Passage(msgspec.Struct, frozen=True):
    """A piece of a text; all passages joined are the text."""

    text: str
    is_reminder: bool


def reminder_spans(text: str) -> list[tuple[int, int]]:
    """Where reminders begin and end. One without an end tag is ordinary text."""
    spans: list[tuple[int, int]] = []
    open_at: list[int] = []
    for tag in _TAG.finditer(text):
        if not tag.group(1):
            open_at.append(tag.start())
        elif open_at:
            begin = open_at.pop()
            # A reminder around others swallows them.
            while spans and spans[-1][0] > begin:
                spans.pop()
            spans.append((begin, tag.end()))
    return spans


def split_reminders(text: str) -> Iterator[Passage]:
    """The text in passages, each marked as reminder or not."""
    at = 0
    for begin, end in reminder_spans(text):
        if begin > at:
            yield Passage(text[at:begin], False)
        yield Passage(text[begin:end], True)
        at = end
    if at < len(text):
        yield Passage(text[at:], False)


class Prompt(NamedTuple):
    """A prompt, and the text that was inserted before and after it; joined they are the whole text."""

    before: str
    words: str
    behind: str


def split_context(text: str) -> Prompt:
    """A prompt without the context of an editor before it and the files it names behind it; most have neither."""
    before = ""
    if text.startswith(_CONTEXT):
        headings = list(_REQUEST.finditer(text))
        if headings and text[headings[-1].end() :].strip():
            before, text = text[: headings[-1].end()], text[headings[-1].end() :]
    at = text.find(_FILES)
    if at > 0 and text.rstrip().endswith(_FILES_END):
        return Prompt(before, text[:at], text[at:])
    return Prompt(before, text, "")


def with_files(content: list[dict[str, JSON]]) -> list[dict[str, JSON]]:
    """The blocks of a prompt; where the files behind it are in blocks of their own, these joined with its words."""
    begin = next((at for at, block in enumerate(content) if block.get("text") == _FILES[:-1]), 0)
    if not begin or any(block["type"] in ("tool_use", "tool_result") for block in content):
        return content
    texts = [block["text"] for block in content[begin - 1 :] if block["type"] == "text"]
    whole = "".join(texts)
    if content[begin - 1]["type"] != "text" or not split_context(whole).behind:
        return content
    others = [block for block in content[begin:] if block["type"] != "text"]
    return [*content[: begin - 1], {"type": "text", "text": whole}, *others]


def strip_reminders(text: str) -> str:
    """The text without reminders and the blank space before them; without any it comes back as it is."""
    parts: list[str] = []
    begun = False
    for number, passage in enumerate(split_reminders(text)):
        if not passage.is_reminder:
            parts.append(passage.text if begun or not number else passage.text.lstrip())
        elif parts:
            parts[-1] = parts[-1].rstrip()
        begun = begun or bool(parts and parts[-1])
    return "".join(parts)


def is_reminder(text: str) -> bool:
    """True for text that consists of reminders only."""
    return bool(reminder_spans(text)) and not strip_reminders(text)
