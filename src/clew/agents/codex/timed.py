"""The calls of a rollout as its first pass finds them, with the times of the messages they are put down to."""

from __future__ import annotations

from clew.agents.base import SourceFile
from clew.agents.codex.header import session_id, spawn_of
from clew.agents.codex.lines import Payload
from clew.agents.codex.outline import Outline
from clew.agents.codex.scan import thread_name
from clew.agents.codex.scanner import Scanner
from clew.derive.calls import Calls


def calls_of(source: SourceFile) -> Calls:
    """The calls as the first pass finds them."""
    scanner = TimedScanner(source, Outline(thread_name(source)))
    facts = scanner.run()
    lone = scanner.twins.lone()
    if lone:
        scanner = TimedScanner(source, Outline(scanner.outline.thread, lone=lone))
        facts = scanner.run()
    meta = scanner.outline.meta or Payload()
    calls = Calls()
    calls.session = session_id(source, meta.id)
    calls.is_agent = spawn_of(meta) is not None
    calls.folder = facts.cwd or meta.cwd or scanner.outline.cwd or None
    calls.branch = facts.git_branch
    calls.take(facts.ledger, scanner.times)
    return calls


class TimedScanner(Scanner):
    """The first pass, which here also keeps when each message was."""

    def __init__(self, source: SourceFile, outline: Outline) -> None:
        super().__init__(source, outline)
        self.times: list[str | None] = []

    def _add(self, own: str | None, role: str, injected: bool, begins: bool, time: str | None, flags: int) -> None:
        super()._add(own, role, injected, begins, time, flags)
        self.times.append(time)
