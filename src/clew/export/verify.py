"""The proof: native files -> unified document -> native files again, compared byte for byte."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import BinaryIO

import msgspec

from clew.agents.base import Agent
from clew.agents.source import SourceFile, open_file, with_current_size
from clew.export.document import write_document
from clew.export.reading import DocumentStream
from clew.io.compress import damage

LF = b"\n"
_SPOOL = 1 << 20
_TIME = "1970-01-01T00:00:00Z"


class Difference(msgspec.Struct):
    """A file that did not come back, and where it first differs."""

    file: str
    line: int
    why: str


class Proof(msgspec.Struct):
    """What was compared, and what came of it."""

    files: int = 0
    records: int = 0
    identical: int = 0
    different: list[Difference] = []
    carried_raw: int = 0
    bytes: int = 0
    document_bytes: int = 0
    unknown_types: dict[str, int] = {}
    unknown_keys: dict[str, int] = {}

    @property
    def holds(self) -> bool:
        return not self.different

    def add(self, other: Proof) -> None:
        """Count another proof in."""
        for name in ("files", "records", "identical", "carried_raw", "bytes", "document_bytes"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.different.extend(other.different)
        for name in ("unknown_types", "unknown_keys"):
            setattr(self, name, dict(Counter(getattr(self, name)) + Counter(getattr(other, name))))


def verify(agent: Agent, source: SourceFile) -> Proof:
    """Prove one session; its document lies on disk in between, so that size costs no memory."""
    proof = Proof()
    source = with_current_size(source)
    with tempfile.SpooledTemporaryFile(_SPOOL) as text:
        written = write_document(agent, source, text, timestamp=_TIME)
        proof.document_bytes = text.tell()
        proof.carried_raw, proof.unknown_types = written.verbatim_lines, dict(written.unknown_types)
        _compare(source, DocumentStream(text), proof)
    unknown_keys: Counter[str] = Counter()
    for unit in agent.units(source):
        if unit.start < unit.stop:
            proof.records += 1
            # The first sign of a new version of the agent's format.
            unknown_keys.update(agent.unknown_keys(unit.native))
    proof.unknown_keys = dict(unknown_keys)
    return proof


def _compare(source: SourceFile, document: DocumentStream, proof: Proof) -> None:
    names = ["", *source.parts, *source.sides]
    for name, file in zip(names, document.native_files, strict=True):
        path = source.path.parent / name if name else source.path
        with open_file(source, name) as stream:
            original = Original(path, stream)
            for piece in document.native_lines(file):
                original.compare(piece)
            original.finish()
        _count(original, proof)


def _count(original: Original, proof: Proof) -> None:
    proof.files += 1
    proof.bytes += original.bytes
    if original.why is None:
        proof.identical += 1
    else:
        proof.different.append(Difference(str(original.path), original.line, original.why))


class Original:
    """A source file next to the bytes that should equal it."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self.path, self._stream = path, stream
        self.bytes = 0
        self.line = 1
        self.why: str | None = None

    def compare(self, piece: bytes) -> None:
        """The next bytes of the file must be these."""
        expected = self._stream.read(len(piece))
        self.bytes += len(expected)
        if self.why is not None:
            return
        if expected == piece:
            self.line += piece.count(b"\n")
            return
        pairs = enumerate(zip(expected, piece, strict=False))
        at = next((at for at, (old, new) in pairs if old != new), min(len(expected), len(piece)))
        self.line += piece[:at].count(b"\n")
        # The bytes may be text of a session, which does not belong in a report.
        self.why = f"differs from byte {at - piece.rfind(LF, 0, at)} of the line on"

    def finish(self) -> None:
        """Nothing may be left."""
        left = len(self._stream.read())
        self.bytes += left
        if left and self.why is None:
            self.why = f"{left} bytes at the end did not come back"
        if self.why is None and (found := damage(self._stream)):
            self.why = f"the archive is damaged ({found}); all that could be unpacked came back"
