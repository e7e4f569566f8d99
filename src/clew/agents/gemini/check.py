"""Problems that only the rules of Gemini CLI's format know of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from clew.agents.base import SourceFile
from clew.agents.gemini.locate import is_log, saved_tag
from clew.analysis.facts import Facts
from clew.model import Problem
from clew.model.codes import problem
from clew.model.unit import Unit


def check(source: SourceFile, facts: Facts, units: Iterable[Unit]) -> Iterator[Problem]:
    """Find a missing header, rewinds to unknown messages, call ids that stand twice, and messages without a time."""
    is_saved = saved_tag(source.path) is not None
    is_chat = not is_saved and not is_log(source.path)
    if is_chat and facts.records and "sessionId" not in facts.extra.get("state", {}):
        yield problem("no-header", file=str(source.path))
    unknown_rewinds = {tuple(place) for place in facts.extra.get("unknown_rewinds", ())}
    call_ids: set[str] = set()
    for unit in units:
        file = str(_file(source, unit.part))
        if unit.is_message:
            # A saved chat has no times; that is no fault of it.
            if is_saved and "timestamp" not in unit.value:
                yield problem("time-missing", file=file, line=unit.line, index=unit.value["index"])
            yield from _repeated_calls(unit, file, call_ids)
        elif unit.value["kind"] == "rewind" and tuple(unit.value["source"].values()) in unknown_rewinds:
            name = unit.value["message_uuid"]
            detail = f"rewinds to {name!r}, which does not exist" if name else "rewinds to no message"
            yield problem("unknown-rewind", detail, file=file, line=unit.line, start=unit.start)


def _repeated_calls(unit: Unit, file: str, call_ids: set[str]) -> Iterator[Problem]:
    index = unit.value["index"]
    for block in unit.value["content"]:
        call_id = block.get("tool_id") if block["type"] == "tool_use" else None
        if isinstance(call_id, str):
            if call_id in call_ids:
                place = {"line": unit.line, "start": unit.start, "end": unit.stop, "index": index}
                yield problem("duplicate-call", f"message {index} has a second call {call_id}", file=file, **place)
            call_ids.add(call_id)


def _file(source: SourceFile, part: int) -> Path:
    return source.path.parent / source.parts[part - 1] if part else source.path
