"""The facts of a rollout collected while it is read: many messages at a time, as each tells very little."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from clew.agents.base import SourceFile
from clew.agents.codex.known import AgentWords, TokenCount, UserWords
from clew.agents.codex.outline import Outline
from clew.agents.codex.scanner import Scanner
from clew.agents.codex.slot import Slot
from clew.derive.facts import Facts
from clew.io.codec import dumps
from clew.model.json import JSON

HEARD: dict[type, str] = {UserWords: "user_message", AgentWords: "agent_message", TokenCount: "token_count"}
"""Events that tell something."""


class Nodes:
    """Messages that wait to be noted, column by column."""

    def __init__(self) -> None:
        self.uuids: list[str] = []
        self.parents: list[str | None] = []
        self.times: list[str] = []
        self.flags = bytearray()
        self.ids: list[str] = []
        """Ids that items have of their own."""

    def add(self, uuids: list[str], parents: list[str | None], times: list[str], flags: bytes, ids: list[str]) -> None:
        """Add messages."""
        self.uuids += uuids
        self.parents += parents
        self.times += times
        self.flags += flags
        self.ids += ids

    def clear(self) -> None:
        """Forget them."""
        for column in (self.uuids, self.parents, self.times, self.flags, self.ids):
            column.clear()


class Watch:
    """A scanner that is told of lines which were read already."""

    def __init__(self, source: SourceFile, outline: Outline, slot: Slot) -> None:
        self.slot = slot
        """Where the outline puts down what requests used."""
        self.scanner = Scanner(source, outline, counts=False)
        self.requests, self.twins, self.copied = self.scanner.requests, self.scanner.twins, self.scanner.copied
        self.nodes = Nodes()
        self.answer: Any = None
        """The last message of the model, if nothing was told of it."""
        self.records = 0
        self.time: str | None = None
        """Time of the last record that was passed over."""

    def asked(self, line: int, message: Any) -> None:
        """See a prompt."""
        self.settle()
        thread, before = self.scanner.thread, message.parent_uuid
        thread.last, thread.in_context = before, thread.in_context and thread.last == before
        thread.follow(message.uuid, False, True)
        self.scanner.asked(line, message.content[0].text)

    def spoke(self, line: int, text: Raw) -> None:
        """See words of the model."""
        self.twins.saw_assistant(line, {bytes(text): 1})

    def hear(self, line: int, payload: Any) -> None:
        """See an event."""
        if type(payload) is not TokenCount:
            self.twins.saw_event(line, HEARD[type(payload)], bytes(payload.message))
        elif payload.info is not None:
            self.settle()
            self.scanner.line = line
            self.scanner.spent(payload.info.total_token_usage, payload.info.last_token_usage)

    def settle(self) -> None:
        """Tell of the last answer: those before it need not be known."""
        answer, self.answer = self.answer, None
        if answer is not None:
            self.requests.item(answer.index, None, "")
            self.slot.open(answer.index, answer)

    def state(self, line: int, found: Any, told: dict[str, JSON]) -> None:
        """Note what holds for the messages to come; of turns only a new folder counts here."""
        if found.type == "turn_context" and told.get("cwd") == self.scanner.thread.surroundings.get("cwd", self):
            return
        self.look(dumps(found) + b"\n", line)
        # The record is counted with the others.
        self.scanner.facts.records -= 1

    def pass_by(self, time: str, count: int) -> None:
        """Count records that tell nothing here; the last of them has this time."""
        self.records += count
        self.time = time

    def look(self, text: bytes, line: int) -> None:
        """See a line that was not read yet."""
        self.flush()
        self.scanner.line = line
        self.scanner.look(text)

    def skip(self, piece: bytes) -> None:
        """Count a piece of a line that is too long."""
        self.flush()
        self.scanner.skip_piece(piece)

    def flush(self) -> None:
        """Tell the scanner what was gathered."""
        if self.time is not None:
            self.scanner.outline.last_line_time = self.time
            self.time = None
        self.scanner.facts.records += self.records
        self.records = 0
        nodes = self.nodes
        if nodes.uuids:
            # The scanner may keep the times, so they are not cleared but left to it.
            times, nodes.times = nodes.times, []
            self.scanner.said(nodes.uuids, nodes.parents, nodes.flags, times, nodes.ids)
            nodes.clear()

    def finish(self) -> Facts:
        """The facts, once all lines were seen."""
        self.flush()
        return self.scanner.finish()
