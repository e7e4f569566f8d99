"""What can be wrong with a conversation, whatever agent wrote it. Holds ids while it passes, never content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from clew.analysis.facts import Facts, as_event, collect_facts
from clew.analysis.links import Links
from clew.analysis.messages import metadata_of
from clew.analysis.views import in_order
from clew.model import Problem
from clew.model.codes import problem
from clew.model.json import JSON
from clew.model.time import parse_time
from clew.model.unit import Unit

THINKING_LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh")
_ROLES = ("user", "assistant", "system")
_SHOWN = 60


class Place(NamedTuple):
    """Where a message or record stands."""

    file: str | None = None
    line: int | None = None
    start: int | None = None
    end: int | None = None

    def problem(self, code: str, detail: str = "", index: int | None = None, path: str | None = None) -> Problem:
        """A problem at this place."""
        return problem(
            code, detail, file=self.file, line=self.line, start=self.start, end=self.end, index=index, path=path
        )


class _Found(NamedTuple):
    """Something that waits for its other half."""

    place: Place
    message: int | None
    detail: str


class Conversation:
    """Sees the messages and records of one session in order, then says what is left over."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._session = facts.sessions.most_common(1)[0][0] if facts.sessions else None
        self._messages = 0
        self._has_erased = False
        """A session whose messages were all erased was not empty."""
        self._uuids: dict[str, int] = {}
        self._broken: dict[str | int, str] | None = None
        self._open: dict[str, _Found] = {}
        self._answered: set[str] = set()
        self._answered_elsewhere: set[JSON] = set()
        self._orphans: dict[str, _Found] = {}
        self._noted: dict[str, _Found] = {}
        self._unknown_levels: set[str] = set()
        """Thinking levels that were reported already: every message of a session repeats them."""

    def see(self, unit: Unit, place: Place) -> Iterator[Problem]:
        """Problems of the next message or record by itself and with those before it."""
        value = unit.value
        if unit.is_message:
            self._messages += 1
            yield from self._message(unit, place)
        else:
            uuid = value.get("uuid")
            if isinstance(uuid, str):
                self._uuids.setdefault(uuid, 0)
                yield from self._link(uuid, 0, place)
            if value.get("kind") == "snapshot":
                self._snapshot(value, place)
            self._has_erased |= value.get("type") == "erased"

    def _message(self, unit: Unit, place: Place) -> Iterator[Problem]:
        message, index = unit.value, unit.value["index"]
        for code, detail, path in self._findings(unit):
            yield place.problem(code, f"message {index} {detail}", index, path)
        uuid = message.get("uuid")
        if isinstance(uuid, str):
            first = self._uuids.setdefault(uuid, index)
            if first != index:
                detail = f"message {index} has the uuid {uuid} of message {first}"
                yield place.problem("duplicate-uuid", detail, index, "$.uuid")
        yield from self._link(uuid, index, place)
        for block in message["content"]:
            self._pair(block, index, place)
            if block.get("type") == "tool_use" and _is_inherited(message):
                # The result of a call in another session is in that session.
                self._answered_elsewhere.add(block.get("tool_id"))

    def _findings(self, unit: Unit) -> Iterator[tuple[str, str, str]]:
        message = unit.value
        time = time_problem(unit)
        if time is not None and self._facts.extra.get("has_message_times", True):
            yield (*time, "$.timestamp")
        if unit.claimed_session not in (None, self._session):
            yield "other-session", f"has a different session id: {_shown(str(unit.claimed_session))}", "$"
        role = _other_role(unit)
        if role is not None:
            yield "wrong-role", f"is of type {message['role']}, but has the role {role}", "$.role"
        level = (metadata_of(message).get("thinking") or {}).get("level")
        if level is not None and level not in THINKING_LEVELS and _shown(level) not in self._unknown_levels:
            self._unknown_levels.add(_shown(level))
            yield "unknown-thinking-level", f"has the thinking level {_shown(level)}", "$.metadata.thinking.level"

    def _link(self, uuid: JSON, index: int, place: Place) -> Iterator[Problem]:
        if self._broken is None:
            self._broken = broken_links(self._facts)
        code = self._broken.get(index) if index else self._broken.get(uuid)
        if code is not None:
            name = f"message {index}" if index else f"record {uuid}"
            detail = "is its own ancestor" if code == "parent-cycle" else "has a parent that is not there"
            yield place.problem(code, f"{name} {detail}", index or None, "$.parent_uuid")

    def _pair(self, block: dict[str, JSON], index: int, place: Place) -> None:
        kind, tool = block.get("type"), block.get("tool_id")
        if not isinstance(tool, str):
            return
        if kind == "tool_use" and tool not in self._answered:
            if self._orphans.pop(tool, None) is not None:
                # The result stands before its call; times are not monotone in real files either.
                self._answered.add(tool)
            else:
                detail = f"message {index} calls {block.get('tool_name')} ({tool}), and no result follows"
                self._open.setdefault(tool, _Found(place, index, detail))
        elif kind == "tool_result" and tool not in self._answered:
            if self._open.pop(tool, None) is not None:
                self._answered.add(tool)
            else:
                detail = f"message {index} has a result of {tool}, which was not called"
                self._orphans.setdefault(tool, _Found(place, index, detail))

    def _snapshot(self, record: dict[str, JSON], place: Place) -> None:
        named = record.get("message_uuid") or (record.get("snapshot") or {}).get("message_uuid")
        if isinstance(named, str):
            self._noted.setdefault(named, _Found(place, None, f"a snapshot names the message {named}"))

    def end(self, file: str | None = None) -> Iterator[Problem]:
        """Problems of the whole."""
        if not self._messages and not self._has_erased:
            yield problem("empty-session", file=file)
        for code, found in (("orphan-result", self._orphans), ("unanswered-call", self._open)):
            for tool, left in found.items():
                if tool not in self._answered_elsewhere:
                    yield left.place.problem(code, left.detail, left.message)
        for uuid, noted in self._noted.items():
            if uuid not in self._uuids:
                yield noted.place.problem("unknown-snapshot-message", noted.detail)


