"""The first pass over a rollout: ids, links, times and tokens, without a look at what was said."""

from __future__ import annotations

from itertools import islice

from clew.agents.base import SourceFile
from clew.agents.codex import locate
from clew.agents.codex.lines import DAMAGED, decode, lenient, meta_of
from clew.agents.codex.outline import Outline
from clew.agents.codex.records import head_of, is_document, records_of
from clew.agents.codex.scanner import Scanner
from clew.derive.facts import Facts
from clew.io.compress import open_source

_HEAD = 8
"""So many records are looked at for the head of a session."""
_LONG = 1 << 16
"""A first line that is longer is looked at with care."""


def outline_of(source: SourceFile, facts: Facts) -> Outline:
    """The outline that a first pass made, or makes now."""
    outline: Outline = (facts if "outline" in facts.extra else scan(source)).extra["outline"]
    return outline


def scan(source: SourceFile, counts: bool = True) -> Facts:
    """Facts of a rollout. What only its end tells may ask for a second look at its lines."""
    scanner = Scanner(source, Outline(thread_name(source)), counts)
    facts = scanner.run()
    repeated, lone = scanner.repeated(), scanner.twins.lone()
    if repeated or lone:
        scanner = Scanner(source, Outline(scanner.outline.thread, repeated=repeated, lone=lone), counts)
        facts = scanner.run()
    return facts


def thread_name(source: SourceFile) -> str:
    """The id of the rollout: its own where it replaces another, else the thread's."""
    named = locate.parse_name(source.path)
    if named is not None and named.rollout:
        return named.rollout
    return first_id(source) or (named.thread if named else locate.stem(source.path.name))


def first_id(source: SourceFile) -> str | None:
    """The thread id that the first line of a rollout tells; reads no further than its head."""
    if not is_document(source):
        with open_source(source.path, min(source.size, _LONG) if source.frozen else _LONG) as stream:
            text = stream.readline(_LONG)
        try:
            meta = meta_of(decode(text))
            return meta.id if meta is not None else None
        except DAMAGED:
            # Whatever it is, it is looked at with care.
            pass
    for record in islice(records_of(source), _HEAD):
        if record.value is not None:
            meta = meta_of(lenient(head_of(record.value) or record.value))
            return meta.id if meta is not None else None
    return None
