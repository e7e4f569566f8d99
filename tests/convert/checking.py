"""Whether a converted session holds what its original held, and names what it does not: found by reading both."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from clew.agents.base import Unit
from clew.agents.native_records import output_of
from clew.agents.source import SourceFile, open_file
from clew.convert import origin
from clew.convert.conversation import FAILED_MARK, call_id
from clew.convert.conversion import Find, NothingToConvert
from clew.convert.history import SessionWithHistory
from clew.convert.losses import Converted, Loss
from clew.convert.prepare import prepare
from clew.export.verify import verify
from clew.host import Host
from clew.io.codec import dumps
from clew.library import StoredSession
from clew.sources.local import in_homes
from tests.convert.said import is_note

_BRANCHES = re.compile(r"(\d+) messages? on other branches")
_UNANSWERED = "no result was recorded"
"""What Gemini CLI is told of a call that nothing answers."""
_GUARD = "\u200b"
"""What it is told before words that it would take for a command."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FAILED = re.compile(r"that (\d+|a) calls? failed")
_MADE_ID = re.compile(r"call_[0-9a-f]{24}")
"""The id that a conversion gives to a call without one."""
_LINE = re.compile(r"line \d+")
_EMPTY = {"blank-line", "nul-run", "byte-order-mark"}
_SHELL = ("bash", "/bin/bash", "sh", "zsh", "-lc", "-c")
"""Words around a command that another agent's shell does not need."""
_TODO_STATES = {"pending": ("[ ]",), "in_progress": ("(in progress)",), "completed": ("[x]", "done")}
"""How agents spell the states of todo lists."""
_TIMES = re.compile(r"(?:(\d+) x )?(.*)", re.DOTALL)
_ATTACHED = {"image": "a picture", "document": "an attached document", "thinking": "thinking"}


class Held(NamedTuple):
    """What messages hold, each thing with how often it occurs."""

    lines: Counter[str]
    """Of texts and results alike: a result without its call goes over as text, and some agents join texts."""
    calls: Counter[str]
    attached: Counter[str]
    """How many pictures, documents, thoughts and failures."""


def faults(session: StoredSession, target: str, home: Path, find: Find | None = None) -> list[str]:
    """Convert a session below a fresh home and look at what came of it; what is wrong with it, in words."""
    try:
        prepared = prepare(session.agent, session.source, target, find=find, full_history=True)
        written = prepared.write(home, allow_loss=True)
    except NothingToConvert:
        return ["there are words in it"] if any(_is_said(held(each)) for each in spoken(session)) else []
    listed = [each for each in in_homes([Host.at(home)]) if str(each.source.path) == written.files[0]]
    if len(listed) != 1:
        return [f"listed {len(listed)} times"]
    copy = StoredSession(*listed[0])
    losses = [loss for loss in written.losses if ", in the sub-agent " not in loss.what]
    gathered = SessionWithHistory(session.agent, session.source)
    whole = StoredSession(session.agent, gathered.source)
    found = [
        *_of_the_copy(copy, target, written),
        *unnamed(whole, copy, losses),
        *_of_the_children(whole, copy, losses),
    ]
    return found + (_of_the_way_back(session, copy, home / "back") if session.agent.id != target else [])


def _of_the_copy(copy: StoredSession, target: str, written: Converted) -> Iterator[str]:
    if copy.agent.id != target:
        yield f"listed as {copy.agent.id}"
    if copy.id != written.session_id:
        yield f"listed under the id {copy.id}"
    if not verify(copy.agent, copy.source).holds:
        yield "does not come back byte for byte"
    if not any(True for _ in copy.messages):
        yield "nothing in it"


def _of_the_children(session: StoredSession, copy: StoredSession, losses: list[Loss]) -> Iterator[str]:
    before = [link for link in session.header.subagents or () if link.session_id]
    after = [link for link in copy.header.subagents or () if link.session_id]
    named = sum(loss.what.startswith("the sub-agent ") for loss in losses)
    if len(before) > len(after) + named:
        yield f"of {len(before)} sub-agents {len(after)} are there, {named} are named"