def _is_inherited(message: dict[str, JSON]) -> bool:
    """True for a message that was copied from the session this one was begun in."""
    extensions = message.get("extensions") or {}
    return any(isinstance(own, dict) and own.get("inherited") is True for own in extensions.values())


def time_problem(unit: Unit) -> tuple[str, str] | None:
    """What is wrong with the time of a message: code and detail. Every agent calls it `timestamp`."""
    time, native = unit.value.get("timestamp"), unit.native.get("timestamp")
    if time is None:
        if native is None or parse_time(native) is not None:
            return "no-timestamp", "has no timestamp"
        return "bad-timestamp", f"has the timestamp {_shown(repr(native))}, which is no time"
    if parse_time(time) is None:
        return "bad-timestamp", f"has the timestamp {_shown(repr(time))}, which is no time"
    return None


def broken_links(facts: Facts) -> dict[str | int, str]:
    """The code of what is wrong with a parent, by index of the message, or by uuid of another record."""
    links = facts.tree.links
    broken: dict[str | int, str] = {}
    for code, nodes in (("missing-parent", links.missing), ("parent-cycle", links.cycles)):
        for node in nodes:
            broken[_name(links, node)] = code
    return broken


def _name(links: Links, node: int) -> str | int:
    return links.messages[node] or links.uuid(node) or 0


def _other_role(unit: Unit) -> str | None:
    """The role inside a native message where it says something else than the record's type, which is a role too."""
    message = unit.native.get("message")
    role = message.get("role") if isinstance(message, dict) else None
    # Gemini's API calls the assistant `model`.
    role = "assistant" if role == "model" else role
    kind = unit.native.get("type")
    is_other = kind in _ROLES and isinstance(role, str) and role not in (kind, unit.value["role"])
    return _shown(str(role)) if is_other else None


def _shown(text: str) -> str:
    """A text that is wrong somewhere; no part of a long one, which could be half of a secret."""
    return text if len(text) <= _SHOWN else f"({len(text)} characters)"


def validate(
    messages: Iterable[dict[str, JSON]], records: Iterable[dict[str, JSON]] = (), file: str | None = None
) -> list[Problem]:
    """Every problem of messages that are already read, as JSON of the unified document."""
    units = [Unit(is_message, value, 0, 0, 0, ()) for is_message, value in in_order(messages, records)]
    conversation = Conversation(collect_facts(as_event(unit.is_message, unit.value) for unit in units))
    seen = (conversation.see(unit, Place(file)) for unit in units)
    return [*chain.from_iterable(seen), *conversation.end(file)]
