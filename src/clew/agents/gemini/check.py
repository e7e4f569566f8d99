"""Problems that only the rules of this format know of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clew.agents.base import SourceFile
from clew.agents.folding import own_extension
from clew.agents.gemini.locate import AGENT, is_log, saved_tag
from clew.agents.gemini.reading import read_units
from clew.agents.gemini.replay import Replay, replay
from clew.agents.gemini.steps import Steps
from clew.derive.facts import Facts
from clew.model import Problem
from clew.model.codes import problem


def check(source: SourceFile, facts: Facts) -> Iterator[Problem]:
    """What is wrong with the session as an event log."""
    found = replay(Steps(source))
    main = str(source.path)
    is_chat = saved_tag(source.path) is None and not is_log(source.path)
    if is_chat and facts.records and "sessionId" not in facts.extra.get("state", {}):
        yield problem("no-header", file=main)
    for part, line, start, name in found.unknown_rewinds:
        detail = f"goes back to {name!r}, which is not there" if name else "goes back to no message at all"
        yield problem("unknown-rewind", detail, file=str(_file(source, part)), line=line, start=start)
    yield from _repeated_calls(source, found)
    if saved_tag(source.path) is not None:
        yield from _timeless(source, found)


def _file(source: SourceFile, part: int) -> Path:
    return source.path.parent / source.parts[part - 1] if part else source.path


def _timeless(source: SourceFile, found: Replay) -> Iterator[Problem]:
    """A saved chat has no times; that is no fault of it."""
    for unit in read_units(source, found):
        if unit.is_message and "timestamp" not in unit.value:
            yield problem("time-missing", file=str(source.path), line=unit.line, index=unit.value["index"])


def _repeated_calls(source: SourceFile, found: Replay) -> Iterator[Problem]:
    seen: set[str] = set()
    for unit in read_units(source, found):
        for block in unit.value["content"] if unit.is_message else ():
            call = block.get("tool_id")
            if block["type"] != "tool_use" or "derived" in own_extension(block, AGENT) or not isinstance(call, str):
                continue
            if call in seen:
                detail = f"message {unit.value['index']} has a second call {call}"
                place = {"line": unit.line, "start": unit.start, "end": unit.stop, "index": unit.value["index"]}
                yield problem("duplicate-call", detail, file=str(_file(source, unit.part)), **place)
            seen.add(call)
