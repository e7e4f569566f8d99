"""The unified document as JSON text, written as a stream.

`messages` and `records` are a view made from the session's events. `native` carries the lines of the agent's own files
verbatim, each file with its SHA-256, so that restoring a session is writing them out again.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from tempfile import SpooledTemporaryFile
from typing import IO, BinaryIO

import msgspec

from clew.agents.base import Agent, session_object
from clew.agents.source import SourceFile, fits_in_memory, open_file, with_current_size
from clew.analysis.facts import collect_facts
from clew.analysis.tree import Tree
from clew.io.codec import NOT_JSON, dumps, loads
from clew.io.compress import plain_name
from clew.io.paths import escape_invalid_utf8
from clew.io.records import read_lines
from clew.model import SCHEMA_VERSION, Message, Problem, Record, Unknown
from clew.model.blocks import block_type
from clew.model.events import Event
from clew.model.json import JSON
from clew.redact.document_stamp import OWN

SPOOL_BYTES = 1 << 20
"""Records wait in memory up to this size, then on disk, until all messages are written."""
MAX_PROBLEMS = 1_000
"""How many problems a document lists."""

LINES = b"\n"
"""Layout of a .json file: one message or native record a line, so that tools for lines work on it."""
ONE_LINE = b""
"""Layout of a .ndjson file: one document a line."""


class Written(msgspec.Struct):
    """What was seen while a document was written."""

    messages: int = 0
    records: int = 0
    verbatim_lines: int = 0
    """Lines of native files that are not JSON objects and are stored as text."""
    unknown_types: dict[str, int] = {}


def write_document(
    agent: Agent,
    source: SourceFile,
    out: IO[bytes],
    *,
    timestamp: str,
    layout: bytes = LINES,
    native: bool = True,
) -> Written:
    """Write the session in `source` as one unified document."""
    return _Writer(agent, with_current_size(source), out, timestamp, layout).write(native)


class _Writer:
    """One document in the making."""

    def __init__(self, agent: Agent, source: SourceFile, out: IO[bytes], timestamp: str, layout: bytes) -> None:
        self._agent, self._source, self._timestamp, self._layout = agent, source, timestamp, layout
        self._out, self._separator = out, b"," + layout
        self._written = Written(unknown_types=Counter())
        self._problems: list[Problem] = []
        self._view = hashlib.sha256()

    def write(self, native: bool) -> Written:
        layout, write = self._layout, self._out.write
        events: Iterable[Event]
        if fits_in_memory(self._source):
            events = list(self._agent.events(self._source))
            facts = collect_facts(events)
        else:
            facts = self._agent.facts(self._source)
            events = self._agent.events(self._source)
        header: dict[str, JSON] = {
            "schema_version": SCHEMA_VERSION,
            "export_timestamp": self._timestamp,
            "agent": self._agent.id,
            "session": session_object(self._agent, self._source, facts),
        }
        write(dumps(header)[:-1] + b"," + layout + b'"messages":[' + layout)
        with SpooledTemporaryFile(SPOOL_BYTES) as records:
            self._write_messages(events, records)
            write(layout + b"]," + layout + b'"records":[' + layout)
            records.seek(0)
            for piece in iter(lambda: records.read(SPOOL_BYTES), b""):
                write(piece)
        write(layout + b"]," + layout + b'"graph":')
        _write_graph(facts.tree, self._out)
        write(b"," + layout + b'"problems":' + dumps(self._masked(msgspec.to_builtins(self._problems))))
        if native:
            self._write_native()
        if self._source.mask is not None:
            # Last, because only now everything was masked.
            write(b"," + layout + b'"extensions":' + dumps({OWN: {"redacted": self._source.mask.stamp()}}))
        write(b"}\n")
        return self._written

    def _write_messages(self, events: Iterable[Event], records: IO[bytes]) -> None:
        """Write messages at once; other records wait until all messages are written."""
        written = self._written
        for event in events:
            match event:
                case Message():
                    self._out.write((self._separator if written.messages else b"") + dumps(event))
                    self._view.update(canonical(event))
                    written.messages += 1
                    for block in event.content:
                        if (
                            type(block) is Unknown
                            and (name := block_type(block.value)) not in self._agent.opaque_blocks
                        ):
                            written.unknown_types[f"content.{name}"] += 1
                case Record():
                    if event.kind == "fragment":
                        continue
                    records.write((self._separator if written.records else b"") + dumps(event))
                    written.records += 1
                    if event.kind == "other":
                        written.unknown_types[str(event.type or "")] += 1
                case Problem():
                    if len(self._problems) < MAX_PROBLEMS:
                        self._problems.append(event)

    def _write_native(self) -> None:
        view = self._view.hexdigest().encode()
        self._out.write(b"," + self._layout + b'"native":{"messages_sha256":"' + view + b'","files":[')
        names = (self._source.path.name, *self._source.parts, *self._source.sides)
        for number, name in enumerate(names):
            with open_file(self._source, "" if number == 0 else name) as stream:
                path = dumps(self._masked(escape_invalid_utf8(name)))
                self._out.write((b"," if number else b"") + b'{"path":' + path + b',"records":[' + self._layout)
                verbatim_lines = self._written.verbatim_lines
                self._write_file(stream)
                if not plain_name(name).endswith(".jsonl"):
                    # A file that is one JSON document, or a text, has lines of any layout.
                    self._written.verbatim_lines = verbatim_lines
        self._out.write(b"]}")

    def _masked(self, value: JSON) -> JSON:
        """What does not come from the session's files, such as their names, masked with them."""
        return value if self._source.mask is None else self._source.mask.value(value)

    def _write_file(self, stream: BinaryIO) -> None:
        digest, text, is_whole, separator = hashlib.sha256(), b"\n", True, b""
        for _, pieces in groupby(read_lines(stream), key=itemgetter(1)):
            self._out.write(separator)
            separator = self._separator
            for number, (text, _, _, is_whole) in enumerate(pieces):
                digest.update(text)
                if is_whole:
                    self._out.write(self._native_record(text))
                else:
                    self._out.write((b"," if number else b"[") + _base64(text.removesuffix(b"\n")))
            if not is_whole:
                self._out.write(b"]")
                self._written.verbatim_lines += 1
        self._out.write(self._layout + b'],"sha256":"' + digest.hexdigest().encode() + b'"')
        self._out.write(b"}" if text.endswith(b"\n") else b',"final_newline":false}')

    def _native_record(self, line: bytes) -> bytes:
        """A line as it stands in the document: a JSON object verbatim, other text as a string, bytes in base64."""
        line = line.removesuffix(b"\n")
        try:
            if line[:1] == b"{" and line[-1:] == b"}" and type(loads(line)) is dict:
                return line
        except (*NOT_JSON, ValueError):
            pass
        self._written.verbatim_lines += 1
        try:
            return dumps(line.decode())
        except UnicodeDecodeError:
            return b"[" + _base64(line) + b"]"


def canonical(message: Message | dict[str, JSON]) -> bytes:
    """The form of a message that `messages_sha256` hashes; independent of the JSON formatting."""
    return msgspec.json.encode(message, order="sorted") + b"\n"


def _base64(content: bytes) -> bytes:
    """Bytes as a JSON string."""
    return b'"' + base64.b64encode(content) + b'"'


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
