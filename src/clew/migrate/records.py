"""Optional fields for the records of sage-emacs that were written before it had them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from clew.agents.base import SourceFile
from clew.agents.sage_emacs import SageEmacs, locate
from clew.agents.sage_emacs.records import ROLES, TOOL
from clew.io.codec import DIALECTS
from clew.io.compress import open_source
from clew.io.records import RawRecord, read_records
from clew.model.json import JSON

Record = dict[str, JSON]
Change = Callable[[RawRecord], Record | None]
"""Gives the new value of a record, or None where it stays as it is."""


def adding_ids(source: SourceFile) -> Change:
    """Adds the uuid and session_id under which clew knows a record that has none."""
    given = _given_ids(source)
    session = locate.session_id(source)

    def change(record: RawRecord) -> Record | None:
        value = record.value
        if value is None or value.get("role") not in (*ROLES, TOOL):
            return None
        added: Record = {}
        if "uuid" not in value and record.start in given:
            added["uuid"] = given[record.start]
        if "session_id" not in value and "sessionId" not in value:
            added["session_id"] = session
        return {**value, **added} if added else None

    return change


def _given_ids(source: SourceFile) -> dict[int, str]:
    agent = SageEmacs()
    units = agent.units(source)
    return {
        unit.start: unit.value["uuid"]
        for unit in units
        if unit.is_message and unit.start < unit.stop and unit.native.get("uuid") != unit.value["uuid"]
    }


def adding_tokens(record: RawRecord) -> Record | None:
    """Adds the estimate sage-emacs itself makes: a token for every four characters."""
    value = record.value
    if value is None or value.get("role") not in ROLES or "tokens" in value or "usage" in value:
        return None
    content = value.get("content")
    if not isinstance(content, str):
        return None
    return {**value, "tokens": {"estimated": -(-len(content) // 4)}}


def changed(path: Path, change: Change) -> Iterator[bytes]:
    """The file's bytes with the change made; lines we could not spell again exactly stay untouched."""
    with open_source(path) as stream:
        for record in read_records(stream):
            value = change(record)
            if value is None or record.dialect is None:
                yield record.text
            else:
                yield DIALECTS[record.dialect](value) + record.end


def count(path: Path, change: Change) -> int:
    """How many records the change would touch."""
    with open_source(path) as stream:
        return sum(record.dialect is not None and change(record) is not None for record in read_records(stream))
