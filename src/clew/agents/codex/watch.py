"""The facts of a rollout collected while it is read: many messages at a time, as each tells very little."""

from __future__ import annotations

from clew.agents.base import SourceFile
from clew.agents.codex.outline import Outline
from clew.agents.codex.scanner import Scanner
from clew.agents.codex.slot import Slot
from clew.derive.facts import Facts
from clew.graph.links import MESSAGE, RESULT, SAID, SIGNIFICANT
from clew.model.json import JSON

ANSWERED, SPOKEN = MESSAGE | SAID | RESULT, MESSAGE | SAID | SIGNIFICANT
"""Flags of a tool's result, and of what user and model say and do."""


class Nodes:
    """Messages that wait to be noted, column by column."""

    def __init__(self) -> None:
        self.uuids: list[str] = []
        self.parents: list[str | None] = []
        self.times: list[bytes] = []
        self.flags = bytearray()
        self.ids: list[str] = []
        """Ids that items have of their own."""

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
        self.records = 0
        self.time: bytes | None = None
        """Time of the last record that was passed over."""

    def asked(self, uuid: str, before: str | None, spelled: bytes) -> None:
        """Note that a message is a prompt."""
        thread = self.scanner.thread
        in_context = thread.in_context and thread.last == before
        if thread.has_news:
            self.flush()
        thread.last, thread.in_context = before, in_context
        thread.follow(uuid, False, True)
        self.scanner.asked(spelled)

    def state(self, text: bytes, time: bytes, name: str, told: dict[str, JSON]) -> None:
        """Note what holds for the messages to come; of turns only a new folder counts here."""
        if name == "turn_context" and told.get("cwd") == self.scanner.thread.surroundings.get("cwd", self):
            self.pass_by(time)
        else:
            self.look(text)

    def pass_by(self, time: bytes) -> None:
        """Count a record that tells nothing here."""
        self.records += 1
        self.time = time

    def look(self, text: bytes) -> None:
        """See a line that was not read yet."""
        self.flush()
        self.scanner.look(text)

    def flush(self) -> None:
        """Tell the scanner what was gathered."""
        if self.time is not None:
            self.scanner.outline.last_line_time = self.time.decode()
            self.time = None
        self.scanner.facts.records += self.records
        self.records = 0
        nodes = self.nodes
        if nodes.uuids:
            times = [time.decode() for time in nodes.times]
            self.scanner.said(nodes.uuids, nodes.parents, nodes.flags, times, nodes.ids)
            nodes.clear()

    def finish(self) -> Facts:
        """The facts, once all lines were seen."""
        self.flush()
        return self.scanner.finish()