def unnamed(session: StoredSession, copy: StoredSession, losses: list[Loss]) -> Iterator[str]:
    """What is in the original and neither in the copy nor among the losses, or the other way round."""
    before, after = spoken(session), held(*spoken(copy))
    if session.agent.id == copy.agent.id:
        # Calls without an id have none in the copy either, or a new one where the records had to be written again.
        ids = {
            call_id(message, number)
            for message in before
            for number, block in enumerate(message["content"])
            if block["type"] == "tool_use" and block["tool_id"] is not None
        }
        before, after = _without_nameless(before, ids), held(*_without_nameless(spoken(copy), ids))
    after.lines.pop(_UNANSWERED, None)
    after.lines.pop(FAILED_MARK, None)
    # What is on the path stands behind what was left for it, should both say the same.
    absent = [message for message in reversed(before) if _is_said(held(message)) and not _take(held(message), after)]
    # Commands and other notes on other branches are counted with the messages there.
    silent = sum(unit.is_message for unit in session.units()) - sum(_is_said(held(message)) for message in before)
    told = sum(int(found[1]) for loss in losses if (found := _BRANCHES.match(loss.what)))
    if not len(absent) <= told <= len(absent) + silent:
        yield f"{len(absent)} messages are absent, {told} are named: #{[each['index'] for each in absent][:5]}"
    added = (+after.lines - _beside(session)) + +after.calls
    if added:
        yield f"nobody said {next(iter(added))[:60]!r}"
    if _has_sidechains(session) and not _has_sidechains(copy) and not any("sub-agent" in loss.what for loss in losses):
        yield "the sub-agents in the file are not named"
    damaged, lines = _damaged(session), sum(bool(_LINE.match(loss.what)) for loss in losses)
    if damaged != lines:
        yield f"{damaged} lines cannot be read, {lines} are named"
    gone = held(*before).attached - held(*absent).attached - held(*spoken(copy)).attached
    gone["thinking"] -= (
        sum(map(_is_thought, copy.units())) + told - len(absent) + _joined_thoughts(before, spoken(copy))
    )
    for kind, name in _ATTACHED.items():
        named = _named(losses, name)
        if gone[kind] > named:
            yield f"{gone[kind]} of the kind {kind} are missing, {named} are named"
    failures = sum(int(found[1].replace("a", "1")) for loss in losses if (found := _FAILED.match(loss.what)))
    if max(gone["failure"], 0) != failures:
        yield f"of {gone['failure']} calls it is not told that they failed, {failures} are named"
    everything = iter([line for message in before for line in _in_order(message, ("text", "tool_result"))])
    copied = (line for message in spoken(copy) for line in _in_order(message, ("text",)) if line != FAILED_MARK)
    if not all(line in everything for line in copied):
        yield "what was said stands in another order"
    if lost := _arguments_lost(before, spoken(copy)):
        yield f"of the arguments is missing {lost!r}"


