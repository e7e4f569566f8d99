"""A rollout read in one pass: the facts are collected on the way."""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.base import SourceFile, open_main
from clew.agents.codex.outline import Outline
from clew.agents.codex.reading import CodexReading
from clew.agents.codex.records import is_document
from clew.agents.codex.regular import Regular
from clew.agents.codex.scan import thread_name
from clew.agents.codex.slot import Slot
from clew.agents.codex.watch import Watch
from clew.derive.facts import Facts
from clew.io.compress import damage
from clew.io.records import read_chunks


class CodexReadingAtOnce(CodexReading):
    """Messages, records and facts of one rollout.

    It is guessed that no id stands on several items, and that no event is alone with its words; the end tells.
    """

    def __init__(self, source: SourceFile) -> None:
        self._slot = Slot()
        super().__init__(source, Outline(thread_name(source), spent=self._slot))
        self._watch = Watch(source, self.outline, self._slot)

    def encode(self, messages: bytearray, records: bytearray, between: bytes) -> Iterator[None]:
        """Append the JSON of each unit and `between`; stops now and then, so that what is there can be taken away."""
        if is_document(self.source):
            return
        regular = Regular(self, between, self._watch)
        with open_main(self.source) as stream:
            line = 0
            for chunk, whole in read_chunks(stream):
                line = regular.read(chunk, line) if whole else regular.read_piece(chunk, line)
                self.calls.forget()
                regular.hand_over(messages, records, self._slot.index or None)
                yield
            self.damage = damage(stream)
        self._watch.finish()
        regular.hand_over(messages, records)
        yield

    def facts(self) -> tuple[Facts, bool]:
        """The facts a document needs, and whether they agree with what was guessed."""
        scanner = self._watch.scanner
        agreed = not (is_document(self.source) or self._slot.is_lost or self.index != scanner.facts.messages)
        return scanner.facts, agreed and not scanner.twins.lone() and not scanner.repeated()
