"""The unified document as JSON text, written as a stream that holds ids, never content.

A source is read twice: once for what the header says, once for messages and records. A small one is read once where
its agent can; then its messages wait in memory until the header is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import IO, NamedTuple, cast

from clew.agents.base import (
    Agent,
    Encodes,
    Reading,
    ReadingAtOnce,
    ReadsAtOnce,
    SourceFile,
    freeze,
    session_object,
    skim,
    uuids_shown,
)
from clew.agents.jsonl import BATCH
from clew.derive.collect import collect
from clew.derive.facts import Facts
from clew.graph.tree import Shown, Tree
from clew.io.codec import dumps, headroom
from clew.model import SCHEMA_VERSION
from clew.model.json import JSON

SPOOL = 1 << 20
"""Records wait in memory up to this size, then on disk, until all messages are written."""
AT_ONCE = 16 << 20
"""A source up to this size is small ..."""
LIMIT = 2 * AT_ONCE
"""... unless it is packed, and its document turns out to be larger than this."""

LINES = b"\n"
"""Layout of a .json file: one message a line, so that tools for lines work on it."""
ONE_LINE = b""
"""Layout of a .ndjson file: one document a line."""


def write_document(
    agent: Agent,
    source: SourceFile,
    out: IO[bytes],
    *,
    timestamp: str,
    layout: bytes = LINES,
) -> Reading:
    """Write the session in `source` as one unified document; returns the reading, with its counters."""
    with headroom():
        return _Writer(agent, freeze(source), out, timestamp, layout).write()


def lines_at_once(agent: Agent, source: SourceFile) -> tuple[bytearray, bytearray] | None:
    """The messages and the records of a small session as they stand in its document, one a line.

    None where the agent cannot tell them in one pass.
    """
    with headroom():
        found = _at_once(agent, freeze(source), b"\n")
    return (found.messages, found.records) if found is not None else None


class _AtOnce(NamedTuple):
    """What one pass over a small source gave; there is `between` behind each message and each record."""

    reading: ReadingAtOnce
    facts: Facts
    messages: bytearray
    records: bytearray


def _at_once(agent: Agent, source: SourceFile, between: bytes) -> _AtOnce | None:
    """A source read in one pass; None where it turns out not to be fit for it."""
    if not source.frozen or source.size > AT_ONCE or not _reads_at_once(type(agent)):
        return None
    reading = cast(ReadsAtOnce, agent).read_at_once(source)
    messages, records = bytearray(), bytearray()
    for _ in reading.encode(messages, records, between):
        if len(messages) + len(records) > LIMIT:
            return None
    facts, is_right = reading.facts()
    return _AtOnce(reading, facts, messages, records) if is_right else None


class _Writer:
    """One document in the making."""

    def __init__(self, agent: Agent, source: SourceFile, out: IO[bytes], timestamp: str, layout: bytes) -> None:
        self._agent, self._source, self._timestamp, self._layout = agent, source, timestamp, layout
        self._out, self._between = out, b"," + layout

    def write(self) -> Reading:
        layout, write = self._layout, self._out.write
        reading, facts, messages = self._read_at_once() or self._read_twice()
        if messages != facts.messages:
            # The first pass took a damaged line for a message, or the other way round: what was written counts.
            units = self._agent.read(self._source, facts)
            facts = collect((unit.is_message, unit.value) for unit in units)
        write(layout + b"]," + layout + b'"graph":')
        _write_graph(facts.tree, self._out, uuids_shown(self._agent))
        write(b"," + layout + b'"extensions":' + dumps(reading.extensions()) + b"}\n")
        return reading

    def _read_twice(self) -> tuple[Reading, Facts, int]:
        facts = skim(self._agent, self._source, tree=True, counts=False)
        reading = self._agent.read(self._source, facts)
        self._out.write(self._header(facts))
        units = reading if isinstance(reading, Encodes) else _Encoded(reading)
        from tempfile import SpooledTemporaryFile

        with SpooledTemporaryFile(SPOOL) as spool:
            for batch in self._batches(units, spool):
                self._out.write(batch)
            self._out.write(self._records())
            spool.seek(0)
            for piece in iter(lambda: spool.read(SPOOL), b""):
                self._out.write(piece)
        return reading, facts, units.index

    def _read_at_once(self) -> tuple[Reading, Facts, int] | None:
        """The same in one pass; None where the source turns out not to be fit for it."""
        found = _at_once(self._agent, self._source, self._between)
        if found is None:
            return None
        reading, facts, messages, records = found
        del messages[-len(self._between) :]
        del records[-len(self._between) :]
        for piece in (self._header(facts), messages, self._records(), records):
            self._out.write(piece)
        return reading, facts, reading.index

    def _records(self) -> bytes:
        """What stands between messages and records."""
        return self._layout + b"]," + self._layout + b'"records":[' + self._layout

    def _header(self, facts: Facts) -> bytes:
        header: dict[str, JSON] = {
            "schema_version": SCHEMA_VERSION,
            "export_timestamp": self._timestamp,
            "agent": self._agent.id,
            "session": session_object(self._agent, self._source, facts),
        }
        return dumps(header)[:-1] + b"," + self._layout + b'"messages":[' + self._layout

    def _batches(self, units: Encodes, spool: IO[bytes]) -> Iterator[bytes | bytearray]:
        """Messages come back at once, other records wait until they follow behind them."""
        messages, records = bytearray(), bytearray()
        came = waited = b""
        for _ in chain(units.encode(messages, records, self._between), (None,)):
            if messages:
                del messages[-len(self._between) :]
                yield came
                yield messages
                messages.clear()
                came = self._between
            if records:
                del records[-len(self._between) :]
                spool.write(waited)
                spool.write(records)
                records.clear()
                waited = self._between


@lru_cache
def _reads_at_once(agent: type) -> bool:
    return issubclass(agent, ReadsAtOnce)


class _Encoded:
    """The units of any reading as JSON text."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.index = 0

    def encode(self, messages: bytearray, records: bytearray, between: bytes) -> Iterator[None]:
        for unit in self._reading:
            self.index += unit.is_message
            (messages if unit.is_message else records).extend(dumps(unit.value) + between)
            if len(messages) + len(records) > BATCH:
                yield


def _write_graph(tree: Tree, out: IO[bytes], shown: Shown) -> None:
    points = [_fork_point(tree, fork, shown) for fork in tree.forks]
    graph = {"is_linear": tree.is_linear, "fork_points": points}
    out.write(dumps(graph)[:-1] + b',"active_path":[')
    separator = b""
    for part in tree.links.chunks(tree.path):
        if part:
            out.write(separator + dumps(shown(part))[1:-1])
            separator = b","
    out.write(b"]}")


def _fork_point(tree: Tree, fork: JSON, shown: Shown) -> dict[str, JSON]:
    point = tree.fork_point(fork, shown)
    branches = [{"uuid": branch.uuid, "index": branch.index} for branch in point.branches]
    return {"uuid": point.uuid, "index": point.index, "branches": branches}