def _joined_thoughts(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> int:
    """How many thoughts of the original are in a longer one of the copy: some agents keep one for each reply."""
    kept = [block["thinking"] for message in after for block in message["content"] if block["type"] == "thinking"]
    thoughts = [block["thinking"] for message in before for block in message["content"] if block["type"] == "thinking"]
    inside = sum(any(thought in longer and thought != longer for longer in kept) for thought in thoughts if thought)
    return inside - len([longer for longer in kept if longer not in thoughts])


def _without_nameless(messages: list[dict[str, Any]], original_ids: set[str]) -> list[dict[str, Any]]:
    """The messages without the calls that had no id in the original."""

    def is_named(block: dict[str, Any]) -> bool:
        call = block["tool_id"] if block["type"] == "tool_use" else ""
        return call in original_ids or (call is not None and not _MADE_ID.fullmatch(call))

    return [{**each, "content": list(filter(is_named, each["content"]))} for each in messages]


def _named(losses: list[Loss], name: str) -> int:
    """How many things of a kind are named."""
    found = [found for loss in losses if (found := _TIMES.fullmatch(loss.what))]
    return sum(int(each[1] or 1) for each in found if each[2].startswith(name))


def _beside(session: StoredSession) -> Counter[str]:
    """What records say that may go over as messages."""
    receiver = session.agent.target_profile()
    if receiver is None:
        return Counter()
    told = filter(None, (receiver.aside(unit) for unit in session.units() if not unit.is_message))
    return Counter(line for aside in told for line in _lines(aside.text))


def _arguments_lost(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> str | None:
    """Something that is said in a call and not in the same call of the copy, whatever it is called there."""
    there = {identity: " ".join(_read(leaf) for leaf in _leaves(given)) for identity, given in _calls(after)}
    for identity, given in _calls(before):
        for leaf in _leaves(given):
            said = there.get(identity, leaf)
            spellings = (leaf, *_TODO_STATES.get(leaf, ()), *_last_line(given, leaf))
            if not any(spelling in said for spelling in spellings) and leaf not in _SHELL:
                return leaf
    return None


def _last_line(given: Any, leaf: str) -> Iterator[str]:
    """The last line of a part of a file whose number of lines is the leaf: some agents name that instead."""
    if isinstance(given, dict) and leaf == str(given.get("limit")) and isinstance(given.get("offset"), int):
        yield str(given["offset"] + int(leaf) - 1)


def _read(leaf: str) -> str:
    """A text, and the words a shell makes of it: a command may have been a list of words."""
    try:
        return " ".join([leaf, *shlex.split(leaf)])
    except ValueError:
        return leaf


def _calls(messages: list[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    blocks = [
        (call_id(message, number), block["input"])
        for message in messages
        for number, block in enumerate(message["content"])
        if block["type"] == "tool_use"
    ]
    names = Counter(identity for identity, _ in blocks)
    return (each for each in blocks if names[each[0]] == 1)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        # Another wording of a task in a todo list, which few agents keep.
        yield from (leaf for key, each in value.items() if key != "activeForm" for leaf in _leaves(each))
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    elif value is not None:
        yield str(value)


def _of_the_way_back(session: StoredSession, copy: StoredSession, home: Path) -> list[str]:
    back = prepare(copy.agent, copy.source, session.agent.id).write(home)
    before = [_content(session.source, name) for name in origin.file_names(session.source)]
    after = [Path(name).read_bytes() for name in back.files[: len(before)]]
    return [] if after == before and not back.losses else ["does not come back as it was"]


def _content(source: SourceFile, name: str) -> bytes:
    """A file as it is, compressed or not; of a session in a database, its rows."""
    path = origin.file_path(source, name)
    if path.is_file():
        return path.read_bytes()
    with open_file(source, name) as stream:
        return stream.read()


def _is_said(one: Held) -> bool:
    return bool(one.lines or one.calls)


def _take(wanted: Held, after: Held) -> bool:
    """True where all words and calls of a message are there; they are taken away."""
    if wanted.lines - after.lines or wanted.calls - after.calls:
        return False
    after.lines.subtract(wanted.lines)
    after.calls.subtract(wanted.calls)
    return True


def spoken(session: StoredSession) -> list[dict[str, Any]]:
    """What was said in a session itself: no notes of its agent, nothing of a sub-agent that lies in the same file."""
    said = [{**unit.value, "native": unit.native} for unit in session.units() if unit.is_message]
    messages = [each for each in said if not is_note(each, session.agent)]
    wanted = session.is_subagent or {_is_sidechain(message) for message in messages} == {True}
    return [each for each in messages if _is_sidechain(each) in (wanted, False)]


def _is_sidechain(message: dict[str, Any]) -> bool:
    return (message.get("metadata") or {}).get("is_sidechain") is True


def _has_sidechains(session: StoredSession) -> bool:
    said = (unit.value for unit in session.units() if unit.is_message and unit.value["role"] != "system")
    return len({_is_sidechain(message) for message in said}) == 2


def _damaged(session: StoredSession) -> int:
    """How many lines hold something that cannot be read."""
    units = [unit for unit in session.units() if not unit.is_message and unit.value["kind"] == "fragment"]
    return len({(unit.part, unit.line) for unit in units if not set(unit.findings) <= _EMPTY})


def _is_thought(unit: Unit) -> bool:
    """True for an event in which Codex shows what another model thought."""
    payload = unit.native.get("payload")
    return not unit.is_message and isinstance(payload, dict) and payload.get("type") == "agent_reasoning"


def held(*messages: dict[str, Any]) -> Held:
    """What messages hold."""
    found = Held(Counter(), Counter(), Counter())
    for message, number, block in ((m, n, b) for m in messages for n, b in enumerate(m["content"])):
        kind = block["type"]
        if kind == "text":
            found.lines.update(_lines(block["text"]))
        elif kind == "tool_result":
            output = block.get("output") or output_of(message["native"])
            found.lines.update(line for text in _texts(output) for line in _lines(text))
            found.attached.update(_pictures(block.get("output")))
            found.attached["failure"] += block.get("is_error") is True and block.get("output") != _UNANSWERED
        elif kind == "tool_use":
            found.calls.update([call_id(message, number)])
        elif kind in _ATTACHED and block.get(kind):
            found.attached[kind] += 1
    return found


def _in_order(message: dict[str, Any], kinds: tuple[str, ...]) -> Iterator[str]:
    for block in message["content"]:
        if block["type"] in kinds:
            texts = [block["text"]] if block["type"] == "text" else _texts(block.get("output"))
            yield from (line for text in texts for line in _lines(text))


def _lines(text: str) -> list[str]:
    """The lines that are not empty; a sub-agent may be called by another id."""
    return [_UUID.sub("uuid", line.strip()) for line in text.splitlines() if line.strip(f"{_GUARD} ")]


def _pictures(output: Any) -> Iterator[str]:
    """The kinds of what a result holds beside texts."""
    for block in output if isinstance(output, list) else ():
        if isinstance(block, dict) and block.get("type") in ("image", "document") and block.get(block["type"]):
            yield block["type"]


def _texts(output: Any) -> Iterator[str]:
    """The texts of a result; what has a form of its agent's own is read as JSON."""
    if isinstance(output, list):
        for block in output:
            kind = block.get("type") if isinstance(block, dict) else None
            if kind == "text":
                yield block["text"]
            elif kind not in ("image", "document"):
                yield dumps(block.get("value", block) if kind else block).decode()
    elif output is not None:
        yield output if isinstance(output, str) else dumps(output).decode()
