"""The rules of Codex for its rollouts: the history they build upon, and the numbers of their lines."""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.base import SourceFile
from clew.agents.codex.events import read_raw_records
from clew.agents.codex.history import base_problem
from clew.agents.codex.records import RESULT_KINDS, RolloutRecord, item_of, meta_of
from clew.io.records import RawRecord
from clew.io.typed_records import decode_leniently
from clew.model import Problem
from clew.model.codes import problem
from clew.model.json import JSON

MODES = (None, "legacy", "paginated")


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
        yield "orphan-result", "a result names no call"
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
        fault = base_problem(source.path, base)
        if fault is not None:
            yield "missing-base", fault
