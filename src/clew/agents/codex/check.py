"""The rules of Codex for its rollouts: the history they build upon, and the numbers of their lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clew.agents.base import SourceFile
from clew.agents.codex import locate
from clew.agents.codex.events import read_raw_records
from clew.agents.codex.records import RESULT_KINDS, RolloutRecord, item_of, meta_of
from clew.errors import SourceUnreadable
from clew.io.compress import open_source
from clew.io.records import RawRecord, read_records
from clew.io.typed_records import decode_leniently
from clew.model import Problem
from clew.model.codes import problem
from clew.model.json import JSON

MODES = (None, "legacy", "paginated")
_CHAIN = 100
"""So many bases may build upon each other."""


def check(source: SourceFile) -> Iterator[Problem]:
    """Every problem of the lines, in order."""
    expected: int | None = None
    is_first = True
    for record in read_raw_records(source):
        if record.value is None:
            continue
        for code, detail in _check_line(source, record.value, is_first):
            yield _located(code, detail, source, record)
        is_first = False
        ordinal = record.value.get("ordinal")
        if type(ordinal) is int:
            if expected is not None and ordinal != expected:
                yield _located("bad-ordinal", f"the line has the number {ordinal}, not {expected}", source, record)
            expected = ordinal + 1


def _located(code: str, detail: str, source: SourceFile, record: RawRecord) -> Problem:
    return problem(code, detail, file=str(source.path), line=record.line, start=record.start, end=record.stop)


def _check_line(source: SourceFile, record: dict[str, JSON], is_first: bool) -> Iterator[tuple[str, str]]:
    line = decode_leniently(record, RolloutRecord)
    kind, item = item_of(line)
    if kind is not None and kind in RESULT_KINDS and item is not None and item.call_id is None:
        yield "orphan-result", "a result does not say which call it answers"
    if kind is not None and "payload" not in record:
        # Items had no times before they had envelopes.
        yield "time-missing", ""
    meta = meta_of(line)
    payload = record.get("payload")
    if meta is None or type(payload) is not dict:
        return
    if payload.get("history_mode") not in MODES:
        yield "unknown-history-mode", f"the history mode is {payload['history_mode']!r}"
    base = payload.get("history_base")
    if is_first and isinstance(base, dict):
        fault = _base_fault(source.path, base)
        if fault is not None:
            yield "missing-base", fault


def _base_fault(path: Path, base: dict[str, JSON]) -> str | None:
    """What is wrong with the history that a rollout builds upon, through all that it builds upon in turn."""
    seen = {path}
    for _ in range(_CHAIN):
        name = base.get("thread_id")
        found = locate.find_rollout(path, name) if isinstance(name, str) else None
        if found is None:
            return f"the rollout {name} that the history begins in is not here"
        if found in seen:
            return f"the rollout {name} builds upon itself"
        seen.add(found)
        size, further = _measure(found)
        end = base.get("end_byte_offset")
        if isinstance(end, int) and size < end:
            return f"the rollout {name} has {size} bytes, not the {end} that the history begins with"
        if further is None:
            return None
        base = further
    return "the history has no beginning"


def _measure(path: Path) -> tuple[int, dict[str, JSON] | None]:
    """The unpacked size of a rollout, and the base it builds upon itself."""
    base: JSON = None
    size = 0
    try:
        with open_source(path) as stream:
            head = next(read_records(stream), None)
            payload = (head.value or {}).get("payload") if head is not None else None
            base = payload.get("history_base") if isinstance(payload, dict) else None
            size = len(head.text) if head is not None else 0
            while piece := stream.read(1 << 20):
                size += len(piece)
    except (OSError, SourceUnreadable):
        return 0, None
    return size, base if isinstance(base, dict) else None
