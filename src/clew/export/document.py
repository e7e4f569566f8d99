"""The unified document as JSON text, written as a stream: two passes over the source, holding ids, never content."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO

from clew.agents.base import Agent, Encodes, Reading, SourceFile, freeze, skim
from clew.derive.collect import collect
from clew.derive.facts import Facts
from clew.graph.tree import Tree
from clew.io.codec import dumps, headroom
from clew.model import SCHEMA_VERSION
from clew.model.json import JSON

SPOOL = 1 << 20
"""Records wait in memory up to this size, then on disk, until all messages are written."""

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
        return _write(agent, freeze(source), out, timestamp, layout)


def _write(agent: Agent, source: SourceFile, out: IO[bytes], timestamp: str, layout: bytes) -> Reading:
    facts = skim(agent, source, tree=True, counts=False)
    reading = agent.read(source, facts)
    out.write(_header(agent, source, facts, timestamp, layout))
    with tempfile.SpooledTemporaryFile(SPOOL) as spool:
        messages = _write_units(reading, out, spool, layout)
        spool.seek(0)
        for piece in iter(lambda: spool.read(SPOOL), b""):
            out.write(piece)
    if messages != facts.messages:
        # The first pass took a damaged line for a message, or the other way round: what was written counts.
        facts = collect((unit.is_message, unit.value) for unit in agent.read(source, facts))
    out.write(b"]," + layout + b'"graph":')
    _write_graph(facts.tree, out)
    out.write(b"," + layout + b'"extensions":' + dumps(reading.extensions()) + b"}\n")
    return reading


def _header(agent: Agent, source: SourceFile, facts: Facts, timestamp: str, layout: bytes) -> bytes:
    header: dict[str, JSON] = {
        "schema_version": SCHEMA_VERSION,
        "export_timestamp": timestamp,
        "agent": agent.id,
        "session": agent.session(source, facts),
    }
    return dumps(header)[:-1] + b"," + layout + b'"messages":[' + layout


def _write_units(reading: Reading, out: IO[bytes], spool: IO[bytes], layout: bytes) -> int:
    """Messages go out at once, other records follow behind them; returns how many messages there are."""
    messages = 0
    between = b"," + layout
    write, keep = out.write, spool.write
    written = kept = b""
    for is_message, text in encoded(reading):
        if is_message:
            write(written)
            write(text)
            written = between
            messages += 1
        else:
            keep(kept)
            keep(text)
            kept = between
    out.write(layout + b"]," + layout + b'"records":[' + layout)
    spool.write(layout)
    return messages


def encoded(reading: Reading) -> Iterator[tuple[bool, bytes]]:
    """The units of a reading as JSON text, from the reading itself where it knows a quicker way."""
    if isinstance(reading, Encodes):
        yield from reading.encoded()
        return
    for unit in reading:
        yield unit.is_message, dumps(unit.value)


def _write_graph(tree: Tree, out: IO[bytes]) -> None:
    points = [_fork_point(tree, fork) for fork in tree.forks]
    graph = {"is_linear": tree.is_linear, "fork_points": points}
    out.write(dumps(graph)[:-1] + b',"active_path":[')
    separator = b""
    for part in tree.links.chunks(tree.path):
        if part:
            out.write(separator + dumps(part)[1:-1])
            separator = b","
    out.write(b"]}")


def _fork_point(tree: Tree, fork: JSON) -> dict[str, JSON]:
    point = tree.fork_point(fork)
    branches = [{"uuid": branch.uuid, "index": branch.index} for branch in point.branches]
    return {"uuid": point.uuid, "index": point.index, "branches": branches}
