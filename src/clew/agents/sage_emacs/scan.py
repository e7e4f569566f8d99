"""The first pass over a conversation: facts, claimed ids, and the order of a file that was written backwards."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

from clew.agents.base import SourceFile
from clew.agents.folding import Chain, FoldedReading, Message, own_extension
from clew.agents.jsonl import JsonlReading
from clew.agents.sage_emacs import locate, tables
from clew.agents.sage_emacs.fold import folding
from clew.derive.collect import Collector
from clew.derive.facts import Facts
from clew.model.json import JSON
from clew.model.time import parse_time

CLAIMS = ("session_id", "sessionId")


class _Said(NamedTuple):
    time: datetime
    first: str
    last: str
    """Differs from `first` where the record also holds results."""


def scan(source: SourceFile) -> Facts:
    """Facts of a conversation, with its messages in the order of their times."""
    facts, said = _pass(source, None)
    if any(later.time < earlier.time for earlier, later in pairwise(said)):
        said.sort(key=lambda message: message.time)
        parents = {later.first: earlier.last for earlier, later in pairwise(said)}
        facts, _ = _pass(source, parents)
        facts.extra["parents"] = parents
        facts.leaf_uuid = said[-1].last
    return facts


def _pass(source: SourceFile, parents: dict[str, str] | None) -> tuple[Facts, list[_Said]]:
    collector = Collector()
    claims: dict[str, Counter[str]] = {name: Counter() for name in CLAIMS}
    said: list[_Said] = []
    reading = reading_of(source, {}, parents)
    for unit in reading:
        collector.add(unit.is_message, unit.value)
        if unit.is_message:
            _note_order(said, unit.value)
            _note_claims(claims, unit.value)
    facts = collector.facts
    if (header := getattr(reading, "header", None)) is not None:
        facts.extra["header"] = header
    facts.extra["claims"] = {name: found.most_common(1)[0][0] for name, found in claims.items() if found}
    facts.sessions.update(claims["session_id"] or claims["sessionId"])
    return facts, said


def reading_of(
    source: SourceFile, claims: dict[str, JSON], parents: dict[str, str] | None, extra: dict[str, JSON] | None = None
) -> FoldedReading:
    """The messages of a source; `claims` are the session ids its records repeat."""
    chain = Chain(locate.AGENT, locate.scope(source.path), parents)
    shared = dict.fromkeys(CLAIMS) | claims
    if locate.is_saved(source.path):
        # Hardly a session is a document: who reads lines need not load what reads one.
        from clew.agents.sage_emacs.saved import DocumentReading, SavedReading

        return SavedReading(DocumentReading(source, shared, extra or {}), folding(chain))
    return FoldedReading(JsonlReading(locate.AGENT, source, tables.choose, shared, extra=extra), folding(chain))


def _note_order(said: list[_Said], message: Message) -> None:
    if own_extension(message, locate.AGENT).get("joined"):
        said[-1] = said[-1]._replace(last=message["uuid"])
        return
    before = said[-1].time if said else datetime.min.replace(tzinfo=UTC)
    time = parse_time(message.get("timestamp")) or before
    if "parent_uuid" in message and "parent_uuid" not in own_extension(message, locate.AGENT).get("derived", ()):
        # What it follows is written there; clocks may go wrong.
        time = max(before, time)
    said.append(_Said(time, message["uuid"], message["uuid"]))


def _note_claims(claims: dict[str, Counter[str]], message: Message) -> None:
    rest = own_extension(message, locate.AGENT).get("rest") or {}
    for name, found in claims.items():
        if isinstance(rest.get(name), str):
            found[rest[name]] += 1
